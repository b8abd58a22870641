//! An input that is missing.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::MISSING_INPUT,
    name: "missing-input",
    severity: Severity::Error,
    page: include_str!("missing_input.md"),
    look: None,
};
