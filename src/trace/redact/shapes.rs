//! Secrets that are recognised by their shape anywhere in a text: only well-known exact shapes, so that ids,
//! hashes and uuids stay readable.

use std::borrow::Cow;
use std::ops::Range;

use super::HIDDEN;
use crate::policy::secret_shapes::{self, runs};

/// The text with its secrets hidden; `secret` decides about the names in queries and in pieces of JSON.
pub(super) fn hide<'a>(text: &'a str, secret: &dyn Fn(&str) -> bool) -> Cow<'a, str> {
    let mut found = Vec::new();
    found.extend(secret_shapes::find(text).into_iter().map(|secret| secret.range).filter(|range| !range.is_empty()));
    basic(text, &mut found);
    urls(text, secret, &mut found);
    members(text, secret, &mut found);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_by_key(|range| range.start);
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
    Cow::Owned(shown)
}

/// The value after `Basic` in an authorization.
fn basic(text: &str, found: &mut Vec<Range<usize>>) {
    let mut before: Option<(&str, usize)> = None;
    for (start, run) in runs(text, |c| c.is_ascii_alphanumeric() || "_-.+/=~".contains(c)) {
        if let Some((word, end)) = before
            && word.eq_ignore_ascii_case("basic")
            && text.get(end..start) == Some(" ")
            && after_authorization(text, end)
        {
            found.push(start..start + run.len());
        }
        before = Some((run, start + run.len()));
    }
}

fn after_authorization(text: &str, end: usize) -> bool {
    let start = end.saturating_sub(30);
    let near = (start..=end).find_map(|start| text.get(start..end)).unwrap_or_default();
    near.to_ascii_lowercase().contains("authorization")
}

/// The password in `scheme://user:password@host`, and the values of secret names in queries.
fn urls(text: &str, secret: &dyn Fn(&str) -> bool, found: &mut Vec<Range<usize>>) {
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
        let begin = start + name.len() + 1;
        if !name.is_empty() && begin < end && secret(name) {
            found.push(begin..end);
        }
    }
}

/// The longest name that is checked, in bytes.
const MAX_NAME: usize = 128;

/// The texts of secret names in JSON that is inside of another text, or cut: for example when a model describes
/// what it is about to send. The quotes may be escaped, each by the same number of backslashes.
fn members(text: &str, secret: &dyn Fn(&str) -> bool, found: &mut Vec<Range<usize>>) {
    let escapes = |end: usize| text.get(..end).map_or(0, |head| head.len() - head.trim_end_matches('\\').len());
    let mut done = 0;
    let mut named = false;
    for (quote, _) in text.match_indices('"').filter(|(quote, _)| text.get(quote + 1..).is_some_and(is_colon)) {
        let level = escapes(quote);
        let name_end = quote - level;
        let Some(mark) = text.get(name_end..=quote).filter(|_| quote >= done) else { continue };
        let from = text.floor_char_boundary(name_end.saturating_sub(MAX_NAME + mark.len()));
        let Some((_, name)) = text.get(from..name_end).unwrap_or_default().rsplit_once(mark) else { continue };
        let Some((_, rest)) = text.get(quote..).unwrap_or_default().split_once(':') else { continue };
        let Some(value) = rest.trim_start().strip_prefix(mark) else { continue };
        let names = matches!(name, "name" | "key" | "header");
        // `{"name": "Authorization", "value": "..."}`: headers and settings in lists.
        let hide = secret(name) || (name == "value" && std::mem::take(&mut named));
        if !names && !hide {
            continue;
        }
        let start = text.len() - value.len();
        let closes = |(at, _): &(usize, &str)| escapes(start + at) <= level;
        let end = value.match_indices('"').find(closes).map_or(text.len(), |(at, _)| start + at - escapes(start + at));
        if names && !hide {
            named = text.get(start..end).is_some_and(|name| name.len() <= MAX_NAME && secret(name));
            continue;
        }
        if end > start {
            found.push(start..end);
        }
        done = end;
    }
}

fn is_colon(rest: &str) -> bool {
    rest.trim_start().starts_with(':')
}
