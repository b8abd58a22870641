//! A tool whose server asks a human before it continues: from what the server gave to the question that a run waits with.

use serde_json::Value;

use super::CallOutcome;
use super::output::fault;
use super::runner::RawFault;
use crate::drive::secret::Vault;
use loopctl_engine::event::ToolResult;
use loopctl_engine::server_question::{AskingServer, MAX_ROUNDS, ServerQuestion};
use loopctl_lang::program::Tool;

/// What a server gave in place of a result. It may still contain secrets.
#[derive(Debug, PartialEq)]
pub(super) struct RawQuestion {
    /// Who asks.
    pub by: AskingServer,
    /// What it gave.
    pub result: Value,
    /// How many of the answers before it the server knows.
    pub after: usize,
}

/// Whether a result is a question.
pub(super) fn is_question(result: &Value) -> bool {
    result.get("resultType").and_then(Value::as_str) == Some("input_required")
}

/// The failure of a call whose server asks more than it may, or what it may not.
fn refused(by: &AskingServer, why: &str) -> RawFault {
    let AskingServer { mcp_server, tool } = by;
    let class = format!("server {mcp_server}: `{tool}` asks for more before it continues, and is not answered: {why}");
    RawFault::from(fault(class, ""))
}

/// What is played for the tool of a server: a result that asks is a question, as that of the server would be, and one that its pinned
/// schema does not describe fails the call.
pub(super) fn played(tool: &Tool, value: Value) -> Result<Value, RawFault> {
    let Some(served) = tool.served() else { return Ok(value) };
    if !is_question(&value) {
        let undescribed = served.output.as_ref().and_then(|schema| schema.faults(&value).into_iter().next());
        return match undescribed {
            Some(wrong) => {
                let at = if wrong.path.is_empty() { String::new() } else { format!(" (at `{}`)", wrong.path) };
                let class = format!(
                    "the result that is played for `{}` is not what its pinned output schema describes: {}{at}",
                    served.name, wrong.message
                );
                Err(RawFault::from(fault(class, "")).sent())
            }
            None => Ok(value),
        };
    }
    Err(RawQuestion::fault(AskingServer { mcp_server: served.server.clone(), tool: served.name.clone() }, value))
}

impl RawQuestion {
    /// The failure of a call that asks, where nobody can be asked.
    pub fn fault(by: AskingServer, result: Value) -> RawFault {
        let AskingServer { mcp_server, tool } = &by;
        let class =
            format!("server {mcp_server}: `{tool}` asks for more before it continues, and nobody answers it here");
        let asks = Some(Box::new(Self { by, result, after: 0 }));
        RawFault { asks, ..RawFault::from(fault(class, "")) }
    }

    /// The question that a run waits with.
    ///
    /// # Errors
    /// Why the call fails instead.
    pub fn asked(self, vault: &Vault) -> Result<ServerQuestion, RawFault> {
        let Self { by, result, after } = self;
        let state = result.get("requestState").cloned();
        let hidden = vault.scrub_value(result);
        // It can't be sent back with a secret hidden in it, and no journal has it with one.
        if hidden.get("requestState") != state.as_ref() {
            return Err(refused(&by, "what it wants back contains a secret"));
        }
        let question = ServerQuestion::of(by.clone(), &hidden).map_err(|why| refused(&by, &why))?;
        Ok(ServerQuestion { after, ..question })
    }
}

impl CallOutcome {
    /// The question that the call waits with, if its server may ask one more; `asked`: how often it did before. Else the call has
    /// failed.
    pub fn take_question(&mut self, asked: u32) -> Option<ServerQuestion> {
        let question = self.asks.take()?;
        if usize::try_from(asked).unwrap_or(usize::MAX) < MAX_ROUNDS {
            return Some(*question);
        }
        let refused = refused(&question.by, &format!("it has asked {MAX_ROUNDS} times"));
        self.result = ToolResult::Failed(refused.fault);
        None
    }
}
