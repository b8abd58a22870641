//! An input that the loop does not take.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_INPUT,
    name: "bad-input",
    severity: Severity::Error,
    page: include_str!("bad_input.md"),
    look: None,
};
