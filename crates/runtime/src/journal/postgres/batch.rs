//! What waits for a statement that many runs share: while one is under way, the next entries gather.

use std::future::Future;

use tokio::sync::mpsc;

use super::connection::StatementPatience;
use super::database::Database;
use super::database_errors::StatementError;

/// The most bytes in a statement; one entry more may be in it.
pub(super) const MOST_BYTES: usize = 8 << 20;

/// Waits for the next entries of an inbox: all that are there, at most `most`. None when no more can come.
pub(super) async fn gather<T>(
    inbox: &mut mpsc::UnboundedReceiver<T>,
    most: usize,
    bytes_of: impl Fn(&T) -> usize,
) -> Option<Vec<T>> {
    let mut gathered = vec![inbox.recv().await?];
    let mut bytes = gathered.iter().map(&bytes_of).sum::<usize>();
    while gathered.len() < most
        && bytes < MOST_BYTES
        && let Ok(next) = inbox.try_recv()
    {
        bytes = bytes.saturating_add(bytes_of(&next));
        gathered.push(next);
    }
    Some(gathered)
}

impl Database {
    /// Sends a statement until its outcome is known. The lease is what limits the patience: when it is
    /// over, another driver may have the runs.
    ///
    /// # Errors
    /// Also when one of several entries may have broken the statement for all: then each is sent alone.
    pub(super) async fn persist_batch<T, F: Future<Output = Result<T, StatementError>>>(
        &self,
        entries: usize,
        send: impl Fn() -> F,
    ) -> Result<T, StatementError> {
        let mut patience = StatementPatience::new(self.held.ttl());
        loop {
            match send().await {
                Ok(outcomes) => return Ok(outcomes),
                Err(StatementError::Undone(why)) if entries > 1 => return Err(StatementError::Undone(why)),
                Err(trouble @ (StatementError::Lost(_) | StatementError::Undone(_))) => {
                    patience.again(trouble).await?;
                }
                Err(trouble) => return Err(trouble),
            }
        }
    }
}
