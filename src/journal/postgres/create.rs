//! New runs: one statement for all runs that wait to be created.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::batch::gather;
use super::database::Database;
use super::link::Parameter;
use super::trouble::StatementFailure;
use super::writes::{milliseconds, sha256};
use crate::engine::blob::Blob;
use crate::engine::outcome::Status;
use crate::journal::words::{sum, word};
use crate::journal::{CALLBACK_LEASE, Created, Lease, NewRun, StatusRecord, StoreFault};

/// The version of loopctl that reads the events of a run: raised when older ones can't.
const FORMAT: i16 = 1;
/// The most runs in a statement.
const MOST_RUNS: usize = 128;

/// The statement. It returns the runs that are new; a run is known by its birth, because two requests of one batch may name
/// the same run.
pub(super) const CREATE: &str = "
WITH new AS (
  INSERT INTO @.runs (run_id, fence, driver, birth, format, status, termination, iterations, started_at_ms, updated_at_ms,
    due_at_ms, org, token, session, called_by, loop_name, identity, callback_url, callback, callback_at, callback_by, folder,
    waits_since_ms, start_key)
  SELECT run_id, 1, $1, birth, $2, status, termination, 0, at_ms, at_ms, due_at_ms, org, token, session, called_by, loop_name,
    identity, callback_url, CASE WHEN callback_url IS NULL THEN NULL ELSE 'pending' END,
    CASE WHEN posts THEN clock_timestamp() + $3 * interval '1 ms' END, $1,
    (SELECT d.folder FROM @.drivers d WHERE d.driver = $1), waits_since_ms, start_key
  FROM unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::text[], $11::text[],
    $12::text[], $13::text[], $14::text[], $15::bytea[], $16::text[], $17::bool[], $24::bigint[], $30::text[])
    AS c(birth, run_id, status, termination, at_ms, due_at_ms, org, token, session, called_by, loop_name, identity,
      callback_url, posts, waits_since_ms, start_key)
  ON CONFLICT DO NOTHING RETURNING id, birth
), first AS (
  INSERT INTO @.events (run, seq, fence, sum, event)
  SELECT new.id, 0, 1, e.sum, e.event
  FROM new JOIN unnest($4::uuid[], $18::bigint[], $19::bytea[]) AS e(birth, sum, event) USING (birth)
), of_new AS MATERIALIZED (
  SELECT new.id, t.sha256 FROM new JOIN unnest($20::uuid[], $21::bytea[]) AS t(birth, sha256) USING (birth)
), kept AS (
  INSERT INTO @.texts (sha256, text) SELECT sha256, text FROM unnest($22::bytea[], $23::bytea[]) AS t(sha256, text)
  WHERE sha256 IN (SELECT sha256 FROM of_new) ON CONFLICT DO NOTHING
), named AS (
  INSERT INTO @.run_texts (run, sha256) SELECT id, sha256 FROM of_new
), scheduled AS (
  INSERT INTO @.scheduled_runs (run_id, schedule, due_at_ms, timetable)
  SELECT s.run_id, s.schedule, s.due_at_ms, s.timetable
  FROM new JOIN unnest($25::uuid[], $26::text[], $27::bytea[], $28::bigint[], $29::text[])
    AS s(birth, run_id, schedule, due_at_ms, timetable) USING (birth)
  ON CONFLICT (run_id) DO UPDATE SET schedule = excluded.schedule, due_at_ms = excluded.due_at_ms,
    timetable = excluded.timetable, ahead = false
)
SELECT id, birth FROM new";

/// The runs that are there already: by whose request, and whether it was the same request. The last column is the id of a
/// run that has the key of the start and another id.
const BORN: &str = "
SELECT c.birth, r.id, r.birth, r.identity = c.identity, NULL
FROM unnest($1::uuid[], $2::text[], $3::bytea[]) AS c(birth, run_id, identity) JOIN @.runs r ON r.run_id = c.run_id
UNION ALL
SELECT c.birth, r.id, r.birth, false, r.run_id
FROM unnest($1::uuid[], $2::text[], $4::text[]) AS c(birth, run_id, start_key)
JOIN @.runs r ON r.start_key = c.start_key AND r.run_id <> c.run_id
WHERE NOT EXISTS (SELECT 1 FROM @.runs o WHERE o.run_id = c.run_id)";

/// A run that waits to be created.
pub(super) struct WaitingCreate {
    run: NewRun,
    birth: Uuid,
    asker: oneshot::Sender<Result<BornRun, StoreFault>>,
}

/// What became of a request to create a run.
#[derive(Clone)]
enum BornRun {
    /// This request made it; its key.
    New(i64),
    /// An equal request made it.
    Same,
    /// Another request made it.
    Conflict,
    /// This run has the key of the start.
    KeyTaken(String),
}

/// Takes runs that are to be created.
pub(super) type CreateOutbox = mpsc::UnboundedSender<WaitingCreate>;

/// Creates what comes, until nothing can come any more.
pub(super) async fn run(database: Arc<Database>, mut inbox: mpsc::UnboundedReceiver<WaitingCreate>) {
    let bytes = |waiting: &WaitingCreate| {
        waiting.run.event.len() + waiting.run.texts.iter().map(|text| text.len()).sum::<usize>()
    };
    while let Some(mut batch) = gather(&mut inbox, MOST_RUNS, bytes).await {
        // No two workers wait for each other in a circle: runs of one id have the same key.
        let place = |waiting: &WaitingCreate| (waiting.run.start_key.clone(), waiting.run.run_id.clone());
        batch.sort_by_cached_key(place);
        match database.create_all(&batch).await {
            Err(StatementFailure::Database { .. } | StatementFailure::Undone(_)) if batch.len() > 1 => {
                for alone in batch {
                    let alone = [alone];
                    let created = database.create_all(&alone).await;
                    answer(alone, created);
                }
            }
            created => answer(batch, created),
        }
    }
}

fn answer(batch: impl IntoIterator<Item = WaitingCreate>, created: Result<HashMap<Uuid, BornRun>, StatementFailure>) {
    let created = created.map_err(StatementFailure::into_fault);
    for WaitingCreate { run, birth, asker } in batch {
        let born = created.as_ref().map_err(Clone::clone).and_then(|created| {
            let gone = || StoreFault::Unreachable(format!("run {} came and went", run.run_id));
            created.get(&birth).cloned().ok_or_else(gone)
        });
        // A caller who has gone wants no answer.
        drop(asker.send(born));
    }
}

impl Database {
    pub(super) async fn create(&self, run: NewRun, outbox: CreateOutbox) -> Result<Created, StoreFault> {
        self.ensure().await?;
        let (run_id, session) = (run.run_id.clone(), run.session.clone());
        let (asker, answer) = oneshot::channel();
        // If the thread is gone, the sender is dropped, and the answer reports that.
        drop(outbox.send(WaitingCreate { run, birth: Uuid::now_v7(), asker }));
        let gone = |_| StoreFault::Other("the store's thread is gone".to_owned());
        match answer.await.map_err(gone)?? {
            BornRun::New(row) => {
                self.held.granted(&run_id, row, (1, 1), session);
                Ok(Created::New(Lease { fence: 1, events: 1, failed_take_ups: 0 }))
            }
            BornRun::Same => Ok(Created::Same),
            BornRun::Conflict => Ok(Created::Conflict),
            BornRun::KeyTaken(by) => Ok(Created::KeyTaken(by)),
        }
    }

    /// Creates the runs of a batch.
    async fn create_all(&self, batch: &[WaitingCreate]) -> Result<HashMap<Uuid, BornRun>, StatementFailure> {
        let runs = RunColumns::of(batch);
        self.persist_batch(batch.len(), || async {
            let mut born = runs.send(self).await?;
            let missing: Vec<&WaitingCreate> =
                batch.iter().filter(|waiting| !born.contains_key(&waiting.birth)).collect();
            if missing.is_empty() {
                return Ok(born);
            }
            // Another run of this id or with this key, or the answer to an earlier sending was lost.
            let births: Vec<Uuid> = missing.iter().map(|waiting| waiting.birth).collect();
            let run_ids: Vec<&str> = missing.iter().map(|waiting| waiting.run.run_id.as_str()).collect();
            let identities: Vec<&[u8]> = missing.iter().map(|waiting| waiting.run.identity.as_bytes()).collect();
            let keys: Vec<Option<&str>> = missing.iter().map(|waiting| waiting.run.start_key.as_deref()).collect();
            let parameters: [Parameter<'_>; 4] = [
                (&births, Type::UUID_ARRAY),
                (&run_ids, Type::TEXT_ARRAY),
                (&identities, Type::BYTEA_ARRAY),
                (&keys, Type::TEXT_ARRAY),
            ];
            for row in self.writer.query(BORN, &parameters).await? {
                let (birth, key, of, same): (Uuid, i64, Uuid, bool) =
                    (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
                let taken_by: Option<String> = row.try_get(4)?;
                let outcome = match (of == birth, same, taken_by) {
                    (true, ..) => BornRun::New(key),
                    (false, true, _) => BornRun::Same,
                    (false, false, None) => BornRun::Conflict,
                    (false, false, Some(by)) => BornRun::KeyTaken(by),
                };
                born.insert(birth, outcome);
            }
            if born.len() < batch.len() {
                return Err(StatementFailure::Undone("a run came and went".to_owned()));
            }
            Ok(born)
        })
        .await
    }
}

/// The parameters of the statement: arrays, an entry for each run or text.
#[derive(Default)]
struct RunColumns<'a> {
    birth: Vec<Uuid>,
    run_id: Vec<&'a str>,
    status: Vec<Option<String>>,
    termination: Vec<Option<String>>,
    at_ms: Vec<i64>,
    due_at_ms: Vec<Option<i64>>,
    waits_since_ms: Vec<Option<i64>>,
    org: Vec<Option<&'a str>>,
    token: Vec<Option<&'a str>>,
    session: Vec<Option<&'a str>>,
    called_by: Vec<Option<&'a str>>,
    loop_name: Vec<&'a str>,
    identity: Vec<&'a [u8]>,
    callback_url: Vec<Option<&'a str>>,
    start_key: Vec<Option<&'a str>>,
    posts: Vec<bool>,
    sum: Vec<i64>,
    event: Vec<&'a [u8]>,
    /// Which run names which text.
    text_birth: Vec<Uuid>,
    text_sha256: Vec<Vec<u8>>,
    /// Which runs a schedule starts, and for which time.
    scheduled_birth: Vec<Uuid>,
    scheduled_run: Vec<&'a str>,
    schedule: Vec<&'a [u8]>,
    scheduled_for: Vec<i64>,
    timetable: Vec<&'a str>,
    /// Each text once, by its digest.
    sha256: Vec<Vec<u8>>,
    text: Vec<&'a [u8]>,
}

impl<'a> RunColumns<'a> {
    fn of(batch: &'a [WaitingCreate]) -> Self {
        let mut all = Self::default();
        let mut texts: BTreeMap<Vec<u8>, &'a [u8]> = BTreeMap::new();
        for WaitingCreate { run, birth, .. } in batch {
            let record = run.status_record.as_ref();
            all.birth.push(*birth);
            all.run_id.push(&run.run_id);
            all.status.push(word(&record.map_or(Status::Running, |record| record.status)));
            all.termination.push(record.and_then(|record| record.termination.as_ref()).and_then(word));
            all.at_ms.push(run.at_ms);
            all.due_at_ms.push(record.and_then(|record| record.due_at_ms));
            all.waits_since_ms.push(record.and_then(|record| record.waits_since_ms));
            all.org.push(run.org.as_deref());
            all.token.push(run.token.as_deref());
            all.session.push(run.session.as_deref());
            all.called_by.push(run.parent_run_id.as_deref());
            all.loop_name.push(&run.loop_name);
            all.identity.push(run.identity.as_bytes());
            all.callback_url.push(run.callback_url.as_deref());
            all.start_key.push(run.start_key.as_deref());
            all.posts.push(record.is_some_and(StatusRecord::is_to_be_posted));
            all.sum.push(sum(&run.run_id, 0, &run.event));
            all.event.push(run.event.as_bytes());
            if let Some(scheduled) = &run.scheduled {
                all.scheduled_birth.push(*birth);
                all.scheduled_run.push(&run.run_id);
                all.schedule.push(scheduled.schedule.as_bytes());
                all.scheduled_for.push(scheduled.due_at_ms);
                all.timetable.push(&scheduled.timetable);
            }
            let own: BTreeMap<Vec<u8>, &Blob> = run.texts.iter().map(|text| (sha256(text), text)).collect();
            for (sha256, text) in own {
                all.text_birth.push(*birth);
                all.text_sha256.push(sha256.clone());
                texts.insert(sha256, text.as_bytes());
            }
        }
        (all.sha256, all.text) = texts.into_iter().unzip();
        all
    }

    /// Sends the statement: the runs that it created.
    async fn send(&self, database: &Database) -> Result<HashMap<Uuid, BornRun>, StatementFailure> {
        let lease_ms = milliseconds(CALLBACK_LEASE);
        let parameters: [Parameter<'_>; 30] = [
            (&database.me, Type::UUID),
            (&FORMAT, Type::INT2),
            (&lease_ms, Type::FLOAT8),
            (&self.birth, Type::UUID_ARRAY),
            (&self.run_id, Type::TEXT_ARRAY),
            (&self.status, Type::TEXT_ARRAY),
            (&self.termination, Type::TEXT_ARRAY),
            (&self.at_ms, Type::INT8_ARRAY),
            (&self.due_at_ms, Type::INT8_ARRAY),
            (&self.org, Type::TEXT_ARRAY),
            (&self.token, Type::TEXT_ARRAY),
            (&self.session, Type::TEXT_ARRAY),
            (&self.called_by, Type::TEXT_ARRAY),
            (&self.loop_name, Type::TEXT_ARRAY),
            (&self.identity, Type::BYTEA_ARRAY),
            (&self.callback_url, Type::TEXT_ARRAY),
            (&self.posts, Type::BOOL_ARRAY),
            (&self.sum, Type::INT8_ARRAY),
            (&self.event, Type::BYTEA_ARRAY),
            (&self.text_birth, Type::UUID_ARRAY),
            (&self.text_sha256, Type::BYTEA_ARRAY),
            (&self.sha256, Type::BYTEA_ARRAY),
            (&self.text, Type::BYTEA_ARRAY),
            (&self.waits_since_ms, Type::INT8_ARRAY),
            (&self.scheduled_birth, Type::UUID_ARRAY),
            (&self.scheduled_run, Type::TEXT_ARRAY),
            (&self.schedule, Type::BYTEA_ARRAY),
            (&self.scheduled_for, Type::INT8_ARRAY),
            (&self.timetable, Type::TEXT_ARRAY),
            (&self.start_key, Type::TEXT_ARRAY),
        ];
        let rows = database.writer.query(CREATE, &parameters).await?;
        let created = rows.iter().map(|row| Ok((row.try_get(1)?, BornRun::New(row.try_get(0)?))));
        created.collect()
    }
}
