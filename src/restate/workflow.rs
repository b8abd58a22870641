//! The workflow: one per run. Each step is one entry in Restate's journal, and which step follows depends only on what
//! the steps before it returned, so that any attempt repeats them in the same order.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attempt::{NextTask, RunAttempt};
use super::attempt_journal::AttemptJournal;
use super::bound::JournalBound;
use super::record::{DurableStep, RestReason};
use super::served::ServedFolder;
use crate::engine::event::{Decided, DecisionRights};
use crate::journal::Journal as _;
use crate::serve::route::ResumeRequest;

/// The key of what a run that waits or has ended shows.
const STATUS: &str = "status";
/// The promise that is resolved to cancel the run.
const CANCEL: &str = "cancel";

/// The runs of a folder as workflows.
pub struct LoopctlWorkflow {
    served: Arc<ServedFolder>,
    bound: JournalBound,
    /// The attempts in this process: a request to cancel one of them need not wait for its next step.
    here: Mutex<HashMap<String, Weak<AttemptJournal>>>,
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
}

impl ShownStatus {
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

/// How a wait ended.
enum WaitEnd {
    Decided(Decided),
    Cancelled(Option<String>),
    Due,
}

impl LoopctlWorkflow {
    /// The runs of a folder.
    pub fn new(served: ServedFolder, bound: JournalBound) -> Self {
        Self { served: Arc::new(served), bound, here: Mutex::default() }
    }

    /// For so long an invocation may be silent.
    pub fn longest_silence(&self) -> Duration {
        self.served.longest_silence()
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, HashMap<String, Weak<AttemptJournal>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt(&self, run_id: &str, request: Value) -> Arc<tokio::sync::Mutex<RunAttempt>> {
        let attempt = RunAttempt::new(Arc::clone(&self.served), run_id, request, self.bound);
        let mut attempts = self.attempts();
        attempts.retain(|_, journal| journal.strong_count() > 0);
        attempts.insert(run_id.to_owned(), Arc::downgrade(&attempt.journal()));
        Arc::new(tokio::sync::Mutex::new(attempt))
    }
}

#[restate_sdk::workflow(name = "loopctl")]
impl LoopctlWorkflow {
    /// Runs a loop. The key of the workflow is the id of the run.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, request: Json<Value>) -> HandlerResult<Json<Value>> {
        let attempt = self.attempt(ctx.key(), request.into_inner());
        let (mut task, mut waits, mut is_cancelled) = (NextTask::GoOn, 0_u32, false);
        // The wait whose decision the driver has not taken yet.
        let mut undecided = None;
        loop {
            let (maker, next) = (Arc::clone(&attempt), task.clone());
            let step = ctx.run(move || async move { Ok(Json(maker.lock().await.step(next).await?)) });
            let Json(step): Json<DurableStep> = step.name("step").await?;
            let (has_written, look) = (!step.writes.is_empty(), step.look);
            if has_written {
                task = NextTask::GoOn;
            }
            let rest = attempt.lock().await.durable(step).await?;
            if has_written || rest.is_some() {
                let refused = match &rest {
                    Some(RestReason::Waiting { refused, .. }) => refused.clone(),
                    _ => None,
                };
                if let Some(wait) = undecided.take() {
                    ctx.resolve_promise(&taken(wait), Json(refused));
                }
            }
            match rest {
                None => {}
                Some(RestReason::Refused { why }) => {
                    let refused = Some(why.clone());
                    ctx.set(STATUS, Json(ShownStatus { wait: 0, status: Value::Null, refused }));
                    return Err(refusal(why).into());
                }
                Some(RestReason::Ended { status }) => {
                    ctx.set(STATUS, Json(ShownStatus { wait: 0, status: status.clone(), refused: None }));
                    return Ok(Json(status));
                }
                Some(RestReason::Waiting { status, due_in_ms, .. }) => {
                    waits += 1;
                    ctx.set(STATUS, Json(ShownStatus { wait: waits, status, refused: None }));
                    task = match wait_end(&ctx, waits, due_in_ms).await? {
                        WaitEnd::Decided(decided) => {
                            undecided = Some(waits);
                            NextTask::Decide(Box::new(decided))
                        }
                        other => {
                            let gone = "the run no longer waits for this decision".to_owned();
                            ctx.resolve_promise(&taken(waits), Json(Some(gone)));
                            match other {
                                WaitEnd::Cancelled(reason) => NextTask::Cancel(reason),
                                _ => NextTask::GoOn,
                            }
                        }
                    };
                    ctx.clear(STATUS);
                    continue;
                }
            }
            if look
                && !is_cancelled
                && let Some(Json(reason)) = ctx.peek_promise::<Json<Option<String>>>(CANCEL).await?
            {
                is_cancelled = true;
                attempt.lock().await.cancel(reason).await?;
            }
        }
    }

    /// Where the run is: as `run` returns it once the run waits or has ended.
    #[handler]
    async fn status(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<Json<Value>> {
        let shown = ctx.get::<Json<ShownStatus>>(STATUS).await?;
        let running = || json!({"agent_run_id": ctx.key(), "status": "running"});
        let Some(Json(shown)) = shown else { return Ok(Json(running())) };
        Ok(Json(shown.not_refused()?.status))
    }

    /// The decision of a human. Returns when the run has taken it.
    #[handler]
    async fn answer(&self, ctx: SharedWorkflowContext<'_>, request: Json<Value>) -> HandlerResult<Json<Value>> {
        let decided = decided(request.into_inner()).map_err(|why| TerminalError::new_with_code(400, why))?;
        let refused = |why: &str| TerminalError::new_with_code(409, why);
        let shown = ctx.get::<Json<ShownStatus>>(STATUS).await?;
        let wait = shown.map(|Json(shown)| shown.not_refused()).transpose()?.map_or(0, |shown| shown.wait);
        if wait == 0 {
            return Err(refused("the run does not wait for a decision").into());
        }
        let name = decision(wait);
        let request = ctx.invocation_id().to_owned();
        ctx.resolve_promise(&name, Json(BroughtDecision { request: request.clone(), decided }));
        let first = ctx.peek_promise::<Json<BroughtDecision>>(&name).await?;
        if first.is_none_or(|Json(first)| first.request != request) {
            return Err(refused("somebody decided already").into());
        }
        match ctx.promise::<Json<Option<String>>>(&taken(wait)).await? {
            Json(None) => Ok(Json(json!({"agent_run_id": ctx.key(), "taken": true}))),
            Json(Some(why)) => Err(refused(&why).into()),
        }
    }

    /// Ends the run: at once if it waits or is driven by this process, else after its step.
    #[handler]
    async fn cancel(&self, ctx: SharedWorkflowContext<'_>, request: Json<CancelOrder>) -> HandlerResult<()> {
        let Json(CancelOrder { reason }) = request;
        ctx.resolve_promise(CANCEL, Json(reason.clone()));
        // It is durable before anything is done about it.
        let Some(Json(reason)) = ctx.peek_promise::<Json<Option<String>>>(CANCEL).await? else { return Ok(()) };
        let here = self.attempts().get(ctx.key()).and_then(Weak::upgrade);
        if let Some(journal) = here {
            drop(journal.request_cancel(ctx.key(), reason));
        }
        Ok(())
    }
}

/// What `cancel` takes.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelOrder {
    /// Why, for the record.
    #[serde(default)]
    reason: Option<String>,
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

/// Waits for a decision, for a request to cancel the run, and for what the run does by itself.
async fn wait_end(ctx: &WorkflowContext<'_>, wait: u32, due_in_ms: Option<u64>) -> HandlerResult<WaitEnd> {
    let name = decision(wait);
    let decided = ctx.promise::<Json<BroughtDecision>>(&name);
    let cancelled = ctx.promise::<Json<Option<String>>>(CANCEL);
    let Some(due_in_ms) = due_in_ms else {
        restate_sdk::select! {
            brought = decided => { return Ok(WaitEnd::Decided(brought?.into_inner().decided)) },
            reason = cancelled => { return Ok(WaitEnd::Cancelled(reason?.into_inner())) }
        }
    };
    let due = ctx.sleep(Duration::from_millis(due_in_ms));
    restate_sdk::select! {
        brought = decided => { Ok(WaitEnd::Decided(brought?.into_inner().decided)) },
        reason = cancelled => { Ok(WaitEnd::Cancelled(reason?.into_inner())) },
        slept = due => { slept?; Ok(WaitEnd::Due) }
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
