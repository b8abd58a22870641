//! What formatting changes in files, for people and for GitHub.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use super::ChangedFile;
use crate::cli::report;
use crate::trace::layout::cut;
use crate::trace::units::plural;
use crate::trace::{Look, Redaction, Tone, escape};

/// The most files whose changes are shown.
const MAX_FILES: usize = 20;
/// The most lines that are shown of a file.
const MAX_LINES: usize = 60;
/// The longest text whose lines are compared, in bytes.
const MAX_COMPARED_BYTES: usize = 1 << 20;
/// The unchanged lines around a change.
const CONTEXT_LINES: usize = 1;
/// How long the shortest comparison of two texts is searched; after that a longer one is taken.
const MAX_SEARCH: Duration = Duration::from_millis(200);

/// The lines of each file that would change: those of the file with `-`, those of the formatted text with `+`.
pub fn shown(changed: &[&ChangedFile], look: &Look) -> String {
    let mut shown: String = changed.iter().take(MAX_FILES).map(|file| changes_of(file, look)).collect();
    if let Some(more) = changed.len().checked_sub(MAX_FILES).filter(|more| *more > 0) {
        shown.push_str(&format!("and the changes of {}\n\n", plural(more, "more file")));
    }
    shown
}

fn changes_of(file: &ChangedFile, look: &Look) -> String {
    let (before, after) = (&*file.before.text, &*file.after);
    let mut shown = look.paint(Tone::Bold, &escape::line(&file.before.name)) + "\n";
    if before.len().max(after.len()) > MAX_COMPARED_BYTES {
        return shown + "  the file is too long to show what changes\n\n";
    }
    let redact = Redaction::default();
    let line = |tone: Option<Tone>, mark: char, text: &str| {
        let text = redact.whole(text.trim_end_matches('\n'));
        let text = cut(&format!("{mark} {}", escape::line(&text)), look.width);
        tone.map_or_else(|| text.clone(), |tone| look.paint(tone, &text)) + "\n"
    };
    let compared = TextDiff::configure().timeout(MAX_SEARCH).diff_lines(before, after);
    let mut lines = Vec::new();
    for group in compared.grouped_ops(CONTEXT_LINES) {
        let first = group.first().map_or(0, |op| op.old_range().start) + 1;
        lines.push(look.paint(Tone::Dim, &format!("@ line {first}")) + "\n");
        for change in group.iter().flat_map(|op| compared.iter_changes(op)) {
            lines.push(match change.tag() {
                ChangeTag::Delete => line(Some(Tone::Bad), '-', change.value()),
                ChangeTag::Insert => line(Some(Tone::Good), '+', change.value()),
                ChangeTag::Equal => line(None, ' ', change.value()),
            });
        }
    }
    shown.extend(lines.iter().take(MAX_LINES).map(String::as_str));
    if let Some(more) = lines.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
        shown.push_str(&format!("and {}\n", plural(more, "more line")));
    }
    shown + "\n"
}

/// The annotation of a file, from the first line that changes to the last one.
pub fn github(file: &ChangedFile, is_check: bool) -> String {
    let lines = differing_lines(&file.before.text, &file.after);
    let message = if is_check { "the file is not formatted: run `loopctl fmt`" } else { "the file is formatted now" };
    report::github_lines(&file.before.name, lines, "fmt", message)
}

/// The numbers of the first and the last line of a text that another one does not have.
fn differing_lines(before: &str, after: &str) -> [usize; 2] {
    let count = before.lines().count().max(1);
    let same = |(one, other): &(&str, &str)| one == other;
    let first = before.lines().zip(after.lines()).take_while(same).count();
    let last = before.lines().rev().zip(after.lines().rev()).take_while(same).count();
    let first = (first + 1).min(count);
    [first, count.saturating_sub(last).max(first)]
}
