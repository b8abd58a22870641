//! How many runs need somebody.

use tokio_postgres::types::Type;

use super::connection::Parameter;
use super::database::Database;
use super::reads::{DECIDABLE, WAITS};
use crate::journal::{RunCounts, StoreError, WaitMoments, WaitingRuns};

const SET_ASIDE: &str = "r.status = 'running' AND r.failed_take_ups >= 3 AND r.driver IS NULL";

impl Database {
    /// Counts them: each statement reads the rows that it counts, by an index.
    pub(super) async fn run_counts(&self, moments: WaitMoments) -> Result<RunCounts, StoreError> {
        let [latest, middle, earliest] = moments;
        let parameters: [Parameter<'_>; 3] = [(&latest, Type::INT8), (&middle, Type::INT8), (&earliest, Type::INT8)];
        // The two kinds of waiting runs apart: together the plan would be judged to be dear, and compiled each time.
        let waiting = format!(
            "WITH waiting AS MATERIALIZED (
               SELECT r.loop_name, r.updated_at_ms AS since FROM @.runs r
               WHERE r.status = 'paused' AND r.called_by IS NULL AND coalesce(r.termination, '') NOT IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')
                 AND {DECIDABLE}
               UNION ALL
               SELECT r.loop_name, {WAITS} FROM @.runs r
               WHERE r.status = 'running' AND r.called_by IS NULL AND NOT ({SET_ASIDE}) AND {DECIDABLE})
             SELECT loop_name, (since <= $1)::int + (since <= $2)::int + (since <= $3)::int AS moments,
               min(since) AS oldest_ms, count(*) AS runs FROM waiting
             WHERE since IS NOT NULL GROUP BY loop_name, moments ORDER BY loop_name COLLATE \"C\", moments"
        );
        let wanted = [
            SET_ASIDE.to_owned(),
            "r.status = 'paused' AND r.termination = 'model_error'".to_owned(),
            format!("r.callback = 'pending' AND (r.status <> 'running' OR {SET_ASIDE})"),
        ];
        let counts = wanted
            .map(|wanted| format!("(SELECT count(*) FROM @.runs r WHERE r.called_by IS NULL AND {wanted})"))
            .join(", ");
        let counts = format!("SELECT {counts}");
        let read = self.persist(|| async {
            let mut found = RunCounts::default();
            for row in self.slow.query_once(&waiting, &parameters).await? {
                let (moments, runs): (i32, i64) = (row.try_get("moments")?, row.try_get("runs")?);
                found.waiting.push(WaitingRuns {
                    loop_name: row.try_get("loop_name")?,
                    moments: usize::try_from(moments).unwrap_or_default(),
                    oldest_ms: row.try_get("oldest_ms")?,
                    runs: u64::try_from(runs).unwrap_or_default(),
                });
            }
            let rows = self.slow.query_once(&counts, &[]).await?;
            let number = |column: usize| {
                let count = rows.first().map(|row| row.try_get::<_, i64>(column)).transpose();
                count.map(|count| u64::try_from(count.unwrap_or_default()).unwrap_or_default())
            };
            (found.quarantined, found.model_away, found.callbacks_pending) = (number(0)?, number(1)?, number(2)?);
            Ok(found)
        });
        read.await
    }
}
