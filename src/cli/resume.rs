//! `loopctl resume`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, Resume};
use super::interactive;
use super::launched;
use super::limits::LimitArgs;
use super::next::NextCommands;
use super::on_pause::OnPauseArgs;
use super::output::{Output, conclude};
use super::run::{Watched, deltas_need_ndjson};
use super::run_ref;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use super::user::local_user;
use super::what::read_script;
use crate::diagnostic::Source;
use crate::engine::event::{CallId, Decided, DecisionRights, Event, Retried};
use crate::engine::written_decision::{DecisionSyntax, WrittenDecision};
use crate::program::Program;

/// Resume a run that waits for a human or was interrupted
///
/// Finished steps are not repeated. Without a decision, a run that was interrupted, or whose model could not be
/// reached, resumes where it stopped, and a waiting run is shown. A run that reached a limit continues when that
/// limit is raised.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl resume triage-7k2m9q4x --answer \"Take the second account\"
  loopctl resume triage-7k2m9q4x --approve --if 3f9c2a71d0b4e865
  loopctl resume triage-7k2m9q4x --deny --reason \"too much\"
  loopctl resume triage-7k2m9q4x --max-iterations 40")]
pub struct ResumeCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    pub run: String,
    /// The answer to the run's question, or guidance for an agent that is stuck
    #[arg(long, value_name = "TEXT")]
    pub answer: Option<String>,
    /// Approve the waiting tool call
    #[arg(long)]
    pub approve: bool,
    /// Deny the waiting tool call
    #[arg(long)]
    pub deny: bool,
    /// The reason for the denial; the model reads it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Approve the waiting tool call with this input in place of its own
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub edit: Option<Value>,
    /// State that the call of unknown outcome happened, and what it returned
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub happened: Option<Value>,
    /// State that the call of unknown outcome failed, and why
    #[arg(long, value_name = "REASON")]
    pub fail: Option<String>,
    /// Retry the call of unknown outcome, or ask the model again that could not be reached
    #[arg(long)]
    pub retry: bool,
    /// The waiting call to decide, if there are several
    #[arg(long, value_name = "ITERATION.INDEX")]
    pub call: Option<CallId>,
    /// The waiting step of a workflow to decide, if there are several; `*` stands for any part with --retry
    #[arg(long, value_name = "ADDRESS")]
    pub at: Option<String>,
    /// The hash of the call as it was shown; refuse the decision if a different call waits now
    #[arg(long = "if", value_name = "HASH")]
    pub hash: Option<String>,
    /// A comment to record with the decision; the model does not read it
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// The number of the pause to decide, from 1; refuse the decision if the run has another pause now
    #[arg(long, value_name = "N")]
    pub pause: Option<u32>,
    /// Run the failed steps and items of a failed workflow again; what completed is not repeated
    #[arg(long, conflicts_with_all = ["answer", "approve", "deny", "edit", "happened", "fail", "retry"])]
    pub retry_failed: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Resume with the current document, although it has changed since the run started
    #[arg(long)]
    pub new_document: bool,
    /// Resume with the document as the run recorded it, although the file has changed since
    #[arg(long, conflicts_with = "new_document")]
    pub recorded_document: bool,
    /// A script of model replies; it replaces every model, and the tools that it names
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE")]
    pub actions: Vec<PathBuf>,
    #[command(flatten)]
    pub store: StoreArgs,
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
}

impl ResumeCommand {
    /// Resumes the run.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let resume = Resume {
            decided: self.decided()?,
            new_document: self.new_document,
            raised: self.limits.raised(),
            retried: self.retry_failed.then(|| Retried { by: local_user() }),
            ..Resume::default()
        };
        let Self { run, recorded_document, script, actions, store, output, deltas, interactive, on_pause, .. } = self;
        ResumedRun { run, resume, recorded_document, script, actions, store, output, deltas, interactive, on_pause }
            .perform(surface)
            .await
    }

    /// The decision; none when the run is only resumed.
    fn decided(&self) -> Result<Option<Decided>, CommandError> {
        let written = WrittenDecision {
            answer: self.answer.clone(),
            approve: self.approve,
            deny: self.deny,
            reason: self.reason.clone(),
            edit: self.edit.clone(),
            happened: self.happened.clone(),
            fail: self.fail.clone(),
            retry: self.retry,
            resume: false,
            pause: self.pause,
            call: self.call,
            at: self.at.clone(),
            hash: self.hash.clone(),
            comment: self.comment.clone(),
            by: local_user(),
            rights: DecisionRights::All,
        };
        written.read(DecisionSyntax::Flags).map_err(CommandError::usage)
    }
}

/// A run to be resumed, and how.
pub struct ResumedRun {
    pub run: String,
    pub resume: Resume,
    /// Whether the document of the run is the recorded one, whatever its file contains.
    pub recorded_document: bool,
    pub script: Option<PathBuf>,
    pub actions: Vec<PathBuf>,
    pub store: StoreArgs,
    pub output: Output,
    pub deltas: bool,
    pub interactive: bool,
    pub on_pause: OnPauseArgs,
}

impl ResumedRun {
    /// Drives the run until it ends or waits for a human.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn perform(mut self, surface: &Surface) -> Result<Exit, CommandError> {
        deltas_need_ndjson(self.deltas, self.output)?;
        if self.interactive {
            interactive::needs_terminal(surface)?;
        }
        let (journal, place) = self.store.open()?;
        self.run = run_ref::resolve(&*journal, &self.run, &place.shown()).await?;
        let reader = host::engine(Arc::default(), Path::new("."), Arc::clone(&journal), None);
        let events =
            reader.events(&self.run).await.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        let CurrentDocument { program, root, sources } = self.document(&events, &place)?;
        let script = self.script.as_deref().map(read_script).transpose()?;
        let engine = host::engine(program.project.clone(), &root, Arc::clone(&journal), script);
        let watched = Watched::new(surface, self.output, self.deltas, &program);
        let mut finished =
            watched.drive(engine.resume(&program, &self.run, self.resume.clone(), watched.watch())).await;
        if self.interactive {
            finished = interactive::decide(surface, &watched, &engine, &program, finished).await;
        }
        let next = |run_id: &str| NextCommands {
            script: self.script.clone(),
            actions: self.actions.clone(),
            ..NextCommands::new(run_id, &place)
        };
        launched::wait(&watched, &engine, next, finished.is_none()).await;
        let finished = watched.drained(finished).await;
        match watched.finished(finished, next, &sources)? {
            Some(finished) => {
                let exit = conclude(surface, self.output, &program, &finished.state, &next(&self.run));
                self.on_pause.tell(surface, &watched.pause_seen, &program, &finished.state).await;
                exit
            }
            None => {
                host::leave_open(journal);
                Ok(Exit::Cancelled)
            }
        }
    }

    /// The run's document, as it is on the disk now; the recorded one if it came from stdin.
    fn document(&self, events: &[Event], place: &StorePlace) -> Result<CurrentDocument, CommandError> {
        let recorded = host::document(events);
        let file = match (&self.store.document, recorded) {
            (Some(given), _) => given.clone(),
            (None, Some(document)) if self.recorded_document || document.file == "-" => {
                let program = host::recorded(&self.run, events, place.project.clone())?;
                let root = place.home().unwrap_or_else(|| PathBuf::from("."));
                return Ok(CurrentDocument { sources: program.sources.clone(), program, root });
            }
            (None, Some(document)) => find(Path::new(&document.file), place)?,
            (None, None) => {
                return Err(CommandError::usage("the journal names no document; name it with --document FILE"));
            }
        };
        let loaded = host::load(&file, &self.actions)?;
        Ok(CurrentDocument { program: loaded.program, root: loaded.root, sources: loaded.sources })
    }
}

/// A run's document.
struct CurrentDocument {
    program: Arc<Program>,
    root: PathBuf,
    sources: Vec<Source>,
}

/// The document, relative to the current folder or to the folder of its store.
fn find(file: &Path, place: &StorePlace) -> Result<PathBuf, CommandError> {
    let beside = place.home().map(|home| home.join(file));
    let name = file.file_name().and_then(|name| Some(place.home()?.join(name)));
    [Some(file.to_owned()), beside, name].into_iter().flatten().find(|file| file.is_file()).ok_or_else(|| {
        CommandError::usage_help(
            format!("the run's document {} does not exist", file.display()),
            "name its new place: --document FILE",
        )
    })
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}; write a text as '\"text\"'"))
}

#[cfg(test)]
mod tests;
