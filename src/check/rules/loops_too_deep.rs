//! Loops that lie too deep in each other.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::LOOPS_TOO_DEEP,
    name: "loops-too-deep",
    severity: Severity::Error,
    page: include_str!("loops_too_deep.md"),
    look: None,
};
