//! An address that can't be one.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_URL,
    name: "bad-url",
    severity: Severity::Error,
    page: include_str!("bad_url.md"),
    look: None,
};
