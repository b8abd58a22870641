//! Reads the served folder again: loops, tokens, the project file and secrets are replaced together, or not at all.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;

use super::app::App;
use super::authorizer::Authorizer;
use super::folder::Folder;
use super::folder_files::FolderFiles;
use super::live_folder::{LiveFolder, ReloadFault};
use super::run_store;
use super::service::ServeError;
use super::token_notices;
use super::worker_folders::short;
use crate::drive::clock;

/// The interval of the looks at the files of a folder that is watched.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// The most names of loops in a line of the log.
const MOST_NAMES: usize = 20;

/// Reads the folder again, of a server at this address. Runs that are under way keep their documents; a folder with a fault is not served, and the one
/// before it is.
///
/// # Errors
/// Why the folder is served as it was.
pub async fn reload(app: &Arc<App>, address: Option<SocketAddr>) -> Result<(), ServeError> {
    // One at a time: the last one that was asked for reads what is there last.
    let _one = app.reloading.lock().await;
    let folder = app.folder();
    let (path, embedded) = (folder.given.clone(), folder.embedded.clone());
    let read = tokio::task::spawn_blocking(move || Folder::read_with(&path, embedded)).await;
    let read = read.map_or_else(
        |_| Err(ServeError::Reload { reason: "the folder could not be read".to_owned() }),
        |read| read.map_err(ServeError::Folder),
    );
    match read.and_then(|folder| checked(app, folder)) {
        Ok(served) => {
            let (digest, loops) = (served.folder.digest.clone(), served.folder.loops.len());
            let has_other_limits = served.folder.project.limits != app.folder().project.limits;
            let gone = gone(&app.folder(), &served.folder);
            app.runs.replace_folder(served);
            token_notices::of_folder(&app.served());
            if let Err(fault) =
                app.runs.journal.introduce(&digest, address.map(|address| address.to_string()).as_deref()).await
            {
                tracing::error!(code = fault.code(), "which folder is served can't be stored: {fault}");
            }
            if has_other_limits && let Err(fault) = app.scheduler.limits_changed().await {
                tracing::error!(
                    code = fault.code(),
                    "the runs that wait for room in a spending limit can't be looked up: {fault}"
                );
            }
            tracing::info!(loops, folder = short(&digest), "the folder was read again");
            if let Some(names) = gone {
                tracing::warn!("the folder has no longer, and nothing starts any more: {names}");
            }
            Ok(())
        }
        Err(why) => {
            app.served().read_gates(&app.engine_parts.gates);
            app.runs.current.refuse(ReloadFault { since_ms: clock::wall_ms(), why: why.to_string() });
            tracing::error!("the folder was read again, and is served as it was: {why}");
            Err(why)
        }
    }
}

/// The names of the loops that a folder has no longer, the first of many.
fn gone(before: &Folder, now: &Folder) -> Option<String> {
    let names: Vec<&str> =
        before.loops.keys().filter(|name| !now.loops.contains_key(*name)).map(String::as_str).collect();
    let shown = names.iter().take(MOST_NAMES).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("{shown}{more}"))
}

/// The folder, if it can be served in the place of the one before.
fn checked(app: &App, folder: Folder) -> Result<LiveFolder, ServeError> {
    let authorizer = Authorizer::new(&folder.project.serve).map_err(|reason| ServeError::Tokens { reason })?;
    let authorizer = authorizer.with_host(app.served().authorizer.host().cloned());
    if authorizer.is_open() && !app.served().authorizer.is_open() {
        let reason = "it has no tokens any more: everybody who reaches the server could start loops".to_owned();
        return Err(ServeError::Reload { reason });
    }
    let served = LiveFolder::new(folder, authorizer, &app.engine_parts);
    let missing = run_store::missing(&served);
    if missing.is_empty() { Ok(served) } else { Err(ServeError::Missing { missing }) }
}

/// Reads the folder again whenever its documents or its project file have changed, until the server stops.
pub fn watch(app: &Arc<App>, address: Option<SocketAddr>) {
    let app: Weak<App> = Arc::downgrade(app);
    tokio::spawn(
        async move {
            let mut changed: Option<FolderFiles> = None;
            let mut tried: Option<FolderFiles> = None;
            loop {
                let Some(app) = app.upgrade().filter(|app| !app.scheduler.is_draining()) else { return };
                let folder = app.folder();
                let path = folder.given.clone();
                let Ok(files) = tokio::task::spawn_blocking(move || FolderFiles::of(&path)).await else { return };
                // An editor may still be writing: a change counts when the next look finds nothing more.
                if files == folder.files || tried.as_ref() == Some(&files) {
                    changed = None;
                } else if changed.as_ref() == Some(&files) {
                    (tried, changed) = (Some(files), None);
                    // Why it failed is in the log.
                    drop(reload(&app, address).await);
                } else {
                    changed = Some(files);
                }
                drop(app);
                tokio::time::sleep(WATCH_INTERVAL).await;
            }
        }
        .boxed(),
    );
}
