//! Secrets that a text names in a syntax that nothing here reads: `orgconfig.x`, `env:X`, `${X}`, `{{secrets.x}}`.

use std::collections::HashSet;
use std::ops::Range;

use super::SentText;
use crate::diagnostic::nearest;
use crate::language::action::TextKind;
use crate::policy::placeholder::Notation;
use crate::policy::secret_names::{Secrecy, fold, holds_secrets, is_variable, secrecy};

/// The word before the key of a secret.
const ORGCONFIG: &str = "orgconfig";
/// Words of examples that were to be replaced.
const BLANKS: [&str; 9] =
    ["your", "changeme", "change-me", "change_me", "replace-me", "replace_me", "insert-", "xxxx", "****"];
/// The words before a credential in a header.
const SCHEMES: [&str; 7] = ["bearer", "basic", "token", "apikey", "key", "digest", "auth"];
/// The most that are found in one text.
const MAX_FOUND: usize = 20;
/// The longest prefix of an element, in bytes: longer words are none that may name a secret.
const MAX_PREFIX_BYTES: usize = 64;

/// A secret that is named in another syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpelledSecret {
    /// Its place in the text, in bytes.
    pub range: Range<usize>,
    /// What it names.
    pub source: SpelledSource,
    /// Whether it is a tag of a template, which the model would fill.
    pub is_tag: bool,
}

/// Where a secret was meant to come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpelledSource {
    /// A key of the project's `orgconfig`.
    Key(String),
    /// A variable of the environment.
    Variable(String),
    File(String),
    /// An example that was to be replaced.
    Blank,
}

/// Whether what is in a text's place is a credential, by the name that it is sent under.
pub fn is_secret_place(sent: &SentText<'_>) -> bool {
    !sent.kind.is_prose() && sent.kind != TextKind::Url && sent.secrecy() != Secrecy::None
}

/// The credential in a text: what comes after the word for its kind in a header.
pub fn credential<'a>(sent: &SentText<'a>) -> (usize, &'a str) {
    let text = sent.text;
    let is_scheme = |word: &str| {
        let last = word.rsplit('-').next().unwrap_or_default().to_ascii_lowercase();
        SCHEMES.contains(&&*last)
    };
    let scheme = text.split_once(' ').filter(|(word, _)| is_scheme(word));
    match scheme {
        Some((word, rest)) => (word.len() + 1, rest),
        None => (0, text),
    }
}

/// The secrets that a text names in another syntax. `is_argument` says which names the model writes on purpose, and `is_given` which
/// variables the action gives its program: `ENVIRON["X"]` in an argument is what the program reads itself.
pub fn spelled(
    sent: &SentText<'_>,
    is_argument: &dyn Fn(&str) -> bool,
    is_given: &dyn Fn(&str) -> bool,
) -> Vec<SpelledSecret> {
    let mut found = Vec::new();
    if matches!(sent.kind, TextKind::Prompt | TextKind::Hint) {
        return found;
    }
    named_by_word(sent, is_argument, is_given, &mut found);
    named_by_mark(sent, is_argument, &mut found);
    if found.is_empty() && is_secret_place(sent) {
        let (begin, rest) = credential(sent);
        let lower = rest.to_ascii_lowercase();
        let source = if let Some(path) = rest.strip_prefix("file:").filter(|path| !path.is_empty()) {
            Some(SpelledSource::File(path.to_owned()))
        } else {
            BLANKS.iter().any(|blank| lower.starts_with(blank)).then_some(SpelledSource::Blank)
        };
        let range = begin..begin + rest.len();
        found.extend(source.map(|source| SpelledSecret { range, source, is_tag: false }));
    }
    found.truncate(MAX_FOUND);
    found.sort_by_key(|secret| secret.range.start);
    found
}

/// `orgconfig.x`, `{{secrets.x}}`, `env:X`: a word for where secrets are, and a key.
fn named_by_word(
    sent: &SentText<'_>,
    is_argument: &dyn Fn(&str) -> bool,
    is_given: &dyn Fn(&str) -> bool,
    found: &mut Vec<SpelledSecret>,
) {
    let text = sent.text;
    let elements = element_prefixes(text);
    let mut at = 0;
    // Few words have a key after them: these are looked for by the mark between the two.
    while let Some(word) = next_marked_word(text, at) {
        at = word.end;
        let Some(WrittenKey { mark, key, end }) = key_after(text, word.end) else { continue };
        let name = text.get(word.clone()).unwrap_or_default();
        // A secret is inserted behind a hyphen too.
        let name = if name.ends_with("-orgconfig") { ORGCONFIG } else { name };
        let word = word.end - name.len()..word.end;
        let ours = (7..=12).contains(&name.len())
            && (name == ORGCONFIG || fold(name) == ORGCONFIG || nearest(&name.to_lowercase(), [ORGCONFIG]).is_some());
        if !ours && !holds_secrets(name) {
            continue;
        }
        let around = wrapped(text, word.start..end);
        // An element of XML: `<env:Body>`.
        if mark == ":" && elements.contains(name) {
            continue;
        }
        // A word of a sentence: "the orgconfig: block of the project".
        let spaced = mark.ends_with(' ') && text.get(..word.start).is_some_and(|before| before.ends_with(' '));
        if spaced && around == (word.start..end) && text.get(end..).is_some_and(|after| after.starts_with(' ')) {
            continue;
        }
        let is_tag = text.get(around.clone()).is_some_and(|written| written.contains("{{"));
        // A quote behind the key is the text's own: the secret is inserted before it.
        let is_closed = text.get(end..around.end).is_some_and(|closing| closing.contains(['}', '>', '%']));
        let is_right = name == ORGCONFIG && mark == ":" && around.start == word.start && !is_closed;
        let alone = sent.kind != TextKind::Url && is_alone(sent, &around);
        let braced = around.end > end;
        let clear = match ours {
            true => true,
            false if is_argument(name) || (sent.kind == TextKind::Argument && is_given(key)) => false,
            false if name.eq_ignore_ascii_case("env") => braced || (alone && is_variable(key)),
            false => braced || (alone && mark != "/"),
        };
        let kind = !sent.kind.is_prose() || is_tag;
        if is_right || !clear || !kind {
            continue;
        }
        let source = match ours || !name.to_ascii_lowercase().starts_with("env") && !is_variable(key) {
            true => SpelledSource::Key(key.to_owned()),
            false => SpelledSource::Variable(key.to_owned()),
        };
        at = around.end;
        found.push(SpelledSecret { range: around, source, is_tag });
    }
}

/// The prefixes of the elements that a text of XML closes: `env` of `</env:Body>`. They are gathered once, because a text may have many words.
fn element_prefixes(text: &str) -> HashSet<&str> {
    // What comes before the first closing tag has no prefix.
    text.split("</").skip(1).filter_map(prefix_of).collect()
}

fn prefix_of(tag: &str) -> Option<&str> {
    let length = tag.bytes().take(MAX_PREFIX_BYTES).take_while(is_word).count();
    tag.get(length..)?.starts_with(':').then_some(tag.get(..length)?)
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The next word with a mark behind it that may begin a key.
fn next_marked_word(text: &str, from: usize) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(from..)?;
    let is_end = |at: usize| at > 0 && rest.get(at - 1).is_some_and(is_word);
    let mut marks = rest.iter().enumerate().filter(|(_, byte)| matches!(byte, b'[' | b'(' | b':' | b'.' | b'/'));
    let end = marks.find(|(at, _)| is_end(*at))?.0;
    let length = rest.get(..end)?.iter().rev().take_while(|byte| is_word(byte)).count();
    Some(from + end - length..from + end)
}

/// What follows a word for where secrets are.
struct WrittenKey<'t> {
    mark: &'t str,
    key: &'t str,
    end: usize,
}

/// The longest key of a secret, in bytes.
const MAX_KEY_BYTES: usize = 200;

fn key_after(text: &str, at: usize) -> Option<WrittenKey<'_>> {
    const MARKS: [&str; 9] = ["[\"", "['", "[", "(\"", "('", "::", ":", ".", "/"];
    let rest = text.get(at..)?;
    if !rest.starts_with(['[', '(', ':', '.', '/']) {
        return None;
    }
    let mark = MARKS.into_iter().find(|mark| rest.starts_with(mark))?;
    let inner = rest.get(mark.len()..)?;
    let blank = if mark == ":" { inner.len() - inner.trim_start_matches(' ').len() } else { 0 };
    let inner = inner.get(blank..)?;
    // No key is longer; a path of a thousand names would be read to its end at each of them.
    let inner = inner.get(..inner.floor_char_boundary(MAX_KEY_BYTES))?;
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let key = inner.get(..inner.find(|c| !is_key(c)).unwrap_or(inner.len()))?.trim_end_matches(['.', '-']);
    let begins = key.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let end = at + mark.len() + blank + key.len();
    begins.then_some(WrittenKey { mark: text.get(at..at + mark.len() + blank)?, key, end })
}

/// The place with the marks of a placeholder around it.
fn wrapped(text: &str, inner: Range<usize>) -> Range<usize> {
    let before = text.get(..inner.start).unwrap_or_default();
    let after = text.get(inner.end..).unwrap_or_default();
    let closed = after.trim_start_matches(['"', '\'', ']', ')', ' ']);
    let braces = closed.len() - closed.trim_start_matches('}').len();
    let begin =
        before.trim_end_matches(' ').trim_end_matches("process.").trim_end_matches("os.").trim_end_matches(['$', '@']);
    let opened = begin.trim_end_matches('{');
    if braces > 0 && opened.len() < begin.len() {
        let start = opened.trim_end_matches(['$', '#']).len();
        return start..inner.end + (after.len() - closed.len()) + braces;
    }
    let closed = after.trim_start_matches(['"', '\'', ']', ')']);
    let begin = before.trim_end_matches("process.").trim_end_matches("os.").trim_end_matches(['$', '@', '<', '%']);
    let end = inner.end + (after.len() - closed.len());
    let angle = usize::from(begin.len() < before.len() && closed.starts_with(['>', '%']));
    begin.len()..end + angle
}

/// Whether a part is the whole text, but for the word before it.
fn is_alone(sent: &SentText<'_>, part: &Range<usize>) -> bool {
    let (begin, _) = credential(sent);
    part.start <= begin && sent.text.get(part.end..).is_some_and(|rest| rest.trim().is_empty())
}

/// `$X`, `${X}`, `%X%`, `{{X}}`: a variable of the environment; in a credential's place also `<api-key>`.
fn named_by_mark(sent: &SentText<'_>, is_argument: &dyn Fn(&str) -> bool, found: &mut Vec<SpelledSecret>) {
    let mut marked: Vec<(Range<usize>, &str, bool)> = Vec::new();
    for placeholder in sent.placeholders() {
        let (name, range) = (placeholder.name, placeholder.range.clone());
        let secret = || secrecy(name) != Secrecy::None;
        let is_whole = is_alone(sent, &range);
        let clear = match (placeholder.notation, sent.kind) {
            (_, TextKind::Question | TextKind::Script) => false,
            (Notation::Dollar | Notation::MarkedBraces | Notation::Percent, kind) if is_variable(name) => match kind {
                TextKind::Header | TextKind::Url => true,
                // Nothing is inherited: `"REGION": "$REGION"` hands nothing on.
                TextKind::Variable => secret() || is_secret_place(sent) || (is_whole && name == sent.field),
                TextKind::Argument => secret(),
                _ => is_whole && (secret() || is_secret_place(sent)),
            },
            (Notation::Block | Notation::Printf | Notation::Colon | Notation::At, _) => false,
            // Lower case, or another mark: only as the credential itself.
            _ => is_whole && is_secret_place(sent),
        };
        if clear && !is_argument(name) {
            marked.push((range, name, false));
        }
    }
    let tags = if sent.text.contains('{') { sent.text } else { "" };
    for (at, _) in tags.match_indices("{{") {
        let Some(inner) = sent.text.get(at + 2..).and_then(|rest| Some(rest.split_once("}}")?.0)) else { break };
        let name = inner.trim();
        if is_variable(name) && secrecy(name) != Secrecy::None && !is_argument(name) {
            marked.push((at..at + 2 + inner.len() + 2, name, true));
        }
    }
    for (range, name, is_tag) in marked {
        let known = found.iter().any(|other| other.range.start < range.end && range.start < other.range.end);
        let source = if is_variable(name) { SpelledSource::Variable(name.to_owned()) } else { SpelledSource::Blank };
        if !known {
            found.push(SpelledSecret { range, source, is_tag });
        }
    }
}
