//! A template that is not well formed.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TEMPLATE,
    name: "template-syntax",
    severity: Severity::Error,
    page: include_str!("template_syntax.md"),
    look: None,
};
