//! Loops that call each other in a circle.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::LOOP_CYCLE,
    name: "loop-cycle",
    severity: Severity::Error,
    page: include_str!("loop_cycle.md"),
    look: None,
};
