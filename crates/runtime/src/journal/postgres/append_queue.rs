//! What waits to be appended, and which part of it is the next statement's.

use std::collections::HashSet;

use tokio::sync::oneshot;

use super::batch::MOST_BYTES;
use crate::journal::{Append, StoreFault};

/// The most events in a statement.
pub(super) const MOST_EVENTS: usize = 512;
/// From this number on, events are worth a statement of their own while another one is under way: the database has the next one before
/// it has answered the last. Fewer wait, as one statement for all costs it less.
const ENOUGH_EVENTS: usize = 16;

/// An event, and who waits for its commit.
pub(super) struct QueuedAppend {
    pub entry: Append,
    pub asker: oneshot::Sender<Result<(), StoreFault>>,
}

/// The events that wait. The next event of a run waits for the one before it: a statement may be sent again, and another
/// one must not be done in between.
#[derive(Default)]
pub(super) struct AppendQueue {
    pub waiting: Vec<QueuedAppend>,
    /// The runs whose events are under way.
    busy: HashSet<String>,
    statements: usize,
}

impl AppendQueue {
    /// The events of the next statement, if one is due. They are under way until [`AppendQueue::done`].
    pub fn next_batch(&mut self) -> Option<Vec<QueuedAppend>> {
        let free = self.waiting.iter().filter(|append| !self.busy.contains(&append.entry.run_id)).count();
        let most = match self.statements {
            // Two statements in place of one, so that the second is there when the first is done.
            0 if free >= 2 * ENOUGH_EVENTS => free.div_ceil(2),
            0 => free,
            1 if free >= ENOUGH_EVENTS => free,
            _ => 0,
        };
        if most == 0 {
            return None;
        }
        let (mut batch, mut bytes) = (Vec::with_capacity(most), 0_usize);
        let mut left = Vec::new();
        for append in self.waiting.drain(..) {
            let is_free = batch.len() < most && bytes < MOST_BYTES && !self.busy.contains(&append.entry.run_id);
            if is_free {
                bytes = bytes.saturating_add(append.entry.event.len());
                batch.push(append);
            } else {
                left.push(append);
            }
        }
        self.waiting = left;
        self.busy.extend(batch.iter().map(|append| append.entry.run_id.clone()));
        self.statements += 1;
        Some(batch)
    }

    /// A statement with events of these runs is done.
    pub fn done(&mut self, run_ids: Vec<String>) {
        for run_id in run_ids {
            self.busy.remove(&run_id);
        }
        self.statements = self.statements.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::event;

    /// A queue with events of these runs, each of `bytes` bytes.
    fn queue(runs: impl IntoIterator<Item = usize>, bytes: usize) -> AppendQueue {
        let waiting = runs.into_iter().enumerate().map(|(seq, run)| append(run, seq, bytes)).collect();
        AppendQueue { waiting, ..AppendQueue::default() }
    }

    fn append(run: usize, seq: usize, bytes: usize) -> QueuedAppend {
        let event = event(&format!("run-{run}"), 1, u64::try_from(seq).unwrap());
        let entry = Append { event: "x".repeat(bytes), ..event };
        QueuedAppend { entry, asker: oneshot::channel().0 }
    }

    fn numbers(batch: Option<Vec<QueuedAppend>>) -> Vec<u64> {
        batch.unwrap_or_default().iter().map(|append| append.entry.seq).collect()
    }

    #[test]
    fn a_few_events_wait_for_the_statement_before_them_and_many_are_sent_meanwhile() {
        let mut queue = queue(0..3, 1);
        assert_eq!(numbers(queue.next_batch()), [0, 1, 2]);
        queue.waiting.extend((0..15).map(|run| append(100 + run, run, 1)));
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        queue.waiting.push(append(200, 15, 1));
        assert_eq!(numbers(queue.next_batch()).len(), 16);
        // A third statement is too many.
        queue.waiting.extend((0..64).map(|run| append(300 + run, run, 1)));
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        queue.done(vec!["run-0".to_owned()]);
        assert_eq!(numbers(queue.next_batch()).len(), 64);
    }

    #[test]
    fn many_events_are_two_statements() {
        let mut queue = queue(0..33, 1);
        assert_eq!((numbers(queue.next_batch()).len(), numbers(queue.next_batch()).len()), (17, 16));
        let mut queue = self::queue(0..31, 1);
        assert_eq!((numbers(queue.next_batch()).len(), numbers(queue.next_batch()).len()), (31, 0));
    }

    #[test]
    fn events_of_a_run_are_never_in_two_statements_at_once() {
        // Twenty runs with two events each: the first half of the forty takes one event of each.
        let mut queue = queue((0..40).map(|number| number % 20), 1);
        assert_eq!(numbers(queue.next_batch()), (0..20).collect::<Vec<u64>>());
        assert_eq!(numbers(queue.next_batch()), [0_u64; 0]);
        let first: Vec<String> = (0..20).map(|run| format!("run-{run}")).collect();
        queue.done(first);
        assert_eq!(numbers(queue.next_batch()), (20..40).collect::<Vec<u64>>());
    }

    #[test]
    fn a_statement_is_closed_when_its_bytes_are_enough() {
        let mut queue = queue(0..4, MOST_BYTES / 2);
        assert_eq!(numbers(queue.next_batch()), [0, 1]);
        queue.done(vec!["run-0".to_owned(), "run-1".to_owned()]);
        assert_eq!(numbers(queue.next_batch()), [2, 3]);
    }
}
