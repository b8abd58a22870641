//! Something to be written, and the transaction that it is written in.

use rusqlite::Connection;

use super::database_errors::RequestError;
use super::leases::Leases;

/// What a request works with: the open transaction.
pub(super) struct Transaction<'a> {
    pub(super) connection: &'a Connection,
    pub(super) leases: &'a mut Leases,
    /// The events that were written in it.
    pub(super) appended: u64,
    /// The keys of the runs that the request created or leased.
    pub(super) rows: Vec<i64>,
}

/// Something to be written.
pub(super) trait WriteRequest: Send + 'static {
    /// What the asker gets.
    type Answer: Send;

    /// The run in question.
    fn run_id(&self) -> &str;

    /// How many events are written.
    fn events(&self) -> usize {
        0
    }

    /// Performs the request. May be called again after a rollback.
    fn perform(&self, transaction: &mut Transaction<'_>) -> Result<Self::Answer, RequestError>;

    /// Called when the write is durable and the caller is about to be answered; `rows` is what the request left
    /// in [`Transaction::rows`].
    fn durable(&self, _answer: &Self::Answer, _rows: &[i64], _leases: &mut Leases) {}

    /// Called when the caller has gone.
    fn unclaimed(&self, _answer: &Self::Answer, _leases: &mut Leases) {}

    /// Called when the transaction was rolled back.
    fn undone(&self, _leases: &mut Leases) {}
}
