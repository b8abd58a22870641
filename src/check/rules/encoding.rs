//! A text that is not plain UTF-8.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::ENCODING,
    name: "encoding",
    severity: Severity::Error,
    page: include_str!("encoding.md"),
    look: None,
};
