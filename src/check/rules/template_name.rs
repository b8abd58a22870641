//! A name that means nothing where it stands in a template.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TEMPLATE_NAME,
    name: "template-name",
    severity: Severity::Error,
    page: include_str!("template_name.md"),
    look: None,
};
