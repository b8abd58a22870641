//! The placeholders of a query: outside of its texts and comments. It reads no more of SQL than
//! that; whether a query is right, the database says.

use std::collections::HashSet;
use std::ops::Range;

/// What a query takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Placeholders {
    /// `:name`, `$name`, `@name`, each time.
    pub named: Vec<(String, Range<usize>)>,
    /// The highest number of `$1` and `?1`.
    pub positional: usize,
    /// How many bare `?`.
    pub anonymous: usize,
}

/// The names of a query's named parameters, each once, in the order of their first places.
pub fn named_parameters(query: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let named = placeholders(query).named.into_iter().map(|(name, _)| name);
    named.filter(|name| known.insert(name.clone())).collect()
}

pub(super) fn placeholders(query: &str) -> Placeholders {
    let mut found = Placeholders::default();
    let mut at = 0;
    let mut before = ' ';
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let taken = skipped(rest).or_else(|| placeholder(rest, before, at, &mut found)).unwrap_or(first.len_utf8());
        before = first;
        at += taken;
    }
    found
}

/// How long the text, quoted name or comment is that begins here.
fn skipped(rest: &str) -> Option<usize> {
    let until = |begin: usize, end: &str| {
        let inner = rest.get(begin..)?;
        Some(begin + inner.find(end).map_or(inner.len(), |at| at + end.len()))
    };
    match rest.chars().next()? {
        // A doubled quote inside reads as two texts beside each other, which is as good.
        quote @ ('\'' | '"' | '`') => until(1, quote.encode_utf8(&mut [0; 4])),
        '-' if rest.starts_with("--") => until(2, "\n"),
        '/' if rest.starts_with("/*") => until(2, "*/"),
        ':' if rest.starts_with("::") => Some(2),
        '$' => {
            let tag = rest.get(1..)?;
            let name = tag.split(|c: char| !is_name(c)).next().unwrap_or_default();
            let numbered = name.starts_with(|c: char| c.is_ascii_digit());
            let quote = rest.get(..name.len() + 2).filter(|quote| quote.ends_with('$') && !numbered)?;
            until(quote.len(), quote)
        }
        _ => None,
    }
}

/// How long the placeholder is that begins here.
fn placeholder(rest: &str, before: char, at: usize, found: &mut Placeholders) -> Option<usize> {
    let mark = rest.chars().next().filter(|c| matches!(c, ':' | '$' | '@' | '?') && !is_name(before))?;
    let name = rest.get(1..)?.split(|c: char| !is_name(c)).next().unwrap_or_default();
    let length = 1 + name.len();
    let number = name.parse::<usize>().ok();
    match (mark, number) {
        ('$' | '?', Some(number)) => found.positional = found.positional.max(number),
        ('?', None) if name.is_empty() => found.anonymous += 1,
        (':' | '$' | '@', None) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            found.named.push((name.to_owned(), at..at + length));
        }
        _ => return None,
    }
    Some(length)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
