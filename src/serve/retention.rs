//! Deletes runs that ended long ago, when the project file says for how long they are kept.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::app::App;
use crate::drive::clock;
use crate::engine::outcome::Status;
use crate::journal::prune::prune_all;
use futures_util::FutureExt as _;

/// The interval of the looks.
const RETENTION_INTERVAL: Duration = Duration::from_secs(600);
/// The statuses of runs that ended.
const ENDS: [Status; 3] = [Status::Completed, Status::Failed, Status::Cancelled];
const DAY_MS: i64 = 86_400_000;

/// Deletes runs now, and from then on every ten minutes, if the project says so.
pub fn watch(app: &Arc<App>) {
    let Some(days) = app.folder.project.serve.keep_days else { return };
    let app: Weak<App> = Arc::downgrade(app);
    tokio::spawn(
        async move {
            loop {
                let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                let before_ms = clock::wall_ms().saturating_sub(i64::from(days).saturating_mul(DAY_MS));
                match prune_all(&*app.runs.journal, before_ms, &ENDS).await {
                    Ok(0) => {}
                    Ok(runs) => tracing::info!(runs, "deleted runs that ended more than {days} days ago"),
                    Err(fault) => tracing::error!(code = fault.code(), "old runs can't be deleted: {fault}"),
                }
                drop(app);
                tokio::time::sleep(RETENTION_INTERVAL).await;
            }
        }
        .boxed(),
    );
}
