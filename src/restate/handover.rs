//! What a workflow of a run hands over to the next one, when it has all the steps that it may have. The state of a run is the fold of
//! its events, so all of them are handed over.

use std::collections::BTreeMap;

use restate_sdk::context::RequestTarget;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::record::JournalWrite;

/// The service whose workflows continue with runs. It is not reachable from outside: what begins its workflows is believed.
const PART_SERVICE: &str = "loopctl-part";

/// The service that completes copies of runs. It is not reachable from outside either.
const COPY_SERVICE: &str = "loopctl-copy";

/// The service of sessions: an object each. It is not reachable from outside either.
const SESSION_SERVICE: &str = "loopctl-session";

/// What a workflow begins with that continues with a run. Another version of the program may have written it.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedRun {
    /// The run: the key of its first workflow.
    pub run_id: String,
    /// The number of this workflow, from 2.
    pub part: usize,
    /// All writes to the journals of the run and its sub-runs so far.
    pub writes: Vec<JournalWrite>,
    /// The session of the run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMemory>,
    /// A request to cancel the run that came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelOrder>,
}

/// A session, and what it remembered when the run began.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SessionMemory {
    pub name: String,
    pub memory: BTreeMap<String, Value>,
}

/// What `cancel` takes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelOrder {
    /// Why, for the record.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The key of a further workflow. The id of the invocation that hands over makes it another one when the id of a run is used again.
pub fn part_key(handed: &HandedRun, invocation_id: &str) -> String {
    format!("{}~{}~{invocation_id}", handed.run_id, handed.part)
}

/// A handler of a further workflow.
pub fn part_target(key: &str, handler: &str) -> RequestTarget {
    RequestTarget::workflow(PART_SERVICE, key, handler)
}

/// The handler that completes the copy of a run.
pub fn copy_target() -> RequestTarget {
    RequestTarget::service(COPY_SERVICE, "copy")
}

pub fn session_target(session: &str, handler: &str) -> RequestTarget {
    RequestTarget::object(SESSION_SERVICE, session, handler)
}
