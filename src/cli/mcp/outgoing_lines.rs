//! The lines that wait to be written to a client. A client that reads nothing can't hold the process: while a line waits, no message is
//! read, and so the end of the input is not seen either.

use std::time::Duration;

use tokio::sync::{mpsc, watch};

/// The most messages that wait to be written.
const MAX_UNWRITTEN: usize = 256;
/// How long a client may take to read a line, before the session ends; as over HTTP.
const TIME_TO_TAKE: Duration = Duration::from_secs(30);
/// How long it may take when the session ends.
pub(super) const TIME_TO_READ: Duration = Duration::from_secs(1);

/// The lines of a session.
pub(super) struct OutgoingLines {
    lines: mpsc::Sender<String>,
    /// Whether the session ends.
    ending: watch::Sender<bool>,
    /// Whether nobody reads.
    stalled: watch::Sender<bool>,
    /// Changes whenever the client has read something.
    taken: watch::Sender<()>,
}

impl OutgoingLines {
    /// No lines, and where they come out.
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (lines, unwritten) = mpsc::channel(MAX_UNWRITTEN);
        let (ending, stalled) = (watch::Sender::new(false), watch::Sender::new(false));
        (Self { lines, ending, stalled, taken: watch::Sender::new(()) }, unwritten)
    }

    /// Writes a line. In a session that ends it is lost if nobody reads.
    pub(super) async fn write(&self, line: String) {
        let over = async {
            until(&self.ending).await;
            tokio::time::sleep(TIME_TO_READ).await;
        };
        tokio::select! {
            biased;
            _ = self.lines.send(line) => {}
            () = over => {}
            () = until(&self.stalled) => {}
            () = self.nothing_taken() => {
                tracing::warn!(
                    "the client has read nothing for {} s: the session ends, and each run finishes its step",
                    TIME_TO_TAKE.as_secs()
                );
                self.stalled.send_replace(true);
            }
        }
    }

    /// Waits until the client has read nothing for a while: no line, and no part of one.
    async fn nothing_taken(&self) {
        let mut taken = self.taken.subscribe();
        // The sender is this one: an error can't come.
        while tokio::time::timeout(TIME_TO_TAKE, taken.changed()).await.is_ok_and(|changed| changed.is_ok()) {}
    }

    /// What is changed whenever the client has read something.
    pub(super) fn taken(&self) -> watch::Sender<()> {
        self.taken.clone()
    }

    /// Where lines are put that may be lost.
    pub(super) fn sender(&self) -> mpsc::Sender<String> {
        self.lines.clone()
    }

    /// The session ends.
    pub(super) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// What ends the session.
    pub(super) fn ending(&self) -> watch::Sender<bool> {
        self.ending.clone()
    }

    /// Waits until the session ends.
    pub(super) async fn ended(&self) {
        until(&self.ending).await;
    }

    /// Waits until nobody reads any more.
    pub(super) async fn unread(&self) {
        tokio::select! {
            () = self.lines.closed() => {}
            () = until(&self.stalled) => {}
        }
    }
}

async fn until(state: &watch::Sender<bool>) {
    if state.subscribe().wait_for(|is_so| *is_so).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_ends_the_session_after_a_while_and_holds_no_line() {
        let (lines, mut unwritten) = OutgoingLines::new();
        for number in 0..MAX_UNWRITTEN {
            lines.write(number.to_string()).await;
        }
        assert!(lines.unread().now_or_never().is_none());
        // One that is slow reads all of it.
        let slow = async {
            tokio::time::sleep(TIME_TO_TAKE / 2).await;
            unwritten.recv().await
        };
        let ((), first) = tokio::join!(lines.write("late".to_owned()), slow);
        assert!(first.as_deref() == Some("0") && lines.unread().now_or_never().is_none());
        // So does one that takes parts of a long line for longer than that.
        let parts = async {
            for _ in 0..3 {
                tokio::time::sleep(TIME_TO_TAKE / 2).await;
                lines.taken().send_replace(());
            }
            tokio::time::sleep(TIME_TO_TAKE / 2).await;
            unwritten.recv().await
        };
        let ((), second) = tokio::join!(lines.write("later".to_owned()), parts);
        assert!(second.as_deref() == Some("1") && lines.unread().now_or_never().is_none());
        lines.write("lost".to_owned()).await;
        assert!(lines.unread().now_or_never().is_some());
        // No other line waits as long.
        let before = tokio::time::Instant::now();
        lines.write("lost too".to_owned()).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_that_ends_waits_a_moment_for_its_reader() {
        let (lines, _unwritten) = OutgoingLines::new();
        for number in 0..MAX_UNWRITTEN {
            lines.write(number.to_string()).await;
        }
        lines.end();
        lines.ended().await;
        let before = tokio::time::Instant::now();
        lines.write("lost".to_owned()).await;
        assert_eq!(before.elapsed(), TIME_TO_READ);
    }
}
