//! The queue in memory: the runs that nobody drives, and the callbacks that are due.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{MemoryJournal, StoredRun};
use crate::journal::{
    CALLBACK_LEASE, CallbackState, ClaimedRun, ModelWait, QueueQuery, QueueShare, QueuedRuns, RunHead,
};
use loopctl_engine::outcome::Status;

impl MemoryJournal {
    /// The time after this one, in milliseconds since 1970.
    pub(super) fn after(&self, time: Duration) -> i64 {
        let time_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.clock.wall_ms().saturating_add_unsigned(time_ms)
    }

    pub(super) fn heads_of(&self, run_ids: &[String]) -> Vec<RunHead> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let head = |run: &Arc<StoredRun>| {
            let data = run.data();
            RunHead {
                run_id: run.run_id.to_string(),
                events: data.next(),
                status: data.status_record.status,
                driven: data.driven,
            }
        };
        run_ids.iter().filter_map(|run_id| table.by_id.get(run_id.as_str())).map(head).collect()
    }

    /// The runs that wait for a driver, the oldest first.
    fn waiting(&self, waiting: &QueueQuery) -> Vec<Arc<StoredRun>> {
        let in_order = self.table.read().unwrap_or_else(PoisonError::into_inner).in_order.clone();
        let waits = |run: &Arc<StoredRun>| {
            run.waits(waiting.now_ms)
                && !waiting.except.iter().any(|except| **except == *run.run_id)
                && self.may_be_driven(run)
        };
        in_order.into_iter().filter(waits).collect()
    }

    pub(super) fn queued(&self, waiting: &QueueQuery) -> Vec<QueuedRuns> {
        let mut queue: Vec<QueuedRuns> = Vec::new();
        for run in self.waiting(waiting) {
            let since_ms = run.queued_since_ms();
            match queue.iter_mut().find(|of| of.org == run.org && of.token == run.token) {
                Some(of) => {
                    of.runs += 1;
                    of.since_ms = of.since_ms.min(since_ms);
                }
                None => queue.push(QueuedRuns { org: run.org.clone(), token: run.token.clone(), runs: 1, since_ms }),
            }
        }
        queue
    }

    pub(super) fn claimed(&self, waiting: &QueueQuery, shares: &[QueueShare]) -> Vec<ClaimedRun> {
        let runs = self.waiting(waiting);
        let mut claimed = Vec::new();
        for share in shares {
            let of_share = runs.iter().filter(|run| run.org == share.org && run.token == share.token);
            // Somebody else may lease one of them right now.
            let leased = of_share.filter_map(|run| Some((run, run.lease().ok()?))).take(share.runs);
            claimed.extend(leased.map(|(run, lease)| ClaimedRun {
                run_id: run.run_id.to_string(),
                org: run.org.clone(),
                token: run.token.clone(),
                lease: Ok(lease),
            }));
        }
        claimed
    }

    pub(super) fn due_callbacks(&self, most: usize) -> Vec<String> {
        let (now_ms, until_ms) = (self.clock.wall_ms(), self.after(CALLBACK_LEASE));
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        for run in table.in_order.iter().filter(|run| run.callback_url.is_some()) {
            let mut data = run.data();
            if due.len() < most
                && data.callback.state == CallbackState::Pending
                && data.status_record.status != Status::Running
                && data.callback_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
            {
                data.callback_at_ms = Some(until_ms);
                due.push(run.run_id.to_string());
            }
        }
        due
    }
}

impl StoredRun {
    /// Whether the run waits for a driver.
    fn waits(&self, now_ms: i64) -> bool {
        let data = self.data();
        let is_wanted = match data.status_record.status {
            Status::Running => true,
            Status::Paused => data.is_due(now_ms),
            _ => false,
        };
        is_wanted && !data.driven && self.parent_run_id.is_none()
    }

    /// Since when the run has waited for a driver, if it does.
    fn queued_since_ms(&self) -> i64 {
        let data = self.data();
        let since_ms = data.status_record.at_ms;
        data.due_at_ms()
            .filter(|_| data.status_record.status == Status::Paused)
            .map_or(since_ms, |due| due.max(since_ms))
    }

    pub(super) fn note_model_wait(&self, fence: u64, wait: Option<ModelWait>) {
        let mut data = self.data();
        if data.fence == fence && data.status_record.status == Status::Running {
            data.model_wait = wait.map(|wait| (fence, wait));
        }
    }

    pub(super) fn retry_at(&self, at_ms: i64) {
        let mut data = self.data();
        let record = &mut data.status_record;
        if record.waits_for_model() {
            record.due_at_ms = record.due_at_ms.into_iter().chain([at_ms]).min();
        }
    }
}
