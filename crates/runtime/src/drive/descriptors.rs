//! File descriptors: when this process or the machine has none left, neither a server nor a tool has failed.
//! The call waits, and no attempt is counted; the deadline of the call limits the wait.

use std::error::Error;
use std::fs::File;
use std::io;
use std::time::Duration;

/// What a system says when the machine, or this process, has none left: `ENFILE` and `EMFILE`, the same everywhere.
#[cfg(unix)]
const NONE_LEFT: [i32; 2] = [23, 24];
#[cfg(not(unix))]
const NONE_LEFT: [i32; 0] = [];

/// The most descriptors that a call needs: a database has a file, a log and an index.
const NEEDED: usize = 4;

/// The descriptors of a process that requests to models leave to the store, the listener and folders.
const RESERVED: usize = 64;
/// The most requests to models that a process has open at once, however many descriptors it may have.
const MOST_REQUESTS: usize = 1 << 20;

/// The number of files that this process may open.
pub fn limit() -> usize {
    #[cfg(unix)]
    let soft = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).map(|(soft, _)| soft).ok();
    #[cfg(not(unix))]
    let soft: Option<u64> = None;
    soft.and_then(|soft| usize::try_from(soft).ok()).unwrap_or(usize::MAX)
}

/// How many requests to models a process may have open at once that may open `files` files: the other half is for clients and tools.
pub(super) fn requests(files: usize) -> usize {
    (files / 2).saturating_sub(RESERVED).max(files / 8).clamp(1, MOST_REQUESTS)
}

/// The first wait, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Waits that get longer.
#[derive(Debug, Default)]
pub struct Patience {
    last: Option<Duration>,
}

impl Patience {
    /// Waits for a descriptor. Drop this future at the deadline of the call.
    pub async fn wait(&mut self) {
        if self.last.is_none() {
            tracing::warn!("no descriptor is left: waiting for one");
        }
        let next = self.last.map_or(FIRST_WAIT, |last| last.saturating_mul(2).min(LONGEST_WAIT));
        self.last = Some(next);
        tokio::time::sleep(next).await;
    }
}

/// Whether something failed because no descriptor was left. A name lookup hides that error: then this tries to
/// get one.
pub fn none_left(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(says_so) {
            return true;
        }
        cause = error.source();
    }
    are_gone(1)
}

/// Waits until there are descriptors, for operations that do not report why they failed, or keep their result.
pub async fn available() {
    let mut patience = Patience::default();
    while are_gone(NEEDED) {
        patience.wait().await;
    }
}

/// Whether an error says that no descriptor was left.
pub fn says_so(error: &io::Error) -> bool {
    let inner = || error.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>());
    error.raw_os_error().is_some_and(|code| NONE_LEFT.contains(&code)) || inner().is_some_and(says_so)
}

/// Whether `count` descriptors can't be had.
fn are_gone(count: usize) -> bool {
    let opened: Result<Vec<File>, io::Error> = (0..count).map(|_| File::open("/dev/null")).collect();
    opened.is_err_and(|error| says_so(&error))
}
