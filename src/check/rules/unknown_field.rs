//! A field that is not known.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNKNOWN_FIELD,
    name: "unknown-field",
    severity: Severity::Error,
    page: include_str!("unknown_field.md"),
    look: None,
};
