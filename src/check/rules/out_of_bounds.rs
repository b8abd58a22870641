//! A number out of its bounds.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::OUT_OF_BOUNDS,
    name: "out-of-bounds",
    severity: Severity::Error,
    page: include_str!("out_of_bounds.md"),
    look: None,
};
