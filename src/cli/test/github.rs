//! The report as GitHub workflow commands, which annotate a pull request.

use super::Tested;
use crate::cli::report;
use crate::diagnostic::Diagnostic;

pub(super) fn report(tested: &Tested<'_>) -> String {
    let mut all: Vec<Diagnostic> = Vec::new();
    for file in tested.files {
        all.extend(file.diagnostics.iter().cloned());
        for (verdict, failures) in file.each() {
            all.extend(failures.iter().map(|failure| Diagnostic {
                message: format!("{}: {}", verdict.name, failure.message),
                ..failure.clone()
            }));
        }
    }
    all.extend(tested.coverage.into_iter().flat_map(|coverage| coverage.report.missing().cloned()));
    report::github(&all)
}
