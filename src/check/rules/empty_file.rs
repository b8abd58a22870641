//! A file with nothing in it.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::EMPTY,
    name: "empty-file",
    severity: Severity::Error,
    page: include_str!("empty_file.md"),
    look: None,
};
