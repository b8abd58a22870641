//! The simulated human: decides what is asked for, sometimes after something that must be refused.

use loopctl::engine::event::{Decided, Decision, EventKind};
use loopctl::engine::outcome::{Pause, Termination};
use serde_json::json;

use crate::chance::Chance;

/// What the human does about the pause.
pub fn decides(chance: &mut Chance, pause: &Pause) -> EventKind {
    let decision = match pause.kind {
        Termination::Human | Termination::Stuck => Decision::Answer("go on".to_owned()),
        Termination::Approval => match chance.below(5) {
            0 => Decision::Deny(Some("no".to_owned())),
            1 => Decision::Edit(json!({ "n": 7 })),
            _ => Decision::Approve,
        },
        Termination::Uncertain => match chance.below(2) {
            0 => Decision::Happened(json!({ "did": "it" })),
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
    EventKind::Human(Decided { pause: number, call, ..Decided::from(decision) })
}

/// A decision that this pause must refuse.
pub fn refused(chance: &mut Chance, pause: &Pause) -> EventKind {
    let other = match pause.kind {
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
