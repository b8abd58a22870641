//! Runs a statement: binds its values, and reads its rows within limits.

use rusqlite::{Connection, Statement};
use serde_json::{Map, Value, json};

use super::open::sql_fault;
use super::value::{from_sql, size, to_sql};
use crate::drive::tool::db::rows::{ResultRows, RowLimit};
use crate::drive::tool::db::{Query, QueryValues};
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::policy::statement::sql_words;

/// Runs it: `{"rows", "row_count"}` for what gives rows (at most its limit and 10 MiB, then with
/// `"truncated": true`), else `{"changes"}` and, after an INSERT, `last_insert_rowid`.
///
/// # Errors
/// The class of the database's error; a value that can't be bound without loss.
pub(super) fn run(query: &Query, connection: &Connection) -> Result<Value, ToolFault> {
    let failed = |error: rusqlite::Error| sql_fault(&error);
    let mut statement = connection.prepare(&query.sql).map_err(failed)?;
    query.values.bind(&mut statement)?;
    let writes = !statement.readonly();
    let returns = || sql_words(&query.sql).any(|word| word.eq_ignore_ascii_case("RETURNING"));
    if statement.column_count() > 0 && writes && !query.read_only && returns() {
        // What can't be returned is not written either: the connection is dropped after an error.
        connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
        let returned = rows(&mut statement, query.rows)?;
        drop(statement);
        connection.execute_batch("COMMIT").map_err(failed)?;
        return Ok(returned);
    }
    if statement.column_count() > 0 {
        return rows(&mut statement, query.rows);
    }
    let changes = statement.raw_execute().map_err(failed)?;
    let mut result = Map::new();
    result.insert("changes".to_owned(), json!(if writes { changes } else { 0 }));
    // The connection is new: a row id exists only if this statement made it.
    let last = connection.last_insert_rowid();
    if last != 0 {
        result.insert("last_insert_rowid".to_owned(), json!(last));
    }
    Ok(Value::Object(result))
}

impl QueryValues {
    fn bind(&self, statement: &mut Statement<'_>) -> Result<(), ToolFault> {
        for index in 1..=statement.parameter_count() {
            let value = match statement.parameter_name(index) {
                None => self.nth(index)?,
                Some(name) => self.named(name, index)?,
            };
            let bound = to_sql(value).map_err(|why| fault("database: value can't be kept", why))?;
            statement.raw_bind_parameter(index, bound).map_err(|error| sql_fault(&error))?;
        }
        Ok(())
    }
}

/// What a statement reads, within the limits.
///
/// # Errors
/// The class of the database's error; a value without a form in JSON, with the name of its column; more rows than there
/// may be.
pub(super) fn rows(statement: &mut Statement<'_>, limit: RowLimit) -> Result<Value, ToolFault> {
    let failed = |error: rusqlite::Error| sql_fault(&error);
    let mut found = ResultRows::new(statement.column_names(), limit);
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().map_err(failed)? {
        let mut bytes = 0_usize;
        for index in 0..columns {
            bytes = bytes.saturating_add(size(row.get_ref(index).map_err(failed)?));
        }
        if !found.has_room(bytes) {
            break;
        }
        let mut values = Vec::with_capacity(columns);
        for index in 0..columns {
            let refused = |why| fault(format!("database: a value of the column `{}` {why}", found.name(index)), "");
            values.push(from_sql(row.get_ref(index).map_err(failed)?).map_err(refused)?);
        }
        found.push(values);
    }
    found.into_value()
}
