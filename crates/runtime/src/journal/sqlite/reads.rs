//! Reads: on their own threads with their own connections, which in WAL mode neither wait for the writer nor
//! delay it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::types::{Type, Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::columns::selected;
use super::database_errors::{RequestError, fault};
use super::drivers::Drivers;
use super::leases::living;
use super::line::behind;
use super::queue::{self, OtherDrivers, listed};
use super::schema::open_to_read;
use super::take_ups::below;
use crate::journal::column_words::{self, sum};
use crate::journal::lease_clock::Clock;
use crate::journal::{
    Callback, CallbackProgress, CancelRequest, ListedStatus, MOST_FAILED_TAKE_UPS, MeasuredRun, QueueQuery, QueuedRuns,
    RunFilter, RunHead, RunSummary, StoreError, Ticket, search_text,
};
use loopctl_engine::outcome::Status;
use loopctl_lang::policy::json_text;

type Question = Box<dyn FnOnce(Result<&Connection, StoreError>) + Send>;

/// A thread that reads. The first question opens its connection.
pub(super) struct SqliteReader {
    inbox: Option<Sender<Question>>,
    thread: Option<JoinHandle<()>>,
    store: String,
}

impl SqliteReader {
    /// Starts the thread.
    pub(super) fn start(path: &Path, patience: Duration) -> std::io::Result<Self> {
        let (inbox, questions) = channel::<Question>();
        let (path, store): (PathBuf, _) = (path.to_owned(), path.display().to_string());
        let name = store.clone();
        let thread = std::thread::Builder::new().name("journal-read".to_owned()).spawn(move || {
            let mut connection = None;
            for question in questions {
                if connection.is_none() {
                    connection = match open_to_read(&path, patience) {
                        Ok(opened) => Some(opened),
                        Err(error) => {
                            question(Err(fault(&error, &name, None)));
                            continue;
                        }
                    };
                }
                if let Some(connection) = &connection {
                    question(Ok(connection));
                }
            }
        })?;
        Ok(Self { inbox: Some(inbox), thread: Some(thread), store })
    }

    /// Asks a question; `run_id` is the run in question, if there is one.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        run_id: Option<&str>,
        query: impl FnOnce(&Connection) -> Result<T, RequestError> + Send + 'static,
    ) -> Ticket<T> {
        let (asker, answer) = oneshot::channel();
        let (store, run_id) = (self.store.clone(), run_id.map(str::to_owned));
        let question: Question = Box::new(move |connection| {
            let found = connection.and_then(|connection| {
                query(connection).map_err(|trouble| trouble.into_fault(&store, run_id.as_deref()))
            });
            // A caller who has gone wants no answer.
            let _ = asker.send(found);
        });
        if let Some(inbox) = &self.inbox {
            // If the thread is gone, the sender is dropped, and the ticket reports that.
            let _ = inbox.send(question);
        }
        Ticket::Coming(answer)
    }
}

impl Drop for SqliteReader {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The events of a run from number `from` on until they amount to `most` bytes, each checked against its number
/// and its sum.
pub(super) fn events(
    connection: &Connection,
    run_id: &str,
    from: i64,
    most: usize,
) -> Result<Vec<String>, RequestError> {
    let damaged = |what: String| RequestError::Refused(StoreError::Corrupt(format!("run {run_id}: {what}")));
    let (row, known): (i64, i64) = connection
        .prepare_cached("SELECT id, events FROM runs WHERE run_id = ?1")?
        .query_row([run_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))?;
    let mut query =
        connection.prepare_cached("SELECT seq, sum, event FROM events WHERE run = ?1 AND seq >= ?2 ORDER BY seq")?;
    let mut rows = query.query([row, from])?;
    let mut events = Vec::new();
    let (mut next, mut bytes) = (from, 0_usize);
    while let Some(row) = rows.next()? {
        let (seq, expected): (i64, i64) = (row.get(0)?, row.get(1)?);
        if seq != next {
            return Err(damaged(format!("event {next} is missing")));
        }
        let event: String = row.get(2).map_err(|_| damaged(format!("event {seq} is no text")))?;
        if sum(run_id, seq, &event) != expected {
            return Err(damaged(format!("event {seq} is not what was written")));
        }
        bytes = bytes.saturating_add(event.len());
        events.push(event);
        next += 1;
        if bytes >= most {
            // Later rows are not read now.
            return Ok(events);
        }
    }
    if next < known.max(1) { Err(StoreError::cut_short(run_id).into()) } else { Ok(events) }
}

/// Whether a run's end was asked for: one look-up by key.
pub(super) fn cancel_request(connection: &Connection, run_id: &str) -> Result<Option<CancelRequest>, RequestError> {
    let found = connection
        .prepare_cached("SELECT cancel_requested, cancel_reason, cancel_by FROM runs WHERE run_id = ?1")?
        .query_row([run_id], |row| Ok((row.get::<_, bool>(0)?, CancelRequest { reason: row.get(1)?, by: row.get(2)? })))
        .optional()?;
    let (requested, request) = found.ok_or_else(|| StoreError::NoSuchRun(run_id.to_owned()))?;
    Ok(requested.then_some(request))
}

/// How many runs were called by this one, and by those that it called.
pub(super) fn called_under(connection: &Connection, run_id: &str) -> Result<u64, RequestError> {
    let sql = "SELECT count(*) FROM runs WHERE run_id > ?1 AND run_id < ?2 AND parent_run_id IS NOT NULL";
    let called: i64 = connection.prepare_cached(sql)?.query_row(below(run_id), |row| row.get(0))?;
    Ok(u64::try_from(called).unwrap_or_default())
}

pub(super) fn memory(connection: &Connection, session: &str) -> Result<BTreeMap<String, Value>, RequestError> {
    let mut query = connection.prepare_cached("SELECT key, value FROM session_memory WHERE session = ?1")?;
    let mut rows = query.query([session])?;
    let mut memory = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (key, text): (String, String) = (row.get(0)?, row.get(1)?);
        let value = json_text::read(&text).map_err(|error| {
            StoreError::Corrupt(format!("what session {session} remembers as {key} can't be read: {error}"))
        })?;
        memory.insert(key, value);
    }
    Ok(memory)
}

/// Since when a run that is under way has waited for a human.
macro_rules! waits {
    () => {
        "CASE WHEN runs.status = 'running' THEN runs.waits_since_ms END"
    };
}

/// The same, for runs of which a run below waits too. Only rows of `runs_by_waiting` are read.
macro_rules! waits_with_those_below {
    () => {
        "CASE WHEN runs.status = 'running' THEN coalesce(runs.waits_since_ms, (
           SELECT min(coalesce(below.waits_since_ms, below.updated_at_ms)) FROM runs AS below INDEXED BY runs_by_waiting
           WHERE below.parent_run_id IS NOT NULL AND (below.status = 'paused' OR below.waits_since_ms IS NOT NULL)
             AND below.run_id > runs.run_id || '.' AND below.run_id < runs.run_id || '/'
             AND (below.status = 'running' OR below.status = 'paused'
               AND coalesce(below.termination, '') NOT IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')))) END"
    };
}

macro_rules! summary {
    ($from:literal) => {
        summary!($from, waits!())
    };
    ($from:literal, $waits:expr) => {
        concat!(
            "SELECT runs.run_id AS run_id, loop_name, session, status, termination, iterations, started_at_ms, updated_at_ms,
               identity, runs.driver AS driver, until_ms, org, callback_url, callback, callback_tries, failed_take_ups,
               parent_run_id, callback_pause, token, tokens, cost_usd, error, question, due_at_ms, fence,
               search_text IS NOT NULL AS is_searchable, title,
               (SELECT schedule FROM scheduled_runs WHERE run_id = runs.run_id) AS schedule,
               (SELECT due_at_ms FROM scheduled_runs WHERE run_id = runs.run_id) AS scheduled_for_ms, ",
            behind!(),
            " AS behind, ",
            $waits,
            " AS waits_since_ms ",
            $from
        )
    };
}

/// Since when a run that is under way has waited for a human, or a run below it.
pub(super) const WAITS: &str = waits_with_those_below!();
const LIST: &str = summary!("FROM runs LEFT JOIN drivers USING (driver)", waits_with_those_below!());
/// The bound by status comes first: the rows of runs that ended are not read.
const WAITING: &str = concat!(
    "runs.status IN ('paused', 'running') AND (runs.status = 'paused' OR (",
    waits_with_those_below!(),
    ") IS NOT NULL)"
);
/// Of what [`WAITING`] lists, what no human is asked for.
const WAITS_BY_ITSELF: &str = "runs.status = 'paused'
  AND coalesce(runs.termination, '') IN ('model_error', 'waiting', 'waiting_event', 'spending_limit')";
/// Of the same, what humans can decide about: it does not wait in its line, and did not come in a file without being continued.
pub(super) const DECIDABLE: &str =
    concat!("substr(runs.identity, 1, 10) <> 'imported: ' AND (", behind!(), ") IS NULL");
/// The SQL form of [`RunSummary::has_ended`].
const ENDED: &str =
    "status IN ('completed', 'failed', 'cancelled') AND (status <> 'cancelled' OR termination IS NOT NULL)";
const FIND: &str = summary!("FROM runs LEFT JOIN drivers USING (driver) WHERE run_id = ?1");
/// Both columns are in one index: no row of another organisation's run is read.
pub(super) const FIND_OF: &str =
    summary!("FROM runs INDEXED BY runs_by_owner LEFT JOIN drivers USING (driver) WHERE org IS ?1 AND run_id = ?2");

const MEASURED: &str = "SELECT run_id, loop_name, org, status, termination, started_at_ms, updated_at_ms, iterations,
  tokens, cost_usd FROM runs";

const FIND_BY_KEY: &str = summary!("FROM runs LEFT JOIN drivers USING (driver) WHERE start_key = ?1");

/// The SQL form of [`status`]; the number is [`MOST_FAILED_TAKE_UPS`].
pub(super) const SET_ASIDE: &str = "(failed_take_ups >= 3 AND runs.driver IS NULL)";
const _: () = assert!(MOST_FAILED_TAKE_UPS == 3);

/// Finds which runs are driven: asks once for each driver.
pub(super) struct Census {
    drivers: Drivers,
    clock: Clock,
    alive: HashMap<String, bool>,
}

impl Census {
    pub(super) fn new(drivers: Drivers, clock: Clock) -> Self {
        Self { drivers, clock, alive: HashMap::new() }
    }

    fn drives(&mut self, driver: Option<String>, until_ms: Option<i64>) -> bool {
        let (Some(driver), Some(until_ms)) = (driver, until_ms) else {
            return false;
        };
        let drivers = &self.drivers;
        self.clock.wall_ms() < until_ms && *self.alive.entry(driver).or_insert_with_key(|driver| drivers.alive(driver))
    }

    pub(super) fn find(&mut self, connection: &Connection, run_id: &str) -> Result<Option<RunSummary>, RequestError> {
        let mut query = connection.prepare_cached(FIND)?;
        let columns = SummaryColumns::of(&query)?;
        Ok(query.query_row([run_id], |row| self.summary(row, &columns)).optional()?)
    }

    /// One run of this organisation, or of none.
    pub(super) fn find_of(
        &mut self,
        connection: &Connection,
        org: Option<&str>,
        run_id: &str,
    ) -> Result<Option<RunSummary>, RequestError> {
        let mut query = connection.prepare_cached(FIND_OF)?;
        let columns = SummaryColumns::of(&query)?;
        Ok(query.query_row((org, run_id), |row| self.summary(row, &columns)).optional()?)
    }

    /// The run that was started with this key.
    pub(super) fn find_by_key(
        &mut self,
        connection: &Connection,
        start_key: &str,
    ) -> Result<Option<RunSummary>, RequestError> {
        let mut query = connection.prepare_cached(FIND_BY_KEY)?;
        let columns = SummaryColumns::of(&query)?;
        Ok(query.query_row([start_key], |row| self.summary(row, &columns)).optional()?)
    }

    /// How far these runs are.
    pub(super) fn heads(&mut self, connection: &Connection, run_ids: &[String]) -> Result<Vec<RunHead>, RequestError> {
        let mut query = connection.prepare_cached(
            "SELECT run_id, (SELECT max(seq) + 1 FROM events WHERE run = runs.id) AS events, until_ms, status,
               runs.driver AS driver, failed_take_ups
             FROM runs LEFT JOIN drivers USING (driver) WHERE run_id IN (SELECT value FROM json_each(?1))",
        )?;
        let columns = HeadColumns::of(&query)?;
        let mut rows = query.query([listed(run_ids)])?;
        let mut heads = Vec::new();
        while let Some(row) = rows.next()? {
            let events: Option<i64> = row.get(columns.events)?;
            heads.push(RunHead {
                run_id: row.get(columns.run_id)?,
                events: events.and_then(|events| u64::try_from(events).ok()).unwrap_or_default(),
                status: status(row, columns.status, columns.failed_take_ups, columns.driver)?,
                driven: self.drives(row.get(columns.driver)?, row.get(columns.until_ms)?),
            });
        }
        Ok(heads)
    }

    /// The runs that wait for a driver.
    pub(super) fn queued(
        &self,
        connection: &Connection,
        waiting: &QueueQuery,
        folder: Option<&str>,
    ) -> Result<Vec<QueuedRuns>, RequestError> {
        let now_ms = self.clock.wall_ms();
        let living = living(connection, |name, until_ms| now_ms < until_ms && self.drivers.alive(name))?;
        let foreign = self.drivers.foreign(connection, folder)?;
        queue::queued(connection, waiting, &OtherDrivers { living, foreign })
    }

    /// Runs, newest first unless the filter says otherwise, in the order of their creation, whatever the clock was.
    pub(super) fn list(
        &mut self,
        connection: &Connection,
        filter: &RunFilter,
    ) -> Result<Vec<RunSummary>, RequestError> {
        let (bound, values) = self.bound(connection, filter)?;
        let mut query = connection.prepare_cached(&format!("{LIST}{bound}"))?;
        let columns = SummaryColumns::of(&query)?;
        let mut rows = query.query(params_from_iter(values))?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            // A record that can't be read does not hide the others.
            runs.push(self.summary(row, &columns).unwrap_or_else(|error| damaged(row, &columns, &error)));
        }
        Ok(runs)
    }

    /// What reports count of runs.
    pub(super) fn measured(
        &self,
        connection: &Connection,
        filter: &RunFilter,
    ) -> Result<Vec<MeasuredRun>, RequestError> {
        let (bound, values) = self.bound(connection, filter)?;
        let mut query = connection.prepare_cached(&format!("{MEASURED}{bound}"))?;
        let columns = MeasuredColumns::of(&query)?;
        let mut rows = query.query(params_from_iter(values))?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next()? {
            runs.push(measured(row, &columns)?);
        }
        Ok(runs)
    }

    /// The rest of a statement that reads the rows of a filter.
    fn bound(&self, connection: &Connection, filter: &RunFilter) -> Result<(String, Vec<SqlValue>), RequestError> {
        let limit = if filter.limit == 0 { -1 } else { i64::try_from(filter.limit).unwrap_or(-1) };
        let living = match filter.asks_for_drivers() {
            true => {
                let now_ms = self.clock.wall_ms();
                living(connection, |name, until_ms| now_ms < until_ms && self.drivers.alive(name))?
            }
            false => Vec::new(),
        };
        let (clauses, mut values) = clauses(filter, &living);
        values.push(limit.into());
        let order = if filter.oldest_first { "ASC" } else { "DESC" };
        Ok((format!("{clauses} ORDER BY id {order} LIMIT ?"), values))
    }

    fn summary(&mut self, row: &Row<'_>, columns: &SummaryColumns) -> rusqlite::Result<RunSummary> {
        let termination = row.get_ref(columns.termination)?.as_str_or_null()?;
        let (tokens, title): (Option<i64>, Option<String>) = (row.get(columns.tokens)?, row.get(columns.title)?);
        let is_complete = tokens.is_some() && title.is_some() && row.get(columns.is_searchable)?;
        let fence = u64::try_from(row.get::<_, i64>(columns.fence)?).unwrap_or_default();
        Ok(RunSummary {
            run_id: row.get(columns.run_id)?,
            loop_name: row.get(columns.loop_name)?,
            session: row.get(columns.session)?,
            title: title.filter(|title| !title.is_empty()).map(Into::into),
            status: status(row, columns.status, columns.failed_take_ups, columns.driver)?,
            termination: termination.map(|word| known(columns.termination, word)).transpose()?,
            iterations: row.get(columns.iterations)?,
            started_at_ms: row.get(columns.started_at_ms)?,
            updated_at_ms: row.get(columns.updated_at_ms)?,
            tokens: tokens.map(|tokens| u64::try_from(tokens).unwrap_or_default()),
            cost_usd: row.get(columns.cost_usd)?,
            error: row.get(columns.error)?,
            model_wait: None,
            unsent: Vec::new(),
            question: row.get(columns.question)?,
            due_at_ms: row.get(columns.due_at_ms)?,
            schedule: row.get(columns.schedule)?,
            scheduled_for_ms: row.get(columns.scheduled_for_ms)?,
            behind: row.get::<_, Option<String>>(columns.behind)?.map(Into::into),
            is_complete,
            driven: self.drives(row.get(columns.driver)?, row.get(columns.until_ms)?),
            waits_since_ms: row.get(columns.waits_since_ms)?,
            damaged: None,
            identity: row.get(columns.identity)?,
            parent_run_id: row.get(columns.parent_run_id)?,
            org: row.get(columns.org)?,
            token: row.get(columns.token)?,
            callback: callback(row, columns)?,
        }
        .without_stale(fence))
    }
}

/// The clause of a status, exactly as lists show it; `asks`: whether runs under way are shown as queued or running, by their drivers.
fn status_clause(status: ListedStatus, asks: bool, living: &str) -> (String, Option<SqlValue>) {
    let has_driver = "runs.driver IN (SELECT value FROM json_each(?))";
    let names = || Some(living.to_owned().into());
    match status {
        ListedStatus::Running if asks => {
            (format!("status = 'running' AND NOT {SET_ASIDE} AND (parent_run_id IS NOT NULL OR {has_driver})"), names())
        }
        ListedStatus::Queued if asks => (
            format!(
                "status = 'running' AND NOT {SET_ASIDE} AND parent_run_id IS NULL
                   AND (runs.driver IS NULL OR NOT {has_driver})"
            ),
            names(),
        ),
        ListedStatus::Running | ListedStatus::Queued => (format!("status = 'running' AND NOT {SET_ASIDE}"), None),
        ListedStatus::Quarantined => (format!("status = 'running' AND {SET_ASIDE}"), None),
        other => ("status = ?".to_owned(), Some(other.word().to_owned().into())),
    }
}

fn measured(row: &Row<'_>, columns: &MeasuredColumns) -> rusqlite::Result<MeasuredRun> {
    let termination = row.get_ref(columns.termination)?.as_str_or_null()?;
    let tokens: Option<i64> = row.get(columns.tokens)?;
    Ok(MeasuredRun {
        run_id: row.get(columns.run_id)?,
        loop_name: row.get(columns.loop_name)?,
        org: row.get(columns.org)?,
        status: known(columns.status, row.get_ref(columns.status)?.as_str()?)?,
        termination: termination.map(|word| known(columns.termination, word)).transpose()?,
        started_at_ms: row.get(columns.started_at_ms)?,
        updated_at_ms: row.get(columns.updated_at_ms)?,
        iterations: row.get(columns.iterations)?,
        tokens: tokens.map(|tokens| u64::try_from(tokens).unwrap_or_default()),
        cost_usd: row.get(columns.cost_usd)?,
    })
}

/// The statement of a list, for a look at its plan.
#[cfg(test)]
pub(super) fn listing(filter: &RunFilter) -> String {
    format!("{LIST}{} ORDER BY id DESC LIMIT ?", clauses(filter, &[]).0)
}

/// A filter in SQL: only the clauses that it needs, so that their indexes are used. `living`: the drivers that live, if the
/// filter asks for drivers.
fn clauses(filter: &RunFilter, living: &[String]) -> (String, Vec<SqlValue>) {
    let mut clauses = String::new();
    let mut values = Vec::new();
    let mut and_all = |clause: &str, bound: Vec<SqlValue>| {
        clauses.push_str(if clauses.is_empty() { " WHERE " } else { " AND " });
        clauses.push_str(clause);
        values.extend(bound);
    };
    if filter.names_statuses() {
        let living = listed(living);
        let asks = filter.asks_for_drivers();
        let statuses = filter.statuses.iter().map(|status| status_clause(*status, asks, &living));
        let waiting = filter.waiting.then(|| (format!("{WAITING} AND NOT (status = 'running' AND {SET_ASIDE})"), None));
        let interrupted = filter.interrupted.then(|| ("status = 'cancelled' AND termination IS NULL".to_owned(), None));
        let (any, bound): (Vec<String>, Vec<Option<SqlValue>>) = statuses.chain(waiting).chain(interrupted).unzip();
        and_all(
            &format!("({})", any.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" OR ")),
            bound.into_iter().flatten().collect(),
        );
    }
    let mut and = |clause: &str, value: Option<SqlValue>| and_all(clause, value.into_iter().collect());
    if filter.for_humans {
        let is_set_aside = format!("status = 'running' AND {SET_ASIDE}");
        and(&format!("{WAITING} AND NOT ({WAITS_BY_ITSELF}) AND NOT ({is_set_aside}) AND {DECIDABLE}"), None);
    }
    match filter.org.as_deref() {
        // The plus keeps `runs_by_owner` out, in which the runs of none are not in their order: all of them would be sorted.
        Some("") => and("+org IS NULL", None),
        Some(org) => and("org = ?", Some(org.to_owned().into())),
        None => {}
    }
    if let Some(prefix) = &filter.id_prefix {
        // As bounds of the index: no pattern, and no row of another beginning.
        and("run_id >= ?", Some(prefix.clone().into()));
        and("run_id < ?", Some(format!("{prefix}{}", char::MAX).into()));
    }
    if let Some(name) = &filter.loop_name {
        and("loop_name = ?", Some(name.clone().into()));
    }
    if let Some(session) = &filter.session {
        and("session = ?", Some(session.clone().into()));
    }
    if let Some(text) = &filter.search {
        and("instr(search_text, ?) > 0", Some(search_text(text).into()));
    }
    if let Some(since) = filter.since_ms {
        and("started_at_ms >= ?", Some(since.into()));
    }
    if let Some(until) = filter.until_ms {
        and("started_at_ms < ?", Some(until.into()));
    }
    if filter.asks_for_ends() {
        and(ENDED, None);
    }
    if let Some(since) = filter.ended_since_ms {
        and("updated_at_ms >= ?", Some(since.into()));
    }
    if let Some(until) = filter.ended_until_ms {
        and("updated_at_ms < ?", Some(until.into()));
    }
    if let Some(after) = &filter.after {
        let than = if filter.oldest_first { '>' } else { '<' };
        and(&format!("id {than} (SELECT id FROM runs WHERE run_id = ?)"), Some(after.clone().into()));
    }
    if !filter.called {
        and("parent_run_id IS NULL", None);
    }
    if let Some(now_ms) = filter.due_ms {
        and("due_at_ms <= ?", Some(now_ms.into()));
    }
    if filter.callback_pending {
        and("callback = 'pending'", None);
    }
    (clauses, values)
}

selected! {
    /// What is read of a run for its summary.
    struct SummaryColumns {
        run_id, loop_name, session, status, termination, iterations, started_at_ms, updated_at_ms, identity, driver, until_ms,
        org, callback_url, callback, callback_tries, failed_take_ups, parent_run_id, callback_pause, token, waits_since_ms,
        tokens, cost_usd, error, question, due_at_ms, fence, is_searchable, title, schedule, scheduled_for_ms, behind,
    }
}

selected! {
    /// What is read of a run for a report.
    struct MeasuredColumns {
        run_id, loop_name, org, status, termination, started_at_ms, updated_at_ms, iterations, tokens, cost_usd,
    }
}

selected! {
    /// What is read of a run to find out how far it is.
    struct HeadColumns { run_id, events, until_ms, status, driver, failed_take_ups, }
}

/// The status of a row: that of the run, unless it is quarantined and nobody drives it.
fn status(row: &Row<'_>, status: usize, failed_take_ups: usize, driver: usize) -> rusqlite::Result<Status> {
    let status = known(status, row.get_ref(status)?.as_str()?)?;
    let set_aside =
        row.get::<_, u32>(failed_take_ups)? >= MOST_FAILED_TAKE_UPS && row.get_ref(driver)? == ValueRef::Null;
    Ok(if status == Status::Running && set_aside { Status::Quarantined } else { status })
}

fn callback(row: &Row<'_>, columns: &SummaryColumns) -> rusqlite::Result<Option<Callback>> {
    let state = row.get_ref(columns.callback)?.as_str_or_null()?;
    let (Some(url), Some(state)) = (row.get::<_, Option<String>>(columns.callback_url)?, state) else {
        return Ok(None);
    };
    let progress = CallbackProgress { state: known(columns.callback, state)?, tries: row.get(columns.callback_tries)? };
    Ok(Some(Callback { url, progress, posted_pause: row.get(columns.callback_pause)? }))
}

/// The status that a column holds.
pub(super) fn status_of(column: ValueRef<'_>) -> rusqlite::Result<Status> {
    known(0, column.as_str()?)
}

/// Reads a word of one of our enums.
fn known<'a, T: Deserialize<'a>>(column: usize, word: &'a str) -> rusqlite::Result<T> {
    column_words::known(word)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error)))
}

/// What can still be read of a damaged record.
fn damaged(row: &Row<'_>, columns: &SummaryColumns, error: &rusqlite::Error) -> RunSummary {
    let text = |column: usize| {
        let bytes = row.get_ref(column).ok().and_then(|value| value.as_bytes().ok());
        bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    };
    RunSummary {
        loop_name: text(columns.loop_name),
        started_at_ms: row.get(columns.started_at_ms).unwrap_or_default(),
        updated_at_ms: row.get(columns.updated_at_ms).unwrap_or_default(),
        identity: text(columns.identity),
        parent_run_id: row.get(columns.parent_run_id).unwrap_or_default(),
        org: row.get(columns.org).unwrap_or_default(),
        token: row.get(columns.token).unwrap_or_default(),
        ..RunSummary::damaged(text(columns.run_id), error.to_string())
    }
}
