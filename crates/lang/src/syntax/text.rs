//! Strings: between their written and their decoded form.

use std::borrow::Cow;
use std::str::Chars;

/// Decodes a written string. `raw` begins with its quote, and ends with it when it is closed; a word without
/// quotes stays as it is.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    let inner = inner(raw);
    if inner.contains('\\') {
        Cow::Owned(Decoder::new(inner).map(|(_, meant)| meant).collect())
    } else {
        Cow::Borrowed(inner)
    }
}

/// A byte of a decoded string, and the byte of the written one that it comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Offset {
    /// In the decoded string.
    pub meant: usize,
    /// In the written one, including its quote.
    pub raw: usize,
}

/// The byte of `raw` that the byte `offset` of the decoded string comes from. `from` is an earlier byte whose
/// position is known.
pub(super) fn raw_offset(raw: &str, offset: usize, from: Offset) -> Offset {
    let inner = inner(raw);
    let begin = usize::from(raw.starts_with(['"', '\'']));
    let known = from.raw.saturating_sub(begin).min(inner.len());
    let rest = inner.get(known..).unwrap_or_default();
    let mut meant = from.meant;
    for (at, c) in Decoder::new(rest) {
        if meant >= offset {
            return Offset { meant, raw: begin + known + at };
        }
        meant += c.len_utf8();
    }
    Offset { meant, raw: begin + inner.len() }
}

fn inner(raw: &str) -> &str {
    let Some(quote) = raw.chars().next().filter(|c| matches!(c, '"' | '\'')) else { return raw };
    let rest = raw.get(1..).unwrap_or_default();
    rest.strip_suffix(quote).unwrap_or(rest)
}

/// A text as a JSON string with quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The decoded characters of a written string, each with its byte in it. A broken escape decodes to the
/// character after the backslash; half of a surrogate pair to U+FFFD.
struct Decoder<'a> {
    length: usize,
    rest: Chars<'a>,
}

impl<'a> Decoder<'a> {
    fn new(inner: &'a str) -> Self {
        Self { length: inner.len(), rest: inner.chars() }
    }

    fn unit(&mut self) -> Option<u32> {
        let digits =
            self.rest.as_str().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        self.rest = self.rest.as_str().get(4..).unwrap_or_default().chars();
        Some(unit)
    }

    fn code_point(&mut self) -> Option<char> {
        let first = self.unit()?;
        if (0xD800..0xDC00).contains(&first) {
            let before = self.rest.clone();
            if let Some(after) = self.rest.as_str().strip_prefix("\\u") {
                self.rest = after.chars();
                if let Some(second) = self.unit().filter(|second| (0xDC00..0xE000).contains(second)) {
                    return char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00));
                }
            }
            self.rest = before;
        }
        Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

impl Iterator for Decoder<'_> {
    type Item = (usize, char);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.length - self.rest.as_str().len();
        let written = self.rest.next()?;
        if written != '\\' {
            return Some((at, written));
        }
        let meant = match self.rest.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => self.code_point().unwrap_or('u'),
            Some(other) => other,
            None => '\\',
        };
        Some((at, meant))
    }
}
