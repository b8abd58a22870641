//! Faults as one line of JSON.

use crate::diagnostic::Diagnostic;
use crate::trace::escape;

/// All faults as one array on one line, without a newline at its end. Every fault has every field, so that a
/// reader need not check which fields exist.
pub fn json(diagnostics: &[Diagnostic]) -> String {
    let text = serde_json::to_string(diagnostics).unwrap_or_else(|_| "[]".to_owned());
    escape::json(&text).into_owned()
}
