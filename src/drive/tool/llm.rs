//! `llm` actions: a question to a model, whose text is the result.

use serde_json::Value;

use super::Spent;
use super::output::fault;
use crate::drive::model::{self, Ask, Models, Wire};
use crate::engine::budget;
use crate::engine::conversation::{Conversation, Role, estimated_tokens};
use crate::engine::event::{Allowance, FailedAttempt, Finish, ModelFaultCode, Tokens, ToolFault};
use crate::language::project::Price;
use crate::language::react::Retry;
use crate::program::LlmTool;
use crate::program::reference::Scope;

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

/// Asks the action's model, or the run's, and gives its text and what that used, failed attempts too.
pub(super) async fn ask(
    tool: &LlmTool,
    (run_model, left): (&str, Allowance),
    conversation: &Conversation,
    models: &Models,
) -> (Result<Value, ToolFault>, Spent) {
    let model = match models.get(Some(tool.action.model.as_deref().unwrap_or(run_model))) {
        Ok(model) => model,
        Err(why) => return (Err(fault("model not available", why)), Spent::default()),
    };
    let enough = |failed: &[FailedAttempt]| budget::uses_up(left, failed);
    let ask = Ask {
        conversation,
        program: None,
        max_tokens: tool.action.max_tokens,
        temperature: tool.action.temperature,
        stop: &[],
        deltas: None,
        enough: Some(&enough),
    };
    let price = model.facts.price;
    let mut wire = Wire::default();
    let retry: Retry = tool.action.retry.clone().unwrap_or_default();
    match model::ask(&[model], &ask, &mut wire, &retry, &|_| {}).await {
        Ok(reply) => {
            let said = Said { reply: reply.usage, asked: conversation.bytes, text: reply.text.len() };
            let spent = spent(&reply.attempts, Some(said), price);
            match reply.finish {
                Finish::Filtered => (Err(fault("the model's answer was kept back", reply.text)), spent),
                _ => (Ok(Value::String(reply.text)), spent),
            }
        }
        Err(error) => (Err(fault(class(error.code), error.message)), spent(&error.failed, None, price)),
    }
}

/// A reply's usage, and the bytes that an estimate goes by when the provider did not count.
struct Said {
    reply: Option<Tokens>,
    asked: usize,
    text: usize,
}

fn spent(attempts: &[FailedAttempt], said: Option<Said>, price: Option<Price>) -> Spent {
    let estimated = said.as_ref().is_some_and(|said| said.reply.is_none());
    let last = said.map(|said| {
        let estimate = || Tokens { input: estimated_tokens(said.asked), output: estimated_tokens(said.text) };
        said.reply.unwrap_or_else(estimate)
    });
    let all = attempts.iter().filter_map(|attempt| attempt.usage).chain(last);
    let tokens = all.reduce(|one, other| Tokens {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
    });
    Spent { tokens, cost_usd: tokens.zip(price).map(|(tokens, price)| budget::cost_usd(tokens, price)), estimated }
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
