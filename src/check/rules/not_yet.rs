//! Something that is known and can't be run here.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::NOT_YET,
    name: "not-yet",
    severity: Severity::Error,
    page: include_str!("not_yet.md"),
    look: None,
};
