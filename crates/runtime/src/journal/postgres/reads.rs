//! Reads.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connection::{Parameter, text_of};
use super::database::Database;
use super::database_errors::StatementError;
use super::line::behind;
use super::queue::lives;
use super::writes::sha256;
use crate::journal::column_words::{known, sum};
use crate::journal::{
    AnswerToken, Callback, CallbackProgress, CancelRequest, ListedStatus, MOST_FAILED_TAKE_UPS, MeasuredRun, RunFilter,
    RunSummary, StoreError, search_text,
};
use loopctl_engine::blob::Blob;
use loopctl_engine::json::from_bytes;
use loopctl_engine::outcome::Status;

const RUN: &str = "SELECT id FROM @.runs WHERE run_id = $1";
/// A page of events: a reader of a part takes no more from the database than it wants.
const EVENTS: &str = "SELECT seq, sum, event FROM @.events
  WHERE run = (SELECT id FROM @.runs WHERE run_id = $1) AND seq >= $2 ORDER BY seq LIMIT $3";
/// The runs of one look-up of a report; few in tests, so that they have several.
const MEASURED_AT_A_TIME: usize = if cfg!(test) { 2 } else { 20_000 };
/// The events of one look-up.
const PAGE_EVENTS: i64 = 256;
const TEXTS: &str = "SELECT n.sha256, t.text FROM @.run_texts n LEFT JOIN @.texts t USING (sha256)
  WHERE n.run = (SELECT id FROM @.runs WHERE run_id = $1)";
const CANCEL: &str = "SELECT cancel_requested, cancel_reason, cancel_by FROM @.runs WHERE run_id = $1";
const BELOW: &str = "SELECT count(*) FROM @.runs
  WHERE called_by IS NOT NULL AND run_id > $1 || '.' AND run_id < $1 || '/'";
const MEMORY: &str = "SELECT key, value FROM @.session_memory WHERE session = $1";
const TOKEN: &str =
    "SELECT t.pause, t.call, t.expires_at_ms, t.used FROM @.answer_tokens t JOIN @.runs r ON r.id = t.run
  WHERE t.hash = $1 AND r.run_id = $2";

/// Since when a run that is under way has waited for a human.
macro_rules! waits {
    () => {
        "CASE WHEN r.status = 'running' THEN r.waits_since_ms END"
    };
}

/// The same, for runs of which a run below waits too. Only rows of `runs_by_waiting` are read.
macro_rules! waits_with_those_below {
    () => {
        "CASE WHEN r.status = 'running' THEN coalesce(r.waits_since_ms, (
           SELECT min(coalesce(b.waits_since_ms, b.updated_at_ms)) FROM @.runs b
           WHERE b.called_by IS NOT NULL AND (b.status = 'paused' OR b.waits_since_ms IS NOT NULL)
             AND b.run_id > r.run_id || '.' AND b.run_id < r.run_id || '/'
             AND (b.status = 'running' OR b.status = 'paused' AND coalesce(b.termination, '') NOT IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')))) END"
    };
}

macro_rules! summary {
    ($where:literal) => {
        summary!($where, waits!())
    };
    ($where:literal, $waits:expr) => {
        concat!(
            "SELECT r.run_id, r.loop_name, r.session, r.status, r.termination, r.iterations, r.started_at_ms,
              CASE WHEN r.status = 'running' THEN greatest(r.updated_at_ms, r.progress_at_ms) ELSE r.updated_at_ms END
                AS updated_at_ms,
              r.tokens, r.cost_usd, r.error, r.question, r.due_at_ms, r.fence, r.search_text IS NOT NULL AS is_searchable, r.title,
              (SELECT s.schedule FROM @.scheduled_runs s WHERE s.run_id = r.run_id) AS schedule,
              (SELECT s.due_at_ms FROM @.scheduled_runs s WHERE s.run_id = r.run_id) AS scheduled_for_ms,
              r.identity, r.driver IS NULL AS is_free, ", lives!("r.driver"), " AS is_driven, r.org, r.callback_url, r.callback,
              r.callback_tries, r.failed_take_ups, r.called_by, r.callback_pause, r.token, ", behind!(), " AS behind, ", $waits, " AS waits_since_ms
              FROM @.runs r ",
            $where
        )
    };
}

/// Since when a run that is under way has waited for a human, or a run below it.
pub(super) const WAITS: &str = waits_with_those_below!();
const LIST: &str = summary!("", waits_with_those_below!());
/// The bound by status comes first: the rows of runs that ended are not read.
const WAITING: &str = concat!(
    "r.status IN ('paused', 'running') AND (r.status = 'paused' OR (",
    waits_with_those_below!(),
    ") IS NOT NULL) AND NOT (r.status = 'running' AND r.failed_take_ups >= 3 AND r.driver IS NULL)"
);
/// Of what [`WAITING`] lists, what no human is asked for.
const WAITS_BY_ITSELF: &str = "r.status = 'paused'
  AND coalesce(r.termination, '') IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')";
/// Of the same, what humans can decide about: it does not wait in its line, and did not come in a file without being continued.
pub(super) const DECIDABLE: &str =
    concat!("substr(r.identity, 1, 10) <> 'imported: '::bytea AND (", behind!(), ") IS NULL");
/// The SQL form of [`RunSummary::has_ended`].
const ENDED: &str =
    "r.status IN ('completed', 'failed', 'cancelled') AND (r.status <> 'cancelled' OR r.termination IS NOT NULL)";
const MEASURED: &str =
    "SELECT r.id, r.run_id, r.loop_name, r.org, r.status, r.termination, r.started_at_ms, r.updated_at_ms,
  r.iterations, r.tokens, r.cost_usd FROM @.runs r ";
const FIND: &str = summary!("WHERE r.run_id = $1");
const FIND_BY_KEY: &str = summary!("WHERE r.start_key = $1");
const FIND_OF: &str = summary!("WHERE r.org = $2 AND r.run_id = $1");
const FIND_OF_NONE: &str = summary!("WHERE r.org IS NULL AND r.run_id = $1");

impl Database {
    pub(super) async fn events(&self, run_id: String, from: u64, most: usize) -> Result<Vec<String>, StoreError> {
        let from = i32::try_from(from).unwrap_or(i32::MAX);
        self.persist(|| self.read_events(&run_id, from, most)).await
    }

    async fn read_events(&self, run_id: &str, from: i32, most: usize) -> Result<Vec<String>, StatementError> {
        let damaged = |what: String| StatementError::Refused(StoreError::Corrupt(format!("run {run_id}: {what}")));
        let (mut events, mut next, mut bytes) = (Vec::new(), from, 0_usize);
        loop {
            // Who wants little reads few events at first.
            let page = if most < 64 * 1024 && next == from { 16 } else { PAGE_EVENTS };
            let parameters: [Parameter<'_>; 3] = [(&run_id, Type::TEXT), (&next, Type::INT4), (&page, Type::INT8)];
            let rows = self.slow.query(EVENTS, &parameters).await?;
            if rows.is_empty() {
                self.check_run(run_id).await?;
            }
            for row in &rows {
                let (seq, expected): (i32, i64) = (row.try_get(0)?, row.try_get(1)?);
                if seq != next {
                    return Err(damaged(format!("event {next} is missing")));
                }
                let event =
                    String::from_utf8(row.try_get(2)?).map_err(|_| damaged(format!("event {seq} is no text")))?;
                if sum(run_id, i64::from(seq), &event) != expected {
                    return Err(damaged(format!("event {seq} is not what was written")));
                }
                bytes = bytes.saturating_add(event.len());
                events.push(event);
                next = next.saturating_add(1);
                if bytes >= most {
                    return Ok(events);
                }
            }
            if i64::try_from(rows.len()).unwrap_or(i64::MAX) < page {
                break;
            }
        }
        if next < 1 { Err(StoreError::cut_short(run_id).into()) } else { Ok(events) }
    }

    /// Whether nothing was read because there is no such run.
    async fn check_run(&self, run_id: &str) -> Result<(), StatementError> {
        let rows = self.slow.query(RUN, &[(&run_id, Type::TEXT)]).await?;
        let missing = || StoreError::NoSuchRun(run_id.to_owned());
        rows.first().ok_or_else(missing)?;
        Ok(())
    }

    pub(super) async fn texts(&self, run_id: String) -> Result<Vec<Blob>, StoreError> {
        let damaged = |what: &str| StatementError::Refused(StoreError::Corrupt(format!("run {run_id}: {what}")));
        let texts = self.persist(|| async {
            let rows = self.slow.query(TEXTS, &[(&run_id, Type::TEXT)]).await?;
            if rows.is_empty() {
                self.check_run(&run_id).await?;
            }
            let mut texts = Vec::new();
            for row in rows {
                let (expected, text): (Vec<u8>, Option<Vec<u8>>) = (row.try_get(0)?, row.try_get(1)?);
                let text = text.and_then(|text| String::from_utf8(text).ok());
                let text = Blob::new(text.ok_or_else(|| damaged("a text of its documents or its prompt is missing"))?);
                if sha256(&text) != expected {
                    return Err(damaged("a text of its documents or its prompt is not what was written"));
                }
                texts.push(text);
            }
            Ok(texts)
        });
        texts.await
    }

    pub(super) async fn find(&self, run_id: String) -> Result<Option<RunSummary>, StoreError> {
        self.found(FIND, &[(&run_id, Type::TEXT)]).await
    }

    pub(super) async fn find_of(&self, org: Option<String>, run_id: String) -> Result<Option<RunSummary>, StoreError> {
        match &org {
            Some(org) => self.found(FIND_OF, &[(&run_id, Type::TEXT), (org, Type::TEXT)]).await,
            None => self.found(FIND_OF_NONE, &[(&run_id, Type::TEXT)]).await,
        }
    }

    pub(super) async fn find_by_key(&self, start_key: String) -> Result<Option<RunSummary>, StoreError> {
        self.found(FIND_BY_KEY, &[(&start_key, Type::TEXT)]).await
    }

    async fn found(&self, sql: &'static str, parameters: &[Parameter<'_>]) -> Result<Option<RunSummary>, StoreError> {
        let found =
            self.persist(|| async { self.quick.query(sql, parameters).await?.first().map(summary).transpose() });
        found.await
    }

    /// Runs, newest first unless the filter says otherwise, in the order of their creation, whatever the clock was.
    pub(super) async fn list(&self, filter: RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let (sql, values) = listed(LIST, &filter, None);
        let parameters: Vec<Parameter<'_>> = values.iter().map(|(value, of)| parameter(&**value, of)).collect();
        let runs = self.persist(|| async {
            let rows = self.slow.query_once(&sql, &parameters).await?;
            // A record that can't be read does not hide the others.
            Ok(rows.iter().map(|row| summary(row).unwrap_or_else(|trouble| damaged(row, trouble))).collect())
        });
        runs.await
    }

    /// What reports count of runs. They are read in pieces, by the index of their order: all at once, PostgreSQL would sort them.
    pub(super) async fn measured(&self, filter: RunFilter) -> Result<Vec<MeasuredRun>, StoreError> {
        let wanted = if filter.limit == 0 { usize::MAX } else { filter.limit };
        let mut piece = RunFilter { limit: wanted.min(MEASURED_AT_A_TIME), ..filter };
        let (mut runs, mut beyond) = (Vec::new(), None);
        loop {
            let (more, last) = self.measured_rows(&piece, beyond).await?;
            let is_whole = more.len() < piece.limit;
            runs.extend(more);
            piece.limit = wanted.saturating_sub(runs.len()).min(MEASURED_AT_A_TIME);
            beyond = last;
            if is_whole || piece.limit == 0 {
                return Ok(runs);
            }
        }
    }

    /// The next runs of a report, and the number of the last row.
    async fn measured_rows(
        &self,
        filter: &RunFilter,
        beyond: Option<i64>,
    ) -> Result<(Vec<MeasuredRun>, Option<i64>), StoreError> {
        let (sql, values) = listed(MEASURED, filter, beyond);
        let parameters: Vec<Parameter<'_>> = values.iter().map(|(value, of)| parameter(&**value, of)).collect();
        let runs = self.persist(|| async {
            let rows = self.slow.query_once(&sql, &parameters).await?;
            let columns = MeasuredPositions::of(&rows);
            let last = rows.last().map(|row| row.try_get("id")).transpose()?;
            Ok((rows.iter().map(|row| measured(row, &columns)).collect::<Result<_, StatementError>>()?, last))
        });
        runs.await
    }

    pub(super) async fn called_under(&self, run_id: String) -> Result<u64, StoreError> {
        let count = self.persist(|| async {
            let rows = self.quick.query(BELOW, &[(&run_id, Type::TEXT)]).await?;
            Ok(rows.first().map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default())
        });
        Ok(u64::try_from(count.await?).unwrap_or_default())
    }

    pub(super) async fn cancel_requested(&self, run_id: String) -> Result<Option<CancelRequest>, StoreError> {
        let found = self.persist(|| async {
            let rows = self.quick.query(CANCEL, &[(&run_id, Type::TEXT)]).await?;
            let missing = || StoreError::NoSuchRun(run_id.clone());
            let row = rows.first().ok_or_else(missing)?;
            let (requested, reason): (bool, Option<Vec<u8>>) = (row.try_get(0)?, row.try_get(1)?);
            let by: Option<String> = row.try_get(2)?;
            Ok(requested.then(|| CancelRequest { reason: reason.map(text_of), by }))
        });
        found.await
    }

    pub(super) async fn answer_token(&self, run_id: String, hash: String) -> Result<Option<AnswerToken>, StoreError> {
        let found = self.persist(|| async {
            let rows = self.quick.query(TOKEN, &[(&hash, Type::TEXT), (&run_id, Type::TEXT)]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            let pause: i32 = row.try_get(0)?;
            let (call, expires_at_ms, used) = (row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
            let pause = u32::try_from(pause).unwrap_or_default();
            Ok(Some(AnswerToken { hash: hash.clone(), pause, call, expires_at_ms, used }))
        });
        found.await
    }

    pub(super) async fn recall(&self, session: String) -> Result<BTreeMap<String, Value>, StoreError> {
        let memory = self.persist(|| async {
            let mut memory = BTreeMap::new();
            for row in self.quick.query(MEMORY, &[(&session, Type::TEXT)]).await? {
                let (key, value): (Vec<u8>, Vec<u8>) = (row.try_get(0)?, row.try_get(1)?);
                let key = text_of(key);
                let value = from_bytes(&value).map_err(|error| {
                    StoreError::Corrupt(format!("what session {session} remembers as {key} can't be read: {error}"))
                })?;
                memory.insert(key, value);
            }
            Ok(memory)
        });
        memory.await
    }
}

type SqlValue = (Box<dyn ToSql + Sync + Send>, Type);

fn parameter<'a>(value: &'a (dyn ToSql + Sync + Send), of: &Type) -> Parameter<'a> {
    (value, of.clone())
}

/// The clause of a status, exactly as lists show it; `asks`: whether runs under way are shown as queued or running, by their drivers.
fn status_clause(status: ListedStatus, asks: bool) -> Cow<'static, str> {
    const UNDER_WAY: &str = "r.status = 'running' AND NOT (r.failed_take_ups >= 3 AND r.driver IS NULL)";
    match status {
        ListedStatus::Running if asks => {
            format!("{UNDER_WAY} AND (r.called_by IS NOT NULL OR {})", lives!("r.driver")).into()
        }
        ListedStatus::Queued if asks => {
            format!("{UNDER_WAY} AND r.called_by IS NULL AND NOT {}", lives!("r.driver")).into()
        }
        ListedStatus::Running | ListedStatus::Queued => UNDER_WAY.into(),
        ListedStatus::Quarantined => "r.status = 'running' AND r.failed_take_ups >= 3 AND r.driver IS NULL".into(),
        // A word of ours is no text from outside.
        other => format!("r.status = '{}'", other.word()).into(),
    }
}

/// The statement of a list: only the clauses that its filter needs, so that their indexes are used.
/// `beyond`: only the rows after this one.
fn listed(select: &str, filter: &RunFilter, beyond: Option<i64>) -> (String, Vec<SqlValue>) {
    let (mut clauses, mut values): (Vec<String>, Vec<SqlValue>) = (Vec::new(), Vec::new());
    let mut and = |clause: &str, value: Option<SqlValue>| {
        values.extend(value);
        clauses.push(clause.replace('?', &format!("${}", values.len())));
    };
    let text = |text: &str| -> Option<SqlValue> { Some((Box::new(text.to_owned()), Type::TEXT)) };
    let number = |number: i64| -> Option<SqlValue> { Some((Box::new(number), Type::INT8)) };
    if filter.names_statuses() {
        let asks = filter.asks_for_drivers();
        let statuses = filter.statuses.iter().map(|status| status_clause(*status, asks));
        let waiting = filter.waiting.then_some(WAITING.into());
        let interrupted = filter.interrupted.then_some("r.status = 'cancelled' AND r.termination IS NULL".into());
        let any: Vec<String> = statuses.chain(waiting).chain(interrupted).map(|one| format!("({one})")).collect();
        and(&format!("({})", any.join(" OR ")), None);
    }
    if filter.for_humans {
        and(&format!("{WAITING} AND NOT ({WAITS_BY_ITSELF}) AND {DECIDABLE}"), None);
    }
    match filter.org.as_deref() {
        Some("") => and("r.org IS NULL", None),
        Some(org) => and("r.org = ?", text(org)),
        None => {}
    }
    if let Some(prefix) = &filter.id_prefix {
        and("r.run_id >= ?", text(prefix));
        and("r.run_id < ?", text(&format!("{prefix}{}", char::MAX)));
    }
    if let Some(name) = &filter.loop_name {
        and("r.loop_name = ?", text(name));
    }
    if let Some(session) = &filter.session {
        and("r.session = ?", text(session));
    }
    if let Some(search) = &filter.search {
        and("strpos(r.search_text, ?) > 0", text(&search_text(search)));
    }
    if let Some(since) = filter.since_ms {
        and("r.started_at_ms >= ?", number(since));
    }
    if let Some(until) = filter.until_ms {
        and("r.started_at_ms < ?", number(until));
    }
    if filter.asks_for_ends() {
        and(ENDED, None);
    }
    if let Some(since) = filter.ended_since_ms {
        and("r.updated_at_ms >= ?", number(since));
    }
    if let Some(until) = filter.ended_until_ms {
        and("r.updated_at_ms < ?", number(until));
    }
    let than = if filter.oldest_first { '>' } else { '<' };
    if let Some(row) = beyond {
        and(&format!("r.id {than} ?"), number(row));
    }
    if let Some(after) = &filter.after {
        and(&format!("r.id {than} (SELECT id FROM @.runs WHERE run_id = ?)"), text(after));
    }
    if !filter.called {
        and("r.called_by IS NULL", None);
    }
    if let Some(now_ms) = filter.due_ms {
        and("r.due_at_ms <= ?", number(now_ms));
    }
    if filter.callback_pending {
        and("r.callback = 'pending'", None);
    }
    let order = if filter.oldest_first { "ASC" } else { "DESC" };
    let limit = match i64::try_from(filter.limit) {
        Ok(most) if most > 0 => format!(" LIMIT {most}"),
        _ => String::new(),
    };
    let clauses = if clauses.is_empty() { String::new() } else { format!("WHERE {}", clauses.join(" AND ")) };
    (format!("{select}{clauses} ORDER BY r.id {order}{limit}"), values)
}

/// The status that a column holds.
pub(super) fn status_of(word: &str) -> Result<Status, StatementError> {
    known(word).map_err(|_| StoreError::Corrupt(format!("there is no {word}")).into())
}

fn summary(row: &Row) -> Result<RunSummary, StatementError> {
    let unknown = |word: &str| StoreError::Corrupt(format!("there is no {word}"));
    let (status, is_free, failed): (String, bool, i32) =
        (row.try_get("status")?, row.try_get("is_free")?, row.try_get("failed_take_ups")?);
    let status = match known(&status).map_err(|_| unknown(&status))? {
        Status::Running if is_free && u32::try_from(failed).unwrap_or_default() >= MOST_FAILED_TAKE_UPS => {
            Status::Quarantined
        }
        status => status,
    };
    let termination: Option<String> = row.try_get("termination")?;
    let termination = termination.map(|word| known(&word).map_err(|_| unknown(&word))).transpose()?;
    let (tokens, schedule): (Option<i64>, Option<Vec<u8>>) = (row.try_get("tokens")?, row.try_get("schedule")?);
    let (iterations, identity): (i32, Vec<u8>) = (row.try_get("iterations")?, row.try_get("identity")?);
    let (fence, title): (i64, Option<String>) = (row.try_get("fence")?, row.try_get("title")?);
    let is_complete = tokens.is_some() && title.is_some() && row.try_get("is_searchable")?;
    Ok(RunSummary {
        run_id: row.try_get("run_id")?,
        loop_name: row.try_get("loop_name")?,
        session: row.try_get("session")?,
        title: title.filter(|title| !title.is_empty()).map(Into::into),
        status,
        termination,
        iterations: u32::try_from(iterations).unwrap_or_default(),
        started_at_ms: row.try_get("started_at_ms")?,
        updated_at_ms: row.try_get("updated_at_ms")?,
        tokens: tokens.map(|tokens| u64::try_from(tokens).unwrap_or_default()),
        cost_usd: row.try_get("cost_usd")?,
        error: row.try_get("error")?,
        model_wait: None,
        unsent: Vec::new(),
        question: row.try_get("question")?,
        due_at_ms: row.try_get("due_at_ms")?,
        schedule: schedule.map(text_of),
        scheduled_for_ms: row.try_get("scheduled_for_ms")?,
        behind: row.try_get::<_, Option<String>>("behind")?.map(Into::into),
        is_complete,
        driven: row.try_get("is_driven")?,
        waits_since_ms: row.try_get("waits_since_ms")?,
        damaged: None,
        identity: text_of(identity),
        parent_run_id: row.try_get("called_by")?,
        org: row.try_get("org")?,
        token: row.try_get("token")?,
        callback: callback(row)?,
    }
    .without_stale(u64::try_from(fence).unwrap_or_default()))
}

/// Where the columns of a measured run are: a report reads many rows, so each name is looked for once.
#[derive(Default)]
struct MeasuredPositions {
    run_id: usize,
    loop_name: usize,
    org: usize,
    status: usize,
    termination: usize,
    started_at_ms: usize,
    updated_at_ms: usize,
    iterations: usize,
    tokens: usize,
    cost_usd: usize,
}

impl MeasuredPositions {
    fn of(rows: &[Row]) -> Self {
        let Some(row) = rows.first() else { return Self::default() };
        let at = |name: &str| row.columns().iter().position(|column| column.name() == name).unwrap_or(usize::MAX);
        Self {
            run_id: at("run_id"),
            loop_name: at("loop_name"),
            org: at("org"),
            status: at("status"),
            termination: at("termination"),
            started_at_ms: at("started_at_ms"),
            updated_at_ms: at("updated_at_ms"),
            iterations: at("iterations"),
            tokens: at("tokens"),
            cost_usd: at("cost_usd"),
        }
    }
}

fn measured(row: &Row, columns: &MeasuredPositions) -> Result<MeasuredRun, StatementError> {
    let unknown = |word: &str| StoreError::Corrupt(format!("there is no {word}"));
    let (status, termination): (&str, Option<&str>) = (row.try_get(columns.status)?, row.try_get(columns.termination)?);
    let (iterations, tokens): (i32, Option<i64>) = (row.try_get(columns.iterations)?, row.try_get(columns.tokens)?);
    Ok(MeasuredRun {
        run_id: row.try_get(columns.run_id)?,
        loop_name: row.try_get(columns.loop_name)?,
        org: row.try_get(columns.org)?,
        status: known(status).map_err(|_| unknown(status))?,
        termination: termination.map(|word| known(word).map_err(|_| unknown(word))).transpose()?,
        started_at_ms: row.try_get(columns.started_at_ms)?,
        updated_at_ms: row.try_get(columns.updated_at_ms)?,
        iterations: u32::try_from(iterations).unwrap_or_default(),
        tokens: tokens.map(|tokens| u64::try_from(tokens).unwrap_or_default()),
        cost_usd: row.try_get(columns.cost_usd)?,
    })
}

fn callback(row: &Row) -> Result<Option<Callback>, StatementError> {
    let (url, state): (Option<String>, Option<String>) = (row.try_get("callback_url")?, row.try_get("callback")?);
    let (Some(url), Some(state)) = (url, state) else { return Ok(None) };
    let (tries, posted_pause): (i32, i32) = (row.try_get("callback_tries")?, row.try_get("callback_pause")?);
    let state = known(&state).map_err(|_| StoreError::Corrupt(format!("there is no {state}")))?;
    let progress = CallbackProgress { state, tries: u32::try_from(tries).unwrap_or_default() };
    Ok(Some(Callback { url, progress, posted_pause: u32::try_from(posted_pause).unwrap_or_default() }))
}

/// What can still be read of a damaged record.
fn damaged(row: &Row, trouble: StatementError) -> RunSummary {
    RunSummary {
        loop_name: row.try_get("loop_name").unwrap_or_default(),
        started_at_ms: row.try_get("started_at_ms").unwrap_or_default(),
        updated_at_ms: row.try_get("updated_at_ms").unwrap_or_default(),
        parent_run_id: row.try_get("called_by").unwrap_or_default(),
        org: row.try_get("org").unwrap_or_default(),
        token: row.try_get("token").unwrap_or_default(),
        ..RunSummary::damaged(row.try_get("run_id").unwrap_or_default(), trouble.into_fault().to_string())
    }
}
