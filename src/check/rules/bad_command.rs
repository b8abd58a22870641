//! A program or environment that can't be one.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::BAD_COMMAND,
    name: "bad-command",
    severity: Severity::Error,
    page: include_str!("bad_command.md"),
    look: None,
};
