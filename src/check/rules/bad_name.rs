//! A name that is not allowed.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_NAME,
    name: "bad-name",
    severity: Severity::Error,
    page: include_str!("bad_name.md"),
    look: None,
};
