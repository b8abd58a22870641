//! Fences in texts, as models write them around JSON: of three marks or more, and with the JSON on the lines between them, or on
//! that of the marks.

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::policy::json_text;

/// The fewest marks of a fence.
const MIN_MARKS: usize = 3;
/// The most fences of a text that are looked at: the end of each is looked for in the rest of the text.
const MAX_FENCES: usize = 100;
/// The languages that are JSON.
const JSON_LANGUAGES: [&str; 3] = ["json", "json5", "jsonc"];

/// Words that are written for JSON all the same.
const OTHER_LANGUAGES: [&str; 5] = ["javascript", "js", "jsonl", "text", "txt"];

/// What is in a fence.
pub(super) struct Fence<'t> {
    /// The word behind the marks.
    pub language: &'t str,
    pub inner: &'t str,
    /// What is behind the fence.
    after: &'t str,
}

impl Fence<'_> {
    /// Whether it is marked as JSON, or not at all.
    pub fn may_be_json(&self) -> bool {
        self.language.is_empty() || JSON_LANGUAGES.iter().any(|name| self.language.eq_ignore_ascii_case(name))
    }

    /// Whether its word is most likely wrong where JSON is in it.
    pub fn may_be_meant_as_json(&self) -> bool {
        OTHER_LANGUAGES.iter().any(|name| self.language.eq_ignore_ascii_case(name))
    }
}

/// The fences of a text, in their order.
pub(super) fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while found.len() < MAX_FENCES
        && let Some(fence) = next(rest)
    {
        rest = fence.after;
        found.push(fence);
    }
    found
}

/// What is in the fence that a text as a whole is, where that may be JSON.
pub fn whole_fence(text: &str) -> Option<&str> {
    let text = text.trim();
    let fence = next(text).filter(|_| opening(text).is_some_and(|marks| marks.start == 0))?;
    (fence.may_be_json() && fence.after.trim().is_empty()).then_some(fence.inner)
}

/// The first marks that open a fence. Waves open one at the start of a line alone.
fn opening(text: &str) -> Option<Range<usize>> {
    let mut from = 0;
    loop {
        let start = from + text.get(from..)?.find(['`', '~'])?;
        let rest = text.get(start..)?;
        let mark = rest.chars().next()?;
        let length = rest.len() - rest.trim_start_matches(mark).len();
        let before = text.get(..start)?.trim_end_matches([' ', '\t']);
        let is_line = before.is_empty() || before.ends_with('\n');
        if length >= MIN_MARKS && (mark == '`' || is_line) {
            return Some(start..start + length);
        }
        from = start + length;
    }
}

fn next(text: &str) -> Option<Fence<'_>> {
    let marks = opening(text)?;
    let (marks, behind) = (text.get(marks.clone())?, text.get(marks.end..)?);
    let first = behind.split('\n').next().unwrap_or_default();
    let is_word = |sign: char| sign.is_alphanumeric() || matches!(sign, '+' | '-' | '_' | '#' | '.');
    let word = first.find(|sign| !is_word(sign)).unwrap_or(first.len());
    let (language, info) = first.split_at_checked(word)?;
    // What is no JSON on the line of the marks says more of the language.
    let is_beside = begins_json(info) || first.contains(marks);
    let begin = if is_beside { word } else { behind.len().min(first.len() + 1) };
    let (inner, after) = closed(marks, behind.get(begin..)?, is_beside);
    Some(Fence { language, inner, after })
}

/// What is in a fence, and what is behind it. One that is not closed ends with the text.
fn closed<'t>(marks: &str, inner: &'t str, is_beside: bool) -> (&'t str, &'t str) {
    let split = |end: usize, from: usize| (inner.get(..end).unwrap_or(inner), inner.get(from..).unwrap_or_default());
    // Marks inside of a JSON text close nothing.
    if let Some(end) = json_end(inner) {
        let behind = inner.get(end..).unwrap_or_default();
        let close = behind.trim_start();
        if close.is_empty() || close.starts_with(marks) {
            let mark = marks.chars().next().unwrap_or_default();
            let after = close.trim_start_matches(mark).len();
            return split(end, inner.len() - after);
        }
    }
    let first = inner.split('\n').next().unwrap_or_default();
    if let Some(end) = first.find(marks).filter(|_| is_beside) {
        return split(end, end + marks.len());
    }
    let mut begin = 0;
    for line in inner.split_inclusive('\n') {
        let written = line.trim();
        if written.starts_with(marks) && is_one_mark(written) {
            return split(begin, begin + line.len());
        }
        begin += line.len();
    }
    match inner.find(marks) {
        Some(end) => split(end, end + marks.len()),
        None => (inner, ""),
    }
}

fn is_one_mark(line: &str) -> bool {
    let first = line.chars().next();
    line.chars().all(|sign| Some(sign) == first)
}

/// Where the JSON ends that a text begins with.
fn json_end(text: &str) -> Option<usize> {
    if !begins_json(text) {
        return None;
    }
    let mut values = json_text::unchecked_reader(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}

/// Whether a text begins as an object or a list does.
pub(super) fn begins_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}
