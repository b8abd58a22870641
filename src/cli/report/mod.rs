//! Reports of faults in documents: for people, for machines.

mod brief;
mod github;
mod hidden_secrets;
mod human;
mod sarif;

pub use brief::{Fixed, brief, fixed};
pub use github::{github, github_lines};
pub use human::{Tally, checked, each, human, tally};
pub use sarif::sarif;

use crate::cli::remedies::words;
use crate::diagnostic::Diagnostic;
use crate::trace::escape;

/// All faults as one array on one line, without a newline at its end. Every fault has every field, so that a
/// reader need not check which fields exist.
pub fn json(diagnostics: &[Diagnostic]) -> String {
    let said: Vec<Diagnostic> = diagnostics.iter().map(|fault| fault.clone().said(words)).collect();
    let text = serde_json::to_string(&said).unwrap_or_else(|_| "[]".to_owned());
    escape::json(&text).into_owned()
}
