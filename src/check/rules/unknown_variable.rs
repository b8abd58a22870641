//! A variable that nothing supplies.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNKNOWN_VARIABLE,
    name: "unknown-variable",
    severity: Severity::Error,
    page: include_str!("unknown_variable.md"),
    look: None,
};
