//! The values of secret names in JSON that is inside of another text, or cut: for example when a model describes what
//! it is about to send. The quotes may be escaped, each by the same number of backslashes.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value};

use super::Redaction;

/// The longest name that is checked, in bytes.
pub(super) const MAX_NAME: usize = 128;
/// How far behind a value the name is looked for that says what it is, in bytes.
const MAX_BEHIND: usize = 2048;

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

impl Members {
    pub fn of(text: &str, redaction: &Redaction) -> Self {
        let mut all = Self { found: Vec::new(), open: None };
        let mut done = 0;
        let mut named = false;
        for (quote, _) in text.match_indices('"').filter(|(quote, _)| text.get(quote + 1..).is_some_and(is_colon)) {
            let level = escapes(text, quote);
            let name_end = quote - level;
            let Some(mark) = text.get(name_end..=quote).filter(|_| quote >= done) else { continue };
            let from = text.floor_char_boundary(name_end.saturating_sub(MAX_NAME + mark.len()));
            let Some((_, name)) = text.get(from..name_end).unwrap_or_default().rsplit_once(mark) else { continue };
            let Some((_, rest)) = text.get(quote..).unwrap_or_default().split_once(':') else { continue };
            let Some(value) = MemberValue::read(text, text.len() - rest.trim_start().len(), mark) else { continue };
            let name = unescaped(name);
            // `{"name": "Authorization", "value": "..."}`: headers and settings in lists.
            let is_value = name == "value";
            let hide = redaction.hides(&name, &value.kind)
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
    /// The value that begins at this byte. `mark` is what its quotes look like.
    fn read(text: &str, start: usize, mark: &str) -> Option<Self> {
        let rest = text.get(start..)?;
        if let Some(inner) = rest.strip_prefix(mark) {
            let start = start + mark.len();
            let length = string_end(inner, mark);
            let range = start..start + length.unwrap_or(inner.len());
            return Some(Self { range, kind: Value::String(String::new()), is_whole: length.is_some() });
        }
        let (length, kind) = match rest.chars().next()? {
            '{' => (brackets_end(rest, mark), Value::Object(Map::new())),
            '[' => (brackets_end(rest, mark), Value::Array(Vec::new())),
            _ => {
                let length = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\\'));
                let word = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
                // Anything else is prose, or the beginning of a word that is not passed on yet.
                (length, serde_json::from_str(word).ok()?)
            }
        };
        Some(Self { range: start..start + length.unwrap_or(rest.len()), kind, is_whole: length.is_some() })
    }
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

/// The length of an object or a list, whose texts are in quotes like `mark`.
fn brackets_end(text: &str, mark: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        at += text.get(at..)?.find(['"', '{', '[', '}', ']'])?;
        match text.as_bytes().get(at)? {
            b'"' => at += 1 + string_end(text.get(at + 1..)?, mark)? + mark.len(),
            sign => {
                depth = if matches!(sign, b'{' | b'[') { depth + 1 } else { depth - 1 };
                at += 1;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
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
