//! A word that is none of those that are known.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::WRONG_WORD,
    name: "wrong-word",
    severity: Severity::Error,
    page: include_str!("wrong_word.md"),
    look: None,
};
