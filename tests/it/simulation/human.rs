//! The simulated human: decides what is asked for, sometimes after something that must be refused.

use loopctl::Program;
use loopctl::engine::continuation::{is_outage, limit_of, limits, used};
use loopctl::engine::event::{Allowance, Decided, Decision, EventKind, LimitsRaised, RaisedLimits, Retried};
use loopctl::engine::outcome::{Ending, Limit, Pause, Termination};
use loopctl::engine::state::{Phase, State};
use serde_json::json;

use crate::simulation::chance::Chance;

/// What the human does about the pause.
pub fn decides(chance: &mut Chance, pause: &Pause) -> EventKind {
    let decision = match pause.question.kind {
        Termination::Human | Termination::Stuck => Decision::Answer("go on".to_owned()),
        Termination::Approval => match chance.below(5) {
            0 => Decision::Deny(Some("no".to_owned())),
            1 => Decision::Edit(json!({ "n": 7 })),
            _ => Decision::Approve,
        },
        Termination::Uncertain => match chance.below(3) {
            0 => Decision::Happened(json!({ "did": "it" })),
            1 => Decision::Failed("it did not".to_owned()),
            _ => Decision::Retry,
        },
        Termination::ModelError => Decision::Retry,
        other => panic!("a run pauses for {other:?}"),
    };
    let several = pause.calls.len() > 1;
    // Only a denial may be for all.
    let alone = several && (chance.one_in(2) || !matches!(decision, Decision::Deny(_)));
    let call = alone.then(|| chance.pick(&pause.calls));
    let number = chance.one_in(2).then_some(pause.number);
    // One of two people; the wrong one, or one who is too late, is refused.
    let by = Some(chance.pick(&["ana", "ben"]).to_owned());
    EventKind::Human(Decided { pause: number, call, by, ..Decided::from(decision) })
}

/// A decision that this pause must refuse.
pub fn refused(chance: &mut Chance, pause: &Pause) -> EventKind {
    let other = match pause.question.kind {
        // Only the run below knows which edits are valid.
        Termination::Approval if pause.asks.is_some() => {
            chance.pick(&[Decision::Answer("yes".to_owned()), Decision::Retry])
        }
        Termination::Human | Termination::Stuck => chance.pick(&[Decision::Approve, Decision::Retry]),
        Termination::Approval => {
            chance.pick(&[Decision::Answer("yes".to_owned()), Decision::Retry, Decision::Edit(json!({ "n": "x" }))])
        }
        _ => chance.pick(&[Decision::Approve, Decision::Deny(None)]),
    };
    let late = Decision::Answer("late".to_owned());
    let old = Decided { pause: Some(pause.number + 1), ..Decided::from(late) };
    EventKind::Human(if chance.one_in(3) { old } else { Decided::from(other) })
}

/// How the human makes a run continue that has ended; none when it can't.
pub fn continues(chance: &mut Chance, program: &Program, state: &State) -> Option<EventKind> {
    let Phase::Ended(ending) = &state.phase else { return None };
    if is_outage(ending) {
        return Some(EventKind::Retried(Retried::by(Some("ana".to_owned()))));
    }
    let limit = limit_of(ending).or_else(|| state.as_loop()?.cancelled_in.as_ref().map(|_| Limit::MaxIterations))?;
    Some(raise(higher(chance, program, state, limit)))
}

/// What must be refused of a run that has ended: a retry where nothing is to be retried, a limit that did not end it,
/// one that is used up.
pub fn refused_of_ended(chance: &mut Chance, state: &State, ending: &Ending) -> EventKind {
    let used = used(state);
    let low = RaisedLimits { max_iterations: used.max_iterations, ..RaisedLimits::default() };
    match (is_outage(ending), limit_of(ending)) {
        (true, _) => raise(RaisedLimits { max_iterations: Some(u32::MAX), ..RaisedLimits::default() }),
        (false, Some(Limit::MaxIterations)) if chance.one_in(2) => {
            raise(RaisedLimits { timeout_ms: Some(u64::MAX), ..RaisedLimits::default() })
        }
        (false, _) if chance.one_in(2) => raise(low),
        _ => EventKind::Retried(Retried::default()),
    }
}

fn raise(limits: RaisedLimits) -> EventKind {
    EventKind::LimitsRaised(LimitsRaised { limits, by: Some("ana".to_owned()), bound: None })
}

/// Limits above the present ones and above what is used: enough to go on for a while.
fn higher(chance: &mut Chance, program: &Program, state: &State, limit: Limit) -> RaisedLimits {
    let (present, used) = (limits(program, state), used(state));
    let most = |present: Option<u64>, used: Option<u64>| present.max(used).unwrap_or_default();
    let iterations = present.max_iterations.max(used.max_iterations).unwrap_or_default();
    let mut raised = RaisedLimits::default();
    // What else is used up ends the run again.
    if limit == Limit::MaxIterations || used.max_iterations >= present.max_iterations || chance.one_in(4) {
        raised.max_iterations = Some(iterations + 1 + chance.below(4) as u32);
    }
    if limit == Limit::Timeout || used.timeout_ms >= present.timeout_ms || chance.one_in(4) {
        raised.timeout_ms = Some(most(present.timeout_ms, used.timeout_ms) + 1 + chance.below(30_000));
    }
    let Allowance { tokens, cost_usd } = present.budget;
    raised.budget.tokens = tokens.map(|_| most(tokens, used.budget.tokens) + 1 + chance.below(2_000));
    raised.budget.cost_usd = cost_usd.map(|most| most.max(used.budget.cost_usd.unwrap_or_default()) + 0.002);
    raised
}
