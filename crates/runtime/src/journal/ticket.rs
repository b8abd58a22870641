//! The future of a store's answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::fault::StoreFault;

/// An answer of the store: ready, or awaited. A ready one needs no allocation.
#[derive(Debug)]
pub enum Ticket<T> {
    /// Ready; `None` once it was taken.
    Ready(Option<Result<T, StoreFault>>),
    /// Awaited.
    Coming(oneshot::Receiver<Result<T, StoreFault>>),
}

impl<T> Ticket<T> {
    /// An answer that is ready.
    pub fn ready(answer: Result<T, StoreFault>) -> Self {
        Self::Ready(Some(answer))
    }
}

impl<T: Unpin> Future for Ticket<T> {
    type Output = Result<T, StoreFault>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let gone = || StoreFault::Other("the store's thread is gone".to_owned());
        match self.get_mut() {
            Self::Ready(answer) => Poll::Ready(answer.take().unwrap_or_else(|| Err(gone()))),
            Self::Coming(receiver) => {
                Pin::new(receiver).poll(context).map(|answer| answer.unwrap_or_else(|_| Err(gone())))
            }
        }
    }
}
