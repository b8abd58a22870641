//! An action that is named like a built-in tool.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::SHADOWED_BUILTIN,
    name: "shadowed-builtin",
    severity: Severity::Error,
    page: include_str!("shadowed_builtin.md"),
    look: None,
};
