//! Calls on a stage: played, or made for real where that touches nothing outside. Nothing else is called.

use serde_json::{Value, json};

use super::Toolbox;
use super::call::ToolCall;
use super::output::{self, fault};
use super::runner::{RawFault, RawOutcome, ToolRunner as _};
use super::scripted::failed;
use crate::drive::retry::Transient;
use crate::drive::stage::{CallFaultEffect, Stage};
use crate::engine::event::ToolResult;
use crate::language::scenario::ToolFailure;
use crate::program::{Tool, ToolKind};

/// The class of the failure of a call that nothing answers for.
pub const NOT_PLAYED: &str = "the scenario does not answer for this tool";

impl Toolbox {
    /// Performs a call on a stage.
    pub(super) async fn perform_on(&self, stage: &Stage, tool: &Tool, call: &ToolCall<'_>) -> RawOutcome {
        let started = stage.begin(tool, call);
        let outcome = match started.fault {
            Some(CallFaultEffect::Fails(failure)) => fails(failure).await.into(),
            Some(CallFaultEffect::Says(text)) => Ok::<_, RawFault>(Value::String(text)).into(),
            None => match stage.player.tool(&tool.name, started.number) {
                Some(ToolResult::Ok(value)) => Ok::<_, RawFault>(value).into(),
                Some(ToolResult::Failed(fault)) => Err(failed(fault)).into(),
                None => self.perform_locally(stage, tool, call, started.index).await,
            },
        };
        let result = match &outcome.result {
            Ok(value) => ToolResult::Ok(value.clone()),
            Err(raw) => ToolResult::Failed(raw.fault.clone()),
        };
        stage.end(started.index, result);
        outcome
    }

    /// A call that no script answers for: of a database that the scenario has of its own, of a matcher, and of a model
    /// that the scenario plays.
    async fn perform_locally(&self, stage: &Stage, tool: &Tool, call: &ToolCall<'_>, index: usize) -> RawOutcome {
        match &tool.kind {
            ToolKind::Llm(llm) => {
                if let Some(player) = stage.model(&tool.name) {
                    let mut position = stage.position(&tool.name, &call.key());
                    let outcome = self.llm.make_played(llm, call, player, &mut position).await;
                    stage.asked(&tool.name, position);
                    return outcome;
                }
            }
            ToolKind::Matcher(_) => return self.matcher.call(tool, call).await,
            ToolKind::Db(_) | ToolKind::Table(_) if self.db.has(tool) => return self.db.call(tool, call).await,
            _ => {}
        }
        stage.is_missing(index);
        Err(fault(NOT_PLAYED, "give it an entry under `tools`")).into()
    }
}

/// What comes of a call that fails, as a runner of `http` actions would report it: an answer without content and one
/// that is no JSON are no failures for it.
async fn fails(failure: ToolFailure) -> Result<Value, RawFault> {
    let passes = |class: &str, status| RawFault {
        fault: fault(class, ""),
        answer: None,
        transient: Some(Transient { status, after: None }),
    };
    match failure {
        // The deadline of the call ends it.
        ToolFailure::Timeout => std::future::pending().await,
        ToolFailure::Refused => Err(passes("connection refused", None)),
        ToolFailure::Reset => Err(passes("connection reset", None)),
        ToolFailure::Http(status) => Err(passes(&format!("http {status}"), Some(status))),
        ToolFailure::TooLong => Err(output::too_large().into()),
        ToolFailure::NotJson => Ok(Value::from("<html><body>The service is busy.</body></html>")),
        ToolFailure::Empty => Ok(json!({ "status": 200 })),
    }
}
