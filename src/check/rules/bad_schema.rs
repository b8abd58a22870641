//! A JSON Schema that is not valid.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_SCHEMA,
    name: "bad-schema",
    severity: Severity::Error,
    page: include_str!("bad_schema.md"),
    look: None,
};
