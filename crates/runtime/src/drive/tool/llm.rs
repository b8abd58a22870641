//! `llm` actions: a question to a model, whose text is the result.

use std::sync::Arc;

use serde_json::Value;

use super::output::{fault, shortened};
use super::runner::{RawFault, RawOutcome, ToolRunner, wrong_kind};
use crate::drive::future::BoxFuture;
use crate::drive::model::{self, Ask, ModelClient, Models, RetriedAttempt, ScriptPlayer, Wire};
use crate::drive::retry::{self, Transient};
use crate::drive::secret::Vault;
use crate::drive::tool::call::{Spent, ToolCall};
use loopctl_engine::budget;
use loopctl_engine::conversation::{Conversation, Role, estimated_tokens};
use loopctl_engine::dialect;
use loopctl_engine::event::{FailedAttempt, Finish, ModelFault, ModelFaultCode, Reply, Tokens, ToolFault};
use loopctl_engine::written_answer::written_answer;
use loopctl_lang::language::Action;
use loopctl_lang::language::action::LlmAction;
use loopctl_lang::language::project::Price;
use loopctl_lang::language::react::Retry;
use loopctl_lang::program::answer_form::AnswerForm;
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::template::Template;
use loopctl_lang::program::{TemplatedAction, Tool, ToolKind};

/// An `llm` action, compiled.
#[derive(Clone, Copy)]
pub(super) struct LlmTool<'t> {
    action: &'t LlmAction,
    template: &'t Template,
    /// What its answer must be.
    answer: Option<&'t AnswerForm>,
}

/// The model that an `llm` action names; none for an action that asks the model of its run, and for other tools.
pub(in crate::drive) fn model_of(tool: &Tool) -> Option<&str> {
    LlmTool::of(tool)?.action.model.as_deref()
}

impl<'t> LlmTool<'t> {
    /// That of a tool; none for the other kinds.
    pub(super) fn of(tool: &'t Tool) -> Option<Self> {
        match &tool.kind {
            ToolKind::Action(compiled @ TemplatedAction { action: Action::Llm(action), .. }) => {
                Some(Self { action, template: compiled.template("/template")?, answer: compiled.answer.as_ref() })
            }
            _ => None,
        }
    }
}

/// Makes the calls of `llm` actions.
pub(super) struct LlmRunner {
    models: Arc<Models>,
    vault: Arc<Vault>,
    /// Whether a script plays the models: its replies belong to the run itself, and a tool that took one would
    /// shift the others.
    is_scripted: bool,
}

impl LlmRunner {
    pub(super) fn new(models: &Arc<Models>, vault: &Arc<Vault>) -> Self {
        Self { models: Arc::clone(models), vault: Arc::clone(vault), is_scripted: false }
    }

    /// A script plays the models: from now on no call asks one.
    pub(super) fn refuse_calls(&mut self) {
        self.is_scripted = true;
    }

    /// Makes a call whose model is played from `position` on.
    pub(super) async fn make_played(
        &self,
        tool: LlmTool<'_>,
        call: &ToolCall<'_>,
        player: &Arc<ScriptPlayer>,
        position: &mut usize,
    ) -> RawOutcome {
        let conversation = match question(tool, &call.scope(&self.vault)) {
            Ok(conversation) => conversation,
            Err(fault) => return Err(fault).into(),
        };
        let model = self.models.played(tool.action.model.as_deref().unwrap_or(call.model), player);
        let mut wire = Wire::default();
        wire.skip_replies(*position);
        let outcome = ask(tool, call, &conversation, AskedModel { model, wire: &mut wire, vault: &self.vault }).await;
        *position = wire.used_replies();
        outcome
    }

    async fn make(&self, tool: LlmTool<'_>, call: &ToolCall<'_>) -> RawOutcome {
        if self.is_scripted {
            let why = "name the tool under `tools` in the script";
            return Err(fault("the script does not answer for this tool", why)).into();
        }
        let question = question(tool, &call.scope(&self.vault));
        match question {
            Ok(conversation) => {
                let model = self.models.get(Some(tool.action.model.as_deref().unwrap_or(call.model)));
                let mut wire = Wire::default();
                match model {
                    Ok(model) => {
                        let asked = AskedModel { model, wire: &mut wire, vault: &self.vault };
                        ask(tool, call, &conversation, asked).await
                    }
                    Err(why) => Err(fault("model not available", why)).into(),
                }
            }
            Err(fault) => Err(fault).into(),
        }
    }
}

impl ToolRunner for LlmRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match LlmTool::of(tool) {
            Some(llm) => Box::pin(self.make(llm, call)),
            None => wrong_kind(tool),
        }
    }
}

/// The question: the rendered template as the only message. It is rendered without secrets: a prompt never
/// contains one.
///
/// # Errors
/// When the template lacks a value.
fn question(tool: LlmTool<'_>, scope: &Scope<'_>) -> Result<Conversation, ToolFault> {
    let scope = Scope { secrets: None, json: scope.json.beside(), ..*scope };
    let mut question =
        tool.template.render(&scope).map_err(|missing| fault("a value is missing or can't be used", missing.why))?;
    if let Some(form) = tool.answer {
        question.push_str("\n\n");
        question.push_str(&form.instructions());
    }
    let mut conversation = Conversation::default();
    conversation.push(Role::User, question);
    Ok(conversation)
}

/// A model, and how far a script of it is.
struct AskedModel<'a> {
    model: Arc<ModelClient>,
    wire: &'a mut Wire,
    vault: &'a Vault,
}

/// Asks the model of the action, or of the run. Returns its text and the usage, with that of failed attempts.
async fn ask(tool: LlmTool<'_>, call: &ToolCall<'_>, conversation: &Conversation, asked: AskedModel<'_>) -> RawOutcome {
    let AskedModel { model, wire, vault } = asked;
    let enough = |failed: &[FailedAttempt]| budget::uses_up(call.left, failed);
    let after_empty;
    let mut ask = Ask {
        answer: tool.answer.and_then(|form| form.forms.as_ref()),
        temperature: tool.action.temperature,
        enough: Some(&enough),
        wait: call.wait,
        wants_text: true,
        ..Ask::lone(conversation, max_tokens(tool, &model))
    };
    let price = model.facts.price;
    // The run's model can do something else; the deadline of the call is short.
    let retry = retry::brief(&tool.action.retry.clone().unwrap_or_default());
    let models = [Arc::clone(&model)];
    let used = |attempt: &FailedAttempt| {
        if let Some(wait) = call.wait {
            wait.failed(spent(std::slice::from_ref(attempt), None, price));
        }
    };
    let again = |reason: &str, delay_ms: u64| {
        if let Some(wait) = call.wait {
            wait.keep_attempt(shortened(vault.scrub_cut(reason.to_owned())), delay_ms);
        }
    };
    let retried = |attempt: RetriedAttempt| {
        used(&attempt.kept);
        again(&attempt.reason, attempt.delay_ms);
        let (run_id, at, model) = (call.run_id, call.at, model.facts.name.as_str());
        let (number, delay_ms, class) = (attempt.number, attempt.delay_ms, &attempt.class);
        tracing::warn!(
            run_id,
            "loop" = call.loop_name,
            at,
            model,
            attempt = number,
            delay_ms,
            "the model failed and is asked again: {class}"
        );
        if let Some(wait) = call.wait {
            wait.is_asked_again(attempt.shown(model.to_owned()));
        }
    };
    let mut answer = model::ask(&models, &ask, wire, &retry, &retried).await;
    let mut failed = Vec::new();
    if let Some(refused) = answer.as_ref().err().filter(|fault| fault.code == ModelFaultCode::ContextExceeded)
        && max_tokens(tool, &model) < ask.max_tokens
    {
        // The question and a shorter reply may fit into the window that the refusal showed.
        failed.clone_from(&refused.failed);
        // Those before it were made again.
        if let Some(last) = failed.last() {
            used(last);
            again(&last.reason, 0);
        }
        ask.max_tokens = max_tokens(tool, &model);
        answer = model::ask(&models, &ask, wire, &retry, &retried).await;
    }
    if let Ok(reply) = &mut answer
        && let Some(why) = no_answer(tool, reply)
    {
        failed.append(&mut reply.attempts);
        let empty = uncounted(reply, conversation.bytes);
        used(&empty);
        failed.push(empty);
        if !enough(&failed) {
            again(why, 0);
            after_empty = asking_for_an_answer(conversation, reply);
            ask.conversation = &after_empty;
            ask.empty_is_answered = true;
            answer = model::ask(&models, &ask, wire, &retry, &retried).await;
        }
    }
    let mut asked =
        AskedQuestion { bytes: conversation.bytes, max_tokens: ask.max_tokens, price, form: tool.answer, unread: None };
    if let Some(form) = tool.answer {
        let correction =
            Correction { form, models: &models, ask, retry: &retry, used: &used, retried: &retried, again: &again };
        correction.correct(&mut answer, &mut failed, wire, &mut asked).await;
    }
    outcome(answer, failed, &asked)
}

const EMPTY: &str = "the model's answer was empty";
const WRITTEN_CALL: &str = "the model's answer was a tool call written as text, and no tool was offered";

/// Why a reply is no answer at all. One that must match a schema is held against it.
fn no_answer(tool: LlmTool<'_>, reply: &Reply) -> Option<&'static str> {
    match reply {
        reply if says_nothing(reply) => Some(EMPTY),
        reply if tool.answer.is_none() && is_written_call(reply) => Some(WRITTEN_CALL),
        _ => None,
    }
}

/// Whether a reply is a call that the model writes as text.
fn is_written_call(reply: &Reply) -> bool {
    reply.finish == Finish::Stop && reply.refusal.is_none() && dialect::is_call_alone(reply)
}

/// Whether a reply has no text, and nothing says why: one that calls a tool has none, because none is offered.
fn says_nothing(reply: &Reply) -> bool {
    reply.finish == Finish::Stop && reply.refusal.is_none() && reply.text.trim().is_empty()
}

/// The most replies to a question whose answer must match a schema: the third that does not fails the call, as in a loop.
const MAX_ANSWERS: u32 = 3;
/// The most characters of an answer that did not match which the model reads again.
const MAX_REPEATED_CHARACTERS: usize = 4_000;

/// A question whose answer must match a schema: a model that gave another one reads what is wrong with it.
struct Correction<'a> {
    form: &'a AnswerForm,
    models: &'a [Arc<ModelClient>],
    ask: Ask<'a>,
    retry: &'a Retry,
    /// Counts an attempt.
    used: &'a (dyn Fn(&FailedAttempt) + Send + Sync),
    retried: &'a (dyn Fn(RetriedAttempt) + Send + Sync),
    /// Keeps why the model is asked again, for the trace.
    again: &'a (dyn Fn(&str, u64) + Send + Sync),
}

impl Correction<'_> {
    /// Asks again while the answer does not match, as often as the loop does.
    async fn correct(
        &self,
        answer: &mut Result<Reply, ModelFault>,
        failed: &mut Vec<FailedAttempt>,
        wire: &mut Wire,
        asked: &mut AskedQuestion<'_>,
    ) {
        let mut talk = self.ask.conversation.clone();
        let mut replies = 1;
        while let Ok(reply) = answer
            && reply.finish == Finish::Stop
            && !says_nothing(reply)
            && let Err(why) = written_answer(&self.form.schema, &reply.text)
        {
            failed.append(&mut reply.attempts);
            let wrong = uncounted(reply, talk.bytes);
            (self.used)(&wrong);
            failed.push(wrong);
            if replies == MAX_ANSWERS || self.ask.enough.is_some_and(|enough| enough(failed)) {
                asked.unread = Some(why);
                return;
            }
            replies += 1;
            (self.again)(&format!("the model's answer does not match `answer_schema`: {why}"), 0);
            talk.push(Role::Assistant, repeated(reply));
            talk.push(
                Role::User,
                format!("Your reply was not taken: {why}\nReply again, with one JSON value and nothing else."),
            );
            asked.bytes = talk.bytes;
            let ask = Ask { conversation: &talk, ..self.ask };
            *answer = model::ask(self.models, &ask, wire, self.retry, self.retried).await;
        }
    }
}

/// A question that a model was asked.
struct AskedQuestion<'a> {
    /// Its length.
    bytes: usize,
    /// The most tokens of its reply.
    max_tokens: u32,
    price: Option<Price>,
    /// What its answer must be.
    form: Option<&'a AnswerForm>,
    /// Why the last answer was not taken, which is counted among the attempts.
    unread: Option<String>,
}

/// What the action gives. `failed`: the attempts before the last request.
fn outcome(answer: Result<Reply, ModelFault>, mut failed: Vec<FailedAttempt>, asked: &AskedQuestion<'_>) -> RawOutcome {
    let price = asked.price;
    match answer {
        Ok(reply) if let Some(why) = &asked.unread => {
            let class = format!("the model's answer does not match `answer_schema`: {why}");
            let result = Err(fault(class, reply.text).into());
            RawOutcome { result, spent: spent(&failed, None, price) }
        }
        Ok(reply) if says_nothing(&reply) => {
            let called =
                reply.calls.first().map(|call| format!(": it called `{}`, and no tool was offered", call.name));
            let class = format!("{EMPTY}{}", called.unwrap_or_default());
            let result = Err(fault(class, "").into());
            RawOutcome { result, spent: spent(&failed, None, price) }
        }
        Ok(reply) if asked.form.is_none() && is_written_call(&reply) => {
            let last = ReplyUsage { counted: reply.usage, asked: asked.bytes, text: written(&reply) };
            failed.extend(reply.attempts);
            let spent = spent(&failed, Some(last), price);
            RawOutcome { result: Err(fault(WRITTEN_CALL, reply.text).into()), spent }
        }
        Ok(reply) => {
            let usage = ReplyUsage { counted: reply.usage, asked: asked.bytes, text: written(&reply) };
            failed.extend(reply.attempts);
            let spent = spent(&failed, Some(usage), price);
            let result = match reply.finish {
                Finish::Filtered => {
                    let words = reply.refusal.unwrap_or_default();
                    let more = if reply.text.trim() == &*words { String::new() } else { reply.text };
                    Err(fault(refused(&words), more))
                }
                Finish::Length => {
                    let most = asked.max_tokens;
                    let class = format!(
                        "the model's answer was cut off after {most} tokens: raise `max_tokens` of the action, or ask for less"
                    );
                    Err(fault(class, reply.text))
                }
                Finish::Stop => match asked.form {
                    Some(form) => written_answer(&form.schema, &reply.text).map_err(|why| fault(why, reply.text)),
                    None => Ok(Value::String(reply.text)),
                },
            };
            RawOutcome { result: result.map_err(Into::into), spent }
        }
        Err(error) => {
            failed.extend(error.failed);
            // The model was asked again already; later it may answer.
            let transient = error.retryable.then(Transient::default);
            let fault = RawFault { transient, ..RawFault::from(fault(class(error.code), error.message)) };
            RawOutcome { result: Err(fault), spent: spent(&failed, None, price) }
        }
    }
}

/// The value that a script gives in the place of an answer: it is held against the schema as the answer of a model is.
///
/// # Errors
/// Why a model's answer would not be taken.
pub(super) fn scripted_answer(tool: &Tool, given: Value) -> Result<Value, ToolFault> {
    let Some(form) = LlmTool::of(tool).and_then(|llm| llm.answer) else { return Ok(given) };
    let text = given.as_str().map_or_else(|| given.to_string(), str::to_owned);
    let wrong = |why| fault(format!("the answer of the script does not match `answer_schema`: {why}"), "");
    written_answer(&form.schema, &text).map_err(wrong)
}

/// The attempt whose reply was empty, or not taken: it is paid for, whether it was counted or not.
fn uncounted(reply: &Reply, asked: usize) -> FailedAttempt {
    let (usage, estimated) = ReplyUsage { counted: reply.usage, asked, text: written(reply) }.tokens();
    FailedAttempt { usage: Some(usage), estimated, ..FailedAttempt::default() }
}

/// The bytes of a reply's text, and of the reasoning that can be read.
fn written(reply: &Reply) -> usize {
    let thought = reply.reasoning.as_ref().map_or(0, |reasoning| reasoning.text.len());
    reply.text.len().saturating_add(thought)
}

/// The question, behind it a reply that is no answer, and a request for another one.
fn asking_for_an_answer(question: &Conversation, reply: &Reply) -> Conversation {
    let mut asked = question.clone();
    if says_nothing(reply) {
        asked.push(Role::Assistant, "(nothing)");
        asked.push(Role::User, "Your reply was empty: it has no text. Reply now.");
    } else {
        asked.push(Role::Assistant, repeated(reply));
        asked.push(
            Role::User,
            "Your reply is a tool call written as text. There are no tools here, and nothing was called. Reply with what \
             was asked for.",
        );
    }
    asked
}

/// What the model reads again of a reply that was not taken.
fn repeated(reply: &Reply) -> String {
    reply.text.chars().take(MAX_REPEATED_CHARACTERS).collect()
}

/// What a reply is that was refused. `words`: what the provider says of it.
fn refused(words: &str) -> String {
    let class = "the model or its provider refused to answer";
    match words {
        "" => class.to_owned(),
        words => format!("{class}: {words}"),
    }
}

/// The most tokens of the reply: of a window that the model's server showed, half at most, as in a loop.
fn max_tokens(tool: LlmTool<'_>, model: &ModelClient) -> u32 {
    let half = model.known_facts().learned_tokens.map(|window| u32::try_from(window / 2).unwrap_or(u32::MAX));
    half.map_or(tool.action.max_tokens, |half| tool.action.max_tokens.min(half).max(1))
}

/// A reply's usage, and the bytes for an estimate when the provider did not count.
struct ReplyUsage {
    counted: Option<Tokens>,
    asked: usize,
    text: usize,
}

impl ReplyUsage {
    /// Its tokens, and whether some are an estimate.
    fn tokens(&self) -> (Tokens, bool) {
        let (input, output) = (estimated_tokens(self.asked), estimated_tokens(self.text));
        Tokens::of_reply(self.counted, Tokens { input, output, ..Tokens::default() })
    }
}

fn spent(attempts: &[FailedAttempt], last: Option<ReplyUsage>, price: Option<Price>) -> Spent {
    let (last, estimated) = last.map(|usage| usage.tokens()).unzip();
    let estimated = estimated.unwrap_or(false) || attempts.iter().any(|attempt| attempt.estimated);
    let at_most = attempts.iter().any(|attempt| attempt.at_most);
    let all = attempts.iter().filter_map(|attempt| attempt.usage).chain(last);
    let tokens = all.reduce(Tokens::plus);
    let cost_usd = tokens.zip(price).map(|(tokens, price)| budget::cost_usd(tokens, price));
    Spent { tokens, cost_usd, estimated, at_most }
}

fn class(code: ModelFaultCode) -> &'static str {
    match code {
        ModelFaultCode::ModelUnreachable => "model not reachable",
        ModelFaultCode::ModelRefused => "model refused the request",
        ModelFaultCode::ContextExceeded => "question too long for the model",
        ModelFaultCode::ModelProtocol => "model gave no readable answer",
        ModelFaultCode::ScriptExhausted => "script has no more replies",
        ModelFaultCode::SpendingLimit => "a spending limit of the project is reached",
    }
}
