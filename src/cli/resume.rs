//! `loopctl resume`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::limits::LimitArgs;
use super::process::{acting_user, local_user};
use super::recorded_run;
use super::recorded_run::{reader, recorded};
use super::run_document::ScriptArgs;
use super::run_drive::{self, CurrentDocument, DriveAction, RunToDrive};
use super::store::{StoreArgs, StorePlace};
use super::surface::Surface;
use super::watch::WatchArgs;
use crate::drive::engine::{Resume, Watch};
use crate::drive::fold;
use crate::drive::read_files;
use crate::engine::decision::written_decision::{DecisionSyntax, WrittenDecision};
use crate::engine::event::{Decided, DecisionRights, Event, Retried};
use crate::engine::outcome::Status;
use crate::journal::Journal;
use crate::project::load::load;
use crate::trace::Tone;

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
    #[command(flatten)]
    pub decision: WrittenDecision,
    /// Run the failed steps and items of a workflow again; what completed is not repeated
    #[arg(long, conflicts_with_all = ["answer", "approve", "deny", "edit", "happened", "fail", "retry"])]
    pub retry_failed: bool,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub resumable: ResumableArgs,
}

impl ResumeCommand {
    /// Resumes the run.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        let resume = Resume {
            decided: self.decided()?,
            raised: self.limits.raised(),
            retried: self.retry_failed.then(|| Retried::by(acting_user())),
            ..Resume::default()
        };
        self.resumable.perform(&self.run, resume, surface).await
    }

    /// The decision; none when the run is only resumed.
    fn decided(&self) -> Result<Option<Decided>, CommandError> {
        let written = self.decision.clone().read(DecisionSyntax::Flags, local_user(), DecisionRights::All);
        written.map_err(CommandError::usage)
    }
}

/// Which document a run that is resumed continues with: shared by `resume` and `retry`.
#[derive(Debug, Args)]
pub struct ResumableArgs {
    /// Continue with the current document, although it has changed since the run started
    #[arg(long)]
    pub new_document: bool,
    /// Continue with the document as the run recorded it, although the file has changed since
    #[arg(long, conflicts_with = "new_document")]
    pub recorded_document: bool,
    /// Continue although the steps of `on_failure` have run: what they took back is not done again
    #[arg(long)]
    pub after_on_failure: bool,
    #[command(flatten)]
    pub files: ScriptArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    #[command(flatten)]
    pub watch: WatchArgs,
}

impl ResumableArgs {
    /// Drives the run until it ends or waits for a human.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn perform(self, run: &str, resume: Resume, surface: &Surface) -> Result<Exit, CommandError> {
        self.watch.judge(surface)?;
        let (journal, place) = self.store.open()?;
        let run = recorded_run::resolve(&*journal, run, &place.shown()).await?;
        if resume.decided.is_some() || resume.retried.is_some() {
            refuse_quarantined(&*journal, &run).await?;
        }
        let events = reader(Arc::clone(&journal))
            .events(&run)
            .await
            .map_err(|fault| CommandError::from(fault).in_store(&place.shown()))?;
        let document = self.document(&run, &events, &place)?;
        if resume.retried.is_some() || self.new_document {
            for file in read_files::changed(&document.root, &document.program, &events) {
                let message = format!(
                    "{file} has changed since the run began; it keeps the values that it read (`loopctl rerun` starts a run that reads the file)"
                );
                surface.say(&surface.line(Tone::Warn, "warning", &message));
            }
        }
        let script = self.files.read()?;
        let action = DriveAction::Resume(run, Box::new(self.given(resume)));
        let (files, watch) = (self.files, self.watch);
        RunToDrive { document, place, journal, action, script, files, watch }.perform(surface).await
    }

    /// A resumption with what the flags say.
    fn given(&self, resume: Resume) -> Resume {
        Resume { new_document: self.new_document, after_on_failure: self.after_on_failure, ..resume }
    }

    /// Resumes a run of a store until it ends or waits for a human, and shows nothing of it.
    ///
    /// # Errors
    /// When the run can't be resumed, or the store failed.
    pub async fn resume_one(
        &self,
        run: &str,
        resume: Resume,
        journal: &Arc<dyn Journal>,
        place: &StorePlace,
    ) -> Result<Status, CommandError> {
        let events = reader(Arc::clone(journal)).events(run).await?;
        let CurrentDocument { program, root, .. } = self.document(run, &events, place)?;
        let engine =
            run_drive::engine(program.project.clone(), &root, Arc::clone(journal), self.files.read()?, None, None);
        let resume = self.given(resume);
        let finished = engine.resume(&program, run, resume, Watch::default()).await?;
        Ok(finished.status())
    }

    /// The run's document, as it is on the disk now; the recorded one if it came from stdin.
    fn document(&self, run: &str, events: &[Event], place: &StorePlace) -> Result<CurrentDocument, CommandError> {
        let first = fold::documents(events).and_then(<[_]>::first);
        let file = match (&self.store.document, first) {
            (Some(given), _) => given.clone(),
            (None, Some(document)) if self.recorded_document || document.file == "-" => {
                let program = recorded(run, events, place.project.clone())?;
                return Ok(CurrentDocument::recorded(program, place));
            }
            (None, Some(document)) => find(Path::new(&document.file), place)?,
            (None, None) => {
                return Err(CommandError::usage("the journal names no document; name it with --document FILE"));
            }
        };
        Ok(load(&file, &self.files.actions)?.into())
    }
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

/// A quarantined run neither waits nor has failed: what its process died of would be executed before any decision is taken.
async fn refuse_quarantined(journal: &dyn Journal, run: &str) -> Result<(), CommandError> {
    let row = journal.find(run).await.map_err(CommandError::Store)?;
    if row.is_none_or(|row| row.status != Status::Quarantined) {
        return Ok(());
    }
    Err(CommandError::usage_help(
        format!("run {run} is quarantined: its process died again and again while it was executed"),
        format!(
            "find out why; then `loopctl resume {run}` continues it where it was, and a decision may come after it"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::Value;

    use super::*;
    use crate::engine::event::{CallId, Decision};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        resume: ResumeCommand,
    }

    fn parse(line: &str) -> Result<Option<Decided>, String> {
        let line = Line::try_parse_from(format!("resume run-1 {line}").split_whitespace());
        line.map_err(|error| error.to_string())?.resume.decided().map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn each_flag_is_its_decision() {
        let decision = |line: &str| parse(line).unwrap().map(|decided| decided.decision);
        assert_eq!(decision(""), None);
        assert_eq!(decision("--answer yes"), Some(Decision::Answer("yes".to_owned())));
        assert_eq!(decision("--approve"), Some(Decision::Approve));
        assert_eq!(decision("--deny"), Some(Decision::Deny(None)));
        assert_eq!(decision("--deny --reason much"), Some(Decision::Deny(Some("much".to_owned()))));
        assert_eq!(decision("--edit {\"n\":1.0}").map(|d| format!("{d:?}").contains("1.0")), Some(true));
        assert_eq!(decision("--happened null"), Some(Decision::Happened(Value::Null)));
        assert_eq!(decision("--retry"), Some(Decision::Retry));
    }

    #[test]
    fn two_decisions_or_a_half_one_are_refused() {
        for line in [
            "--approve --deny",
            "--answer x --retry",
            "--reason x",
            "--call 2.0",
            "--pause 1",
            "--edit {",
            "--approve --call 2",
            "--approve --call x.y",
            "--approve --pause -1",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_decision_may_name_its_call_and_its_pause() {
        let decided = parse("--approve --call 2.1 --pause 3").unwrap().unwrap();
        assert_eq!((decided.call, decided.pause), (Some(CallId { iteration: 2, index: 1 }), Some(3)));
    }
}
