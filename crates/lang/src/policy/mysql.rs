//! Queries for MySQL and MariaDB, whose texts and comments differ from those of other databases: how they are read, and
//! which of them a call may not be.

use super::sql::{self, SqlPlaceholder};

/// What a call that reads may be, by its first word.
const READS: [&str; 8] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "EXPLAIN"];
/// What a call that writes may be, too. A server refuses them in a transaction that is read-only.
const WRITES: [&str; 4] = ["INSERT", "REPLACE", "UPDATE", "DELETE"];
/// What only a call that writes may be: it commits, so that no transaction keeps it from writing. (MariaDB empties a
/// table by `TRUNCATE` in a transaction that is read-only.)
const COMMITS: [&str; 6] = ["CALL", "CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME"];

/// Why a call may not be this query, if it may not. Everything is refused that could end the call's transaction, change
/// the connection, or reach files: what a server reads as a statement grows with its versions, so what may be sent is
/// listed.
pub fn refusal(query: &str, read_only: bool) -> Option<String> {
    if query.contains('\0') {
        return Some("a call may not be a query with a zero byte, at which MySQL ends a comment".to_owned());
    }
    if parts(query).any(|part| part == "::") {
        let why = "a call may not be a query with `::`, a cast of PostgreSQL: write `CAST(:name AS SIGNED)`, \
                   `CAST(:name AS DECIMAL(20, 2))` or `CAST(:name AS CHAR)`";
        return Some(why.to_owned());
    }
    if tokens(query).any(|token| token.starts_with("/*!") || token.starts_with("/*M!")) {
        return Some("a call may not be a query with a comment that the server executes (`/*!`)".to_owned());
    }
    let word = first_word(query);
    let is_one_of = |words: &[&str]| words.iter().any(|known| known.eq_ignore_ascii_case(word));
    if read_only && is_one_of(&COMMITS) {
        let why = "it can end the transaction that keeps it from writing";
        return Some(format!("a call that is `read_only` may not be `{}`: {why}", word.to_uppercase()));
    }
    if !is_one_of(&READS) && !is_one_of(&WRITES) && !is_one_of(&COMMITS) {
        let known = [&READS[..], &WRITES[..], &COMMITS[..]].concat().join(", ");
        return Some(format!("a call may not be `{}`: it begins with one of {known}", word.to_uppercase()));
    }
    let mut words = tokens(query).filter(|token| token.starts_with(sql::is_name));
    let mut is_into = false;
    if words.any(|word| {
        let file = is_into && ["OUTFILE", "DUMPFILE"].iter().any(|known| known.eq_ignore_ascii_case(word));
        is_into = word.eq_ignore_ascii_case("INTO");
        file
    }) {
        return Some("a call may not be a query that writes a file (`INTO OUTFILE`, `INTO DUMPFILE`)".to_owned());
    }
    // Which values a query takes is read without knowing its database.
    (placeholders(query) != sql::placeholders(query)).then(|| {
        "a call may not be a query whose quotes and comments MySQL reads in another way than other databases: write a \
         quote within a text twice (`''`), not behind a backslash, and comments as `-- ` or `/* */`"
            .to_owned()
    })
}

/// Whether a statement ends its transaction by itself, so that nothing takes it back.
pub fn commits_itself(query: &str) -> bool {
    let word = first_word(query);
    let is_call = word.eq_ignore_ascii_case("CALL");
    !is_call && COMMITS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a query is several statements: something follows a semicolon.
pub fn is_several(query: &str) -> bool {
    let mut rest = tokens(query).filter(|token| !is_comment(token) && !is_blank(token));
    rest.any(|token| token == ";") && rest.any(|token| token != ";")
}

/// The first word of a query: what it does. Empty when it begins with none.
pub fn first_word(query: &str) -> &str {
    let begins = |token: &&str| !is_comment(token) && !is_blank(token) && *token != "(";
    tokens(query).find(begins).filter(|token| token.starts_with(sql::is_name)).unwrap_or_default()
}

/// The placeholders of a query, in its order, as they are seen with the quotes and comments of MySQL.
pub fn placeholders(query: &str) -> Vec<SqlPlaceholder> {
    let (mut found, mut before, mut at) = (Vec::new(), ' ', 0);
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let first = rest.chars().next().unwrap_or(' ');
        let length = skipped(rest).unwrap_or_else(|| match sql::placeholder(rest, before) {
            Some((takes, length)) => {
                found.push(SqlPlaceholder { takes, range: at..at + length });
                length
            }
            None => first.len_utf8(),
        });
        at += length;
        before = query.get(..at).and_then(|read| read.chars().next_back()).unwrap_or(' ');
    }
    found
}

/// The parts of a query: its texts, quoted names, comments, words, and the signs between them.
fn tokens(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = query;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let word = rest.find(|c: char| !sql::is_name(c)).unwrap_or(rest.len());
        let length = skipped(rest).unwrap_or(if word > 0 { word } else { first.len_utf8() });
        let (token, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(token)
    })
}

/// The parts of a query without its blanks and comments.
pub fn parts(query: &str) -> impl Iterator<Item = &str> {
    tokens(query).filter(|token| !is_comment(token) && !is_blank(token))
}

/// Whether a token is a blank, as MySQL has them: only those of ASCII are.
fn is_blank(token: &str) -> bool {
    token.bytes().all(is_space)
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_comment(token: &str) -> bool {
    token.starts_with("/*") || token.starts_with('#') || token.starts_with("--")
}

/// How long the text, quoted name or comment is that begins here. Comments do not nest; `--` begins one only before a
/// blank.
fn skipped(rest: &str) -> Option<usize> {
    let until = |begin: usize, end: &str| {
        let inner = rest.get(begin..)?;
        Some(begin + inner.find(end).map_or(inner.len(), |at| at + end.len()))
    };
    match rest.chars().next()? {
        quote @ ('\'' | '"') => Some(text(rest, quote)),
        '`' => until(1, "`"),
        '#' => until(1, "\n"),
        '-' if rest.starts_with("--") => {
            // A blank that is not of ASCII is part of a name there, and begins no comment.
            let is_comment = rest.as_bytes().get(2).is_none_or(|byte| is_space(*byte) || byte.is_ascii_control());
            is_comment.then(|| until(2, "\n"))?
        }
        '/' if rest.starts_with("/*") => until(2, "*/"),
        // A cast of PostgreSQL is no placeholder.
        ':' if rest.starts_with("::") => Some(2),
        _ => None,
    }
}

/// How long a text is. A doubled quote inside reads as two texts beside each other, which is as good.
fn text(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hides_what_a_query_does_from_the_refusal_of_it() {
        for query in [
            "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t",
            "/* a */ -- b\n # c\n COMMIT",
            "(COMMIT)",
            "START TRANSACTION",
            "BEGIN NOT ATOMIC SELECT 1; END",
            "SET GLOBAL general_log = 1",
            "IF 1 THEN SELECT 1; END IF",
            "EXECUTE IMMEDIATE 'COMMIT'",
            "/*! COMMIT */",
            "/*!50000 COMMIT */ SELECT 1",
            "SELECT 1 /*M!100000 INTO OUTFILE '/tmp/x' */",
            "/* /* */ COMMIT",
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "SELECT * into/**/dumpfile '/tmp/x' FROM t",
            "TABLE t INTO -- x\n OUTFILE '/tmp/x'",
            "HANDLER t OPEN",
            "`SELECT` 1",
            "SELECT * FROM t WHERE 1 --\u{a0}\n INTO OUTFILE '/tmp/x'",
            "SELECT 1 --\u{a0}INTO OUTFILE '/tmp/x'",
            "SELECT 1 --\u{85}INTO OUTFILE '/tmp/x'",
            "SELECT 1 --\u{2028}INTO DUMPFILE '/tmp/x'",
            "SELECT 1 --\u{3000}INTO OUTFILE '/tmp/x'",
            "SELECT 1 -- \0INTO OUTFILE '/tmp/x'",
            "SELECT :a::int",
            "",
        ] {
            assert!(refusal(query, false).is_some(), "{query}");
        }
        for (query, word) in
            [("CALL p()", "`CALL`"), ("/* x */ truncate t", "`TRUNCATE`"), ("RENAME TABLE t TO u", "`RENAME`")]
        {
            assert!(refusal(query, true).unwrap().contains(word), "{query}");
            assert_eq!(refusal(query, false), None, "{query}");
        }
        for query in [
            "select 1",
            "((SELECT 1) UNION (SELECT 2))",
            "/* a */ WITH x AS (SELECT 1) SELECT * FROM x",
            "SELECT '/*! x */', \"INTO OUTFILE\", `into` FROM outfile",
            "SELECT /*+ MAX_EXECUTION_TIME(5) */ 1",
            "INSERT INTO outfile_names VALUES (:a)",
        ] {
            assert_eq!(refusal(query, true), None, "{query}");
        }
    }

    #[test]
    fn a_query_that_reads_otherwise_here_than_elsewhere_is_refused() {
        for query in [
            "SELECT 'it\\'s', :a, 'x'",
            "SELECT 1 # it's\n, :a",
            "SELECT 5--:a",
            "SELECT $$ :a $$",
            "SELECT \"a\\\" :b\"",
        ] {
            assert!(refusal(query, true).unwrap().contains("another way"), "{query}");
        }
        for query in ["SELECT 'it''s', :a", "SELECT 'C:\\\\x', :a -- it's\n", "SELECT '50\\%' LIKE :a, '10:30'"] {
            assert_eq!(refusal(query, true), None, "{query}");
        }
    }

    #[test]
    fn several_statements_are_seen() {
        for several in ["SELECT 1; SELECT 2", "SELECT '\\'; x'; SELECT 2", "SELECT 1;# a\nDROP TABLE t"] {
            assert!(is_several(several), "{several}");
        }
        for one in ["SELECT 1;", "SELECT 1; -- more; of it", "SELECT '\\';', `;`, \";\" # ;\n;"] {
            assert!(!is_several(one), "{one}");
        }
    }
}
