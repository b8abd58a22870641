//! What a copy of the store needs beside the events of its runs: the rows of other tables, and the last step of each run.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::database_errors::RequestError;
use super::requests::{events_of, release, update_record};
use super::write_request::{Transaction, WriteRequest};
use crate::journal::copied_table::{Cell, SqlForm};
use crate::journal::{CopiedRow, CopiedTable, StatusRecord, StoreError};

const FORM: SqlForm = SqlForm { schema: "", parameter: '?', counts: false };

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Null => Ok(ToSqlOutput::Owned(Value::Null)),
            Self::Text(text) => text.to_sql(),
            Self::Integer(number) => number.to_sql(),
        }
    }
}

fn cell(row: &Row<'_>, column: usize) -> rusqlite::Result<Cell> {
    Ok(match row.get_ref(column)? {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        _ => Cell::Text(row.get(column)?),
    })
}

/// The rows after one.
pub(super) fn page(
    connection: &Connection,
    table: &CopiedTable,
    after: Option<&CopiedRow>,
) -> Result<Vec<CopiedRow>, RequestError> {
    let values: Vec<Cell> = match after {
        None => Vec::new(),
        Some(CopiedRow { number: Some(number), .. }) => vec![Cell::Integer(*number)],
        Some(row) => row.cells.iter().take(table.key).cloned().collect(),
    };
    let mut query = connection.prepare_cached(&table.page_sql(&FORM, after.is_none()))?;
    let width = table.columns.len();
    let read = |row: &Row<'_>| {
        let cells = (0..width).map(|column| cell(row, column)).collect::<Result<_, _>>()?;
        let number = table.counter.map(|_| row.get(width)).transpose()?;
        Ok(CopiedRow { cells, number })
    };
    Ok(query.query_map(params_from_iter(values), read)?.collect::<Result<_, _>>()?)
}

/// Puts rows into a table.
pub(super) struct PutRows {
    pub(super) table: &'static CopiedTable,
    pub(super) rows: Vec<CopiedRow>,
}

impl WriteRequest for PutRows {
    type Answer = u64;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<u64, RequestError> {
        let mut put = transaction.connection.prepare_cached(&self.table.put_sql(&FORM, 1))?;
        let mut new = 0;
        for row in &self.rows {
            new += u64::from(put.exists(params_from_iter(&row.cells))?);
        }
        Ok(new)
    }
}

/// Ends the writing of a run that comes from elsewhere.
pub(super) struct FinishCopy {
    pub(super) run_id: String,
    pub(super) fence: u64,
    pub(super) record: StatusRecord,
}

impl WriteRequest for FinishCopy {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let held = transaction.leases.held(&self.run_id);
        let held = held.filter(|held| u64::try_from(held.fence) == Ok(self.fence)).map(|held| held.row);
        let row = held.ok_or_else(|| StoreError::Fenced(self.run_id.clone()))?;
        let events = events_of(transaction.connection, row)?;
        update_record(transaction, &self.record, (row, events))?;
        release(transaction, &self.run_id, self.fence)
    }

    fn durable(&self, (): &(), _rows: &[i64], leases: &mut super::leases::Leases) {
        leases.released(&self.run_id, self.fence);
    }
}
