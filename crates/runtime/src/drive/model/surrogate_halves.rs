//! Halves of surrogate pairs. JSON can write a sign beyond the first 65,536 as two escapes, and some servers cut between
//! them, or lose one: a half alone can be no text. In a whole answer it becomes U+FFFD. In a stream each half becomes a
//! mark until the next piece is there: two halves that follow each other are the sign.

use std::borrow::Cow;

/// What is read in the place of a half that lacks its other half.
const LOST: char = '\u{fffd}';
/// The first of the marks: the last signs of the last plane, which is for private use.
const FIRST_MARK: u32 = 0x10_f800;
/// The first half of a pair.
const FIRST_HALF: u32 = 0xd800;
/// The first half that is the second one of a pair.
const FIRST_LOW: u32 = 0xdc00;
/// The first number behind the halves.
const BEHIND: u32 = 0xe000;

/// The text of an answer, with U+FFFD for what is no text.
pub(super) fn readable(answer: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(answer);
    match repaired(&text, |_| LOST) {
        Some(repaired) => Cow::Owned(repaired),
        None => text,
    }
}

/// The same for JSON in a text.
pub(super) fn repair(json: &mut String) {
    if let Some(repaired) = repaired(json, |_| LOST) {
        *json = repaired;
    }
}

/// The text of one event of a stream, with a mark for each half; and whether it has any.
pub(super) fn marked(event: &[u8]) -> (Cow<'_, str>, bool) {
    let text = String::from_utf8_lossy(event);
    let mark = |half: u32| char::from_u32(half - FIRST_HALF + FIRST_MARK).unwrap_or(LOST);
    match repaired(&text, mark) {
        Some(repaired) => (Cow::Owned(repaired), true),
        None => (text, false),
    }
}

/// JSON with other signs in the place of halves; `None` when it has none.
fn repaired(json: &str, sign: impl Fn(u32) -> char) -> Option<String> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return None;
    }
    let mut repaired = String::with_capacity(json.len());
    let (mut rest, mut changed) = (json, false);
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        repaired.push_str(before);
        let (length, half) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(FIRST_HALF..FIRST_LOW), Some(FIRST_LOW..BEHIND)) => (12, None),
            (Some(half @ FIRST_HALF..BEHIND), _) => (6, Some(half)),
            // The backslash, and what it escapes.
            _ => (escape.chars().take(2).map(char::len_utf8).sum(), None),
        };
        let (escape, behind) = escape.split_at_checked(length).unwrap_or((escape, ""));
        match half {
            Some(half) => repaired.push(sign(half)),
            None => repaired.push_str(escape),
        }
        changed = changed || half.is_some();
        rest = behind;
    }
    repaired.push_str(rest);
    changed.then_some(repaired)
}

/// The number of an escape by number that a text begins with.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    // A sign before the digits is none of JSON.
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Joins what was marked.
#[derive(Debug, Default)]
pub(super) struct HalfJoiner {
    /// The first half of a pair whose second half may be in the next piece.
    high: Option<u32>,
}

impl HalfJoiner {
    /// Adds a piece.
    pub(super) fn add(&mut self, text: &mut String, piece: &str) {
        for letter in piece.chars() {
            let half = u32::from(letter).checked_sub(FIRST_MARK).map(|half| half + FIRST_HALF);
            let high = self.high.take();
            match (high, half) {
                (Some(high), Some(low @ FIRST_LOW..BEHIND)) => text.push(joined_sign(high, low)),
                (high, half) => {
                    text.extend(high.map(|_| LOST));
                    match half {
                        Some(half @ FIRST_HALF..FIRST_LOW) => self.high = Some(half),
                        Some(_) => text.push(LOST),
                        None => text.push(letter),
                    }
                }
            }
        }
    }

    /// Nothing follows.
    pub(super) fn end(&mut self, text: &mut String) {
        text.extend(self.high.take().map(|_| LOST));
    }
}

fn joined_sign(high: u32, low: u32) -> char {
    char::from_u32(0x1_0000 + ((high - FIRST_HALF) << 10) + (low - FIRST_LOW)).unwrap_or(LOST)
}

/// A text whose pieces are all there.
pub(super) fn join(text: &mut String) {
    let (mut joined, mut joiner) = (String::with_capacity(text.len()), HalfJoiner::default());
    joiner.add(&mut joined, text);
    joiner.end(&mut joined);
    *text = joined;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_alone_is_a_lost_sign_and_nothing_else_changes() {
        for (json, read) in [
            (r#""sent \ud83d ok""#, "\"sent \u{fffd} ok\""),
            (r#""\uDE00\uD83D""#, "\"\u{fffd}\u{fffd}\""),
            (r#""\ud83d\ud83d\ude00""#, "\"\u{fffd}\\ud83d\\ude00\""),
            (r#""\ud83d\ude00 \\ud83d \u00fc \" \ud7ff\ue000""#, r#""\ud83d\ude00 \\ud83d \u00fc \" \ud7ff\ue000""#),
            (r#""\ud83d\n\u+d8f \ud8""#, "\"\u{fffd}\\n\\u+d8f \\ud8\""),
            (r#""\ud83d"#, "\"\u{fffd}"),
            ("\\", "\\"),
            ("\\ud", "\\ud"),
        ] {
            assert_eq!(readable(json.as_bytes()), read, "{json}");
        }
        assert_eq!(readable(b"\"\xed\xa0\xbd\""), "\"\u{fffd}\u{fffd}\u{fffd}\"");
    }

    #[test]
    fn halves_of_two_pieces_are_the_sign() {
        for (pieces, read) in [
            (&[r"a\ud83d", r"\ude00b"][..], "a😀b"),
            (&[r"\ud83d", "", r"\ude00"], "😀"),
            (&[r"\ud83d", "b", r"\ude00"], "\u{fffd}b\u{fffd}"),
            (&[r"\ud83d", r"\ud83d", r"\ude00\ud83d"], "\u{fffd}😀\u{fffd}"),
        ] {
            let (mut text, mut joiner, mut whole) = (String::new(), HalfJoiner::default(), String::new());
            for piece in pieces {
                let (piece, _) = marked(piece.as_bytes());
                joiner.add(&mut text, &piece);
                whole.push_str(&piece);
            }
            joiner.end(&mut text);
            join(&mut whole);
            assert_eq!((text.as_str(), whole.as_str()), (read, read), "{pieces:?}");
        }
    }
}
