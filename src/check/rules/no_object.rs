//! Parameters that no object matches.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NO_OBJECT,
    name: "no-object",
    severity: Severity::Error,
    page: include_str!("no_object.md"),
    look: None,
};
