//! The values of secret names in JSON that is inside of another text, or cut: for example when a model describes what
//! it is about to send. The quotes may be escaped, each by the same number of backslashes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::Redaction;
use crate::policy::json_text;

/// The longest name that is checked, in bytes.
pub(super) const MAX_NAME: usize = 128;
/// How far behind a value the name is looked for that says what it is, in bytes.
const MAX_BEHIND: usize = 2048;
/// The longest quotes in an object or list whose end is looked for, in bytes: JSON in JSON, six layers deep.
const MAX_QUOTE: usize = 64;

/// What is found in a text.
pub(super) struct Members {
    pub found: Vec<Range<usize>>,
    /// Where the first value begins that may be secret, and is not complete.
    pub open: Option<usize>,
}

/// A value behind a name and its colon.
struct MemberValue {
    /// Without the quotes of a text.
    range: Range<usize>,
    /// A value of the same kind.
    kind: Value,
    /// Whether its end is there.
    is_whole: bool,
}

/// Where each object and list of a text ends, if it does, by the length of the quotes in it. A text may contain any number
/// of them inside of each other: their ends are found together.
#[derive(Default)]
struct BracketEnds(BTreeMap<usize, Vec<(usize, usize)>>);

impl Members {
    pub fn of(text: &str, redaction: &Redaction) -> Self {
        let mut all = Self { found: Vec::new(), open: None };
        let mut done = 0;
        let mut named = false;
        let mut ends = BracketEnds::default();
        for (quote, _) in text.match_indices('"').filter(|(quote, _)| text.get(quote + 1..).is_some_and(is_colon)) {
            let level = escapes(text, quote);
            let name_end = quote - level;
            let Some(mark) = text.get(name_end..=quote).filter(|_| quote >= done) else { continue };
            let from = text.floor_char_boundary(name_end.saturating_sub(MAX_NAME + mark.len()));
            let Some((_, name)) = text.get(from..name_end).unwrap_or_default().rsplit_once(mark) else { continue };
            let Some((_, rest)) = text.get(quote..).unwrap_or_default().split_once(':') else { continue };
            let Some(mut value) = MemberValue::read(text, text.len() - rest.trim_start().len(), mark) else { continue };
            let name = unescaped(name);
            // `{"name": "Authorization", "value": "..."}`: headers and settings in lists.
            let is_value = name == "value";
            let is_secret_name = redaction.hides(&name, &value.kind);
            if (is_secret_name || is_value) && (value.kind.is_object() || value.kind.is_array()) {
                value.find_end(ends.end(text, value.range.start, mark));
            }
            let hide = is_secret_name
                || is_value && (std::mem::take(&mut named) || all.is_named_behind(text, &value, mark, redaction));
            if hide {
                done = value.range.end;
                all.hide(value);
            } else if matches!(&*name, "name" | "key" | "header") && value.kind.is_string() {
                named = text.get(value.range).is_some_and(|name| is_secret(name, redaction));
            }
        }
        all
    }

    fn hide(&mut self, value: MemberValue) {
        if !value.is_whole {
            self.stay_open(value.range.start);
        }
        if !value.range.is_empty() {
            self.found.push(value.range);
        }
    }

    fn stay_open(&mut self, at: usize) {
        self.open = Some(self.open.map_or(at, |open| open.min(at)));
    }

    /// Whether a name that comes after a value in the same object says that it is secret.
    fn is_named_behind(&mut self, text: &str, value: &MemberValue, mark: &str, redaction: &Redaction) -> bool {
        let end = value.range.end + if value.kind.is_string() { mark.len() } else { 0 };
        let near = text.get(end..text.floor_char_boundary(end.saturating_add(MAX_BEHIND))).unwrap_or_default();
        let mut depth = 0_usize;
        let mut at = 0;
        while let Some(next) = near.get(at..).and_then(|rest| rest.find(['"', '{', '[', '}', ']'])) {
            at += next;
            match near.as_bytes().get(at) {
                Some(b'"') => {
                    let Some(length) = string_end(near.get(at + 1..).unwrap_or_default(), mark) else { break };
                    let name = near.get(at + 1..at + 1 + length).unwrap_or_default();
                    let behind = at + 1 + length + mark.len();
                    if depth == 0 && matches!(name, "name" | "key" | "header") {
                        let rest = near.get(behind..).unwrap_or_default().trim_start();
                        let said = rest.strip_prefix(':').map(|rest| rest.trim_start());
                        if let Some(said) = said.and_then(|said| said.strip_prefix(mark)) {
                            let Some(length) = string_end(said, mark) else { break };
                            if said.get(..length).is_some_and(|name| is_secret(name, redaction)) {
                                return true;
                            }
                        }
                    }
                    at = behind;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                _ if depth == 0 => return false,
                _ => depth -= 1,
            }
            at += 1;
        }
        // The object has not ended; a much longer one than these have is another thing.
        if end + near.len() == text.len() {
            self.stay_open(value.range.start);
        }
        false
    }
}

impl MemberValue {
    /// The value that begins at this byte. `mark` is what its quotes look like. An object or a list is given to the end of
    /// the text: most are not hidden, and need no other end.
    fn read(text: &str, start: usize, mark: &str) -> Option<Self> {
        let rest = text.get(start..)?;
        if let Some(inner) = rest.strip_prefix(mark) {
            let start = start + mark.len();
            let length = string_end(inner, mark);
            let range = start..start + length.unwrap_or(inner.len());
            return Some(Self { range, kind: Value::String(String::new()), is_whole: length.is_some() });
        }
        let (length, kind) = match rest.chars().next()? {
            '{' => (None, Value::Object(Map::new())),
            '[' => (None, Value::Array(Vec::new())),
            _ => {
                let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\\'));
                let word = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
                // Anything else is prose, or the beginning of a word that is not passed on yet.
                (length, json_text::unchecked(word).ok()?)
            }
        };
        Some(Self { range: start..start + length.unwrap_or(rest.len()), kind, is_whole: length.is_some() })
    }

    fn find_end(&mut self, end: Option<usize>) {
        self.range.end = end.unwrap_or(self.range.end);
        self.is_whole = end.is_some();
    }
}

impl BracketEnds {
    /// Where the object or list ends that begins at this byte, and whose texts are in quotes like `mark`; none when it
    /// does not end.
    fn end(&mut self, text: &str, start: usize, mark: &str) -> Option<usize> {
        // Each layer of JSON in JSON doubles the quotes. Others would only cost a pass over the text each.
        if mark.len() > MAX_QUOTE || !mark.len().is_power_of_two() {
            return None;
        }
        let ends = self.0.entry(mark.len()).or_insert_with(|| bracket_ends(text, mark));
        let at = ends.binary_search_by(|(begin, _)| start.cmp(begin)).ok()?;
        ends.get(at).map(|(_, end)| *end)
    }
}

/// Where each object and list of a text begins and ends, the last one first; their texts are in quotes like `mark`. A
/// bracket counts as one wherever it is: only who asks knows that it is in no text.
fn bracket_ends(text: &str, mark: &str) -> Vec<(usize, usize)> {
    let signs: Vec<(usize, &str)> = text.match_indices(['"', '{', '[', '}', ']']).collect();
    // For each sign, the first bracket from there on that closes what is open before it.
    let mut closing: Vec<Option<usize>> = vec![None; signs.len()];
    let mut text_end = None;
    let mut ends = Vec::new();
    for (index, (at, sign)) in signs.iter().enumerate().rev() {
        let behind = |index: Option<usize>| closing.get(index? + 1).copied().flatten();
        let found = match *sign {
            "\"" => {
                let found = behind(text_end);
                if escapes(text, *at) < mark.len() {
                    text_end = Some(index);
                }
                found
            }
            "{" | "[" => {
                let own = behind(Some(index));
                ends.extend(own.and_then(|own| signs.get(own)).map(|(end, _)| (*at, end + 1)));
                behind(own)
            }
            _ => Some(index),
        };
        if let Some(place) = closing.get_mut(index) {
            *place = found;
        }
    }
    ends
}

fn is_colon(rest: &str) -> bool {
    rest.trim_start().starts_with(':')
}

/// The backslashes before this byte.
fn escapes(text: &str, at: usize) -> usize {
    text.get(..at).map_or(0, |head| head.len() - head.trim_end_matches('\\').len())
}

/// The length of a text in quotes like `mark`, which begins behind the first one.
fn string_end(inner: &str, mark: &str) -> Option<usize> {
    let quotes = inner.match_indices('"').map(|(at, _)| (at, escapes(inner, at)));
    quotes.into_iter().find(|(_, escapes)| *escapes < mark.len()).map(|(at, escapes)| at - escapes)
}

fn is_secret(name: &str, redaction: &Redaction) -> bool {
    name.len() <= MAX_NAME && redaction.hides_text(&unescaped(name))
}

/// A name with its `\u0041` read, by any number of backslashes.
fn unescaped(name: &str) -> Cow<'_, str> {
    if !name.contains('\\') {
        return Cow::Borrowed(name);
    }
    let mut plain = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, behind)) = rest.split_once('\\') {
        plain.push_str(before);
        let digits = behind.trim_start_matches('\\').strip_prefix('u');
        let number = digits.and_then(|digits| u32::from_str_radix(digits.get(..4)?, 16).ok());
        rest = behind;
        if let (Some(letter), Some(digits)) = (number.and_then(char::from_u32), digits) {
            plain.push(letter);
            rest = digits.get(4..).unwrap_or_default();
        }
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}
