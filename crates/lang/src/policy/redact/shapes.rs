//! Secrets that are recognised by their shape anywhere in a text: only well-known exact shapes, so that ids,
//! hashes and uuids stay readable.

use std::borrow::Cow;
use std::ops::Range;

use super::members::{MAX_NAME, Members};
use super::{HIDDEN, Redaction};
use crate::policy::secret_shapes;

/// The text with its secrets hidden; `redaction` decides about the names in queries and in pieces of JSON.
pub(super) fn hide<'a>(text: &'a str, redaction: &Redaction) -> Cow<'a, str> {
    let (found, _) = find(text, redaction);
    if found.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(hidden(text, found)) }
}

/// The settled part of a text that grows, with its secrets hidden: whatever follows, [`hide`] gives the same for it.
pub(super) fn settled(text: &str, redaction: &Redaction) -> String {
    let (mut found, open) = find(text, redaction);
    let mut open = open.unwrap_or(text.len()).min(word_at_end(text));
    // From the last one on: those that overlap are hidden as one.
    for range in found.iter().rev() {
        if range.end > open {
            open = open.min(range.start);
        }
    }
    found.retain(|range| range.end <= open);
    hidden(text.get(..text.floor_char_boundary(open)).unwrap_or_default(), found)
}

/// The secrets of a text by their start, and where the first one begins that may not be complete.
fn find(text: &str, redaction: &Redaction) -> (Vec<Range<usize>>, Option<usize>) {
    let mut found = Vec::new();
    let mut shapes = |text: &str| {
        let secrets = secret_shapes::find(text).into_iter().map(|secret| secret.range);
        found.extend(secrets.filter(|range| !range.is_empty()));
    };
    shapes(text);
    if text.contains('\\') {
        shapes(&without_escapes(text));
    }
    basic(text, &mut found);
    urls(text, redaction, &mut found);
    let members = Members::of(text, redaction);
    found.extend(members.found);
    found.sort_by_key(|range| (range.start, range.end));
    (found, members.open)
}

/// The text with blanks in place of what JSON and its like write for line ends and tabs: in `\nsk-...`, the key begins
/// behind the `n`.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut is_escaped = false;
    for letter in text.chars() {
        let is_blank = letter == '\\' || is_escaped && matches!(letter, 'n' | 'r' | 't' | 'f' | 'b');
        plain.push(if is_blank { ' ' } else { letter });
        is_escaped = letter == '\\';
    }
    plain
}

/// Where the last word begins, when it may continue: a key, a token or an address is a secret by all its characters.
fn word_at_end(text: &str) -> usize {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>');
    let word = text.rfind(ends).map_or(0, |at| text.ceil_char_boundary(at + 1));
    let rest = text.get(word..).unwrap_or_default();
    // In an address, a password has any other character.
    if rest.contains("://") || rest.contains(['?', '&']) {
        return word;
    }
    let sign = |c: char| c.is_ascii_alphanumeric() || "_-.+/~=:&?".contains(c);
    rest.rfind(|c| !sign(c)).map_or(word, |at| text.ceil_char_boundary(word + at + 1))
}

fn hidden(text: &str, found: Vec<Range<usize>>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for range in found {
        if range.start >= at {
            shown.push_str(text.get(at..range.start).unwrap_or_default());
            shown.push_str(HIDDEN);
        }
        at = at.max(range.end);
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

/// The value after `Basic` in an authorization.
fn basic(text: &str, found: &mut Vec<Range<usize>>) {
    const BASIC: &str = "basic";
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "_-.+/=~".contains(c);
    for (end, _) in text.match_indices(' ') {
        let word = end.checked_sub(BASIC.len());
        let is_basic = |start| text.get(start..end).is_some_and(|word| word.eq_ignore_ascii_case(BASIC));
        let Some(word) = word.filter(|start| is_basic(*start)) else { continue };
        let is_end_of_word = text.get(..word).is_some_and(|before| before.ends_with(is_sign));
        let value = text.get(end + 1..).unwrap_or_default();
        let length = value.find(|c| !is_sign(c)).unwrap_or(value.len());
        if !is_end_of_word && length > 0 && after_authorization(text, end) {
            found.push(end + 1..end + 1 + length);
        }
    }
}

fn after_authorization(text: &str, end: usize) -> bool {
    let start = end.saturating_sub(30);
    let near = (start..=end).find_map(|start| text.get(start..end)).unwrap_or_default();
    near.to_ascii_lowercase().contains("authorization")
}

/// The password in `scheme://user:password@host`, and the values of secret names in queries.
fn urls(text: &str, redaction: &Redaction, found: &mut Vec<Range<usize>>) {
    found.extend(secret_shapes::url_passwords(text));
    // The end of the pair: each byte of a text with many marks is scanned once.
    let mut end = 0;
    for (at, mark) in text.match_indices(['?', '&']) {
        let start = at + mark.len();
        if end < start {
            let rest = text.get(start..).unwrap_or_default();
            let ends = |c: char| c.is_whitespace() || matches!(c, '&' | '#' | '"' | '\'' | '<' | '>');
            end = start + rest.find(ends).unwrap_or(rest.len());
        }
        let named = text.get(start..end.min(text.floor_char_boundary(start + MAX_NAME + 1))).unwrap_or_default();
        let Some((name, _)) = named.split_once('=') else { continue };
        let value = start + name.len() + 1..end;
        if !name.is_empty() && !value.is_empty() && redaction.hides_text(name) {
            found.push(value);
        }
    }
}
