//! What a copy of the store needs beside the events of its runs: the rows of other tables, and the last step of each run.

use std::sync::LazyLock;

use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::columns::{NumberedStatement, statement_parameters};
use super::connection::{Parameter, text_of};
use super::database::Database;
use super::database_errors::StatementError;
use super::record_columns::RecordColumns;
use super::writes::milliseconds;
use crate::journal::copied_table::{Cell, ColumnKind, CopiedColumn, SqlForm};
use crate::journal::{CALLBACK_LEASE, CopiedRow, CopiedTable, StatusRecord, StoreError};

const FORM: SqlForm = SqlForm { schema: "@.", parameter: '$', counts: true };

/// A value as the database takes it.
type OwnedParameter = (Box<dyn ToSql + Sync + Send>, Type);

fn parameter(column: &CopiedColumn, cell: &Cell) -> OwnedParameter {
    let text = match cell {
        Cell::Text(text) => Some(text.clone()),
        Cell::Null | Cell::Integer(_) => None,
    };
    let number = match cell {
        Cell::Integer(number) => Some(*number),
        Cell::Null | Cell::Text(_) => None,
    };
    match column.kind {
        ColumnKind::Text => (Box::new(text), Type::TEXT),
        ColumnKind::AnyText => (Box::new(text.map(String::into_bytes)), Type::BYTEA),
        ColumnKind::Integer => (Box::new(number), Type::INT8),
        ColumnKind::Flag => (Box::new(number.map(|number| number != 0)), Type::BOOL),
    }
}

fn cell(row: &Row, number: usize, kind: ColumnKind) -> Result<Cell, tokio_postgres::Error> {
    let text = |text: Option<String>| text.map_or(Cell::Null, Cell::Text);
    let integer = |number: Option<i64>| number.map_or(Cell::Null, Cell::Integer);
    Ok(match kind {
        ColumnKind::Text => text(row.try_get(number)?),
        ColumnKind::AnyText => text(row.try_get::<_, Option<Vec<u8>>>(number)?.map(text_of)),
        ColumnKind::Integer => integer(row.try_get(number)?),
        ColumnKind::Flag => integer(row.try_get::<_, Option<bool>>(number)?.map(i64::from)),
    })
}

fn read(table: &CopiedTable, row: &Row) -> Result<CopiedRow, tokio_postgres::Error> {
    let cells = table.columns.iter().enumerate().map(|(number, column)| cell(row, number, column.kind));
    let cells = cells.collect::<Result<_, _>>()?;
    let number = table.counter.map(|_| row.try_get(table.columns.len())).transpose()?;
    Ok(CopiedRow { cells, number })
}

statement_parameters! {
    /// A run that comes from elsewhere, and its record: one in a set.
    struct FinishParameters<'a> {
        run_id: &'a str,
        fence: i64,
        me: Uuid,
        lease_ms: f64,
        s: RecordColumns,
    }
}

/// A run that waits is due at once when a decision about it is there.
static FINISH: LazyLock<NumberedStatement> = LazyLock::new(|| {
    FinishParameters::statement(
        "
UPDATE @.runs r SET status = s.status, termination = s.termination, iterations = s.iterations, updated_at_ms = s.at_ms,
  progress_at_ms = s.at_ms, waits_since_ms = s.waits_since_ms, tokens = s.tokens, cost_usd = s.cost_usd, error = s.error,
  question = s.question, awaits = s.awaits, failed_take_ups = 0, driver = NULL,
  due_at_ms = CASE WHEN s.status = 'paused' AND EXISTS (
    SELECT 1 FROM @.decisions d WHERE d.run = r.id AND d.refused IS NULL) THEN 0 ELSE s.due_at_ms END,
  callback_at = CASE WHEN s.posts THEN clock_timestamp() + $lease_ms * interval '1 ms' END, callback_by = $me
FROM unnest($s.values) AS s($s.names)
WHERE r.run_id = $run_id AND r.fence = $fence AND (r.driver = $me OR r.driver IS NULL) RETURNING r.id",
    )
});

impl Database {
    pub(super) async fn rows(
        &self,
        table: &'static CopiedTable,
        after: Option<CopiedRow>,
    ) -> Result<Vec<CopiedRow>, StoreError> {
        let sql = table.page_sql(&FORM, after.is_none());
        let values: Vec<OwnedParameter> = match &after {
            None => Vec::new(),
            Some(CopiedRow { number: Some(number), .. }) => vec![(Box::new(*number), Type::INT8)],
            Some(row) => table.key_columns().iter().zip(&row.cells).map(|(of, cell)| parameter(of, cell)).collect(),
        };
        let sent = self.persist(|| async {
            let rows = self.quick.query_once(&sql, &borrowed(&values)).await?;
            Ok(rows.iter().map(|row| read(table, row)).collect::<Result<Vec<_>, _>>()?)
        });
        sent.await
    }

    pub(super) async fn put_rows(&self, table: &'static CopiedTable, rows: Vec<CopiedRow>) -> Result<u64, StoreError> {
        if rows.is_empty() {
            return Ok(0);
        }
        let sql = table.put_sql(&FORM, rows.len());
        let cells = rows.iter().flat_map(|row| table.columns.iter().zip(&row.cells));
        let values: Vec<OwnedParameter> = cells.map(|(column, cell)| parameter(column, cell)).collect();
        let put = self.persist(|| async { self.quick.query_once(&sql, &borrowed(&values)).await }).await?;
        Ok(u64::try_from(put.len()).unwrap_or(u64::MAX))
    }

    pub(super) async fn finish_copy(&self, run_id: String, fence: u64, record: StatusRecord) -> Result<(), StoreError> {
        self.ensure().await?;
        let mut columns = RecordColumns::default();
        columns.push(Some(&record));
        let finish = FinishParameters {
            run_id: &run_id,
            fence: i64::try_from(fence).unwrap_or(i64::MAX),
            me: self.me,
            lease_ms: milliseconds(CALLBACK_LEASE),
            s: columns,
        };
        let sent = async || -> Result<bool, StatementError> {
            Ok(!self.quick.query_numbered(&FINISH, &finish.parameters()).await?.is_empty())
        };
        let is_finished = self.persist(sent).await?;
        self.held.lost(&run_id, fence);
        if is_finished { Ok(()) } else { Err(StoreError::Fenced(run_id)) }
    }
}

fn borrowed(values: &[OwnedParameter]) -> Vec<Parameter<'_>> {
    let mut all: Vec<Parameter<'_>> = Vec::with_capacity(values.len());
    for (value, kind) in values {
        let value: &(dyn ToSql + Sync) = &**value;
        all.push((value, kind.clone()));
    }
    all
}
