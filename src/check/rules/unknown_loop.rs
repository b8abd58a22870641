//! A loop that is not found.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::UNKNOWN_LOOP,
    name: "unknown-loop",
    severity: Severity::Error,
    page: include_str!("unknown_loop.md"),
    look: None,
};
