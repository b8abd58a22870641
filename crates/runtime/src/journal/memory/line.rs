//! Lines of runs in memory.

use std::sync::{Arc, PoisonError};

use super::{MemoryJournal, RunTable, StoredRun};
use crate::journal::line::is_open;
use crate::journal::{LineRule, MOST_AHEAD, NewRunLine, PlaceInLine, RunAhead, RunSummary};
use loopctl_engine::outcome::Status;

impl RunTable {
    /// The open runs of a line, the first one first, each with its number.
    fn open(&self, line: &str) -> Vec<(u64, Arc<StoredRun>)> {
        let of_line = |run: &&Arc<StoredRun>| run.line.as_ref().is_some_and(|own| own.line == line);
        let open = self.in_order.iter().filter(of_line).filter_map(|run| {
            let data = run.data();
            let record = &data.status_record;
            is_open(record.status, record.termination).then(|| (data.place, Arc::clone(run)))
        });
        let mut open: Vec<_> = open.collect();
        open.sort_by_key(|(place, _)| *place);
        open
    }

    /// The number of the last run of a line.
    pub(super) fn last_place(&self, line: &str) -> u64 {
        self.open(line).last().map(|(place, _)| *place).unwrap_or_default()
    }

    /// The number of a run that joins a line.
    ///
    /// # Errors
    /// The first run of the line, when it is full and the new run does not wait.
    pub(super) fn join(&self, new: &NewRunLine) -> Result<u64, String> {
        let open = self.open(&new.line);
        let is_full = open.len() >= usize::try_from(new.limit).unwrap_or(usize::MAX);
        match open.first() {
            Some((_, first)) if is_full && new.rule == LineRule::Refuse => Err(first.run_id.to_string()),
            _ => Ok(open.last().map(|(place, _)| *place).unwrap_or_default() + 1),
        }
    }
}

impl MemoryJournal {
    /// Where a run is in its line.
    pub(super) fn line_of(&self, run: &StoredRun) -> PlaceInLine {
        let Some(line) = &run.line else { return PlaceInLine::default() };
        let place = {
            let data = run.data();
            let record = &data.status_record;
            if is_open(record.status, record.termination) { data.place } else { u64::MAX }
        };
        let open = self.table.read().unwrap_or_else(PoisonError::into_inner).open(&line.line);
        let ahead = open.into_iter().filter(|(other, _)| *other < place).take(MOST_AHEAD);
        let ahead = ahead.map(|(_, run)| {
            let data = run.data();
            RunAhead {
                run_id: run.run_id.to_string(),
                status: data.status_record.status,
                termination: data.status_record.termination,
                driven: data.driven,
            }
        });
        PlaceInLine { limit: line.limit, rule: line.rule, ahead: ahead.collect() }
    }

    /// Whether a run may be driven as far as its line is concerned.
    pub(super) fn may_be_driven(&self, run: &StoredRun) -> bool {
        let is_patient = run.line.as_ref().is_some_and(|line| line.rule != LineRule::Replace);
        !is_patient || self.line_of(run).has_place()
    }

    /// A run as lists show it, with the run that it waits for.
    pub(super) fn behind(&self, run: RunSummary) -> RunSummary {
        let waits = matches!(run.status, Status::Running | Status::Paused);
        let stored = self.table.read().unwrap_or_else(PoisonError::into_inner).by_id.get(run.run_id.as_str()).cloned();
        let line = stored.filter(|stored| waits && stored.line.is_some()).map(|stored| self.line_of(&stored));
        let first = line.filter(|line| !line.has_place()).and_then(|line| line.ahead.into_iter().next());
        RunSummary { behind: first.map(|first| first.run_id.into()), ..run }
    }
}
