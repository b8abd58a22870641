//! A parameter with the name of something of the engine's.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::HIDDEN_PARAMETER,
    name: "hidden-parameter",
    severity: Severity::Warning,
    page: include_str!("hidden_parameter.md"),
    look: None,
};
