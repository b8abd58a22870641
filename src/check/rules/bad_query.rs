//! A query whose placeholders and parameters do not fit.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_QUERY,
    name: "bad-query",
    severity: Severity::Error,
    page: include_str!("bad_query.md"),
    look: None,
};
