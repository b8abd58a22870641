//! A text or an array that is too short or too long.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::WRONG_LENGTH,
    name: "wrong-length",
    severity: Severity::Error,
    page: include_str!("wrong_length.md"),
    look: None,
};
