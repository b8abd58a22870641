//! Events that a run did not use: they are given to runs that wait for them.

use std::collections::{BTreeMap, BTreeSet};

use super::clock;
use super::outside_events::{event_id, give, has_taken, unmark};
use super::passed_on::PassedOn;
use crate::journal::outside_event::KEPT_PAGE_EVENTS;
use crate::journal::{EventWaiter, Journal, KeptEvent, KeptQuery, OutsideEvent, StoreError};
use loopctl_engine::state::{Phase, State};
use loopctl_lang::policy::json_text;

/// Passes on the events in the queue of a run that has ended. Those of a called run are in the queue of its caller.
pub(super) async fn pass_on_unused(journal: &dyn Journal, state: &State) {
    if !matches!((state, &state.phase), (State::Flow(_), Phase::Ended(_))) || state.header.caller.is_some() {
        return;
    }
    let run_id = state.header.run_id.as_str();
    if let Err(fault) = pass_on_queued(journal, run_id, state).await {
        // The run has ended whatever becomes of them: a run that waits for one looks for it when it is resumed, too.
        let loop_name = state.header.loop_name.as_str();
        tracing::warn!(run_id, "loop" = loop_name, "the events that the run left are not passed on: {fault}");
    }
}

async fn pass_on_queued(journal: &dyn Journal, run_id: &str, state: &State) -> Result<(), StoreError> {
    let mut names = BTreeSet::new();
    for queued in journal.queued_decisions(run_id).await? {
        let Ok(passed) = json_text::read::<PassedOn>(&queued.decision) else { continue };
        // A driver that died had marked it, and did not take it.
        let marked = event_id(&passed.decided).filter(|id| passed.marked && !has_taken(state, id));
        unmark(journal, run_id, marked.map(str::to_owned)).await?;
        names.extend(passed.event);
    }
    pass_on(journal, run_id, names).await
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
    // They are of one organisation.
    let mut waiters: BTreeMap<String, Vec<EventWaiter>> = BTreeMap::new();
    loop {
        let page = journal.kept_events(run_id, query.clone()).await?;
        let is_last = page.len() < KEPT_PAGE_EVENTS;
        for KeptEvent { number, event } in page {
            query.after = number;
            if !waiters.contains_key(&event.event) {
                let found = journal.event_waiters(event.org.as_deref(), &event.event).await?;
                waiters.insert(event.event.clone(), found);
            }
            pass_on_one(journal, run_id, &event, waiters.get(&event.event).map_or(&[], Vec::as_slice)).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Gives a kept event to the first of the runs that wait for it.
async fn pass_on_one(
    journal: &dyn Journal,
    run_id: &str,
    event: &OutsideEvent,
    waiters: &[EventWaiter],
) -> Result<(), StoreError> {
    let data = event.value();
    for EventWaiter { run_id: waiter, awaits } in waiters {
        let step = awaits.iter().find(|step| step.fits(&event.event, &data, event.at_ms));
        if let Some(step) = step.filter(|_| waiter != run_id)
            && give(journal, waiter, step, event).await?
        {
            break;
        }
    }
    Ok(())
}
