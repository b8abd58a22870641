//! What a human decided about a pause.

use serde_json::Value;

use super::called;
use super::consent;
use super::conversation::Role;
use super::dialect;
use super::effect::{Effect, Effects};
use super::event::{CallId, Decided, Decision, ToolResult};
use super::limit;
use super::outcome::{Pause, Termination};
use super::state::{Call, CallProgress, Phase, State, Turn};
use super::step::Refused;
use super::turn::{self, denied};
use super::validate;
use crate::program::Program;

pub(super) const OTHER: &str =
    "the call that waits is not the one that was shown: look at it again, and decide with its new hash";
pub(super) const SEVERAL: &str = "several calls wait: say which one, each is decided on its own";

/// Whether a decision fits the pause.
///
/// # Errors
/// Why it does not, and what would.
pub(super) fn fits(
    program: &Program,
    state: &State,
    (pause, turn): (&Pause, Option<&Turn>),
    decided: &Decided,
) -> Result<(), Refused> {
    if let Some(number) = decided.pause
        && number != pause.number
    {
        let how = if number < pause.number { "is over" } else { "has not come yet" };
        return Err(Refused::new(format!("pause {number} {how}; the run is in pause {}", pause.number)));
    }
    if let Some(asks) = &pause.asks {
        return called::fits(asks, decided);
    }
    if let Some(call) = decided.call
        && !waits(pause, turn, call)
    {
        let others: Vec<String> =
            pause.calls.iter().filter(|id| waits(pause, turn, **id)).map(ToString::to_string).collect();
        let more = if others.is_empty() { String::new() } else { format!("; what waits: {}", others.join(", ")) };
        return Err(Refused::new(format!("call {call} does not wait{more}")));
    }
    if decided.hash.is_some() && meant(state, (pause, turn), decided).is_none() {
        return Err(Refused::new(OTHER));
    }
    of_kind(pause.kind, &decided.decision)?;
    let only = meant(state, (pause, turn), decided);
    let several = turn.is_some_and(|turn| turn.calls.iter().filter(|call| asked_about(pause, call)).count() > 1);
    match &decided.decision {
        // No call is made by a word that was said about another one. All may be denied at once.
        Decision::Approve | Decision::Edit(_) | Decision::Happened(_) | Decision::Retry
            if several && only.is_none() =>
        {
            Err(Refused::new(SEVERAL))
        }
        Decision::Edit(input) => edited(program, pause, (turn, only), input),
        _ => Ok(()),
    }
}

/// Whether a decision is of the kind that a pause waits for, in this run or in one that it called.
///
/// # Errors
/// Why it is not, and what would be.
pub(super) fn of_kind(kind: Termination, decision: &Decision) -> Result<(), Refused> {
    match (kind, decision) {
        (Termination::Human | Termination::Stuck, Decision::Answer(_))
        | (Termination::Approval, Decision::Approve | Decision::Deny(_) | Decision::Edit(_))
        | (Termination::Uncertain, Decision::Retry | Decision::Happened(_)) => Ok(()),
        (Termination::Human | Termination::Stuck, _) => Err(Refused::new("the run waits for an answer")),
        (Termination::Approval, _) => Err(Refused::new("the run waits for an approval: approve, deny or edit")),
        (Termination::Uncertain, _) => {
            Err(Refused::new("the run waits to hear whether a call happened: say what it gave, or repeat it"))
        }
        _ => Err(Refused::new("the run waits for no human")),
    }
}

/// The one call that the decision names, by its place or by its hash.
fn meant(state: &State, (pause, turn): (&Pause, Option<&Turn>), decided: &Decided) -> Option<CallId> {
    let Some(hash) = &decided.hash else { return decided.call };
    let calls = turn.map(|turn| turn.calls.as_slice()).unwrap_or_default();
    let named = |call: &&Call| {
        asked_about(pause, call)
            && decided.call.is_none_or(|id| id == call.id)
            && consent::hash(&state.header, call) == *hash
    };
    calls.iter().find(named).map(|call| call.id)
}

fn waits(pause: &Pause, turn: Option<&Turn>, id: CallId) -> bool {
    pause.calls.contains(&id)
        && turn.is_some_and(|turn| {
            turn.calls.iter().any(|call| call.id == id && (undecided(call) || pause.kind == Termination::Human))
        })
}

fn undecided(call: &Call) -> bool {
    matches!(call.progress, CallProgress::AwaitsApproval | CallProgress::Uncertain)
}

/// Whether this pause is about the call. Another call of the turn may wait for a pause of its own.
fn asked_about(pause: &Pause, call: &Call) -> bool {
    undecided(call) && pause.calls.contains(&call.id)
}

/// An edited input must match the tool's schema like the model's own.
fn edited(
    program: &Program,
    pause: &Pause,
    (turn, only): (Option<&Turn>, Option<CallId>),
    input: &Value,
) -> Result<(), Refused> {
    let calls = turn.map(|turn| turn.calls.as_slice()).unwrap_or_default();
    let meant = calls.iter().filter(|call| match only {
        Some(id) => call.id == id,
        None => asked_about(pause, call),
    });
    for call in meant {
        let Some(tool) = turn::tool_of(program, call) else { continue };
        let faults = tool.parameters.faults(input);
        if !faults.is_empty() {
            return Err(Refused::new(format!("the edited input is not accepted:{}", validate::list(&faults))));
        }
    }
    Ok(())
}

/// Takes a decision that fits.
pub(super) fn decided(
    program: &Program,
    state: &mut State,
    (pause, turn): (Pause, Option<Turn>),
    decided: Decided,
) -> Effects {
    // What a human says is new to the agent: circles are counted from here.
    state.watch.steps.clear();
    let only = meant(state, (&pause, turn.as_ref()), &decided);
    let Some(mut turn) = turn else {
        // A stuck run: the answer is guidance.
        if let Decision::Answer(text) = decided.decision {
            let words = dialect::write_guidance(program.properties.dialect, &text);
            state.conversation.push(Role::User, words);
        }
        return limit::next(program, state);
    };
    if pause.asks.is_some() {
        return called::decided(program, state, (pause, turn), &decided);
    }
    let decision = decided.decision;
    for call in &mut turn.calls {
        let meant = only.is_none_or(|id| id == call.id) && pause.calls.contains(&call.id);
        if !meant || !(undecided(call) || pause.kind == Termination::Human) {
            continue;
        }
        let approval = call.progress == CallProgress::AwaitsApproval;
        call.progress = match &decision {
            Decision::Answer(text) => done(ToolResult::Ok(Value::String(text.clone()))),
            Decision::Deny(reason) => done(denied(reason.as_deref())),
            Decision::Happened(value) => done(ToolResult::Ok(value.clone())),
            Decision::Retry => CallProgress::Asked,
            Decision::Approve => allowed(program, state, call),
            Decision::Edit(input) => {
                call.input = input.clone();
                allowed(program, state, call)
            }
        };
        match (&call.progress, approval) {
            // A call that is repeated was counted when it was made first.
            (CallProgress::Asked, true) => state.counters.tool_calls_made += 1,
            // It is counted when it is asked for.
            (CallProgress::Held, true) => {}
            // A call that was not allowed was not made: `max_calls` is not touched.
            (_, true) => state.counters.unmade(&call.tool),
            _ => {}
        }
    }
    if turn.calls.iter().any(|call| asked_about(&pause, call)) {
        // The others are decided one by one; nothing is called before all are.
        state.phase = Phase::Paused { pause, turn: Some(turn) };
        return Vec::new();
    }
    if let Some(next) = turn::question_of(program, &turn) {
        return turn::ask_human(state, turn, next);
    }
    let asked = turn.calls.iter().filter(|call| call.progress == CallProgress::Asked);
    let mut effects: Effects = asked.map(|call| Effect::CallTool(call.id)).collect();
    effects.extend(turn::settle(program, state, turn));
    effects
}

/// A call that a human allowed: one that asks models waits its turn where there is a budget.
fn allowed(program: &Program, state: &State, call: &Call) -> CallProgress {
    let held = program.tool(&call.tool).is_some_and(|tool| turn::is_held(program, state, tool));
    if held { CallProgress::Held } else { CallProgress::Asked }
}

fn done(result: ToolResult) -> CallProgress {
    CallProgress::Done { result, duration_ms: 0 }
}
