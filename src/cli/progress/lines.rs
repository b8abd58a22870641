//! Lines for machines, written by their own thread: a slow or absent reader never delays a run. Unread lines
//! are kept in memory.

use std::sync::mpsc::{Sender, channel};

use tokio::sync::oneshot;

use super::super::surface::Surface;

/// Writes lines to stdout in their order.
pub struct Lines {
    sender: Sender<String>,
    done: oneshot::Receiver<()>,
}

impl Lines {
    /// A writer without lines.
    pub fn new(surface: Surface) -> Self {
        let (sender, lines) = channel::<String>();
        let (ended, done) = oneshot::channel();
        std::thread::spawn(move || {
            for line in lines {
                // A reader that has gone away, or a full disk, must not end the run: its result is in the
                // store.
                let _ = surface.print(&line);
            }
            // Perhaps nobody waits any more.
            let _ = ended.send(());
        });
        Self { sender, done }
    }

    /// Adds a line.
    pub fn write(&self, line: String) {
        // The thread lives as long as `self`.
        let _ = self.sender.send(line);
    }

    /// Waits until all lines are written.
    pub async fn drained(self) {
        drop(self.sender);
        let _ = self.done.await;
    }
}
