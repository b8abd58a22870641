//! `orgconfig:KEY` in the text of an author.

use std::collections::HashSet;

use super::node::TemplateNode;

const MARK: &str = "orgconfig:";

/// The keys of secrets, each once, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct SecretKeys {
    pub all: Vec<String>,
    known: HashSet<String>,
}

impl SecretKeys {
    fn add(&mut self, key: &str) {
        if !self.known.contains(key) {
            self.known.insert(key.to_owned());
            self.all.push(key.to_owned());
        }
    }
}

/// Whether a text names a secret.
pub(super) fn is_named(text: &str) -> bool {
    next(text, 0).is_some()
}

/// Splits a text at the secrets that it names. Returns whether a key extends to the end of the text, so that
/// following text would become a part of it.
pub(super) fn split(text: &str, nodes: &mut Vec<TemplateNode>, secrets: &mut SecretKeys) -> bool {
    // Most texts name none, and a look for one character costs less than one for the mark.
    if !text.contains(':') {
        push_text(nodes, text);
        return false;
    }
    let mut from = 0;
    while let Some((begin, key)) = next(text, from) {
        push_text(nodes, text.get(from..begin).unwrap_or_default());
        from = begin + MARK.len() + key.len();
        secrets.add(key);
        nodes.push(TemplateNode::Secret(key.to_owned()));
    }
    push_text(nodes, text.get(from..).unwrap_or_default());
    let run = text.trim_end_matches(is_key).len();
    text.get(run..).unwrap_or_default().match_indices(MARK).any(|(at, _)| !inside(text, run + at))
}

fn push_text(nodes: &mut Vec<TemplateNode>, text: &str) {
    if !text.is_empty() {
        nodes.push(TemplateNode::Text(text.to_owned()));
    }
}

/// The next secret at or after `from`: the start of its mark, and its key. A mark inside of a word does not
/// count, nor does one without a key.
fn next(text: &str, from: usize) -> Option<(usize, &str)> {
    // The mark ends with a colon: few texts have one.
    let colons = text.get(from..)?.match_indices(':').map(|(at, _)| from + at + 1);
    colons.filter(|end| text.get(from..*end).is_some_and(|before| before.ends_with(MARK))).find_map(|end| {
        let begin = end - MARK.len();
        let key = text.get(end..)?.split(|c: char| !is_key(c)).next().unwrap_or_default();
        let key = key.trim_end_matches([':', '.', '-']);
        (!inside(text, begin) && !key.is_empty()).then_some((begin, key))
    })
}

/// Whether the character before `at` belongs to the same word.
fn inside(text: &str, at: usize) -> bool {
    text.get(..at).and_then(|before| before.chars().next_back()).is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-')
}
