//! A variable that the action's parameters do not have.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NO_PARAMETER,
    name: "no-parameter",
    severity: Severity::Error,
    page: include_str!("no_parameter.md"),
    look: None,
};
