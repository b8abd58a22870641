//! The schemas of what the actions of steps give, where their kind says it.

use serde_json::{Value, json};

use super::output::{self, ANY, object};
use crate::compile::outside_files::ValueKind;
use crate::compile::{DatabaseProbe, DatabaseState};
use crate::language::action::{DEFAULT_ROWS, TABLES};
use crate::policy::database_address::DatabaseServer;
use crate::policy::row_count::{RowCount, row_count};
use crate::policy::statement::{StatementEffect, sql_words, verb};

/// How the results of queries call the number of rows that they changed.
pub(crate) const CHANGES: &str = "changes";
/// How the result of a query calls its rows, and their number.
pub(crate) const ROWS: [&str; 2] = ["rows", "row_count"];
/// How SQLite, and how MySQL, calls the id of a row that a query added.
pub(crate) const ROW_IDS: [&str; 2] = ["last_insert_rowid", "last_insert_id"];

/// How the schema of a list says that it may be a part of what there is. It says no more of the value than a comment does.
const COMMENT: &str = "$comment";

/// What gives a list of which there may be more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListSource {
    /// A query without a `LIMIT`.
    Query,
    /// A query that asks for more rows than its action keeps.
    Limit {
        /// How many it asks for.
        asked: u64,
        /// How many are kept.
        kept: u64,
    },
    /// A table of which all rows are read.
    Table,
}

impl ListSource {
    fn word(self) -> String {
        match self {
            Self::Query => "rows of a query".to_owned(),
            Self::Limit { asked, kept } => format!("rows of a query {asked} {kept}"),
            Self::Table => "rows of a table".to_owned(),
        }
    }

    /// What gives the rows of a query, when its action may keep a part of them only.
    fn of_query(query: &str, max_rows: Option<&Value>) -> Option<Self> {
        let kept = match max_rows {
            Some(written) => written.as_u64()?,
            None => u64::from(DEFAULT_ROWS),
        };
        match row_count(query) {
            RowCount::AtMost(asked) if asked > kept => Some(Self::Limit { asked, kept }),
            RowCount::Any if max_rows.is_none() => Some(Self::Query),
            _ => None,
        }
    }

    /// What gives the list that a schema describes, where there may be more.
    pub(super) fn of_schema(list: &Value) -> Option<Self> {
        let comment = list.get(COMMENT)?.as_str()?;
        let numbers = comment.strip_prefix("rows of a query ").and_then(|numbers| numbers.split_once(' '));
        let limit = numbers
            .and_then(|(asked, kept)| Some(Self::Limit { asked: asked.parse().ok()?, kept: kept.parse().ok()? }));
        limit.or_else(|| [Self::Query, Self::Table].into_iter().find(|source| source.word() == comment))
    }
}

/// What a call of a registered action gives; `properties` are those of its step.
pub(crate) fn of_action(action: &Value, properties: Option<&Value>, databases: Option<&dyn DatabaseProbe>) -> Value {
    let text = |name: &str| action.get(name).and_then(Value::as_str);
    match text("kind") {
        Some("db") => match (text("datasource"), text("query")) {
            (Some(datasource), Some(query)) => {
                let source = ListSource::of_query(query, action.get("max_rows"));
                of_query(datasource, query, source, databases)
            }
            _ => ANY,
        },
        Some("llm") => match action.get("answer_schema") {
            None | Some(Value::Null) => output::reply(),
            schema => output::part(schema),
        },
        Some("custom-table") => of_table(action.get("max_rows"), properties, databases),
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
fn of_query(datasource: &str, query: &str, source: Option<ListSource>, databases: Option<&dyn DatabaseProbe>) -> Value {
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
        let kinds = || databases.column_kinds(datasource, query);
        return if columns.is_empty() { changes() } else { rows(named.then(|| typed(columns, kinds())), source) };
    }
    let returns = || sql_words(query).any(|word| word.eq_ignore_ascii_case("RETURNING"));
    match verb(query) {
        Some((StatementEffect::Reads, _)) => rows(None, source),
        Some((StatementEffect::Writes, _)) if !returns() => changes(),
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
pub(super) fn of_table(
    max_rows: Option<&Value>,
    properties: Option<&Value>,
    databases: Option<&dyn DatabaseProbe>,
) -> Value {
    let is_given =
        |name: &str| properties.and_then(|properties| properties.get(name)).is_some_and(|value| !value.is_null());
    let is_bounded = max_rows.is_some() || ["max_rows", "keys", "fields"].into_iter().any(is_given);
    let source = (!is_bounded).then_some(ListSource::Table);
    let text = |name: &str| properties.and_then(|properties| properties.get(name)?.as_str());
    match text("operation") {
        Some("read") => {
            let table = text("table").filter(|table| !table.contains("{{") && !table.starts_with('@'));
            let databases = databases.filter(|databases| is_made(*databases, TABLES));
            let columns = table.zip(databases).and_then(|(table, databases)| {
                let all = format!("SELECT * FROM \"{}\"", table.replace('"', "\"\""));
                Some(typed(databases.columns(TABLES, table)?, databases.column_kinds(TABLES, &all)))
            });
            rows(columns, source)
        }
        Some("write") => changes(ROW_IDS.get(..1).unwrap_or_default()),
        Some("update" | "upsert") => changes(&[]),
        _ => ANY,
    }
}

/// What a tool gives whose calls may do any operation on some tables, or only read them.
pub(crate) fn of_tables(only_reads: bool) -> Value {
    let written = || changes(ROW_IDS.get(..1).unwrap_or_default());
    if only_reads { rows(None, None) } else { output::either(rows(None, None), written()) }
}

/// Whether the script of the project makes the database: then it has the columns that the script says.
fn is_made(databases: &dyn DatabaseProbe, datasource: &str) -> bool {
    databases.state(datasource) == DatabaseState::Ready { is_made: true }
}

/// The columns of a result, each with the schema of its values. Of a name that is there twice nothing is known.
fn typed(columns: Vec<String>, kinds: Vec<Option<ValueKind>>) -> Vec<(String, Value)> {
    let is_known = kinds.len() == columns.len();
    let twice: Vec<bool> =
        columns.iter().map(|name| columns.iter().filter(|other| *other == name).take(2).count() > 1).collect();
    let schema = |((name, kind), twice): ((String, Option<ValueKind>), bool)| {
        let kind = kind.filter(|_| is_known && !twice);
        (name, kind.map_or(ANY, ValueKind::schema))
    };
    let kinds = kinds.into_iter().chain(std::iter::repeat(None));
    columns.into_iter().zip(kinds).zip(twice).map(schema).collect()
}

fn rows(columns: Option<Vec<(String, Value)>>, source: Option<ListSource>) -> Value {
    let [list, count] = ROWS;
    let mut rows = output::list(columns.map_or(ANY, output::of_keys));
    if let (Some(source), Value::Object(rows)) = (source, &mut rows) {
        rows.insert(COMMENT.to_owned(), Value::from(source.word()));
    }
    object([(list, rows), (count, output::number()), ("truncated", json!({ "type": "boolean" }))])
}

/// The result of a query that gives no rows.
fn changes(row_ids: &[&str]) -> Value {
    output::of_keys(std::iter::once(&CHANGES).chain(row_ids).map(|name| ((*name).to_owned(), output::number())))
}
