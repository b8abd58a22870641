//! Schedules: since when each is as it is, and for which time each of its runs was started.

use std::collections::HashMap;

use tokio_postgres::types::Type;

use super::connection::{Parameter, text_of};
use super::database::Database;
use super::reads::status_of;
use crate::journal::schedules::CLOCK_TOLERANCE_MS;
use crate::journal::{ScheduleRuns, ScheduledRun, ServedSchedules, StoreError, UnderWay};

/// `$1` is the place, `$2` the names, `$3` their timetables, `$4` the moment, `$5` the latest moment that counts as seen.
const SERVE: &str = "
WITH gone AS (DELETE FROM @.schedules WHERE place = $1 AND NOT name = ANY ($2))
INSERT INTO @.schedules AS s (name, timetable, seen_at_ms, place)
SELECT name, timetable, $4, $1 FROM unnest($2::bytea[], $3::text[]) AS t(name, timetable)
ON CONFLICT (name) DO UPDATE SET timetable = excluded.timetable, place = excluded.place,
  seen_at_ms = CASE WHEN s.timetable IN (excluded.timetable, '') AND s.seen_at_ms <= $5
    THEN s.seen_at_ms ELSE excluded.seen_at_ms END
RETURNING name, seen_at_ms";
const TIMES: &str = "
SELECT (SELECT max(due_at_ms) FROM @.scheduled_runs WHERE schedule = $1 AND due_at_ms <= $2 AND NOT ahead),
  (SELECT max(due_at_ms) FROM @.scheduled_runs WHERE schedule = $1 AND due_at_ms > $2 AND NOT ahead)";
/// The run of a schedule that has not ended; one that is set aside is none.
const UNDER_WAY: &str = "
SELECT r.run_id, r.status FROM @.runs r JOIN @.scheduled_runs s ON s.run_id = r.run_id
WHERE s.schedule = $1 AND r.status IN ('running', 'paused')
  AND NOT (r.status = 'running' AND r.failed_take_ups >= 3 AND r.driver IS NULL)
ORDER BY s.due_at_ms DESC LIMIT 1";
const DISREGARD: &str = "UPDATE @.scheduled_runs SET ahead = true WHERE schedule = $1 AND due_at_ms > $2";
const OF_RUN: &str = "SELECT schedule, due_at_ms, timetable FROM @.scheduled_runs WHERE run_id = $1";

impl Database {
    pub(super) async fn serve_schedules(&self, served: ServedSchedules) -> Result<Vec<i64>, StoreError> {
        let place = served.place.as_bytes();
        let names: Vec<&[u8]> = served.timetables.iter().map(|schedule| schedule.name.as_bytes()).collect();
        let timetables: Vec<&str> = served.timetables.iter().map(|schedule| schedule.timetable.as_str()).collect();
        let latest_ms = served.latest_seen_ms();
        let seen = self.persist(|| async {
            let parameters: [Parameter<'_>; 5] = [
                (&place, Type::BYTEA),
                (&names, Type::BYTEA_ARRAY),
                (&timetables, Type::TEXT_ARRAY),
                (&served.now_ms, Type::INT8),
                (&latest_ms, Type::INT8),
            ];
            let rows = self.quick.query(SERVE, &parameters).await?;
            let seen = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
            Ok(seen.collect::<Result<HashMap<Vec<u8>, i64>, tokio_postgres::Error>>()?)
        });
        let seen = seen.await?;
        Ok(names.iter().map(|name| seen.get(*name).copied().unwrap_or(served.now_ms)).collect())
    }

    pub(super) async fn schedule_runs(&self, schedule: String, now_ms: i64) -> Result<ScheduleRuns, StoreError> {
        let schedule = schedule.as_bytes();
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let read = self.persist(|| async {
            let times = self.quick.query(TIMES, &[(&schedule, Type::BYTEA), (&latest_ms, Type::INT8)]).await?;
            let rows = self.quick.query(UNDER_WAY, &[(&schedule, Type::BYTEA)]).await?;
            let under_way = match rows.first() {
                None => None,
                Some(row) => Some(UnderWay { run_id: row.try_get(0)?, status: status_of(row.try_get(1)?)? }),
            };
            let (last_due_ms, ahead_due_ms) = match times.first() {
                None => (None, None),
                Some(row) => (row.try_get(0)?, row.try_get(1)?),
            };
            Ok(ScheduleRuns { last_due_ms, ahead_due_ms, under_way })
        });
        read.await
    }

    pub(super) async fn disregard_ahead(&self, schedule: String, now_ms: i64) -> Result<(), StoreError> {
        let schedule = schedule.as_bytes();
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let parameters: [Parameter<'_>; 2] = [(&schedule, Type::BYTEA), (&latest_ms, Type::INT8)];
        self.persist(|| async { self.quick.query(DISREGARD, &parameters).await.map(drop) }).await
    }

    /// For which time a schedule started a run.
    pub(super) async fn scheduled(&self, run_id: &str) -> Result<Option<ScheduledRun>, StoreError> {
        let read = self.persist(|| async {
            let rows = self.slow.query(OF_RUN, &[(&run_id, Type::TEXT)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let schedule = text_of(row.try_get(0)?);
            Ok(Some(ScheduledRun { schedule, due_at_ms: row.try_get(1)?, timetable: row.try_get(2)? }))
        });
        read.await
    }
}
