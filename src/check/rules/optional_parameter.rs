//! A variable whose parameter may be left out.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::OPTIONAL_PARAMETER,
    name: "optional-parameter",
    severity: Severity::Warning,
    page: include_str!("optional_parameter.md"),
    look: None,
};
