//! Faults for people: the line is underlined, as by rustc, whose renderer is used.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::hidden_secrets::hide;
use crate::cli::found_documents::few_names;
use crate::cli::remedies::help;
use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::trace::units::plural;
use crate::trace::{Look, Tone, escape};

/// A fault that spans more lines than this is underlined on its first one only.
const MAX_LINES: u32 = 8;
/// How many bytes of a line are shown on each side of a fault: minified documents have one line.
const MAX_CONTEXT_BYTES: usize = 2_000;
/// Replaces the part of a line that is not shown.
const CUT: &str = "...";
/// The columns between the number of a line and its text.
const GUTTER: usize = 3;
/// How many columns beside a change are shown in any case.
const MIN_SIDE_COLUMNS: usize = 8;

/// The faults, each with its place, and their count last.
pub fn human(diagnostics: &[Diagnostic], sources: &[Source], look: &Look) -> String {
    let mut shown = each(diagnostics, sources, look);
    let counts = counts(diagnostics, look);
    if !counts.is_empty() {
        shown.push_str(&counts);
        shown.push('\n');
    }
    shown
}

/// The faults, each with its place, and the result of the check last.
pub fn checked(diagnostics: &[Diagnostic], sources: &[Source], checked: &Tally, look: &Look) -> String {
    each(diagnostics, sources, look) + &tally(diagnostics, checked, look)
}

/// How much was checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many files were checked.
    pub files: usize,
    /// The JSON files that were skipped: they are not documents of loopctl.
    pub skipped: Vec<String>,
    /// How many fixes were applied.
    pub fixed: usize,
    /// In how many files.
    pub fixed_files: usize,
}

/// The result of a check, in one line: `3 errors, 1 warning in 5 files`, `no errors or warnings in 5 files`.
pub fn tally(diagnostics: &[Diagnostic], tally: &Tally, look: &Look) -> String {
    let files = plural(tally.files, "file");
    let counts = counts(diagnostics, look);
    let mut line = if counts.is_empty() {
        look.paint(Tone::Good, &format!("no errors or warnings in {files}"))
    } else {
        format!("{counts} in {files}")
    };
    if tally.fixed > 0 {
        let fixed = format!("; {} fixed in {}", plural(tally.fixed, "fault"), plural(tally.fixed_files, "file"));
        line.push_str(&fixed);
    }
    if !tally.skipped.is_empty() {
        let count = plural(tally.skipped.len(), "other JSON file");
        let skipped = format!(" ({count} skipped{})", escape::line(&few_names(&tally.skipped)));
        line.push_str(&look.paint(Tone::Dim, &skipped));
    }
    line + "\n"
}

/// The faults, each with its place.
pub fn each(diagnostics: &[Diagnostic], sources: &[Source], look: &Look) -> String {
    let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() }.term_width(look.width);
    let sources = hide(diagnostics, sources);
    let by_name: BTreeMap<&str, &Source> = sources.iter().rev().map(|source| (&*source.name, source)).collect();
    let mut shown = String::new();
    for diagnostic in diagnostics {
        let source = by_name.get(&*diagnostic.place.file).copied();
        shown.push_str(&one(diagnostic, source, &renderer, look.width));
        shown.push_str("\n\n");
    }
    shown
}

/// `3 errors, 1 warning`; empty without any.
fn counts(diagnostics: &[Diagnostic], look: &Look) -> String {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    let mut parts = Vec::new();
    if errors > 0 {
        parts.push(look.paint(Tone::Bad, &plural(errors, "error")));
    }
    if warnings > 0 {
        parts.push(look.paint(Tone::Warn, &plural(warnings, "warning")));
    }
    parts.join(", ")
}

fn one(diagnostic: &Diagnostic, source: Option<&Source>, renderer: &Renderer, width: usize) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let place = &diagnostic.place;
    let excerpt = source.map(|source| Excerpt::new(source, diagnostic));
    let title = level.primary_title(escape::terminal(&diagnostic.message)).id(diagnostic.code);
    let mut group = match &excerpt {
        Some(excerpt) => {
            let mark: Annotation<'_> = AnnotationKind::Primary.span(excerpt.span.clone());
            title.element(excerpt.snippet(&place.file).annotation(mark))
        }
        None => title.element(Origin::path(escape::line(&place.file))),
    };
    // The renderer counts columns in the excerpt, which is masked and may begin in the middle of a line.
    if excerpt.is_some_and(|excerpt| excerpt.column() != number(place.column)) {
        group = group.element(Level::NOTE.message(format!("exactly at line {}, column {}", place.line, place.column)));
    }
    for related in &diagnostic.related {
        let at = format!("{}:{}: {}", escape::line(&related.file), related.line, escape::terminal(&related.message));
        group = group.element(Level::NOTE.message(at));
    }
    let patch = source.and_then(|source| patch(diagnostic, source, width));
    let mut groups: Vec<Group<'_>> = Vec::new();
    match (patch, help(diagnostic)) {
        (Some(patch), help) => {
            let title = help.as_deref().unwrap_or("write this instead");
            groups.push(group);
            groups.push(Level::HELP.secondary_title(escape::terminal(title).into_owned()).element(patch));
        }
        (None, Some(help)) => groups.push(group.element(Level::HELP.message(escape::terminal(&help).into_owned()))),
        (None, None) => groups.push(group),
    }
    renderer.render(&groups)
}

/// The suggestion as a change of the text.
fn patch<'a>(diagnostic: &'a Diagnostic, source: &Source, width: usize) -> Option<Snippet<'a, Patch<'a>>> {
    let suggestion = diagnostic.suggestion.as_ref()?;
    // A change of many lines would fill the terminal, and take long to be laid out.
    let lines = source.line(suggestion.end).saturating_sub(source.line(suggestion.start));
    let longest = suggestion.end.saturating_sub(suggestion.start).max(suggestion.replacement.len());
    if lines > number(MAX_LINES) || longest > 2 * MAX_CONTEXT_BYTES {
        return None;
    }
    let replacement = escape::terminal(&suggestion.replacement);
    let place = suggestion.start..suggestion.end;
    let (excerpt, replacement) = Excerpt::of_change(source, diagnostic, place, width, &replacement);
    let patch = Patch::new(excerpt.span.clone(), replacement);
    Some(excerpt.snippet(&source.name).patch(patch))
}

/// The lines around a fault, masked for a terminal, and the position of the fault in them.
struct Excerpt {
    text: String,
    first_line: usize,
    span: Range<usize>,
}

impl Excerpt {
    /// The lines around the fault; the renderer cuts them to the width.
    fn new(source: &Source, diagnostic: &Diagnostic) -> Self {
        Self::around(source, diagnostic, diagnostic.place.start..diagnostic.place.end).0
    }

    /// The lines around a change that puts `replacement` there. The renderer shows all given lines of a change, so lines that
    /// have no room in the width are cut here. Also returns the replacement as it is shown. The change itself is shown whole,
    /// but for the middle of what stays the same in it.
    fn of_change(
        source: &Source,
        diagnostic: &Diagnostic,
        place: Range<usize>,
        width: usize,
        replacement: &str,
    ) -> (Self, String) {
        let (Self { text, first_line, span }, (begins, ends)) = Self::around(source, diagnostic, place);
        let (before, rest) = text.split_at_checked(span.start).unwrap_or((&text, ""));
        let (changed, after) = rest.split_at_checked(span.end.saturating_sub(span.start)).unwrap_or((rest, ""));
        let last_line = first_line + text.matches('\n').count();
        let room = width.saturating_sub(last_line.to_string().len() + GUTTER);
        let [changed, replacement] = shortened(changed, replacement, room.saturating_sub(2 * MIN_SIDE_COLUMNS));
        let [begin, end] = [before.rfind('\n').map_or(0, |at| at + 1), after.find('\n').unwrap_or(after.len())];
        let (head, tail) = (before.get(begin..).unwrap_or_default(), after.get(..end).unwrap_or_default());
        // Of several lines, the first and the last have the rest of a line beside them.
        let columns = |change: &str| {
            let lines = || change.split('\n').map(|line| line.width());
            lines().next().unwrap_or(0).max(lines().next_back().unwrap_or(0))
        };
        let change = columns(&changed).max(columns(&replacement));
        // What one side does not need is room for the other.
        let free = room.saturating_sub(change).max(2 * MIN_SIDE_COLUMNS);
        let wanted = |side: &str, is_whole: bool| side.width() + if is_whole { 0 } else { CUT.len() };
        let of_head = wanted(head, begins).min(free.saturating_sub(wanted(tail, ends)).max(free / 2));
        let of_tail = free.saturating_sub(of_head);
        let head_cut = ends_within(head, of_head, begins);
        let tail_cut = begins_within(tail, of_tail, ends);
        let shown_before = format!("{}{head_cut}", before.get(..begin).unwrap_or_default());
        let span = shown_before.len()..shown_before.len() + changed.len();
        let text = format!("{shown_before}{changed}{tail_cut}{}", after.get(end..).unwrap_or_default());
        (Self { text, first_line, span }, replacement)
    }

    /// The text around the place, and whether its lines begin and end there.
    fn around(source: &Source, diagnostic: &Diagnostic, place: Range<usize>) -> (Self, (bool, bool)) {
        let text = &*source.text;
        let start = floor(text, place.start);
        let mut end = floor(text, place.end).max(start);
        let long = diagnostic.place.end_line.saturating_sub(diagnostic.place.line) > MAX_LINES;
        if long {
            end = line_end(text, start).min(end);
        }
        // Nothing beyond is read: a minified document may have thousands of faults on its one line.
        let least = floor(text, start.saturating_sub(MAX_CONTEXT_BYTES));
        let most = floor(text, end.saturating_add(MAX_CONTEXT_BYTES));
        let from =
            text.get(least..start).and_then(|near| near.rfind('\n')).map_or(least, |newline| least + newline + 1);
        let to = text.get(end..most).and_then(|near| near.find('\n')).map_or(most, |newline| end + newline);
        let newline = |at: Option<usize>| at.and_then(|at| text.as_bytes().get(at)).is_none_or(|byte| *byte == b'\n');
        let whole = (newline(from.checked_sub(1)), newline(Some(to)));
        let excerpt = text.get(from..to).unwrap_or_default();
        let (text, span) = masked(excerpt, start - from..end - from);
        (Self { text, first_line: source.line(from), span }, whole)
    }

    fn snippet<'a, T: Clone>(&self, file: &str) -> Snippet<'a, T> {
        let path = escape::line(file).into_owned();
        Snippet::source(self.text.clone()).line_start(self.first_line).path(path)
    }

    /// The column that the renderer will show, from 1.
    fn column(&self) -> usize {
        let before = self.text.get(..self.span.start).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }
}

fn number(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The text as a terminal may show it, and the span in this text.
fn masked(text: &str, span: Range<usize>) -> (String, Range<usize>) {
    let mut shown = String::with_capacity(text.len());
    let (mut start, mut end) = (None, None);
    for (at, c) in text.char_indices() {
        if at >= span.start {
            start.get_or_insert(shown.len());
        }
        if at >= span.end {
            end.get_or_insert(shown.len());
        }
        match c {
            // The width of a tab depends on the terminal, that of a blank does not.
            '\t' => shown.push(' '),
            '\r' => {}
            c => escape::push(&mut shown, c, escape::is_hidden),
        }
    }
    let start = start.unwrap_or(shown.len());
    let end = end.unwrap_or(shown.len());
    (shown, start..end)
}

/// Two texts of which one contains the other, with as much left out of the middle of what both have that the longer one has
/// room in these columns. Others stay as they are.
fn shortened(changed: &str, replacement: &str, room: usize) -> [String; 2] {
    let (inner, outer) = if replacement.contains(changed) { (changed, replacement) } else { (replacement, changed) };
    let kept = room.saturating_sub(outer.width().saturating_sub(inner.width())).max(2 * MIN_SIDE_COLUMNS);
    let is_fit = outer.width() <= room || inner.width() <= kept || inner.contains('\n') || !outer.contains(inner);
    if is_fit {
        return [changed, replacement].map(str::to_owned);
    }
    let begin = begins_within(inner, kept / 2, true);
    let short = begin + ends_within(inner, kept / 2, true).trim_start_matches(CUT);
    [changed, replacement].map(|text| text.replacen(inner, &short, 1))
}

/// The end of a text that has room in these columns, behind a mark where something is left out. `is_whole`: nothing is
/// missing before it.
fn ends_within(text: &str, columns: usize, is_whole: bool) -> String {
    if is_whole && text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(CUT.len());
    let mut used = 0;
    let from = text.char_indices().rev().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    let from = from.last().map_or(text.len(), |(at, _)| at);
    format!("{CUT}{}", text.get(from..).unwrap_or_default())
}

/// The same of the beginning of a text, before a mark.
fn begins_within(text: &str, columns: usize, is_whole: bool) -> String {
    if is_whole && text.width() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(CUT.len());
    let mut used = 0;
    let shown = text.chars().take_while(|c| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    shown.collect::<String>() + CUT
}

/// The start of the character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|after| after.find('\n')).map_or(text.len(), |newline| at + newline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Related;

    const TEXT: &str = "{\n  \"type\": \"loop\",\n  \"properties\": {\n    \"max_iteration\": 5\n  }\n}\n";

    fn source() -> Source {
        Source::new("loop.json", TEXT)
    }

    fn at(source: &Source, word: &str) -> crate::diagnostic::Place {
        let start = source.text.find(word).unwrap();
        source.place(start, start + word.len())
    }

    #[test]
    fn a_fault_is_underlined_and_its_cure_shown() {
        let source = source();
        let error = Diagnostic::error(
            "L012",
            "there is no property max_iteration",
            "/properties/max_iteration",
            at(&source, "\"max_iteration\""),
        )
        .help("did you mean max_iterations?")
        .suggest("\"max_iterations\"");
        let mut warning = Diagnostic::warning("L090", "nothing ends it", "", source.whole());
        warning.related.push(Related { file: "other.json".to_owned(), line: 3, message: "declared here".to_owned() });
        insta::assert_snapshot!(human(&[error, warning], &[source], &Look::plain(80)), @r#"
    error[L012]: there is no property max_iteration
     --> loop.json:4:5
      |
    4 |     "max_iteration": 5
      |     ^^^^^^^^^^^^^^^
      |
    help: did you mean max_iterations?
      |
    4 |     "max_iterations": 5
      |                   +

    warning[L090]: nothing ends it
     --> loop.json:1:1
      |
    1 | {
      | ^
      |
      = note: other.json:3: declared here

    1 error, 1 warning
    "#);
    }

    #[test]
    fn a_change_of_a_long_line_is_shown_with_what_stands_beside_it() {
        let entry = r#"{"type": "action", "name": "lookup"}, "#.repeat(400);
        let source = Source::new("loop.json", format!("{{\"tools\": [{entry}{{\"typ\": \"action\"}}, {entry}]}}"));
        let fault = Diagnostic::error("L010", "the field `typ` is not known", "/x", at(&source, "\"typ\""))
            .help("the nearest name is `type`")
            .suggest("\"type\"");
        let shown = human(&[fault], &[source], &Look::plain(80));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let help = shown.split("help: ").nth(1).unwrap();
        insta::assert_snapshot!(help, @r#"
    the nearest name is `type`
      |
    1 | ...: "action", "name": "lookup"}, {"type": "action"}, {"type": "action", ...
      |                                        +

    1 error
    "#);
    }

    #[test]
    fn the_lines_of_a_change_have_room_in_the_width() {
        let wide = "漢字".repeat(60);
        let member = |count: usize| format!("\"id\": \"{}\", ", "1".repeat(count));
        let condition = format!("{{\"equal\": [\"@input.{}\", 1]}}", "a".repeat(150));
        for (before, after) in [(0, 0), (10, 90), (90, 10), (40, 40), (200, 0), (0, 200), (3_000, 3_000)] {
            for (change, replacement) in [
                ("\"typ\"", "\"type\"".to_owned()),
                (&*condition, format!("{{\"condition\": {condition}}}")),
                ("\"lost\": 1, ", String::new()),
            ] {
                let text = format!("{{{}{change}: \"{wide}\", {}\"z\": 1}}", member(before), member(after));
                let source = Source::new("loop.json", text);
                let fault = Diagnostic::error("L010", "x", "/x", at(&source, change)).suggest(replacement);
                for width in [60, 80, 100, 200] {
                    let shown = human(std::slice::from_ref(&fault), std::slice::from_ref(&source), &Look::plain(width));
                    let help = shown.split("help: ").nth(1).unwrap();
                    let longest = help.lines().map(|line| line.width()).max().unwrap();
                    assert!(longest <= width, "{width} {longest} {before} {after}:\n{help}");
                }
            }
        }
    }

    #[test]
    fn what_a_change_repeats_is_shown_without_its_middle() {
        let condition = format!("{{\"equal\": [\"@input.{}\", 1]}}", "long".repeat(40));
        let source = Source::new("loop.json", format!("{{\"type\": \"pay\", \"filter\": {condition}}}"));
        let fault = Diagnostic::error("L010", "x", "/filter", at(&source, &condition))
            .help("a filter has its operator in a `condition`")
            .suggest(format!("{{\"condition\": {condition}}}"));
        let shown = human(&[fault], &[source], &Look::plain(80));
        insta::assert_snapshot!(shown.split("help: ").nth(1).unwrap(), @r#"
    a filter has its operator in a `condition`
      |
    1 - ...pay", "filter": {"equal": ["@input....glonglonglong", 1]}}
    1 + ...pay", "filter": {"condition": {"equal": ["@input....glonglonglong", 1]}}}
      |

    1 error
    "#);
    }

    #[test]
    fn hostile_text_and_names_are_masked_and_the_mark_stays_at_its_place() {
        let source = Source::new("a\u{1b}[2J\nb.json", "{\"a\u{202E}\u{1b}[31m\": \t1, \"bad\": 2}");
        let fault = Diagnostic::error("L001", "bad \u{9b}\u{7} name", "/bad", at(&source, "\"bad\"")).help("\u{200B}x");
        let shown = human(&[fault], &[source], &Look::plain(80));
        assert!(!shown.contains(escape::is_hidden), "{shown:?}");
        let lines: Vec<&str> = shown.lines().collect();
        let line = lines.iter().find(|line| line.contains("\"bad\"")).unwrap();
        let mark = lines.iter().find(|line| line.contains("^^^^^")).unwrap();
        assert_eq!(line.find("\"bad\""), mark.find("^^^^^"), "{shown}");
    }

    #[test]
    fn a_place_outside_the_text_or_inside_a_letter_is_no_panic() {
        let source = Source::new("x", "漢\"字\"");
        for (start, end) in [(0, 0), (1, 2), (0, 99), (50, 99), (4, 1)] {
            let mut place = source.whole();
            (place.start, place.end) = (start, end);
            let fault = Diagnostic::error("L001", "x", "", place).suggest("y");
            assert!(human(&[fault], std::slice::from_ref(&source), &Look::plain(80)).contains("L001"));
        }
        let nowhere = Diagnostic::error("L001", "x", "", source.whole());
        assert!(human(&[nowhere], &[], &Look::plain(80)).contains("--> x"));
    }

    #[test]
    fn one_endless_line_costs_only_its_surroundings() {
        let text = format!("[{}\"bad\"{}]", "1,".repeat(500_000), ",2".repeat(500_000));
        let source = Source::new("big.json", text);
        let fault = Diagnostic::error("L001", "x", "", at(&source, "\"bad\""));
        let shown = human(&[fault], &[source], &Look::plain(80));
        assert!(shown.len() < 2_000 && shown.contains("\"bad\""), "{}", shown.len());
        assert!(shown.contains("exactly at line 1, column 1000002"), "{shown}");
    }
}
