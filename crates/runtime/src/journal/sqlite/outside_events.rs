//! Events from outside, and the runs that wait for them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::database_errors::RequestError;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::outside_event::{KEPT_PAGE_EVENTS, MARKED, MOST_EVENTS, mark_of};
use crate::journal::{EventPut, EventWaiter, KeptEvent, KeptQuery, OutsideEvent};

/// Keeps an event.
pub(super) struct PutEvent(pub(super) OutsideEvent);

impl WriteRequest for PutEvent {
    type Answer = EventPut;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<EventPut, RequestError> {
        let connection = transaction.connection;
        let OutsideEvent { org, id, event, data, at_ms, keep_until_ms } = &self.0;
        let org = org.as_deref().unwrap_or_default();
        connection.prepare_cached("DELETE FROM outside_events WHERE keep_until_ms <= ?1")?.execute([at_ms])?;
        let known = connection
            .prepare_cached("SELECT event, data, keep_until_ms FROM outside_events WHERE org = ?1 AND id = ?2")?
            .query_row(params![org, id], |row| {
                let (event, data): (String, String) = (row.get(0)?, row.get(1)?);
                Ok(self.0.beside(&event, &data, row.get(2)?))
            })
            .optional()?;
        if let Some(known) = known {
            return Ok(known);
        }
        let count: i64 = connection
            .prepare_cached("SELECT count(*) FROM outside_events WHERE org = ?1")?
            .query_row([org], |row| row.get(0))?;
        if u64::try_from(count).unwrap_or_default() >= MOST_EVENTS {
            return Ok(EventPut::Full);
        }
        connection
            .prepare_cached(
                "INSERT INTO outside_events (org, id, event, data, at_ms, keep_until_ms, number)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, (SELECT coalesce(max(number), 0) + 1 FROM outside_events))",
            )?
            .execute(params![org, id, event, data, at_ms, keep_until_ms])?;
        Ok(EventPut::New)
    }
}

/// A run took an event, or did not after all.
pub(super) struct MarkEvent {
    pub(super) run_id: String,
    pub(super) id: String,
    pub(super) is_taken: bool,
}

impl WriteRequest for MarkEvent {
    type Answer = bool;

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<bool, RequestError> {
        let sql = "UPDATE outside_events SET taken = ?3 WHERE id = ?2 AND taken <> ?3
            AND org = (SELECT coalesce(org, '') FROM runs WHERE run_id = ?1)";
        let connection = transaction.connection;
        let is_new = connection.prepare_cached(sql)?.execute(params![self.run_id, self.id, self.is_taken])? > 0;
        if is_new {
            let sql =
                "UPDATE decisions SET decision = CASE WHEN ?3 THEN substr(decision, 1, length(decision) - 1) || ?4
                ELSE substr(decision, 1, length(decision) - length(?4)) || '}' END
              WHERE run_id = ?1 AND rtrim(id, replace(id, ' ', '')) = 'event ' || ?2 || ' '
                AND (substr(decision, -length(?4)) = ?4) <> ?3";
            connection.prepare_cached(sql)?.execute(params![self.run_id, self.id, self.is_taken, MARKED])?;
        }
        Ok(is_new)
    }
}

/// The runs of an organisation that wait for an event of this name.
pub(super) fn waiters(
    connection: &Connection,
    org: Option<&str>,
    event: &str,
) -> Result<Vec<EventWaiter>, RequestError> {
    let mut query = connection.prepare_cached(
        "SELECT run_id, awaits FROM runs WHERE awaits IS NOT NULL AND org IS ?1 AND parent_run_id IS NULL
           AND status IN ('running', 'paused') AND instr(awaits, ?2) > 0 ORDER BY id",
    )?;
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
    let mut waiters = Vec::new();
    for found in query.query_map(params![org, mark_of(event)], read)? {
        let (run_id, awaits) = found?;
        waiters.extend(EventWaiter::of_row(run_id, &awaits));
    }
    Ok(waiters)
}

/// The events of these names that were kept for the organisation of a run.
pub(super) fn kept(connection: &Connection, run_id: &str, query: &KeptQuery) -> Result<Vec<KeptEvent>, RequestError> {
    let KeptQuery { names, now_ms, after } = query;
    let names = serde_json::to_string(names).unwrap_or_default();
    // What is queued for a run has the id of its event before the last blank (`outside_event::queued_id`).
    let mut query = connection.prepare_cached(
        "SELECT org, id, event, data, at_ms, keep_until_ms, number FROM outside_events
         WHERE org = (SELECT coalesce(org, '') FROM runs WHERE run_id = ?1) AND taken = 0 AND keep_until_ms > ?3
           AND event IN (SELECT value FROM json_each(?2)) AND number > ?5
           AND 'event ' || id || ' ' NOT IN (
             SELECT rtrim(queued.id, replace(queued.id, ' ', '')) FROM decisions queued JOIN runs ON runs.run_id = queued.run_id
             WHERE queued.refused IS NULL AND runs.status IN ('running', 'paused')
               AND coalesce(runs.org, '') = (SELECT coalesce(org, '') FROM runs WHERE run_id = ?1))
         ORDER BY number LIMIT ?4",
    )?;
    let read = |row: &Row<'_>| {
        let org: String = row.get(0)?;
        let (id, event, data) = (row.get(1)?, row.get(2)?, row.get(3)?);
        let (at_ms, keep_until_ms) = (row.get(4)?, row.get(5)?);
        let org = Some(org).filter(|org| !org.is_empty());
        Ok(KeptEvent { number: row.get(6)?, event: OutsideEvent { org, id, event, data, at_ms, keep_until_ms } })
    };
    let most = i64::try_from(KEPT_PAGE_EVENTS).unwrap_or(i64::MAX);
    Ok(query.query_map(params![run_id, names, now_ms, most, after], read)?.collect::<Result<_, _>>()?)
}
