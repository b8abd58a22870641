//! Looks at waiting runs when something is due in them, such as the expiry of an approval. Their drivers decide what
//! follows, as at every resumption.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{ActiveRun, QueuedRun, Scheduler};
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::{RunFilter, StoreFault};
use crate::serve::quotas::Owner;

/// The interval of the looks.
const LOOK: Duration = Duration::from_millis(500);

impl Scheduler {
    /// Looks for runs in which something is due, until the server stops.
    pub fn watch_due(self: &Arc<Self>) {
        let scheduler: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            // A run that can't be resumed stays due: it is tried less and less often.
            let mut tries: HashMap<String, u32> = HashMap::new();
            loop {
                tokio::time::sleep(LOOK).await;
                let Some(scheduler) = scheduler.upgrade().filter(|scheduler| !scheduler.is_draining()) else { return };
                if let Err(fault) = scheduler.queue_due(&mut tries).await {
                    tracing::error!(code = fault.code(), "runs that are due can't be listed: {fault}");
                }
            }
        });
    }

    /// Queues the runs in which something is due.
    async fn queue_due(self: &Arc<Self>, tries: &mut HashMap<String, u32>) -> Result<(), StoreFault> {
        let filter = RunFilter { status: Some(Status::Paused), due_ms: Some(clock::wall_ms()), ..RunFilter::default() };
        let due = self.runs.journal.list(filter).await?;
        tries.retain(|run_id, _| due.iter().any(|run| run.run_id == *run_id));
        for run in due.into_iter().rev().filter(|run| !run.driven) {
            let tried = tries.entry(run.run_id.clone()).or_default();
            *tried = tried.saturating_add(1);
            if !tried.is_power_of_two() {
                continue;
            }
            let mut schedule = self.schedule();
            if schedule.active.contains_key(&run.run_id) {
                continue;
            }
            schedule.active.insert(run.run_id.clone(), ActiveRun::new());
            // The store knows the organisation of the run, but not the token that started it.
            let owner = Owner { org: run.org, token: None };
            schedule.queue.push(&owner, QueuedRun { run_id: run.run_id, _permit: None });
        }
        self.start_queued();
        Ok(())
    }
}
