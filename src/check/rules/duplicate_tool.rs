//! A tool that is declared twice.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::DUPLICATE_TOOL,
    name: "duplicate-tool",
    severity: Severity::Error,
    page: include_str!("duplicate_tool.md"),
    look: None,
};
