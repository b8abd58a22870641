//! `db` actions: one statement on a database, with its values bound; and `custom-table` actions: a request to a table.

mod address;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod number;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "probe")]
pub mod probe;
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    expect(dead_code, reason = "read by databases only")
)]
mod rows;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server_call;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server_pool;
#[cfg(any(feature = "postgres", feature = "mysql"))]
mod server_query;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use self::address::DatabaseAddress;
use self::rows::{Cut, RowLimit, cut};
use super::output::fault;
use super::runner::{RawFault, RawOutcome, ToolRunner, wrong_kind};
use super::timed_out;
use crate::drive::descriptors;
use crate::drive::egress::Egress;
use crate::drive::future::BoxFuture;
use crate::drive::secret::Vault;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::ToolFault;
use loopctl_lang::language::action::{CustomTableAction, DEFAULT_ROWS, MAX_ROWS, TABLES};
use loopctl_lang::language::{Action, Project};
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::table::TableRequest;
use loopctl_lang::program::{DbTool, TemplatedAction, Tool, ToolKind};

/// How long a call may wait for one of the connections to a server.
const CONNECTION_WAIT: Duration = Duration::from_secs(60);
/// The most connections to a server, if its datasource does not say.
#[cfg(any(feature = "postgres", feature = "mysql"))]
const CONNECTIONS: u16 = 8;

/// The kinds of databases: a folder each, and a line here.
const DATABASES: &[DatabaseKind] = &[
    #[cfg(feature = "sqlite")]
    sqlite::KIND,
    #[cfg(feature = "postgres")]
    postgres::KIND,
    #[cfg(feature = "mysql")]
    mysql::KIND,
];

/// A kind of database.
struct DatabaseKind {
    /// The schemes of its addresses: what is before the colon.
    schemes: &'static [&'static str],
    /// How its addresses are written, for messages.
    form: &'static str,
    /// Whether what follows the colon is an address of this kind.
    is_valid: fn(&str) -> bool,
    /// Opens it. Nothing is connected yet: a call does that.
    open: OpenDatabase,
    /// Connects to its server to prepare queries there; none for files.
    #[cfg(feature = "probe")]
    probe: Option<ConnectProbe>,
}

type OpenDatabase = fn(&DatabaseAddress, &Egress) -> Result<Arc<dyn ToolDatabase>, ToolFault>;

#[cfg(feature = "probe")]
type ConnectProbe = fn(&DatabaseAddress, &Egress) -> Result<Box<dyn probe::ServerProbe>, ToolFault>;

/// A database. All runs of an engine share one, so it may keep connections.
trait ToolDatabase: Send + Sync {
    /// How long a query may wait for a connection before its own time begins. It then ends within both by itself.
    fn waiting(&self) -> Duration {
        Duration::ZERO
    }

    /// Runs a query. When the future is dropped, the query is stopped.
    fn run(&self, query: Query) -> BoxFuture<'static, Result<Value, RawFault>>;

    /// Makes a request to a table within a time, and stops in the same way.
    fn request(
        &self,
        request: TableRequest,
        rows: RowLimit,
        deadline: Duration,
    ) -> BoxFuture<'static, Result<Value, RawFault>>;
}

/// A statement with its values.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    expect(dead_code, reason = "read by databases only")
)]
struct Query {
    sql: String,
    read_only: bool,
    values: QueryValues,
    rows: RowLimit,
    /// How long the call may take.
    deadline: Duration,
}

/// The values of the statement's parameters.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "sqlite", feature = "postgres", feature = "mysql")),
    expect(dead_code, reason = "read by databases only")
)]
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
    egress: Egress,
    /// The databases that calls have used, by their datasources.
    opened: Mutex<BTreeMap<String, Arc<OpenedDatabase>>>,
}

impl ToolRunner for DbRunner {
    fn waiting(&self, tool: &Tool) -> Duration {
        // The call itself keeps the time of the databases that have no connections to wait for.
        if matches!(tool.kind, ToolKind::Db(_)) { CONNECTION_WAIT } else { Duration::ZERO }
    }

    fn call<'a>(&'a self, tool: &'a Tool, call: &'a ToolCall<'a>) -> BoxFuture<'a, RawOutcome> {
        match &tool.kind {
            ToolKind::Db(db) => Box::pin(async move { self.make(db, tool.parameters.source(), call).await.into() }),
            ToolKind::Action(TemplatedAction { action: Action::CustomTable(table), .. }) => {
                Box::pin(async move { self.request(table, call).await.into() })
            }
            _ => wrong_kind(tool),
        }
    }
}

impl DbRunner {
    pub(super) fn new(project: &Arc<Project>, root: &Path, vault: &Arc<Vault>) -> Self {
        let egress = Egress::new(&project.allow);
        let (project, vault) = (Arc::clone(project), Arc::clone(vault));
        Self { project, root: root.to_owned(), vault, egress, opened: Mutex::default() }
    }

    /// Whether the database of a tool is one of the project's.
    pub(super) fn has(&self, tool: &Tool) -> bool {
        tool.datasource().is_some_and(|name| self.project.datasources.contains_key(name))
    }

    async fn make(&self, tool: &DbTool, schema: &Value, call: &ToolCall<'_>) -> Result<Value, RawFault> {
        let opened = self.database(&tool.action.datasource)?;
        let query = query(tool, schema, call, &call.scope(&self.vault))?;
        let limit = query.deadline.saturating_add(opened.database.waiting());
        let run = async {
            // A database that can't be opened for want of a descriptor does not report that.
            descriptors::available().await;
            opened.database.run(query).await.map_err(|raw| opened.without_held(raw))
        };
        tokio::time::timeout(limit, run).await.unwrap_or_else(|_| Err(timed_out(call.deadline)))
    }

    async fn request(&self, tool: &CustomTableAction, call: &ToolCall<'_>) -> Result<Value, RawFault> {
        let request = TableRequest::of(tool, call.input).map_err(|why| fault(format!("custom-table: {why}"), ""))?;
        let opened = self.database(TABLES)?;
        let rows = row_limit(tool.max_rows, call);
        let run = async {
            descriptors::available().await;
            opened.database.request(request, rows, call.deadline).await.map_err(|raw| opened.without_held(raw))
        };
        tokio::time::timeout(call.deadline, run).await.unwrap_or_else(|_| Err(timed_out(call.deadline)))
    }

    /// The database of a datasource: opened by the first call.
    fn database(&self, name: &str) -> Result<Arc<OpenedDatabase>, ToolFault> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        // The files with its address and its password may have changed since.
        let address = DatabaseAddress::of(name, &self.project, &self.root, &self.vault)?;
        if let Some(known) = opened.get(name).filter(|known| known.is_at(&address)) {
            return Ok(Arc::clone(known));
        }
        let database = (address.kind.open)(&address, &self.egress).map_err(|fault| address.without_held(fault))?;
        let database = Arc::new(OpenedDatabase { address, database });
        opened.insert(name.to_owned(), Arc::clone(&database));
        Ok(database)
    }
}

/// A database that calls have used.
struct OpenedDatabase {
    address: DatabaseAddress,
    database: Arc<dyn ToolDatabase>,
}

impl OpenedDatabase {
    fn without_held(&self, raw: RawFault) -> RawFault {
        RawFault { fault: self.address.without_held(raw.fault), ..raw }
    }

    /// Whether it was opened with this address and password.
    fn is_at(&self, address: &DatabaseAddress) -> bool {
        let text = |password: &Option<SecretString>| password.as_ref().map(|text| text.expose_secret().to_owned());
        self.address.url.expose_secret() == address.url.expose_secret()
            && text(&self.address.password) == text(&address.password)
    }
}

/// The statement of an action. `schema` is the JSON Schema of the tool's input: a `:name` of the schema that
/// the call left out is NULL.
///
/// # Errors
/// When a value is missing.
fn query(tool: &DbTool, schema: &Value, call: &ToolCall<'_>, scope: &Scope<'_>) -> Result<Query, ToolFault> {
    let mut params = Vec::with_capacity(tool.params.len());
    for field in &tool.params {
        let value = field.resolve_entry(scope);
        let value = value.map_err(|missing| fault("a value is missing or can't be used", missing.why))?;
        params.push(value.unwrap_or_default());
    }
    let optional = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().cloned().collect())
        .unwrap_or_default();
    let values = QueryValues { params, input: scope.arguments.clone(), optional };
    let rows = row_limit(tool.action.max_rows, call);
    Ok(Query {
        sql: tool.action.query.clone(),
        read_only: tool.action.read_only,
        values,
        rows,
        deadline: call.deadline,
    })
}

fn row_limit(written: Option<u32>, call: &ToolCall<'_>) -> RowLimit {
    let most = usize::try_from(written.unwrap_or(DEFAULT_ROWS).min(MAX_ROWS)).unwrap_or(usize::MAX);
    RowLimit { most, is_whole: call.at.is_some() }
}

/// What is wrong with a result of a step that was written for it, and says that it was cut.
pub(super) fn cut_result(tool: &Tool, call: &ToolCall<'_>, result: &Value) -> Option<ToolFault> {
    let written = match &tool.kind {
        ToolKind::Db(db) => db.action.max_rows,
        ToolKind::Action(TemplatedAction { action: Action::CustomTable(table), .. }) => table.max_rows,
        _ => return None,
    };
    let limit = row_limit(written, call);
    let is_cut = limit.is_whole && result.get("truncated") == Some(&Value::Bool(true));
    is_cut.then(|| cut(Cut::Rows(limit.most)))
}
