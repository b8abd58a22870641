//! A comment.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::COMMENT,
    name: "comment",
    severity: Severity::Error,
    page: include_str!("comment.md"),
    look: None,
};
