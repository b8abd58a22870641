//! The databases of a project for `check --connect`: queries are prepared at their servers, and none is run. Files are
//! looked at as without it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::address::DatabaseAddress;
use crate::drive::egress::Egress;
use crate::drive::secret::Vault;
use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::compile::{DatabaseProbe, DatabaseState, QueryFault, QueryParameter};
use loopctl_lang::language::Project;
use loopctl_lang::policy::database_address::DatabaseServer;

/// The most queries whose outcome is kept for one database.
const MAX_KEPT: usize = 10_000;

/// A connection to a server on which queries are prepared. Each method may block: it has a time limit of its own.
pub(super) trait ServerProbe: Send {
    /// Prepares a query; nothing when the server does not answer in time.
    fn prepare(&mut self, query: &str) -> PreparedQuery;
}

/// How long a connection, or one query, may take.
pub(super) const PROBE_TIME: Duration = Duration::from_secs(10);

/// A runtime that may be dropped in a task of another one.
pub(super) struct ProbeRuntime(Option<Runtime>);

impl ProbeRuntime {
    /// A runtime of one thread.
    ///
    /// # Errors
    /// When the system has no room for one.
    pub(super) fn new() -> Result<Self, ToolFault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fault("database: can't be opened", error.to_string()))?;
        Ok(Self(Some(runtime)))
    }

    /// Does work on a thread of its own, beside the runtime that may run on this one.
    pub(super) fn run<T: Send>(&self, work: impl Future<Output = T> + Send) -> Option<T> {
        let runtime = self.0.as_ref()?;
        thread::scope(|scope| scope.spawn(|| runtime.block_on(work)).join().ok())
    }
}

impl Drop for ProbeRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a server says of a query.
#[derive(Clone, Default)]
pub(super) struct PreparedQuery {
    /// What it has against it.
    pub(super) fault: Option<QueryFault>,
    /// Its named parameters.
    pub(super) parameters: Vec<QueryParameter>,
}

impl From<QueryFault> for PreparedQuery {
    fn from(fault: QueryFault) -> Self {
        Self { fault: Some(fault), parameters: Vec::new() }
    }
}

/// The databases of a project: those on servers, and the files.
pub struct ConnectedDatabases {
    project: Project,
    root: PathBuf,
    vault: Vault,
    egress: Egress,
    /// What is known of the files.
    files: Option<Arc<dyn DatabaseProbe>>,
    servers: Mutex<BTreeMap<String, ProbedServer>>,
}

/// What is known of a server.
enum ProbedServer {
    /// The datasource is of another kind.
    Other,
    /// It can't be used, and why.
    Unusable(String),
    /// Queries can be prepared there.
    Connected { server: DatabaseServer, probe: Box<dyn ServerProbe>, kept: HashMap<String, PreparedQuery> },
}

impl fmt::Debug for ConnectedDatabases {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConnectedDatabases").field("root", &self.root).finish_non_exhaustive()
    }
}

impl ConnectedDatabases {
    /// The databases of a project in its folder `root`; `files` knows those that are files.
    pub fn new(project: Project, root: &Path, files: Option<Arc<dyn DatabaseProbe>>) -> Self {
        let vault = Vault::new(project.orgconfig.clone(), root);
        let egress = Egress::new(&project.allow);
        Self { project, root: root.to_owned(), vault, egress, files, servers: Mutex::default() }
    }

    fn with<T>(&self, name: &str, ask: impl FnOnce(&mut ProbedServer) -> T) -> T {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.entry(name.to_owned()).or_insert_with(|| self.connect(name));
        ask(server)
    }

    fn connect(&self, name: &str) -> ProbedServer {
        if self.project.datasources.get(name).is_none_or(|datasource| datasource.sqlite_path().is_some()) {
            return ProbedServer::Other;
        }
        let connected = DatabaseAddress::of(name, &self.project, &self.root, &self.vault).and_then(|address| {
            match (address.kind.probe, DatabaseServer::of(address.scheme())) {
                (Some(probe), Some(server)) => {
                    let probed = probe(&address, &self.egress).map_err(|fault| address.without_held(fault))?;
                    Ok(Some((server, probed)))
                }
                _ => Ok(None),
            }
        });
        match connected {
            Ok(Some((server, probe))) => ProbedServer::Connected { server, probe, kept: HashMap::new() },
            Ok(None) => ProbedServer::Other,
            Err(fault) => {
                let detail = self.vault.scrub(fault.detail);
                let class = fault.class.strip_prefix("database: ").unwrap_or(&fault.class).to_owned();
                ProbedServer::Unusable(if detail.is_empty() { class } else { format!("{class}: {detail}") })
            }
        }
    }
}

impl ConnectedDatabases {
    /// What the server of a datasource says of a query; nothing for a file.
    fn prepared(&self, datasource: &str, query: &str) -> Option<PreparedQuery> {
        self.with(datasource, |server| match server {
            ProbedServer::Other => None,
            ProbedServer::Unusable(_) => Some(PreparedQuery::default()),
            ProbedServer::Connected { probe, kept, .. } => Some(match kept.get(query) {
                Some(known) => known.clone(),
                None => {
                    let prepared = probe.prepare(query);
                    if kept.len() < MAX_KEPT {
                        kept.insert(query.to_owned(), prepared.clone());
                    }
                    prepared
                }
            }),
        })
    }
}

impl DatabaseProbe for ConnectedDatabases {
    fn state(&self, datasource: &str) -> DatabaseState {
        let state = self.with(datasource, |server| match server {
            ProbedServer::Other => None,
            ProbedServer::Unusable(why) => Some(DatabaseState::Unreadable(why.clone())),
            ProbedServer::Connected { .. } => Some(DatabaseState::Ready { is_made: false }),
        });
        let of_file = || self.files.as_ref().map(|files| files.state(datasource));
        state.or_else(of_file).unwrap_or(DatabaseState::Unknown)
    }

    fn prepare(&self, datasource: &str, query: &str) -> Option<QueryFault> {
        match self.prepared(datasource, query) {
            Some(prepared) => prepared.fault,
            None => self.files.as_ref()?.prepare(datasource, query),
        }
    }

    fn parameters(&self, datasource: &str, query: &str) -> Vec<QueryParameter> {
        self.prepared(datasource, query).unwrap_or_default().parameters
    }

    fn is_taken_after_init(&self, datasource: &str, query: &str) -> bool {
        self.files.as_ref().is_some_and(|files| files.is_taken_after_init(datasource, query))
    }

    fn tables(&self, datasource: &str) -> Option<Vec<String>> {
        self.files.as_ref()?.tables(datasource)
    }

    fn columns(&self, datasource: &str, table: &str) -> Option<Vec<String>> {
        self.files.as_ref()?.columns(datasource, table)
    }

    fn result_columns(&self, datasource: &str, query: &str) -> Option<Vec<String>> {
        self.files.as_ref()?.result_columns(datasource, query)
    }

    fn required_columns(&self, datasource: &str, table: &str) -> Option<Vec<String>> {
        self.files.as_ref()?.required_columns(datasource, table)
    }

    fn server(&self, datasource: &str) -> Option<DatabaseServer> {
        self.with(datasource, |server| match server {
            ProbedServer::Other => None,
            ProbedServer::Unusable(_) => Some(DatabaseServer::Unknown),
            ProbedServer::Connected { server, .. } => Some(*server),
        })
    }
}
