//! The services that Restate knows: their handlers, and what each returns.

use std::collections::BTreeMap;
use std::sync::Arc;

use restate_sdk::prelude::*;
use serde_json::{Value, json};

use super::handover::{CancelOrder, HandedRun};
use super::workflow::ServedRuns;

/// The runs of a folder as workflows.
pub struct LoopctlWorkflow(pub Arc<ServedRuns>);

#[restate_sdk::workflow(name = "loopctl")]
impl LoopctlWorkflow {
    /// Runs a loop. The key of the workflow is the id of the run.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, request: Json<Value>) -> HandlerResult<Json<Value>> {
        self.0.run(&ctx, request.into_inner()).await
    }

    /// Where the run is: as `run` returns it once the run waits or has ended.
    #[handler]
    async fn status(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<Json<Value>> {
        let running = || json!({"agent_run_id": ctx.key(), "status": "running"});
        Ok(Json(self.0.status(&ctx).await?.unwrap_or_else(running)))
    }

    /// The decision of a human. Returns when the run has taken it.
    #[handler]
    async fn answer(&self, ctx: SharedWorkflowContext<'_>, request: Json<Value>) -> HandlerResult<Json<Value>> {
        self.0.answer(&ctx, request.into_inner()).await?;
        Ok(Json(json!({"agent_run_id": ctx.key(), "taken": true})))
    }

    /// Ends the run: at once if it waits or is driven by this process, else after its step.
    #[handler]
    async fn cancel(&self, ctx: SharedWorkflowContext<'_>, request: Json<CancelOrder>) -> HandlerResult<()> {
        self.0.cancel(&ctx, request.into_inner()).await
    }
}

/// Further workflows of long runs. Their callers are the workflows before them.
pub struct LoopctlPart(pub Arc<ServedRuns>);

#[restate_sdk::workflow(name = "loopctl-part")]
impl LoopctlPart {
    /// Goes on with a run.
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>, handed: Json<HandedRun>) -> HandlerResult<Json<Value>> {
        self.0.go_on(&ctx, handed.into_inner()).await
    }

    #[handler]
    async fn status(&self, ctx: SharedWorkflowContext<'_>) -> HandlerResult<Json<Option<Value>>> {
        Ok(Json(self.0.status(&ctx).await?))
    }

    #[handler]
    async fn answer(&self, ctx: SharedWorkflowContext<'_>, request: Json<Value>) -> HandlerResult<()> {
        self.0.answer(&ctx, request.into_inner()).await
    }

    #[handler]
    async fn cancel(&self, ctx: SharedWorkflowContext<'_>, request: Json<CancelOrder>) -> HandlerResult<()> {
        self.0.cancel(&ctx, request.into_inner()).await
    }
}

/// Completes copies of runs whose store was away when they ended.
pub struct LoopctlCopy(pub Arc<ServedRuns>);

#[restate_sdk::service(name = "loopctl-copy")]
impl LoopctlCopy {
    /// Copies what the store does not have of a run.
    #[handler]
    async fn copy(&self, _ctx: Context<'_>, run: Json<HandedRun>) -> HandlerResult<()> {
        self.0.copy(run.into_inner()).await
    }
}

/// The memories of sessions.
pub struct LoopctlSession;

const MEMORY: &str = "memory";

#[restate_sdk::object(name = "loopctl-session")]
impl LoopctlSession {
    /// What the session remembers.
    #[handler]
    async fn recall(&self, ctx: ObjectContext<'_>) -> HandlerResult<Json<BTreeMap<String, Value>>> {
        let memory = ctx.get::<Json<BTreeMap<String, Value>>>(MEMORY).await?;
        Ok(Json(memory.map(Json::into_inner).unwrap_or_default()))
    }

    #[handler]
    async fn remember(&self, ctx: ObjectContext<'_>, added: Json<BTreeMap<String, Value>>) -> HandlerResult<()> {
        let memory = ctx.get::<Json<BTreeMap<String, Value>>>(MEMORY).await?;
        let mut memory = memory.map(Json::into_inner).unwrap_or_default();
        memory.extend(added.into_inner());
        ctx.set(MEMORY, Json(memory));
        Ok(())
    }
}
