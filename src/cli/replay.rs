//! `loopctl replay`.

pub(super) mod run_verdict;
mod survey;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::failure::CommandError;
use super::output::ListOutput;
use super::recorded_run::reader;
use super::store::StoreArgs;
use super::surface::Surface;
use crate::drive::engine::Engine;
use crate::program::Program;
use crate::project::load::load;
use crate::replay::verdict::{ReplayKind, ReplayVerdict};

/// Replay a run from its journal, or against an edited document. Nothing is asked or called
///
/// Without --document, the run is folded again and must come out byte for byte. With it, the recorded replies and results
/// are played by position against the document, up to the first decision that differs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  loopctl replay triage-7k2m9q4x
  loopctl replay last --document triage.json
  loopctl replay --all --loop triage --document triage.json --fail-on refused-now,ends-earlier")]
pub struct ReplayCommand {
    /// The run: its id, the beginning of its id, `last` or `last:LOOP`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub run: Option<String>,
    /// The document to play the run against, in place of the recorded one
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
    /// A file of registered actions, in addition to the files found automatically; repeatable
    #[arg(long, value_name = "FILE", requires = "document")]
    pub actions: Vec<PathBuf>,
    /// Replay the runs of the store, newest first, and count what comes of them
    #[arg(long)]
    pub all: bool,
    /// With --all: only runs of this loop
    #[arg(long = "loop", value_name = "NAME", requires = "all")]
    pub loop_name: Option<String>,
    /// With --all: the maximum number of runs; 0 replays all
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "all")]
    pub limit: usize,
    /// Exit with code 1 when a run comes out like this; repeatable, or with commas between
    #[arg(long, value_name = "KIND", value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// The store of the runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: the project's, else .loopctl/runs.db
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value_t)]
    pub output: ListOutput,
}

/// What `--fail-on` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FailOn {
    /// The same calls, but the model is sent other texts
    OtherPrompt,
    /// A call that was made is not made, or waits for an approval
    RefusedNow,
    /// The run ends or stops where it continued
    EndsEarlier,
    /// The run asks for something that nobody recorded
    GoesOn,
    /// The run ends at the same place in another way
    OtherEnding,
    /// The run can't be replayed
    NotReplayed,
    /// Everything but `same` and `other-prompt`
    Different,
}

impl FailOn {
    fn is(self, outcome: &Replay) -> bool {
        let Ok(verdict) = outcome else { return matches!(self, Self::NotReplayed | Self::Different) };
        let kind = verdict.kind;
        match self {
            Self::OtherPrompt => kind == ReplayKind::OtherPrompt,
            Self::RefusedNow => kind == ReplayKind::RefusedNow,
            Self::EndsEarlier => kind == ReplayKind::EndsEarlier,
            Self::GoesOn => kind == ReplayKind::GoesOn,
            Self::OtherEnding => kind == ReplayKind::OtherEnding,
            Self::NotReplayed => false,
            Self::Different => !matches!(kind, ReplayKind::Same | ReplayKind::OtherPrompt),
        }
    }
}

/// What came of a run, or why it can't be replayed.
type Replay = Result<ReplayVerdict, String>;

impl ReplayCommand {
    /// Replays.
    ///
    /// # Errors
    /// When a run or the document can't be read.
    pub async fn perform(self, surface: &Surface) -> Result<Exit, CommandError> {
        // The store is that of this folder; or, if there is none, the one beside the document.
        let here = StoreArgs { store: self.store.clone(), document: None };
        let store = match self.store.is_some() || here.place()?.exists() {
            true => here,
            false => StoreArgs { document: self.document.clone(), ..here },
        };
        let (journal, place) = store.open()?;
        let against = match &self.document {
            Some(file) => Some(load(file, &self.actions)?.program),
            None => None,
        };
        let reader = Reader { engine: reader(journal), place, against };
        match &self.run {
            Some(run) => run_verdict::perform(&self, reader, run, surface).await,
            None => survey::perform(&self, reader, surface).await,
        }
    }

    fn exit(&self, outcomes: &[Replay]) -> Exit {
        let fails = outcomes.iter().any(|outcome| self.fail_on.iter().any(|on| on.is(outcome)));
        if fails { Exit::Failed } else { Exit::Completed }
    }
}

/// What runs are read with.
struct Reader {
    engine: Engine,
    place: super::store::StorePlace,
    /// The edited document.
    against: Option<Arc<Program>>,
}
