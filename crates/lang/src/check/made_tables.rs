//! The tables that the queries of a loop make.

use std::collections::{HashMap, HashSet};

use super::Subject;
use crate::language::Action;
use crate::policy::statement::sql_words;

/// The words of the queries that make a table or something else, in lower case, by their datasource.
pub(super) struct MadeTables<'s>(HashMap<&'s str, HashSet<String>>);

impl<'s> MadeTables<'s> {
    /// Those of the actions of a loop.
    pub fn of(subject: &'s Subject<'_>) -> Self {
        let mut made: HashMap<&str, HashSet<String>> = HashMap::new();
        for used in subject.actions() {
            let Action::Db(db) = &*used.action else { continue };
            if sql_words(&db.query).next().is_some_and(|word| word.eq_ignore_ascii_case("CREATE")) {
                let words = sql_words(&db.query).map(str::to_ascii_lowercase);
                made.entry(db.datasource.as_str()).or_default().extend(words);
            }
        }
        Self(made)
    }

    /// Whether a query may make a table of this name in the database of a datasource.
    pub fn has(&self, datasource: &str, table: &str) -> bool {
        self.0.get(datasource).is_some_and(|words| words.contains(&table.to_ascii_lowercase()))
    }
}
