//! New runs: one statement for all runs that wait to be created.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::append::TextColumns;
use super::batch::gather;
use super::columns::{NumberedStatement, columns, statement_parameters};
use super::database::Database;
use super::database_errors::StatementError;
use super::line::{may_be_refused, open};
use super::record_columns::RecordColumns;
use super::writes::{milliseconds, sha256};
use crate::journal::column_words::{sum, word};
use crate::journal::{CALLBACK_LEASE, Created, Lease, NewRun, StatusRecord, StoreError};
use loopctl_engine::blob::Blob;
use loopctl_engine::outcome::Status;

/// The version of loopctl that reads the events of a run: raised when older ones can't.
const FORMAT: i16 = 1;
/// The most runs in a statement. Each has a number in it, below 1,000, that its place in a line is made of.
const MAX_RUNS: usize = 128;

/// How often a run that does not wait in its line is asked for anew, because others joined a line at the same time.
const MAX_REQUESTS: u32 = 64;

/// The statement. It returns the runs that are new; a run is known by its birth, because two requests of one batch may name
/// the same run.
///
/// A statement sees what was there when it began, and a line may have been joined since, while it waited for the lock. `fresh` says
/// whether none was: then what it sees of a line is all of it. A run that does not wait is created then only, where its line has room
/// for it after those before it in the batch.
static CREATE: LazyLock<NumberedStatement> = LazyLock::new(|| {
    CreateParameters::statement(concat!(
        "
WITH joins AS (
  UPDATE @.loopctl SET line_joins = line_joins + 1
  WHERE EXISTS (SELECT 1 FROM unnest($c.line) AS l(line) WHERE l.line IS NOT NULL) RETURNING line_joins
), fresh AS (
  SELECT j.line_joins = s.line_joins + 1 AS is_fresh FROM joins j, @.loopctl s
), new AS (
  INSERT INTO @.runs (run_id, fence, driver, birth, format, status, termination, iterations, started_at_ms, updated_at_ms,
    due_at_ms, org, token, session, called_by, loop_name, identity, callback_url, callback, callback_at, callback_by, folder,
    waits_since_ms, start_key, tokens, cost_usd, error, question, search_text, title, awaits, line, line_limit, line_rule, place)
  SELECT run_id, 1, $me, birth, $format, status, termination, iterations, started_at_ms, at_ms, due_at_ms, org, token, session,
    called_by, loop_name, identity, callback_url, CASE WHEN callback_url IS NULL THEN NULL ELSE 'pending' END,
    CASE WHEN posts THEN clock_timestamp() + $lease_ms * interval '1 ms' END, $me,
    (SELECT d.folder FROM @.drivers d WHERE d.driver = $me), waits_since_ms, start_key, tokens, cost_usd, error, question,
    search_text, title, awaits, line, line_limit, line_rule,
    CASE WHEN line IS NOT NULL THEN (SELECT j.line_joins FROM joins j) * 1000 + number END
  FROM (
    SELECT *, row_number() OVER (PARTITION BY line ORDER BY number) - 1 AS before
    FROM unnest($c.values, $s.values) WITH ORDINALITY AS c($c.names, $s.names, number)
  ) c
  WHERE line IS NULL OR line_rule <> 'refuse' OR (SELECT f.is_fresh FROM fresh f) AND c.before + (
    SELECT count(*) FROM (
      SELECT 1 FROM @.runs o WHERE o.line = c.line AND o.run_id <> c.run_id AND ",
        open!("o"),
        " LIMIT c.line_limit
    ) ahead) < c.line_limit
  ON CONFLICT DO NOTHING RETURNING id, birth
), first AS (
  INSERT INTO @.events (run, seq, fence, sum, event)
  SELECT new.id, 0, 1, e.sum, e.event FROM new JOIN unnest($c.birth, $e.values) AS e(birth, $e.names) USING (birth)
), of_new AS MATERIALIZED (
  SELECT new.id, n.sha256 FROM new JOIN $n USING (birth)
), kept AS (
  INSERT INTO @.texts (sha256, text) SELECT sha256, text FROM $t WHERE sha256 IN (SELECT sha256 FROM of_new)
  ON CONFLICT DO NOTHING
), named AS (
  INSERT INTO @.run_texts (run, sha256) SELECT id, sha256 FROM of_new
), scheduled AS (
  INSERT INTO @.scheduled_runs (run_id, schedule, due_at_ms, timetable)
  SELECT d.run_id, d.schedule, d.due_at_ms, d.timetable FROM new JOIN $d USING (birth)
  ON CONFLICT (run_id) DO UPDATE SET schedule = excluded.schedule, due_at_ms = excluded.due_at_ms,
    timetable = excluded.timetable, ahead = false
), audited AS (
  INSERT INTO @.audit (at_ms, action, actor, detail, run_id, loop_name, org)
  SELECT x.at_ms, x.action, x.actor, x.detail, r.run_id, r.loop_name, r.org
  FROM new JOIN $x USING (birth) JOIN unnest($c.values) AS r($c.names) USING (birth)
)
SELECT id, birth FROM new"
    ))
});

/// The runs that are there already: by whose request, and whether it was the same request. The last column is the id of a
/// run that has the key of the start and another id.
static BORN: LazyLock<NumberedStatement> = LazyLock::new(|| {
    BornParameters::statement(
        "
WITH c AS MATERIALIZED (SELECT * FROM $c)
SELECT c.birth AS request, r.id, r.birth, r.identity = c.identity AS is_same, NULL AS taken_by
FROM c JOIN @.runs r ON r.run_id = c.run_id
UNION ALL
SELECT c.birth, r.id, r.birth, false, r.run_id
FROM c JOIN @.runs r ON r.start_key = c.start_key AND r.run_id <> c.run_id
WHERE NOT EXISTS (SELECT 1 FROM @.runs o WHERE o.run_id = c.run_id)",
    )
});

statement_parameters! {
    struct BornParameters<'a> {
        c: BornColumns<'a>,
    }
}

columns! {
    /// What says whether a run is that of a request.
    struct BornColumns<'a> {
        birth: Uuid,
        run_id: &'a str,
        identity: &'a [u8],
        start_key: Option<&'a str>,
    }
}

/// A run that waits to be created.
pub(super) struct WaitingCreate {
    run: NewRun,
    birth: Uuid,
    asker: oneshot::Sender<Result<BornRun, StoreError>>,
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
    /// Its line is full, or was joined by others at the same time: nothing was made.
    NoRoom,
}

/// Takes runs that are to be created.
pub(super) type CreateOutbox = mpsc::UnboundedSender<WaitingCreate>;

/// Creates what comes, until nothing can come any more.
pub(super) async fn run(database: Arc<Database>, mut inbox: mpsc::UnboundedReceiver<WaitingCreate>) {
    let bytes = |waiting: &WaitingCreate| {
        waiting.run.event.len() + waiting.run.texts.iter().map(|text| text.len()).sum::<usize>()
    };
    while let Some(mut batch) = gather(&mut inbox, MAX_RUNS, bytes).await {
        // No two workers wait for each other in a circle: runs of one id have the same key.
        let place = |waiting: &WaitingCreate| (waiting.run.start_key.clone(), waiting.run.run_id.clone());
        batch.sort_by_cached_key(place);
        match database.create_all(&batch).await {
            Err(StatementError::Database { .. } | StatementError::Undone(_)) if batch.len() > 1 => {
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

fn answer(batch: impl IntoIterator<Item = WaitingCreate>, created: Result<HashMap<Uuid, BornRun>, StatementError>) {
    let created = created.map_err(StatementError::into_fault);
    for WaitingCreate { run, birth, asker } in batch {
        let born = created.as_ref().map_err(Clone::clone).and_then(|created| {
            let gone = || StoreError::Unreachable(format!("run {} came and went", run.run_id));
            created.get(&birth).cloned().ok_or_else(gone)
        });
        // A caller who has gone wants no answer.
        drop(asker.send(born));
    }
}

impl Database {
    pub(super) async fn create(&self, run: NewRun, outbox: CreateOutbox) -> Result<Created, StoreError> {
        self.ensure().await?;
        if !may_be_refused(&run) {
            let run_id = run.run_id.clone();
            let made = self.make(run, &outbox).await?;
            return made.ok_or_else(|| StoreError::Unreachable(format!("run {run_id} came and went")));
        }
        for _ in 0..MAX_REQUESTS {
            if let Some(first) = self.refused_by(&run).await? {
                return Ok(Created::LineFull(first));
            }
            if let Some(created) = self.make(run.clone(), &outbox).await? {
                return Ok(created);
            }
        }
        Err(StoreError::Unreachable("other runs join their lines all the time".to_owned()))
    }

    /// Asks for a run once; none when its line had no room for it, or others joined lines at the same time.
    async fn make(&self, run: NewRun, outbox: &CreateOutbox) -> Result<Option<Created>, StoreError> {
        let (run_id, session) = (run.run_id.clone(), run.session.clone());
        let (asker, answer) = oneshot::channel();
        // If the thread is gone, the sender is dropped, and the answer reports that.
        drop(outbox.send(WaitingCreate { run, birth: Uuid::now_v7(), asker }));
        let gone = |_| StoreError::Other("the store's thread is gone".to_owned());
        // A run that is made all the same is free once the database is back: nobody here drives it.
        let answered = self.unless_away(async { answer.await.map_err(gone)? });
        Ok(Some(match answered.await? {
            BornRun::New(row) => {
                self.held.granted(&run_id, row, (1, 1), session);
                Created::New(Lease { fence: 1, events: 1, failed_take_ups: 0 })
            }
            BornRun::Same => Created::Same,
            BornRun::Conflict => Created::Conflict,
            BornRun::KeyTaken(by) => Created::KeyTaken(by),
            BornRun::NoRoom => return Ok(None),
        }))
    }

    /// Creates the runs of a batch.
    async fn create_all(&self, batch: &[WaitingCreate]) -> Result<HashMap<Uuid, BornRun>, StatementError> {
        let runs = CreateParameters::of(self.me, batch);
        self.persist_batch(batch.len(), || async {
            let mut born = runs.send(self).await?;
            let missing: Vec<&WaitingCreate> =
                batch.iter().filter(|waiting| !born.contains_key(&waiting.birth)).collect();
            if missing.is_empty() {
                return Ok(born);
            }
            // Another run of this id or with this key, or the answer to an earlier sending was lost.
            let mut c = BornColumns::default();
            for WaitingCreate { run, birth, .. } in &missing {
                c.birth.push(*birth);
                c.run_id.push(&run.run_id);
                c.identity.push(run.identity.as_bytes());
                c.start_key.push(run.start_key.as_deref());
            }
            for row in self.writer.query_numbered(&BORN, &BornParameters { c }.parameters()).await? {
                let (birth, of): (Uuid, Uuid) = (row.try_get("request")?, row.try_get("birth")?);
                let (key, same, taken_by): (i64, bool, Option<String>) =
                    (row.try_get("id")?, row.try_get("is_same")?, row.try_get("taken_by")?);
                let outcome = match (of == birth, same, taken_by) {
                    (true, ..) => BornRun::New(key),
                    (false, true, _) => BornRun::Same,
                    (false, false, None) => BornRun::Conflict,
                    (false, false, Some(by)) => BornRun::KeyTaken(by),
                };
                born.insert(birth, outcome);
            }
            for WaitingCreate { run, birth, .. } in missing {
                if may_be_refused(run) {
                    born.entry(*birth).or_insert(BornRun::NoRoom);
                }
            }
            if born.len() < batch.len() {
                return Err(StatementError::Undone("a run came and went".to_owned()));
            }
            Ok(born)
        })
        .await
    }
}

statement_parameters! {
    /// The parameters of the statement.
    struct CreateParameters<'a> {
        me: Uuid,
        format: i16,
        lease_ms: f64,
        c: NewRunColumns<'a>,
        s: RecordColumns,
        e: FirstEventColumns<'a>,
        n: NewRunTextColumns,
        t: TextColumns<'a>,
        d: ScheduledColumns<'a>,
        x: StartAuditColumns<'a>,
    }
}

columns! {
    /// Who starts runs.
    struct StartAuditColumns<'a> {
        birth: Uuid,
        at_ms: i64,
        action: &'a str,
        actor: Option<&'a str>,
        detail: Option<&'a str>,
    }
}

columns! {
    /// What never changes in the row of a run.
    struct NewRunColumns<'a> {
        birth: Uuid,
        run_id: &'a str,
        started_at_ms: i64,
        org: Option<&'a str>,
        token: Option<&'a str>,
        session: Option<&'a str>,
        called_by: Option<&'a str>,
        loop_name: &'a str,
        identity: &'a [u8],
        callback_url: Option<&'a str>,
        start_key: Option<&'a str>,
        search_text: Option<&'a str>,
        title: Option<&'a str>,
        line: Option<&'a str>,
        line_limit: Option<i32>,
        line_rule: Option<String>,
    }
}

columns! {
    /// The first event of each run.
    struct FirstEventColumns<'a> {
        sum: i64,
        event: &'a [u8],
    }
}

columns! {
    /// Which runs name which text.
    struct NewRunTextColumns {
        birth: Uuid,
        sha256: Vec<u8>,
    }
}

columns! {
    /// Which runs a schedule starts, and for which time.
    struct ScheduledColumns<'a> {
        birth: Uuid,
        run_id: &'a str,
        schedule: &'a [u8],
        due_at_ms: i64,
        timetable: &'a str,
    }
}

impl<'a> CreateParameters<'a> {
    fn of(me: Uuid, batch: &'a [WaitingCreate]) -> Self {
        let (mut c, mut s, mut e) = (NewRunColumns::default(), RecordColumns::default(), FirstEventColumns::default());
        let (mut n, mut d) = (NewRunTextColumns::default(), ScheduledColumns::default());
        let mut x = StartAuditColumns::default();
        let mut texts: BTreeMap<Vec<u8>, &'a [u8]> = BTreeMap::new();
        for WaitingCreate { run, birth, .. } in batch {
            c.birth.push(*birth);
            c.run_id.push(&run.run_id);
            c.started_at_ms.push(run.at_ms);
            c.org.push(run.org.as_deref());
            c.token.push(run.token.as_deref());
            c.session.push(run.session.as_deref());
            c.called_by.push(run.parent_run_id.as_deref());
            c.loop_name.push(&run.loop_name);
            c.identity.push(run.identity.as_bytes());
            c.callback_url.push(run.callback_url.as_deref());
            c.start_key.push(run.start_key.as_deref());
            c.search_text.push(run.search_text.as_deref());
            c.title.push(run.title.as_deref());
            let line = run.line.as_deref();
            c.line.push(line.map(|new| new.line.as_str()));
            c.line_limit.push(line.map(|new| i32::try_from(new.limit).unwrap_or(i32::MAX)));
            c.line_rule.push(line.and_then(|new| word(&new.rule)));
            match &run.status_record {
                Some(record) => s.push(Some(record)),
                None => s.push(Some(&StatusRecord::new(Status::Running, run.at_ms))),
            }
            e.sum.push(sum(&run.run_id, 0, &run.event));
            e.event.push(run.event.as_bytes());
            if let Some(noted) = &run.audit {
                x.birth.push(*birth);
                x.at_ms.push(noted.at_ms);
                x.action.push(noted.action.word());
                x.actor.push(noted.actor.as_deref());
                x.detail.push(noted.detail.as_deref());
            }
            if let Some(scheduled) = &run.scheduled {
                d.birth.push(*birth);
                d.run_id.push(&run.run_id);
                d.schedule.push(scheduled.schedule.as_bytes());
                d.due_at_ms.push(scheduled.due_at_ms);
                d.timetable.push(&scheduled.timetable);
            }
            let own: BTreeMap<Vec<u8>, &Blob> = run.texts.iter().map(|text| (sha256(text), text)).collect();
            for (sha256, text) in own {
                n.birth.push(*birth);
                n.sha256.push(sha256.clone());
                texts.insert(sha256, text.as_bytes());
            }
        }
        let (sha256, text) = texts.into_iter().unzip();
        let t = TextColumns { sha256, text };
        Self { me, format: FORMAT, lease_ms: milliseconds(CALLBACK_LEASE), c, s, e, n, t, d, x }
    }

    /// Sends the statement: the runs that it created.
    async fn send(&self, database: &Database) -> Result<HashMap<Uuid, BornRun>, StatementError> {
        let rows = database.writer.query_numbered(&CREATE, &self.parameters()).await?;
        let created = rows.iter().map(|row| Ok((row.try_get("birth")?, BornRun::New(row.try_get("id")?))));
        created.collect()
    }
}
