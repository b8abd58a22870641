//! Deletes runs that ended, and what only they named; and reads what a copy of a run needs.

use tokio_postgres::types::Type;

use super::connection::Parameter;
use super::database::Database;
use super::database_errors::StatementError;
use super::line::written;
use super::queue::lives;
use crate::journal::column_words::word;
use crate::journal::{AnswerToken, PruneQuery, RunExtras, StoreError};

/// Of an imported run, which nobody continues: `FILE_MARK` of [`crate::journal::read_only_copy`].
macro_rules! is_imported {
    ($run:literal) => {
        concat!("substring(", $run, ".identity FROM 1 FOR 10) = 'imported: '::bytea")
    };
}
/// What holds of each run that may be deleted. `$1` is the moment, `$3` the only loop, `$4` the loops that are left out, `$5` the
/// only runs.
macro_rules! is_free {
    () => {
        concat!(
            "r.updated_at_ms < $1 AND ($3::text IS NULL OR r.loop_name = $3) AND r.loop_name <> ALL ($4)
  AND ($5::text[] IS NULL OR r.run_id = ANY ($5))
  AND (r.driver IS NULL OR NOT ",
            lives!("r.driver"),
            ") AND r.callback IS DISTINCT FROM 'pending'
  AND NOT EXISTS (SELECT 1 FROM @.runs b WHERE b.called_by IS NOT NULL
    AND b.run_id > r.run_id || '.' AND b.run_id < r.run_id || '/' AND b.status IN ('running', 'paused')
    AND NOT ",
            is_imported!("b"),
            ")"
        )
    };
}
/// Those that ended, in the ways of `$2`. The first line is the condition of the index `runs_by_end`.
macro_rules! ended {
    () => {
        concat!(
            "r.called_by IS NULL AND r.status IN ('completed', 'failed', 'cancelled')
  AND r.status = ANY ($2) AND (r.status <> 'cancelled' OR r.termination IS NOT NULL OR ",
            is_imported!("r"),
            ") AND ",
            is_free!()
        )
    };
}
/// The imported ones that wait for a human.
macro_rules! waiting {
    () => {
        concat!(
            "r.called_by IS NULL AND r.status = 'paused' AND 'cancelled' = ANY ($2) AND ",
            is_imported!("r"),
            " AND ",
            is_free!()
        )
    };
}
const COUNT: &str = concat!(
    "SELECT (SELECT count(*) FROM @.runs r WHERE ",
    ended!(),
    ") + (SELECT count(*) FROM @.runs r WHERE ",
    waiting!(),
    ")"
);
/// One statement, and so one transaction. Two workers that prune at once skip each other's runs.
const PRUNE: &str = concat!(
    "WITH ended AS MATERIALIZED (SELECT r.id, r.run_id FROM @.runs r WHERE ",
    ended!(),
    " ORDER BY r.updated_at_ms LIMIT $6 FOR UPDATE SKIP LOCKED
), waiting AS MATERIALIZED (SELECT r.id, r.run_id FROM @.runs r WHERE ",
    waiting!(),
    " LIMIT $6 FOR UPDATE SKIP LOCKED
), old AS MATERIALIZED (SELECT id, run_id FROM ended UNION ALL SELECT id, run_id FROM waiting LIMIT $6
), gone AS MATERIALIZED (
  SELECT id FROM old UNION ALL
  SELECT b.id FROM old JOIN @.runs b ON b.called_by IS NOT NULL
    AND b.run_id > old.run_id || '.' AND b.run_id < old.run_id || '/'
), events AS (DELETE FROM @.events WHERE run IN (SELECT id FROM gone)
), named AS (DELETE FROM @.run_texts WHERE run IN (SELECT id FROM gone)
), decisions AS (DELETE FROM @.decisions WHERE run IN (SELECT id FROM gone)
), tokens AS (DELETE FROM @.answer_tokens WHERE run IN (SELECT id FROM gone)
), scheduled AS (DELETE FROM @.scheduled_runs s WHERE s.run_id IN (SELECT run_id FROM old)
  AND EXISTS (SELECT 1 FROM @.scheduled_runs l WHERE l.schedule = s.schedule AND l.due_at_ms > s.due_at_ms AND NOT l.ahead)
), rows AS (DELETE FROM @.runs WHERE id IN (SELECT id FROM gone))
SELECT count(*) FROM old"
);
/// Texts that no run names; `$1` at most.
const UNNAMED: &str = "
SELECT encode(t.sha256, 'hex') FROM @.texts t
WHERE NOT EXISTS (SELECT 1 FROM @.run_texts n WHERE n.sha256 = t.sha256) LIMIT $1";
/// The most texts that are deleted at a time.
const MAX_TEXTS: i64 = 200;

const FORGET: &str =
    "WITH gone AS (DELETE FROM @.session_memory WHERE session = $1 RETURNING 1) SELECT count(*) FROM gone";
const EXTRAS: &str =
    "SELECT id, token, due_at_ms, waits_since_ms, start_key, search_text, title, awaits, line, line_limit, line_rule
  FROM @.runs WHERE run_id = $1";
const TOKENS: &str = "SELECT hash, pause, call, expires_at_ms, used FROM @.answer_tokens WHERE run = $1";

impl Database {
    pub(super) async fn prune(&self, which: PruneQuery) -> Result<u64, StoreError> {
        let statuses: Vec<String> = which.statuses.iter().filter_map(word).collect();
        let most = i64::try_from(which.most).unwrap_or(i64::MAX);
        let pruned = self.persist(|| async {
            let (only, but) = which.loops.names();
            let parameters: [Parameter<'_>; 6] = [
                (&which.before_ms, Type::INT8),
                (&statuses, Type::TEXT_ARRAY),
                (&only, Type::TEXT),
                (&but, Type::TEXT_ARRAY),
                (&which.runs, Type::TEXT_ARRAY),
                (&most, Type::INT8),
            ];
            let rows = if which.dry_run {
                self.slow.query(COUNT, parameters.get(..5).unwrap_or_default()).await?
            } else {
                self.slow.query(PRUNE, &parameters).await?
            };
            Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default())
        });
        let pruned = pruned.await?;
        if !which.dry_run && pruned > 0 {
            self.forget_texts().await?;
        }
        Ok(u64::try_from(pruned).unwrap_or_default())
    }

    /// Deletes the memory of a session. An answer that was lost is asked for again, and has 0 then.
    pub(super) async fn forget(&self, session: String) -> Result<u64, StoreError> {
        let forgotten = self.persist(|| async {
            let rows = self.quick.query(FORGET, &[(&session, Type::TEXT)]).await?;
            Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default())
        });
        Ok(u64::try_from(forgotten.await?).unwrap_or_default())
    }

    /// Deletes texts that no run names. A run that names one again right now must find it: the table is locked against
    /// writes while they are looked at once more. If the lock does not come at once, they stay until the next time.
    async fn forget_texts(&self) -> Result<(), StoreError> {
        let unnamed = self.persist(|| async {
            let rows = self.slow.query(UNNAMED, &[(&MAX_TEXTS, Type::INT8)]).await?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<String>, _>>()?)
        });
        let unnamed: Vec<String> = unnamed.await?.iter().map(|hash| format!("'\\x{hash}'")).collect();
        if unnamed.is_empty() {
            return Ok(());
        }
        let statements = format!(
            "SET LOCAL lock_timeout = '200ms'; LOCK TABLE @.texts IN SHARE ROW EXCLUSIVE MODE;
             DELETE FROM @.texts t WHERE t.sha256 IN ({}) AND NOT EXISTS
               (SELECT 1 FROM @.run_texts n WHERE n.sha256 = t.sha256)",
            unnamed.join(", ")
        );
        // One transaction without a BEGIN: when it fails, it is over, and nothing else on the connection finds itself in it.
        if let Err(trouble) = self.slow.batch(&statements).await {
            tracing::debug!("texts that no run names stay for now: {}", trouble.into_fault());
        }
        Ok(())
    }

    pub(super) async fn extras(&self, run_id: String) -> Result<RunExtras, StoreError> {
        let read = self.persist(|| async {
            let rows = self.slow.query(EXTRAS, &[(&run_id, Type::TEXT)]).await?;
            let missing = || StatementError::from(StoreError::NoSuchRun(run_id.clone()));
            let row = rows.first().ok_or_else(missing)?;
            let id: i64 = row.try_get("id")?;
            let mut extras = RunExtras {
                token: row.try_get("token")?,
                due_at_ms: row.try_get("due_at_ms")?,
                waits_since_ms: row.try_get("waits_since_ms")?,
                start_key: row.try_get("start_key")?,
                search_text: row.try_get("search_text")?,
                title: row.try_get("title")?,
                awaits: row.try_get("awaits")?,
                line: written(row)?,
                ..RunExtras::default()
            };
            for row in self.slow.query(TOKENS, &[(&id, Type::INT8)]).await? {
                let pause: i32 = row.try_get(1)?;
                extras.answer_tokens.push(AnswerToken {
                    hash: row.try_get(0)?,
                    pause: u32::try_from(pause).unwrap_or_default(),
                    call: row.try_get(2)?,
                    expires_at_ms: row.try_get(3)?,
                    used: row.try_get(4)?,
                });
            }
            Ok(extras)
        });
        let extras = read.await?;
        Ok(RunExtras { scheduled: self.scheduled(&run_id).await?, ..extras })
    }
}
