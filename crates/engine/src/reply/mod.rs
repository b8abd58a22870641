//! The model's reply: counts it, reads it, and makes it a turn.

pub(crate) mod kept_reply;
pub mod refusal;
mod spending_limit;
pub(crate) mod usage;
pub mod window;

use serde_json::Value;

use self::refusal::RefusalCause;
use super::budget;
use super::builtin;
use super::compaction::push_tight;
use super::decision::awaited_approval::AwaitedApproval;
use super::dialect::{self, Reading, Wanted};
use super::effect::{Effect, Effects};
use super::event::{CallId, ModelFault, ModelFaultCode, Reasoning, Reply, SaidCall, ToolFault, ToolResult};
use super::json::Json;
use super::limit::{self, LengthRefusal};
use super::next::Next;
use super::operation::{AskedFor, Call, Progress};
use super::outcome::{Answer, Ending, Limit, Pause, RunError, Status, Termination};
use super::question::Question;
use super::state::{LoopState, Phase, StoredEntry, Turn};
use super::timestamp::rfc3339;
use super::turn;
use super::turn_policy::TurnPolicy;
use super::validate;
use loopctl_lang::language::react::OnModelOutage;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::builtin::COMPLETE;
use loopctl_lang::program::{Builtin, LoopProgram, ToolKind};

/// How many unreadable replies in a row end a run.
const INVALID_IN_A_ROW: u32 = 3;
/// The refusal in a row from which on the tools are named and a turn is shown: a model that does not vary what it says
/// must not read the same words again.
const EXAMPLE_FROM: u32 = 2;

/// Applies a reply.
pub(super) fn take(
    program: &LoopProgram,
    state: &mut LoopState,
    mut reply: Reply,
    forced: Option<Limit>,
    effects: &mut Effects,
) -> Next {
    budget::tried(program, state, std::mem::take(&mut reply.attempts));
    state.counters.iterations += 1;
    state.last_reply.thinking_ms = reply.duration_ms;
    state.last_reply.waited_ms = reply.waited_ms;
    state.last_reply.finish = reply.finish;
    state.last_reply.response_model = reply.response_model.take();
    state.last_reply.time_to_first_token_ms = reply.time_to_first_token_ms.map(u64::from);
    state.watch.too_long = 0;
    state.watch.paid.end();
    window::learn(state, reply.own_window(), None);
    let sent = state.conversation.bytes;
    if let Some(usage) = reply.usage {
        state.counters.estimator.counted(usage.input, sent);
    }
    let usage = usage::of_reply(program, state, &reply, sent);
    state.counters.window.0 = usage.input.saturating_add(usage.output);
    state.counters.is_window_counted = reply.usage.is_some_and(|counted| counted.input > 0 && counted.output > 0);
    let dialect = program.properties.dialect;
    let (mut reading, counts) = read_counted(program, state, &reply);
    let cause = RefusalCause::of(&reply, state.header.knows_empty_replies());
    if let Some(words) = reply.refusal.take() {
        state.watch.refusal = words;
    }
    let reasoning = kept_reply::reasoning(reply.reasoning, reading.thought());
    let most = usize::try_from(program.properties.max_tool_calls_per_turn).unwrap_or(usize::MAX);
    too_many(&mut reading, most);
    let mut calls = reply.calls;
    if matches!(reading, Reading::Unreadable { .. }) {
        calls.truncate(most);
    }
    // A last reply that is no answer is refused too.
    let shown = if forced.is_some() || matches!(reading, Reading::Unreadable { .. }) {
        kept_reply::shown(&reply.text, &calls)
    } else {
        String::new()
    };
    let made = MadeReply { text: reply.text, calls, reasoning, counts }.kept_for(cause);
    keep(program, state, &reading, made);
    let mut new = Turn {
        iteration: state.counters.iterations,
        thought: String::new(),
        usage: Some(usage),
        at_ms: state.now.wall_ms,
        thinking_ms: reply.duration_ms,
        calls: Vec::new(),
    };
    let refused = RefusedReply { why: String::new(), text: shown, cause };
    match reading {
        Reading::Calls { thought, mut calls } => {
            state.watch.invalid_in_a_row = 0;
            new.thought = thought;
            if dialect::is_native(dialect) {
                calls.iter_mut().for_each(|wanted| with_own_names(program, wanted));
            }
            if let Some(limit) = forced {
                return last_word(program, state, new, FinalReply { calls, limit, refused });
            }
            turn(program, state, new, calls, effects)
        }
        Reading::Answer { thought, answer } => {
            state.watch.invalid_in_a_row = 0;
            new.thought = thought;
            let call = Wanted::complete(answer_of(program, state, answer));
            match forced {
                Some(limit) => last_word(program, state, new, FinalReply { calls: vec![call], limit, refused }),
                None => turn(program, state, new, vec![call], effects),
            }
        }
        Reading::Unreadable { thought, why } => {
            new.thought = thought;
            unreadable(program, state, new, RefusedReply { why, ..refused }, forced)
        }
    }
}

/// What a model wrote.
struct MadeReply {
    text: String,
    calls: Vec<SaidCall>,
    reasoning: Option<Box<Reasoning>>,
    /// How many bytes of the text count.
    counts: usize,
}

impl MadeReply {
    /// What of it stays: nothing of a refused one, as a model that reads what was refused is refused again; and what an empty
    /// one thought may need its text.
    fn kept_for(self, cause: RefusalCause) -> Self {
        match cause {
            RefusalCause::Refused | RefusalCause::Empty => {
                Self { text: String::new(), calls: Vec::new(), reasoning: None, counts: 0 }
            }
            RefusalCause::Unreadable | RefusalCause::CutOff | RefusalCause::CutOffThinking => self,
        }
    }
}

/// Adds a reply to the conversation, in the form in which it stays there.
fn keep(program: &LoopProgram, state: &mut LoopState, reading: &Reading, made: MadeReply) {
    let MadeReply { text, calls, reasoning, counts } = made;
    let dialect = program.properties.dialect;
    let has_native = !calls.is_empty() && state.header.knows_written_calls();
    let calls = dialect::kept_calls(dialect, &state.conversation, calls, &program.called, state.counters.iterations);
    let said = kept_reply::as_text(dialect, has_native, reading);
    // What a provider sealed may be bound to calls that are text now.
    let reasoning = reasoning.filter(|_| said.is_none());
    let is_unreadable = matches!(reading, Reading::Unreadable { .. });
    let text = said.unwrap_or_else(|| kept_reply::remembered(text, counts, is_unreadable, calls.is_empty()));
    state.conversation.push_reply(text, calls, reasoning);
    state.counters.window.1 = state.conversation.bytes;
}

/// Gives a native call the names that the document has: those of its tool and of its parameters.
fn with_own_names(program: &LoopProgram, wanted: &mut Wanted) {
    wanted.name = program.called.back(&wanted.name).to_owned();
    let input = std::mem::take(&mut wanted.input);
    wanted.input = program.offered_tools().own_input(program, &wanted.name, input);
}

/// A reply that could not be read.
struct RefusedReply {
    /// Why, in a sentence for the model.
    why: String,
    /// What it said, cut.
    text: String,
    /// Why it could not be read, for people.
    cause: RefusalCause,
}

/// The reply to the last call of `on_limit: answer`.
struct FinalReply {
    calls: Vec<Wanted>,
    limit: Limit,
    /// What is kept of it if it is no answer.
    refused: RefusedReply,
}

/// What a reply means, and how many of its text's bytes count. One that could not be read is read again with U+FFFD in place of
/// halves of characters.
fn read_counted(program: &LoopProgram, state: &LoopState, reply: &Reply) -> (Reading, usize) {
    let dialect = program.properties.dialect;
    let judged = Some(program).filter(|_| state.header.knows_written_calls());
    let (reading, counts) = dialect::read_counted(dialect, reply, judged);
    let is_read = match &reading {
        Reading::Calls { calls, .. } => calls.iter().all(|call| call.unread.is_none()),
        Reading::Answer { .. } => true,
        Reading::Unreadable { .. } => false,
    };
    match json_text::repaired(&reply.text).filter(|_| !is_read && state.header.reads_all_fences()) {
        Some(text) => dialect::read_counted(dialect, &Reply { text, ..reply.clone() }, judged),
        None => (reading, counts),
    }
}

/// Refuses a turn with too many calls as a whole.
fn too_many(reading: &mut Reading, most: usize) {
    if let Reading::Calls { thought, calls } = reading
        && calls.len() > most
    {
        let why = format!(
            "Your reply makes {} calls in one turn, and nothing was called: at most {most} are allowed. Make the first \
             ones now, and the others in later turns.",
            calls.len()
        );
        *reading = Reading::Unreadable { thought: std::mem::take(thought), why };
    }
}

/// An answer that the dialect has as text, in the form that the loop needs: if the text does not match
/// `answer_schema`, it is parsed as JSON.
fn answer_of(program: &LoopProgram, state: &LoopState, answer: Value) -> Value {
    match (&answer, &program.answer) {
        (Value::String(text), Some(schema)) if !schema.faults(&answer).is_empty() => {
            dialect::answer_json(text, state.header.reads_all_fences()).unwrap_or(answer)
        }
        _ => answer,
    }
}

/// The request to the model failed.
pub(super) fn failed(program: &LoopProgram, state: &mut LoopState, fault: ModelFault, forced: Option<Limit>) -> Next {
    let enough = budget::is_enough(program, state, &fault.failed);
    let own = fault.own_window();
    let refused = LengthRefusal { window: own, prompt: fault.prompt_tokens.filter(|_| own.is_some()) };
    let fault = usage::of_failure(program, state, fault);
    if let Some(limit) = &fault.spending_limit {
        return spending_limit::reached(state, limit, &fault.message, forced);
    }
    if fault.code == ModelFaultCode::ContextExceeded {
        return match forced {
            None => limit::too_long(program, state, refused),
            Some(limit) => limit::last_too_long(program, state, limit, refused),
        };
    }
    if enough {
        // No further attempt was made because of the budget, whatever the fault of the last one was.
        return match forced {
            None => Next::Limit(Limit::Budget),
            Some(limit) => limit::failed(program, state, limit),
        };
    }
    // A run that resumes by itself is not to pay again and again for replies that it does not get.
    if fault.retryable && !fault.paid_out && program.properties.on_model_outage == OnModelOutage::Pause {
        let question = format!("The model can't be reached: {}. Resume the run to ask it again.", fault.message);
        let pause = state.new_pause(Question::new(Termination::ModelError, question), Vec::new());
        return Next::Wait(Phase::Paused { pause: Box::new(Pause { forced, ..*pause }), turn: None });
    }
    let code = match fault.code {
        ModelFaultCode::ModelUnreachable => "model_unreachable",
        ModelFaultCode::ModelRefused => "model_refused",
        ModelFaultCode::ContextExceeded => "context",
        ModelFaultCode::ModelProtocol => "model_protocol",
        ModelFaultCode::ScriptExhausted => "script_exhausted",
        ModelFaultCode::SpendingLimit => spending_limit::CODE,
    };
    let error = RunError { code: code.to_owned(), message: fault.message, retryable: fault.retryable, step: None };
    Next::fail(state, Termination::ModelError, error)
}

/// Makes a turn from a readable reply: validates each call, runs the built-in tools at once, and requests the
/// others.
fn turn(
    program: &LoopProgram,
    state: &mut LoopState,
    mut new: Turn,
    calls: Vec<Wanted>,
    effects: &mut Effects,
) -> Next {
    let calls: Vec<Wanted> = calls.into_iter().map(|wanted| validate::meant(program, state, wanted)).collect();
    let policy = TurnPolicy::of(program, &calls);
    let mut ending = None;
    let count = calls.len();
    new.calls.reserve_exact(count);
    for (index, wanted) in calls.into_iter().enumerate() {
        let id = CallId { iteration: new.iteration, index: u32::try_from(index).unwrap_or(u32::MAX) };
        let allowed = validate::call(program, state, &wanted).and_then(|tool| policy.allows(tool).map(|()| tool));
        let progress = match allowed {
            Err(why) => Progress::done(ToolResult::failed(why)),
            Ok(tool) => match tool.kind {
                ToolKind::Builtin(which) => match builtin::run(program, state, which, &wanted.input, count) {
                    builtin::Done::Observed(result) => Progress::done(result),
                    builtin::Done::Remembered(result, key) => {
                        effects.push(Effect::Remember(key));
                        Progress::done(result)
                    }
                    builtin::Done::AnswerRefused(result) => {
                        state.watch.answers_refused += 1;
                        Progress::done(result)
                    }
                    builtin::Done::Completed(answer) => {
                        ending = Some(Completion { answer, id, wanted });
                        continue;
                    }
                    builtin::Done::AsksHuman => Progress::Requested,
                },
                _ if tool.spends() && budget::is_spent(program, state) => {
                    Progress::done(ToolResult::failed(turn::SPENT))
                }
                _ => {
                    *state.counters.calls.entry(wanted.name.clone()).or_default() += 1;
                    let now = rfc3339(state.now.wall_ms);
                    let by = state.header.call_rules(&program.head, None, &now);
                    match AwaitedApproval::of(&tool.approval, &wanted.input, &by) {
                        Some(awaited) => Progress::Asks(AskedFor::Approval(Box::new(awaited))),
                        None => Progress::Held,
                    }
                }
            },
        };
        new.calls.push(Call { progress, ..called(program, id, wanted, new.at_ms) });
    }
    if ending.is_none() {
        let is_refused = new.calls.iter().all(is_refused);
        kept_reply::shorten(program, state, &new.thought, &new.calls, is_refused);
    }
    match (ending, turn::question_of(program, &new)) {
        (Some(completion), _) => ended(program, state, new, completion, effects),
        (None, Some((call, question))) => turn::ask_human(state, new, call, question),
        (None, None) => Next::Settle(new),
    }
}

fn called(program: &LoopProgram, id: CallId, wanted: Wanted, at_ms: i64) -> Call {
    let Wanted { name, input, .. } = wanted;
    let tool = program.tool(&name);
    let is_subrun = tool.is_some_and(|tool| matches!(tool.kind, ToolKind::Loop(_)));
    let ask = tool.and_then(|tool| tool.approval.ask.clone());
    Call { is_subrun, ask, ..Call::new(id, name, input, at_ms) }
}

/// Whether a call of a new turn was refused: it is not made.
fn is_refused(call: &Call) -> bool {
    matches!(call.progress, Progress::Done { result: ToolResult::Failed(_), .. })
}

/// The call that ends the run.
struct Completion {
    answer: Answer,
    id: CallId,
    wanted: Wanted,
}

/// The run ends with an answer, unless one of the other calls of the turn failed.
fn ended(
    program: &LoopProgram,
    state: &mut LoopState,
    mut new: Turn,
    completion: Completion,
    effects: &mut Effects,
) -> Next {
    let Completion { answer, id, wanted } = completion;
    if new.calls.iter().any(is_refused) {
        let result = ToolResult::failed("the answer was not taken: another call of its turn failed");
        let progress = Progress::done(result);
        new.calls.push(Call { progress, ..called(program, id, wanted, new.at_ms) });
        new.calls.sort_by_key(|call| call.address);
        return Next::Settle(new);
    }
    if !new.calls.is_empty() {
        let thought = new.thought.clone();
        let before = Turn { calls: std::mem::take(&mut new.calls), thought, ..new.clone() };
        new.thought.clear();
        new.usage = None;
        turn::record(program, state, before, effects);
    }
    entry_of_answer(state, &new, &wanted);
    Next::end(Ending {
        answer: Some(answer),
        ..Ending::new(Status::Completed, Termination::Complete, state.now.wall_ms)
    })
}

/// The last call of `on_limit: answer`: only an answer counts.
fn last_word(program: &LoopProgram, state: &mut LoopState, new: Turn, reply: FinalReply) -> Next {
    let FinalReply { calls, limit, refused } = reply;
    let mut calls = calls.into_iter().filter(|wanted| wanted.name == COMPLETE);
    let only = calls.next().map(|wanted| validate::meant(program, state, wanted));
    if let (Some(wanted), None) = (only, calls.next())
        && let Ok(tool) = validate::call(program, state, &wanted)
        && let ToolKind::Builtin(Builtin::Complete) = tool.kind
        && let builtin::Done::Completed(answer) = builtin::run(program, state, Builtin::Complete, &wanted.input, 1)
    {
        entry_of_answer(state, &new, &wanted);
        return Next::end(Ending {
            answer: Some(answer),
            limit: Some(limit),
            ..Ending::new(Status::Completed, Termination::ForcedAnswer, state.now.wall_ms)
        });
    }
    let why = "the last reply gave no answer that could be taken".to_owned();
    note(state, new, RefusedReply { why, ..refused });
    limit::failed(program, state, limit)
}

/// A reply that can't be read: the model receives the reason; three in a row end the run.
fn unreadable(
    program: &LoopProgram,
    state: &mut LoopState,
    new: Turn,
    refused: RefusedReply,
    forced: Option<Limit>,
) -> Next {
    let mut why = refused.why.clone();
    let asks_again = refused.cause == RefusalCause::Empty && !state.has_answered_an_empty_reply();
    kept_reply::shorten_unreadable(state);
    state.counters.invalid_replies += 1;
    state.watch.invalid_in_a_row += 1;
    note(state, new, refused);
    if let Some(limit) = forced {
        // No bound is passed by more than one request.
        return if asks_again && !budget::is_spent(program, state) {
            limit::ask_again(program, state, limit, &why)
        } else {
            limit::failed(program, state, limit)
        };
    }
    if state.watch.invalid_in_a_row >= INVALID_IN_A_ROW {
        return none_taken(state);
    }
    if state.watch.invalid_in_a_row >= EXAMPLE_FROM {
        why = format!("{why}\n\n{}", dialect::example(program, state.selected.as_deref()));
    }
    dialect::report_refusal(program.properties.dialect, &mut state.conversation, &why);
    Next::Think
}

/// The run ends: too many replies in a row could not be taken.
fn none_taken(state: &LoopState) -> Next {
    let because = match RefusalCause::of_last(&state.entries) {
        RefusalCause::Refused => return Next::fail(state, Termination::ModelError, refused_error(state)),
        RefusalCause::Unreadable => "",
        RefusalCause::CutOff => ": max_tokens cut them off",
        RefusalCause::CutOffThinking => ": max_tokens cut them off while the model was still thinking",
        RefusalCause::Empty => ": they were empty",
    };
    let error = RunError {
        code: "invalid_replies".to_owned(),
        message: format!("{INVALID_IN_A_ROW} replies in a row could not be read{because}"),
        retryable: false,
        step: None,
    };
    Next::fail(state, Termination::InvalidReplies, error)
}

fn refused_error(state: &LoopState) -> RunError {
    let words = &state.watch.refusal;
    let why = if words.is_empty() { String::new() } else { format!(": {words}") };
    let message =
        format!("the model or its provider refused to reply{why} ({INVALID_IN_A_ROW} replies in a row were not taken)");
    RunError { code: "model_refused".to_owned(), message, retryable: false, step: None }
}

fn entry_of_answer(state: &mut LoopState, new: &Turn, wanted: &Wanted) {
    push_tight(
        &mut state.entries,
        StoredEntry {
            iteration: new.iteration,
            at_ms: new.at_ms,
            thought: new.thought.as_str().into(),
            action: Some(wanted.name.as_str().into()),
            action_input: wanted.input.clone().into(),
            observation: Json::default(),
            success: true,
            error: None,
            duration_ms: new.thinking_ms,
            waited_ms: 0,
            usage: new.usage,
            run_id: None,
            called_at_ms: None,
            attempts: Box::default(),
        },
    );
}

/// Keeps a reply that could not be taken in the trace; only people read its text.
fn note(state: &mut LoopState, new: Turn, refused: RefusedReply) {
    let RefusedReply { why, text, cause } = refused;
    push_tight(
        &mut state.entries,
        StoredEntry {
            iteration: new.iteration,
            at_ms: new.at_ms,
            thought: new.thought.into_boxed_str(),
            action: None,
            action_input: Json::default(),
            observation: Value::String(why).into(),
            success: false,
            error: Some(Box::new(ToolFault::new(cause.class(), text))),
            duration_ms: new.thinking_ms,
            waited_ms: 0,
            usage: new.usage,
            run_id: None,
            called_at_ms: None,
            attempts: Box::default(),
        },
    );
}
