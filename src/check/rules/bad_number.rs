//! A number that is not well formed.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NUMBER,
    name: "bad-number",
    severity: Severity::Error,
    page: include_str!("bad_number.md"),
    look: None,
};
