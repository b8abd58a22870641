//! A document that matches its schema and can't be read all the same.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNREADABLE,
    name: "unreadable-document",
    severity: Severity::Error,
    page: include_str!("unreadable_document.md"),
    look: None,
};
