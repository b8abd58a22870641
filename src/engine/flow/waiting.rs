//! What a workflow that waits for humans asks them.

use serde_json::Value;

use super::question::StepQuestion;
use super::state::{FlowState, OpenStep, StepProgress};
use crate::engine::call::Doubt;
use crate::engine::call_attempt::lost_answer;
use crate::engine::consent;
use crate::engine::due::DueTimes;
use crate::engine::outcome::Termination;
use crate::engine::record::WaitingCall;
use crate::engine::state::{Phase, RunHeader, State};
use crate::language::step::OnRejected;
use crate::program::Program;
use crate::program::flow::FlowStep;

/// The questions of the steps that wait for a human, in the order of their addresses: those of a workflow, or of the
/// workflow below that a loop called.
pub fn waiting_steps(state: &State) -> Vec<StepQuestion> {
    match (&state.flow, &state.phase) {
        (Some(flow), _) => {
            let waiting = flow.open().into_iter().filter(|open| open.progress.waits_for_human());
            waiting.flat_map(|open| questions(open, &state.header)).collect()
        }
        (None, Phase::Paused { pause, .. }) => {
            let asked = pause.asks.iter().flat_map(|asks| &asks.steps);
            asked.map(StepQuestion::from).collect()
        }
        _ => Vec::new(),
    }
}

/// The questions of a step: several when its run has called a workflow of which several steps wait.
fn questions(open: &OpenStep, header: &RunHeader) -> Vec<StepQuestion> {
    match &open.progress {
        StepProgress::Waits(waits) if !waits.asks.steps.is_empty() => {
            let below = waits.asks.steps.iter().map(StepQuestion::from);
            below.map(|below| StepQuestion { at: format!("{}/{}", open.at, below.at), ..below }).collect()
        }
        _ => vec![question(open, header)],
    }
}

/// What a decision about an open step is bound to.
pub(super) fn hash(open: &OpenStep, header: &RunHeader) -> String {
    let shown = match &open.progress {
        StepProgress::AsksApproval { comment, .. } => format!("{comment}\n{}", open.input),
        _ => open.input.to_string(),
    };
    consent::hash_of(header, &open.at, &open.kind, &shown)
}

pub(super) fn question(open: &OpenStep, header: &RunHeader) -> StepQuestion {
    let action = open.kind.clone();
    let plain = StepQuestion {
        at: open.at.clone(),
        kind: Termination::Human,
        question: String::new(),
        action: action.clone(),
        action_input: Some(Value::clone(&open.input)),
        hash: Some(hash(open, header)),
        expected_keys: Vec::new(),
        expires_at_ms: None,
        approval: None,
        on_rejected: None,
        run_id: None,
        run_pause: None,
        options: Vec::new(),
        calls: Vec::new(),
    };
    match &open.progress {
        StepProgress::AwaitsApproval(awaited) => StepQuestion {
            kind: Termination::Approval,
            question: format!("May the step `{}` call {action}?", open.at),
            approval: (!awaited.is_plain()).then(|| (**awaited).clone()),
            on_rejected: Some(OnRejected::Stop),
            ..plain
        },
        StepProgress::AsksApproval { comment, on_rejected } => StepQuestion {
            kind: Termination::Approval,
            question: comment.clone(),
            on_rejected: Some(*on_rejected),
            ..plain
        },
        StepProgress::AsksForm { expires_at_ms } => {
            let keys = open.input.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let keys: Vec<String> = keys.collect();
            StepQuestion {
                question: format!("Fill in {}", keys.join(", ")),
                action_input: None,
                expected_keys: keys,
                expires_at_ms: *expires_at_ms,
                ..plain
            }
        }
        StepProgress::Waits(waits) => StepQuestion {
            kind: waits.asks.kind,
            question: waits.asks.question.clone(),
            action_input: None,
            hash: None,
            run_id: Some(waits.asks.run_id.clone()),
            run_pause: Some(waits.asks.pause),
            options: waits.asks.options.clone(),
            calls: waits.asks.calls.iter().map(WaitingCall::from).collect(),
            ..plain
        },
        StepProgress::Uncertain(Doubt::Lost) => StepQuestion {
            kind: Termination::Uncertain,
            question: format!("The step `{}` {}", open.at, lost_answer(&action, &open.attempts)),
            ..plain
        },
        _ => StepQuestion {
            kind: Termination::Uncertain,
            question: format!("The process stopped while the step `{}` called {action}. Did it happen?", open.at),
            ..plain
        },
    }
}

/// The steps that wait, as calls: what lists of waiting calls show of them.
pub(in crate::engine) fn calls(steps: &[StepQuestion]) -> Vec<WaitingCall> {
    let mut calls = Vec::new();
    for question in steps {
        for mut call in question.waiting_calls() {
            if question.calls.is_empty() {
                call.index = u32::try_from(calls.len()).unwrap_or(u32::MAX);
            }
            calls.push(call);
        }
    }
    calls
}

/// How a form with these keys is answered, in a sentence.
pub(super) fn form_shape(keys: &[String]) -> String {
    let example: Vec<String> = keys.iter().map(|key| format!("\"{key}\": ...")).collect();
    format!("a form is answered by a JSON object: {{{}}}", example.join(", "))
}

/// The value of a form's keys.
///
/// # Errors
/// Which keys are missing or unknown.
pub(super) fn form_values(keys: &[String], answer: &str) -> Result<Vec<(String, Value)>, String> {
    let shape = || form_shape(keys);
    let Ok(Value::Object(mut given)) = serde_json::from_str(answer) else { return Err(shape()) };
    let missing: Vec<&str> = keys.iter().filter(|key| !given.contains_key(*key)).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(format!("the form lacks {}; {}", missing.join(", "), shape()));
    }
    if let Some(unknown) = given.keys().find(|key| !keys.contains(key)) {
        return Err(format!("the form does not ask for `{unknown}`; {}", shape()));
    }
    Ok(keys.iter().filter_map(|key| Some((key.clone(), given.remove(key)?))).collect())
}

/// When somebody is reminded of the steps of a workflow that wait, in milliseconds since 1970: all times, past ones too.
pub fn reminders(program: &Program, state: &State) -> Vec<i64> {
    let (Some(flow), Some(flow_state)) = (&program.flow, &state.flow) else { return Vec::new() };
    let mut times = Vec::new();
    for open in flow_state.open() {
        let expires_at_ms = match &open.progress {
            StepProgress::AsksApproval { .. } => None,
            StepProgress::AsksForm { expires_at_ms } => *expires_at_ms,
            _ => continue,
        };
        let after_ms = flow.step_at(&open.at).map(FlowStep::reminders_ms).unwrap_or_default();
        let at = after_ms.iter().map(|after_ms| open.since_ms.saturating_add_unsigned(*after_ms));
        times.extend(at.filter(|at_ms| expires_at_ms.is_none_or(|expires_at_ms| *at_ms < expires_at_ms)));
    }
    times
}

/// When the earliest approval or form expires that a workflow waits for, in milliseconds since 1970: those of its own
/// steps, and those of the runs below that nobody drives: what expired in a run that was resumed is its own matter.
pub(in crate::engine) fn due_at_ms(flow: &FlowState) -> DueTimes {
    let open = flow.open();
    let own = open.iter().filter_map(|open| match &open.progress {
        StepProgress::AwaitsApproval(awaited) => awaited.expires_at_ms,
        StepProgress::AsksForm { expires_at_ms } => *expires_at_ms,
        _ => None,
    });
    let below = open.iter().filter_map(|open| match &open.progress {
        StepProgress::Waits(waits) if open.progress.waits_for_human() => waits.asks.due_at_ms(),
        _ => None,
    });
    DueTimes { own: own.min(), below: below.min() }
}
