//! `loopctl run`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, Fault, Finished, Loaded, Start, Stop, Watch};
use super::next::NextCommands;
use super::on_pause::{OnPauseArgs, PauseSeen};
use super::output::{Output, conclude};
use super::progress::Progress;
use super::run_ref;
use super::store::StorePlace;
use super::surface::Surface;
use super::telemetry::Telemetry;
use super::what::{WhatArgs, misspelt};
use super::{interactive, launched, report, signals};
use crate::diagnostic::Source;
use crate::engine::notice::{Listener, Notice};
use crate::journal::Journal;
use crate::language::Script;
use crate::program::Program;
use crate::trace::{Redaction, Tone};

/// Run a loop until it ends or waits for a human
///
/// Prints the answer on stdout and everything else on stderr.
/// Exit codes: 0 completed, 1 failed, 2 no run started, 3 waits for a human, 130 cancelled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl run triage.json --input ticket_id=TK-1
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
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// With --output ndjson: also print replies while they arrive, as `model_delta`
    #[arg(long)]
    pub deltas: bool,
    /// Ask in the terminal when the run waits for a human
    #[arg(long)]
    pub interactive: bool,
    #[command(flatten)]
    pub on_pause: OnPauseArgs,
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
        if self.interactive {
            interactive::needs_terminal(surface)?;
        }
        deltas_need_ndjson(self.deltas, self.output)?;
        let Loaded { program, root, warnings, sources } = self.what.load()?;
        surface.say(&report::brief(&warnings, &self.what.file, &surface.err));
        let (input, script) = self.what.read(&program)?;
        for doubt in script.iter().flat_map(|script| misspelt(&program, script)) {
            surface.say(&surface.line(Tone::Warn, "warning", &doubt));
        }
        let place = StorePlace::of_run(self.store.as_deref(), &program.project, &root);
        let journal = place.open()?;
        let previous_run_id = match &self.what.previous_run {
            Some(given) => Some(run_ref::resolve(&*journal, given, &place.shown()).await?),
            None => None,
        };
        let start = Start {
            input,
            run_id: self.run_id,
            session: self.session,
            model: self.what.model,
            timeout_ms: self.timeout_ms,
            previous_run_id,
            ..Start::default()
        };
        let (script_file, actions) = (self.what.script, self.what.actions);
        let (output, deltas, interactive) = (self.output, self.deltas, self.interactive);
        RunToStart {
            program,
            root,
            sources,
            place,
            journal,
            start,
            script,
            script_file,
            actions,
            output,
            deltas,
            interactive,
            on_pause: self.on_pause,
        }
        .perform(surface)
        .await
    }
}

/// A run to be started, and how it is shown.
pub struct RunToStart {
    pub program: Arc<Program>,
    pub root: PathBuf,
    pub sources: Vec<Source>,
    pub place: StorePlace,
    pub journal: Arc<dyn Journal>,
    pub start: Start,
    pub script: Option<Script>,
    pub script_file: Option<PathBuf>,
    pub actions: Vec<PathBuf>,
    pub output: Output,
    pub deltas: bool,
    pub interactive: bool,
    pub on_pause: OnPauseArgs,
}

impl RunToStart {
    /// Drives the run until it ends or waits for a human.
    ///
    /// # Errors
    /// When it can't be started, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let Self {
            program,
            root,
            sources,
            place,
            journal,
            start,
            script,
            script_file,
            actions,
            output,
            deltas,
            interactive,
            on_pause,
        } = self;
        let engine = host::engine(program.project.clone(), &root, Arc::clone(&journal), script);
        let watched = Watched::new(surface, output, deltas, &program);
        if output == Output::Human
            && let Some(run_id) = &start.run_id
            && engine.find(run_id).await?.is_some_and(|run| run.driven)
        {
            let run_id = crate::trace::escape::line(run_id);
            watched.progress.remark(&format!("{run_id} is being driven by another process: waiting for its end"));
        }
        let mut finished = watched.drive(engine.run(&program, start, watched.watch())).await;
        if interactive {
            finished = interactive::decide(surface, &watched, &engine, &program, finished).await;
        }
        let make_next = |run_id: &str| NextCommands {
            script: script_file.clone(),
            actions: actions.clone(),
            ..NextCommands::new(run_id, &place)
        };
        launched::wait(&watched, &engine, make_next, finished.is_none()).await;
        let finished = watched.drained(finished).await;
        match watched.finished(finished, make_next, &sources)? {
            Some(finished) => {
                let next = make_next(&finished.state.header.run_id);
                let exit = conclude(surface, output, &program, &finished.state, &next);
                on_pause.tell(surface, &watched.pause_seen, &program, &finished.state).await;
                exit
            }
            None => {
                host::leave_open(journal);
                Ok(Exit::Cancelled)
            }
        }
    }
}

/// A run that is shown and that signals stop: shared by `run` and `resume`.
pub struct Watched {
    progress: Progress,
    telemetry: Mutex<Option<Telemetry>>,
    stop: Stop,
    /// Whether the run has paused.
    pub pause_seen: PauseSeen,
}

impl Listener for Watched {
    fn on(&self, notice: Notice) {
        if let Some(telemetry) = &*self.telemetry() {
            telemetry.on(&notice);
        }
        self.pause_seen.look(&notice);
        self.progress.on(notice);
    }

    fn wants_deltas(&self) -> bool {
        self.progress.wants_deltas()
    }
}

/// Refuses `--deltas` where it would have no effect.
///
/// # Errors
/// When the output is not the one for programs that read events.
pub fn deltas_need_ndjson(deltas: bool, output: Output) -> Result<(), CommandError> {
    if deltas && output != Output::Ndjson {
        return Err(CommandError::usage_help("--deltas adds replies in parts to the events", "add --output ndjson"));
    }
    Ok(())
}

impl Watched {
    /// A watch over a run that is about to start.
    pub fn new(surface: &Surface, output: Output, deltas: bool, program: &Program) -> Self {
        let telemetry = Telemetry::of_environment(program).unwrap_or_else(|why| {
            surface.say(&surface.line(Tone::Warn, "warning", &why));
            None
        });
        let redact = Redaction::new(&program.project.redact);
        let progress = Progress::new(surface, output, deltas, redact);
        Self { progress, telemetry: Mutex::new(telemetry), stop: Stop::new(), pause_seen: PauseSeen::default() }
    }

    fn telemetry(&self) -> MutexGuard<'_, Option<Telemetry>> {
        // The value is only taken out, at the end.
        self.telemetry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch for the engine.
    pub fn watch(&self) -> Watch<'_> {
        Watch { listener: Some(self), stop: Some(self.stop.clone()) }
    }

    /// Prints a remark about the command itself.
    pub fn remark(&self, text: &str) {
        self.progress.remark(text);
    }

    /// Drives the run; `None` when it had to be dropped after two signals.
    pub async fn drive<T>(&self, run: impl Future<Output = T>) -> Option<T> {
        let result = signals::drive(run, &self.stop, &self.progress).await;
        self.progress.finish();
        result
    }

    /// The result, once all output is written; `None` when nobody reads the output and a signal arrived.
    pub async fn drained<T>(&self, finished: Option<T>) -> Option<T> {
        let mut signals = signals::Signals::new();
        let telemetry = self.telemetry().take();
        let all = async {
            self.progress.drained().await;
            if let Some(telemetry) = telemetry {
                telemetry.finish().await;
            }
        };
        tokio::select! {
            () = all => finished,
            () = signals.next() => None,
        }
    }

    /// The result; or the fault, with the command that resumes the run when the store failed during it or it
    /// had to be dropped.
    ///
    /// # Errors
    /// The fault of the run.
    pub fn finished(
        &self,
        finished: Option<Result<Finished, Fault>>,
        next: impl Fn(&str) -> NextCommands,
        sources: &[crate::diagnostic::Source],
    ) -> Result<Option<Finished>, CommandError> {
        let resume = || self.progress.run_id().map(|run_id| next(&run_id).command("resume", ""));
        match finished {
            Some(Ok(finished)) => Ok(Some(finished)),
            Some(Err(fault)) => Err(CommandError::Fault { fault, sources: sources.to_vec(), resume: resume() }),
            None => {
                if let Some(command) = resume() {
                    self.progress.say(&format!("resume with: {}\n", crate::trace::escape::line(&command)));
                }
                Ok(None)
            }
        }
    }
}
