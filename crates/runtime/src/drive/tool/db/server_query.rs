//! A query as a server reads it: its placeholders in the server's form. Values are never part of the text.

use std::ops::Range;

use super::QueryValues;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::sql::{self, SqlPlaceholder};

/// How a server's parameters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderForm {
    /// `$1`, `$2`, ...: the same value has the same number.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "of PostgreSQL"))]
    Numbered,
    /// `?`, each with a value of its own.
    #[cfg_attr(not(feature = "mysql"), expect(dead_code, reason = "of MySQL"))]
    Question,
}

/// A query with the placeholders of its server in place of its own.
#[derive(Debug)]
pub(super) struct ServerQuery {
    /// The text for the server.
    pub(super) text: String,
    /// What the server's parameters take, in its order.
    pub(super) slots: Vec<QuerySlot>,
    /// The places of the placeholders: in the text for the server, and as they are written.
    places: Vec<(Range<usize>, Range<usize>)>,
}

/// A parameter of the server.
#[derive(Debug)]
pub(super) struct QuerySlot {
    /// The placeholder as it is written first.
    pub(super) written: String,
    /// Its number among all, as SQLite counts them: from 1.
    number: usize,
}

impl ServerQuery {
    /// Translates a query with these placeholders.
    pub(super) fn new(query: &str, placeholders: Vec<SqlPlaceholder>, form: PlaceholderForm) -> Self {
        let mut translated = Self { text: String::with_capacity(query.len()), slots: Vec::new(), places: Vec::new() };
        let mut end = 0;
        for (placeholder, number) in sql::numbered(placeholders) {
            let written = query.get(placeholder.range.clone()).unwrap_or_default();
            let is_shared = |slot: &QuerySlot| form == PlaceholderForm::Numbered && slot.number == number;
            let slot = translated.slots.iter().position(is_shared).unwrap_or_else(|| {
                translated.slots.push(QuerySlot { written: written.to_owned(), number });
                translated.slots.len() - 1
            });
            translated.text.push_str(query.get(end..placeholder.range.start).unwrap_or_default());
            let start = translated.text.len();
            match form {
                PlaceholderForm::Numbered => translated.text.push_str(&format!("${}", slot + 1)),
                PlaceholderForm::Question => translated.text.push('?'),
            }
            translated.places.push((start..translated.text.len(), placeholder.range.clone()));
            end = placeholder.range.end;
        }
        translated.text.push_str(query.get(end..).unwrap_or_default());
        translated
    }

    /// The text for the server with these expressions in place of its placeholders, one for each.
    #[cfg(feature = "mysql")]
    pub(super) fn with_expressions<'e>(&self, expressions: impl Iterator<Item = &'e str>) -> String {
        let (mut text, mut end) = (String::with_capacity(self.text.len()), 0);
        for ((place, _), expression) in self.places.iter().zip(expressions) {
            text.push_str(self.text.get(end..place.start).unwrap_or_default());
            text.push_str(expression);
            end = place.end;
        }
        text.push_str(self.text.get(end..).unwrap_or_default());
        text
    }

    /// The place in the query as it is written, of a place in the text for the server; both in bytes.
    pub(super) fn written_at(&self, at: usize) -> usize {
        let before = self.places.iter().rev().find(|(translated, _)| translated.start <= at);
        match before {
            Some((translated, written)) if at < translated.end => written.start,
            Some((translated, written)) => written.end.saturating_add(at.saturating_sub(translated.end)),
            None => at,
        }
    }
}

impl QuerySlot {
    /// The value that the parameter takes.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn value<'v>(&self, values: &'v QueryValues) -> Result<&'v serde_json::Value, ToolFault> {
        values.named(&self.written, self.number)
    }
}

/// The fault of a query that is more than one statement.
pub(super) fn several() -> ToolFault {
    fault("database: more than one statement", "each statement needs an action of its own")
}

#[cfg(test)]
mod tests {
    use super::*;
    use loopctl_lang::policy::sql::placeholders;

    #[test]
    fn placeholders_become_those_of_the_server_and_nothing_else_changes() {
        for (query, text, slots) in [
            ("SELECT :a, ':a', :b, :a::int", "SELECT $1, ':a', $2, $1::int", vec![":a", ":b"]),
            ("SELECT $2, $2 -- $1", "SELECT $1, $1 -- $1", vec!["$2"]),
            ("SELECT ?, ?, ?1", "SELECT $1, $2, $1", vec!["?", "?"]),
            ("SELECT é, $q$ :a $q$, E'\\' :a', @b", "SELECT é, $q$ :a $q$, E'\\' :a', $1", vec!["@b"]),
        ] {
            let translated = ServerQuery::new(query, placeholders(query), PlaceholderForm::Numbered);
            let written: Vec<&str> = translated.slots.iter().map(|slot| slot.written.as_str()).collect();
            assert_eq!((translated.text.as_str(), written), (text, slots), "{query}");
        }
    }

    #[test]
    fn a_place_that_the_server_names_is_found_in_the_query_as_it_is_written() {
        let query = "SELECT :long, nope, :other FROM t WHERE x = :long AND y";
        let translated = ServerQuery::new(query, placeholders(query), PlaceholderForm::Numbered);
        for word in ["SELECT", "nope", "FROM", "y"] {
            let at = translated.text.rfind(word).unwrap();
            assert_eq!(translated.written_at(at), query.rfind(word).unwrap(), "{word}");
        }
        assert_eq!(translated.written_at(translated.text.find("$2").unwrap()), query.find(":other").unwrap());
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn a_question_mark_takes_a_value_of_its_own_and_may_become_an_expression() {
        let query = "SELECT :a, ':a', :b, :a";
        let translated = ServerQuery::new(query, placeholders(query), PlaceholderForm::Question);
        assert_eq!(translated.text, "SELECT ?, ':a', ?, ?");
        let written: Vec<&str> = translated.slots.iter().map(|slot| slot.written.as_str()).collect();
        assert_eq!(written, [":a", ":b", ":a"]);
        assert_eq!(translated.with_expressions(["?", "f(?)", "?"].into_iter()), "SELECT ?, ':a', f(?), ?");
    }
}
