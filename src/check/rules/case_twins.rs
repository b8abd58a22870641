//! Two tools whose names differ by case only.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::CASE_TWINS,
    name: "case-twins",
    severity: Severity::Warning,
    page: include_str!("case_twins.md"),
    look: None,
};
