//! Lines for machines, written by their own thread: a slow or absent reader never delays a run. Unread lines
//! are kept in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

use tokio::sync::oneshot;

use super::super::surface::Surface;

/// A reader with more bytes of waiting lines than this is behind.
const MAX_WAITING_BYTES: usize = 256 * 1024;

/// Writes lines to stdout in their order.
pub struct Lines {
    sender: Sender<String>,
    /// The bytes that are not written yet.
    waiting: Arc<AtomicUsize>,
    done: oneshot::Receiver<()>,
}

impl Lines {
    /// A writer without lines.
    pub fn new(surface: Surface) -> Self {
        let (sender, lines) = channel::<String>();
        let (ended, done) = oneshot::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let unwritten = Arc::clone(&waiting);
        std::thread::spawn(move || {
            for line in lines {
                // A reader that has gone away, or a full disk, must not end the run: its result is in the
                // store.
                let _ = surface.print(&line);
                unwritten.fetch_sub(line.len(), Ordering::Relaxed);
            }
            // Perhaps nobody waits any more.
            let _ = ended.send(());
        });
        Self { sender, waiting, done }
    }

    /// Adds a line.
    pub fn write(&self, line: String) {
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // The thread lives as long as `self`.
        let _ = self.sender.send(line);
    }

    /// Whether the reader is far behind.
    pub fn is_behind(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > MAX_WAITING_BYTES
    }

    /// Waits until all lines are written.
    pub async fn drained(self) {
        drop(self.sender);
        let _ = self.done.await;
    }
}
