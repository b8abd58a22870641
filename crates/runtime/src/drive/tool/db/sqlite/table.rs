//! Requests to tables: the table and its columns are looked up in the database, and every value is bound.

use rusqlite::{Connection, Statement};
use serde_json::{Value, json};

use super::open::sql_fault;
use super::query::rows;
use super::value::{ColumnAffinity, to_column};
use crate::drive::tool::db::rows::RowLimit;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::diagnostic::nearest;
use loopctl_lang::language::step::TableOperation;
use loopctl_lang::program::table::{ColumnValue, TableRequest};

/// The most names that are compared with one that is not there.
const MAX_NAMES: usize = 1_000;
/// The tables and views of a database.
const NAMES: &str = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
     AND (?1 IS NULL OR name = ?1 COLLATE NOCASE) LIMIT 1000";
/// The columns of a table, without the hidden ones of virtual tables.
const COLUMNS: &str = "SELECT name, type FROM pragma_table_xinfo(?1) WHERE hidden <> 1";

/// Makes a request: `{"rows", "row_count"}` for one that reads, bounded as those of a query; else `{"changes"}`.
///
/// # Errors
/// For a table or a column that is not there, with the nearest name; a value that can't be kept without loss; and what
/// the database refuses.
pub(super) fn run(request: &TableRequest, limit: RowLimit, connection: &Connection) -> Result<Value, ToolFault> {
    let known = KnownTable::find(request, connection)?;
    let table = quoted(&known.name);
    let (keys, fields) = (known.columns(&request.keys)?, known.columns(&request.fields)?);
    if request.operation != TableOperation::Update
        && let Some(twice) = fields.iter().find(|field| keys.iter().any(|key| key.name == field.name))
    {
        let class = format!("database: the column `{}` is in `keys` and in `fields`", twice.name);
        return Err(fault(class, ""));
    }
    match request.operation {
        TableOperation::Read => {
            let mut statement = prepare(connection, &format!("SELECT * FROM {table}{}", condition([&keys, &fields])))?;
            bind(&mut statement, [&keys, &fields], 0)?;
            rows(&mut statement, limit)
        }
        TableOperation::Write => {
            let changes = insert(connection, &table, [&keys, &fields])?;
            Ok(json!({ "changes": changes, "last_insert_rowid": connection.last_insert_rowid() }))
        }
        TableOperation::Update => Ok(json!({ "changes": update(connection, &table, &keys, &fields)? })),
        TableOperation::Upsert => {
            let failed = |error: rusqlite::Error| sql_fault(&error);
            // No other process writes between the two statements. The connection is dropped after an error, and what
            // was not committed with it.
            connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
            let mut changes = match fields.is_empty() {
                true => count(connection, &table, &keys)?,
                false => update(connection, &table, &keys, &fields)?,
            };
            if changes == 0 {
                changes = insert(connection, &table, [&keys, &fields])?;
            } else if fields.is_empty() {
                changes = 0;
            }
            connection.execute_batch("COMMIT").map_err(failed)?;
            Ok(json!({ "changes": changes }))
        }
    }
}

/// A table of the database.
struct KnownTable {
    name: String,
    columns: Vec<KnownColumn>,
}

/// A column of it.
struct KnownColumn {
    name: String,
    affinity: ColumnAffinity,
}

/// A column of the table, with its value.
struct BoundColumn<'r> {
    name: &'r str,
    value: &'r Value,
    affinity: ColumnAffinity,
}

impl KnownTable {
    fn find(request: &TableRequest, connection: &Connection) -> Result<Self, ToolFault> {
        let names = |sql: &str, of: Option<&str>| -> Result<Vec<String>, ToolFault> {
            let mut statement = prepare(connection, sql)?;
            let names = statement.query_map([of], |row| row.get(0)).and_then(Iterator::collect);
            names.map_err(|error| sql_fault(&error))
        };
        let Some(name) = names(NAMES, Some(&request.table))?.pop() else {
            let mut known = names(NAMES, None)?;
            // What else the database has is not shown to those who may not use it.
            known.retain(|name| {
                request.tables.is_empty() || request.tables.iter().any(|table| table.eq_ignore_ascii_case(name))
            });
            return Err(unknown("table", &request.table, &known));
        };
        let mut statement = prepare(connection, COLUMNS)?;
        let columns = statement.query_map([&name], |row| {
            let declared: Option<String> = row.get(1)?;
            Ok(KnownColumn { name: row.get(0)?, affinity: ColumnAffinity::of(&declared.unwrap_or_default()) })
        });
        let columns = columns.and_then(Iterator::collect).map_err(|error| sql_fault(&error))?;
        Ok(Self { name, columns })
    }

    /// Columns as the database spells them.
    fn columns<'r>(&'r self, written: &'r [ColumnValue]) -> Result<Vec<BoundColumn<'r>>, ToolFault> {
        let mut found: Vec<BoundColumn<'r>> = Vec::with_capacity(written.len());
        for ColumnValue { column, value } in written {
            let Some(KnownColumn { name, affinity }) =
                self.columns.iter().find(|known| known.name.eq_ignore_ascii_case(column))
            else {
                let known: Vec<String> = self.columns.iter().map(|known| known.name.clone()).collect();
                return Err(unknown("column", column, &known));
            };
            if found.iter().any(|found| found.name == name) {
                return Err(fault(format!("database: the column `{name}` is named twice"), ""));
            }
            found.push(BoundColumn { name, value, affinity: *affinity });
        }
        Ok(found)
    }
}

fn unknown(what: &str, name: &str, known: &[String]) -> ToolFault {
    let shown: String = name.chars().take(60).collect();
    let known = || known.iter().map(String::as_str).take(MAX_NAMES);
    let hint = match nearest(name, known()) {
        Some(near) => format!("; the nearest one is `{near}`"),
        None if known().next().is_none() => String::new(),
        None => format!("; there are {}", known().take(16).collect::<Vec<_>>().join(", ")),
    };
    fault(format!("database: no {what} `{shown}`{hint}"), "")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The rows that have these values. NULL is a value like others here.
fn condition(lists: [&[BoundColumn<'_>]; 2]) -> String {
    let parts: Vec<String> =
        lists.into_iter().flatten().map(|column| format!("{} IS ?", quoted(column.name))).collect();
    if parts.is_empty() { String::new() } else { format!(" WHERE {}", parts.join(" AND ")) }
}

fn insert(connection: &Connection, table: &str, lists: [&[BoundColumn<'_>]; 2]) -> Result<usize, ToolFault> {
    let names: Vec<String> = lists.into_iter().flatten().map(|column| quoted(column.name)).collect();
    let marks = vec!["?"; names.len()].join(", ");
    execute(connection, &format!("INSERT INTO {table} ({}) VALUES ({marks})", names.join(", ")), lists, 2)
}

fn update(
    connection: &Connection,
    table: &str,
    keys: &[BoundColumn<'_>],
    fields: &[BoundColumn<'_>],
) -> Result<usize, ToolFault> {
    let set: Vec<String> = fields.iter().map(|column| format!("{} = ?", quoted(column.name))).collect();
    let sql = format!("UPDATE {table} SET {}{}", set.join(", "), condition([keys, &[]]));
    execute(connection, &sql, [fields, keys], 1)
}

fn count(connection: &Connection, table: &str, keys: &[BoundColumn<'_>]) -> Result<usize, ToolFault> {
    let mut statement = prepare(connection, &format!("SELECT 1 FROM {table}{} LIMIT 1", condition([keys, &[]])))?;
    bind(&mut statement, [keys, &[]], 0)?;
    let found = statement.raw_query().next().map(|row| usize::from(row.is_some()));
    found.map_err(|error| sql_fault(&error))
}

/// `kept`: how many of the lists the rows have afterwards.
fn execute(
    connection: &Connection,
    sql: &str,
    lists: [&[BoundColumn<'_>]; 2],
    kept: usize,
) -> Result<usize, ToolFault> {
    let mut statement = prepare(connection, sql)?;
    bind(&mut statement, lists, kept)?;
    statement.raw_execute().map_err(|error| sql_fault(&error))
}

fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<Statement<'c>, ToolFault> {
    connection.prepare(sql).map_err(|error| sql_fault(&error))
}

/// The values of the first lists (`kept`) are kept; those of the others are looked for, and what no column of numbers has finds nothing
/// there, or what it had before.
fn bind(statement: &mut Statement<'_>, lists: [&[BoundColumn<'_>]; 2], kept: usize) -> Result<(), ToolFault> {
    let columns =
        lists.into_iter().enumerate().flat_map(|(list, columns)| columns.iter().map(move |it| (list < kept, it)));
    for (at, (is_kept, column)) in columns.enumerate() {
        let value = to_column(column.value, column.affinity, is_kept)
            .map_err(|why| fault(format!("database: value of `{}` can't be kept", column.name), why))?;
        statement.raw_bind_parameter(at + 1, value).map_err(|error| sql_fault(&error))?;
    }
    Ok(())
}
