//! Text that is not JSON.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::SYNTAX,
    name: "syntax",
    severity: Severity::Error,
    page: include_str!("syntax.md"),
    look: None,
};
