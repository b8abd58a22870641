//! A workflow that is not found.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNKNOWN_WORKFLOW,
    name: "unknown-workflow",
    severity: Severity::Error,
    page: include_str!("unknown_workflow.md"),
    look: None,
};
