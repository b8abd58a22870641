//! Events that no run took yet: a run that begins to wait looks at them, and one that did not use its events passes them on.

use std::collections::BTreeSet;

use super::clock;
use super::fault::Fault;
use super::outside_events::{QueuedEvent, awaited, give, has_taken, has_taken_any, queue, unmark};
use super::passed_on::PassedOn;
use super::run::Driver;
use crate::journal::outside_event::KEPT_PAGE_EVENTS;
use crate::journal::{
    AwaitedEvent, EventWaiter, Journal, KeptEvent, KeptQuery, OutsideEvent, Queueing, SettledDecision, StoreError,
};
use loopctl_engine::effect::{Effect, Effects};
use loopctl_engine::state::Phase;
use loopctl_lang::policy::json_text;

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

    /// Passes on the events that are in the queue of a run which has ended.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn pass_on_unused(&self, has_waited: bool) -> Result<(), StoreError> {
        let has_ended = matches!(self.state.phase, Phase::Ended(_));
        if !has_ended || !(has_waited || !self.looked_for.is_empty() || has_taken_any(&self.state)) {
            return Ok(());
        }
        pass_on_queued(&*self.world.journal, &self.lease.run_id).await
    }
}

/// Passes on the events in the queue of a run that has ended.
///
/// # Errors
/// When the store fails.
pub(super) async fn pass_on_queued(journal: &dyn Journal, run_id: &str) -> Result<(), StoreError> {
    let queued = journal.queued_decisions(run_id).await?;
    let name = |decision: &str| json_text::read::<PassedOn>(decision).ok()?.event;
    pass_on(journal, run_id, queued.iter().filter_map(|queued| name(&queued.decision)).collect()).await
}

/// Gives kept events of these names, of the organisation of a run that did not use them, to runs that wait for them already: each
/// event to one run, as one that begins to wait gets it. Without it, they would wait until somebody resumes them.
///
/// # Errors
/// When the store fails.
pub(super) async fn pass_on(journal: &dyn Journal, run_id: &str, names: BTreeSet<String>) -> Result<(), StoreError> {
    if names.is_empty() {
        return Ok(());
    }
    let mut query = KeptQuery { names: names.into_iter().collect(), now_ms: clock::wall_ms(), after: 0 };
    loop {
        let page = journal.kept_events(run_id, query.clone()).await?;
        let is_last = page.len() < KEPT_PAGE_EVENTS;
        for KeptEvent { number, event } in page {
            query.after = number;
            pass_on_one(journal, run_id, &event).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Gives a kept event to the first run that waits for it.
async fn pass_on_one(journal: &dyn Journal, run_id: &str, event: &OutsideEvent) -> Result<(), StoreError> {
    let data = event.value();
    for EventWaiter { run_id: waiter, awaits } in journal.event_waiters(event.org.as_deref(), &event.event).await? {
        let step = awaits.iter().find(|step| step.fits(&event.event, &data, event.at_ms));
        if let Some(step) = step.filter(|_| waiter != run_id)
            && give(journal, &waiter, step, event).await?
        {
            break;
        }
    }
    Ok(())
}
