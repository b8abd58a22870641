//! For which times schedules started runs.

use rusqlite::{Connection, OptionalExtension, params};

use crate::journal::ScheduledRun;

/// Notes for which time a run was started. The last run of a schedule is known when it is deleted: its id may come again.
pub(super) fn started(connection: &Connection, run_id: &str, run: &ScheduledRun) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO scheduled_runs (run_id, schedule, due_at_ms, timetable) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![run_id, run.schedule, run.due_at_ms, run.timetable])?;
    Ok(())
}

/// For which time a run was started.
pub(super) fn of_run(connection: &Connection, run_id: &str) -> rusqlite::Result<Option<ScheduledRun>> {
    connection
        .prepare_cached("SELECT schedule, due_at_ms, timetable FROM scheduled_runs WHERE run_id = ?1")?
        .query_row([run_id], |row| {
            Ok(ScheduledRun { schedule: row.get(0)?, due_at_ms: row.get(1)?, timetable: row.get(2)? })
        })
        .optional()
}

/// Forgets a run that was deleted, unless it is the last one of its schedule.
pub(super) fn deleted(connection: &Connection, run_id: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "DELETE FROM scheduled_runs WHERE run_id = ?1 AND EXISTS (SELECT 1 FROM scheduled_runs AS later
               WHERE later.schedule = scheduled_runs.schedule AND later.due_at_ms > scheduled_runs.due_at_ms AND NOT later.ahead)",
        )?
        .execute([run_id])?;
    Ok(())
}
