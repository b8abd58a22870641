//! Runs that runs start without waiting for them: they wait in the store's queue like any other, and this server looks at
//! the queue at once.

use std::sync::{Arc, OnceLock, Weak};

use super::Scheduler;
use crate::drive::launcher::{LaunchedRun, Launcher};

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
    fn launch(&self, _: LaunchedRun) {
        // A server that stops leaves the run to the next one.
        if let Some(scheduler) = self.0.get().and_then(Weak::upgrade) {
            scheduler.look();
        }
    }
}
