//! A required parameter that nothing uses.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNUSED_PARAMETER,
    name: "unused-parameter",
    severity: Severity::Warning,
    page: include_str!("unused_parameter.md"),
    look: None,
};
