//! Stuck detection that needs more iterations than the loop has.

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::NodeKind;

pub const RULE: Rule = Rule { code: codes::STUCK_NEVER_FIRES, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    // Another field of `on_stuck` may have a fault, and its iterations are what is written all the same.
    let Some(react) = subject.react(&["max_iterations", "on_stuck/iterations"]) else { return };
    let written = subject.property("on_stuck/iterations").and_then(|cursor| match &cursor.node()?.kind {
        NodeKind::Number(digits) => digits.parse().ok(),
        _ => None,
    });
    let (needed, most) = (written.unwrap_or(react.on_stuck.iterations), react.max_iterations);
    let Some(stuck) = subject.property("on_stuck").filter(|_| needed > most) else { return };
    let cursor = subject.property("on_stuck/iterations").unwrap_or(stuck);
    let message = format!("a circle shows after {needed} iterations, and the loop has {most} in all: it is never seen");
    let more = format!("give `max_iterations` {needed} or more");
    let fault = cursor.report(&RULE, message);
    let fault = fault.help(if most < 2 { more } else { format!("{more}, or `on_stuck.iterations` {most} or less") });
    found.push(match subject.property("max_iterations") {
        Some(most) => fault.related(&most.place(), "the loop's iterations are bounded here"),
        None => fault,
    });
}
