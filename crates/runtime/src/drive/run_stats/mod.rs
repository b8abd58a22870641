//! Reports over many runs: what their rows say, and what the journals of the newest say. The number of rows and of events that
//! are read is bounded, and the report says what it lacks.

mod journal_tally;
mod tally;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::sync::Arc;

use jiff::tz::TimeZone;

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
pub trait JournalReader: Send {
    /// A run as its journal holds it.
    ///
    /// # Errors
    /// When the journal can't be read.
    fn read(&mut self, run_id: &str) -> impl Future<Output = Result<ReadJournal, Fault>> + Send;
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
    async fn read(&mut self, run_id: &str) -> Result<ReadJournal, Fault> {
        let events = self.engine.events(run_id).await?;
        let documents = fold::documents(&events).unwrap_or_default();
        let key = (documents.iter().map(|document| document.text.sha256()).collect(), fold::step_of(&events));
        let program = match self.programs.get(&key) {
            Some(known) => Arc::clone(known),
            None => {
                let program = fold::recorded(&fold::texts(run_id, &events, self.project.clone())?)?;
                if self.programs.len() >= MAX_PROGRAMS {
                    self.programs.clear();
                }
                self.programs.insert(key, Arc::clone(&program));
                program
            }
        };
        Ok(ReadJournal { program, events })
    }
}

/// The report.
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

/// Reads the journals of the newest runs, and of what they called.
async fn read_journals(
    journal: &dyn Journal,
    reader: &mut impl JournalReader,
    query: &StatsQuery,
    runs: &[MeasuredRun],
    counted: (&mut StatsTally, &mut LeftOut),
) -> Result<(), StoreError> {
    let (tally, left_out) = counted;
    let (mut journals, mut events) = (query.most_journals, query.most_events);
    for (at, root) in runs.iter().enumerate() {
        let below = if journals == 0 || events == 0 { None } else { called(journal, root, journals).await? };
        let Some(below) = below else {
            left_out.journals = u64::try_from(runs.len() - at).unwrap_or(u64::MAX);
            return Ok(());
        };
        let mut is_whole = true;
        let mut all: VecDeque<(String, bool)> = below.into_iter().map(|run_id| (run_id, true)).collect();
        all.push_front((root.run_id.clone(), false));
        for (run_id, is_called) in all {
            journals = journals.saturating_sub(1);
            let read = reader.read(&run_id).await.ok();
            let taken = read.map(|read| {
                events = events.saturating_sub(read.events.len());
                tally.journal(root, read, is_called)
            });
            is_whole &= matches!(taken, Some(Ok(())));
            // A long fold must not keep the thread from others.
            tokio::task::yield_now().await;
        }
        left_out.unreadable += u64::from(!is_whole);
        tally.has_read(root);
    }
    Ok(())
}

/// The runs that a run called, and those that they called; none if they are more than there is room for.
async fn called(journal: &dyn Journal, root: &MeasuredRun, room: usize) -> Result<Option<Vec<String>>, StoreError> {
    let below =
        RunFilter { called: true, id_prefix: Some(format!("{}.", root.run_id)), limit: room, ..RunFilter::default() };
    let runs = journal.list(below).await?;
    // The run itself takes a place too.
    let is_too_much = runs.len() >= room && !runs.is_empty();
    let below = runs.into_iter().filter(|run| run.parent_run_id.is_some()).map(|run| run.run_id);
    Ok((!is_too_much).then(|| below.collect()))
}
