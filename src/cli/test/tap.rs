//! The report in the Test Anything Protocol, version 14.

use std::fmt::Write as _;

use serde_json::Value;

use super::TestedFile;
use crate::diagnostic::Diagnostic;
use crate::trace::escape;

pub(super) fn report(files: &[TestedFile]) -> String {
    let (mut lines, mut count) = (String::new(), 0);
    for file in files {
        let errors: Vec<&Diagnostic> = file.diagnostics.iter().filter(|fault| fault.is_error()).collect();
        if !errors.is_empty() {
            count += 1;
            point(&mut lines, count, false, &format!("{}: the file can be played", file.name));
            errors.into_iter().for_each(|error| details(&mut lines, error));
        }
        for (verdict, failures) in file.each() {
            count += 1;
            point(&mut lines, count, failures.is_empty(), &format!("{}: {}", file.name, verdict.name));
            failures.iter().for_each(|failure| details(&mut lines, failure));
        }
    }
    format!("TAP version 14\n1..{count}\n{lines}")
}

fn point(lines: &mut String, number: usize, holds: bool, name: &str) {
    let word = if holds { "ok" } else { "not ok" };
    // A `#` begins a directive, and a line ends the point.
    let name: String = name.replace('#', "\\#").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let name = escape::report(&name);
    // Writing to a string can't fail.
    let _ = writeln!(lines, "{word} {number} - {name}");
}

/// A block of YAML, whose texts are written as JSON.
fn details(lines: &mut String, fault: &Diagnostic) {
    let text = |text: &str| escape::json(&Value::from(text).to_string()).into_owned();
    let at = format!("{}:{}:{}", fault.place.file, fault.place.line, fault.place.column);
    let _ = writeln!(
        lines,
        "  ---\n  message: {}\n  expectation: {}\n  at: {}\n  ...",
        text(&fault.message),
        text(fault.code),
        text(&at)
    );
}
