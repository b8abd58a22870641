//! The door of a gate: one is at it at a time, and those that wait for it come in turns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::turns::{FairTurns, TurnOwner};

#[derive(Default)]
pub(super) struct Door(Arc<Mutex<DoorLine>>);

#[derive(Default)]
struct DoorLine {
    is_taken: bool,
    waiting: FairTurns<oneshot::Sender<AtDoor>>,
}

/// Who is at the door; dropping this lets the next one come to it.
pub(super) struct AtDoor(Option<Arc<Mutex<DoorLine>>>);

impl Door {
    /// Waits for the turn of this one.
    pub async fn first(&self, asker: TurnOwner) -> AtDoor {
        let called = {
            let mut line = lock(&self.0);
            if !line.is_taken {
                line.is_taken = true;
                return AtDoor(Some(Arc::clone(&self.0)));
            }
            let (call, called) = oneshot::channel();
            line.waiting.push(asker, call);
            called
        };
        // The line keeps each call until its turn.
        called.await.unwrap_or(AtDoor(None))
    }
}

impl Drop for AtDoor {
    fn drop(&mut self) {
        let Some(line) = self.0.take() else { return };
        let mut here = AtDoor(Some(Arc::clone(&line)));
        loop {
            let next = {
                let mut line = lock(&line);
                let next = line.waiting.next(oneshot::Sender::is_closed);
                line.is_taken = next.is_some();
                next
            };
            let Some(next) = next else {
                here.0 = None;
                return;
            };
            match next.send(here) {
                Ok(()) => return,
                // It has left at this moment.
                Err(back) => here = back,
            }
        }
    }
}

fn lock(line: &Mutex<DoorLine>) -> MutexGuard<'_, DoorLine> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}
