//! A secret in a text that a model reads.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::SECRET_IN_PROMPT,
    name: "secret-in-prompt",
    severity: Severity::Error,
    page: include_str!("secret_in_prompt.md"),
    look: None,
};
