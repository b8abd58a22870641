//! `llm` actions: a question to a model, whose text is the result.

use serde_json::Value;

use super::output::fault;
use crate::compile::program::LlmTool;
use crate::compile::reference::Scope;
use crate::drive::model::{self, Ask, Models, Wire};
use crate::engine::conversation::{Conversation, Role};
use crate::engine::event::{Finish, ModelFaultCode, Tokens, ToolFault};
use crate::language::react::Retry;

/// The question: the rendered template as the one message. It is rendered without secrets: a
/// prompt never holds one.
///
/// # Errors
/// When the template lacks a value.
pub(super) fn prepare(tool: &LlmTool, scope: &Scope<'_>) -> Result<Conversation, ToolFault> {
    let scope = Scope { secrets: None, ..*scope };
    let question =
        tool.template.render(&scope).map_err(|missing| fault("a value is missing or can't be used", missing.0))?;
    let mut conversation = Conversation::default();
    conversation.push(Role::User, question);
    Ok(conversation)
}

/// Asks the action's model, or the run's, and gives its text and the tokens that it used.
pub(super) async fn ask(
    tool: &LlmTool,
    run_model: &str,
    conversation: &Conversation,
    models: &Models,
) -> (Result<Value, ToolFault>, Option<Tokens>) {
    let model = match models.get(Some(tool.action.model.as_deref().unwrap_or(run_model))) {
        Ok(model) => model,
        Err(why) => return (Err(fault("model not available", why)), None),
    };
    let ask = Ask {
        conversation,
        program: None,
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
