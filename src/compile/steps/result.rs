//! The schemas of what the actions of steps give, where their kind says it.

use serde_json::{Value, json};

use super::output::{self, ANY, object};
use crate::compile::{DatabaseProbe, DatabaseState};
use crate::language::action::TABLES;
use crate::policy::database_address::DatabaseServer;
use crate::policy::statement::{Does, sql_words, verb};

/// How the results of queries call the number of rows that they changed.
pub(crate) const CHANGES: &str = "changes";
/// How the result of a query calls its rows, and their number.
pub(crate) const ROWS: [&str; 2] = ["rows", "row_count"];
/// How SQLite, and how MySQL, calls the id of a row that a query added.
pub(crate) const ROW_IDS: [&str; 2] = ["last_insert_rowid", "last_insert_id"];

/// What a call of a registered action gives; `properties` are those of its step.
pub(crate) fn of_action(action: &Value, properties: Option<&Value>, databases: Option<&dyn DatabaseProbe>) -> Value {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    match text("kind") {
        Some("db") => match (text("datasource"), text("query")) {
            (Some(datasource), Some(query)) => of_query(datasource, query, databases),
            _ => ANY,
        },
        Some("custom-table") => of_table(properties, databases),
        // A call may name other lists.
        Some("matcher") => {
            let given = |name: &str| properties.and_then(|properties| properties.get(name));
            let list = |name: &str, default: &str| match given(name).or_else(|| action.get(name)) {
                None => Some(default.to_owned()),
                Some(Value::String(name)) if !name.contains("{{") && !name.starts_with('@') => Some(name.clone()),
                Some(_) => None,
            };
            let names = [
                list("outputMatched", "matched"),
                list("outputUnmatchedLeft", "unmatchedLeft"),
                list("outputUnmatchedRight", "unmatchedRight"),
            ];
            let lists = names.into_iter().zip(output::matched(ANY, ANY)).map(|(name, list)| Some((name?, list)));
            lists.collect::<Option<Vec<_>>>().map_or(ANY, output::of_keys)
        }
        _ => ANY,
    }
}

/// What a query gives: rows, whose columns are known where its database is, or the number of changes.
fn of_query(datasource: &str, query: &str, databases: Option<&dyn DatabaseProbe>) -> Value {
    let changes = || {
        let server = databases.map_or(Some(DatabaseServer::Unknown), |databases| {
            let server = databases.server(datasource);
            let is_open = server.is_none() && databases.state(datasource) == DatabaseState::Unknown;
            if is_open { Some(DatabaseServer::Unknown) } else { server }
        });
        changes(&row_ids(query, server))
    };
    let prepared = databases.and_then(|databases| Some((databases, databases.result_columns(datasource, query)?)));
    if let Some((databases, columns)) = prepared {
        // `SELECT *` has the columns of its day, where the database is older than the document.
        let named = is_made(databases, datasource) || !query.contains('*');
        return if columns.is_empty() { changes() } else { rows(named.then_some(columns)) };
    }
    let returns = || sql_words(query).any(|word| word.eq_ignore_ascii_case("RETURNING"));
    match verb(query) {
        Some((Does::Reads, _)) => rows(None),
        Some((Does::Writes, _)) if !returns() => changes(),
        _ => ANY,
    }
}

/// How a database calls the id of a row that a query added; the server is none for a file.
fn row_ids(query: &str, server: Option<DatabaseServer>) -> Vec<&'static str> {
    // An UPDATE of MySQL may set it.
    let is_set = || query.to_ascii_lowercase().contains("last_insert_id(");
    let adds = sql_words(query).any(|word| ["INSERT", "REPLACE"].iter().any(|verb| word.eq_ignore_ascii_case(verb)));
    let [of_sqlite, of_mysql] = ROW_IDS;
    match server {
        None if adds => vec![of_sqlite],
        Some(DatabaseServer::Mysql) if adds || is_set() => vec![of_mysql],
        Some(DatabaseServer::Unknown) if adds => vec![of_sqlite, of_mysql],
        Some(DatabaseServer::Unknown) if is_set() => vec![of_mysql],
        _ => Vec::new(),
    }
}

/// What an operation on a table gives.
pub(super) fn of_table(properties: Option<&Value>, databases: Option<&dyn DatabaseProbe>) -> Value {
    let text = |name: &str| properties.and_then(|properties| properties.get(name)?.as_str());
    match text("operation") {
        Some("read") => {
            let table = text("table").filter(|table| !table.contains("{{") && !table.starts_with('@'));
            let databases = databases.filter(|databases| is_made(*databases, TABLES));
            rows(table.and_then(|table| databases?.columns(TABLES, table)))
        }
        Some("write") => changes(ROW_IDS.get(..1).unwrap_or_default()),
        Some("update" | "upsert") => changes(&[]),
        _ => ANY,
    }
}

/// What a tool gives whose calls may do any operation on some tables, or only read them.
pub(crate) fn of_tables(only_reads: bool) -> Value {
    let written = || changes(ROW_IDS.get(..1).unwrap_or_default());
    if only_reads { rows(None) } else { output::either(rows(None), written()) }
}

/// Whether the script of the project makes the database: then it has the columns that the script says.
fn is_made(databases: &dyn DatabaseProbe, datasource: &str) -> bool {
    databases.state(datasource) == DatabaseState::Ready { is_made: true }
}

fn rows(columns: Option<Vec<String>>) -> Value {
    let [list, count] = ROWS;
    let row = columns.map_or(ANY, |columns| output::of_keys(columns.into_iter().map(|column| (column, ANY))));
    object([(list, output::list(row)), (count, output::number()), ("truncated", json!({ "type": "boolean" }))])
}

/// The result of a query that gives no rows.
fn changes(row_ids: &[&str]) -> Value {
    output::of_keys(std::iter::once(&CHANGES).chain(row_ids).map(|name| ((*name).to_owned(), output::number())))
}
