//! A value in a JSON text that stands outside of quotes.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNQUOTED,
    name: "unquoted",
    severity: Severity::Warning,
    page: include_str!("unquoted.md"),
    look: None,
};
