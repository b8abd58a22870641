//! The clocks, in one place.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the clocks")]

use std::fmt::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::journal::failpoint;

pub mod simulated;

/// Milliseconds since 1970 by the machine's clock; 0 for a clock before it.
pub fn wall_ms() -> i64 {
    if let Some(wall_ms) = simulated::wall_ms() {
        return wall_ms;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    now.saturating_add(failpoint::clock_ahead_ms())
}

/// The monotonic clock.
pub fn instant() -> Instant {
    #[cfg(test)]
    return tokio::time::Instant::now().into_std() + played::ahead();
    // The clock of the runtime, which may be simulated.
    #[cfg(not(test))]
    tokio::time::Instant::now().into_std()
}

/// Waits. In a test with a played clock the wait takes no time, and moves that clock ahead.
pub async fn sleep(duration: Duration) {
    #[cfg(test)]
    if played::wait(duration) {
        return tokio::task::yield_now().await;
    }
    tokio::time::sleep(duration).await;
}

/// The time since `since`, monotonic.
pub fn elapsed(since: Instant) -> Duration {
    instant().saturating_duration_since(since)
}

/// Milliseconds since `since`, monotonic.
pub fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(elapsed(since).as_millis()).unwrap_or(u64::MAX)
}

/// A moment in RFC 3339, UTC, to the millisecond.
pub fn rfc3339(wall_ms: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(wall_ms) else { return wall_ms.to_string() };
    // Written directly into its buffer: a string that grows would be moved twice.
    let mut text = String::with_capacity("2026-01-01T00:00:00.000Z".len());
    // Writing to a string can't fail.
    let _ = write!(text, "{at:.3}");
    text
}

/// The same in ISO 8601's basic form, to the second: `20260101T000000Z`.
pub fn basic(wall_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(wall_ms).unwrap_or_default().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// A clock that a test plays, so that an hour passes in no time.
#[cfg(test)]
pub mod played {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    thread_local! {
        static PLAYED: RefCell<Option<Arc<AtomicU64>>> = const { RefCell::new(None) };
    }

    /// The played clock of this thread, until it is dropped.
    pub struct PlayedClock(Arc<AtomicU64>);

    impl PlayedClock {
        /// From now on, waits of this thread take no time.
        pub fn start() -> Self {
            let ahead = Arc::new(AtomicU64::new(0));
            PLAYED.set(Some(Arc::clone(&ahead)));
            Self(ahead)
        }

        /// The milliseconds that were waited so far, for a server on another thread.
        pub fn waited_ms(&self) -> Arc<AtomicU64> {
            Arc::clone(&self.0)
        }
    }

    impl Drop for PlayedClock {
        fn drop(&mut self) {
            PLAYED.set(None);
        }
    }

    /// By how much the clock is ahead.
    pub fn ahead() -> Duration {
        let ahead = PLAYED.with_borrow(|played| played.as_ref().map_or(0, |ahead| ahead.load(Ordering::SeqCst)));
        Duration::from_millis(ahead)
    }

    /// Waits on the played clock; `false` when the thread has none.
    pub fn wait(duration: Duration) -> bool {
        let more = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        PLAYED.with_borrow(|played| {
            let ahead = played.as_ref();
            ahead.map(|ahead| ahead.fetch_add(more, Ordering::SeqCst)).is_some()
        })
    }
}
