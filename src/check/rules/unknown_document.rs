//! A document of no known kind.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNKNOWN_DOCUMENT,
    name: "unknown-document",
    severity: Severity::Error,
    page: include_str!("unknown_document.md"),
    look: None,
};
