//! Faults for people: the line underlined, as rustc shows them. The renderer is rustc's own.

use std::collections::BTreeMap;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};

use super::hide::hide;
use crate::diagnostic::{Diagnostic, Severity, Source};
use crate::trace::units::plural;
use crate::trace::{Look, Tone, escape};

#[cfg(test)]
mod tests;

/// A fault that spans more lines than this is underlined on its first one only.
const LINES: u32 = 8;
/// So many bytes of one line are looked at on each side of a fault: minified documents have one line.
const AROUND: usize = 2_000;

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

/// The faults, each with its place, and what came of the check last.
pub fn checked(diagnostics: &[Diagnostic], sources: &[Source], checked: &Tally, look: &Look) -> String {
    each(diagnostics, sources, look) + &tally(diagnostics, checked, look)
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many files were judged.
    pub files: usize,
    /// How many JSON files were found that are none of ours.
    pub skipped: usize,
    /// How many suggestions were taken.
    pub fixed: usize,
    /// In how many files.
    pub fixed_files: usize,
}

/// What came of a check, in one line: `3 errors, 1 warning in 5 files`, `5 files are sound`.
pub fn tally(diagnostics: &[Diagnostic], tally: &Tally, look: &Look) -> String {
    let files = plural(tally.files, "file");
    let counts = counts(diagnostics, look);
    let mut line = if counts.is_empty() {
        look.paint(Tone::Good, &format!("{files} {} sound", if tally.files == 1 { "is" } else { "are" }))
    } else {
        format!("{counts} in {files}")
    };
    if tally.fixed > 0 {
        let fixed = format!("; {} fixed in {}", plural(tally.fixed, "fault"), plural(tally.fixed_files, "file"));
        line.push_str(&fixed);
    }
    if tally.skipped > 0 {
        let passed = format!(" ({} passed by)", plural(tally.skipped, "other JSON file"));
        line.push_str(&look.paint(Tone::Dim, &passed));
    }
    line + "\n"
}

fn each(diagnostics: &[Diagnostic], sources: &[Source], look: &Look) -> String {
    let renderer = if look.colour { Renderer::styled() } else { Renderer::plain() }.term_width(look.width);
    let sources = hide(diagnostics, sources);
    let by_name: BTreeMap<&str, &Source> = sources.iter().rev().map(|source| (&*source.name, source)).collect();
    let mut shown = String::new();
    for diagnostic in diagnostics {
        shown.push_str(&one(diagnostic, by_name.get(&*diagnostic.place.file).copied(), &renderer));
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

fn one(diagnostic: &Diagnostic, source: Option<&Source>, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let place = &diagnostic.place;
    let excerpt = source.map(|source| Excerpt::new(source, diagnostic, None));
    let title = level.primary_title(escape::terminal(&diagnostic.message)).id(diagnostic.code);
    let mut group = match &excerpt {
        Some(excerpt) => {
            let mark: Annotation<'_> = AnnotationKind::Primary.span(excerpt.span.clone());
            title.element(excerpt.snippet(&place.file).annotation(mark))
        }
        None => title.element(Origin::path(escape::line(&place.file))),
    };
    // The renderer counts in the excerpt, which is masked and may begin in the middle of a line.
    if excerpt.is_some_and(|excerpt| excerpt.column() != number(place.column)) {
        group = group.element(Level::NOTE.message(format!("exactly at line {}, column {}", place.line, place.column)));
    }
    for related in &diagnostic.related {
        let at = format!("{}:{}: {}", escape::line(&related.file), related.line, escape::terminal(&related.message));
        group = group.element(Level::NOTE.message(at));
    }
    let patch = source.and_then(|source| patch(diagnostic, source));
    let mut groups: Vec<Group<'_>> = Vec::new();
    match (patch, &diagnostic.help) {
        (Some(patch), help) => {
            let title = help.as_deref().unwrap_or("write this instead");
            groups.push(group);
            groups.push(Level::HELP.secondary_title(escape::terminal(title)).element(patch));
        }
        (None, Some(help)) => groups.push(group.element(Level::HELP.message(escape::terminal(help)))),
        (None, None) => groups.push(group),
    }
    renderer.render(&groups)
}

/// The suggestion as a change of the text.
fn patch<'a>(diagnostic: &'a Diagnostic, source: &Source) -> Option<Snippet<'a, Patch<'a>>> {
    let suggestion = diagnostic.suggestion.as_ref()?;
    let excerpt = Excerpt::new(source, diagnostic, Some(suggestion.start..suggestion.end));
    let patch = Patch::new(excerpt.span.clone(), escape::terminal(&suggestion.replacement));
    Some(excerpt.snippet(&source.name).patch(patch))
}

/// The lines around a fault, without power over a terminal, and the fault's place in them.
struct Excerpt {
    text: String,
    first_line: usize,
    span: Range<usize>,
}

impl Excerpt {
    fn new(source: &Source, diagnostic: &Diagnostic, other: Option<Range<usize>>) -> Self {
        let text = &*source.text;
        let place = other.unwrap_or(diagnostic.place.start..diagnostic.place.end);
        let start = floor(text, place.start);
        let mut end = floor(text, place.end).max(start);
        let long = diagnostic.place.end_line.saturating_sub(diagnostic.place.line) > LINES;
        if long {
            end = line_end(text, start).min(end);
        }
        let from = line_begin(text, start).max(floor(text, start.saturating_sub(AROUND)));
        let to = line_end(text, end).min(floor(text, end.saturating_add(AROUND)));
        let excerpt = text.get(from..to).unwrap_or_default();
        let (text, span) = masked(excerpt, start - from..end - from);
        let before = source.text.get(..from).unwrap_or_default();
        let first_line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Self { text, first_line, span }
    }

    fn snippet<'a, T: Clone>(&self, file: &str) -> Snippet<'a, T> {
        let path = escape::line(file).into_owned();
        Snippet::source(self.text.clone()).line_start(self.first_line).path(path)
    }

    /// The column that the renderer will tell, from 1.
    fn column(&self) -> usize {
        let before = self.text.get(..self.span.start).unwrap_or_default();
        before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
    }
}

fn number(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The text as a terminal may have it, and where the span lies in it then.
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
            // A tab is as wide as the terminal likes, a blank is not.
            '\t' => shown.push(' '),
            '\r' => {}
            c => escape::push(&mut shown, c, escape::is_hidden),
        }
    }
    let start = start.unwrap_or(shown.len());
    let end = end.unwrap_or(shown.len());
    (shown, start..end)
}

/// The nearest begin of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn line_begin(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text.get(at..).and_then(|after| after.find('\n')).map_or(text.len(), |newline| at + newline)
}
