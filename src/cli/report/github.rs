//! Faults as GitHub's workflow commands, which show them at their lines of a pull request. Texts of a document
//! can't start a command: a command starts a line, and messages and names contain no line breaks.

use std::fmt::Write as _;

use crate::cli::remedies::help;
use crate::diagnostic::{Diagnostic, Severity};
use crate::trace::escape;

#[cfg(test)]
mod tests;

/// One command a line.
pub fn github(diagnostics: &[Diagnostic]) -> String {
    let mut shown = String::new();
    for fault in diagnostics {
        let level = match fault.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let place = &fault.place;
        let file = place.file.strip_prefix("./").unwrap_or(&place.file);
        let _ = write!(shown, "::{level} file={},line={}", property(file), place.line);
        // GitHub shows columns only for a fault on one line.
        let _ = if place.line == place.end_line {
            write!(shown, ",col={},endLine={},endColumn={}", place.column, place.end_line, place.end_column)
        } else {
            write!(shown, ",endLine={}", place.end_line)
        };
        let mut message = escape::terminal(&fault.message).into_owned();
        if let Some(help) = help(fault) {
            message.push_str("\nhelp: ");
            message.push_str(&escape::terminal(&help));
        }
        let _ = writeln!(shown, ",title={}::{}", property(fault.code), data(&message));
    }
    shown
}

/// Escapes the message of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a property of a command.
fn property(text: &str) -> String {
    data(&escape::line(text)).replace(':', "%3A").replace(',', "%2C")
}
