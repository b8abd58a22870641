//! A built-in tool that is declared.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::DECLARED_BUILTIN,
    name: "declared-builtin",
    severity: Severity::Warning,
    page: include_str!("declared_builtin.md"),
    look: None,
};
