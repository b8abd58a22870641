//! A helper, block or partial that templates do not have.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TEMPLATE_HELPER,
    name: "template-helper",
    severity: Severity::Error,
    page: include_str!("template_helper.md"),
    look: None,
};
