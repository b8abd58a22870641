//! A header that can't be one.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_HEADER,
    name: "bad-header",
    severity: Severity::Error,
    page: include_str!("bad_header.md"),
    look: None,
};
