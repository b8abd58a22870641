//! A tool in the old form.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::LEGACY_TOOL,
    name: "legacy-tool",
    severity: Severity::Warning,
    page: include_str!("legacy_tool.md"),
    look: None,
};
