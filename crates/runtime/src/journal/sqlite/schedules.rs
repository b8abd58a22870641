//! Schedules: since when each is as it is, and what is known of its runs.

use rusqlite::{Connection, OptionalExtension, params};

use super::database_errors::RequestError;
use super::queue::listed;
use super::reads::{SET_ASIDE, status_of};
use super::write_request::{Transaction, WriteRequest};
use crate::journal::schedules::CLOCK_TOLERANCE_MS;
use crate::journal::{ScheduleRuns, ServedSchedules, UnderWay};

/// What is known of the runs of a schedule.
pub(super) fn runs(connection: &Connection, schedule: &str, now_ms: i64) -> Result<ScheduleRuns, RequestError> {
    let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
    let time = |which: &str| {
        let sql = format!("SELECT max(due_at_ms) FROM scheduled_runs WHERE schedule = ?1 AND {which} AND NOT ahead");
        connection.prepare_cached(&sql)?.query_row(params![schedule, latest_ms], |row| row.get::<_, Option<i64>>(0))
    };
    // By the runs that have not ended: they are few.
    let under_way = format!(
        "SELECT run_id, status FROM runs CROSS JOIN scheduled_runs USING (run_id)
         WHERE status IN ('running', 'paused') AND NOT (status = 'running' AND {SET_ASIDE}) AND schedule = ?1
         ORDER BY scheduled_runs.due_at_ms DESC LIMIT 1"
    );
    let under_way = connection
        .prepare_cached(&under_way)?
        .query_row([schedule], |row| Ok(UnderWay { run_id: row.get(0)?, status: status_of(row.get_ref(1)?)? }))
        .optional()?;
    Ok(ScheduleRuns { last_due_ms: time("due_at_ms <= ?2")?, ahead_due_ms: time("due_at_ms > ?2")?, under_way })
}

impl WriteRequest for ServedSchedules {
    type Answer = Vec<i64>;

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Vec<i64>, RequestError> {
        let connection = transaction.connection;
        let names: Vec<String> = self.timetables.iter().map(|schedule| schedule.name.clone()).collect();
        connection
            .prepare_cached("DELETE FROM schedules WHERE place = ?1 AND name NOT IN (SELECT value FROM json_each(?2))")?
            .execute([&self.place, &listed(&names)])?;
        let mut note = connection.prepare_cached(
            "INSERT INTO schedules (name, timetable, seen_at_ms, place) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (name) DO UPDATE SET timetable = excluded.timetable, place = excluded.place,
               seen_at_ms = CASE WHEN schedules.timetable IN (excluded.timetable, '') AND schedules.seen_at_ms <= ?5
                 THEN schedules.seen_at_ms ELSE excluded.seen_at_ms END
             RETURNING seen_at_ms",
        )?;
        let mut seen = Vec::new();
        for schedule in &self.timetables {
            let parameters = params![schedule.name, schedule.timetable, self.now_ms, self.place, self.latest_seen_ms()];
            seen.push(note.query_row(parameters, |row| row.get(0))?);
        }
        Ok(seen)
    }
}

/// Runs that were started for times to come do not count for those times.
pub(super) struct DisregardAhead {
    pub(super) schedule: String,
    pub(super) now_ms: i64,
}

impl WriteRequest for DisregardAhead {
    type Answer = ();

    fn run_id(&self) -> &str {
        ""
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        transaction
            .connection
            .prepare_cached("UPDATE scheduled_runs SET ahead = 1 WHERE schedule = ?1 AND due_at_ms > ?2")?
            .execute(params![self.schedule, self.now_ms.saturating_add(CLOCK_TOLERANCE_MS)])?;
        Ok(())
    }
}
