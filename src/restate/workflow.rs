//! The workflows: one per run, and further ones of a long run. Each step is one entry in Restate's journal, and which step follows
//! depends only on what the steps before it returned, so that any attempt repeats them in the same order.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attempt::{AttemptContext, NextTask, RunAttempt};
use super::attempt_journal::AttemptJournal;
use super::handover::{CancelOrder, HandedRun, SessionMemory, copy_target, part_key, part_target, session_target};
use super::record::{DurableStep, RestReason};
use super::store_copy::RunCopier;
use crate::engine::event::{Decided, DecisionRights};
use crate::journal::{CancelRequest, Journal as _};
use crate::serve::route::ResumeRequest;
use crate::serve::view::is_session;

/// The key of what a run that waits or has ended shows.
const STATUS: &str = "status";
/// The promise that is resolved to cancel the run.
const CANCEL: &str = "cancel";
/// The promise of the key of the workflow that continues with the run.
const NEXT: &str = "next";

/// The runs of a folder.
pub struct ServedRuns {
    context: AttemptContext,
    /// The attempts in this process by the keys of their workflows: a request to cancel one of them need not wait for its next step.
    here: Mutex<HashMap<String, AttemptHere>>,
}

struct AttemptHere {
    run_id: String,
    journal: Weak<AttemptJournal>,
}

/// What a run shows when nobody drives it.
#[derive(Debug, Serialize, Deserialize)]
struct ShownStatus {
    /// The number of the wait, from 1; 0 for a run that has ended.
    wait: u32,
    status: Value,
    /// Why there is no run, or no outcome of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The invocation that waits: Restate can end it without a word to the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invocation: Option<String>,
}

impl ShownStatus {
    fn of(wait: u32, status: Value) -> Self {
        Self { wait, status, refused: None, invocation: None }
    }

    /// That of a run that was cancelled before it began, or was ended by Restate itself.
    fn cancelled(run_id: &str, reason: Option<&str>) -> Self {
        let reason = reason.unwrap_or("cancelled before it began");
        Self::of(
            0,
            json!({ "agent_run_id": run_id, "status": "cancelled", "termination": "cancelled", "reason": reason }),
        )
    }

    fn refused(why: String) -> Self {
        Self { refused: Some(why), ..Self::of(0, Value::Null) }
    }

    /// What the handlers report of the key of a run that was refused.
    fn not_refused(self) -> Result<Self, TerminalError> {
        match self.refused {
            Some(why) => Err(refusal(why)),
            None => Ok(Self { refused: None, ..self }),
        }
    }
}

/// A decision, and the request that brought it: the first one counts.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct BroughtDecision {
    request: String,
    decided: Decided,
}

enum WaitEnd {
    Decided(Box<Decided>),
    Cancelled(Option<String>),
    Due,
}

impl ServedRuns {
    /// The runs of a folder.
    pub fn new(context: AttemptContext) -> Self {
        Self { context, here: Mutex::default() }
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, HashMap<String, AttemptHere>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, key: &str, attempt: &RunAttempt) {
        let mut attempts = self.attempts();
        attempts.retain(|_, here| here.journal.strong_count() > 0);
        let here = AttemptHere { run_id: attempt.run_id().to_owned(), journal: Arc::downgrade(&attempt.journal()) };
        attempts.insert(key.to_owned(), here);
    }

    /// Runs a loop. The key of the workflow is the id of the run.
    pub async fn run(&self, ctx: &WorkflowContext<'_>, request: Value) -> HandlerResult<Json<Value>> {
        if let Some(Json(reason)) = peeked_cancel(ctx).await? {
            // Nothing of it was started, so nothing of it must be ended.
            let cancelled = ShownStatus::cancelled(ctx.key(), reason.as_deref());
            let status = cancelled.status.clone();
            show(ctx, cancelled);
            return Ok(Json(status));
        }
        let session = request.get("session").and_then(Value::as_str).filter(|name| is_session(name)).map(str::to_owned);
        let mut attempt = RunAttempt::new(&self.context, ctx.key(), request);
        if let Some(name) = session {
            let recalled = ctx.request::<(), Json<BTreeMap<String, Value>>>(session_target(&name, "recall"), ());
            let Json(memory) = recalled.call().await?;
            attempt.join(SessionMemory { name, memory });
        }
        self.driven(ctx, attempt).await
    }

    /// Goes on with a run that another workflow handed over.
    pub async fn go_on(&self, ctx: &WorkflowContext<'_>, handed: HandedRun) -> HandlerResult<Json<Value>> {
        if let Some(CancelOrder { reason }) = &handed.cancel {
            // A run that waits sees this one; a run that is driven sees the one in its journal.
            ctx.resolve_promise(CANCEL, Json(reason.clone()));
        }
        let attempt = RunAttempt::handed(&self.context, handed).await?;
        self.driven(ctx, attempt).await
    }

    async fn driven(&self, ctx: &WorkflowContext<'_>, attempt: RunAttempt) -> HandlerResult<Json<Value>> {
        self.note(ctx.key(), &attempt);
        let session = attempt.session().map(str::to_owned);
        let attempt = Arc::new(tokio::sync::Mutex::new(attempt));
        let (mut task, mut waits, mut is_cancelled) = (NextTask::GoOn, 0_u32, false);
        // The wait whose decision the driver has not taken yet.
        let mut undecided = None;
        loop {
            let (maker, next) = (Arc::clone(&attempt), task.clone());
            let step = ctx.run(move || async move { Ok(Json(maker.lock().await.step(next).await?)) });
            let step: Result<Json<DurableStep>, TerminalError> = step.name("step").await;
            let step = match step {
                Ok(Json(step)) => step,
                Err(error) if is_cancellation(&error) => {
                    if let Some(wait) = undecided.take() {
                        ctx.resolve_promise(&taken(wait), Json(Some(GONE.to_owned())));
                    }
                    if let Some(status) = self.begun_again(ctx, &attempt).await? {
                        return Ok(status);
                    }
                    (task, is_cancelled) = (NextTask::Cancel(Some(BY_RESTATE.to_owned())), true);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (has_written, look) = (!step.writes.is_empty(), step.look);
            let (hands_over, completes_copy) = (step.hands_over, step.completes_copy);
            if has_written {
                task = NextTask::GoOn;
            }
            if let Some(name) = session.as_deref() {
                remember(ctx, name, step.remembered());
            }
            let rest = attempt.lock().await.durable(step).await?;
            if (has_written || rest.is_some())
                && let Some(wait) = undecided.take()
            {
                let refused = match &rest {
                    Some(RestReason::Waiting { refused, .. }) => refused.clone(),
                    _ => None,
                };
                ctx.resolve_promise(&taken(wait), Json(refused));
            }
            match rest {
                None => {}
                Some(RestReason::Refused { why }) => {
                    show(ctx, ShownStatus::refused(why.clone()));
                    return Err(refusal(why).into());
                }
                Some(RestReason::Ended { status }) => {
                    show(ctx, ShownStatus::of(0, status.clone()));
                    if completes_copy {
                        complete_copy(ctx, attempt).await?;
                    }
                    return Ok(Json(status));
                }
                Some(RestReason::Left | RestReason::Waiting { .. }) if hands_over => {
                    return handed_over(ctx, attempt).await;
                }
                Some(RestReason::Left) => {
                    task = NextTask::GoOn;
                    continue;
                }
                Some(RestReason::Waiting { status, due_in_ms, .. }) => {
                    waits += 1;
                    let invocation = Some(ctx.invocation_id().to_owned());
                    show(ctx, ShownStatus { invocation, ..ShownStatus::of(waits, status) });
                    (task, undecided) = after_wait(ctx, waits, due_in_ms).await?;
                    ctx.clear(STATUS);
                    continue;
                }
            }
            if look
                && !is_cancelled
                && let Some(Json(reason)) = peeked_cancel(ctx).await?
            {
                is_cancelled = true;
                attempt.lock().await.cancel(reason).await?;
            }
        }
    }

    /// Takes the place of an attempt whose driver was dropped in the middle of a step, for Restate was asked to cancel the
    /// run: another driver ends the run from what is durable. Returns what is left to return if nothing of it is.
    async fn begun_again(
        &self,
        ctx: &WorkflowContext<'_>,
        attempt: &tokio::sync::Mutex<RunAttempt>,
    ) -> HandlerResult<Option<Json<Value>>> {
        let mut attempt = attempt.lock().await;
        *attempt = attempt.restarted(&self.context).await?;
        self.note(ctx.key(), &attempt);
        if attempt.has_begun() {
            return Ok(None);
        }
        let cancelled = ShownStatus::cancelled(ctx.key(), Some(BY_RESTATE));
        let status = cancelled.status.clone();
        show(ctx, cancelled);
        Ok(Some(Json(status)))
    }

    /// Completes the copy of a run that has ended.
    ///
    /// # Errors
    /// When the store fails: Restate tries it again.
    pub async fn copy(&self, handed: HandedRun) -> HandlerResult<()> {
        if let Some(store) = &self.context.store {
            let mut copier = RunCopier::new(store);
            let count = handed.writes.len();
            for (at, write) in handed.writes.iter().enumerate() {
                copier.copy(write, at + 1 == count).await?;
            }
        }
        Ok(())
    }

    /// Where the run is: as `run` returns it once the run waits or has ended; none while it is driven.
    pub async fn status(&self, ctx: &SharedWorkflowContext<'_>) -> HandlerResult<Option<Value>> {
        if let Some(Json(shown)) = ctx.get::<Json<ShownStatus>>(STATUS).await? {
            let shown = shown.not_refused()?;
            let run_id = shown.status.get("agent_run_id").and_then(Value::as_str).unwrap_or(ctx.key());
            if is_gone(ctx, &shown).await? {
                return Ok(Some(ShownStatus::cancelled(run_id, Some(BY_RESTATE)).status));
            }
            return Ok(Some(shown.status));
        }
        let Some(Json(next)) = ctx.peek_promise::<Json<String>>(NEXT).await? else { return Ok(None) };
        let status = ctx.request::<(), Json<Option<Value>>>(part_target(&next, "status"), ());
        Ok(status.call().await?.into_inner())
    }

    /// The decision of a human. Returns when the run has taken it.
    pub async fn answer(&self, ctx: &SharedWorkflowContext<'_>, request: Value) -> HandlerResult<()> {
        let decided = decided(request.clone()).map_err(|why| TerminalError::new_with_code(400, why))?;
        let refused = |why: &str| TerminalError::new_with_code(409, why);
        let shown = ctx.get::<Json<ShownStatus>>(STATUS).await?;
        let shown = shown.map(|Json(shown)| shown.not_refused()).transpose()?;
        let wait = shown.as_ref().map(|shown| shown.wait);
        if wait.is_none()
            && let Some(Json(next)) = ctx.peek_promise::<Json<String>>(NEXT).await?
        {
            let forwarded = ctx.request::<Json<Value>, ()>(part_target(&next, "answer"), Json(request));
            return Ok(forwarded.call().await?);
        }
        let Some(wait) = wait.filter(|wait| *wait > 0) else {
            return Err(refused("the run does not wait for a decision").into());
        };
        let name = decision(wait);
        let request = ctx.invocation_id().to_owned();
        ctx.resolve_promise(&name, Json(BroughtDecision { request: request.clone(), decided }));
        let first = ctx.peek_promise::<Json<BroughtDecision>>(&name).await?;
        if first.is_none_or(|Json(first)| first.request != request) {
            return Err(refused("somebody decided already").into());
        }
        let name = taken(wait);
        let was_taken = ctx.promise::<Json<Option<String>>>(&name);
        let answer = match shown.and_then(|shown| shown.invocation) {
            None => was_taken.await?,
            Some(invocation) => {
                // A run that Restate has ended takes no decision any more.
                let ended = ctx.invocation_handle(invocation).attach::<Json<Value>>();
                restate_sdk::select! {
                    taken = was_taken => taken?,
                    _ended = ended => Json(Some("the run has ended".to_owned()))
                }
            }
        };
        match answer {
            Json(None) => Ok(()),
            Json(Some(why)) => Err(refused(&why).into()),
        }
    }

    /// Ends the run: at once if it waits or is driven by this process, else after its step.
    pub async fn cancel(&self, ctx: &SharedWorkflowContext<'_>, order: CancelOrder) -> HandlerResult<()> {
        ctx.resolve_promise(CANCEL, Json(order.reason));
        // It is durable before anything is done about it.
        let Some(Json(reason)) = ctx.peek_promise::<Json<Option<String>>>(CANCEL).await? else { return Ok(()) };
        // After that: a workflow that hands over looks for a request in the other order, so that one of both sees the other.
        if let Some(Json(next)) = ctx.peek_promise::<Json<String>>(NEXT).await? {
            let order = Json(CancelOrder { reason });
            return Ok(ctx.request::<Json<CancelOrder>, ()>(part_target(&next, "cancel"), order).call().await?);
        }
        let here = self.attempts().get(ctx.key()).map(|here| (here.run_id.clone(), here.journal.upgrade()));
        if let Some((run_id, Some(journal))) = here {
            drop(journal.request_cancel(&run_id, CancelRequest { reason, by: None }));
        }
        Ok(())
    }
}

/// Hands the run over to a further workflow, and returns what becomes of it there.
async fn handed_over(
    ctx: &WorkflowContext<'_>,
    attempt: Arc<tokio::sync::Mutex<RunAttempt>>,
) -> HandlerResult<Json<Value>> {
    let mut handed = attempt.lock().await.hand_over();
    // This workflow may wait for long.
    drop(attempt);
    let key = part_key(&handed, ctx.invocation_id());
    ctx.resolve_promise(NEXT, Json(key.clone()));
    let reason = ctx.peek_promise::<Json<Option<String>>>(CANCEL).await?;
    handed.cancel = reason.map(|Json(reason)| CancelOrder { reason });
    let part = ctx.request::<Json<HandedRun>, Json<Value>>(part_target(&key, "run"), Json(handed));
    let ended = part.call().await;
    match &ended {
        Ok(Json(status)) => show(ctx, ShownStatus::of(0, status.clone())),
        // The further workflow is cancelled, too, and ends the run: its status is asked for.
        Err(why) if is_cancellation(why) => {}
        Err(why) => show(ctx, ShownStatus::refused(why.message().to_owned())),
    }
    Ok(ended?)
}

/// Waits for the copy of a run that has ended; leaves the rest of it to an invocation that Restate repeats until the store is there.
async fn complete_copy(ctx: &WorkflowContext<'_>, attempt: Arc<tokio::sync::Mutex<RunAttempt>>) -> HandlerResult<()> {
    let copied = Arc::clone(&attempt);
    let is_copied = ctx.run(move || async move { Ok(Json(copied.lock().await.is_copied().await)) });
    let Json(is_copied) = is_copied.name("copy").await?;
    if is_copied {
        return Ok(());
    }
    let mut attempt = attempt.lock().await;
    if attempt.fits() {
        ctx.request::<Json<HandedRun>, ()>(copy_target(), Json(attempt.hand_over())).send();
    } else {
        tracing::error!(run_id = attempt.run_id(), "the run is too large for its copy to be completed later");
    }
    Ok(())
}

/// Adds to the memory of a session. Restate keeps the order of what a workflow adds.
fn remember(ctx: &WorkflowContext<'_>, session: &str, memory: BTreeMap<String, Value>) {
    if !memory.is_empty() {
        let added = ctx.request::<Json<BTreeMap<String, Value>>, ()>(session_target(session, "remember"), Json(memory));
        drop(added.send());
    }
}

fn show(ctx: &WorkflowContext<'_>, shown: ShownStatus) {
    ctx.set(STATUS, Json(shown));
}

/// Why a decision is not taken.
const GONE: &str = "the run no longer waits for this decision";
/// The reason of a run that Restate was asked to end, and not the run.
const BY_RESTATE: &str = "cancelled in Restate";
/// How long `status` waits to learn that a run that waits was ended.
const END_TIMEOUT: Duration = Duration::from_millis(100);

/// Whether an error says that Restate was asked to cancel the invocation.
fn is_cancellation(error: &TerminalError) -> bool {
    error.code() == 409 && error.message() == "cancelled"
}

/// A request to cancel the run: of its own handler, or of Restate.
async fn peeked_cancel(ctx: &WorkflowContext<'_>) -> Result<Option<Json<Option<String>>>, TerminalError> {
    match ctx.peek_promise::<Json<Option<String>>>(CANCEL).await {
        Err(error) if is_cancellation(&error) => Ok(Some(Json(Some(BY_RESTATE.to_owned())))),
        other => other,
    }
}

/// Whether a run that is shown as one that waits was ended by Restate: nothing of the run hears of a kill.
async fn is_gone(ctx: &SharedWorkflowContext<'_>, shown: &ShownStatus) -> Result<bool, TerminalError> {
    let Some(invocation) = shown.invocation.clone().filter(|_| shown.wait > 0) else { return Ok(false) };
    let ended = ctx.invocation_handle(invocation).attach::<Json<Value>>();
    let waited = ctx.sleep(END_TIMEOUT);
    restate_sdk::select! {
        ended = ended => Ok(ended.is_err()),
        _waited = waited => Ok(false)
    }
}

/// The failure of a workflow that has no run to return.
fn refusal(why: String) -> TerminalError {
    TerminalError::new_with_code(422, why)
}

/// The promise of a decision about a wait.
fn decision(wait: u32) -> String {
    format!("decision-{wait}")
}

/// The promise that is resolved when a decision was taken, or refused.
fn taken(wait: u32) -> String {
    format!("taken-{wait}")
}

/// What a run does after a wait, and the wait if its decision is to be taken.
async fn after_wait(
    ctx: &WorkflowContext<'_>,
    wait: u32,
    due_in_ms: Option<u64>,
) -> HandlerResult<(NextTask, Option<u32>)> {
    let task = match wait_end(ctx, wait, due_in_ms).await? {
        WaitEnd::Decided(decided) => return Ok((NextTask::Decide(decided), Some(wait))),
        WaitEnd::Cancelled(reason) => NextTask::Cancel(reason),
        WaitEnd::Due => NextTask::GoOn,
    };
    ctx.resolve_promise(&taken(wait), Json(Some(GONE.to_owned())));
    Ok((task, None))
}

/// Waits for a decision, for a request to cancel the run, and for what the run does by itself.
async fn wait_end(ctx: &WorkflowContext<'_>, wait: u32, due_in_ms: Option<u64>) -> HandlerResult<WaitEnd> {
    let name = decision(wait);
    let decided = ctx.promise::<Json<BroughtDecision>>(&name);
    let cancelled = ctx.promise::<Json<Option<String>>>(CANCEL);
    let Some(due_in_ms) = due_in_ms else {
        restate_sdk::select! {
            brought = decided => { return Ok(WaitEnd::Decided(Box::new(brought?.into_inner().decided))) },
            reason = cancelled => { return Ok(WaitEnd::Cancelled(reason?.into_inner())) },
            on_cancel => return Ok(WaitEnd::Cancelled(Some(BY_RESTATE.to_owned())))
        }
    };
    let due = ctx.sleep(Duration::from_millis(due_in_ms));
    restate_sdk::select! {
        brought = decided => { Ok(WaitEnd::Decided(Box::new(brought?.into_inner().decided))) },
        reason = cancelled => { Ok(WaitEnd::Cancelled(reason?.into_inner())) },
        slept = due => { slept?; Ok(WaitEnd::Due) },
        on_cancel => Ok(WaitEnd::Cancelled(Some(BY_RESTATE.to_owned())))
    }
}

/// A decision as `POST /agents/{id}/resume` takes it.
fn decided(request: Value) -> Result<Decided, String> {
    for limit in ["max_iterations", "timeout_ms", "budget", "new_document"] {
        if request.get(limit).is_some() {
            return Err(format!("`{limit}` is not in Restate mode"));
        }
    }
    let request: ResumeRequest = serde_json::from_value(request).map_err(|why| why.to_string())?;
    let decided = request.decided(None, DecisionRights::All).map_err(|problem| problem.detail)?;
    decided.ok_or_else(|| "the request decides nothing".to_owned())
}
