//! What comes before the JSON of a text: marks that nobody sees, and the block in which a model thinks.

use super::fences::begins_json;
use crate::policy::thinking::THINKING_TAGS;

/// The most blocks that are passed over.
const MAX_BLOCKS: usize = 100;

/// A text without them, and without what nobody sees at its end.
pub(super) fn without_marks(text: &str) -> &str {
    let mut text = text.trim_matches(is_unseen);
    for _ in 0..MAX_BLOCKS {
        let Some(rest) = behind_thought(text) else { break };
        text = rest.trim_start_matches(is_unseen);
    }
    text
}

fn is_unseen(sign: char) -> bool {
    sign.is_whitespace() || matches!(sign, '\u{feff}' | '\u{200b}' | '\u{2060}')
}

/// What is behind the block that a text begins with. Where the first tag was a part of the prompt, the text begins with thoughts.
fn behind_thought(text: &str) -> Option<&str> {
    if begins_json(text) || text.starts_with(['`', '~']) {
        return None;
    }
    let (name, inner) = match THINKING_TAGS.iter().find_map(|name| Some((name, opened(text, name)?))) {
        Some((name, inner)) => (Some(name), inner),
        None => (None, text),
    };
    let closed = |at: usize| {
        let behind = inner.get(at + 2..)?;
        let mut names = THINKING_TAGS.iter().filter(|known| name.is_none_or(|name| name == *known));
        names.find_map(|name| after_word(behind, name))
    };
    let rest = inner.match_indices("</").find_map(|(at, _)| closed(at))?;
    let begins = rest.trim_start_matches(is_unseen);
    // A text of other words may name such a tag.
    (name.is_some() || begins_json(begins) || begins.starts_with("```")).then_some(rest)
}

/// What is behind a tag that a text begins with.
fn opened<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    after_word(text.strip_prefix('<')?, name)
}

/// What is behind the name of a tag and its bracket.
fn after_word<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (word, rest) = text.split_at_checked(name.len())?;
    rest.strip_prefix('>').filter(|_| word.eq_ignore_ascii_case(name))
}
