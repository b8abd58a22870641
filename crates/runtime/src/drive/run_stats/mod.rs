//! Reports over many runs: what their rows say, and what the journals of the newest say. The number of rows and of events that
//! are read is bounded, and the report says what it lacks.

mod journal_tally;
mod limit_uses;
mod tally;

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::tz::TimeZone;

pub use self::limit_uses::{LimitsQuery, limit_uses};
use self::tally::StatsTally;
use super::engine::Engine;
use super::fault::Fault;
use super::fold;
use crate::journal::{Journal, MeasuredRun, RunFilter, StoreError};
use loopctl_engine::digest::Sha256;
use loopctl_engine::event::Event;
use loopctl_engine::run_stats::{LeftOut, RunStats};
use loopctl_engine::timestamp::rfc3339;
use loopctl_lang::diagnostic::Source;
use loopctl_lang::program::Program;

/// The maximum number of runs of a report, the newest.
pub const MAX_STATS_RUNS: usize = 200_000;
/// The journals that are read at a time: a database answers what is asked at once in one round trip.
const READ_AT_A_TIME: usize = 16;
/// The maximum number of programs that are kept.
const MAX_PROGRAMS: usize = 64;

/// Which runs a report is of, and how much is read for it.
#[derive(Debug, Clone)]
pub struct StatsQuery {
    /// Which runs; sub-runs count with their callers.
    pub filter: RunFilter,
    /// The time zone of the days.
    pub zone: TimeZone,
    /// The maximum number of runs, the newest.
    pub most_runs: usize,
    /// The maximum number of journals that are read, those of the newest runs and of what they called.
    pub most_journals: usize,
    /// No further journal is read after this number of events.
    pub most_events: usize,
}

/// A run as its journal holds it.
pub struct ReadJournal {
    /// The program that it follows.
    pub program: Arc<Program>,
    /// Its events.
    pub events: Vec<Event>,
}

/// Reads the journals of runs.
pub trait JournalReader: Send + Sync {
    /// The events of a run. Several are read at once.
    ///
    /// # Errors
    /// When the journal can't be read.
    fn events(&self, run_id: &str) -> impl Future<Output = Result<Vec<Event>, Fault>> + Send;

    /// The program that a run of these events follows.
    ///
    /// # Errors
    /// When its documents can't be compiled.
    fn program(&mut self, run_id: &str, events: &[Event]) -> impl Future<Output = Result<Arc<Program>, Fault>> + Send;
}

/// Reads journals with the programs that they hold; the programs are kept.
pub struct RecordedJournals {
    engine: Engine,
    project: Option<Source>,
    programs: HashMap<(Vec<Sha256>, Option<String>), Arc<Program>>,
}

impl RecordedJournals {
    /// A reader; `project`: the project file of the store.
    pub fn new(engine: Engine, project: Option<Source>) -> Self {
        Self { engine, project, programs: HashMap::new() }
    }
}

impl JournalReader for RecordedJournals {
    async fn events(&self, run_id: &str) -> Result<Vec<Event>, Fault> {
        self.engine.events(run_id).await
    }

    async fn program(&mut self, run_id: &str, events: &[Event]) -> Result<Arc<Program>, Fault> {
        let documents = fold::documents(events).unwrap_or_default();
        let key = (documents.iter().map(|document| document.text.sha256()).collect(), fold::step_of(events));
        match self.programs.get(&key) {
            Some(known) => Ok(Arc::clone(known)),
            None => {
                let program = fold::recorded(&fold::texts(run_id, events, self.project.clone())?)?;
                if self.programs.len() >= MAX_PROGRAMS {
                    self.programs.clear();
                }
                self.programs.insert(key, Arc::clone(&program));
                Ok(program)
            }
        }
    }
}

/// The report, without spending limits: whose accounts are shown is its reader's matter.
///
/// # Errors
/// When the store fails. A journal that can't be read is counted.
pub async fn run_stats(
    journal: &dyn Journal,
    reader: &mut impl JournalReader,
    query: &StatsQuery,
) -> Result<RunStats, StoreError> {
    // One more shows that there are older ones.
    let rows = RunFilter { limit: query.most_runs.saturating_add(1), ..query.filter.clone() };
    let mut runs = journal.measured(rows).await?;
    let mut left_out = LeftOut { older_runs: runs.len() > query.most_runs, ..LeftOut::default() };
    runs.truncate(query.most_runs);
    let mut tally = StatsTally::new(query.zone.clone());
    runs.iter().for_each(|run| tally.count(run));
    read_journals(journal, reader, query, &runs, (&mut tally, &mut left_out)).await?;
    let mut report = tally.report(left_out);
    report.since = query.filter.since_ms.map(rfc3339);
    report.until = query.filter.until_ms.map(rfc3339);
    Ok(report)
}

/// A journal that is to be read.
struct PlannedJournal<'r> {
    /// The number of the run that it counts for, which is itself or the one above it.
    at: usize,
    root: &'r MeasuredRun,
    run_id: String,
    is_called: bool,
    /// Whether it is the last one of its root.
    is_last: bool,
}

/// The runs below a run.
struct CalledRuns {
    /// How many were listed.
    listed: usize,
    run_ids: Vec<String>,
}

/// Reads the journals of the newest runs, and of what they called.
async fn read_journals(
    journal: &dyn Journal,
    reader: &mut impl JournalReader,
    query: &StatsQuery,
    runs: &[MeasuredRun],
    counted: (&mut StatsTally, &mut LeftOut),
) -> Result<(), StoreError> {
    let (tally, left_out) = counted;
    let (mut journals, mut events, mut next, mut is_whole) = (query.most_journals, query.most_events, 0, true);
    let not_read = |at: usize| u64::try_from(runs.len().saturating_sub(at)).unwrap_or(u64::MAX);
    while let Some(roots) = runs.get(next..).filter(|left| !left.is_empty()) {
        let roots = roots.get(..READ_AT_A_TIME).unwrap_or(roots);
        let planned = planned(journal, roots, next, &mut journals).await?;
        for some in planned.chunks(READ_AT_A_TIME) {
            let read = join_all(some.iter().map(|one| reader.events(&one.run_id))).await;
            for (one, read) in some.iter().zip(read) {
                if !one.is_called && events == 0 {
                    left_out.journals = not_read(one.at);
                    return Ok(());
                }
                let read = match read {
                    Ok(read) => reader.program(&one.run_id, &read).await.ok().map(|program| (program, read)),
                    Err(_) => None,
                };
                let taken = read.map(|(program, read)| {
                    events = events.saturating_sub(read.len());
                    tally.journal(one.root, ReadJournal { program, events: read }, one.is_called)
                });
                is_whole &= matches!(taken, Some(Ok(())));
                if one.is_last {
                    left_out.unreadable += u64::from(!std::mem::replace(&mut is_whole, true));
                    tally.has_read(one.root);
                }
                // A long fold must not keep the thread from others.
                tokio::task::yield_now().await;
            }
        }
        let done = planned.iter().filter(|one| one.is_last).count();
        next += done;
        if done < roots.len() {
            left_out.journals = not_read(next);
            return Ok(());
        }
    }
    Ok(())
}

/// The journals of these runs and of those below them, as far as there is room for all of a run. `first`: the number of the first
/// run; `journals`: how many may still be read.
async fn planned<'r>(
    journal: &dyn Journal,
    roots: &'r [MeasuredRun],
    first: usize,
    journals: &mut usize,
) -> Result<Vec<PlannedJournal<'r>>, StoreError> {
    let mut planned = Vec::new();
    if *journals == 0 {
        return Ok(planned);
    }
    let below = join_all(roots.iter().map(|root| called(journal, root, *journals))).await;
    for (at, (root, below)) in roots.iter().zip(below).enumerate() {
        let CalledRuns { listed, run_ids } = below?;
        // The run itself takes a place too.
        if *journals == 0 || listed >= *journals && listed > 0 {
            break;
        }
        *journals = journals.saturating_sub(run_ids.len() + 1);
        let last = run_ids.len();
        let all = std::iter::once((root.run_id.clone(), false)).chain(run_ids.into_iter().map(|run_id| (run_id, true)));
        planned.extend(all.enumerate().map(|(number, (run_id, is_called))| PlannedJournal {
            at: first + at,
            root,
            run_id,
            is_called,
            is_last: number == last,
        }));
    }
    Ok(planned)
}

/// The runs that a run called, and those that they called, up to this number.
async fn called(journal: &dyn Journal, root: &MeasuredRun, room: usize) -> Result<CalledRuns, StoreError> {
    // Most runs call none, and a count takes less than a list.
    if journal.called_under(&root.run_id).await? == 0 {
        return Ok(CalledRuns { listed: 0, run_ids: Vec::new() });
    }
    let below =
        RunFilter { called: true, id_prefix: Some(format!("{}.", root.run_id)), limit: room, ..RunFilter::default() };
    let runs = journal.list(below).await?;
    let listed = runs.len();
    let below = runs.into_iter().filter(|run| run.parent_run_id.is_some()).map(|run| run.run_id);
    Ok(CalledRuns { listed, run_ids: below.collect() })
}
