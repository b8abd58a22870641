//! Who reads replies while they arrive: a model is asked to stream only when somebody does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of readers of each run's replies.
#[derive(Debug, Default)]
pub struct ReplyReaders {
    counts: Mutex<HashMap<String, usize>>,
}

/// A reader of a run's replies, until it is dropped.
#[derive(Debug)]
pub struct ReplyReader {
    readers: Arc<ReplyReaders>,
    run_id: String,
}

impl ReplyReaders {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a reader.
    pub fn join(self: &Arc<Self>, run_id: &str) -> ReplyReader {
        *self.counts().entry(run_id.to_owned()).or_default() += 1;
        ReplyReader { readers: Arc::clone(self), run_id: run_id.to_owned() }
    }

    /// Whether a run has any.
    pub fn has(&self, run_id: &str) -> bool {
        self.counts().contains_key(run_id)
    }
}

impl Drop for ReplyReader {
    fn drop(&mut self) {
        let mut counts = self.readers.counts();
        if let Some(count) = counts.get_mut(&self.run_id) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.run_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_readers_until_the_last_one_leaves() {
        let readers = Arc::new(ReplyReaders::default());
        let (first, second) = (readers.join("a"), readers.join("a"));
        drop(first);
        assert!(readers.has("a") && !readers.has("b"));
        drop(second);
        assert!(!readers.has("a") && readers.counts().is_empty());
    }
}
