//! A string that is not well formed.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::STRING,
    name: "bad-string",
    severity: Severity::Error,
    page: include_str!("bad_string.md"),
    look: None,
};
