//! What people did with the runs of the store, and the loops that were switched.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};

use super::database_errors::RequestError;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::column_words::known;
use crate::journal::{AuditEntry, AuditFilter, AuditLine, LoopSwitch};

const INSERT: &str = "INSERT INTO audit (at_ms, action, actor, detail, run_id, loop_name, org, times)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
/// The line of an event; `?5` is the key of its run.
const INSERT_OF_RUN: &str = "INSERT INTO audit (at_ms, action, actor, detail, run_id, loop_name, org)
  SELECT ?1, ?2, ?3, ?4, run_id, loop_name, org FROM runs WHERE id = ?5";

/// Writes the line of an event, or of a start.
pub(super) fn note_of_run(connection: &Connection, row: i64, entry: &AuditEntry) -> rusqlite::Result<()> {
    let AuditEntry { at_ms, action, actor, detail } = entry;
    let parameters = params![at_ms, action.word(), actor, detail, row];
    connection.prepare_cached(INSERT_OF_RUN)?.execute(parameters).map(drop)
}

fn note(connection: &Connection, line: &AuditLine) -> rusqlite::Result<()> {
    let AuditLine { entry, run_id, loop_name, org, times, .. } = line;
    let AuditEntry { at_ms, action, actor, detail } = entry;
    let times = i64::try_from(*times).unwrap_or(i64::MAX);
    let parameters = params![at_ms, action.word(), actor, detail, run_id, loop_name, org, times];
    connection.prepare_cached(INSERT)?.execute(parameters).map(drop)
}

/// Writes lines that are about no event.
pub(super) struct NoteAudit(pub(super) Vec<AuditLine>);

impl WriteRequest for NoteAudit {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        for line in &self.0 {
            note(transaction.connection, line)?;
        }
        Ok(())
    }
}

/// Switches a loop off, or on again.
pub(super) struct SwitchLoop(pub(super) LoopSwitch);

impl WriteRequest for SwitchLoop {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let connection = transaction.connection;
        let LoopSwitch { name, is_off, at_ms, actor, reason } = &self.0;
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO loop_switches (name, is_off, at_ms, actor, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![name, is_off, at_ms, actor, reason])?;
        note(connection, &self.0.line())?;
        Ok(())
    }
}

/// The loops that were switched, by name.
pub(super) fn switches(connection: &Connection) -> Result<Vec<LoopSwitch>, RequestError> {
    let sql = "SELECT name, is_off, at_ms, actor, reason FROM loop_switches ORDER BY name";
    let mut query = connection.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        let (at_ms, actor, reason) = (row.get("at_ms")?, row.get("actor")?, row.get("reason")?);
        Ok(LoopSwitch { name: row.get("name")?, is_off: row.get("is_off")?, at_ms, actor, reason })
    };
    Ok(query.query_map((), read)?.collect::<Result<_, _>>()?)
}

/// Lines, the newest first, or those after a number in their order.
pub(super) fn lines(connection: &Connection, filter: &AuditFilter) -> Result<Vec<AuditLine>, RequestError> {
    let mut wanted: Vec<&str> = Vec::new();
    let mut values: Vec<Value> = Vec::new();
    let mut want = |condition: &'static str, value: Value| {
        wanted.push(condition);
        values.push(value);
    };
    filter.since_ms.into_iter().for_each(|since_ms| want("at_ms >= ?", since_ms.into()));
    filter.until_ms.into_iter().for_each(|until_ms| want("at_ms < ?", until_ms.into()));
    match filter.org.as_deref() {
        None => {}
        // The index holds no line without an organisation.
        Some("") => want("org IS NULL AND run_id IS NOT NULL AND 0 = ?", 0.into()),
        Some(org) => want("org = ?", org.to_owned().into()),
    }
    filter.run_id.iter().for_each(|run_id| want("run_id = ?", run_id.clone().into()));
    filter.actor.iter().for_each(|actor| want("actor = ?", actor.clone().into()));
    filter.action.iter().for_each(|action| want("action = ?", action.word().to_owned().into()));
    filter.before.iter().for_each(|before| want("id < ?", i64::try_from(*before).unwrap_or(i64::MAX).into()));
    filter.after.iter().for_each(|after| want("id > ?", i64::try_from(*after).unwrap_or(i64::MAX).into()));
    let order = if filter.after.is_some() { "ASC" } else { "DESC" };
    let conditions = if wanted.is_empty() { String::new() } else { format!("WHERE {}", wanted.join(" AND ")) };
    let sql = format!(
        "SELECT id, at_ms, action, actor, detail, run_id, loop_name, org, times FROM audit {conditions}
         ORDER BY id {order} LIMIT {}",
        filter.most()
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query(params_from_iter(values))?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let action: String = row.get("action")?;
        // A newer version may know more of them.
        let Ok(action) = known(&action) else { continue };
        let (at_ms, actor, detail) = (row.get("at_ms")?, row.get("actor")?, row.get("detail")?);
        let (id, times): (i64, i64) = (row.get("id")?, row.get("times")?);
        lines.push(AuditLine {
            id: u64::try_from(id).unwrap_or_default(),
            entry: AuditEntry { at_ms, action, actor, detail },
            run_id: row.get("run_id")?,
            loop_name: row.get("loop_name")?,
            org: row.get("org")?,
            times: u64::try_from(times).unwrap_or_default(),
        });
    }
    Ok(lines)
}
