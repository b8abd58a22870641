//! Two actions of one name.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::TWO_OF_A_NAME,
    name: "two-of-a-name",
    severity: Severity::Error,
    page: include_str!("two_of_a_name.md"),
    look: None,
};
