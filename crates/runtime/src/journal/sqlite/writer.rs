//! The writer: one thread, one connection, and one commit for all requests that wait at the same moment.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::database_errors::{RequestError, fault, is_everyones};
use super::leases::{LeaseView, Leases};
use super::requests::GiveBack;
use super::write_request::{Transaction, WriteRequest};
use crate::journal::{StoreError, Ticket, failpoint};

/// The maximum number of requests that share a commit, so that nobody waits for an endless one.
const MAX_BATCH_REQUESTS: usize = 512;

/// The callers of the last commit are likely to come again at once: the next commit waits at most this
/// time for each of them. A single caller never waits.
const BATCH_WAIT: Duration = Duration::from_micros(100);

/// The answer to a request, with the keys of the runs that it created or leased.
type Performed<A> = Result<(A, Vec<i64>), StoreError>;

/// A request with its caller.
struct Pending<R: WriteRequest> {
    request: R,
    outcome: Option<Performed<R::Answer>>,
    asker: oneshot::Sender<Result<R::Answer, StoreError>>,
}

/// A request of any kind.
trait Job: Send {
    fn run_id(&self) -> &str;
    fn events(&self) -> usize;
    fn perform(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>, leases: &mut Leases);
}

impl<R: WriteRequest> Job for Pending<R> {
    fn run_id(&self) -> &str {
        self.request.run_id()
    }

    fn events(&self) -> usize {
        self.request.events()
    }

    fn perform(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()> {
        transaction.rows.clear();
        self.outcome = Some(match self.request.perform(transaction) {
            Ok(answer) => Ok((answer, std::mem::take(&mut transaction.rows))),
            Err(RequestError::Refused(fault)) => Err(fault),
            Err(RequestError::Database(error)) => return Err(error),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>, leases: &mut Leases) {
        let Self { request, outcome, asker } = *self;
        let never = || Err(StoreError::Other("the request was not done".to_owned()));
        if committed.is_err() {
            request.undone(leases);
        }
        let answer = match committed.and_then(|()| outcome.unwrap_or_else(never)) {
            Ok((answer, rows)) => {
                request.durable(&answer, &rows, leases);
                Ok(answer)
            }
            Err(fault) => Err(fault),
        };
        if let Err(Ok(answer)) = asker.send(answer) {
            request.unclaimed(&answer, leases);
        }
    }
}

enum WriterMessage {
    Job(Box<dyn Job>),
    /// Tests only: work on the connection; `false` ends the thread as a crash would.
    #[cfg(test)]
    Touch(Box<dyn FnOnce(&Connection) -> bool + Send>),
}

/// The handle of the writer's thread. When it is dropped, the thread finishes the waiting requests, releases
/// all leases and closes the file.
pub(super) struct SqliteWriter {
    inbox: Option<Sender<WriterMessage>>,
    thread: Option<JoinHandle<()>>,
    view: Arc<RwLock<LeaseView>>,
}

impl SqliteWriter {
    /// Starts the thread.
    pub(super) fn start(connection: Connection, store: String, leases: Leases) -> std::io::Result<Self> {
        connection.set_prepared_statement_cache_capacity(64);
        let (inbox, requests) = channel();
        let view = leases.view();
        let transaction = Thread { connection, store, leases };
        let thread =
            std::thread::Builder::new().name("journal".to_owned()).spawn(move || transaction.run(&requests))?;
        Ok(Self { inbox: Some(inbox), thread: Some(thread), view })
    }

    /// What is known of the leases without asking the database.
    pub(super) fn view(&self) -> &RwLock<LeaseView> {
        &self.view
    }

    /// Queues a request.
    pub(super) fn ask<R: WriteRequest>(&self, request: R) -> Ticket<R::Answer> {
        let (asker, answer) = oneshot::channel();
        // If the thread is gone, the sender is dropped, and the ticket reports that.
        let _ = self.send(WriterMessage::Job(Box::new(Pending { request, outcome: None, asker })));
        Ticket::Coming(answer)
    }

    fn send(&self, message: WriterMessage) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| inbox.send(message).is_ok())
    }

    /// Works on the writer's connection between two batches; `false` ends the thread as a crash would: the lock
    /// is released, leases are not.
    #[cfg(test)]
    pub(super) fn touch(&self, work: impl FnOnce(&Connection) -> bool + Send + 'static) {
        assert!(self.send(WriterMessage::Touch(Box::new(work))));
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            // It does not panic; and if it did, there would be nobody to answer.
            let _ = thread.join();
        }
    }
}

/// Why a transaction failed.
struct TransactionError {
    fault: StoreError,
    /// Whether it may help the other requests to try each alone.
    one_by_one: bool,
}

struct Thread {
    connection: Connection,
    store: String,
    leases: Leases,
}

impl Thread {
    fn run(mut self, requests: &Receiver<WriterMessage>) {
        let mut batch: Vec<Box<dyn Job>> = Vec::new();
        let mut callers = 0;
        while let Some(first) = self.wait(requests) {
            let mut message = first;
            loop {
                match message {
                    Some(WriterMessage::Job(job)) => batch.push(job),
                    #[cfg(test)]
                    Some(WriterMessage::Touch(work)) => {
                        if !work(&self.connection) {
                            return;
                        }
                    }
                    None => break,
                }
                message = if batch.len() < callers {
                    requests.recv_timeout(BATCH_WAIT).ok()
                } else if batch.len() < MAX_BATCH_REQUESTS {
                    requests.try_recv().ok()
                } else {
                    None
                };
            }
            callers = batch.len();
            self.commit(std::mem::take(&mut batch));
        }
        self.leases.leave(&self.connection);
    }

    /// The next request; `Some(None)` when it is time to renew the leases, `None` at the end.
    fn wait(&self, requests: &Receiver<WriterMessage>) -> Option<Option<WriterMessage>> {
        let Some(rest) = self.leases.rest() else {
            return requests.recv().ok().map(Some);
        };
        match requests.recv_timeout(rest) {
            Ok(message) => Some(Some(message)),
            Err(RecvTimeoutError::Timeout) => Some(None),
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }

    /// Performs a batch in one transaction and answers the callers. A request that breaks the transaction must
    /// not fail the others: then each gets a transaction of its own.
    fn commit(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let mut settled = true;
        match self.transact(&mut batch) {
            Err(failure) if failure.one_by_one && batch.len() > 1 => {
                for mut job in batch {
                    let committed = self.transact(std::slice::from_mut(&mut job)).map_err(|failure| failure.fault);
                    job.answer(committed, &mut self.leases);
                }
            }
            outcome => {
                let committed = outcome.map_err(|failure| failure.fault);
                settled = committed.is_ok();
                for job in batch {
                    job.answer(committed.clone(), &mut self.leases);
                }
            }
        }
        if settled {
            self.settle_orphans();
        }
    }

    /// Releases leases that nobody waits for any more, and those that could not be released before. What fails
    /// is retried with the next batch.
    fn settle_orphans(&mut self) {
        for (run_id, fence) in self.leases.take_orphans() {
            let (asker, _) = oneshot::channel();
            let mut job: Box<dyn Job> = Box::new(Pending { request: GiveBack { run_id, fence }, outcome: None, asker });
            let committed = self.transact(std::slice::from_mut(&mut job)).map_err(|failure| failure.fault);
            job.answer(committed, &mut self.leases);
        }
    }

    fn transact(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
        if cfg!(debug_assertions) {
            let coming: usize = jobs.iter().map(|job| job.events()).sum();
            reach(u64::try_from(coming).unwrap_or(0), failpoint::BEFORE_WRITE);
        }
        let done = self.attempt(jobs);
        match done {
            Ok(appended) => {
                reach(appended, failpoint::AFTER_SYNC);
                failpoint::count_appended(appended);
                failpoint::way();
                self.leases.committed();
                Ok(())
            }
            Err(failure) => {
                if !self.connection.is_autocommit() {
                    // The error that led here is the one to report.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                self.leases.rolled_back();
                Err(failure)
            }
        }
    }

    /// The transaction itself; returns how many events it wrote.
    fn attempt(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<u64, TransactionError> {
        let Self { connection, store, leases } = self;
        let everyones =
            |error: rusqlite::Error| TransactionError { fault: fault(&error, store, None), one_by_one: false };
        execute(connection, "BEGIN IMMEDIATE").map_err(everyones)?;
        if leases.is_due() {
            leases
                .renew(connection)
                .map_err(|trouble| TransactionError { fault: trouble.into_fault(store, None), one_by_one: false })?;
        }
        let mut transaction = Transaction { connection, leases, appended: 0, rows: Vec::new() };
        for job in jobs {
            job.perform(&mut transaction).map_err(|error| {
                let fault = fault(&error, store, Some(job.run_id()));
                TransactionError { one_by_one: !is_everyones(&fault), fault }
            })?;
        }
        let appended = transaction.appended;
        reach(appended, failpoint::AFTER_WRITE);
        execute(connection, "COMMIT").map_err(everyones)?;
        Ok(appended)
    }
}

fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(()).map(|_| ())
}

/// Passes a fail point for each of the next `events` events.
fn reach(events: u64, point: &str) {
    if cfg!(debug_assertions) {
        for offset in 0..events {
            failpoint::hit("journal", failpoint::appended() + offset, point);
        }
    }
}
