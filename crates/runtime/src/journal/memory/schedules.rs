//! The schedules of a store in memory.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::MemoryJournal;
use crate::journal::schedules::CLOCK_TOLERANCE_MS;
use crate::journal::{ScheduleRuns, ScheduledRun, ServedSchedule, ServedSchedules, UnderWay};
use loopctl_engine::outcome::Status;

/// The schedules that were served, and the runs that they started.
#[derive(Debug, Default)]
pub(super) struct KnownSchedules {
    /// By the names of the workflows.
    served: BTreeMap<String, KnownSchedule>,
    /// By the ids of the runs.
    runs: BTreeMap<String, KnownRun>,
}

#[derive(Debug)]
struct KnownSchedule {
    place: String,
    timetable: String,
    seen_at_ms: i64,
}

#[derive(Debug)]
struct KnownRun {
    scheduled: ScheduledRun,
    /// Whether it was started by a clock that was ahead.
    is_ahead: bool,
}

impl KnownSchedules {
    pub(super) fn started(&mut self, run_id: &str, scheduled: ScheduledRun) {
        self.runs.insert(run_id.to_owned(), KnownRun { scheduled, is_ahead: false });
    }

    /// For which time a run was started.
    pub(super) fn of(&self, run_id: &str) -> Option<ScheduledRun> {
        self.runs.get(run_id).map(|run| run.scheduled.clone())
    }

    pub(super) fn serve(&mut self, served: &ServedSchedules) -> Vec<i64> {
        let is_served = |name: &str| served.timetables.iter().any(|schedule| schedule.name == name);
        self.served.retain(|name, known| known.place != served.place || is_served(name));
        let seen = |ServedSchedule { name, timetable }: &ServedSchedule| {
            let before = self.served.get(name).filter(|known| known.timetable == *timetable);
            let seen_at_ms = before.map(|known| known.seen_at_ms).filter(|seen| *seen <= served.latest_seen_ms());
            let seen_at_ms = seen_at_ms.unwrap_or(served.now_ms);
            let known = KnownSchedule { place: served.place.clone(), timetable: timetable.clone(), seen_at_ms };
            self.served.insert(name.clone(), known);
            seen_at_ms
        };
        served.timetables.iter().map(seen).collect()
    }

    pub(super) fn disregard_ahead(&mut self, schedule: &str, now_ms: i64) {
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        for run in self.runs.values_mut().filter(|run| run.scheduled.schedule == schedule) {
            run.is_ahead |= run.scheduled.due_at_ms > latest_ms;
        }
    }

    /// Forgets runs that were deleted; the last one of each schedule stays.
    pub(super) fn pruned(&mut self, gone: &HashSet<Arc<str>>) {
        let mut last: BTreeMap<String, i64> = BTreeMap::new();
        for KnownRun { scheduled, .. } in self.runs.values().filter(|run| !run.is_ahead) {
            let last = last.entry(scheduled.schedule.clone()).or_insert(i64::MIN);
            *last = scheduled.due_at_ms.max(*last);
        }
        self.runs.retain(|run_id, run| {
            let is_last = last.get(&run.scheduled.schedule).is_none_or(|last| run.scheduled.due_at_ms >= *last);
            is_last || !gone.contains(run_id.as_str())
        });
    }
}

impl MemoryJournal {
    pub(super) fn schedules(&self) -> MutexGuard<'_, KnownSchedules> {
        self.schedules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn runs_of(&self, schedule: &str, now_ms: i64) -> ScheduleRuns {
        // In the order of who creates and deletes runs.
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let schedules = self.schedules();
        let of = || schedules.runs.iter().filter(|(_, run)| run.scheduled.schedule == schedule);
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let times = || of().filter(|(_, run)| !run.is_ahead).map(|(_, run)| run.scheduled.due_at_ms);
        let goes_on = |run_id: &String| {
            let status = table.by_id.get(run_id.as_str())?.data().status_record.status;
            let goes_on = matches!(status, Status::Running | Status::Paused);
            goes_on.then(|| UnderWay { run_id: run_id.clone(), status })
        };
        ScheduleRuns {
            last_due_ms: times().filter(|due| *due <= latest_ms).max(),
            ahead_due_ms: times().filter(|due| *due > latest_ms).max(),
            under_way: of().rev().find_map(|(run_id, _)| goes_on(run_id)),
        }
    }
}
