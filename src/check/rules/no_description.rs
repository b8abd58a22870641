//! A tool without a description.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NO_DESCRIPTION,
    name: "no-description",
    severity: Severity::Warning,
    page: include_str!("no_description.md"),
    look: None,
};
