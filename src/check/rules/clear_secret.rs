//! A secret that is sent in the clear.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::CLEAR_SECRET,
    name: "clear-secret",
    severity: Severity::Warning,
    page: include_str!("clear_secret.md"),
    look: None,
};
