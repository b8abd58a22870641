//! A declaration that loosens what its action says.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler reports it.
pub const RULE: Rule = Rule {
    code: codes::LOOSENED,
    name: "loosened",
    severity: Severity::Warning,
    page: include_str!("loosened.md"),
    look: None,
};
