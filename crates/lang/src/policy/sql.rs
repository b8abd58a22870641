//! The placeholders of a query: outside of its texts and comments. It reads no more of SQL than that; whether a query
//! is right, the database says.

use std::collections::HashMap;
use std::ops::Range;

/// A placeholder of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlPlaceholder {
    /// What it takes.
    pub takes: PlaceholderValue,
    /// Its place in the query, in bytes.
    pub range: Range<usize>,
}

/// The value that a placeholder takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceholderValue {
    /// `:name`, `$name`, `@name`: the value of this name.
    Named(String),
    /// `$1`, `?1`: the value with this number.
    Numbered(usize),
    /// `?`: the next value.
    Next,
}

/// The placeholders of a query, in its order.
pub fn placeholders(query: &str) -> Vec<SqlPlaceholder> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut at = 0;
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let taken = match skipped(rest, before) {
            Some(length) => length,
            None => match placeholder(rest, before) {
                Some((takes, length)) => {
                    found.push(SqlPlaceholder { takes, range: at..at + length });
                    length
                }
                None => first.len_utf8(),
            },
        };
        before = query.get(..at + taken).and_then(|read| read.chars().next_back()).unwrap_or(' ');
        at += taken;
    }
    found
}

/// Placeholders, in the order of their query, each with the number of the value that it takes, from 1. They are counted as
/// SQLite does: `?` and a new name take the number after the highest one before them.
pub fn numbered(placeholders: Vec<SqlPlaceholder>) -> Vec<(SqlPlaceholder, usize)> {
    let (mut names, mut highest) = (HashMap::new(), 0_usize);
    let number = |placeholder: SqlPlaceholder| {
        let next = highest.saturating_add(1);
        let number = match &placeholder.takes {
            PlaceholderValue::Named(name) => *names.entry(name.clone()).or_insert(next),
            PlaceholderValue::Numbered(number) => *number,
            PlaceholderValue::Next => next,
        };
        highest = highest.max(number);
        (placeholder, number)
    };
    placeholders.into_iter().map(number).collect()
}

/// Whether a query is several statements: something follows a semicolon.
pub fn is_several(query: &str) -> bool {
    let (mut before, mut at, mut is_ended) = (' ', 0, false);
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let length = skipped(rest, before);
        let is_comment = length.is_some() && (rest.starts_with("--") || rest.starts_with("/*"));
        if is_ended && !is_comment && !first.is_whitespace() && first != ';' {
            return true;
        }
        is_ended |= first == ';';
        at += length.unwrap_or(first.len_utf8());
        before = first;
    }
    false
}

/// Statements that a call of a server's database may not be: they read or write files or the connection, or end the transaction that keeps
/// a reading call from writing.
const REFUSED_BY_SERVERS: [&str; 14] = [
    "ABORT",
    "BEGIN",
    "COMMIT",
    "COPY",
    "DEALLOCATE",
    "DISCARD",
    "END",
    "LISTEN",
    "LOAD",
    "PREPARE",
    "RELEASE",
    "ROLLBACK",
    "SAVEPOINT",
    "START",
];

/// The word of a statement that no call of a server's database may be; none for the others.
pub fn refused_by_servers(query: &str) -> Option<&'static str> {
    let word = first_word(query);
    REFUSED_BY_SERVERS.into_iter().find(|refused| refused.eq_ignore_ascii_case(word))
}

/// The first word of a query as PostgreSQL reads it: what it does. Empty when it begins with none.
pub fn first_word(query: &str) -> &str {
    let mut rest = query.trim_start();
    while let Some(length) = server_comment(rest) {
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    rest.split(|c: char| !is_name(c)).next().unwrap_or_default()
}

/// How long the comment of PostgreSQL is that begins here: `/* */` nests, and `--` ends at a carriage return too.
fn server_comment(rest: &str) -> Option<usize> {
    if rest.starts_with("--") {
        return Some(rest.find(['\n', '\r']).unwrap_or(rest.len()));
    }
    rest.starts_with("/*").then(|| nested_comment(rest).unwrap_or(rest.len()))
}

/// How long a comment is in which others may stand; none where one of them does not end.
fn nested_comment(rest: &str) -> Option<usize> {
    let (mut depth, mut bytes) = (0_usize, rest.as_bytes());
    loop {
        (depth, bytes) = match bytes {
            [b'/', b'*', after @ ..] => (depth + 1, after),
            [b'*', b'/', after @ ..] if depth == 1 => return Some(rest.len() - after.len()),
            [b'*', b'/', after @ ..] => (depth - 1, after),
            [_, after @ ..] => (depth, after),
            [] => return None,
        };
    }
}

/// The longest comment in which others are looked for, in bytes.
const MAX_NESTED_BYTES: usize = 1024;

/// How long the text, quoted name or comment is that begins here, behind the character `before`.
pub fn skipped(rest: &str, before: char) -> Option<usize> {
    let until = |begin: usize, end: &str| {
        let inner = rest.get(begin..)?;
        Some(begin + inner.find(end).map_or(inner.len(), |at| at + end.len()))
    };
    match rest.chars().next()? {
        // A doubled quote inside reads as two texts beside each other, which is as good.
        quote @ ('\'' | '"' | '`') => until(1, quote.encode_utf8(&mut [0; 4])),
        'e' | 'E' if !is_name(before) && rest.get(1..)?.starts_with('\'') => Some(escaped(rest)),
        '-' if rest.starts_with("--") => until(2, "\n"),
        // Comments nest in PostgreSQL. In the others what is left behind the first end would be no SQL.
        '/' if rest.starts_with("/*") => {
            let near = rest.get(..rest.floor_char_boundary(MAX_NESTED_BYTES))?;
            nested_comment(near).or_else(|| until(2, "*/"))
        }
        ':' if rest.starts_with("::") => Some(2),
        '$' if !is_name(before) => {
            let tag = rest.get(1..)?;
            let name = tag.split(|c: char| !is_name(c)).next().unwrap_or_default();
            let numbered = name.starts_with(|c: char| c.is_ascii_digit());
            let quote = rest.get(..name.len() + 2).filter(|quote| quote.ends_with('$') && !numbered)?;
            until(quote.len(), quote)
        }
        _ => None,
    }
}

/// How long PostgreSQL's `E'...'` is, in which a backslash escapes the quote.
fn escaped(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(2) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The placeholder that begins here, and its length.
pub(super) fn placeholder(rest: &str, before: char) -> Option<(PlaceholderValue, usize)> {
    let mark = rest.chars().next().filter(|c| matches!(c, ':' | '$' | '@' | '?') && !is_name(before))?;
    let name = rest.get(1..)?.split(|c: char| !is_name(c)).next().unwrap_or_default();
    let takes = match (mark, name.parse::<usize>().ok()) {
        ('$' | '?', Some(number)) => PlaceholderValue::Numbered(number),
        ('?', None) if name.is_empty() => PlaceholderValue::Next,
        (':' | '$' | '@', None) if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
            PlaceholderValue::Named(name.to_owned())
        }
        _ => return None,
    };
    Some((takes, 1 + name.len()))
}

/// Whether a character may be part of a name.
pub fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<String> {
        placeholders(query).into_iter().map(|found| query[found.range].to_owned()).collect()
    }

    #[test]
    fn a_bare_mark_takes_the_number_after_the_highest_before_it() {
        let numbers =
            |query: &str| numbered(placeholders(query)).into_iter().map(|(_, number)| number).collect::<Vec<_>>();
        assert_eq!(numbers("? ? ?2 ?"), [1, 2, 2, 3]);
        assert_eq!(numbers(":a ? :a $5 :b"), [1, 2, 1, 5, 6]);
    }

    #[test]
    fn what_only_looks_like_a_placeholder_is_none() {
        for (query, found) in [
            ("SELECT 1 /* a /* b :no */ ? */ WHERE b = :b", vec![":b"]),
            ("SELECT 1 /* a /* b */ WHERE b = :b", vec![":b"]),
            ("SELECT a::text, ':no', E'it\\'s :no', \":no\" FROM t WHERE b = :b", vec![":b"]),
            ("SELECT $$ :no $$, $q$ $1 $$ :no $q$, $1", vec!["$1"]),
            ("SELECT a[1:2], a[lo:hi], x'00' -- :no\n, :c /* :no */", vec![":c"]),
            ("SELECT e'\\\\', :d, name'x' || :e", vec![":d", ":e"]),
            ("SELECT f(a := :g), time'10:30', ?, ?2, @h", vec![":g", "?", "?2", "@h"]),
            ("SELECT 8 -:a, 8 /:b, $c, $_d, ?no, :1no", vec![":a", ":b", "$c", "$_d"]),
            ("SELECT 'open :no", vec![]),
        ] {
            assert_eq!(names(query), found, "{query}");
        }
    }

    #[test]
    fn several_statements_are_seen_and_a_semicolon_at_the_end_is_not_one() {
        for several in ["SELECT 1; SELECT 2", "SELECT 1;;x", "SELECT ';'; DELETE FROM t --", "a; $$b$$"] {
            assert!(is_several(several), "{several}");
        }
        // Neither begins a text: `name'...'` has no escapes, and `a$b$` is a name.
        for several in ["SELECT name'\\'; DELETE FROM t --'", "SELECT a$b$ FROM u; DELETE FROM t --$b$"] {
            assert!(is_several(several), "{several}");
        }
        for one in ["SELECT 1", "SELECT 1; ", "SELECT ';' || $$; x$$;", "SELECT 1; -- and more; of it\n /* x */;"] {
            assert!(!is_several(one), "{one}");
        }
    }
    #[test]
    fn no_comment_hides_what_a_query_does_from_the_refusal_of_it() {
        for query in [
            "COPY t TO PROGRAM 'x'",
            " \n\tCOPY(SELECT 1) TO '/x'",
            "/* a */ /**/COPY t",
            "/* /* nested */ */ COPY t",
            "/*/* */*/-- a\n--b\n/***/COPY t",
            "-- a line ends here, too\rCOPY t",
        ] {
            assert_eq!(first_word(query), "COPY", "{query}");
        }
        for query in ["", "/*/ COPY t", "/* /* */ COPY t", "-- COPY t", "(COPY t)", "- COPY t", "/ COPY t", "'COPY t'"]
        {
            assert_eq!(first_word(query), "", "{query}");
        }
    }
}
