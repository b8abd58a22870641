//! The decisions that wait for the drivers of their runs. Drivers read them only for runs of which the beat has seen one.

use tokio_postgres::types::Type;

use super::connection::text_of;
use super::database::Database;
use crate::journal::{QueuedDecision, Queueing, SettledDecision, StoreError};

/// `FOR UPDATE` excludes the release of the run: the driver that releases it has seen the decision, or the run is
/// due. What an earlier sending of the same decision wrote is written again.
const QUEUE: &str = "
WITH run AS MATERIALIZED (SELECT id, driver, status FROM @.runs WHERE run_id = $1 FOR UPDATE), queued AS (
  INSERT INTO @.decisions AS d (run, subject, id, decision)
  SELECT id, $2, $3, $4 FROM run WHERE driver IS NOT NULL OR $5
  ON CONFLICT (run, subject) DO UPDATE SET id = excluded.id, refused = NULL,
    decision = CASE WHEN d.id = excluded.id AND d.refused IS NULL THEN d.decision ELSE excluded.decision END
  WHERE d.refused IS NOT NULL OR d.id = excluded.id RETURNING run
), due AS (
  UPDATE @.runs r SET due_at_ms = 0 FROM queued WHERE r.id = queued.run AND r.status = 'paused'
)
SELECT driver IS NOT NULL, EXISTS (SELECT 1 FROM queued) FROM run";
const REFUSE: &str = "
WITH run AS MATERIALIZED (SELECT id FROM @.runs WHERE run_id = $1 FOR UPDATE), refused AS (
  UPDATE @.decisions d SET refused = $3 FROM run WHERE d.run = run.id AND d.id = $2
)
UPDATE @.runs r SET due_at_ms = $4 FROM run WHERE r.id = run.id AND r.status = 'paused'
  AND NOT EXISTS (SELECT 1 FROM @.decisions d WHERE d.run = run.id AND d.id <> $2 AND d.refused IS NULL)";
const READ: &str = "DELETE FROM @.decisions WHERE id = $2 AND run = (SELECT id FROM @.runs WHERE run_id = $1)";
const OF_RUN: &str = "
SELECT d.id, d.subject, d.decision, d.refused FROM @.decisions d JOIN @.runs r ON r.id = d.run
WHERE r.run_id = $1 ORDER BY d.subject";

impl Database {
    pub(super) async fn queue_decision(
        &self,
        run_id: String,
        decision: QueuedDecision,
        wakes: bool,
    ) -> Result<Queueing, StoreError> {
        let QueuedDecision { id, subject, decision, .. } = &decision;
        let decision = decision.as_bytes();
        let sent = self.persist(|| async {
            let rows = self
                .quick
                .query(
                    QUEUE,
                    &[
                        (&run_id, Type::TEXT),
                        (&subject, Type::TEXT),
                        (&id, Type::TEXT),
                        (&decision, Type::BYTEA),
                        (&wakes, Type::BOOL),
                    ],
                )
                .await?;
            let Some(row) = rows.first() else { return Err(StoreError::NoSuchRun(run_id.clone()).into()) };
            Ok(match (row.try_get(0)?, row.try_get(1)?) {
                (_, true) => Queueing::Queued,
                (true, false) => Queueing::Occupied,
                (false, false) if wakes => Queueing::Occupied,
                (false, false) => Queueing::NotDriven,
            })
        });
        let queueing = sent.await?;
        if queueing == Queueing::Queued {
            self.held.add_decided(&run_id);
        }
        Ok(queueing)
    }

    pub(super) async fn queued_decisions(&self, run_id: String) -> Result<Vec<QueuedDecision>, StoreError> {
        let read = self.persist(|| async {
            let mut queued = Vec::new();
            for row in self.quick.query(OF_RUN, &[(&run_id, Type::TEXT)]).await? {
                let refused: Option<Vec<u8>> = row.try_get(3)?;
                queued.push(QueuedDecision {
                    id: row.try_get(0)?,
                    subject: row.try_get(1)?,
                    decision: text_of(row.try_get(2)?),
                    refused: refused.map(text_of),
                });
            }
            Ok(queued)
        });
        read.await
    }

    pub(super) async fn settle_decision(
        &self,
        run_id: String,
        id: String,
        settled: SettledDecision,
    ) -> Result<(), StoreError> {
        let sent = self.persist(|| async {
            match &settled {
                SettledDecision::Read => self.quick.query(READ, &[(&run_id, Type::TEXT), (&id, Type::TEXT)]).await,
                SettledDecision::Refused { why, due_at_ms } => {
                    let why = why.as_bytes();
                    let parameters: [super::connection::Parameter<'_>; 4] =
                        [(&run_id, Type::TEXT), (&id, Type::TEXT), (&why, Type::BYTEA), (due_at_ms, Type::INT8)];
                    self.quick.query(REFUSE, &parameters).await
                }
            }
            .map(drop)
        });
        sent.await
    }
}
