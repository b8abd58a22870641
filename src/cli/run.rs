//! `loopctl run`.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::exit::Exit;
use super::failure::CommandError;
use super::recorded_run;
use super::report;
use super::run_document::{WhatArgs, misspelt};
use super::run_drive::{DriveAction, RunToDrive};
use super::store::StorePlace;
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::drive::start::Start;
use crate::trace::Tone;

/// Run a loop until it ends or waits for a human
///
/// Prints the answer on stdout and everything else on stderr.
/// Exit codes: 0 completed, 1 failed, 2 no run started, 3 waits for a human, 75 the store is away, 130 cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl run triage.json --input ticket_id=TK-1
  loopctl run triage --input ticket_id=TK-1         # triage.json, or loops/triage.json
  loopctl run triage.json --input-file ticket.json --output json | jq .result.answer
  loopctl run triage.json --script script.json      # offline: the script replaces the model")]
pub struct RunCommand {
    #[command(flatten)]
    pub what: WhatArgs,
    /// The store of the run: sqlite:PATH, postgres://..., env:VAR, file:PATH or memory. Default: the project's, else .loopctl/runs.db beside the document
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The session; all runs of a session share one memory
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub session: Option<String>,
    /// The run's id. An id that already exists continues or returns that run
    // Not empty: a variable that is not set would make all runs one.
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub run_id: Option<String>,
    #[command(flatten)]
    pub watch: WatchArgs,
    /// The limit of the run's active time in ms; overrides `timeout_ms` of the document
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout_ms: Option<u64>,
}

impl RunCommand {
    /// Runs the loop.
    ///
    /// # Errors
    /// When there was no run, or its store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        self.watch.judge(surface)?;
        let file = self.what.document()?;
        let loaded = self.what.load(&file)?;
        let program = &loaded.program;
        surface.say(&report::brief(&loaded.warnings, &file, &surface.err));
        let (input, script) = self.what.read(program)?;
        for doubt in script.iter().flat_map(|script| misspelt(program, script)) {
            surface.say(&surface.line(Tone::Warn, "warning", &doubt));
        }
        let place = StorePlace::of_run(self.store.as_deref(), &program.project, &loaded.root);
        let journal = place.open()?;
        let previous_run_id = match &self.what.previous_run {
            Some(given) => Some(recorded_run::resolve(&*journal, given, &place.shown()).await?),
            None => None,
        };
        let start = Start {
            input: input.value,
            lists: input.lists,
            run_id: self.run_id,
            session: self.session,
            model: self.what.model,
            timeout_ms: self.timeout_ms,
            previous_run_id,
            ..Start::default()
        };
        let action = DriveAction::Start(Box::new(start));
        let (document, files, watch) = (loaded.into(), self.what.files, self.watch);
        RunToDrive { document, place, journal, action, script, files, watch }.perform(surface).await
    }
}
