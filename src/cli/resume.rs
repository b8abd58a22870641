//! `loopctl resume`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::failure::CommandError;
use super::host::{self, Resume};
use super::interactive;
use super::next::NextCommands;
use super::output::{Output, conclude};
use super::run::Watched;
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use super::what::read_script;
use crate::diagnostic::Source;
use crate::engine::event::{CallId, Decided, Event};
use crate::engine::written_decision::{DecisionSyntax, WrittenDecision};
use crate::program::Program;

/// Who decides at a terminal: the user of this machine, as the record names them.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment of its user")]
pub fn local_user() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(variable);
    user.map(|name| name.chars().take(64).collect())
}

/// Resume a run that waits for a human or was interrupted
///
/// Finished steps are not repeated. Without a decision, a run that was interrupted, or whose model could not be
/// reached, resumes where it stopped, and a waiting run is shown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl resume agent-0192 --answer \"Take the second account\"
  loopctl resume agent-0192 --approve --if 3f9c2a71d0b4e865
  loopctl resume agent-0192 --deny --reason \"too much\"")]
pub struct ResumeCommand {
    /// The run's id
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
    /// Retry the call of unknown outcome, or ask the model again that could not be reached
    #[arg(long)]
    pub retry: bool,
    /// The waiting call to decide, if there are several
    #[arg(long, value_name = "ITERATION.INDEX")]
    pub call: Option<CallId>,
    /// The hash of the call as it was shown; refuse the decision if a different call waits now
    #[arg(long = "if", value_name = "HASH")]
    pub hash: Option<String>,
    /// A comment to record with the decision; the model does not read it
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// The number of the pause to decide, from 1; refuse the decision if the run has another pause now
    #[arg(long, value_name = "N")]
    pub pause: Option<u32>,
    /// Resume with the current document, although it has changed since the run started
    #[arg(long)]
    pub new_document: bool,
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
    /// Ask in the terminal when the run waits for a human
    #[arg(long)]
    pub interactive: bool,
}

impl ResumeCommand {
    /// Resumes the run.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        if self.interactive {
            interactive::needs_terminal(surface)?;
        }
        let decided = self.decided()?;
        let (journal, place) = self.store.open()?;
        let reader = host::engine(Arc::default(), Path::new("."), Arc::clone(&journal), None);
        let events =
            reader.events(&self.run).await.map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        let CurrentDocument { program, root, sources } = self.document(&events, &place)?;
        let script = self.script.as_deref().map(read_script).transpose()?;
        let engine = host::engine(program.project.clone(), &root, Arc::clone(&journal), script);
        let watched = Watched::new(surface, self.output, &program);
        let resume = Resume { decided, new_document: self.new_document };
        let mut finished = watched.drive(engine.resume(&program, &self.run, resume, watched.watch())).await;
        if self.interactive {
            finished = interactive::decide(surface, &watched, &engine, &program, finished).await;
        }
        let finished = watched.drained(finished).await;
        let next = |run_id: &str| NextCommands {
            script: self.script.clone(),
            actions: self.actions.clone(),
            ..NextCommands::new(run_id, &place)
        };
        match watched.finished(finished, next, &sources)? {
            Some(finished) => conclude(surface, self.output, &program, &finished.state, &next(&self.run)),
            None => {
                host::leave_open(journal);
                Ok(Exit::Cancelled)
            }
        }
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
            retry: self.retry,
            resume: false,
            pause: self.pause,
            call: self.call,
            hash: self.hash.clone(),
            comment: self.comment.clone(),
            by: local_user(),
        };
        written.read(DecisionSyntax::Flags).map_err(CommandError::usage)
    }

    /// The run's document, as it is on the disk now; the recorded one if it came from stdin.
    fn document(&self, events: &[Event], place: &StorePlace) -> Result<CurrentDocument, CommandError> {
        let recorded = host::document(events);
        let file = match (&self.store.document, recorded) {
            (Some(given), _) => given.clone(),
            (None, Some(document)) if document.file == "-" => {
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
