//! Events from outside, and the runs that wait for them.

use tokio_postgres::types::Type;

use super::connection::{Parameter, text_of};
use super::database::Database;
use crate::journal::outside_event::{MOST_EVENTS, MOST_KEPT, mark_of};
use crate::journal::{EventPut, EventWaiter, OutsideEvent, StoreError};

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
SELECT EXISTS (SELECT 1 FROM new), (SELECT event = $3 AND data = $4 FROM @.outside_events WHERE org = $1 AND id = $2)";
const TAKE: &str = "UPDATE @.outside_events SET taken = true WHERE org = $1 AND id = $2";
/// `$1` is the organisation, or the empty text for none; `$2` a part of the column.
const WAITERS: &str = "
SELECT run_id, awaits FROM @.runs WHERE awaits IS NOT NULL AND coalesce(org, '') = $1 AND called_by IS NULL
  AND status IN ('running', 'paused') AND strpos(awaits, $2) > 0 ORDER BY id";
const KEPT: &str = "
SELECT org, id, event, data, at_ms, keep_until_ms FROM @.outside_events
WHERE org = (SELECT coalesce(org, '') FROM @.runs WHERE run_id = $1) AND NOT taken AND keep_until_ms > $3
  AND event = ANY ($2) ORDER BY number LIMIT $4";

impl Database {
    pub(super) async fn put_event(&self, event: OutsideEvent) -> Result<EventPut, StoreError> {
        let OutsideEvent { org, id, event, data, at_ms, keep_until_ms } = &event;
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
            let Some(row) = rows.first() else { return Ok(EventPut::Full) };
            let (is_new, is_same): (bool, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
            Ok(match (is_new, is_same) {
                (true, _) => EventPut::New,
                (false, Some(true)) => EventPut::Same,
                (false, Some(false)) => EventPut::Conflict,
                (false, None) => EventPut::Full,
            })
        });
        sent.await
    }

    pub(super) async fn take_event(&self, org: String, id: String) -> Result<(), StoreError> {
        let parameters: [Parameter<'_>; 2] = [(&org, Type::TEXT), (&id, Type::TEXT)];
        self.persist(|| async { self.quick.query(TAKE, &parameters).await.map(drop) }).await
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

    pub(super) async fn kept_events(
        &self,
        run_id: String,
        events: Vec<String>,
        now_ms: i64,
    ) -> Result<Vec<OutsideEvent>, StoreError> {
        let most = i64::try_from(MOST_KEPT).unwrap_or(i64::MAX);
        let parameters: [Parameter<'_>; 4] =
            [(&run_id, Type::TEXT), (&events, Type::TEXT_ARRAY), (&now_ms, Type::INT8), (&most, Type::INT8)];
        let read = self.persist(|| async {
            let mut kept = Vec::new();
            for row in self.quick.query(KEPT, &parameters).await? {
                let org: String = row.try_get(0)?;
                kept.push(OutsideEvent {
                    org: Some(org).filter(|org| !org.is_empty()),
                    id: row.try_get(1)?,
                    event: row.try_get(2)?,
                    data: text_of(row.try_get(3)?),
                    at_ms: row.try_get(4)?,
                    keep_until_ms: row.try_get(5)?,
                });
            }
            Ok(kept)
        });
        read.await
    }
}
