//! A template that is too long or too deep.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TEMPLATE_SIZE,
    name: "template-size",
    severity: Severity::Error,
    page: include_str!("template_size.md"),
    look: None,
};
