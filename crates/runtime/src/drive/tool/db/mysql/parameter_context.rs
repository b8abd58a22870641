//! What a parameter meets in a query: an expression that it is compared with, or a column that it is written to. MySQL
//! gives a parameter no type: it compares a text with a number as numbers, in which every text that is none is 0, and it rounds
//! what a column has no room for. So the server is asked for the type of what the parameter meets.

use std::ops::Range;

use loopctl_lang::policy::mysql;
use loopctl_lang::policy::sql;

/// How a parameter meets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeetingKind {
    /// It is compared with it.
    Compared,
    /// It becomes its value.
    Written,
}

/// What a parameter meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meeting {
    pub(super) kind: MeetingKind,
    /// Which parameter of the server, from 0.
    pub(super) slot: usize,
    /// The expression, as the query has it.
    pub(super) expression: String,
    /// Queries of which a column has its type, the nearest first. They are prepared, and not run.
    pub(super) lookups: Vec<String>,
    /// The place of that column in their results.
    pub(super) column: usize,
}

/// The words before an expression that is a whole side of a comparison.
const BEFORE: [&str; 17] = [
    "WHERE", "AND", "OR", "XOR", "NOT", "ON", "HAVING", "(", ",", "WHEN", "THEN", "ELSE", "SELECT", "SET", "DISTINCT",
    "&", "UPDATE",
];
/// The words behind one.
const BEHIND: [&str; 27] = [
    "AND",
    "OR",
    "XOR",
    ")",
    ",",
    ";",
    "GROUP",
    "ORDER",
    "LIMIT",
    "HAVING",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "FOR",
    "THEN",
    "ELSE",
    "END",
    "AS",
    "WHERE",
    "LEFT",
    "RIGHT",
    "INNER",
    "JOIN",
    "CROSS",
    "WINDOW",
    "RETURNING",
    "&",
];
/// The words that end the tables of a query.
const BEHIND_TABLES: [&str; 14] = [
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "WINDOW",
    "FOR",
    "UNION",
    "EXCEPT",
    "INTERSECT",
    "INTO",
    "RETURNING",
    "LOCK",
    ";",
];
/// Words that are no function before a parenthesis.
const NO_FUNCTIONS: [&str; 14] =
    ["WHERE", "AND", "OR", "XOR", "NOT", "ON", "HAVING", "IN", "WHEN", "THEN", "ELSE", "SELECT", "SET", "BETWEEN"];
/// Words between the verb of a statement and its table.
const MODIFIERS: [&str; 6] = ["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "IGNORE", "INTO"];
/// The most tokens of a query in which meetings are looked for.
const MAX_TOKENS: usize = 20_000;

/// What the parameters of a query meet, whose placeholders are `?`.
pub(super) fn meetings(query: &str) -> Vec<Meeting> {
    let parsed = Parsed::new(query);
    if parsed.tokens.len() > MAX_TOKENS {
        return Vec::new();
    }
    let parameters = (0..parsed.tokens.len()).filter(|at| parsed.is(*at, "?"));
    parameters.enumerate().filter_map(|(slot, at)| parsed.meeting(slot, at)).collect()
}

/// The parts of a query.
struct Parsed<'q> {
    tokens: Vec<&'q str>,
    /// The place of the other parenthesis, for each that has one.
    pairs: Vec<Option<usize>>,
    /// The place of the parenthesis that each part is within.
    outer: Vec<Option<usize>>,
}

impl<'q> Parsed<'q> {
    fn new(query: &'q str) -> Self {
        let mut tokens: Vec<&str> = Vec::new();
        for part in mysql::parts(query) {
            tokens.push(part);
        }
        let (mut pairs, mut outer, mut open) = (vec![None; tokens.len()], Vec::with_capacity(tokens.len()), Vec::new());
        for (at, token) in tokens.iter().enumerate() {
            if *token == ")"
                && let Some(begin) = open.pop()
            {
                for (one, other) in [(begin, at), (at, begin)] {
                    if let Some(pair) = pairs.get_mut(one) {
                        *pair = Some(other);
                    }
                }
            }
            outer.push(open.last().copied());
            if *token == "(" {
                open.push(at);
            }
        }
        Self { tokens, pairs, outer }
    }

    fn token(&self, at: usize) -> &'q str {
        self.tokens.get(at).copied().unwrap_or_default()
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.token(at).eq_ignore_ascii_case(word)
    }

    fn is_one_of(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    fn before(&self, at: usize, words: &[&str]) -> Option<usize> {
        at.checked_sub(1).filter(|before| self.is_one_of(*before, words))
    }

    fn pair(&self, at: usize) -> Option<usize> {
        self.pairs.get(at).copied().flatten()
    }

    fn text(&self, range: Range<usize>) -> String {
        let mut text = String::new();
        for at in range {
            let token = self.token(at);
            // No blank within a name, a call or an operator: `a.b`, `f(`, `->>`.
            let joins = |token: &str| token.len() == 1 && !token.starts_with(sql::is_name) && token != "?";
            if !text.is_empty() && !joins(token) && !text.ends_with(['.', '(', '>', '<', '=', '-', '@']) {
                text.push(' ');
            }
            text.push_str(token);
        }
        text
    }

    /// What the parameter at a place meets.
    fn meeting(&self, slot: usize, at: usize) -> Option<Meeting> {
        self.written_row(slot, at).or_else(|| self.compared(slot, at))
    }

    /// An operator that compares, at its last sign: where it begins.
    fn comparison_before(&self, at: usize) -> Option<usize> {
        let signs = |at: &usize| self.is_one_of(*at, &["=", "<", ">", "!"]);
        let begin = (0..at).rev().take_while(signs).last()?;
        let operator: String = (begin..at).map(|at| self.token(at)).collect();
        let is_json = begin.checked_sub(1).is_some_and(|before| self.is(before, "-"));
        (["=", "<", ">", "<=", ">=", "<>", "!=", "<=>"].contains(&operator.as_str()) && !is_json).then_some(begin)
    }

    fn comparison_behind(&self, at: usize) -> Option<usize> {
        let signs = |at: &usize| self.is_one_of(*at, &["=", "<", ">", "!"]);
        let end = (at.saturating_add(1)..self.tokens.len()).take_while(signs).last()?.saturating_add(1);
        (self.comparison_before(end) == Some(at.saturating_add(1))).then_some(end)
    }

    fn is_end(&self, at: usize) -> bool {
        at >= self.tokens.len() || self.is_one_of(at, &BEHIND)
    }

    fn compared(&self, slot: usize, at: usize) -> Option<Meeting> {
        let next = at.saturating_add(1);
        // `? = name`, `? BETWEEN a AND b`
        if at == 0 || self.before(at, &BEFORE).is_some() {
            let begin = self.comparison_behind(at).or_else(|| self.is(next, "BETWEEN").then(|| next.saturating_add(1)));
            let operand = begin.and_then(|begin| Some(begin..self.operand_from(begin)?));
            if let Some(operand) = operand.filter(|operand| self.is_end(operand.end)) {
                return self.found(slot, at, operand, MeetingKind::Compared);
            }
        }
        if !self.is_end(next) {
            return None;
        }
        // `name = ?`
        if let Some(begin) = self.comparison_before(at) {
            let operand = self.operand_before(begin)?;
            let kind = self.kind(&operand, begin.saturating_add(1) == at && self.is(begin, "="));
            return self.found(slot, at, operand, kind);
        }
        // `name BETWEEN ? AND ?`
        let between = match self.before(at, &["BETWEEN", "AND"])? {
            word if self.is(word, "BETWEEN") => Some(word),
            word => word.checked_sub(2).filter(|between| self.is(*between, "BETWEEN")),
        };
        if let Some(between) = between {
            let operand = self.operand_before(self.before(between, &["NOT"]).unwrap_or(between))?;
            return self.found(slot, at, operand, MeetingKind::Compared);
        }
        None
    }

    /// What a parameter in a list meets: `name IN (?, ?)`, `(a, b) = (?, ?)`, and the columns of an `INSERT`.
    fn written_row(&self, slot: usize, at: usize) -> Option<Meeting> {
        let open = self.outer.get(at).copied().flatten()?;
        let is_alone = self.before(at, &["(", ","]).is_some() && self.is_one_of(at.saturating_add(1), &[")", ","]);
        if !is_alone {
            return None;
        }
        let place = self.place_in(open, at);
        if let Some(word) = self.before(open, &["IN"]) {
            let operand = self.operand_before(self.before(word, &["NOT"]).unwrap_or(word))?;
            return self.found(slot, at, operand, MeetingKind::Compared);
        }
        if let Some(begin) = self.comparison_before(open) {
            let operand = self.operand_before(begin)?;
            let row = if self.is(operand.start, "(") { self.entry(operand.start, place)? } else { operand };
            return self.found(slot, at, row, MeetingKind::Compared);
        }
        self.inserted(slot, open, place)
    }

    /// The column of an `INSERT ... VALUES (...)` that a parameter at a place of a row is written to.
    fn inserted(&self, slot: usize, open: usize, place: usize) -> Option<Meeting> {
        let scope = self.outer.get(open).copied().flatten();
        let is_here = |at: &usize| self.outer.get(*at).copied().flatten() == scope;
        let values = (0..open).rev().filter(is_here).find(|at| !self.is_one_of(*at, &[",", "(", ")"]))?;
        let verb = (0..values).rev().filter(is_here).find(|at| self.is_one_of(*at, &["INSERT", "REPLACE"]))?;
        if !self.is_one_of(values, &["VALUES", "VALUE"]) {
            return None;
        }
        let table = (verb.saturating_add(1)..values).find(|at| !self.is_one_of(*at, &MODIFIERS))?;
        let end = self.operand_from_name(table)?;
        let (expression, column) = match self.pair(end).filter(|_| self.is(end, "(") && end < values) {
            Some(close) if close > end.saturating_add(1) => (self.text(self.entry(end, place)?), 0),
            _ => ("*".to_owned(), place),
        };
        let lookups = vec![format!("SELECT {expression} FROM {}", self.text(table..end))];
        let kind = MeetingKind::Written;
        let expression =
            if column == 0 && expression != "*" { expression } else { format!("column {}", place.saturating_add(1)) };
        Some(Meeting { kind, slot, expression, lookups, column })
    }

    /// How many commas of a list are before a place.
    fn place_in(&self, open: usize, at: usize) -> usize {
        let is_comma = |other: &usize| self.is(*other, ",") && self.outer.get(*other).copied().flatten() == Some(open);
        (open..at).filter(is_comma).count()
    }

    /// An entry of a list in parentheses.
    fn entry(&self, open: usize, place: usize) -> Option<Range<usize>> {
        let close = self.pair(open)?;
        let is_comma = |at: &usize| self.is(*at, ",") && self.outer.get(*at).copied().flatten() == Some(open);
        let mut ends: Vec<usize> = (open..close).filter(is_comma).collect();
        ends.push(close);
        let begin = match place.checked_sub(1) {
            Some(before) => *ends.get(before)?,
            None => open,
        };
        Some(begin.saturating_add(1)..*ends.get(place)?)
    }

    /// The expression that ends before a place, if it is the whole side of a comparison.
    fn operand_before(&self, end: usize) -> Option<Range<usize>> {
        let mut begin = self.simple_before(end)?;
        loop {
            begin = if let Some(word) = self.before(begin, &["COLLATE"]) {
                self.simple_before(word)?
            } else if let Some(word) = self.before(begin, &["BINARY"]) {
                word
            } else {
                break;
            };
        }
        (begin == 0 || self.before(begin, &BEFORE).is_some()).then_some(begin..end)
    }

    /// Where the name, the call or the parenthesis begins that ends before a place.
    fn simple_before(&self, end: usize) -> Option<usize> {
        let last = end.checked_sub(1)?;
        if self.is(last, ")") {
            let open = self.pair(last)?;
            let is_call = |at: &usize| self.is_word(*at) && !self.is_one_of(*at, &NO_FUNCTIONS);
            return Some(open.checked_sub(1).filter(is_call).map_or(open, |name| self.name_begin(name)));
        }
        // `doc ->> '$.a'`
        if self.token(last).starts_with('\'') {
            let arrow = (0..last).rev().take_while(|at| self.is_one_of(*at, &["-", ">"])).last()?;
            return self.simple_before(arrow).filter(|_| self.is(arrow, "-") && last.saturating_sub(arrow) > 1);
        }
        (self.is_word(last) && !self.token(last).starts_with(|c: char| c.is_ascii_digit()))
            .then(|| self.name_begin(last))
    }

    fn is_word(&self, at: usize) -> bool {
        self.token(at).starts_with(|c: char| sql::is_name(c) || c == '`')
    }

    /// Where a name begins that may have a table and a database before it.
    fn name_begin(&self, mut at: usize) -> usize {
        while let Some(before) =
            self.before(at, &["."]).and_then(|dot| dot.checked_sub(1)).filter(|at| self.is_word(*at))
        {
            at = before;
        }
        at
    }

    /// Where a name ends that begins at a place.
    fn operand_from_name(&self, begin: usize) -> Option<usize> {
        let mut end = self.is_word(begin).then(|| begin.saturating_add(1))?;
        while self.is(end, ".") && self.is_word(end.saturating_add(1)) {
            end = end.saturating_add(2);
        }
        Some(end)
    }

    /// Where the expression ends that begins at a place.
    fn operand_from(&self, begin: usize) -> Option<usize> {
        if self.is(begin, "(") {
            return self.pair(begin).map(|close| close.saturating_add(1));
        }
        if self.token(begin).starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let end = self.operand_from_name(begin)?;
        Some(match self.pair(end).filter(|_| self.is(end, "(")) {
            Some(close) => close.saturating_add(1),
            None => end,
        })
    }

    /// Whether an equality writes: `SET a = ?`, `ON DUPLICATE KEY UPDATE a = ?`.
    fn kind(&self, operand: &Range<usize>, is_equality: bool) -> MeetingKind {
        let clauses = ["SET", "WHERE", "ON", "HAVING", "SELECT", "UPDATE", "FROM", "BY", "LIMIT"];
        let scope = self.outer.get(operand.start).copied().flatten();
        let is_here = |at: &usize| self.outer.get(*at).copied().flatten() == scope;
        let clause = (0..operand.start).rev().filter(is_here).find(|at| self.is_one_of(*at, &clauses));
        let writes = |clause: usize| self.is(clause, "SET") || (self.is(clause, "UPDATE") && clause > 0);
        let begins = self.before(operand.start, &[",", "SET", "UPDATE"]).is_some();
        if is_equality && begins && clause.is_some_and(writes) { MeetingKind::Written } else { MeetingKind::Compared }
    }

    /// A meeting with an expression, and the queries that have its type.
    fn found(&self, slot: usize, at: usize, operand: Range<usize>, kind: MeetingKind) -> Option<Meeting> {
        let expression = self.text(operand);
        let (mut lookups, mut inner) = (Vec::new(), at);
        loop {
            let open = self.outer.get(inner).copied().flatten();
            let scope = open.map_or(0, |open| open.saturating_add(1))
                ..open.map_or(self.tokens.len(), |open| self.pair(open).unwrap_or(self.tokens.len()));
            if let Some((before, tables)) = self.tables(&scope, inner, open) {
                lookups.push(format!("{before}SELECT {expression} FROM {tables}"));
            }
            match open {
                Some(open) => inner = open,
                None => break,
            }
        }
        (!lookups.is_empty()).then_some(Meeting { kind, slot, expression, lookups, column: 0 })
    }

    /// The tables of the statement within a scope that a place is in, and the `WITH` before them.
    fn tables(&self, scope: &Range<usize>, at: usize, open: Option<usize>) -> Option<(String, String)> {
        let is_here = |at: &usize| self.outer.get(*at).copied().flatten() == open;
        let verbs = ["SELECT", "DELETE", "UPDATE", "INSERT", "REPLACE"];
        let is_verb = |place: &usize| {
            // `ON DUPLICATE KEY UPDATE`, `FOR UPDATE`, and functions of these names.
            let is_other = self.before(*place, &["KEY", "FOR"]).is_some() || self.is(place.saturating_add(1), "(");
            self.is_one_of(*place, &verbs) && !is_other
        };
        let mut verb = (scope.start..at).rev().filter(is_here).find(|place| is_verb(place))?;
        if self.is(verb, "SELECT")
            && let Some(insert) =
                (scope.start..verb).filter(is_here).find(|at| self.is_one_of(*at, &["INSERT", "REPLACE"]))
            && (insert..at).filter(is_here).any(|at| self.is(at, "DUPLICATE"))
        {
            verb = insert;
        }
        let first = verb.saturating_add(1);
        let (begin, end) = if self.is(verb, "UPDATE") {
            let begin = (first..scope.end).find(|at| !self.is_one_of(*at, &MODIFIERS))?;
            (begin, (begin..scope.end).filter(is_here).find(|at| self.is(*at, "SET"))?)
        } else if self.is_one_of(verb, &["INSERT", "REPLACE"]) {
            let begin = (first..scope.end).find(|at| !self.is_one_of(*at, &MODIFIERS))?;
            (begin, self.operand_from_name(begin)?)
        } else {
            let from = (first..scope.end).filter(is_here).find(|at| self.is(*at, "FROM"))?;
            let begin = from.saturating_add(1);
            let end = (begin..scope.end).filter(is_here).find(|at| self.is_one_of(*at, &BEHIND_TABLES));
            (begin, end.unwrap_or(scope.end))
        };
        let with = (scope.start..verb).filter(is_here).find(|at| self.is(*at, "WITH"));
        let before = with.map_or_else(String::new, |with| format!("{} ", self.text(with..verb)));
        Some((before, self.text(begin..end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(query: &str) -> Vec<(MeetingKind, usize, String, String)> {
        let found = meetings(query).into_iter();
        found.map(|met| (met.kind, met.slot, met.expression, met.lookups.join(" | "))).collect()
    }

    #[test]
    fn what_a_parameter_is_compared_with_is_found() {
        for (query, expression, lookups) in [
            ("DELETE FROM t WHERE id = ?", "id", "SELECT id FROM t"),
            ("DELETE FROM t WHERE ? = id", "id", "SELECT id FROM t"),
            ("DELETE QUICK FROM `a`.t WHERE (`id` <=> ?)", "`id`", "SELECT `id` FROM `a`. t"),
            ("SELECT 1 FROM t AS x JOIN u ON u.a = ? WHERE 1", "u.a", "SELECT u.a FROM t AS x JOIN u ON u.a=?"),
            ("UPDATE IGNORE t SET a = 1 WHERE lower(t.id) <> ? AND b", "lower(t.id)", "SELECT lower(t.id) FROM t"),
            ("SELECT * FROM t WHERE id NOT IN (1, ?) LIMIT 1", "id", "SELECT id FROM t"),
            ("SELECT * FROM t WHERE id NOT BETWEEN 1 AND ?", "id", "SELECT id FROM t"),
            ("SELECT * FROM t WHERE (a, b) = (1, ?)", "b", "SELECT b FROM t"),
            ("SELECT * FROM t WHERE doc->>'$.a' = ?", "doc->>'$.a'", "SELECT doc->>'$.a' FROM t"),
            (
                "SELECT * FROM t WHERE id COLLATE utf8_bin = ?",
                "id COLLATE utf8_bin",
                "SELECT id COLLATE utf8_bin FROM t",
            ),
            (
                "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.id = ? GROUP BY x)",
                "t.id",
                "SELECT t.id FROM u | SELECT t.id FROM t",
            ),
            ("WITH c AS (SELECT 1 AS n) SELECT * FROM c WHERE n = ?", "n", "WITH c AS (SELECT 1 AS n) SELECT n FROM c"),
        ] {
            let found = met(query);
            let [(kind, 0, found, looked)] = &found[..] else { panic!("{query}: {found:?}") };
            let tight = |text: &str| text.replace(' ', "");
            assert_eq!((*kind, found.as_str()), (MeetingKind::Compared, expression), "{query}");
            assert_eq!(tight(looked), tight(lookups), "{query}");
        }
    }

    #[test]
    fn the_column_that_a_parameter_is_written_to_is_found() {
        for (query, expression, lookup) in [
            ("UPDATE t SET a = 1, b = ? WHERE 1", "b", "SELECT b FROM t"),
            ("INSERT INTO t (a, b) VALUES (1, ?)", "b", "SELECT b FROM t"),
            ("INSERT INTO t (a, b) VALUES (1, 2), (1, ?)", "b", "SELECT b FROM t"),
            ("REPLACE t VALUES (1, ?)", "column 2", "SELECT * FROM t"),
            ("INSERT IGNORE t SET a = ?", "a", "SELECT a FROM t"),
            ("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = ?", "a", "SELECT a FROM t"),
        ] {
            let found = met(query);
            let expected = (MeetingKind::Written, 0, expression.to_owned(), lookup.to_owned());
            assert_eq!(found, [expected], "{query}");
        }
    }

    #[test]
    fn a_parameter_within_an_expression_meets_nothing() {
        for query in [
            "SELECT ?",
            "SELECT * FROM t LIMIT ?",
            "SELECT * FROM t WHERE a LIKE ?",
            "SELECT * FROM t WHERE a LIKE CONCAT('%', ?)",
            "SELECT * FROM t WHERE a + b = ?",
            "SELECT * FROM t WHERE a = ? + 1",
            "SELECT * FROM t WHERE a = -?",
            "SELECT * FROM t WHERE 'x' = ?",
            "SELECT coalesce(?, 1) FROM t",
            "CALL p(?)",
            "SELECT (((",
            ") = ?",
        ] {
            assert_eq!(met(query), [], "{query}");
        }
    }
}
