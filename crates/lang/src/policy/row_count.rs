//! How many rows a query may give, as far as its words say.

use super::statement::{SqlToken, SqlTokens};

/// How many rows a query may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// As many as there are: no word says how many.
    Any,
    /// At most this number.
    AtMost(u64),
    /// It says how many, by what is not known here.
    Unknown,
}

/// A part of a query; what is in parentheses is one.
#[derive(Debug)]
enum QueryPart<'q> {
    Word(&'q str),
    /// A name in quotes, or one that is no word of the language: behind a dot, or of a parameter.
    Name(&'q str),
    Sign(char),
    Group(Vec<QueryPart<'q>>),
}

/// The deepest parentheses that are read.
const MAX_PARENTHESES: usize = 48;

/// The most tables before a query whose rows are known.
const MAX_TABLES: usize = 64;

/// Functions that make one value of all rows.
const AGGREGATES: [&str; 41] = [
    "any_value",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "every",
    "group_concat",
    "json_agg",
    "json_arrayagg",
    "json_group_array",
    "json_group_object",
    "json_object_agg",
    "json_objectagg",
    "jsonb_agg",
    "jsonb_group_array",
    "jsonb_group_object",
    "jsonb_object_agg",
    "max",
    "median",
    "min",
    "mode",
    "percentile_cont",
    "percentile_disc",
    "range_agg",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "total",
    "var_pop",
    "var_samp",
    "variance",
];
/// Functions that make several rows of one, and what the names of others end with.
const OF_SETS: [&str; 6] = [
    "unnest",
    "generate_series",
    "generate_subscripts",
    "regexp_matches",
    "jsonb_path_query",
    "json_populate_recordset",
];
const ENDS_OF_SETS: [&str; 6] =
    ["_each", "_each_text", "_array_elements", "_array_elements_text", "_object_keys", "_to_table"];
/// What ends the tables that a query names after `FROM`.
const AFTER_TABLES: [&str; 10] =
    ["WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "FETCH", "OFFSET", "FOR", "RETURNING"];

/// How many rows a query may give.
pub fn row_count(query: &str) -> RowCount {
    let Some(parts) = parts(query) else { return RowCount::Unknown };
    let one = parts.split(|part| part.is_sign(';')).next().unwrap_or_default();
    of_query(one, &[])
}

/// The parts of a query; none when it is too deep.
fn parts(query: &str) -> Option<Vec<QueryPart<'_>>> {
    let (mut open, mut current, mut before) = (Vec::new(), Vec::new(), None);
    for token in SqlTokens::of(query) {
        let sign = match token {
            SqlToken::Sign(sign) => Some(sign),
            _ => None,
        };
        match token {
            SqlToken::Sign('(') => {
                if open.len() == MAX_PARENTHESES {
                    return None;
                }
                open.push(std::mem::take(&mut current));
            }
            SqlToken::Sign(')') => {
                // One too many ends nothing.
                if let Some(around) = open.pop() {
                    let group = std::mem::replace(&mut current, around);
                    current.push(QueryPart::Group(group));
                }
            }
            SqlToken::Sign(sign) => current.push(QueryPart::Sign(sign)),
            SqlToken::Word(word) if matches!(before, Some(':' | '$' | '@' | '.')) => {
                current.push(QueryPart::Name(word))
            }
            SqlToken::Word(word) => current.push(QueryPart::Word(word)),
            SqlToken::Quoted(name) => current.push(QueryPart::Name(name)),
        }
        before = sign;
    }
    while let Some(around) = open.pop() {
        let group = std::mem::replace(&mut current, around);
        current.push(QueryPart::Group(group));
    }
    Some(current)
}

impl<'q> QueryPart<'q> {
    fn is(&self, word: &str) -> bool {
        matches!(self, Self::Word(written) if written.eq_ignore_ascii_case(word))
    }

    fn is_one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    fn is_sign(&self, sign: char) -> bool {
        matches!(self, Self::Sign(written) if *written == sign)
    }

    fn group(&self) -> Option<&[QueryPart<'q>]> {
        match self {
            Self::Group(parts) => Some(parts),
            _ => None,
        }
    }

    fn name(&self) -> Option<&'q str> {
        match self {
            Self::Word(name) | Self::Name(name) => Some(name),
            Self::Sign(_) | Self::Group(_) => None,
        }
    }
}

impl RowCount {
    /// Those of two results together.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::AtMost(one), Self::AtMost(other)) => Self::AtMost(one.saturating_add(other)),
            _ => Self::Unknown,
        }
    }

    /// Those that are in two results.
    fn least(self, other: Self) -> Self {
        match (self, other) {
            (Self::AtMost(one), Self::AtMost(other)) => Self::AtMost(one.min(other)),
            (Self::Any, other) | (other, Self::Any) => other,
            _ => Self::Unknown,
        }
    }
}

/// The tables that a query names before it begins, each with its rows.
type NamedTables<'q> = [(&'q str, RowCount)];

/// Where one of these words is outside of parentheses.
fn at(parts: &[QueryPart<'_>], words: &[&str]) -> Option<usize> {
    parts.iter().position(|part| part.is_one_of(words))
}

fn of_query<'q>(parts: &[QueryPart<'q>], known: &NamedTables<'q>) -> RowCount {
    let mut known = known.to_vec();
    let mut parts = parts;
    if parts.first().is_some_and(|part| part.is("WITH")) {
        let main = at(parts, &["SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE", "TABLE"]);
        let (with, rest) = parts.split_at_checked(main.unwrap_or(parts.len())).unwrap_or((parts, &[]));
        let named = with.iter().enumerate().filter(|(_, part)| part.is("AS"));
        for (begin, _) in named.take(MAX_TABLES.saturating_sub(known.len())) {
            let before = with.get(..begin).unwrap_or_default();
            let name = before.iter().rev().find_map(QueryPart::name);
            let body = with.get(begin..).unwrap_or_default().iter().find_map(QueryPart::group);
            if let (Some(name), Some(body)) = (name, body) {
                let count = of_query(body, &known);
                known.push((name, count));
            }
        }
        parts = rest;
    }
    let Some(first) = parts.first() else { return RowCount::Unknown };
    if first.is_one_of(&["INSERT", "REPLACE"]) {
        let rows = parts.get(1..).unwrap_or_default();
        let of_select = |part: &QueryPart<'_>| {
            part.is_one_of(&["SELECT", "VALUES", "WITH"]) || part.group().is_some_and(begins_query)
        };
        return match rows.iter().position(of_select) {
            Some(from) => of_query(rows.get(from..).unwrap_or_default(), &known),
            None => RowCount::Unknown,
        };
    }
    if first.is_one_of(&["UPDATE", "DELETE"]) {
        return limit(parts).unwrap_or(RowCount::Any);
    }
    of_results(parts, &known)
}

/// The results of several queries that are taken together, or of one.
fn of_results<'q>(parts: &[QueryPart<'q>], known: &NamedTables<'q>) -> RowCount {
    const TOGETHER: [&str; 4] = ["UNION", "EXCEPT", "INTERSECT", "MINUS"];
    let Some(mut next) = at(parts, &TOGETHER) else { return of_one(parts, known) };
    if let Some(bound) = limit(parts) {
        return bound;
    }
    let mut rows = of_one(parts.get(..next).unwrap_or_default(), known);
    loop {
        let rest = parts.get(next + 1..).unwrap_or_default();
        let end = at(rest, &TOGETHER).unwrap_or(rest.len());
        let other = rest.get(..end).unwrap_or_default();
        let other = match other.split_first() {
            Some((word, other)) if word.is_one_of(&["ALL", "DISTINCT"]) => other,
            _ => other,
        };
        let other = of_one(other, known);
        rows = match parts.get(next) {
            Some(word) if word.is("UNION") => rows.plus(other),
            Some(word) if word.is("INTERSECT") => rows.least(other),
            _ => rows,
        };
        if end == rest.len() {
            return rows;
        }
        next += 1 + end;
    }
}

/// The result of one query.
fn of_one<'q>(parts: &[QueryPart<'q>], known: &NamedTables<'q>) -> RowCount {
    if let Some(bound) = limit(parts) {
        return bound;
    }
    match parts.first() {
        Some(QueryPart::Group(group)) if begins_query(group) => of_query(group, known),
        Some(word) if word.is("VALUES") => {
            let rows = parts.iter().skip(1).take_while(|part| part.group().is_some() || part.is_sign(','));
            RowCount::AtMost(u64::try_from(rows.filter(|part| part.group().is_some()).count()).unwrap_or(u64::MAX))
        }
        Some(word) if word.is("TABLE") => RowCount::Any,
        Some(word) if word.is("SELECT") => of_select(parts, known),
        _ => RowCount::Unknown,
    }
}

fn of_select<'q>(parts: &[QueryPart<'q>], known: &NamedTables<'q>) -> RowCount {
    let from = at(parts, &["FROM"]);
    let values = parts.get(1..from.unwrap_or(parts.len())).unwrap_or_default();
    if has_sets(values) {
        return if from.is_some() { RowCount::Any } else { RowCount::Unknown };
    }
    let Some(from) = from else { return RowCount::AtMost(1) };
    let is_grouped = parts.iter().zip(parts.iter().skip(1)).any(|(word, next)| word.is("GROUP") && next.is("BY"));
    if !is_grouped && has_aggregate(values) {
        return RowCount::AtMost(1);
    }
    let tables = parts.get(from + 1..).unwrap_or_default();
    let tables = tables.get(..at(tables, &AFTER_TABLES).unwrap_or(tables.len())).unwrap_or_default();
    if tables.iter().any(|part| part.is_sign(',') || part.is("JOIN")) {
        return RowCount::Any;
    }
    match tables {
        [QueryPart::Group(group), ..] if begins_query(group) => of_query(group, known),
        // A function gives the rows, or the table is one of another schema.
        [_, QueryPart::Group(_) | QueryPart::Sign('.'), ..] => RowCount::Any,
        [table, ..] => {
            let named =
                table.name().and_then(|name| known.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(name)));
            named.map_or(RowCount::Any, |(_, rows)| *rows)
        }
        [] => RowCount::Any,
    }
}

/// Whether parts in parentheses are a query.
fn begins_query(group: &[QueryPart<'_>]) -> bool {
    match group.first() {
        Some(QueryPart::Group(inner)) => begins_query(inner),
        Some(word) => word.is_one_of(&["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE"]),
        None => false,
    }
}

/// What a query says of the number of its rows, outside of parentheses.
fn limit(parts: &[QueryPart<'_>]) -> Option<RowCount> {
    let number = |part: &QueryPart<'_>| match part {
        QueryPart::Word(word) => word.parse::<u64>().ok(),
        QueryPart::Group(inner) => match inner.as_slice() {
            [QueryPart::Word(word)] => word.parse::<u64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let written = |number: Option<u64>| number.map_or(RowCount::Unknown, RowCount::AtMost);
    let last = |words: &[&str]| parts.iter().rposition(|part| part.is_one_of(words));
    if let Some(at) = last(&["LIMIT"]) {
        return match parts.get(at + 1..).unwrap_or_default() {
            // No limit at all.
            [word, ..] if word.is_one_of(&["ALL", "NULL"]) => None,
            [QueryPart::Sign('-'), ..] => None,
            // The first one is how many are skipped.
            [_, QueryPart::Sign(','), count, ..] => Some(written(number(count))),
            [count, ..] => Some(written(number(count))),
            [] => None,
        };
    }
    let after = parts.get(last(&["FETCH"])? + 1..).unwrap_or_default();
    let ties = at(after, &["TIES"]).is_some();
    match after {
        [order, row, ..] if order.is_one_of(&["FIRST", "NEXT"]) && row.is_one_of(&["ROW", "ROWS"]) => {
            Some(RowCount::AtMost(1)).filter(|_| !ties).or(Some(RowCount::Unknown))
        }
        [order, count, ..] if order.is_one_of(&["FIRST", "NEXT"]) && !ties => Some(written(number(count))),
        _ => Some(RowCount::Unknown),
    }
}

/// Whether the values of a query are made of all its rows.
fn has_aggregate(values: &[QueryPart<'_>]) -> bool {
    values.iter().enumerate().any(|(at, part)| match part {
        QueryPart::Word(name) => {
            let after = values.get(at + 1..).unwrap_or_default();
            AGGREGATES.iter().any(|known| known.eq_ignore_ascii_case(name)) && is_of_all_rows(name, after)
        }
        QueryPart::Group(inner) => !begins_query(inner) && has_aggregate(inner),
        _ => false,
    })
}

/// Whether a function with these parts behind its name is called for all rows: not for each with those around it, and not
/// to compare several values.
fn is_of_all_rows(name: &str, after: &[QueryPart<'_>]) -> bool {
    let [QueryPart::Group(arguments), rest @ ..] = after else { return false };
    let compares = ["min", "max"].iter().any(|known| known.eq_ignore_ascii_case(name))
        && arguments.iter().any(|part| part.is_sign(','));
    let rest = match rest {
        [word, QueryPart::Group(_), rest @ ..] if word.is("FILTER") => rest,
        _ => rest,
    };
    !compares && !rest.first().is_some_and(|word| word.is("OVER"))
}

/// Whether the values of a query may make several rows of one.
fn has_sets(values: &[QueryPart<'_>]) -> bool {
    values.iter().enumerate().any(|(at, part)| match part {
        QueryPart::Word(name) => {
            let name = name.to_ascii_lowercase();
            let is_called = values.get(at + 1).is_some_and(|part| part.group().is_some());
            is_called && (OF_SETS.contains(&name.as_str()) || ENDS_OF_SETS.iter().any(|end| name.ends_with(end)))
        }
        QueryPart::Group(inner) => !begins_query(inner) && has_sets(inner),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_says_how_many_rows_it_gives_gives_no_more() {
        for (query, most) in [
            ("SELECT * FROM t LIMIT 5000", 5_000),
            ("select * from t limit 10 offset 20;", 10),
            ("SELECT * FROM t LIMIT 20, 10", 10),
            ("SELECT * FROM t LIMIT (7)", 7),
            ("SELECT * FROM t ORDER BY a FETCH FIRST 5 ROWS ONLY", 5),
            ("SELECT * FROM t FETCH NEXT ROW ONLY", 1),
            ("SELECT 1", 1),
            ("SELECT EXISTS (SELECT 1 FROM t)", 1),
            ("VALUES (1, 2), (3, 4)", 2),
            ("SELECT count(*) FROM t", 1),
            ("SELECT coalesce(sum(a), 0) AS s, max(b) FROM t WHERE c > 1", 1),
            ("SELECT count(*) FILTER (WHERE a) FROM t", 1),
            ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM t", 1),
            ("SELECT count(*) FROM t HAVING count(*) > 1", 1),
            ("SELECT json_group_array(id) FROM (SELECT id FROM t)", 1),
            ("(SELECT * FROM t LIMIT 3)", 3),
            ("(SELECT * FROM t LIMIT 3) UNION ALL (SELECT * FROM u LIMIT 4)", 7),
            ("SELECT * FROM t UNION SELECT * FROM u LIMIT 9", 9),
            ("SELECT * FROM t INTERSECT SELECT 1", 1),
            ("SELECT 1 EXCEPT SELECT a FROM t", 1),
            ("SELECT * FROM (SELECT * FROM t LIMIT 6) AS s WHERE a > 1", 6),
            ("WITH top AS (SELECT * FROM t LIMIT 6) SELECT * FROM top", 6),
            ("WITH a AS (SELECT * FROM t LIMIT 6), b (x) AS MATERIALIZED (SELECT * FROM A) SELECT * FROM b", 6),
            ("INSERT INTO t (a) VALUES (1), (2) ON CONFLICT DO UPDATE SET a = 1 RETURNING *", 2),
            ("INSERT INTO t SELECT * FROM u LIMIT 4 RETURNING id", 4),
        ] {
            assert_eq!(row_count(query), RowCount::AtMost(most), "{query}");
        }
    }

    #[test]
    fn any_other_query_of_a_table_gives_all_rows() {
        for query in [
            "SELECT * FROM t",
            "SELECT * FROM t LIMIT ALL",
            "SELECT * FROM t LIMIT NULL",
            "SELECT * FROM t LIMIT -1",
            "SELECT * FROM t WHERE id IN (SELECT id FROM u LIMIT 10)",
            "SELECT *, (SELECT a FROM u LIMIT 1) FROM t",
            "SELECT * FROM t WHERE a < :limit",
            "SELECT t.limit FROM t",
            "SELECT \"limit\" FROM t -- LIMIT 5",
            "SELECT a, count(*) FROM t GROUP BY a",
            "SELECT max(a, b) FROM t",
            "SELECT sum(a) OVER (ORDER BY b) FROM t",
            "SELECT count(*) FILTER (WHERE a) OVER () FROM t",
            "SELECT (SELECT count(*) FROM u) FROM t",
            "SELECT unnest(array_agg(a)) FROM t",
            "SELECT count FROM t",
            "SELECT * FROM (SELECT * FROM t LIMIT 6) a JOIN b ON true",
            "SELECT * FROM (SELECT * FROM t LIMIT 6) a, b",
            "SELECT * FROM (SELECT * FROM t)",
            "SELECT * FROM t UNION ALL (SELECT * FROM u LIMIT 4)",
            "WITH top AS (SELECT * FROM t LIMIT 6) SELECT * FROM other",
            "WITH top AS (SELECT * FROM t LIMIT 6) SELECT * FROM main.top",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
            "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone",
            "UPDATE t SET a = 1 RETURNING *",
            "DELETE FROM t WHERE a IN (SELECT a FROM u LIMIT 1) RETURNING *",
            "INSERT INTO t SELECT * FROM u RETURNING id",
            "TABLE t",
        ] {
            assert_eq!(row_count(query), RowCount::Any, "{query}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_judged() {
        let deep = format!("SELECT * FROM {}", "(".repeat(100_000));
        for query in [
            "",
            ";",
            "WITH",
            "PRAGMA table_info(t)",
            "SHOW TABLES",
            "SELECT * FROM t LIMIT :n",
            "SELECT * FROM t LIMIT ?",
            "SELECT * FROM t LIMIT",
            "SELECT * FROM t LIMIT (SELECT n FROM u)",
            "SELECT * FROM t FETCH FIRST 5 ROWS WITH TIES",
            "SELECT generate_series(1, 5000)",
            &deep,
        ] {
            assert!(!matches!(row_count(query), RowCount::AtMost(_)), "{query}");
        }
        assert_eq!(row_count(&deep), RowCount::Unknown);
        assert_eq!(row_count("SELECT * FROM t LIMIT :n"), RowCount::Unknown);
        assert_eq!(row_count("SELECT * FROM t)) LIMIT 3"), RowCount::AtMost(3));
    }
}
