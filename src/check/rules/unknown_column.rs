//! A table or a column that the database of a query does not have.

use super::bad_sql::is_made_by_another;
use crate::check::{Rule, Subject};
use crate::compile::{DatabaseState, QueryFaultKind};
use crate::diagnostic::{Diagnostic, Nearest, Severity, codes};
use crate::language::Action;

/// The rule.
pub const RULE: Rule = Rule { code: codes::UNKNOWN_COLUMN, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(databases) = &subject.texts.outside.databases else { return };
    let mut nearest = Nearest::default();
    for used in subject.actions() {
        let Action::Db(db) = &used.action else { continue };
        if !used.knows(&["/query", "/datasource"]) || subject.has_error_in(&used.at("/query").place()) {
            continue;
        }
        let Some(fault) = databases.prepare(&db.datasource, &db.query) else { continue };
        let QueryFaultKind::UnknownName { name, is_table, known } = fault.kind else { continue };
        if is_table && is_made_by_another(subject, used, &name) {
            continue;
        }
        // `orders.total` is the column `total`.
        let bare = name.rsplit('.').next().unwrap_or(&name);
        let range =
            fault.offset.map(|at| at..at + name.len()).filter(|range| db.query.get(range.clone()) == Some(&name));
        let range = range.or_else(|| lone(&db.query, &name)).map(|range| range.end - bare.len()..range.end);
        let cursor = match &range {
            Some(range) => used.at("/query").inside(range.clone()),
            None => used.at("/query"),
        };
        let message = match is_table {
            true => format!("the database `{}` has no table `{name}`", db.datasource),
            false => format!("no table of the query has a column `{name}`"),
        };
        let is_made = databases.state(&db.datasource) == DatabaseState::Ready { is_made: true };
        // A database that exists may be another one when the loop runs.
        let severity = if is_made { Severity::Error } else { Severity::Warning };
        let report = Diagnostic { severity, ..cursor.report(&RULE, message) };
        found.push(match nearest.of(bare, known.iter().map(String::as_str)) {
            Some(near) => {
                let report = report.help(format!("the nearest one is `{near}`"));
                if range.is_some() { report.suggest(near) } else { report }
            }
            None if known.is_empty() => report.help("it has none"),
            None => {
                let shown: Vec<&str> = known.iter().take(16).map(String::as_str).collect();
                report.help(format!("there are {}", shown.join(", ")))
            }
        });
    }
}

/// The place of a name that is in a query once.
fn lone(query: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let mut places = query.match_indices(name).map(|(at, _)| at..at + name.len());
    let first = places.next()?;
    places.next().is_none().then_some(first)
}
