//! A comma too many or too few.

use crate::check::Rule;
use crate::diagnostic::{Severity, codes};

/// The rule; the compiler tells it.
pub const RULE: Rule =
    Rule { code: codes::COMMA, name: "comma", severity: Severity::Error, page: include_str!("comma.md"), look: None };
