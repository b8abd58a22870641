//! A file that can't be read.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::FILE,
    name: "unreadable-file",
    severity: Severity::Error,
    page: include_str!("unreadable_file.md"),
    look: None,
};
