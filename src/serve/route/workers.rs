//! `GET /workers`: the processes that execute runs of the store.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::drive::model::CallCircuit;
use crate::journal::Worker;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::json;
use crate::trace::units::rfc3339;

/// The processes that execute runs of the store.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkerList {
    /// Those that live, and those that died with runs that nobody took yet.
    pub workers: Vec<WorkerRow>,
    /// The circuits of the server that answers: each process has its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circuits: Vec<CircuitRow>,
}

/// The circuit of a model, or of what tools call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CircuitRow {
    /// What it is of: `model`, `action`, `datasource` or `mcp`.
    pub of: &'static str,
    /// The name of that.
    pub name: String,
    /// `closed`: calls are made; `open`: none is; `half_open`: one is, and its outcome decides.
    pub state: &'static str,
    /// Since when it is not closed, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl From<CallCircuit> for CircuitRow {
    fn from(circuit: CallCircuit) -> Self {
        let CallCircuit { of, name, state, since_ms } = circuit;
        Self { of: of.word(), name, state: state.word(), since: since_ms.map(rfc3339) }
    }
}

/// A process that executes runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkerRow {
    /// Its name, which it made up for itself.
    pub name: String,
    /// Whether it is the server that answers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub this_server: bool,
    /// Whether it lives.
    pub alive: bool,
    /// The name of its machine; left out where all are on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The number of its process there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Where it listens, when it is a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How far its clock was ahead of the store's when it last renewed its lease, in milliseconds; negative when it is behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_ahead_ms: Option<i64>,
    /// Its version of loopctl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the folder that it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Since when it is there, RFC 3339.
    pub since: String,
    /// For how long it has not renewed its lease, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<i64>,
    /// How many runs it has.
    pub driven: u64,
    /// The oldest of them.
    pub runs: Vec<String>,
}

impl From<Worker> for WorkerRow {
    fn from(worker: Worker) -> Self {
        Self {
            name: worker.name,
            this_server: worker.is_self,
            alive: worker.is_alive,
            host: worker.host,
            process: worker.process,
            address: worker.address,
            clock_ahead_ms: worker.clock_ahead_ms,
            version: worker.version,
            folder: worker.folder,
            since: rfc3339(worker.since_ms),
            silent_ms: worker.silent_ms,
            driven: worker.driven,
            runs: worker.runs,
        }
    }
}

/// The processes. They have the runs of all organisations.
pub async fn workers(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, ProblemDetails> {
    app.served().authorizer.may_see_all(&caller)?;
    let workers = app.runs.journal.workers().await?;
    let workers = workers.into_iter().map(WorkerRow::from).collect();
    let circuits = app.engine_parts.gates.circuits().into_iter().map(CircuitRow::from).collect();
    Ok(json(StatusCode::OK, &WorkerList { workers, circuits }))
}
