//! The placeholders of a query, and those of other languages in it.

use std::collections::HashSet;
use std::ops::Range;

use crate::policy::placeholder::{self, Notation, Placeholder};
use crate::policy::sql::{self, PlaceholderValue, SqlPlaceholder, is_name};

/// What a query takes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Placeholders {
    /// `:name`, `$name`, `@name`, each time.
    pub named: Vec<(String, Range<usize>)>,
    /// The highest number of `$1` and `?1`.
    pub positional: usize,
    /// How many bare `?`.
    pub anonymous: usize,
    /// How many values the query takes: the highest number of a placeholder.
    pub values: usize,
}

/// The names of a query's named parameters, each once, in the order of their first places.
pub fn named_parameters(query: &str) -> Vec<String> {
    let mut known = HashSet::new();
    let named = placeholders(query).named.into_iter().map(|(name, _)| name);
    named.filter(|name| known.insert(name.clone())).collect()
}

pub(super) fn placeholders(query: &str) -> Placeholders {
    let mut found = Placeholders::default();
    for (SqlPlaceholder { takes, range }, number) in sql::numbered(sql::placeholders(query)) {
        found.values = found.values.max(number);
        match takes {
            PlaceholderValue::Named(name) => found.named.push((name, range)),
            PlaceholderValue::Numbered(number) => found.positional = found.positional.max(number),
            PlaceholderValue::Next => found.anonymous += 1,
        }
    }
    found
}

/// A placeholder that no query has: of a template, or of a program that writes values into the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OtherPlaceholder<'q> {
    /// Its name; empty without one, as for `%s`.
    pub name: &'q str,
    /// Its place in the query, in bytes.
    pub range: Range<usize>,
    /// Whether it is in a text of the query.
    pub is_quoted: bool,
    /// Whether more than braces say that a value is meant.
    pub is_marked: bool,
}

/// The placeholders of other languages in a query: `{{x}}`, `{x}`, `${x}`, `%s`, `<x>`.
pub(super) fn others(query: &str) -> Vec<OtherPlaceholder<'_>> {
    let quoted = quoted_ranges(query);
    let within = |at: usize| quoted.iter().any(|range| range.contains(&at));
    let mut found = Vec::new();
    for (at, _) in query.match_indices("{{") {
        let Some((inner, _)) = query.get(at + 2..).and_then(|rest| rest.split_once("}}")) else { break };
        let name = inner.trim();
        let plain = !name.is_empty() && name.chars().all(is_name);
        let range = at..at + inner.len() + 4;
        found.push(OtherPlaceholder {
            name: if plain { name } else { "" },
            range,
            is_quoted: within(at),
            is_marked: true,
        });
    }
    for Placeholder { range, name, notation } in placeholder::placeholders(query) {
        let is_quoted = within(range.start);
        // A text of the query may hold JSON, or a pattern.
        let clear = match notation {
            Notation::Braces | Notation::MarkedBraces | Notation::Percent => !is_quoted || is_alone(query, &range),
            Notation::Printf | Notation::Angle => !is_quoted && takes_value(query, range.start),
            _ => false,
        };
        if clear {
            let name = if name.chars().all(is_name) { name } else { "" };
            found.push(OtherPlaceholder { name, range, is_quoted, is_marked: notation != Notation::Braces });
        }
    }
    found
}

/// The texts, quoted names and comments of a query.
fn quoted_ranges(query: &str) -> Vec<Range<usize>> {
    let (mut ranges, mut at, mut before) = (Vec::new(), 0, ' ');
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let length = sql::skipped(rest, before);
        let first = rest.chars().next().unwrap_or(' ');
        before = first;
        let taken = length.unwrap_or(first.len_utf8());
        if length.is_some_and(|length| length > 2) {
            ranges.push(at..at + taken);
        }
        at += taken;
    }
    ranges
}

/// Whether it is all that is between two quotes.
fn is_alone(query: &str, range: &Range<usize>) -> bool {
    let before = query.get(..range.start).is_some_and(|before| before.ends_with(['\'', '"']));
    before && query.get(range.end..).is_some_and(|after| after.starts_with(['\'', '"']))
}

/// Whether a value belongs at a place: after an operator, a comma or a parenthesis.
fn takes_value(query: &str, at: usize) -> bool {
    let before = query.get(..at).unwrap_or_default().trim_end();
    let word = before.rsplit(|c: char| !is_name(c)).next().unwrap_or_default();
    before.ends_with(['=', '(', ',', '>', '<']) || ["LIKE", "LIMIT", "IN", "AND"].contains(&&*word.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::others;

    #[test]
    fn the_placeholders_of_other_languages_are_found_where_a_value_belongs() {
        for (query, written) in [
            ("SELECT * FROM t WHERE id = {{id}}", vec!["{{id}}"]),
            ("SELECT * FROM t WHERE id = {id} AND a = '${a}'", vec!["{id}", "${a}"]),
            ("SELECT * FROM t WHERE id = %s AND b IN (%(b)s)", vec!["%s", "%(b)s"]),
            ("SELECT * FROM t WHERE id = <id>", vec!["<id>"]),
            ("SELECT a % s, strftime('%s', d), '{x} y' FROM t WHERE a <b AND c> d OR x = :x -- {id} %s", vec![]),
            ("SELECT '{\"a\": 1}'::jsonb, $1, ?2, @b FROM t WHERE note LIKE '%d%'", vec![]),
        ] {
            let found: Vec<&str> = others(query).iter().map(|other| &query[other.range.clone()]).collect();
            assert_eq!(found, written, "{query}");
        }
    }
}
