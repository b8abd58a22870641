//! Servers that nobody needs any more, and that have not ended yet: a process that ends waits for them, because what they have
//! acknowledged may still be on its way to a file.

use std::sync::LazyLock;
use std::time::Duration;

use tokio::sync::watch;

/// How long a server may take to end by itself, then after it was asked to.
pub(super) const TIME_TO_END: Duration = Duration::from_secs(2);
pub(super) const TIME_AFTER_ASKED: Duration = Duration::from_secs(1);
/// A little more than both.
const AT_MOST: Duration = Duration::from_millis(3_500);

/// How many servers of this process are ending.
static ENDING: LazyLock<watch::Sender<usize>> = LazyLock::new(|| watch::Sender::new(0));

/// While this is held, a server is ending.
#[derive(Debug)]
pub(super) struct LeavingServer(());

impl LeavingServer {
    pub(super) fn new() -> Self {
        ENDING.send_modify(|ending| *ending = ending.saturating_add(1));
        Self(())
    }
}

impl Drop for LeavingServer {
    fn drop(&mut self) {
        ENDING.send_modify(|ending| *ending = ending.saturating_sub(1));
    }
}

/// Waits until the servers that nobody needs any more have ended. What has not ended in its time is killed.
pub async fn servers_ended() {
    let mut ending = ENDING.subscribe();
    let _ = tokio::time::timeout(AT_MOST, ending.wait_for(|ending| *ending == 0)).await;
}
