//! `db` actions: one statement on a SQLite database, with its values bound.

mod open;
mod query;
#[cfg(test)]
mod tests;
mod value;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;

use self::open::Source;
use self::query::{Query, Values};
use super::output::fault;
use crate::drive::secret::Vault;
use crate::engine::event::ToolFault;
use crate::language::Project;
use crate::program::DbTool;
use crate::program::reference::{Scope, Secrets};

/// What a query needs of the world.
pub(super) struct World<'a> {
    pub(super) project: &'a Project,
    pub(super) root: &'a Path,
    pub(super) vault: &'a Vault,
}

/// The database and the statement of an action. `schema` is the JSON Schema of the tool's input: a
/// `:name` that it knows and the call left out is NULL.
///
/// # Errors
/// When the datasource is not known, or a value is missing.
pub(super) fn prepare(
    tool: &DbTool,
    schema: &Value,
    world: &World<'_>,
    scope: &Scope<'_>,
) -> Result<(Source, Query), ToolFault> {
    let source = source(&tool.action.datasource, world)?;
    let mut params = Vec::with_capacity(tool.params.len());
    for field in &tool.params {
        params.push(field.resolve(scope).map_err(|missing| fault("a value is missing or can't be used", missing.0))?);
    }
    let optional = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    let values = Values { params, input: scope.arguments.clone(), optional };
    let query = Query { sql: tool.action.query.clone(), read_only: tool.action.read_only, values };
    Ok((source, query))
}

/// The database that a datasource's name means.
fn source(name: &str, world: &World<'_>) -> Result<Source, ToolFault> {
    let unknown = |why: String| fault("database: not configured", why);
    let (url, init) = match (world.project.datasources.get(name), name.strip_prefix("orgconfig:")) {
        (Some(datasource), _) => (datasource.url.clone(), datasource.init.as_deref()),
        (None, Some(key)) => (world.vault.secret(key).map_err(unknown)?, None),
        (None, None) => {
            return Err(unknown(format!("there is no datasource `{name}` in `datasources` of loopctl.json")));
        }
    };
    let url = match url.strip_prefix("orgconfig:") {
        Some(key) => world.vault.secret(key).map_err(unknown)?,
        None => url,
    };
    match url.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() && !path.starts_with(":memory:") => {
            Ok(Source { file: world.root.join(path), init: init.map(|path| world.root.join(path)) })
        }
        // The address may hold a password: only its scheme is told.
        _ => Err(fault(
            "database: not supported",
            format!(
                "datasource `{name}`: only `sqlite:PATH` is, not `{}:`",
                url.split(':').next().filter(|scheme| scheme.len() < 20).unwrap_or("?")
            ),
        )),
    }
}

/// Runs a query in a thread and on a connection of its own, so that nothing that a statement sets
/// outlives it. When this future is dropped, the query is stopped.
///
/// # Errors
/// When the database can't be opened, a value can't be bound without loss, or the database refuses.
pub(super) async fn run(source: Source, query: Query) -> Result<Value, ToolFault> {
    let stop = Stop(Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop.0);
    let (send, receive) = oneshot::channel();
    std::thread::Builder::new()
        .name("loopctl-db".to_owned())
        .spawn(move || {
            let result = open::open(&source, query.read_only, stopped).and_then(|connection| query.run(&connection));
            // Nobody waits any more when the call timed out.
            let _ = send.send(result);
        })
        .map_err(|error| fault("database: not available", format!("no thread: {error}")))?;
    let result = receive.await;
    drop(stop);
    result.unwrap_or_else(|_| Err(fault("database: failed", "the thread of the query was lost")))
}

/// Stops the query when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
