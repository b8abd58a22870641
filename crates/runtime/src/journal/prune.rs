//! Which runs are deleted, and what a copy of a run needs besides its events.

use super::{AnswerToken, Journal, NewRunLine, ScheduledRun, StoreError};
use loopctl_engine::outcome::Status;

/// Which runs are to be deleted: of those that no other run called, those that ended before a moment, with all runs
/// that they called. A run stays while one that it called is under way or waits, while a driver has it, and while its
/// callback is still to be made. An imported run that has not ended is deleted as one that was cancelled: nobody continues it. For which time a schedule last started a run is kept. A run that a signal stopped has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneQuery {
    /// The moment, in milliseconds since 1970.
    pub before_ms: i64,
    /// How they ended: `Completed`, `Failed`, `Cancelled`. Other words mean nothing here.
    pub statuses: Vec<Status>,
    /// The maximum number, not counting those that they called. In a dry run, all are counted.
    pub most: usize,
    /// Whether they are only counted.
    pub dry_run: bool,
    /// Of which loops.
    pub loops: PrunedLoops,
    /// Those with these ids only; of any id where it is none.
    pub runs: Option<Vec<String>>,
}

/// The loops of which runs are deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrunedLoops {
    /// The loop of this name.
    Only(String),
    /// All but those of these names.
    AllBut(Vec<String>),
}

impl PrunedLoops {
    /// Whether the runs of a loop are deleted.
    pub fn has(&self, loop_name: &str) -> bool {
        match self {
            Self::Only(name) => name == loop_name,
            Self::AllBut(names) => !names.iter().any(|name| name == loop_name),
        }
    }

    /// The one name, and those that are left out: as the statements of databases take them.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn names(&self) -> (Option<&str>, &[String]) {
        match self {
            Self::Only(name) => (Some(name), &[]),
            Self::AllBut(names) => (None, names),
        }
    }
}

impl PruneQuery {
    /// All runs that ended before a moment, in these ways.
    pub fn all_before(before_ms: i64, statuses: Vec<Status>) -> Self {
        let loops = PrunedLoops::AllBut(Vec::new());
        Self { before_ms, statuses, most: usize::MAX, dry_run: false, loops, runs: None }
    }

    /// The runs of these ids, however and whenever they ended.
    pub fn of_runs(runs: Vec<String>) -> Self {
        let statuses = vec![Status::Completed, Status::Failed, Status::Cancelled];
        Self { runs: Some(runs), ..Self::all_before(i64::MAX, statuses) }
    }
}

/// What a copy of a run needs besides its events, its texts and its summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunExtras {
    /// The name of the token that started it.
    pub token: Option<String>,
    /// When it must be looked at although nobody asks for it, in milliseconds since 1970.
    pub due_at_ms: Option<i64>,
    /// Since when a step of it has waited for a human while it is under way, in milliseconds since 1970.
    pub waits_since_ms: Option<i64>,
    /// The tokens that answer its pauses.
    pub answer_tokens: Vec<AnswerToken>,
    /// The key of its start.
    pub start_key: Option<String>,
    /// For which time its schedule started it.
    pub scheduled: Option<ScheduledRun>,
    /// What a search finds it by.
    pub search_text: Option<String>,
    /// What it is about.
    pub title: Option<String>,
    /// The events that it waits for: see [`StatusRecord::awaits`](super::StatusRecord::awaits).
    pub awaits: Option<String>,
    /// The line that it is in.
    pub line: Option<NewRunLine>,
}

/// The number of runs that are deleted at a time: others write in between.
const BATCH_RUNS: usize = 100;

/// Deletes all runs that are meant, in batches; returns how many. Their space is given back to the system, as far as the store
/// can do that while it is in use.
///
/// # Errors
/// When the store fails.
pub async fn prune_all(journal: &dyn Journal, which: &PruneQuery) -> Result<u64, StoreError> {
    let mut all: u64 = 0;
    loop {
        match journal.prune(PruneQuery { most: BATCH_RUNS, ..which.clone() }).await? {
            0 => break,
            pruned => all = all.saturating_add(pruned),
        }
    }
    // Also after a call that was cut off.
    while journal.give_back_space().await? > 0 {}
    Ok(all)
}
