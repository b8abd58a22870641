//! Writes: each request to the store, with its statements. A request checks before it writes; a refused request
//! leaves the transaction unchanged.

use std::sync::LazyLock;

use rusqlite::{Connection, OptionalExtension, params};

use super::answer_tokens;
use super::audit;
use super::columns::{NamedValue, assignments, names, values, written};
use super::database_errors::RequestError;
use super::decisions;
use super::leases::{HeldLease, Leases};
use super::line;
use super::record_columns::RecordRow;
use super::scheduled_runs;
use super::take_ups::{self, TakeUps};
use super::texts;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::column_words::{sum, word};
use crate::journal::{
    Append, CALLBACK_LEASE, CallbackState, CancelRequest, Created, Lease, NewRun, StatusRecord, StoreError, failpoint,
};
use loopctl_engine::outcome::Status;

written! {
    /// The columns of a new run, beside its record.
    struct NewRunRow<'a> {
        run_id: &'a str,
        fence: i64,
        driver: &'a str,
        events: i64,
        started_at_ms: i64,
        due_at_ms: Option<i64>,
        session: Option<&'a str>,
        loop_name: &'a str,
        identity: &'a str,
        org: Option<&'a str>,
        token: Option<&'a str>,
        parent_run_id: Option<&'a str>,
        start_key: Option<&'a str>,
        callback_url: Option<&'a str>,
        callback: Option<String>,
        callback_at_ms: Option<i64>,
        callback_by: &'a str,
        search_text: Option<&'a str>,
        title: Option<&'a str>,
        line: Option<&'a str>,
        line_limit: Option<u32>,
        line_rule: Option<String>,
        place: Option<i64>,
    }
}

/// A new run. Its folder is that of its first driver.
static INSERT_RUN: LazyLock<String> = LazyLock::new(|| {
    let columns = [NewRunRow::NAMES, RecordRow::NAMES].concat();
    format!(
        "INSERT INTO runs ({}, folder) VALUES ({}, (SELECT folder FROM drivers WHERE driver = :driver))",
        names(&columns),
        values(&columns)
    )
});

/// The record of a run. A paused run is due at once when a decision waits for it.
static UPDATE_RECORD: LazyLock<String> = LazyLock::new(|| {
    format!(
        "UPDATE runs SET {}, events = :events, callback_at_ms = :callback_at_ms, callback_by = :callback_by,
           due_at_ms = CASE WHEN :status = 'paused' AND EXISTS (
             SELECT 1 FROM decisions WHERE run_id = runs.run_id AND refused IS NULL) THEN 0 ELSE :due_at_ms END
         WHERE id = :id",
        assignments(RecordRow::NAMES)
    )
});

/// The record of a run that was and stays under way: of its columns, only those change that are in no index. The other
/// update writes the entries of the run in most indexes anew, also where they stay the same.
const UPDATE_PROGRESS: &str = "UPDATE runs
  SET iterations = :iterations, tokens = :tokens, cost_usd = :cost_usd, updated_at_ms = :updated_at_ms, events = :events
  WHERE id = :id AND status = 'running' AND :status = 'running' AND callback_at_ms IS NULL AND termination IS :termination
    AND waits_since_ms IS :waits_since_ms AND due_at_ms IS :due_at_ms AND error IS :error AND question IS :question
    AND awaits IS :awaits";

fn insert_event(
    connection: &Connection,
    key: (i64, i64, &str),
    event: &str,
    right: (i64, &str),
) -> rusqlite::Result<bool> {
    let (row, seq, run_id) = key;
    let (fence, driver) = right;
    let written = connection
        .prepare_cached(
            "INSERT INTO events (run, seq, sum, event) SELECT ?1, ?2, ?3, ?4
             WHERE EXISTS (SELECT 1 FROM runs WHERE id = ?1 AND fence = ?5 AND driver = ?6)",
        )?
        .execute(params![row, seq, sum(run_id, seq, event), event, fence, driver])?;
    failpoint::written(event);
    Ok(written == 1)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The run that has the key of a start.
fn has_key(connection: &Connection, start_key: Option<&str>) -> rusqlite::Result<Option<String>> {
    let Some(start_key) = start_key else { return Ok(None) };
    connection
        .prepare_cached("SELECT run_id FROM runs WHERE start_key = ?1")?
        .query_row([start_key], |row| row.get(0))
        .optional()
}

impl WriteRequest for NewRun {
    type Answer = Created;

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn events(&self) -> usize {
        1
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Created, RequestError> {
        let there = transaction
            .connection
            .prepare_cached("SELECT identity = ?2 FROM runs WHERE run_id = ?1")?
            .query_row([&self.run_id, &self.identity], |row| row.get::<_, bool>(0))
            .optional()?;
        if let Some(same) = there {
            return Ok(if same { Created::Same } else { Created::Conflict });
        }
        if let Some(taken) = has_key(transaction.connection, self.start_key.as_deref())? {
            return Ok(Created::KeyTaken(taken));
        }
        let of_line = self.line.as_deref();
        if let Some(first) = of_line.map(|new| line::refused_by(transaction.connection, new)).transpose()?.flatten() {
            return Ok(Created::LineFull(first));
        }
        let place = of_line.map(|new| line::next_place(transaction.connection, &new.line)).transpose()?;
        transaction.leases.ensure(transaction.connection)?;
        let me = transaction.leases.me().unwrap_or_default().to_owned();
        let plain = StatusRecord::new(Status::Running, self.at_ms);
        let record = self.status_record.as_ref().unwrap_or(&plain);
        let run = NewRunRow {
            run_id: &self.run_id,
            fence: 1,
            driver: &me,
            events: 1,
            started_at_ms: self.at_ms,
            due_at_ms: record.due_at_ms,
            session: self.session.as_deref(),
            loop_name: &self.loop_name,
            identity: &self.identity,
            org: self.org.as_deref(),
            token: self.token.as_deref(),
            parent_run_id: self.parent_run_id.as_deref(),
            start_key: self.start_key.as_deref(),
            callback_url: self.callback_url.as_deref(),
            callback: self.callback_url.as_ref().and_then(|_| word(&CallbackState::Pending)),
            callback_at_ms: record.is_to_be_posted().then(|| transaction.leases.after(CALLBACK_LEASE)),
            callback_by: &me,
            search_text: self.search_text.as_deref(),
            title: self.title.as_deref(),
            line: of_line.map(|new| new.line.as_str()),
            line_limit: of_line.map(|new| new.limit),
            line_rule: of_line.and_then(line::rule_word),
            place,
        };
        let record = RecordRow::from(record);
        let columns = [run.values(), record.values()].concat();
        transaction.connection.prepare_cached(&INSERT_RUN)?.execute(columns.as_slice())?;
        let row = transaction.connection.last_insert_rowid();
        if !insert_event(transaction.connection, (row, 0, &self.run_id), &self.event, (1, &me))? {
            return Err(RequestError::Database(rusqlite::Error::QueryReturnedNoRows));
        }
        texts::keep(transaction.connection, row, &self.texts)?;
        if let Some(scheduled) = &self.scheduled {
            scheduled_runs::started(transaction.connection, &self.run_id, scheduled)?;
        }
        if let Some(entry) = &self.audit {
            audit::note_of_run(transaction.connection, row, entry)?;
        }
        transaction.appended += 1;
        transaction.rows.push(row);
        Ok(Created::New(Lease { fence: 1, events: 1, failed_take_ups: 0 }))
    }

    fn durable(&self, answer: &Created, rows: &[i64], leases: &mut Leases) {
        if let (Created::New(_), [row]) = (answer, rows) {
            leases.granted(&self.run_id, HeldLease { row: *row, fence: 1, next: Some(1) });
        }
    }

    fn unclaimed(&self, answer: &Created, leases: &mut Leases) {
        if let Created::New(lease) = answer {
            leases.orphaned(&self.run_id, lease.fence);
        }
    }
}

impl WriteRequest for Append {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn events(&self) -> usize {
        1
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let connection = transaction.connection;
        let fenced = || RequestError::Refused(StoreError::Fenced(self.run_id.clone()));
        let me = transaction.leases.me().unwrap_or_default().to_owned();
        let Some(held) = transaction.leases.held(&self.run_id).filter(|held| count(held.fence) == self.fence) else {
            let there = connection.prepare_cached("SELECT 1 FROM runs WHERE run_id = ?1")?.exists([&self.run_id])?;
            return Err(if there { fenced() } else { StoreError::NoSuchRun(self.run_id.clone()).into() });
        };
        let next = match held.next {
            Some(next) => next,
            None => events_of(connection, held.row)?,
        };
        held.next = Some(next);
        if count(next) != self.seq {
            return Err(StoreError::out_of_order(&self.run_id, self.seq, count(next)).into());
        }
        if let Some(hash) = &self.answer_token {
            answer_tokens::is_unused(connection, &self.run_id, hash)?;
        }
        if !insert_event(connection, (held.row, next, &self.run_id), &self.event, (held.fence, &me))? {
            transaction.leases.lost(&self.run_id);
            return Err(fenced());
        }
        if let Some(hash) = &self.answer_token {
            answer_tokens::use_up(connection, hash)?;
        }
        if let Some(id) = &self.decision {
            decisions::remove(connection, &self.run_id, id)?;
        }
        held.next = Some(next + 1);
        let row = held.row;
        texts::keep(connection, row, &self.texts)?;
        transaction.appended += 1;
        if let Some(record) = &self.status_record {
            update_record(transaction, record, (row, next + 1))?;
        }
        if self.takes_cancel {
            let sql = "UPDATE runs SET cancel_requested = 0, cancel_reason = NULL, cancel_by = NULL WHERE id = ?1";
            connection.prepare_cached(sql)?.execute([row])?;
        }
        if self.reopens {
            connection
                .prepare_cached(
                    "UPDATE runs SET cancel_requested = 0, cancel_reason = NULL, cancel_by = NULL, callback_tries = 0,
                       callback = CASE WHEN callback IS NULL THEN NULL ELSE ?2 END WHERE id = ?1",
                )?
                .execute(params![row, word(&CallbackState::Pending)])?;
            line::rejoin(connection, row)?;
        }
        for (key, value) in &self.remember {
            connection
                .prepare_cached(
                    "INSERT INTO session_memory (session, key, value)
                     SELECT session, ?2, ?3 FROM runs WHERE id = ?1 AND session IS NOT NULL
                     ON CONFLICT (session, key) DO UPDATE SET value = excluded.value",
                )?
                .execute(params![row, key, value.to_string()])?;
        }
        if let Some(entry) = &self.audit {
            audit::note_of_run(connection, row, entry)?;
        }
        if self.release {
            release(transaction, &self.run_id, self.fence)?;
        }
        Ok(())
    }

    fn durable(&self, (): &(), _rows: &[i64], leases: &mut Leases) {
        if self.release {
            leases.released(&self.run_id, self.fence);
        }
    }
}

/// Events of one run that are written in one transaction.
pub(super) struct AppendedTogether {
    pub(super) entries: Vec<Append>,
}

impl WriteRequest for AppendedTogether {
    type Answer = ();

    fn run_id(&self) -> &str {
        self.entries.first().map_or("", |entry| entry.run_id.as_str())
    }

    fn events(&self) -> usize {
        self.entries.len()
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        self.entries.iter().try_for_each(|entry| entry.perform(transaction))
    }

    fn durable(&self, answer: &(), rows: &[i64], leases: &mut Leases) {
        self.entries.iter().for_each(|entry| entry.durable(answer, rows, leases));
    }
}

/// Writes the record of a run after events were added to it.
pub(super) fn update_record(
    transaction: &mut Transaction<'_>,
    record: &StatusRecord,
    run_and_events: (i64, i64),
) -> rusqlite::Result<()> {
    let (row, events) = run_and_events;
    let callback_at_ms = record.is_to_be_posted().then(|| transaction.leases.after(CALLBACK_LEASE));
    let me = transaction.leases.me().unwrap_or_default().to_owned();
    let (due_at_ms, is_running) = (record.due_at_ms, record.status == Status::Running);
    let record = RecordRow::from(record);
    let run: [NamedValue<'_>; 3] = [(":id", &row), (":events", &events), (":due_at_ms", &due_at_ms)];
    let columns = [record.values().as_slice(), &run].concat();
    let connection = transaction.connection;
    if is_running && connection.prepare_cached(UPDATE_PROGRESS)?.execute(columns.as_slice())? > 0 {
        return Ok(());
    }
    let callback: [NamedValue<'_>; 2] = [(":callback_at_ms", &callback_at_ms), (":callback_by", &me)];
    let columns = [columns.as_slice(), &callback].concat();
    connection.prepare_cached(&UPDATE_RECORD)?.execute(columns.as_slice()).map(drop)
}

/// Releases a lease, unless it is not the current one.
pub(super) fn release(transaction: &mut Transaction<'_>, run_id: &str, fence: u64) -> Result<(), RequestError> {
    let fence = i64::try_from(fence).unwrap_or(i64::MAX);
    let events = transaction.leases.held(run_id).and_then(|held| held.next);
    let failed = transaction
        .connection
        .prepare_cached(
            "UPDATE runs SET driver = NULL, events = coalesce(?4, events)
             WHERE run_id = ?1 AND fence = ?2 AND driver = ?3 RETURNING failed_take_ups",
        )?
        .query_row(params![run_id, fence, transaction.leases.me(), events], |row| row.get::<_, u32>(0))
        .optional()?;
    match failed {
        None | Some(0) => Ok(()),
        Some(_) => take_ups::forget_if_something_happened(transaction.connection, run_id).map_err(RequestError::from),
    }
}

/// How many events a run has.
pub(super) fn events_of(connection: &Connection, row: i64) -> rusqlite::Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM events WHERE run = ?1")?
        .query_row([row], |row| row.get(0))
}

/// Takes the lease of a run.
pub(super) struct Take(pub(super) String);

impl WriteRequest for Take {
    type Answer = Lease;

    fn run_id(&self) -> &str {
        &self.0
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Lease, RequestError> {
        let connection = transaction.connection;
        let found = connection
            .prepare_cached(
                "SELECT id, fence, events, runs.driver, until_ms, failed_take_ups, take_up_events
                 FROM runs LEFT JOIN drivers USING (driver) WHERE run_id = ?1",
            )?
            .query_row([&self.0], |row| {
                let before = TakeUps { failed: row.get(5)?, events: row.get(6)? };
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, before))
            })
            .optional()?;
        let (row, fence, known, driver, until_ms, before): (i64, i64, i64, Option<String>, Option<i64>, TakeUps) =
            found.ok_or_else(|| StoreError::NoSuchRun(self.0.clone()))?;
        let events = events_of(connection, row)?;
        if events < known.max(1) {
            return Err(StoreError::cut_short(&self.0).into());
        }
        if driver.is_some() && driver.as_deref() == transaction.leases.me() {
            return Err(StoreError::Driven(self.0.clone()).into());
        }
        let died = driver.is_some();
        if let (Some(driver), Some(until_ms)) = (driver, until_ms) {
            if transaction.leases.is_protected(&driver, until_ms) {
                return Err(StoreError::Driven(self.0.clone()).into());
            }
            transaction.leases.remove_dead(connection, &driver)?;
        }
        transaction.leases.ensure(connection)?;
        let fence = fence.saturating_add(1);
        let all = take_ups::events_of_all(connection, &self.0, events)?;
        let now = before.one_more(all, died);
        connection
            .prepare_cached(
                "UPDATE runs SET fence = ?2, driver = ?3, failed_take_ups = ?4, take_up_events = ?5 WHERE id = ?1",
            )?
            .execute(params![row, fence, transaction.leases.me(), now.failed, now.events])?;
        transaction.rows.push(row);
        Ok(Lease { fence: count(fence), events: count(events), failed_take_ups: now.failed })
    }

    fn durable(&self, lease: &Lease, rows: &[i64], leases: &mut Leases) {
        let fence = i64::try_from(lease.fence).unwrap_or(i64::MAX);
        if let [row] = rows {
            leases.granted(&self.0, HeldLease { row: *row, fence, next: None });
        }
    }

    fn unclaimed(&self, lease: &Lease, leases: &mut Leases) {
        leases.orphaned(&self.0, lease.fence);
    }
}

/// Releases a lease.
pub(super) struct GiveBack {
    pub(super) run_id: String,
    pub(super) fence: u64,
}

impl WriteRequest for GiveBack {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        release(transaction, &self.run_id, self.fence)
    }

    fn durable(&self, (): &(), _rows: &[i64], leases: &mut Leases) {
        leases.released(&self.run_id, self.fence);
    }

    fn undone(&self, leases: &mut Leases) {
        leases.orphaned(&self.run_id, self.fence);
    }
}

/// Confirms a lease that could not be confirmed from memory.
pub(super) struct MakeSure {
    pub(super) run_id: String,
    pub(super) fence: u64,
}

impl WriteRequest for MakeSure {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        transaction.leases.ensure(transaction.connection)?;
        match transaction.leases.held(&self.run_id) {
            Some(held) if count(held.fence) == self.fence => Ok(()),
            _ => Err(StoreError::Fenced(self.run_id.clone()).into()),
        }
    }
}

/// Requests a run's end. The first request stays.
pub(super) struct CancelRun {
    pub(super) run_id: String,
    pub(super) request: CancelRequest,
}

impl WriteRequest for CancelRun {
    type Answer = ();

    fn run_id(&self) -> &str {
        &self.run_id
    }

    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<(), RequestError> {
        let found = transaction
            .connection
            .prepare_cached(
                "UPDATE runs SET cancel_reason = CASE cancel_requested WHEN 0 THEN ?2 ELSE cancel_reason END,
                   cancel_by = CASE cancel_requested WHEN 0 THEN ?3 ELSE cancel_by END,
                   cancel_requested = 1 WHERE run_id = ?1",
            )?
            .execute(params![self.run_id, self.request.reason, self.request.by])?;
        if found == 0 { Err(StoreError::NoSuchRun(self.run_id.clone()).into()) } else { Ok(()) }
    }
}
