//! A loop without tools of its own.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NO_TOOLS,
    name: "no-tools",
    severity: Severity::Warning,
    page: include_str!("no_tools.md"),
    look: None,
};
