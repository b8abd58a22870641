//! Events from outside, and the runs that wait for them.

use tokio_postgres::types::Type;

use super::connection::{Parameter, text_of};
use super::database::Database;
use crate::journal::outside_event::{KEPT_PAGE_EVENTS, MARKED, MOST_EVENTS, mark_of};
use crate::journal::{EventPut, EventWaiter, KeptEvent, KeptQuery, OutsideEvent, StoreError};

const FORGET: &str = "DELETE FROM @.outside_events WHERE keep_until_ms <= $1";
/// `$1` is the organisation, `$2` the id, `$3` the name, `$4` the data, `$5` the moment, `$6` until when it is kept, `$7` the most
/// events. What an earlier sending of the same event wrote is the same event.
const PUT: &str = "
WITH new AS (
  INSERT INTO @.outside_events (org, id, event, data, at_ms, keep_until_ms)
  SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT count(*) FROM @.outside_events WHERE org = $1) < $7
    OR EXISTS (SELECT 1 FROM @.outside_events WHERE org = $1 AND id = $2)
  ON CONFLICT (org, id) DO NOTHING RETURNING id
)
SELECT EXISTS (SELECT 1 FROM new)";
/// A statement of its own: the one before does not see what another one wrote at the same moment.
const KNOWN: &str = "SELECT event, data, keep_until_ms FROM @.outside_events WHERE org = $1 AND id = $2";
/// `$3` is whether a run took it, `$4` the end of what is queued for that run then.
const MARK: &str = "
WITH marked AS (
  UPDATE @.outside_events SET taken = $3 WHERE id = $2 AND taken <> $3
    AND org = (SELECT coalesce(org, '') FROM @.runs WHERE run_id = $1) RETURNING id
), noted AS (
  UPDATE @.decisions SET decision = CASE WHEN $3 THEN substring(decision FROM 1 FOR length(decision) - 1) || $4
    ELSE substring(decision FROM 1 FOR length(decision) - length($4)) || convert_to('}', 'UTF8') END
  WHERE EXISTS (SELECT 1 FROM marked) AND run = (SELECT id FROM @.runs WHERE run_id = $1)
    AND regexp_replace(id, ' [^ ]*$', '') = 'event ' || $2
    AND (substring(decision FROM length(decision) - length($4) + 1) = $4) <> $3
)
SELECT id FROM marked";
/// `$1` is the organisation, or the empty text for none; `$2` a part of the column.
const WAITERS: &str = "
SELECT run_id, awaits FROM @.runs WHERE awaits IS NOT NULL AND coalesce(org, '') = $1 AND called_by IS NULL
  AND status IN ('running', 'paused') AND strpos(awaits, $2) > 0 ORDER BY id";
/// What is queued for a run has the id of its event before the last blank (`outside_event::queued_id`).
const KEPT: &str = "
SELECT org, id, event, data, at_ms, keep_until_ms, number FROM @.outside_events
WHERE org = (SELECT coalesce(org, '') FROM @.runs WHERE run_id = $1) AND NOT taken AND keep_until_ms > $3
  AND event = ANY ($2) AND number > $5
  AND 'event ' || id NOT IN (
    SELECT regexp_replace(queued.id, ' [^ ]*$', '') FROM @.decisions queued JOIN @.runs ON runs.id = queued.run
    WHERE queued.refused IS NULL AND runs.status IN ('running', 'paused')
      AND coalesce(runs.org, '') = (SELECT coalesce(org, '') FROM @.runs WHERE run_id = $1))
ORDER BY number LIMIT $4";

impl Database {
    pub(super) async fn put_event(&self, event: OutsideEvent) -> Result<EventPut, StoreError> {
        let sent_event = &event;
        let OutsideEvent { org, id, event, data, at_ms, keep_until_ms } = sent_event;
        let (org, data) = (org.as_deref().unwrap_or_default(), data.as_bytes());
        let most = i64::try_from(MOST_EVENTS).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 7] = [
            (&org, Type::TEXT),
            (id, Type::TEXT),
            (event, Type::TEXT),
            (&data, Type::BYTEA),
            (at_ms, Type::INT8),
            (keep_until_ms, Type::INT8),
            (&most, Type::INT8),
        ];
        let sent = self.persist(|| async {
            self.quick.query(FORGET, &[(at_ms, Type::INT8)]).await?;
            let rows = self.quick.query(PUT, &parameters).await?;
            if let Some(row) = rows.first()
                && row.try_get::<_, bool>(0)?
            {
                return Ok(EventPut::New);
            }
            let known = self.quick.query(KNOWN, &[(&org, Type::TEXT), (id, Type::TEXT)]).await?;
            let Some(row) = known.first() else { return Ok(EventPut::Full) };
            let (known_event, known_data): (String, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
            Ok(sent_event.beside(&known_event, &text_of(known_data), row.try_get(2)?))
        });
        sent.await
    }

    pub(super) async fn mark_event(&self, run_id: String, id: String, is_taken: bool) -> Result<bool, StoreError> {
        let marked = MARKED.as_bytes();
        let parameters: [Parameter<'_>; 4] =
            [(&run_id, Type::TEXT), (&id, Type::TEXT), (&is_taken, Type::BOOL), (&marked, Type::BYTEA)];
        self.persist(|| async { self.quick.query(MARK, &parameters).await.map(|rows| !rows.is_empty()) }).await
    }

    pub(super) async fn event_waiters(&self, org: String, event: String) -> Result<Vec<EventWaiter>, StoreError> {
        let mark = mark_of(&event);
        let read = self.persist(|| async {
            let mut waiters = Vec::new();
            for row in self.quick.query(WAITERS, &[(&org, Type::TEXT), (&mark, Type::TEXT)]).await? {
                let awaits: String = row.try_get(1)?;
                waiters.extend(EventWaiter::of_row(row.try_get(0)?, &awaits));
            }
            Ok(waiters)
        });
        read.await
    }

    pub(super) async fn kept_events(&self, run_id: String, query: KeptQuery) -> Result<Vec<KeptEvent>, StoreError> {
        let KeptQuery { names, now_ms, after } = query;
        let most = i64::try_from(KEPT_PAGE_EVENTS).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 5] = [
            (&run_id, Type::TEXT),
            (&names, Type::TEXT_ARRAY),
            (&now_ms, Type::INT8),
            (&most, Type::INT8),
            (&after, Type::INT8),
        ];
        let read = self.persist(|| async {
            let mut kept = Vec::new();
            for row in self.quick.query(KEPT, &parameters).await? {
                let org: String = row.try_get(0)?;
                let event = OutsideEvent {
                    org: Some(org).filter(|org| !org.is_empty()),
                    id: row.try_get(1)?,
                    event: row.try_get(2)?,
                    data: text_of(row.try_get(3)?),
                    at_ms: row.try_get(4)?,
                    keep_until_ms: row.try_get(5)?,
                };
                kept.push(KeptEvent { number: row.try_get(6)?, event });
            }
            Ok(kept)
        });
        read.await
    }
}
