//! A secret that is sent to a host which a value names.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::WANDERING_SECRET,
    name: "wandering-secret",
    severity: Severity::Error,
    page: include_str!("wandering_secret.md"),
    look: None,
};
