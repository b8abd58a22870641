//! A document that is too deep or too large.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TOO_MUCH,
    name: "too-much",
    severity: Severity::Error,
    page: include_str!("too_much.md"),
    look: None,
};
