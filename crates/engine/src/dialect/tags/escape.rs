//! Texts from elsewhere: the tags of this dialect in them are made harmless.

use std::borrow::Cow;

/// The names of tags that mean something to a reader of this dialect, here or where a model learned it.
const NAMES: [&str; 9] =
    ["think", "thinking", "thought", "reasoning", "tool_call", "tool_response", "tool_result", "observation", "answer"];

/// A text in which no tag of this dialect is left: the `<` of each is written `&lt;`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut taken = 0;
    for (at, _) in text.match_indices('<').filter(|(at, _)| is_tag(text, *at)) {
        out.push_str(text.get(taken..at).unwrap_or_default());
        out.push_str("&lt;");
        taken = at.saturating_add(1);
    }
    if taken == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(taken..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether a tag of this dialect begins at the `<` at this byte, also with spaces in it or attributes.
fn is_tag(text: &str, at: usize) -> bool {
    let rest = text.get(at.saturating_add(1)..).unwrap_or_default();
    let name = rest.trim_start_matches(|c: char| c == '/' || c.is_whitespace());
    NAMES.iter().any(|known| {
        let here = name.get(..known.len()).is_some_and(|word| word.eq_ignore_ascii_case(known));
        let next = name.get(known.len()..).and_then(|behind| behind.chars().next());
        here && next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-')
    })
}
