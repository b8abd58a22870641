//! Runs that processes may have died of: each is driven alone, so that the next death shows whether it is the cause. What
//! was only beside the cause continues then.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::{RunSchedule, Scheduler};
use crate::drive::clock;
use crate::drive::stop::Stop;
use crate::engine::outcome::Status;
use crate::journal::{ClaimedRun, StoreError};
use crate::serve::quotas::Owner;
use futures_util::FutureExt as _;

/// How long nothing is started beside such a run, and how long it waits until everything else has left: others wait
/// meanwhile.
const TRIAL_TIME: Duration = Duration::from_secs(60);

/// The runs that may be what processes died of.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Those that wait until nothing else is driven here, and since when.
    waiting: BTreeMap<String, Instant>,
    /// The one that is driven alone.
    alone: Option<String>,
}

impl Suspects {
    /// Whether there are any now.
    pub(super) fn is_any(&self) -> bool {
        self.alone.is_some() || self.wait()
    }

    /// Whether one waits.
    pub(super) fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }
}

impl RunSchedule {
    /// Nothing is started while a run is driven alone, or waits for that.
    fn keep_slots(&mut self) {
        let is_kept = self.suspects.is_any();
        self.slots.keep(is_kept);
    }

    /// A run is not driven here any more.
    pub(super) fn is_left(&mut self, run_id: &str) {
        if self.suspects.alone.as_deref() == Some(run_id) {
            self.suspects.alone = None;
            self.keep_slots();
        }
    }
}

impl Scheduler {
    /// The stop of the runs that are driven here from now on.
    pub(super) fn stop(&self) -> Stop {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks all runs that are driven here to leave after their step.
    pub(super) fn ask_all_to_leave(&self) {
        self.stop().leave();
    }

    /// Whether a run is driven alone, or waits for that.
    pub(super) fn has_suspects(&self) -> bool {
        self.schedule().suspects.is_any()
    }

    /// Whether this run is driven alone.
    pub(super) fn is_alone(&self, run_id: &str) -> bool {
        self.schedule().suspects.alone.as_deref() == Some(run_id)
    }

    /// Whether a run that was just claimed, and may be what processes died of, is driven now: if nothing else is driven
    /// here. Otherwise it waits, and everything else leaves after its step.
    pub(super) fn may_drive_alone(self: &Arc<Self>, run_id: &str) -> bool {
        let mut schedule = self.schedule();
        let is_first = schedule.suspects.alone.is_none() && schedule.slots.driven() <= 1;
        if schedule.suspects.alone.as_deref() == Some(run_id) || is_first {
            schedule.suspects.waiting.remove(run_id);
            schedule.suspects.alone = Some(run_id.to_owned());
            schedule.keep_slots();
            drop(schedule);
            self.let_others_in_later(run_id);
            tracing::warn!(run_id, "processes died while this run was under way: it is driven alone at first");
            return true;
        }
        schedule.suspects.waiting.insert(run_id.to_owned(), clock::instant());
        schedule.keep_slots();
        drop(schedule);
        let before = std::mem::take(&mut *self.stop.lock().unwrap_or_else(PoisonError::into_inner));
        if self.is_draining() {
            // Those that are started by now leave too.
            self.ask_all_to_leave();
        }
        before.leave();
        false
    }

    /// Something came of what the run did, or it took its time: others are driven beside it.
    pub(super) fn let_others_in(self: &Arc<Self>, run_id: &str) {
        let mut schedule = self.schedule();
        if schedule.suspects.alone.as_deref() == Some(run_id) {
            schedule.is_left(run_id);
            drop(schedule);
            self.look();
        }
    }

    fn let_others_in_later(self: &Arc<Self>, run_id: &str) {
        let (scheduler, run_id) = (Arc::downgrade(self), run_id.to_owned());
        tokio::spawn(
            async move {
                tokio::time::sleep(TRIAL_TIME).await;
                if let Some(scheduler) = scheduler.upgrade() {
                    scheduler.let_others_in(&run_id);
                }
            }
            .boxed(),
        );
    }

    /// Drives the next of these runs, if nothing is driven here. Those that waited too long for that wait elsewhere, so
    /// that others can be started.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn drive_next_alone(self: &Arc<Self>) -> Result<(), StoreError> {
        let Some(run_id) = self.next_alone() else { return Ok(()) };
        let taken = self.take_alone(&run_id).await;
        if !matches!(taken, Ok(true)) {
            self.schedule().is_left(&run_id);
            self.look();
        }
        taken.map(drop)
    }

    /// The next of these runs, when nothing is driven here.
    fn next_alone(&self) -> Option<String> {
        let mut schedule = self.schedule();
        if schedule.suspects.alone.is_some() {
            return None;
        }
        if schedule.slots.driven() > 0 {
            let is_over = |since: &Instant| clock::elapsed(*since) >= TRIAL_TIME;
            if schedule.suspects.waiting.values().any(is_over) {
                for run_id in std::mem::take(&mut schedule.suspects.waiting).into_keys() {
                    schedule.backoffs.rest(&run_id);
                }
                schedule.keep_slots();
            }
            return None;
        }
        let (run_id, _) = schedule.suspects.waiting.pop_first()?;
        schedule.suspects.alone = Some(run_id.clone());
        schedule.keep_slots();
        Some(run_id)
    }

    /// Leases and drives a run; returns whether it is driven here.
    async fn take_alone(self: &Arc<Self>, run_id: &str) -> Result<bool, StoreError> {
        let Some(run) = self.runs.journal.find(run_id).await?.filter(|run| run.status == Status::Running) else {
            return Ok(false);
        };
        let lease = match self.runs.journal.lease(run_id).await {
            Ok(lease) => lease,
            // Another server was faster.
            Err(StoreError::Driven(_) | StoreError::NoSuchRun(_)) => return Ok(false),
            Err(fault) => return Err(fault),
        };
        let owner = Owner { org: run.org, token: run.token.map(String::from) };
        let Some(slot) = self.schedule().slots.take_decided(&owner) else {
            self.runs.journal.release(run_id, lease.fence).await?;
            return Ok(false);
        };
        let Owner { org, token } = owner;
        self.take_claimed(ClaimedRun { run_id: run_id.to_owned(), lease: Ok(lease), org, token }, slot);
        Ok(true)
    }
}
