//! A key that stands twice in an object.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::DUPLICATE_KEY,
    name: "duplicate-key",
    severity: Severity::Error,
    page: include_str!("duplicate_key.md"),
    look: None,
};
