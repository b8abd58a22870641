//! Notices as a stream, for embedders that prefer reading to a callback.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::mpsc;

use loopctl_engine::notice::{Listener, Notice};

/// Lets a listener hear a notice. It is code of the host: a panic of it is logged, and the run continues.
pub(super) fn report(listener: &dyn Listener, notice: Notice) {
    if catch_unwind(AssertUnwindSafe(|| listener.on(notice))).is_err() {
        tracing::error!("a listener panicked at a notice: the run continues");
    }
}

/// A listener and the stream of its notices. The run never waits for the reader: unread notices are kept in
/// memory, and notices after the stream was dropped are discarded. The stream ends when the listener is
/// dropped.
pub fn notices() -> (NoticeSender, Notices) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (NoticeSender { sender, deltas: false }, Notices { receiver })
}

/// Puts the notices of a run into a [`Notices`] stream.
#[derive(Debug, Clone)]
pub struct NoticeSender {
    sender: mpsc::UnboundedSender<Notice>,
    deltas: bool,
}

impl NoticeSender {
    /// The same, with the model's replies in pieces as they come.
    #[must_use]
    pub fn with_deltas(self) -> Self {
        Self { deltas: true, ..self }
    }
}

impl Listener for NoticeSender {
    fn on(&self, notice: Notice) {
        // If the stream was dropped, nobody wants the notice.
        drop(self.sender.send(notice));
    }

    fn wants_deltas(&self) -> bool {
        self.deltas
    }
}

/// The notices of a run, in order.
#[derive(Debug)]
pub struct Notices {
    receiver: mpsc::UnboundedReceiver<Notice>,
}

impl Notices {
    /// The next notice; none when every [`NoticeSender`] is gone.
    pub async fn next(&mut self) -> Option<Notice> {
        self.receiver.recv().await
    }
}

impl Stream for Notices {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.receiver.poll_recv(context)
    }
}
