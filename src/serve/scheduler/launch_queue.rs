//! Runs that runs start without waiting for them: they wait in the store's queue like any other, take a place among the runs of
//! their owner that wait, and this server looks at the queue at once.

use std::sync::{Arc, OnceLock, Weak};

use super::{ActiveRun, Admission, QueuedRun, Scheduler};
use crate::drive::launcher::{LaunchOwner, LaunchPlace, LaunchedRun, Launcher};
use crate::serve::quotas::Owner;

/// Lets the engines of the server reach the scheduler, which is made after them.
#[derive(Default)]
pub struct SchedulerLink(OnceLock<Weak<Scheduler>>);

impl SchedulerLink {
    /// The scheduler, once it is there.
    pub fn connect(&self, scheduler: &Arc<Scheduler>) {
        // There is one for the whole life of the server.
        drop(self.0.set(Arc::downgrade(scheduler)));
    }
}

impl Launcher for SchedulerLink {
    fn admit(self: Arc<Self>, owner: LaunchOwner) -> Result<Box<dyn LaunchPlace>, String> {
        let LaunchOwner { org, token } = owner;
        let owner = Owner { org, token };
        // A server that stops leaves the run to the next one.
        let scheduler = self.0.get().and_then(Weak::upgrade);
        let admission = scheduler.as_ref().map(|scheduler| scheduler.admit(owner)).transpose();
        let admission = admission.map_err(|problem| problem.detail)?.unwrap_or_default();
        Ok(Box::new(QueuePlace { scheduler: scheduler.as_ref().map(Arc::downgrade), admission }))
    }

    fn replaced(&self, run_id: &str) {
        if let Some(scheduler) = self.0.get().and_then(Weak::upgrade) {
            scheduler.forget(run_id);
            scheduler.callbacks.post_what_is_due(run_id);
        }
    }
}

/// The place of a run in the queue.
struct QueuePlace {
    scheduler: Option<Weak<Scheduler>>,
    admission: Admission,
}

impl LaunchPlace for QueuePlace {
    fn launch(self: Box<Self>, run: LaunchedRun) {
        let Self { scheduler, admission } = *self;
        if let Some(scheduler) = scheduler.and_then(|scheduler| scheduler.upgrade()) {
            scheduler.queue(&run.run_id, admission);
        }
    }
}

impl Scheduler {
    /// Keeps the place of a run that waits in the store's queue, until its driver here leaves it, or another server claims it.
    /// The start that launched it took one place: without this, it would bring about as many runs as it likes, one after the
    /// other, and the next start of its owner would not be refused.
    fn queue(self: &Arc<Self>, run_id: &str, admission: Admission) {
        let Admission { owner, permit } = admission;
        {
            let mut schedule = self.schedule();
            // It may be driven already: who claims runs looks several times a second.
            if !schedule.active.contains_key(run_id) {
                schedule.active.insert(run_id.to_owned(), ActiveRun::new(None));
                let queued = QueuedRun { owner, permit, is_launched: true, is_released: true };
                schedule.waiting.insert(run_id.to_owned(), queued);
            }
        }
        if self.is_draining() {
            self.forget(run_id);
        }
        self.look();
    }
}
