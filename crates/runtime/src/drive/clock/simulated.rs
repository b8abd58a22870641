//! A runtime whose clock is simulated: it starts at a given moment, and waits take no time. For scenarios.

use std::cell::Cell;
#[cfg(feature = "simulation")]
use std::io;

use tokio::time::Instant;

/// The start of the simulated clock: by tokio's clock, and in milliseconds since 1970.
#[derive(Clone, Copy)]
struct SimulatedStart {
    at: Instant,
    wall_ms: i64,
}

thread_local! {
    static START: Cell<Option<SimulatedStart>> = const { Cell::new(None) };
}

/// Leaves the simulated clock when the work is over, also when it panics.
#[cfg(feature = "simulation")]
struct Running;

#[cfg(feature = "simulation")]
impl Drop for Running {
    fn drop(&mut self) {
        START.set(None);
    }
}

/// Does work in a runtime of its own on this thread, with sockets. Its clock starts at `wall_ms` too, and continues as
/// time passes.
///
/// # Errors
/// When the runtime can't be made.
#[cfg(feature = "simulation")]
pub fn run_live<T>(wall_ms: i64, work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(async {
        START.set(Some(SimulatedStart { at: Instant::now(), wall_ms }));
        let _running = Running;
        work.await
    }))
}

/// Lets the clock pass a time at once, in a runtime of [`run`] or of [`run_live`].
#[cfg(feature = "simulation")]
pub async fn skip(time: std::time::Duration, is_live: bool) {
    if is_live {
        tokio::time::pause();
    }
    tokio::time::sleep(time).await;
    if is_live {
        tokio::time::resume();
    }
}

/// Does work in a runtime of its own on this thread, without sockets. Its clock starts at `wall_ms`, and continues only
/// when all tasks wait for it: then at once. Chance is the same each time.
///
/// # Errors
/// When the runtime can't be made.
#[cfg(feature = "simulation")]
pub fn run<T>(wall_ms: i64, work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(async {
        START.set(Some(SimulatedStart { at: Instant::now(), wall_ms }));
        let _running = Running;
        fastrand::seed(0);
        work.await
    }))
}

/// Milliseconds since 1970 by the simulated clock of this thread; none if it has none.
pub(super) fn wall_ms() -> Option<i64> {
    let start = START.get()?;
    let passed = Instant::now().saturating_duration_since(start.at).as_millis();
    Some(start.wall_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX)))
}

/// Whether this thread has a simulated clock. Nothing else runs on it then: what takes long may block it, so that the
/// order of all that happens is the same each time.
pub fn is_simulated() -> bool {
    START.get().is_some()
}
