//! The calls of older clients that are under way: a later message of the same session may cancel one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::serve::quotas::Owner;

/// What names a request of an older client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionRequest {
    /// Whose session it is.
    pub owner: Owner,
    /// Its session.
    pub session: String,
    /// Its id, as it is written.
    pub id: String,
}

/// The requests that can be cancelled.
#[derive(Debug, Default)]
pub struct McpCallRegistry(Mutex<HashMap<SessionRequest, watch::Sender<bool>>>);

/// A request that can be cancelled, until this is dropped.
pub struct CancellableCall {
    registry: Arc<McpCallRegistry>,
    request: SessionRequest,
    cancelled: watch::Receiver<bool>,
}

impl McpCallRegistry {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionRequest, watch::Sender<bool>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; none when its id is in use.
    pub fn join(self: &Arc<Self>, request: SessionRequest) -> Option<CancellableCall> {
        let mut all = self.all();
        if all.contains_key(&request) {
            return None;
        }
        let sender = watch::Sender::new(false);
        let cancelled = sender.subscribe();
        all.insert(request.clone(), sender);
        Some(CancellableCall { registry: Arc::clone(self), request, cancelled })
    }

    /// Cancels a request, if it is under way here.
    pub fn cancel(&self, request: &SessionRequest) {
        if let Some(sender) = self.all().get(request) {
            sender.send_replace(true);
        }
    }
}

impl CancellableCall {
    /// Waits until it is cancelled.
    pub async fn cancelled(&mut self) {
        if self.cancelled.wait_for(|is_cancelled| *is_cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for CancellableCall {
    fn drop(&mut self) {
        self.registry.all().remove(&self.request);
    }
}
