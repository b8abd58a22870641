//! A variable of the environment that makes a program load others.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::LOADER,
    name: "loader",
    severity: Severity::Error,
    page: include_str!("loader.md"),
    look: None,
};
