//! What the model said: counted, read, and made into a turn.

use serde_json::Value;

use super::budget;
use super::builtin;
use super::company::Company;
use super::dialect::{self, Reading, Wanted};
use super::effect::{Effect, Effects};
use super::event::{CallId, Finish, ModelFault, ModelFaultCode, Reply, Tokens, ToolFault, ToolResult};
use super::history;
use super::json::Json;
use super::limit;
use super::outcome::{Answer, Limit, RunError, Status, Termination};
use super::state::{Call, CallProgress, State, StoredEntry, Turn, push_tight};
use super::step::failed as failure;
use super::turn;
use super::validate;
use crate::program::{Builtin, Program, ToolKind};

/// How many unreadable replies in a row end a run.
const INVALID_IN_A_ROW: u32 = 3;
/// The tool that ends a run.
const COMPLETE: &str = "__complete__";
/// How much of an unreadable reply stays in the conversation, in bytes.
const UNREADABLE_BYTES: usize = 32 * 1024;

/// Takes a reply in.
pub(super) fn take(program: &Program, state: &mut State, mut said: Reply, forced: Option<Limit>) -> Effects {
    budget::tried(program, state, std::mem::take(&mut said.attempts));
    state.counters.iterations += 1;
    state.counters.thinking_ms = said.duration_ms;
    state.watch.too_long = false;
    let sent = state.conversation.bytes;
    if let Some(usage) = said.usage {
        state.counters.gauge.counted(usage.input, sent);
    }
    let usage = count(program, state, &said, sent);
    state.counters.window.0 = usage.input.saturating_add(usage.output);
    let dialect = program.properties.dialect;
    let (mut reading, counts) = dialect::read_counted(dialect, &said);
    let most = usize::try_from(program.properties.max_tool_calls_per_turn).unwrap_or(usize::MAX);
    too_many(&mut reading, most);
    let mut calls = said.calls;
    if matches!(reading, Reading::Unreadable { .. }) {
        calls.truncate(most);
    }
    let named = (&program.called, state.counters.iterations);
    let calls = dialect::kept_calls(dialect, &state.conversation, calls, named);
    let text = remembered(said.text, counts, matches!(reading, Reading::Unreadable { .. }), calls.is_empty());
    state.conversation.push_calls(text, calls);
    state.counters.window.1 = state.conversation.bytes;
    let mut new = Turn {
        iteration: state.counters.iterations,
        thought: String::new(),
        usage: Some(usage),
        at_ms: state.now.wall_ms,
        thinking_ms: said.duration_ms,
        calls: Vec::new(),
    };
    match reading {
        Reading::Calls { thought, mut calls } => {
            state.watch.invalid_in_a_row = 0;
            new.thought = thought;
            if dialect::is_native(dialect) {
                for wanted in &mut calls {
                    wanted.name = program.called.back(&wanted.name).to_owned();
                }
            }
            if let Some(limit) = forced {
                return last_word(program, state, new, calls, limit);
            }
            turn(program, state, new, calls)
        }
        Reading::Answer { thought, answer } => {
            state.watch.invalid_in_a_row = 0;
            new.thought = thought;
            let call = Wanted::complete(answer_of(program, answer));
            match forced {
                Some(limit) => last_word(program, state, new, vec![call], limit),
                None => turn(program, state, new, vec![call]),
            }
        }
        Reading::Unreadable { thought, why } => {
            new.thought = thought;
            unreadable(program, state, new, &why, forced)
        }
    }
}

/// A reply as the model reads it later: without what it invented behind its action, and not longer than
/// need be when nothing came of it.
fn remembered(mut text: String, counts: usize, unreadable: bool, alone: bool) -> String {
    if counts < text.len() {
        text.truncate(text.floor_char_boundary(counts));
        text.truncate(text.trim_end().len());
    }
    if unreadable && text.len() > UNREADABLE_BYTES {
        text.truncate(text.floor_char_boundary(UNREADABLE_BYTES));
        text.push_str("\n[cut: the rest of this reply is not shown]");
    }
    // A provider refuses a message without text.
    if alone && text.trim().is_empty() { "(nothing)".to_owned() } else { text }
}

/// A turn of more calls than are allowed is refused, whole.
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

/// An answer that the dialect has as text, as the loop wants it: when the text does not match
/// `answer_schema`, it is taken as JSON.
fn answer_of(program: &Program, answer: Value) -> Value {
    match (&answer, &program.answer) {
        (Value::String(text), Some(schema)) if !schema.faults(&answer).is_empty() => {
            dialect::as_json(text).unwrap_or(answer)
        }
        _ => answer,
    }
}

/// The model could not be asked.
pub(super) fn failed(program: &Program, state: &mut State, fault: ModelFault, forced: Option<Limit>) -> Effects {
    let enough = budget::is_enough(program, state, &fault.failed);
    let fault = count_fault(program, state, fault);
    if fault.code == ModelFaultCode::ContextExceeded {
        return match forced {
            None => history::refused(program, state),
            Some(_) => limit::ended(program, state, Limit::Context),
        };
    }
    if enough {
        // No other attempt was made because of the budget, whatever the last one's fault was.
        return match forced {
            None => limit::reached(program, state, Limit::Budget),
            Some(limit) => limit::ended(program, state, limit),
        };
    }
    let code = match fault.code {
        ModelFaultCode::ModelUnreachable => "model_unreachable",
        ModelFaultCode::ModelRefused => "model_refused",
        ModelFaultCode::ContextExceeded => "context",
        ModelFaultCode::ModelProtocol => "model_protocol",
        ModelFaultCode::ScriptExhausted => "script_exhausted",
    };
    let error = RunError { code: code.to_owned(), message: fault.message, retryable: fault.retryable };
    limit::end(state, Status::Failed, Termination::ModelError, |ending| ending.error = Some(error))
}

/// Counts a reply to a request of `sent` bytes: tokens, cost, retries.
pub(super) fn count(program: &Program, state: &mut State, said: &Reply, sent: usize) -> Tokens {
    let tally = &mut state.counters;
    tally.model_retries = tally.model_retries.saturating_add(said.retries);
    if said.finish == Finish::Length {
        tally.truncated_responses += 1;
    }
    let written = said.calls.iter().fold(said.text.len(), |sum, call| sum.saturating_add(call.size()));
    let usage = said.usage.unwrap_or_else(|| {
        tally.estimated = true;
        Tokens { input: tally.gauge.tokens(sent), output: tally.gauge.tokens(written) }
    });
    let price = if said.model.is_some() { said.price } else { state.header.model.price };
    budget::charge(program, state, usage, price.map(|price| budget::cost_usd(usage, price)));
    usage
}

/// Counts a failure: its attempts, and what they used.
pub(super) fn count_fault(program: &Program, state: &mut State, mut fault: ModelFault) -> ModelFault {
    state.counters.model_retries = state.counters.model_retries.saturating_add(fault.attempts.saturating_sub(1));
    state.counters.calls_failed = state.counters.calls_failed.saturating_add(u32::from(fault.attempts > 0));
    budget::tried(program, state, std::mem::take(&mut fault.failed));
    fault
}

/// Makes a readable reply into a turn: each call is validated, the engine's own are done at once,
/// the others are asked for.
fn turn(program: &Program, state: &mut State, mut new: Turn, calls: Vec<Wanted>) -> Effects {
    let company = Company::of(program, &calls);
    let mut effects = Vec::new();
    let mut ending = None;
    new.calls.reserve_exact(calls.len());
    for (index, wanted) in calls.into_iter().enumerate() {
        let id = CallId { iteration: new.iteration, index: u32::try_from(index).unwrap_or(u32::MAX) };
        let allowed = validate::call(program, state, &wanted).and_then(|tool| company.allows(tool).map(|()| tool));
        let progress = match allowed {
            Err(why) => CallProgress::Done { result: failure(why), duration_ms: 0 },
            Ok(tool) => match tool.kind {
                ToolKind::Builtin(which) => match builtin::run(program, state, which, &wanted.input) {
                    builtin::Done::Observed(result) => CallProgress::Done { result, duration_ms: 0 },
                    builtin::Done::Remembered(result, key) => {
                        effects.push(Effect::Remember(key));
                        CallProgress::Done { result, duration_ms: 0 }
                    }
                    builtin::Done::AnswerRefused(result) => {
                        state.watch.answers_refused += 1;
                        CallProgress::Done { result, duration_ms: 0 }
                    }
                    builtin::Done::Completed(answer) => {
                        ending = Some((answer, id, wanted));
                        continue;
                    }
                    builtin::Done::SubrunQuestion => CallProgress::Asked,
                },
                _ if tool.spends() && budget::is_spent(program, state) => {
                    CallProgress::Done { result: failure(turn::SPENT), duration_ms: 0 }
                }
                _ => {
                    *state.counters.calls.entry(wanted.name.clone()).or_default() += 1;
                    if tool.requires_approval {
                        CallProgress::AwaitsApproval
                    } else if turn::is_held(program, state, tool) && turn::is_spending(program, &new) {
                        CallProgress::Held
                    } else {
                        state.counters.tool_calls_made += 1;
                        effects.push(Effect::CallTool(id));
                        CallProgress::Asked
                    }
                }
            },
        };
        new.calls.push(Call { id, tool: wanted.name, input: wanted.input, progress, run_id: None });
    }
    effects.extend(match (ending, turn::question_of(program, &new)) {
        (Some((answer, id, wanted)), _) => ended(program, state, new, (answer, id, wanted)),
        (None, Some(question)) => turn::ask_human(state, new, question),
        (None, None) => turn::settle(program, state, new),
    });
    effects
}

/// The run ends with an answer, unless a call that was to be done before it failed.
fn ended(
    program: &Program,
    state: &mut State,
    mut new: Turn,
    (answer, id, wanted): (Answer, CallId, Wanted),
) -> Effects {
    let fails = |call: &Call| matches!(call.progress, CallProgress::Done { result: ToolResult::Failed(_), .. });
    if new.calls.iter().any(fails) {
        let result = failure("the answer was not taken: another call of its turn failed");
        let progress = CallProgress::Done { result, duration_ms: 0 };
        new.calls.push(Call { id, tool: wanted.name, input: wanted.input, progress, run_id: None });
        new.calls.sort_by_key(|call| call.id);
        return turn::settle(program, state, new);
    }
    if !new.calls.is_empty() {
        let thought = new.thought.clone();
        let before = Turn { calls: std::mem::take(&mut new.calls), thought, ..new.clone() };
        new.thought.clear();
        new.usage = None;
        drop(turn::record(program, state, before));
    }
    entry_of_answer(state, &new, &wanted);
    limit::end(state, Status::Completed, Termination::Complete, |ending| ending.answer = Some(answer))
}

/// The last call of `on_limit: answer`: only an answer counts.
fn last_word(program: &Program, state: &mut State, new: Turn, calls: Vec<Wanted>, limit: Limit) -> Effects {
    let mut calls = calls.into_iter().filter(|wanted| wanted.name == COMPLETE);
    if let (Some(wanted), None) = (calls.next(), calls.next())
        && let Ok(tool) = validate::call(program, state, &wanted)
        && let ToolKind::Builtin(Builtin::Complete) = tool.kind
        && let builtin::Done::Completed(answer) = builtin::run(program, state, Builtin::Complete, &wanted.input)
    {
        entry_of_answer(state, &new, &wanted);
        return limit::end(state, Status::Completed, Termination::ForcedAnswer, |ending| {
            ending.answer = Some(answer);
            ending.limit = Some(limit);
        });
    }
    note(state, new, "the last reply gave no answer that could be taken".to_owned());
    limit::ended(program, state, limit)
}

/// A reply that can't be read: the model is told why; three in a row end the run.
fn unreadable(program: &Program, state: &mut State, new: Turn, why: &str, forced: Option<Limit>) -> Effects {
    state.counters.invalid_replies += 1;
    state.watch.invalid_in_a_row += 1;
    note(state, new, why.to_owned());
    if let Some(limit) = forced {
        return limit::ended(program, state, limit);
    }
    if state.watch.invalid_in_a_row >= INVALID_IN_A_ROW {
        let error = RunError {
            code: "invalid_replies".to_owned(),
            message: format!("{INVALID_IN_A_ROW} replies in a row could not be read"),
            retryable: false,
        };
        return limit::end(state, Status::Failed, Termination::InvalidReplies, |ending| ending.error = Some(error));
    }
    dialect::tell_refusal(program.properties.dialect, &mut state.conversation, why);
    limit::next(program, state)
}

fn entry_of_answer(state: &mut State, new: &Turn, wanted: &Wanted) {
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
            usage: new.usage,
            run_id: None,
        },
    );
}

fn note(state: &mut State, new: Turn, why: String) {
    push_tight(
        &mut state.entries,
        StoredEntry {
            iteration: new.iteration,
            at_ms: new.at_ms,
            thought: new.thought.into_boxed_str(),
            action: None,
            action_input: Json::default(),
            observation: Value::String(why.clone()).into(),
            success: false,
            error: Some(Box::new(ToolFault { class: "unreadable reply".to_owned(), detail: why })),
            duration_ms: new.thinking_ms,
            usage: new.usage,
            run_id: None,
        },
    );
}
