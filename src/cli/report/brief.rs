//! Reports of one line each: warnings of a loop that runs anyway, and applied fixes.

use std::path::Path;

use crate::cli::next_commands::quoted;
use crate::diagnostic::{Diagnostic, Severity};
use crate::trace::layout::cut;
use crate::trace::units::plural;
use crate::trace::{Look, Tone, escape};

/// The most diagnostics that are shown; the others are counted.
const MAX_DIAGNOSTICS: usize = 10;
/// The most columns of an old or a new text.
const MAX_COLUMNS: usize = 60;

/// A suggestion that was applied.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// The diagnostic that it fixed.
    pub fault: Diagnostic,
    /// The text before.
    pub before: String,
    /// The text now.
    pub after: String,
}

/// The diagnostics, one line each, and the command that shows their details.
pub fn brief(diagnostics: &[Diagnostic], file: &Path, look: &Look) -> String {
    let mut lines: Vec<String> = diagnostics.iter().take(MAX_DIAGNOSTICS).map(|fault| line(fault, look)).collect();
    if let Some(more) = diagnostics.len().checked_sub(MAX_DIAGNOSTICS).filter(|more| *more > 0) {
        lines.push(format!("and {}", plural(more, "more warning")));
    }
    let check = match file.to_str() {
        Some("-") | None => "loopctl check".to_owned(),
        Some(file) => format!("loopctl check {}", quoted(file)),
    };
    if let Some(last) = lines.last_mut() {
        let more = format!("; `{}` shows the details", escape::line(&check));
        last.push_str(&look.paint(Tone::Dim, &more));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn line(fault: &Diagnostic, look: &Look) -> String {
    let (tone, word) = match fault.severity {
        Severity::Error => (Tone::Bad, "error"),
        Severity::Warning => (Tone::Warn, "warning"),
    };
    head(fault, &look.paint(tone, &format!("{word}[{}]", fault.code))) + &escape::line(&fault.message)
}

fn head(fault: &Diagnostic, label: &str) -> String {
    let place = &fault.place;
    format!("{label} {}:{}:{}: ", escape::line(&place.file), place.line, place.column)
}

/// The applied fixes, one on each line.
pub fn fixed(fixes: &[Fixed], look: &Look) -> String {
    let one = |fixed: &Fixed| {
        let shown = |text: &str| cut(&escape::line(text), MAX_COLUMNS);
        let (before, after) = (shown(&fixed.before), shown(&fixed.after));
        let change = match (fixed.before.trim().is_empty(), fixed.after.trim().is_empty()) {
            (_, true) => format!("took out {before}"),
            (true, false) => format!("put in {after}"),
            (false, false) => format!("{before} is {after} now"),
        };
        let label = look.paint(Tone::Good, &format!("fixed[{}]", fixed.fault.code));
        head(&fixed.fault, &label) + &change + "\n"
    };
    fixes.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    fn warnings(count: usize) -> Vec<Diagnostic> {
        let source = Source::new("loop.json", "{\n\"a\": 1}");
        (0..count)
            .map(|_| Diagnostic::warning("L072", "no description", "", source.place(2, 5)).help("write one"))
            .collect()
    }

    #[test]
    fn warnings_have_a_line_each_and_the_last_names_the_command_for_the_details() {
        let look = Look::plain(80);
        assert_eq!(
            brief(&warnings(2), Path::new("my loops/loop.json"), &look),
            "warning[L072] loop.json:2:1: no description\n\
             warning[L072] loop.json:2:1: no description; `loopctl check 'my loops/loop.json'` shows the details\n"
        );
        assert_eq!(brief(&[], Path::new("x"), &look), "");
        assert!(brief(&warnings(1), Path::new("-"), &look).ends_with("; `loopctl check` shows the details\n"));
    }

    #[test]
    fn many_warnings_are_counted() {
        let shown = brief(&warnings(12), Path::new("x"), &Look::plain(80));
        assert_eq!(shown.lines().count(), 11);
        assert!(shown.ends_with("and 2 more warnings; `loopctl check x` shows the details\n"), "{shown}");
    }

    #[test]
    fn a_fix_says_what_stood_there_and_what_stands_there_now() {
        let one = |before: &str, after: &str| {
            let fault = warnings(1).remove(0);
            fixed(&[Fixed { fault, before: before.to_owned(), after: after.to_owned() }], &Look::plain(80))
        };
        assert_eq!(one("\"a\"", "\"b\""), "fixed[L072] loop.json:2:1: \"a\" is \"b\" now\n");
        assert_eq!(one("// x\u{1b}[2J\n", ""), "fixed[L072] loop.json:2:1: took out // x\\u{1B}[2J\\n\n");
        assert_eq!(one("", ","), "fixed[L072] loop.json:2:1: put in ,\n");
    }
}
