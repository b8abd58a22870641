//! `db` actions: one statement on a database, with its values bound; and `custom-table` actions: a request to a table.

#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::output::fault;
use super::runner::{RawOutcome, ToolRunner, wrong_kind};
use crate::drive::descriptors;
use crate::drive::future::BoxFuture;
use crate::drive::secret::Vault;
use crate::drive::tool::call::ToolCall;
use crate::engine::event::ToolFault;
use crate::language::Project;
use crate::program::reference::{Scope, Secrets};
use crate::program::table::{TABLES, TableRequest, TableTool};
use crate::program::{DbTool, Tool, ToolKind};

/// The kinds of databases: a folder each, and a line here.
const DATABASES: &[DatabaseKind] = &[
    #[cfg(feature = "sqlite")]
    sqlite::KIND,
];

/// A kind of database.
struct DatabaseKind {
    /// The scheme of its addresses: what is before the colon.
    scheme: &'static str,
    /// How its addresses are written, for messages.
    form: &'static str,
    /// Whether what follows the colon is an address of this kind.
    is_valid: fn(&str) -> bool,
    /// Runs a query. When the future is dropped, the query is stopped.
    run: fn(DatabaseAddress, Query) -> BoxFuture<'static, Result<Value, ToolFault>>,
    /// Makes a request to a table, and stops in the same way.
    request: fn(DatabaseAddress, TableRequest) -> BoxFuture<'static, Result<Value, ToolFault>>,
}

/// Where a database is.
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "read by databases only"))]
struct DatabaseAddress {
    kind: &'static DatabaseKind,
    /// What follows the scheme and its colon.
    rest: String,
    /// The folder that relative paths start from.
    root: PathBuf,
    /// The script that makes the database, with its path.
    init: Option<PathBuf>,
}

/// A statement with its values.
#[derive(Debug)]
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "read by databases only"))]
struct Query {
    sql: String,
    read_only: bool,
    values: QueryValues,
}

/// The values of the statement's parameters.
#[derive(Debug)]
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "read by databases only"))]
struct QueryValues {
    /// By position: `?`, `?1`, `$1`; if there are any, `:name` also takes the value at its position.
    params: Vec<Value>,
    /// By name, if there are no `params`: `:name`, `@name`, `$name`.
    input: Value,
    /// Names that the input may leave out: their value is NULL then.
    optional: Vec<String>,
}

/// Makes the calls of `db` and `custom-table` actions.
pub(super) struct DbRunner {
    project: Arc<Project>,
    root: PathBuf,
    vault: Arc<Vault>,
}

impl ToolRunner for DbRunner {
    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Db(db) => Box::pin(async move { self.make(db, tool.parameters.source(), call).await.into() }),
            ToolKind::Table(table) => Box::pin(async move { self.request(table, call).await.into() }),
            _ => wrong_kind(tool),
        }
    }
}

impl DbRunner {
    pub(super) fn new(project: &Arc<Project>, root: &Path, vault: &Arc<Vault>) -> Self {
        Self { project: Arc::clone(project), root: root.to_owned(), vault: Arc::clone(vault) }
    }

    /// Whether the database of a tool is one of the project's.
    pub(super) fn has(&self, tool: &Tool) -> bool {
        tool.datasource().is_some_and(|name| self.project.datasources.contains_key(name))
    }

    async fn make(&self, tool: &DbTool, schema: &Value, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
        let address = self.address(&tool.action.datasource)?;
        let query = query(tool, schema, &call.scope(&self.vault))?;
        // A database that can't be opened for want of a descriptor does not report that.
        descriptors::available().await;
        (address.kind.run)(address, query).await
    }

    async fn request(&self, tool: &TableTool, call: &ToolCall<'_>) -> Result<Value, ToolFault> {
        let request = tool.request(call.input).map_err(|why| fault(format!("custom-table: {why}"), ""))?;
        let address = self.address(TABLES)?;
        descriptors::available().await;
        (address.kind.request)(address, request).await
    }

    /// The address of a datasource.
    fn address(&self, name: &str) -> Result<DatabaseAddress, ToolFault> {
        let unknown = |why: String| fault("database: not configured", why);
        let (url, init) = match (self.project.datasources.get(name), name.strip_prefix("orgconfig:")) {
            (Some(datasource), _) => (datasource.url.clone(), datasource.init.as_deref()),
            (None, Some(key)) => (self.vault.secret(key).map_err(unknown)?, None),
            (None, None) => {
                return Err(unknown(format!("there is no datasource `{name}` in `datasources` of loopctl.json")));
            }
        };
        let url = match url.strip_prefix("orgconfig:") {
            Some(key) => self.vault.secret(key).map_err(unknown)?,
            None => url,
        };
        let (scheme, rest) = url.split_once(':').unwrap_or((&url, ""));
        match DATABASES.iter().find(|kind| kind.scheme == scheme && (kind.is_valid)(rest)) {
            Some(kind) => Ok(DatabaseAddress {
                kind,
                rest: rest.to_owned(),
                root: self.root.clone(),
                init: init.map(|path| self.root.join(path)),
            }),
            None => {
                if DATABASES.is_empty() {
                    let why = "loopctl was built without a database: enable its cargo feature `sqlite`";
                    return Err(fault("database: not supported", why));
                }
                let forms: Vec<String> = DATABASES.iter().map(|kind| format!("`{}`", kind.form)).collect();
                // The address may hold a password: only its scheme is shown.
                let shown = if scheme.len() < 20 { scheme } else { "?" };
                let why = format!("datasource `{name}`: only {} is, not `{shown}:`", forms.join(" or "));
                Err(fault("database: not supported", why))
            }
        }
    }
}

/// The statement of an action. `schema` is the JSON Schema of the tool's input: a `:name` of the schema that
/// the call left out is NULL.
///
/// # Errors
/// When a value is missing.
fn query(tool: &DbTool, schema: &Value, scope: &Scope<'_>) -> Result<Query, ToolFault> {
    let mut params = Vec::with_capacity(tool.params.len());
    for field in &tool.params {
        params.push(field.resolve(scope).map_err(|missing| fault("a value is missing or can't be used", missing.0))?);
    }
    let optional = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    let values = QueryValues { params, input: scope.arguments.clone(), optional };
    Ok(Query { sql: tool.action.query.clone(), read_only: tool.action.read_only, values })
}
