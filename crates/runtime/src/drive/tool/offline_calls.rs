//! Calls on a stage: played, or made for real where that touches nothing outside. Nothing else is called.

use std::time::Duration;

use serde_json::{Value, json};

use super::Toolbox;
use super::asking_tool::played;
use super::call::{Spent, ToolCall};
use super::http::is_lost;
use super::llm::{LlmTool, scripted_answer};
use super::output::{self, fault};
use super::runner::{RawFault, RawOutcome, ToolRunner as _};
use super::scripted::failed;
use crate::drive::model::recording::tokens;
use crate::drive::retry::Transient;
use crate::drive::stage::{CallFaultEffect, GivenCall, Stage};
use loopctl_engine::event::ToolResult;
use loopctl_lang::language::recording::FailedCall;
use loopctl_lang::language::scenario::ToolFailure;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::mcp::ToolOrigin;
use loopctl_lang::program::{Tool, ToolKind};

/// The class of the failure of a call that nothing answers for.
pub const NOT_PLAYED: &str = "the scenario does not answer for this tool";

impl Toolbox {
    /// Performs a call on a stage.
    pub(super) async fn perform_on(&self, stage: &Stage, tool: &Tool, call: &ToolCall<'_>) -> RawOutcome {
        let started = stage.begin(tool, call);
        let outcome = match started.fault {
            Some(CallFaultEffect::Fails(failure)) => fails(failure).await.into(),
            Some(CallFaultEffect::Says(text)) => Ok::<_, RawFault>(Value::String(text)).into(),
            None => match stage.recorded(tool, call) {
                Some(given) => {
                    let outcome = replay(given).await;
                    RawOutcome { result: outcome.result.and_then(|value| played(tool, value)), ..outcome }
                }
                None => match stage.player.tool(&tool.name, started.number) {
                    Some(ToolResult::Ok(value)) => {
                        let answer = scripted_answer(tool, value).map_err(RawFault::from);
                        answer.and_then(|value| played(tool, value)).into()
                    }
                    Some(ToolResult::Failed(fault)) => Err(failed(fault)).into(),
                    None => self.perform_locally(stage, tool, call, started.index).await,
                },
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
    /// that the scenario plays, or that is asked in a live play.
    async fn perform_locally(&self, stage: &Stage, tool: &Tool, call: &ToolCall<'_>, index: usize) -> RawOutcome {
        if let Some(llm) = LlmTool::of(tool) {
            if let Some(player) = stage.model(&tool.name) {
                let mut position = stage.position(&tool.name, &call.key());
                let outcome = self.llm.make_played(llm, call, player, &mut position).await;
                stage.asked(&tool.name, position);
                return outcome;
            }
            if stage.is_live {
                return self.llm.call(tool, call).await;
            }
        }
        // A test of a program plays with the program's own tools.
        if matches!(tool.kind, ToolKind::Embedded(ToolOrigin::Program)) && self.has_embedded(&tool.name) {
            return self.embedded.call(tool, call).await;
        }
        if matches!(tool.kind, ToolKind::Matcher(_)) {
            return self.matcher.call(tool, call).await;
        }
        if self.db.has(tool) {
            return self.db.call(tool, call).await;
        }
        // What is sent is in the story, and nobody reads an answer.
        if tool.sends_notice() {
            return Ok::<_, RawFault>(Value::from("ok")).into();
        }
        stage.is_missing(index);
        Err(fault(NOT_PLAYED, "give it an entry under `tools`")).into()
    }
}

/// What a call gave or how it failed in the run that was recorded, and after how long.
async fn replay(given: GivenCall) -> RawOutcome {
    let GivenCall { recorded, is_last } = given;
    if recorded.took_ms > 0 {
        tokio::time::sleep(Duration::from_millis(recorded.took_ms)).await;
    }
    let result = match (recorded.gave, recorded.failed) {
        (Some(value), _) => Ok(value),
        (None, failed) => {
            let FailedCall { class, detail, answer } = failed.unwrap_or_default();
            let transient = (!is_last).then(Transient::default);
            let answer =
                (!answer.is_empty()).then(|| Box::new(json_text::read(&answer).unwrap_or(Value::String(answer))));
            Err(RawFault { answer, transient, ..RawFault::from(fault(class, detail)) })
        }
    };
    let spent = recorded.usage.map_or_else(Spent::default, |usage| Spent {
        tokens: Some(tokens(usage)),
        cost_usd: usage.cost_usd,
        estimated: false,
        at_most: false,
    });
    RawOutcome { result, spent }
}

/// What comes of a call that fails, as a runner of `http` actions would report it: an answer without content and one
/// that is no JSON are no failures for it.
async fn fails(failure: ToolFailure) -> Result<Value, RawFault> {
    let passes = |class: &str, status| RawFault {
        transient: Some(Transient { status, after: None }),
        ..RawFault::from(fault(class, ""))
    };
    match failure {
        // The deadline of the call ends it.
        ToolFailure::Timeout => std::future::pending().await,
        ToolFailure::Refused => Err(passes("connection refused", None)),
        ToolFailure::Reset => Err(passes("connection reset", None).sent()),
        ToolFailure::Http(status) => {
            Err(RawFault { is_uncertain: is_lost(status), ..passes(&format!("http {status}"), Some(status)) })
        }
        ToolFailure::TooLong => Err(RawFault::from(output::too_large()).sent()),
        ToolFailure::NotJson => Ok(Value::from("<html><body>The service is busy.</body></html>")),
        ToolFailure::Empty => Ok(json!({ "status": 200 })),
    }
}
