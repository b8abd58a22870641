//! The clocks that leases depend on: the machine's, which other processes share, and a monotonic
//! one, which no one can set.

use std::time::Instant;

use super::failpoint;

/// Both clocks. In tests they can be put forward.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "read by stores with leases only")
    )]
    start: Instant,
    #[cfg(test)]
    ahead_ms: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Clock {
    /// The machine's clocks.
    #[expect(clippy::disallowed_methods, reason = "leases depend on the clock, and this room may not import drive")]
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            #[cfg(test)]
            ahead_ms: std::sync::Arc::default(),
        }
    }

    /// Milliseconds since 1970; 0 for a clock before it.
    #[expect(clippy::disallowed_methods, reason = "leases depend on the clock, and this room may not import drive")]
    pub(super) fn wall_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        now.saturating_add_unsigned(self.ahead()).saturating_add(failpoint::clock_ahead_ms())
    }

    /// Milliseconds since this clock was created; never goes back.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(self.ahead())
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "the clock of the tests has something here")]
    const fn ahead(&self) -> u64 {
        0
    }

    #[cfg(test)]
    fn ahead(&self) -> u64 {
        self.ahead_ms.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Advances both clocks, and their clones.
    #[cfg(test)]
    pub(super) fn advance(&self, by_ms: u64) {
        self.ahead_ms.fetch_add(by_ms, std::sync::atomic::Ordering::SeqCst);
    }
}
