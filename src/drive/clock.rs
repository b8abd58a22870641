//! The clocks, in one place.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the clocks")]

use std::fmt::Write;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::journal::failpoint;

/// Milliseconds since 1970 by the machine's clock; 0 for a clock before it.
pub fn wall_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX));
    now.saturating_add(failpoint::clock_ahead_ms())
}

/// The monotonic clock.
pub fn instant() -> Instant {
    Instant::now()
}

/// Milliseconds since `since`, monotonic.
pub fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(instant().saturating_duration_since(since).as_millis()).unwrap_or(u64::MAX)
}

/// A moment in RFC 3339, UTC, to the millisecond.
pub fn rfc3339(wall_ms: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(wall_ms) else { return wall_ms.to_string() };
    // Written into its place: a text that grows would move twice.
    let mut text = String::with_capacity("2026-01-01T00:00:00.000Z".len());
    // A text takes whatever is written to it.
    let _ = write!(text, "{at:.3}");
    text
}
