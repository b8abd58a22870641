//! A field that is missing.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::MISSING_FIELD,
    name: "missing-field",
    severity: Severity::Error,
    page: include_str!("missing_field.md"),
    look: None,
};
