//! Runs a statement: binds its values, and reads its rows within limits.

use rusqlite::{Connection, Statement};
use serde_json::{Map, Value, json};

use super::open::sql_fault;
use super::value::{from_sql, to_sql};
use crate::drive::tool::db::{Query, QueryValues};
use crate::drive::tool::output::fault;
use crate::engine::event::ToolFault;

/// The most rows of a result.
const MAX_ROWS: usize = 1000;

/// The most bytes of a result, roughly.
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// Runs it: `{"rows", "row_count"}` for what gives rows (at most 1,000 and 10 MiB, then with
/// `"truncated": true`), else `{"changes"}` and, after an INSERT, `last_insert_rowid`.
///
/// # Errors
/// The class of the database's error; a value that can't be bound without loss.
pub(super) fn run(query: &Query, connection: &Connection) -> Result<Value, ToolFault> {
    let failed = |error: rusqlite::Error| sql_fault(&error);
    let mut statement = connection.prepare(&query.sql).map_err(failed)?;
    query.values.bind(&mut statement)?;
    if statement.column_count() > 0 {
        return rows(&mut statement).map_err(failed);
    }
    let writes = !statement.readonly();
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

    fn nth(&self, number: usize) -> Result<&Value, ToolFault> {
        number.checked_sub(1).and_then(|at| self.params.get(at)).ok_or_else(|| {
            fault(
                "database: a parameter has no value",
                format!("number {number}, and `params` has {}", self.params.len()),
            )
        })
    }

    /// `?2` and `$2` are the second of `params`; other names are fields of the input. `index` is the place that
    /// the database gave to the parameter, from 1.
    fn named(&self, written: &str, index: usize) -> Result<&Value, ToolFault> {
        let name = written.trim_start_matches(['?', '$', ':', '@']);
        if let ('?' | '$', Ok(number)) = (written.chars().next().unwrap_or(' '), name.parse::<usize>()) {
            return self.nth(number);
        }
        if !self.params.is_empty() {
            return self.nth(index);
        }
        match self.input.get(name) {
            Some(value) => Ok(value),
            None if self.optional.iter().any(|optional| optional == name) => Ok(&Value::Null),
            None => Err(fault("database: a parameter has no value", format!("`{written}` is not in the input"))),
        }
    }
}

/// What a statement reads, within the limits.
pub(super) fn rows(statement: &mut Statement<'_>) -> rusqlite::Result<Value> {
    let names = column_names(statement);
    let mut found = Vec::new();
    let mut bytes = 0_usize;
    let mut truncated = false;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let mut fields = Map::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let (value, size) = from_sql(row.get_ref(index)?);
            bytes = bytes.saturating_add(size).saturating_add(name.len());
            fields.insert(name.clone(), value);
        }
        if found.len() >= MAX_ROWS || bytes > MAX_BYTES {
            truncated = true;
            break;
        }
        found.push(Value::Object(fields));
    }
    let mut result = Map::new();
    let count = found.len();
    result.insert("rows".to_owned(), Value::Array(found));
    result.insert("row_count".to_owned(), json!(count));
    if truncated {
        result.insert("truncated".to_owned(), Value::Bool(true));
    }
    Ok(Value::Object(result))
}

/// The names of the columns; the second of two equal names becomes `NAME_2`, so that none is lost.
fn column_names(statement: &Statement<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(statement.column_count());
    for written in statement.column_names() {
        let mut name = written.to_owned();
        let mut number = 1_u32;
        while names.contains(&name) {
            number += 1;
            name = format!("{written}_{number}");
        }
        names.push(name);
    }
    names
}
