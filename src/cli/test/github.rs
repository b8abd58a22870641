//! The report as GitHub workflow commands, which annotate a pull request.

use super::TestedFile;
use crate::cli::report;
use crate::diagnostic::Diagnostic;

/// The report.
pub(super) fn report(files: &[TestedFile]) -> String {
    let mut all: Vec<Diagnostic> = Vec::new();
    for file in files {
        all.extend(file.diagnostics.iter().cloned());
        for (verdict, failures) in file.each() {
            all.extend(failures.iter().map(|failure| Diagnostic {
                message: format!("{}: {}", verdict.name, failure.message),
                ..failure.clone()
            }));
        }
    }
    report::github(&all)
}
