//! A secret written out.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::SECRET,
    name: "secret",
    severity: Severity::Error,
    page: include_str!("secret.md"),
    look: None,
};
