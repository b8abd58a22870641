//! A value of another type than is meant.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::WRONG_TYPE,
    name: "wrong-type",
    severity: Severity::Error,
    page: include_str!("wrong_type.md"),
    look: None,
};
