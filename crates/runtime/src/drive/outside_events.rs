//! Events from outside reach the runs that wait for them: each waiting run gets a decision in its queue, by the name of the event.

use futures_util::future::try_join_all;
use serde_json::Value;

use super::passed_on::PassedOn;
use crate::journal::{
    AwaitedEvent, EventPut, EventWaiter, Journal, OutsideEvent, QueuedDecision, Queueing, StoreError,
};
use loopctl_engine::event::{Decided, Decision};
use loopctl_engine::flow::waiting_steps;
use loopctl_engine::question::StepQuestion;
use loopctl_engine::state::{Phase, State};

/// The longest data of an event, as JSON text in bytes.
pub const MAX_DATA_BYTES: usize = 64 << 10;
/// The longest id of an event, in bytes.
pub const MAX_ID_BYTES: usize = 200;
/// How many runs are given an event at a time.
const TOGETHER: usize = 64;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventDelivery {
    /// What the store says.
    pub put: EventPut,
    /// How many runs get it.
    pub runs: usize,
}

/// Who decides where an event does, in the record of the decision. No token has such a name.
fn decider(id: &str) -> String {
    format!("event {id}")
}

/// What a step gets of an event.
pub(super) fn decided(at: &str, hash: Option<&str>, event: &OutsideEvent) -> Decided {
    Decided {
        at: Some(at.to_owned()),
        hash: hash.map(str::to_owned),
        by: Some(decider(&event.id)),
        came_at_ms: Some(event.at_ms),
        ..Decided::from(Decision::Answer(event.data.clone()))
    }
}

/// Keeps an event, and gives it to the runs that wait for it: to one step of each. What is answered is durable; the queue of the
/// store continues the runs. The same event again is given to those that did not get it.
///
/// # Errors
/// When the store fails.
pub async fn deliver(journal: &dyn Journal, event: OutsideEvent) -> Result<EventDelivery, StoreError> {
    let put = journal.put_event(event.clone()).await?;
    if matches!(put, EventPut::Conflict | EventPut::Full) {
        return Ok(EventDelivery { put, runs: 0 });
    }
    let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
    let waiters = journal.event_waiters(event.org.as_deref(), &event.event).await?;
    let meant: Vec<(String, AwaitedEvent)> = waiters
        .into_iter()
        .filter_map(|EventWaiter { run_id, awaits }| {
            let step = awaits.into_iter().find(|awaited| awaited.fits(&event, &data))?;
            Some((run_id, step))
        })
        .collect();
    let mut runs = 0;
    for some in meant.chunks(TOGETHER) {
        let queued = some.iter().map(|(run_id, step)| give(journal, run_id, step, &event));
        runs += try_join_all(queued).await?.into_iter().filter(|is_given| *is_given).count();
    }
    if runs > 0 {
        journal.event_taken(event.org.as_deref(), &event.id).await?;
    }
    Ok(EventDelivery { put, runs })
}

/// Queues an event for a step. Whether it is.
async fn give(
    journal: &dyn Journal,
    run_id: &str,
    step: &AwaitedEvent,
    event: &OutsideEvent,
) -> Result<bool, StoreError> {
    let passed = PassedOn { decided: decided(&step.at, step.hash.as_deref(), event), answer_token: None };
    let Ok(decision) = serde_json::to_string(&passed) else { return Ok(false) };
    let id = format!("event {} {}", event.id, step.at);
    let queued = QueuedDecision { id, subject: step.at.clone(), decision, refused: None };
    match journal.queue_event(run_id, queued).await {
        Ok(queueing) => Ok(queueing == Queueing::Queued),
        // It was deleted meanwhile.
        Err(StoreError::NoSuchRun(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// What a run waits for, as its row has it.
pub(super) fn awaited(state: &State) -> Vec<AwaitedEvent> {
    if !matches!(state.phase, Phase::Paused { .. } | Phase::Stepping) {
        return Vec::new();
    }
    waiting_steps(state).into_iter().filter_map(of_question).collect()
}

fn of_question(question: StepQuestion) -> Option<AwaitedEvent> {
    let StepQuestion { at, hash, awaits, expires_at_ms, .. } = question;
    Some(AwaitedEvent { at, hash, takes: *awaits?, until_ms: expires_at_ms })
}

/// Whether a run has taken an event.
pub(super) fn has_taken(state: &State, id: &str) -> bool {
    let by = decider(id);
    state.decisions.iter().any(|record| record.by.as_deref() == Some(by.as_str()))
}
