//! What a query does, by its first word. It reads no more of SQL than that.

use std::ops::Range;

use super::sql;

/// What a query does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatementEffect {
    /// It only reads.
    Reads,
    /// It changes the database.
    Writes,
}

const WRITES: [&str; 7] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER"];
const READS: [&str; 2] = ["SELECT", "VALUES"];

/// What a query does, and the place of the word that says so; nothing when that is not certain.
pub fn verb(query: &str) -> Option<(StatementEffect, Range<usize>)> {
    let mut words = SqlWords { query, at: 0 };
    let (first, range) = words.next()?;
    let does = |word: &str| {
        let is_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
        let writes = is_of(&WRITES).then_some(StatementEffect::Writes);
        writes.or_else(|| is_of(&READS).then_some(StatementEffect::Reads))
    };
    if first.eq_ignore_ascii_case("WITH") {
        // The statement comes after the tables that it names, which are in parentheses.
        return words.find_map(|(word, range)| does(word).map(|does| (does, range)));
    }
    let does = does(first)?;
    // A table for the moment only may be made where nothing else may be written.
    let temporary = |word: &str| word.eq_ignore_ascii_case("TEMP") || word.eq_ignore_ascii_case("TEMPORARY");
    let made = first.eq_ignore_ascii_case("CREATE") && words.next().is_some_and(|(word, _)| temporary(word));
    (!made).then_some((does, range))
}

/// The words of a text of SQL outside of parentheses, texts, quoted names and comments.
pub fn sql_words(query: &str) -> impl Iterator<Item = &str> {
    SqlWords { query, at: 0 }.map(|(word, _)| word)
}

/// The places of the texts between single quotes, with their quotes, in bytes.
pub fn texts(query: &str) -> impl Iterator<Item = Range<usize>> {
    let (mut at, mut before) = (0, ' ');
    std::iter::from_fn(move || {
        while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
            let c = rest.chars().next().unwrap_or(' ');
            let length = sql::skipped(rest, before).unwrap_or(c.len_utf8());
            let begin = at;
            (at, before) = (at + length, c);
            if c == '\'' && length > 1 && rest.get(..length).is_some_and(|text| text.ends_with('\'')) {
                return Some(begin..at);
            }
        }
        None
    })
}

/// The row that a query adds to a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Insert {
    /// The table.
    pub table: String,
    /// The columns that it names; those that it leaves out have their defaults.
    pub columns: Vec<String>,
}

/// What a query adds, where it names the columns; nothing for one that gives all of them, or adds nothing.
pub fn insert(query: &str) -> Option<Insert> {
    let mut tokens = SqlTokens { query, at: 0 }.peekable();
    let mut depth = 0_usize;
    let mut begins = |token: &SqlToken<'_>| {
        match token {
            SqlToken::Sign('(') => depth += 1,
            SqlToken::Sign(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (token.is_word("INSERT") || token.is_word("REPLACE"))
    };
    tokens.find(|token| begins(token))?;
    if tokens.next_if(|token| token.is_word("OR")).is_some() {
        tokens.next()?;
    }
    tokens.next_if(|token| token.is_word("INTO"))?;
    let mut table = tokens.next()?.name()?;
    if tokens.next_if_eq(&SqlToken::Sign('.')).is_some() {
        // Another database has other tables.
        let is_main = table.eq_ignore_ascii_case("main");
        table = tokens.next()?.name().filter(|_| is_main)?;
    }
    if tokens.next_if(|token| token.is_word("AS")).is_some() {
        tokens.next()?;
    }
    let columns = match tokens.next()? {
        SqlToken::Sign('(') => {
            let listed = tokens.take_while(|token| *token != SqlToken::Sign(')'));
            listed.filter_map(|token| token.name()).collect()
        }
        token if token.is_word("DEFAULT") => Vec::new(),
        _ => return None,
    };
    Some(Insert { table, columns })
}

/// A part of a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SqlToken<'q> {
    Word(&'q str),
    /// A name in quotes, without them.
    Quoted(&'q str),
    Sign(char),
}

impl SqlToken<'_> {
    fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(written) if written.eq_ignore_ascii_case(word))
    }

    fn name(&self) -> Option<String> {
        match self {
            Self::Word(name) | Self::Quoted(name) => Some((*name).to_owned()),
            Self::Sign(_) => None,
        }
    }
}

/// The parts of a query, without its comments.
pub(super) struct SqlTokens<'q> {
    query: &'q str,
    at: usize,
}

impl<'q> SqlTokens<'q> {
    pub(super) fn of(query: &'q str) -> Self {
        Self { query, at: 0 }
    }
}

impl<'q> Iterator for SqlTokens<'q> {
    type Item = SqlToken<'q>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.query.get(self.at..)?;
            let c = rest.chars().next()?;
            let word = word(rest);
            let bracketed = || rest.strip_prefix('[').and_then(|name| name.find(']')).map(|end| end + 2);
            let inside = |length: usize| SqlToken::Quoted(rest.get(1..length.saturating_sub(1)).unwrap_or_default());
            let (length, token) = match skipped(rest).or_else(bracketed) {
                Some(length) => (length, matches!(c, '\'' | '"' | '`' | '[').then(|| inside(length))),
                None if !word.is_empty() => (word.len(), Some(SqlToken::Word(word))),
                None => (c.len_utf8(), (!c.is_whitespace()).then_some(SqlToken::Sign(c))),
            };
            self.at += length;
            if token.is_some() {
                return token;
            }
        }
    }
}

/// The word that a text begins with; empty when it begins with another sign.
fn word(rest: &str) -> &str {
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default()
}

/// How long the text, quoted name or comment is that begins here.
fn skipped(rest: &str) -> Option<usize> {
    match rest.chars().next()? {
        c @ ('\'' | '"' | '`') => Some(rest.get(1..).and_then(|inner| inner.find(c)).map_or(rest.len(), |at| at + 2)),
        '-' if rest.starts_with("--") => Some(rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => Some(rest.find("*/").map_or(rest.len(), |at| at + 2)),
        _ => None,
    }
}

/// The words outside of parentheses, texts, quoted names and comments.
struct SqlWords<'q> {
    query: &'q str,
    at: usize,
}

impl<'q> Iterator for SqlWords<'q> {
    type Item = (&'q str, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let mut depth = 0_usize;
        while let Some(rest) = self.query.get(self.at..).filter(|rest| !rest.is_empty()) {
            let c = rest.chars().next().unwrap_or(' ');
            let word = word(rest);
            let begin = self.at;
            self.at += match skipped(rest) {
                Some(length) => length,
                None if !word.is_empty() => word.len(),
                None => c.len_utf8(),
            };
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && !word.is_empty() => return Some((word, begin..begin + word.len())),
                _ => {}
            }
        }
        None
    }
}
