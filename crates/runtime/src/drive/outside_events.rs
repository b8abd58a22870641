//! Events from outside reach the runs that wait for them: each waiting run gets a decision in its queue, by the name of the event.

use futures_util::future::try_join_all;
use serde_json::Value;

use super::passed_on::PassedOn;
use crate::journal::outside_event::queued_id;
use crate::journal::{
    AwaitedEvent, EventPut, EventWaiter, Journal, OutsideEvent, QueuedDecision, Queueing, StoreError,
};
use loopctl_engine::event::{Decided, Decision};
use loopctl_engine::flow::waiting_steps;
use loopctl_engine::question::StepQuestion;
use loopctl_engine::state::{Phase, State};
use loopctl_lang::policy::json_text;

/// The longest data of an event, as JSON text in bytes.
pub const MAX_DATA_BYTES: usize = 64 << 10;
/// The longest id of an event, in bytes.
pub const MAX_ID_BYTES: usize = 200;
/// How many runs are given an event at a time.
const TOGETHER: usize = 64;
/// The most decisions that are queued for a run to which an event is given whose step has another one.
const MOST_QUEUED: usize = 64;
/// Begins the subject of such an event: it comes after those of steps.
const LATER: &str = "~event ";
/// Begins the name of an event in the record of a decision.
const DECIDER: &str = "event ";

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventDelivery {
    /// What the store says.
    pub put: EventPut,
    /// How many runs get it.
    pub runs: usize,
    /// Until when it is kept, in milliseconds since 1970.
    pub keep_until_ms: i64,
}

/// Who decides where an event does, in the record of the decision. No token has such a name.
fn decider(id: &str) -> String {
    format!("{DECIDER}{id}")
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
    let keep_until_ms = match put {
        EventPut::New => event.keep_until_ms,
        EventPut::Same { keep_until_ms } => keep_until_ms,
        EventPut::Conflict | EventPut::Full => return Ok(EventDelivery { put, runs: 0, keep_until_ms: 0 }),
    };
    let data = event.value();
    let waiters = journal.event_waiters(event.org.as_deref(), &event.event).await?;
    let meant: Vec<(String, AwaitedEvent)> = waiters
        .into_iter()
        .filter_map(|EventWaiter { run_id, awaits }| {
            let step = awaits.into_iter().find(|awaited| awaited.fits(&event.event, &data, event.at_ms))?;
            Some((run_id, step))
        })
        .collect();
    let mut runs = 0;
    for some in meant.chunks(TOGETHER) {
        let given = some.iter().map(|(run_id, step)| give(journal, run_id, step, &event));
        runs += try_join_all(given).await?.into_iter().filter(|is_given| *is_given).count();
    }
    // It is kept until one of them takes it: the step may have ended meanwhile. While it is in a queue, no other run sees it.
    Ok(EventDelivery { put, runs, keep_until_ms })
}

/// Queues an event for a run: for its step, or, when that has another one, for the next step that waits for it. Whether it is.
pub(super) async fn give(
    journal: &dyn Journal,
    run_id: &str,
    step: &AwaitedEvent,
    event: &OutsideEvent,
) -> Result<bool, StoreError> {
    let given = async {
        if queue(journal, run_id, &step.at, QueuedEvent { step, event }).await? == Queueing::Queued {
            return Ok(true);
        }
        if journal.queued_decisions(run_id).await?.len() >= MOST_QUEUED {
            return Ok(false);
        }
        let subject = format!("{LATER}{:015} {}", event.at_ms, event.id);
        Ok(queue(journal, run_id, &subject, QueuedEvent { step, event }).await? == Queueing::Queued)
    };
    match given.await {
        // It was deleted meanwhile.
        Err(StoreError::NoSuchRun(_)) => Ok(false),
        given => given,
    }
}

/// An event for a step.
#[derive(Clone, Copy)]
pub(super) struct QueuedEvent<'e> {
    pub step: &'e AwaitedEvent,
    pub event: &'e OutsideEvent,
}

impl QueuedEvent<'_> {
    /// Its id in the queue.
    pub(super) fn id(self) -> String {
        queued_id(&self.event.id, &self.step.at)
    }
}

/// Queues an event for a run, unless something about the same subject is queued.
pub(super) async fn queue(
    journal: &dyn Journal,
    run_id: &str,
    subject: &str,
    queued: QueuedEvent<'_>,
) -> Result<Queueing, StoreError> {
    let QueuedEvent { step, event } = queued;
    let decided = decided(&step.at, step.hash.as_deref(), event);
    let passed = PassedOn { decided, answer_token: None, event: Some(event.event.clone()), marked: false };
    let Ok(decision) = serde_json::to_string(&passed) else { return Ok(Queueing::Occupied) };
    let queued = QueuedDecision { id: queued.id(), subject: subject.to_owned(), decision, refused: None };
    journal.queue_event(run_id, queued).await
}

/// A queued decision as it fits a run now. An event is about the step that it was given to, or, when that has ended, about the
/// first one that waits for it; none while no step does.
pub(super) fn as_it_fits(state: &State, passed: PassedOn) -> Option<PassedOn> {
    let PassedOn { decided, event, .. } = &passed;
    let (Some(name), Decision::Answer(data)) = (event, &decided.decision) else {
        return Some(passed);
    };
    let awaits = awaited(state);
    let is_own = |step: &AwaitedEvent| Some(&step.at) == decided.at.as_ref() && step.hash == decided.hash;
    // One that the run has taken is refused with that reason.
    if is_taken_by(state, decided.by.as_deref()) || awaits.iter().any(is_own) {
        return Some(passed);
    }
    let data: Value = json_text::read(data).unwrap_or_else(|_| Value::from(data.as_str()));
    let at_ms = decided.came_at_ms.unwrap_or_default();
    let step = awaits.into_iter().find(|step| step.fits(name, &data, at_ms))?;
    let decided = Decided { at: Some(step.at), hash: step.hash, ..passed.decided };
    Some(PassedOn { decided, ..passed })
}

/// The id of the event that decides.
pub(super) fn event_id(decided: &Decided) -> Option<&str> {
    decided.by.as_deref()?.strip_prefix(DECIDER)
}

/// Marks the event that decides as taken, before it is: it is durable in the queue of the run. Returns its id if no other run had it.
pub(super) async fn mark(journal: &dyn Journal, run_id: &str, passed: &PassedOn) -> Result<Option<String>, StoreError> {
    let Some(id) = event_id(&passed.decided) else { return Ok(None) };
    // A driver that died may have marked it for this run.
    let is_own = journal.mark_event(run_id, id, true).await? || passed.marked;
    Ok(is_own.then(|| id.to_owned()))
}

/// The run did not take the event that only it had: it is kept as if it had come to none.
pub(super) async fn unmark(journal: &dyn Journal, run_id: &str, marked: Option<String>) -> Result<(), StoreError> {
    match marked {
        Some(id) => journal.mark_event(run_id, &id, false).await.map(drop),
        None => Ok(()),
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
    is_taken_by(state, Some(&decider(id)))
}

fn is_taken_by(state: &State, by: Option<&str>) -> bool {
    by.is_some() && state.decisions.iter().any(|record| record.by.as_deref() == by)
}
