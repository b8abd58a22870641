//! Events that no run took yet: a run that begins to wait looks at them.

use std::collections::BTreeSet;

use super::clock;
use super::fault::Fault;
use super::outside_events::{QueuedEvent, awaited, has_taken, queue, unmark};
use super::run::Driver;
use crate::journal::outside_event::KEPT_PAGE_EVENTS;
use crate::journal::{AwaitedEvent, KeptEvent, KeptQuery, Queueing, SettledDecision};
use loopctl_engine::effect::{Effect, Effects};

impl Driver<'_> {
    /// Takes the events that came before steps began to wait for them. None: there was none.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_kept_events(&mut self) -> Result<Option<Effects>, Fault> {
        // What steps of a called run wait for, its caller looks for.
        if self.state.header.caller.is_some() {
            return Ok(None);
        }
        let key = |step: &AwaitedEvent| format!("{} {:?}", step.at, step.hash);
        let mut new = awaited(&self.state);
        new.retain(|step| !self.looked_for.contains(&key(step)));
        if new.is_empty() {
            return Ok(None);
        }
        let names: BTreeSet<String> = new.iter().map(|step| step.takes.event.clone()).collect();
        let mut query = KeptQuery { names: names.into_iter().collect(), now_ms: clock::wall_ms(), after: 0 };
        let mut claimed = Vec::new();
        loop {
            let page = self.world.journal.kept_events(&self.lease.run_id, query.clone()).await.map_err(Fault::Cut)?;
            self.looked_for.extend(new.iter().map(key));
            let is_last = page.len() < KEPT_PAGE_EVENTS;
            for KeptEvent { number, event } in page {
                query.after = number;
                let data = event.value();
                let fits = |step: &&AwaitedEvent| step.fits(&event.event, &data, event.at_ms);
                let Some(step) = new.iter().find(fits).filter(|_| !has_taken(&self.state, &event.id)) else { continue };
                if self.claims(QueuedEvent { step, event: &event }).await? {
                    let at = step.at.clone();
                    new.retain(|step| step.at != at);
                    claimed.push(event.id);
                }
            }
            if is_last || new.is_empty() {
                break;
            }
        }
        if claimed.is_empty() {
            return Ok(None);
        }
        let next = self.take_queued().await?;
        claimed.retain(|id| !has_taken(&self.state, id));
        for id in claimed {
            unmark(&*self.world.journal, &self.lease.run_id, Some(id)).await.map_err(Fault::Cut)?;
        }
        Ok(Some(next.into_iter().map(Effect::RunStep).collect()))
    }

    /// Gives a kept event to a step of the run, unless another run has it. It is in the queue before it is marked: a crash loses
    /// nothing.
    async fn claims(&self, queued: QueuedEvent<'_>) -> Result<bool, Fault> {
        let (journal, run_id) = (&*self.world.journal, self.lease.run_id.as_str());
        let queueing = queue(journal, run_id, &queued.step.at, queued).await.map_err(Fault::Cut)?;
        if queueing != Queueing::Queued {
            return Ok(false);
        }
        if journal.mark_event(run_id, &queued.event.id, true).await.map_err(Fault::Cut)? {
            return Ok(true);
        }
        // The run is looked at when it was to be, and not at once.
        self.refuse_own(&queued.id(), "another run has the event".to_owned()).await?;
        journal.settle_decision(run_id, &queued.id(), SettledDecision::Read).await.map_err(Fault::Cut)?;
        Ok(false)
    }
}
