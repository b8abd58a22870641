//! `llm` actions: a question to a model, whose text is the result.

use serde_json::Value;

use super::ToolCall;
use super::output::fault;
use crate::compile::program::LlmTool;
use crate::compile::reference::Scope;
use crate::drive::model::{self, Ask, Models, Wire};
use crate::engine::conversation::{Conversation, Role};
use crate::engine::event::{Finish, ModelFaultCode, Tokens, ToolFault};
use crate::language::react::Retry;

/// Asks. The template is rendered without secrets: a prompt never holds one.
///
/// # Errors
/// When the template lacks a value, or no model answers; with the tokens used until then.
pub(super) async fn call(
    tool: &LlmTool,
    call: &ToolCall<'_>,
    scope: &Scope<'_>,
    models: &Models,
) -> (Result<Value, ToolFault>, Option<Tokens>) {
    let scope = Scope { secrets: None, ..*scope };
    let question = match tool.template.render(&scope) {
        Ok(question) => question,
        Err(missing) => return (Err(fault("a value is missing", missing.0)), None),
    };
    let name = tool.action.model.as_deref().unwrap_or(call.model);
    let model = match models.get(Some(name)) {
        Ok(model) => model,
        Err(why) => return (Err(fault("model not available", why)), None),
    };
    let mut conversation = Conversation::default();
    conversation.push(Role::User, question);
    let ask = Ask {
        conversation: &conversation,
        max_tokens: tool.action.max_tokens,
        temperature: tool.action.temperature,
        stop: &[],
        deltas: None,
    };
    let mut wire = Wire::default();
    match model::ask(&[model], &ask, &mut wire, &Retry::default(), &|_| {}).await {
        Ok(reply) if reply.finish == Finish::Filtered => {
            (Err(fault("the model's answer was kept back", reply.text)), reply.usage)
        }
        Ok(reply) => (Ok(Value::String(reply.text)), reply.usage),
        Err(error) => (Err(fault(class(error.code), error.message)), None),
    }
}

fn class(code: ModelFaultCode) -> &'static str {
    match code {
        ModelFaultCode::ModelUnreachable => "model not reachable",
        ModelFaultCode::ModelRefused => "model refused the request",
        ModelFaultCode::ContextExceeded => "question too long for the model",
        ModelFaultCode::ModelProtocol => "model gave no readable answer",
        ModelFaultCode::ScriptExhausted => "script has no more replies",
    }
}
