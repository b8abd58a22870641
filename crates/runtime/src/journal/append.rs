//! An event on its way into the journal, what is stored with it, and the future of the store's answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde_json::Value;
use tokio::sync::oneshot;

use super::fault::StoreError;
use super::{AuditEntry, StatusRecord};
use loopctl_engine::blob::Blob;

/// An event to be appended.
#[derive(Debug, Clone)]
pub struct Append {
    /// The run.
    pub run_id: String,
    /// The lease's number.
    pub fence: u64,
    /// The event's number, from 0.
    pub seq: u64,
    /// The event, as JSON text.
    pub event: String,
    /// The long texts that the event names, durable together with it: kept once for all runs.
    pub texts: Vec<Blob>,
    /// The run's new status record; `None` when it did not change.
    pub status_record: Option<StatusRecord>,
    /// What to add to the memory of the session, durable together with the event.
    pub remember: Vec<(String, Value)>,
    /// Whether a run that had ended continues with this event: a request to end it is over, and its callback is to be
    /// made again.
    pub reopens: bool,
    /// Whether a request to end the run is answered by the event, and the run continues: a later request is another one.
    pub takes_cancel: bool,
    /// The hash of the answer token that the event uses up: the event is refused when the run has no such token, or it
    /// was used.
    pub answer_token: Option<String>,
    /// The id of the queued decision that the event takes.
    pub decision: Option<String>,
    /// Whether the lease is released together with the event.
    pub release: bool,
    /// What a human did, if the event is that: a line of the audit is written together with it.
    pub audit: Option<Box<AuditEntry>>,
}

impl Append {
    /// An event that nothing else is stored with.
    pub fn new(run_id: String, fence: u64, seq: u64, event: String) -> Self {
        Self {
            run_id,
            fence,
            seq,
            event,
            texts: Vec::new(),
            status_record: None,
            remember: Vec::new(),
            reopens: false,
            takes_cancel: false,
            answer_token: None,
            decision: None,
            release: false,
            audit: None,
        }
    }
}

/// An answer of the store: ready, or awaited. A ready one needs no allocation.
#[derive(Debug)]
pub enum Ticket<T> {
    /// Ready; `None` once it was taken.
    Ready(Option<Result<T, StoreError>>),
    /// Awaited.
    Coming(oneshot::Receiver<Result<T, StoreError>>),
}

impl<T> Ticket<T> {
    /// An answer that is ready.
    pub fn ready(answer: Result<T, StoreError>) -> Self {
        Self::Ready(Some(answer))
    }
}

impl<T: Unpin> Future for Ticket<T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let gone = || StoreError::Other("the store's thread is gone".to_owned());
        match self.get_mut() {
            Self::Ready(answer) => Poll::Ready(answer.take().unwrap_or_else(|| Err(gone()))),
            Self::Coming(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(gone())))
            }
        }
    }
}
