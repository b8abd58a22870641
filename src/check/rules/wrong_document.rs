//! A document of another kind than is meant.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NO_LOOP,
    name: "wrong-document",
    severity: Severity::Error,
    page: include_str!("wrong_document.md"),
    look: None,
};
