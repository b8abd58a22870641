//! A header that takes a secret and a value of the model.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::MIXED_HEADER,
    name: "mixed-header",
    severity: Severity::Error,
    page: include_str!("mixed_header.md"),
    look: None,
};
