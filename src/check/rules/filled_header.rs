//! A header that takes a secret and a value of the run's input.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler reports it.
pub const RULE: Rule = Rule {
    code: codes::FILLED_HEADER,
    name: "filled-header",
    severity: Severity::Error,
    page: include_str!("filled_header.md"),
    look: None,
};
