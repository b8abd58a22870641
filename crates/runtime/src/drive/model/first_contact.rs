//! The first contact with the servers of models: somebody has just started a run, and perhaps not the server.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::failure::{AttemptFailure, SentPart};
use loopctl_lang::language::react::Retry;

/// How long a model is retried whose server refuses each connection, while no server of a model was reached.
const REFUSED_FOR_MS: u64 = 10_000;

/// Whether the servers of models are still to be reached for the first time. It is off unless a run is waited for that has
/// just started: elsewhere a port where nobody listens is that of a server which is restarted.
#[derive(Debug, Default)]
pub(super) struct FirstContact {
    is_awaited: AtomicBool,
}

impl FirstContact {
    /// A run begins, and whoever started it waits for it.
    pub(super) fn is_awaited(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
    }

    /// A server answered, or failed in another way than by a refused connection.
    pub(super) fn is_made(&self) {
        self.is_awaited.store(false, Ordering::SeqCst);
    }

    /// Takes note of a failed attempt. Returns whether nothing listens where the server should be, and never did.
    pub(super) fn misses(&self, failure: &AttemptFailure) -> bool {
        if failure.sent != SentPart::NobodyListens {
            self.is_made();
        }
        self.is_awaited.load(Ordering::SeqCst)
    }
}

/// The rule of the retries: where nothing listens, a short one, unless the document says how long or how often.
pub(super) fn rule(retry: &Retry, is_missed: bool) -> Cow<'_, Retry> {
    match (is_missed, retry.for_ms, retry.attempts) {
        (true, None, None) => Cow::Owned(Retry { for_ms: Some(REFUSED_FOR_MS), ..retry.clone() }),
        _ => Cow::Borrowed(retry),
    }
}
