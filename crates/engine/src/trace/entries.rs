//! The trace's entries and failed attempts, with secrets hidden.

use super::redact::Redaction;
use super::units::{count, duration, rfc3339};
use crate::call_attempt::CallAttempt;
use crate::event::{FailedAttempt, ToolFault};
use crate::flow::record::StepRecord;
use crate::question::{Question, WaitingCall};
use crate::record::{CallStatus, TraceAttempt, TraceEntry, trace};
use crate::state::State;
use crate::stuck::Stuck;

/// All entries of a run, in the journal's order. `driven`: whether a driver has the run now.
pub fn entries(state: &State, driven: bool, redact: &Redaction) -> Vec<TraceEntry> {
    trace(state, driven).into_iter().map(|entry| hidden(entry, redact)).collect()
}

/// How far a call without an outcome is, in a sentence. `attempts`: those at it that failed.
pub fn call_sentence(status: CallStatus, attempts: &[CallAttempt]) -> &'static str {
    match status {
        CallStatus::Uncertain if attempts.last().is_some_and(|attempt| attempt.lost) => {
            "uncertain: its answer was lost, and it may have happened"
        }
        CallStatus::Uncertain => "uncertain: the run stopped during this call, and it may have happened",
        CallStatus::UnderWay => "under way",
        CallStatus::Interrupted => "interrupted: its run stopped together with this one",
        CallStatus::Waiting => "its run waits for a human",
    }
}

/// The times of an entry: `asked 10:30:00.000, decided 10:31:04.250, called 10:31:04.261`, equal ones once:
/// `asked and called 10:30:00.000`. A time on another day than the first one has its date.
pub fn times(entry: &TraceEntry) -> String {
    let asked = rfc3339(entry.at_ms);
    let (day, _) = asked.split_once('T').unwrap_or_default();
    let shown = |at_ms: i64| {
        let at = rfc3339(at_ms);
        let clock = at.strip_prefix(day).and_then(|at| at.strip_prefix('T')).and_then(|at| at.strip_suffix('Z'));
        clock.map_or_else(|| at.clone(), str::to_owned)
    };
    let known = [("asked", Some(entry.at_ms)), ("decided", entry.decided_at_ms), ("called", entry.called_at_ms)];
    let known: Vec<(&str, i64)> = known.into_iter().filter_map(|(what, at_ms)| Some((what, at_ms?))).collect();
    let equal = known.chunk_by(|one, next| one.1 == next.1);
    let times = equal.filter_map(|equal| {
        let names: Vec<&str> = equal.iter().map(|(what, _)| *what).collect();
        Some(format!("{} {}", names.join(" and "), shown(equal.first()?.1)))
    });
    times.collect::<Vec<_>>().join(", ")
}

fn hidden(entry: TraceEntry, redact: &Redaction) -> TraceEntry {
    TraceEntry {
        thought: redact.text(&entry.thought).into_owned(),
        action: entry.action.map(|action| redact.text(&action).into_owned()),
        action_input: entry.action_input.map(|input| redact.value(&input)),
        observation: redact.value(&entry.observation),
        error: entry.error.map(|fault| hidden_fault(&fault, redact)),
        hint: entry.hint.map(|hint| redact.text(&hint).into_owned()),
        attempts: entry.attempts.iter().map(|attempt| hidden_attempt(attempt, redact)).collect(),
        ..entry
    }
}

fn hidden_fault(fault: &ToolFault, redact: &Redaction) -> ToolFault {
    let hidden = |text: &str| redact.text(text).into_owned();
    ToolFault { class: hidden(&fault.class), detail: hidden(&fault.detail), answer: hidden(&fault.answer) }
}

pub(super) fn hidden_attempt(attempt: &CallAttempt, redact: &Redaction) -> CallAttempt {
    let CallAttempt { at_ms, duration_ms, delay_ms, lost, .. } = *attempt;
    CallAttempt { at_ms, error: hidden_fault(&attempt.error, redact), duration_ms, delay_ms, lost }
}

/// How long a call waited for its turn, from a second on, in words.
pub fn waited_in_words(waited_ms: u64) -> Option<String> {
    (waited_ms >= 1_000).then(|| format!("after a wait of {} for its turn", duration(waited_ms)))
}

/// The wait of the call of an entry for its turn, and its failed attempts, each in a sentence.
pub fn call_attempts(entry: &TraceEntry) -> impl Iterator<Item = String> {
    waited_in_words(entry.waited_ms).into_iter().chain(sentences(&entry.attempts))
}

/// The same of a step.
pub fn step_attempts(step: &StepRecord) -> impl Iterator<Item = String> {
    waited_in_words(step.waited_ms).into_iter().chain(sentences(&step.attempts))
}

/// Failed attempts at a call, each in a sentence.
pub fn sentences(attempts: &[CallAttempt]) -> impl Iterator<Item = String> {
    let numbered = attempts.iter().zip(1..);
    numbered.map(|(attempt, number)| {
        let follows = if attempt.lost { None } else { Some(attempt.delay_ms) };
        call_attempt_sentence(number, &attempt.error, follows)
    })
}

/// A failed attempt at a call in a sentence; `number` counts from 1. `delay_ms`: the wait before the next one; none when its
/// answer was lost.
pub fn call_attempt_sentence(number: usize, error: &ToolFault, delay_ms: Option<u64>) -> String {
    let follows = match delay_ms {
        None => "its answer was lost, and it may have happened".to_owned(),
        Some(0) => "retry".to_owned(),
        Some(delay_ms) => format!("retry in {}", duration(delay_ms)),
    };
    let mut sentence = format!("attempt {number}: {}; {follows}", error.class);
    for text in [&error.answer, &error.detail].into_iter().map(|text| text.trim()).filter(|text| !text.is_empty()) {
        sentence.push('\n');
        sentence.push_str(text);
    }
    sentence
}

/// All failed attempts of a run, in their order.
pub fn attempts(state: &State, redact: &Redaction) -> Vec<TraceAttempt> {
    let shown = |(iteration, attempt): &(u32, FailedAttempt)| {
        let attempt = TraceAttempt::new(*iteration, attempt);
        TraceAttempt { reason: redact.text(&attempt.reason).into_owned(), ..attempt }
    };
    state.as_loop().map(|state| state.attempts.iter().map(shown).collect()).unwrap_or_default()
}

/// A failed attempt in a sentence.
pub fn attempt_sentence(attempt: &TraceAttempt) -> String {
    let model = attempt.model.as_deref().unwrap_or("the model");
    let wait = match attempt.delay_ms {
        0 => String::new(),
        delay => format!("; retry in {}", duration(delay)),
    };
    let most = attempt.usage.as_ref().filter(|_| attempt.at_most);
    let most = most.map_or_else(String::new, |most| {
        let tokens = most.input_tokens.saturating_add(most.output_tokens);
        format!("; counts {} tokens, the most that it may have used", count(tokens))
    });
    format!("{model}: {}{most}{wait}", attempt.reason)
}

/// A question with its secrets hidden.
pub fn hidden_question(question: Question, redact: &Redaction) -> Question {
    Question {
        text: redact.text(&question.text).into_owned(),
        context: question.context.map(|context| redact.text(&context).into_owned()),
        options: question.options.iter().map(|option| redact.text(option).into_owned()).collect(),
        stuck: question.stuck.map(|stuck| hidden_stuck(&stuck, redact)),
        ..question
    }
}

/// A pattern with its secrets hidden.
pub fn hidden_stuck(stuck: &Stuck, redact: &Redaction) -> Stuck {
    Stuck { detail: redact.text(&stuck.detail).into_owned(), ..stuck.clone() }
}

/// The call with its secrets hidden. The hash is that of the unredacted call.
pub fn shown_call(call: WaitingCall, redact: &Redaction) -> WaitingCall {
    WaitingCall { action_input: redact.value(&call.action_input), ..call }
}
