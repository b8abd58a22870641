//! An action of a kind that can't be run here.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NOT_RUNNABLE,
    name: "not-runnable",
    severity: Severity::Error,
    page: include_str!("not_runnable.md"),
    look: None,
};
