//! A password in an address.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule = Rule {
    code: codes::CREDENTIALS,
    name: "credentials",
    severity: Severity::Error,
    page: include_str!("credentials.md"),
    look: None,
};
