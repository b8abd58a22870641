//! Durable storage: the journal of runs. It knows runs by their ids and events as texts; it knows nothing of
//! programs, models and tools.

pub mod admin;
pub mod answer_token;
pub mod append;
pub mod audit;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod column_words;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod copied_table;
pub mod decision_queue;
pub mod failpoint;
pub mod fault;
mod lease_clock;
pub mod ledger;
mod line;
mod log;
mod measured;
pub mod memory;
mod model_wait;
pub mod outside_event;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod prune;
pub mod queue;
mod read_only_copy;
mod row_text;
mod run_counts;
mod run_filter;
pub mod schedules;
pub mod set_aside;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod store_name;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use admin::Worker;
pub use answer_token::AnswerToken;
pub use append::Append;
pub use append::Ticket;
pub use audit::{AuditAction, AuditEntry, AuditFilter, AuditLine, LoopSwitch};
pub use copied_table::{CopiedRow, CopiedTable};
pub use decision_queue::{QueuedDecision, Queueing, SettledDecision};
pub use fault::StoreError;
pub use line::{LineRule, MOST_AHEAD, NewRunLine, PlaceInLine, RunAhead};
pub use measured::MeasuredRun;
pub use model_wait::{ModelWait, WaitedFor};
pub use outside_event::{AwaitedEvent, EventPut, EventWaiter, KeptEvent, KeptQuery, OutsideEvent};
pub use prune::{PruneQuery, RunExtras};
pub use queue::{ClaimedRun, QueueQuery, QueueShare, QueuedRuns, RunHead};
pub use row_text::{MOST_SEARCH_BYTES, RowText, search_text, title_text};
pub use run_counts::{RunCounts, WaitMoments, WaitingRuns};
pub use run_filter::{ListedStatus, RunFilter};
pub use schedules::{ScheduleRuns, ScheduledRun, ServedSchedule, ServedSchedules, UnderWay};
pub use store_name::{file, open, open_held, open_shared, outlives_process, shown};

use self::ledger::{LedgerAccount, RateShare, Reservation, Reserving, Settlement};
use self::store_name::StoreKind;
use loopctl_engine::blob::Blob;
use loopctl_engine::outcome::{Status, Termination};

/// The kinds of stores: a folder each, and a line here.
const STORES: &[StoreKind] = &[
    memory::KIND,
    #[cfg(feature = "sqlite")]
    sqlite::KIND,
    #[cfg(feature = "postgres")]
    postgres::KIND,
];

/// A store of runs. Every method returns a [`Ticket`], which is ready at once or can be awaited; what is
/// acknowledged is durable.
pub trait Journal: Send + Sync {
    /// Creates a run with its first event and leases it to the caller. When a run has the id already, says
    /// whether it is the same run. Of runs with one key, one is created.
    fn create(&self, run: NewRun) -> Ticket<Created>;

    /// Appends one event. `seq` counts from 0 and must be the next one; `fence` must be the lease's.
    fn append(&self, entry: Append) -> Ticket<()>;

    /// Appends events of one run that are one decision: after a crash all of them are there, or none. When the lease does not
    /// hold, all are refused. The last one alone may use up an answer token: when that is refused, those before it are there.
    fn append_all(&self, entries: Vec<Append>) -> Ticket<()>;

    /// All events of a run in their order.
    fn read(&self, run_id: &str) -> Ticket<Vec<String>>;

    /// The events of a run from number `from` on, counted from 0, until they amount to `most` bytes; the event
    /// that reaches them is the last. At least one event where there is one; none when the run has no more.
    fn read_from(&self, run_id: &str, from: u64, most: usize) -> Ticket<Vec<String>>;

    /// The long texts that the events of a run name, in no order. Read them after the events.
    fn texts(&self, run_id: &str) -> Ticket<Vec<Blob>>;

    /// One run's summary; `None` when there is no such run.
    fn find(&self, run_id: &str) -> Ticket<Option<RunSummary>>;

    /// One run's summary when it belongs to this organisation, or to none where `org` is `None`. One look-up by
    /// both: a run of another organisation costs as much as a run that does not exist, so that the time reveals
    /// nothing.
    fn find_of(&self, org: Option<&str>, run_id: &str) -> Ticket<Option<RunSummary>>;

    /// The run that was started with this key; `None` when there is none.
    fn find_by_key(&self, start_key: &str) -> Ticket<Option<RunSummary>>;

    /// Runs, newest first unless the filter says otherwise.
    fn list(&self, filter: RunFilter) -> Ticket<Vec<RunSummary>>;

    /// What reports count of runs, in the order of [`Journal::list`]: fewer columns of the same rows.
    fn measured(&self, filter: RunFilter) -> Ticket<Vec<MeasuredRun>>;

    /// How many runs need somebody, however many there are.
    fn run_counts(&self, moments: WaitMoments) -> Ticket<RunCounts>;

    /// How many events these runs have, and their status: one look-up for all that somebody waits for. Runs that do not
    /// exist are left out.
    fn heads(&self, run_ids: Vec<String>) -> Ticket<Vec<RunHead>>;

    /// The runs that wait for a driver, counted by their owners; the owner of the oldest one comes first.
    fn queue(&self, waiting: QueueQuery) -> Ticket<Vec<QueuedRuns>>;

    /// Leases runs that wait for a driver: of each owner at most its number, the oldest first. There may be fewer, because other
    /// drivers claim them too.
    fn claim(&self, waiting: QueueQuery, shares: Vec<QueueShare>) -> Ticket<Vec<ClaimedRun>>;

    /// Where a run is in its line: see [`NewRun::line`]. One that has ended: where it would be if it continued.
    fn line(&self, run_id: &str) -> Ticket<PlaceInLine>;

    /// Has a run that [waits for its model](StatusRecord::waits_for_model), or for room in a spending limit, claimed from this moment on, in
    /// milliseconds since 1970, unless it is claimed earlier. Ignored for any other run.
    fn retry_at(&self, run_id: &str, at_ms: i64) -> Ticket<()>;

    /// Notes that a model of a run failed and is asked again, or that it is not any more. Ignored when the run is not under way,
    /// or this is not its present lease.
    fn note_model_wait(&self, run_id: &str, fence: u64, wait: Option<ModelWait>) -> Ticket<()>;

    /// How many runs were called by this one, and by those that it called.
    fn called_under(&self, run_id: &str) -> Ticket<u64>;

    /// Takes the lease of a run: refused while another living driver has it.
    fn lease(&self, run_id: &str) -> Ticket<Lease>;

    /// Releases the lease. A lease that is not the current one is ignored.
    fn release(&self, run_id: &str, fence: u64) -> Ticket<()>;

    /// Whether the lease is still valid; renews it if it is old. To be called right before an effect.
    fn confirm(&self, run_id: &str, fence: u64) -> Ticket<()>;

    /// Forgets the drivers that died of these runs: they wait for their models, and are not what a process dies of.
    fn absolve(&self, run_ids: Vec<String>) -> Ticket<()>;

    /// Asks the driver of the run to end it.
    fn request_cancel(&self, run_id: &str, request: CancelRequest) -> Ticket<()>;

    /// Whether the end of the run was requested, and why. Cheap: called between two steps.
    fn cancel_requested(&self, run_id: &str) -> Ticket<Option<CancelRequest>>;

    /// Takes runs whose end or pause is to be posted: at most `most`, and for [`CALLBACK_LEASE`]. For as long, a run that
    /// ends or pauses belongs to the driver that brought it there.
    fn claim_callbacks(&self, most: usize) -> Ticket<Vec<String>>;

    /// Records the progress of a run's callback. `again_in`: the caller posts it again; no living driver else takes it
    /// before this time and [`CALLBACK_LEASE`] are over. Ignored for a run without one; and a callback that was made
    /// or given up is never pending again by this. `of_end_ms`: the moment of the end that was posted; ignored when the run
    /// has continued since, whose next end is still to be posted.
    fn note_callback(
        &self,
        run_id: &str,
        progress: CallbackProgress,
        again_in: Option<Duration>,
        of_end_ms: Option<i64>,
    ) -> Ticket<()>;

    /// Records that a pause of a run, from 1, need not be posted any more. An earlier one than the last is ignored.
    fn note_posted_pause(&self, run_id: &str, pause: u32) -> Ticket<()>;

    /// Stores tokens that answer one pause of a run. Those that the pause has already stay valid, unless they are too
    /// many: see [`answer_token::MOST_ISSUES`].
    fn put_answer_tokens(&self, run_id: &str, tokens: Vec<AnswerToken>) -> Ticket<()>;

    /// The token of a run with this hash; `None` when there is none, or no such run.
    fn answer_token(&self, run_id: &str, hash: &str) -> Ticket<Option<AnswerToken>>;

    /// Queues a decision for the driver of a run. A run that pauses before it takes the decision is due at once.
    fn queue_decision(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing>;

    /// The same for a run that nobody drives either: then it is due at once.
    fn queue_event(&self, run_id: &str, decision: QueuedDecision) -> Ticket<Queueing>;

    /// Keeps an event from outside. Those whose time is over are forgotten.
    fn put_event(&self, event: OutsideEvent) -> Ticket<EventPut>;

    /// Notes that a run took an event of its organisation, or is about to: it is kept for its id alone from now on. Or that none did
    /// after all. Returns whether the note is new: of many runs that note it at once, one does. What is queued for that run of the event
    /// has the note too (`outside_event::MARKED`): it outlives the driver.
    fn mark_event(&self, run_id: &str, id: &str, is_taken: bool) -> Ticket<bool>;

    /// The runs of an organisation that wait for an event of this name, without those that other runs called.
    fn event_waiters(&self, org: Option<&str>, event: &str) -> Ticket<Vec<EventWaiter>>;

    /// The events that were kept for the organisation of a run, and that no run took or is about to take: those that are queued for
    /// a run that has not ended are left out, unless it refused them. The oldest first, at most
    /// [`outside_event::KEPT_PAGE_EVENTS`].
    fn kept_events(&self, run_id: &str, query: KeptQuery) -> Ticket<Vec<KeptEvent>>;

    /// The queued decisions about a run, with those that were refused. Cheap for the driver of the run.
    fn queued_decisions(&self, run_id: &str) -> Ticket<Vec<QueuedDecision>>;

    /// Records what became of a queued decision that no event takes. Ignored when there is none of this id.
    fn settle_decision(&self, run_id: &str, id: &str, settled: SettledDecision) -> Ticket<()>;

    /// Completes the row of a run that an older version wrote. Ignored when nothing is missing in it, when the run is not in
    /// the status of the record any more, and when there is none.
    fn complete_row(&self, run_id: &str, row: RowCompletion) -> Ticket<()>;

    /// The last step of writing a run that comes from elsewhere: it gets its record, and its lease is released. Until then it has
    /// the record [`StatusRecord::unfinished`]. A store that takes no such runs refuses.
    fn finish_copy(&self, run_id: &str, fence: u64, record: StatusRecord) -> Ticket<()> {
        let (_, _) = (fence, record);
        Ticket::ready(Err(StoreError::Other(format!("it takes no copies, and run {run_id} is one"))))
    }

    /// Rows that a copy of the store needs beside its runs and the audit: those after a row, in the order of the table, at most
    /// [`copied_table::PAGE_ROWS`].
    fn rows(&self, table: &'static CopiedTable, _after: Option<CopiedRow>) -> Ticket<Vec<CopiedRow>> {
        Ticket::ready(Err(StoreError::Other(format!("it gives no rows of {}", table.name))))
    }

    /// Puts rows into a table; returns how many were not there. A row that is there stays as it is, but for
    /// [`CopiedTable::raised`].
    fn put_rows(&self, table: &'static CopiedTable, _rows: Vec<CopiedRow>) -> Ticket<u64> {
        Ticket::ready(Err(StoreError::Other(format!("it takes no rows of {}", table.name))))
    }

    /// What a copy of a run needs besides its events, its texts and its summary.
    fn extras(&self, run_id: &str) -> Ticket<RunExtras>;

    /// Deletes runs that ended; returns how many, without those that they called. Memories of sessions stay.
    fn prune(&self, which: PruneQuery) -> Ticket<u64>;

    /// Gives a bounded part of the space that deleted runs left back to the system; returns how many bytes, and 0 when nothing
    /// is left to give back, or the store does that by itself.
    fn give_back_space(&self) -> Ticket<u64> {
        Ticket::ready(Ok(0))
    }

    /// Notes the digest of the folder that this process serves. Runs that it creates carry it; while a living worker
    /// serves the folder of a run, workers of other folders leave the run in the queue. `address`: where it listens, for lists of
    /// workers.
    fn introduce(&self, folder: &str, address: Option<&str>) -> Ticket<()>;

    /// The processes that drive runs of the store: those that live, and those that died and whose runs nobody took.
    fn workers(&self) -> Ticket<Vec<Worker>>;

    /// Notes the schedules of a folder that this process begins to serve, and forgets those that the folder had; returns
    /// since when each is known as it is now, in milliseconds since 1970, in their order. What was noted by a clock that
    /// was ahead ([`schedules::CLOCK_TOLERANCE_MS`]) is noted anew.
    fn serve_schedules(&self, served: ServedSchedules) -> Ticket<Vec<i64>>;

    /// What is known of the runs of a schedule at this moment.
    fn schedule_runs(&self, schedule: &str, now_ms: i64) -> Ticket<ScheduleRuns>;

    /// From now on the runs of a schedule that were started for times to come are not its runs of those times.
    fn disregard_ahead(&self, schedule: &str, now_ms: i64) -> Ticket<()>;

    /// The memory of a session.
    fn recall(&self, session: &str) -> Ticket<BTreeMap<String, Value>>;

    /// Deletes the memory of a session; returns how many values it had.
    fn forget(&self, _session: &str) -> Ticket<u64> {
        Ticket::ready(Err(StoreError::Other("it forgets no session".to_owned())))
    }

    /// Adds lines to the list of what was done, which only grows. What is done to a run by an event is written with that event
    /// (see [`Append::audit`] and [`NewRun::audit`]).
    fn note_audit(&self, lines: Vec<AuditLine>) -> Ticket<()>;

    /// Lines of this list, the newest first unless the filter says otherwise.
    fn audit(&self, filter: AuditFilter) -> Ticket<Vec<AuditLine>>;

    /// Switches a loop off for all who start runs of the store over HTTP or by a schedule, or on again, and writes the line of it.
    fn switch_loop(&self, switch: LoopSwitch) -> Ticket<()>;

    /// The loops that were switched, by name.
    fn loop_switches(&self) -> Ticket<Vec<LoopSwitch>>;

    /// Reserves what a call may spend in an account of a spending limit, if there is room for it: of all reservations and of all
    /// that was spent in the time of the account, the sum is never over its most. What a driver reserved whose lease is over is given
    /// back. A store that keeps no ledger refuses: nothing is spent then.
    fn reserve(&self, reservation: Reservation) -> Ticket<Reserving> {
        drop(reservation);
        Ticket::ready(Err(StoreError::Other(NO_LEDGER.to_owned())))
    }

    /// Ends a reservation with what was used; ignored when it is not there. Returns whether a warning is due that was not
    /// given in this window.
    fn settle(&self, settlement: Settlement) -> Ticket<bool> {
        drop(settlement);
        Ticket::ready(Err(StoreError::Other(NO_LEDGER.to_owned())))
    }

    /// Takes a share of the rate of a model, in the order in which shares are asked for. Returns in how many microseconds there is room
    /// for it: at most 0 for at once.
    fn pace(&self, share: RateShare) -> Ticket<i64> {
        drop(share);
        Ticket::ready(Err(StoreError::Other(NO_RATES.to_owned())))
    }

    /// The accounts of spending limits, that with the largest share first, at most [`ledger::MOST_LEDGER_ACCOUNTS`]. `part`: only
    /// those whose names contain this text.
    fn ledger(&self, _now_ms: i64, _part: Option<String>) -> Ticket<Vec<LedgerAccount>> {
        Ticket::ready(Ok(Vec::new()))
    }
}

/// Why a store refuses a reservation.
const NO_LEDGER: &str = "the `limits` of the project are held by a store with a ledger, and this one has none: take the limits out of \
                         the project file, or keep its runs in SQLite or PostgreSQL";

/// Why a store refuses a share of a rate.
const NO_RATES: &str = "the `rate` of a model is held by a store with a ledger, and this one has none: take it out of the project file, or \
                        keep its runs in SQLite or PostgreSQL";

/// A run to be created.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its id.
    pub run_id: String,
    /// The loop's name.
    pub loop_name: String,
    /// Its session.
    pub session: Option<String>,
    /// The organisation that it belongs to.
    pub org: Option<String>,
    /// The name of the token that started it: the runs of a token have turns of their own in the queue.
    pub token: Option<String>,
    /// Where its result is to be posted.
    pub callback_url: Option<String>,
    /// The run that called this one, when one did.
    pub parent_run_id: Option<String>,
    /// What two starts must have in common to be the same: a text over document and input. A start with the id
    /// of another run and another text is a conflict.
    pub identity: String,
    /// The key of its start, with its owner in it: no other run of the store has it, whatever its id is. It is free again when
    /// the run is deleted.
    pub start_key: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The first event, as JSON text.
    pub event: String,
    /// The long texts that the event names, durable together with it: kept once for all runs.
    pub texts: Vec<Blob>,
    /// For which time its schedule starts it, when one does: durable together with it.
    pub scheduled: Option<ScheduledRun>,
    /// What lists show of it, if its first event leaves it other than running: a workflow may begin with a question.
    pub status_record: Option<StatusRecord>,
    /// What a search finds it by: see [`search_text`].
    pub search_text: Option<String>,
    /// What it is about, in a line: its objective, or else the beginning of its input. The empty text where both are empty.
    /// Secrets are hidden in it.
    pub title: Option<String>,
    /// Who starts it, where that is somebody's act: a line of the audit is written together with it.
    pub audit: Option<Box<AuditEntry>>,
    /// The runs that it waits for: it joins their line at its end, and again whenever it continues after it had ended.
    pub line: Option<Box<NewRunLine>>,
}

/// The outcome of creating a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It was created, and is leased to the caller.
    New(Lease),
    /// A run of this id and identity exists.
    Same,
    /// A run of this id, and another identity, exists.
    Conflict,
    /// This run, of another id, has the key of the start.
    KeyTaken(String),
    /// It would have to wait for this run, and is refused instead.
    LineFull(String),
}

/// What lists of runs show, and events change.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusRecord {
    /// The status.
    pub status: Status,
    /// Why it ended or waits; none for a run that a signal stopped, which can be resumed.
    pub termination: Option<Termination>,
    /// Iterations so far.
    pub iterations: u32,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// When the run must be looked at although nobody asks for it, in milliseconds since 1970.
    pub due_at_ms: Option<i64>,
    /// Since when a step of a run that is under way has waited for a human, in milliseconds since 1970.
    pub waits_since_ms: Option<i64>,
    /// The tokens so far; none where that is not known.
    pub tokens: Option<u64>,
    /// What they cost in US dollars; none where the price of some is not known.
    pub cost_usd: Option<f64>,
    /// Why it failed, or why its model can't be reached; beside a question for a human also why there is no room in a spending limit.
    /// Secrets are hidden in it.
    pub error: Option<RowText>,
    /// The first question that waits for a human. Secrets are hidden in it.
    pub question: Option<RowText>,
    /// The events that it waits for: see [`outside_event::awaits_column`].
    pub awaits: Option<String>,
}

/// What completes the row of a run that an older version wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct RowCompletion {
    /// What lists show of it.
    pub record: StatusRecord,
    /// What a search finds it by.
    pub search_text: String,
    /// What it is about: see [`NewRun::title`].
    pub title: String,
}

impl StatusRecord {
    /// A record of a status and a moment alone.
    pub fn new(status: Status, at_ms: i64) -> Self {
        Self {
            status,
            termination: None,
            iterations: 0,
            at_ms,
            due_at_ms: None,
            waits_since_ms: None,
            tokens: None,
            cost_usd: None,
            error: None,
            question: None,
            awaits: None,
        }
    }

    /// Whether the run is paused and waits for its model or for room in a spending limit, whatever else it waits for.
    pub fn waits_for_model(&self) -> bool {
        self.status == Status::Paused && waits_for_model(self.termination, self.error.is_some())
    }

    /// Whether this is to be posted to the run's callback: an end, or a pause that waits for a human. A run that a
    /// signal stopped, or that waits for its model or for a time, continues by itself.
    pub fn is_to_be_posted(&self) -> bool {
        let continues = |reason: Termination| self.status == Status::Paused && needs_no_human(reason);
        !matches!(self.status, Status::Running | Status::Quarantined)
            && self.termination.is_some_and(|reason| !continues(reason))
    }
}

/// Whether a run that is paused for this reason continues without a human.
pub fn needs_no_human(reason: Termination) -> bool {
    reason.needs_no_human()
}

/// Whether a run that is paused for this reason waits for its model or for room in a spending limit. Where a human is asked for this
/// reason, it waits for them as well if it has an error.
fn waits_for_model(reason: Option<Termination>, has_error: bool) -> bool {
    let is_beside = |reason: Termination| has_error && !reason.needs_no_human();
    reason.is_some_and(|reason| {
        matches!(reason, Termination::ModelError | Termination::SpendingLimit) || is_beside(reason)
    })
}

/// The right to drive a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The number that every append carries; a newer lease has a higher one.
    pub fence: u64,
    /// How many events the run has.
    pub events: u64,
    /// How many drivers in a row resumed the run, did nothing in it and died; 0 again as soon as something
    /// happens in it or in one of its sub-runs. A store in memory ends with its drivers: it counts none.
    pub failed_take_ups: u32,
}

/// This number of failed resumptions in a row quarantines a run: from then on it is resumed only when somebody asks for
/// it by its id.
pub const MOST_FAILED_TAKE_UPS: u32 = 3;

/// After this number, a server drives a run alone, so that the next death shows whether it is the cause: its last chance.
pub const SUSPECT_TAKE_UPS: u32 = MOST_FAILED_TAKE_UPS - 1;

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its id.
    pub run_id: String,
    /// The loop's name.
    pub loop_name: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it is about, in a line: its objective, or else the beginning of its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<Box<str>>,
    /// The status.
    pub status: Status,
    /// Why it ended or waits; none for one that a signal stopped, which can go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// Iterations so far.
    pub iterations: u32,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: i64,
    /// When its status record last changed, in milliseconds since 1970.
    pub updated_at_ms: i64,
    /// The tokens so far; none where an older version wrote the row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What they cost in US dollars; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Why it failed, or why its model can't be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The model that failed and that its driver asks again.
    #[serde(skip)]
    pub model_wait: Option<Box<ModelWait>>,
    /// The calls of which nothing was sent when the driver before the present one died.
    #[serde(skip)]
    pub unsent: Vec<String>,
    /// The first question that waits for a human.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// When it must be looked at although nobody asks for it, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due_at_ms: Option<i64>,
    /// The schedule that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The time that the schedule started it for, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_for_ms: Option<i64>,
    /// The first run of those that it waits for, in the line that it is in: it is not driven before that one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<str>>,
    /// Whether the row has all that this version writes; otherwise [`Journal::complete_row`] completes it.
    #[serde(skip)]
    pub is_complete: bool,
    /// Whether a living driver has it now.
    pub driven: bool,
    /// Since when something of a run that is under way has waited for a human, in milliseconds since 1970: a step of its
    /// own; in a list, also a run below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_since_ms: Option<i64>,
    /// What is wrong with the store's record of the run, when it can't be read whole. Then only the
    /// id is to be trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<String>,
    /// What two starts must have in common to be the same.
    #[serde(skip)]
    pub identity: String,
    /// The run that called this one, when one did.
    #[serde(skip)]
    pub parent_run_id: Option<String>,
    /// The organisation that it belongs to.
    #[serde(skip)]
    pub org: Option<String>,
    /// The name of the token that started it, or the run that called it.
    #[serde(skip)]
    pub token: Option<Box<str>>,
    /// Where its result is posted, and how far that is.
    #[serde(skip)]
    pub callback: Option<Callback>,
}

impl RunSummary {
    /// Whether the run is at the end, or at the pause, at which an earlier look found it.
    pub fn is_unchanged(&self, earlier: &Self) -> bool {
        (self.status, self.updated_at_ms) == (earlier.status, earlier.updated_at_ms)
    }

    /// A run whose record can't be read whole, and why.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn damaged(run_id: String, why: String) -> Self {
        Self {
            run_id,
            loop_name: String::new(),
            session: None,
            title: None,
            status: Status::Failed,
            termination: None,
            iterations: 0,
            started_at_ms: 0,
            updated_at_ms: 0,
            tokens: None,
            cost_usd: None,
            error: None,
            model_wait: None,
            unsent: Vec::new(),
            question: None,
            due_at_ms: None,
            schedule: None,
            scheduled_for_ms: None,
            behind: None,
            is_complete: true,
            driven: false,
            waits_since_ms: None,
            damaged: Some(why),
            identity: String::new(),
            parent_run_id: None,
            org: None,
            token: None,
            callback: None,
        }
    }

    /// The same without what an older version, or a driver that died, left in the row. `fence`: the last lease of the run.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    fn without_stale(self, fence: u64) -> Self {
        let asks = self.status == Status::Paused || self.waits_since_ms.is_some();
        let fails = !matches!(self.status, Status::Running | Status::Completed);
        let is_under_way = self.status == Status::Running && self.driven;
        let text = self.error.as_deref().filter(|_| is_under_way);
        let wait = text.and_then(|text| ModelWait::of_row(text, fence));
        let unsent = text.and_then(|text| ModelWait::unsent_of_row(text, fence));
        Self {
            question: self.question.filter(|_| asks),
            error: self.error.filter(|_| fails),
            model_wait: wait.map(Box::new),
            unsent: unsent.unwrap_or_default(),
            ..self
        }
    }

    /// Whether it is paused and waits for its model or for room in a spending limit, whatever else it waits for.
    pub fn waits_for_model(&self) -> bool {
        self.status == Status::Paused && waits_for_model(self.termination, self.error.is_some())
    }

    /// Whether it is paused and may wait for room in a spending limit.
    pub fn may_wait_for_room(&self) -> bool {
        // Its question is that of the model, which rows have as the error, unless a step beside that lacks room.
        let is_away = self.termination == Some(Termination::ModelError) && self.question.is_none();
        self.waits_for_model() && !is_away
    }

    /// Whether a human is waited for: by a run that is paused, or by a part of one that is under way. Nobody can decide about a run
    /// that waits in its line, nor about one that came in a file and is not continued.
    pub fn waits_for_human(&self) -> bool {
        let is_paused = self.status == Status::Paused && !self.termination.is_some_and(needs_no_human);
        (is_paused || self.waits_since_ms.is_some()) && self.behind.is_none() && !self.is_imported()
    }

    /// Whether it has ended; one that a signal stopped has not.
    pub fn has_ended(&self) -> bool {
        measured::has_ended(self.status, self.termination)
    }

    /// The time from its start to its end in milliseconds, once it has ended; a clock that went back makes it 0.
    pub fn duration_ms(&self) -> Option<i64> {
        self.has_ended().then(|| self.updated_at_ms.saturating_sub(self.started_at_ms).max(0))
    }

    /// Whether it waits for a driver. A run that another one called is driven by its caller.
    pub fn is_queued(&self) -> bool {
        self.status == Status::Running && !self.driven && self.parent_run_id.is_none()
    }
}

/// Where a run's pauses and its result are posted, and how far that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Callback {
    /// Where to.
    pub url: String,
    /// How far the result is.
    pub progress: CallbackProgress,
    /// The last pause that was posted or given up, from 1; 0 for none.
    pub posted_pause: u32,
}

/// How far a callback is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallbackProgress {
    /// Whether it is still to be made.
    pub state: CallbackState,
    /// The number of tries.
    pub tries: u32,
}

/// How long nobody else posts what one driver is posting, while that driver lives.
pub const CALLBACK_LEASE: Duration = Duration::from_secs(60);

/// Whether a callback is still to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallbackState {
    /// It is to be made when the run has ended, or to be tried again.
    #[default]
    Pending,
    /// The other side took it.
    Delivered,
    /// All tries failed.
    GivenUp,
}

/// A request to end a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CancelRequest {
    /// Why.
    pub reason: Option<String>,
    /// Who asks: the name of a token, or a user of the machine.
    pub by: Option<String>,
}
