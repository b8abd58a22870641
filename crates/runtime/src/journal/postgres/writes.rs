//! Writes about one run: each is a statement of its own, sent again when its outcome is not known.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::{Parameter, text_of};
use super::database::Database;
use super::database_errors::StatementError;
use crate::journal::answer_token::{MOST_ISSUES, NO_PAUSE};
use crate::journal::column_words::word;
use crate::journal::{
    AnswerToken, CALLBACK_LEASE, CallbackProgress, CallbackState, CancelRequest, ModelWait, StoreError,
};
use loopctl_engine::blob::Blob;

const RELEASE: &str = "
UPDATE @.runs SET driver = NULL,
  failed_take_ups = CASE WHEN failed_take_ups = 0 THEN 0 WHEN take_up_events < (
      SELECT count(*) FROM @.events e JOIN @.runs b ON b.id = e.run
      WHERE b.id = runs.id OR b.called_by IS NOT NULL AND b.run_id > runs.run_id || '.' AND b.run_id < runs.run_id || '/')
    THEN 0 ELSE failed_take_ups END
WHERE run_id = $1 AND fence = $2 AND driver = $3";
const ABSOLVE: &str = "UPDATE @.runs SET failed_take_ups = 0 WHERE run_id = ANY ($1) AND failed_take_ups > 0";
const CANCEL: &str = "
UPDATE @.runs SET cancel_reason = CASE WHEN cancel_requested THEN cancel_reason ELSE $2 END,
  cancel_by = CASE WHEN cancel_requested THEN cancel_by ELSE $3 END, cancel_requested = true
WHERE run_id = $1 RETURNING cancel_reason, cancel_by";
const RETRY_AT: &str = "
UPDATE @.runs SET due_at_ms = least($2, due_at_ms) WHERE run_id = $1 AND status = 'paused'
  AND (termination IN ('model_error', 'spending_limit')
    OR error IS NOT NULL AND termination NOT IN ('waiting', 'waiting_event'))";
const NOTE_MODEL_WAIT: &str = "UPDATE @.runs SET error = $3 WHERE run_id = $1 AND fence = $2 AND status = 'running'";
const NOTE_CALLBACK: &str = "
WITH there AS (SELECT id FROM @.runs WHERE run_id = $1), noted AS (
  UPDATE @.runs r SET callback = CASE WHEN callback IS NULL THEN NULL ELSE $2 END, callback_tries = $3,
    callback_at = CASE WHEN $4::float8 IS NULL THEN NULL ELSE clock_timestamp() + $4 * interval '1 ms' END, callback_by = $5
  FROM there WHERE r.id = there.id AND ($2 <> 'pending' OR r.callback IS NULL OR r.callback = 'pending')
    AND ($6::bigint IS NULL OR r.updated_at_ms = $6 AND r.status <> 'running')
)
SELECT 1 FROM there";
const NOTE_PAUSE: &str = "
UPDATE @.runs SET callback_pause = greatest(callback_pause, $2), callback_at = NULL WHERE run_id = $1 RETURNING 1";
const PUT_TOKENS: &str = "
WITH run AS (SELECT id FROM @.runs WHERE run_id = $1), there AS (
  SELECT t.hash FROM @.answer_tokens t JOIN run ON t.run = run.id WHERE t.pause = $2
), old AS (
  DELETE FROM @.answer_tokens WHERE hash IN (SELECT hash FROM there)
    AND (SELECT count(*) FROM there) > $7 AND NOT hash = ANY ($3)
), new AS (
  INSERT INTO @.answer_tokens (hash, run, pause, call, expires_at_ms, used)
  SELECT t.hash, run.id, $2, t.call, t.expires_at_ms, t.used
  FROM run, unnest($3::text[], $4::text[], $5::bigint[], $6::bool[]) AS t(hash, call, expires_at_ms, used)
  ON CONFLICT (hash) DO NOTHING
)
SELECT 1 FROM run";

/// The SHA-256 of a long text: all organisations share the table.
pub(super) fn sha256(text: &Blob) -> Vec<u8> {
    text.sha256().bytes().to_vec()
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    f64::from(u32::try_from(time.as_millis()).unwrap_or(u32::MAX))
}

impl Database {
    pub(super) async fn absolve(&self, run_ids: Vec<String>) -> Result<(), StoreError> {
        self.persist(|| async { self.quick.query(ABSOLVE, &[(&run_ids, Type::TEXT_ARRAY)]).await.map(drop) }).await
    }

    pub(super) async fn release(&self, run_id: String, fence: u64) -> Result<(), StoreError> {
        // Also when the database is away: it then says that the run is this driver's, which does not know it, and lets go.
        self.held.lost(&run_id, fence);
        let number = i64::try_from(fence).unwrap_or(i64::MAX);
        let sent = self.persist(|| async {
            let parameters: [Parameter<'_>; 3] = [(&run_id, Type::TEXT), (&number, Type::INT8), (&self.me, Type::UUID)];
            self.quick.query(RELEASE, &parameters).await.map(drop)
        });
        sent.await
    }

    pub(super) async fn confirm(&self, run_id: String, fence: u64) -> Result<(), StoreError> {
        self.ensure().await?;
        self.held.held_by(&run_id, fence).map(drop).ok_or(StoreError::Fenced(run_id))
    }

    pub(super) async fn request_cancel(&self, run_id: String, request: CancelRequest) -> Result<(), StoreError> {
        let bytes = request.reason.as_ref().map(|reason| reason.as_bytes());
        let parameters: [Parameter<'_>; 3] = [(&run_id, Type::TEXT), (&bytes, Type::BYTEA), (&request.by, Type::TEXT)];
        let row = self.one(CANCEL, &run_id, &parameters).await?;
        // The first request stays.
        let failed = |error| StatementError::from(error).into_fault();
        let reason: Option<Vec<u8>> = row.try_get(0).map_err(failed)?;
        let by: Option<String> = row.try_get(1).map_err(failed)?;
        self.held.add_cancel(&run_id, CancelRequest { reason: reason.map(text_of), by });
        Ok(())
    }

    pub(super) async fn retry_at(&self, run_id: String, at_ms: i64) -> Result<(), StoreError> {
        let sent = self.persist(|| async {
            self.quick.query(RETRY_AT, &[(&run_id, Type::TEXT), (&at_ms, Type::INT8)]).await.map(drop)
        });
        sent.await
    }

    pub(super) async fn note_model_wait(
        &self,
        run_id: String,
        fence: u64,
        wait: Option<ModelWait>,
    ) -> Result<(), StoreError> {
        let text = wait.and_then(|wait| wait.for_row(fence));
        let fence = i64::try_from(fence).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 3] = [(&run_id, Type::TEXT), (&fence, Type::INT8), (&text, Type::TEXT)];
        self.persist(|| async { self.quick.query(NOTE_MODEL_WAIT, &parameters).await.map(drop) }).await
    }

    pub(super) async fn note_callback(
        &self,
        run_id: String,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Result<(), StoreError> {
        let CallbackProgress { state, tries } = progress;
        let (state, tries) =
            (word(&state).or_else(|| word(&CallbackState::Pending)), i32::try_from(tries).unwrap_or(i32::MAX));
        let again_ms = again_in.map(|time| milliseconds(time.saturating_add(CALLBACK_LEASE)));
        self.one(
            NOTE_CALLBACK,
            &run_id,
            &[
                (&run_id, Type::TEXT),
                (&state, Type::TEXT),
                (&tries, Type::INT4),
                (&again_ms, Type::FLOAT8),
                (&self.me, Type::UUID),
                (&of_end_ms, Type::INT8),
            ],
        )
        .await
        .map(drop)
    }

    pub(super) async fn note_posted_pause(&self, run_id: String, pause: u32) -> Result<(), StoreError> {
        let pause = i32::try_from(pause).unwrap_or(i32::MAX);
        self.one(NOTE_PAUSE, &run_id, &[(&run_id, Type::TEXT), (&pause, Type::INT4)]).await.map(drop)
    }

    pub(super) async fn put_answer_tokens(&self, run_id: String, tokens: Vec<AnswerToken>) -> Result<(), StoreError> {
        let pause = tokens.first().map_or(0, |token| i32::try_from(token.pause).unwrap_or(i32::MAX));
        let hashes: Vec<&str> = tokens.iter().map(|token| token.hash.as_str()).collect();
        let calls: Vec<Option<&str>> = tokens.iter().map(|token| token.call.as_deref()).collect();
        let expire: Vec<i64> = tokens.iter().map(|token| token.expires_at_ms).collect();
        let used: Vec<bool> = tokens.iter().map(|token| token.used).collect();
        // Without tokens nothing is too many.
        let stays = tokens.first().is_none_or(|token| token.pause == NO_PAUSE);
        let most = if stays { usize::MAX } else { tokens.len().saturating_mul(MOST_ISSUES - 1) };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.one(
            PUT_TOKENS,
            &run_id,
            &[
                (&run_id, Type::TEXT),
                (&pause, Type::INT4),
                (&hashes, Type::TEXT_ARRAY),
                (&calls, Type::TEXT_ARRAY),
                (&expire, Type::INT8_ARRAY),
                (&used, Type::BOOL_ARRAY),
                (&most, Type::INT8),
            ],
        )
        .await
        .map(drop)
    }

    /// A statement about a run, which returns a row if there is one.
    async fn one(&self, sql: &'static str, run_id: &str, parameters: &[Parameter<'_>]) -> Result<Row, StoreError> {
        let rows = self.persist(|| self.quick.query(sql, parameters)).await?;
        rows.into_iter().next().ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))
    }
}
