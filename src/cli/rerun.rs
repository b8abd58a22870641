//! `loopctl rerun`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, Loaded};
use super::interactive;
use super::on_pause::OnPauseArgs;
use super::output::Output;
use super::run::{RunToStart, deltas_need_ndjson};
use super::run_ref;
use super::store::StoreArgs;
use super::surface::Surface;
use super::what::read_script;
use crate::trace::escape;

/// Start a new run with the input of an earlier one
///
/// The new run has the input, the session and the limits that the earlier run was started with, and its document as
/// it was recorded. The earlier run does not change.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl rerun last
  loopctl rerun triage-7k2m9q4x --document triage.json")]
pub struct RerunCommand {
    /// The earlier run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The document of the new run, in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// The id of the new run. An id that already exists continues or returns that run
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub run_id: Option<String>,
    /// A script of model replies; it replaces every model, and the tools that it names
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE", requires = "document")]
    pub actions: Vec<PathBuf>,
    /// The store of both runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: the project's, else .loopctl/runs.db
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
    /// With --output ndjson: also print replies while they arrive, as `model_delta`
    #[arg(long)]
    pub deltas: bool,
    /// Ask in the terminal when the run waits for a human
    #[arg(long)]
    pub interactive: bool,
}

impl RerunCommand {
    /// Starts the new run, and drives it until it ends or waits for a human.
    ///
    /// # Errors
    /// When the earlier run or the document can't be read, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        deltas_need_ndjson(self.deltas, self.output)?;
        if self.interactive {
            interactive::needs_terminal(surface)?;
        }
        let here = StoreArgs { store: self.store.clone(), document: None };
        // The store of the earlier run is that of this folder; or, if there is none, the one beside the new document.
        let store = match here.place()?.exists() {
            true => here,
            false => StoreArgs { document: self.document.clone(), ..here },
        };
        let (journal, place) = store.open()?;
        let run = run_ref::resolve(&*journal, &self.run, &place.shown()).await?;
        let reader = host::engine(Arc::default(), Path::new("."), Arc::clone(&journal), None);
        let events = reader.events(&run).await.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        let recorded = || host::recorded(&run, &events, place.project.clone());
        let (program, root, sources) = match &self.document {
            Some(file) => {
                let Loaded { program, root, sources, .. } = host::load(file, &self.actions)?;
                (program, root, sources)
            }
            None => {
                let program = recorded()?;
                let sources = program.sources.clone();
                (program, place.home().unwrap_or_else(|| PathBuf::from(".")), sources)
            }
        };
        let own_model = if self.document.is_some() { recorded().ok() } else { Some(Arc::clone(&program)) };
        let mut start = host::rerun(&run, &events, own_model.as_deref())?;
        start.run_id = self.run_id;
        if self.output == Output::Human {
            surface.say(&format!("rerun of {}\n", escape::line(&run)));
        }
        let script_file = self.script.clone();
        let script = script_file.as_deref().map(read_script).transpose()?;
        let Self { actions, output, deltas, interactive, .. } = self;
        let run = RunToStart {
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
            on_pause: OnPauseArgs::default(),
        };
        run.perform(surface).await
    }
}
