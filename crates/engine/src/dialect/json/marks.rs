//! The text around an object in a reply: thinking blocks, invented observations, and signs that the object is only a
//! part of something.

use super::shape::plain;
use loopctl_lang::policy::thinking::THINKING_TAGS;

/// How much of the text before an object is looked at for a label, in bytes.
const LABEL: usize = 40;

/// A tag at a `<`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkupTag {
    /// `<think>`: its name, and the byte behind it.
    OpensThinking(&'static str, usize),
    /// `</think>`: the byte behind it.
    ClosesThinking(usize),
    /// `<observation>`, `<tool_response>`: a result of a tool, which only the engine may write.
    Observation,
}

/// The tag that begins at this byte, when it is one that we know.
pub fn tag(text: &str, at: usize) -> Option<MarkupTag> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let (closing, name) = rest.strip_prefix('/').map_or((false, rest), |name| (true, name));
    let length = name.bytes().take(24).position(|byte| byte == b'>')?;
    let word = name.get(..length)?.trim();
    let end = text.len().saturating_sub(name.len()).saturating_add(length).saturating_add(1);
    if let Some(known) = THINKING_TAGS.into_iter().find(|known| known.eq_ignore_ascii_case(word)) {
        return Some(if closing { MarkupTag::ClosesThinking(end) } else { MarkupTag::OpensThinking(known, end) });
    }
    let observation =
        ["observation", "tool_response", "tool_result"].iter().any(|known| known.eq_ignore_ascii_case(word));
    (observation && !closing).then_some(MarkupTag::Observation)
}

/// Where the thinking block of this name ends: where its closing tag begins, and the byte behind it.
pub fn thinking_end(text: &str, name: &str, from: usize) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        at = at.saturating_add(text.get(at..)?.find("</")?);
        let begin = at.saturating_add(2);
        let end = begin.saturating_add(name.len());
        let here = text.get(begin..end).is_some_and(|word| word.eq_ignore_ascii_case(name));
        if here && text.as_bytes().get(end) == Some(&b'>') {
            return Some((at, end.saturating_add(1)));
        }
        at = begin;
    }
}

/// Whether `Observation:` begins at this byte, also as `**Observation 1:**`.
pub fn is_observation(text: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|index| text.as_bytes().get(index));
    if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return false;
    }
    let end = at.saturating_add("observation".len());
    let word = text.get(at..end).is_some_and(|word| word.eq_ignore_ascii_case("observation"));
    let behind = text.as_bytes().get(end..).unwrap_or_default().iter().take(16);
    let mut behind =
        behind.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'*' | b'_' | b'#') || byte.is_ascii_digit());
    word && behind.next() == Some(&b':')
}

/// What the text before an object says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// Nothing.
    Free,
    /// It is an item of a list.
    Item,
    /// It is the value of a quoted key, or begins a quoted text.
    Member,
    /// It is called an input: `Action Input:`, `<arguments>`, `restart(`.
    Input,
}

/// The text before the object that begins at this byte.
pub fn before(text: &str, at: usize) -> Before {
    let head = text.get(..at).unwrap_or_default().trim_end();
    if head.ends_with('[') {
        return Before::Item;
    }
    // Quoted by something; a reply that is quoted as a whole begins with its quote.
    if head.trim_start().len() > 1 && head.len() == at && head.ends_with(['"', '\'', '“']) {
        return Before::Member;
    }
    if let Some(head) = head.strip_suffix(',') {
        return if head.trim_end().ends_with(['}', ']']) { Before::Item } else { Before::Free };
    }
    // `restart({…})`: what a call is given.
    if head.strip_suffix('(').is_some_and(|head| head.ends_with(|c: char| c.is_alphanumeric() || c == '_')) {
        return Before::Input;
    }
    let head =
        head.trim_end_matches("json").trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '_'));
    let Some(label) = head.strip_suffix([':', '=', '>']) else { return Before::Free };
    let label = label.trim_end().trim_end_matches(['*', '`']);
    if label.ends_with(['"', '\'', '”']) {
        return Before::Member;
    }
    let mut start = label.len().saturating_sub(LABEL);
    while !label.is_char_boundary(start) {
        start = start.saturating_add(1);
    }
    let label = plain(label.get(start..).unwrap_or_default());
    let input = ["input", "arguments", "args", "parameters", "params"].iter().any(|word| label.ends_with(word));
    if input { Before::Input } else { Before::Free }
}

/// What the text behind an object says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// Nothing.
    Free,
    /// Closing braces without an opening one.
    Surplus,
    /// It continues as a list does.
    Item,
    /// It continues as an object does that has not ended.
    Member,
}

/// The text after the object that ends before this byte.
pub fn behind(text: &str, at: usize) -> Behind {
    let rest = text.get(at..).unwrap_or_default().trim_start();
    let tail = rest.trim_start_matches(|c: char| c == '}' || c.is_ascii_whitespace());
    if tail.starts_with(']') {
        return Behind::Item;
    }
    if let Some(next) = tail.strip_prefix(',') {
        return if goes_on(next.trim_start()) { Behind::Member } else { Behind::Free };
    }
    if tail.starts_with(':') || (tail.starts_with(['"', '\'']) && quoted_key(tail, 0).is_some()) {
        return Behind::Member;
    }
    if rest.starts_with('}') { Behind::Surplus } else { Behind::Free }
}

/// Whether the text after a comma continues an object or a list, and is not prose.
fn goes_on(next: &str) -> bool {
    let behind_word = next.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$'));
    let is_key = behind_word.len() < next.len() && behind_word.trim_start().starts_with([':', '=']);
    is_key || next.starts_with(['"', '\'', '“', '{', '[', '}', ']'])
}

/// The quoted word that begins at this byte, when a colon follows it: a key.
pub fn quoted_key(text: &str, at: usize) -> Option<&str> {
    let bytes = text.as_bytes().get(at..)?;
    let quote = *bytes.first()?;
    let length = bytes.iter().skip(1).take(64).position(|byte| *byte == quote)?;
    let begin = at.saturating_add(1);
    let mut behind = bytes.iter().skip(length.saturating_add(2)).take(64).skip_while(|byte| byte.is_ascii_whitespace());
    (behind.next() == Some(&b':')).then_some(text.get(begin..begin.saturating_add(length))?)
}
