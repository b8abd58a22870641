//! `matcher` actions: which entries of two lists belong together.

use serde_json::Value;

use super::output::fault;
use super::runner::{RawOutcome, ToolRunner, wrong_kind};
use crate::drive::clock::simulated;
use crate::drive::future::BoxFuture;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::program::flow::MAX_OUTPUT_BYTES;
use loopctl_lang::program::matcher::{MatchFault, MatcherCall, MatcherTool};
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::{Tool, ToolKind};

/// Makes the calls of `matcher` actions.
pub(super) struct MatcherRunner;

impl ToolRunner for MatcherRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Matcher(matcher) => Box::pin(async move { make(matcher, call).await.into() }),
            _ => wrong_kind(tool),
        }
    }
}

/// Matches in a thread of its own: large lists take a second. The work is bounded, so it ends even if nobody waits for
/// it any more.
async fn make(tool: &MatcherTool, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
    let ready = ready(tool, call).map_err(|why| refused(&why))?;
    // The step would fail with what is longer.
    let most = call.at.map(|_| MAX_OUTPUT_BYTES);
    let failed = |why: MatchFault| match why {
        MatchFault::TooLong { .. } => fault(why.to_string(), ""),
        why => refused(&why.to_string()),
    };
    if simulated::is_simulated() {
        return ready.run(most).map_err(failed);
    }
    match tokio::task::spawn_blocking(move || ready.run(most)).await {
        Ok(done) => done.map_err(failed),
        Err(lost) => Err(fault("matcher: failed", lost.to_string())),
    }
}

/// A call with its lists. They are data for a model: no secret is resolved in them.
fn ready(tool: &MatcherTool, call: &ToolCall<'_>) -> Result<MatcherCall, String> {
    tool.call(
        call.input,
        &Scope {
            arguments: call.input,
            lists: call.lists,
            now: call.now,
            run_id: call.run_id,
            ..Scope::of_input(call.run_input, call.json.into())
        },
    )
}

fn refused(why: &str) -> ToolFault {
    fault(format!("matcher: {why}"), "")
}
