//! Hints that `max_iterations` has no room for.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::react::StuckAction;

pub const RULE: Rule = Rule { code: codes::HINTS_WITHOUT_ROOM, check };

/// How many hints a run gives before it fails as stuck.
const HINTS: u32 = 2;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(react) = subject.react(&["max_iterations", "on_stuck/iterations", "on_stuck/action"]) else { return };
    let (needed, most) = (react.on_stuck.iterations, react.max_iterations);
    // When not even one cycle fits, that is reported with a code of its own.
    if react.on_stuck.action != StuckAction::RetryWithHint || needed == 0 || needed > most {
        return;
    }
    // A hint that no iteration follows helps nobody.
    let room = (most - 1) / needed;
    let Some(cursor) = subject.property("on_stuck/action").filter(|_| room < HINTS) else { return };
    let what = if room == 0 { "no hint can be followed" } else { "only one of the two hints can be followed" };
    let message = format!("{what}: each comes after {needed} iterations, and the loop has {most} in all");
    let wanted = needed.saturating_mul(HINTS).saturating_add(1);
    let fault = cursor.report(&RULE, message).help(format!("`max_iterations` of {wanted} or more has room for both"));
    found.push(match subject.property("max_iterations") {
        Some(most) => fault.related(&most.place(), "the loop's iterations are bounded here"),
        None => fault,
    });
}
