//! The rules, in the order of their codes.

use super::Rule;

/// All rules.
pub const RULES: &[Rule] = &[];
