//! The processes that drive runs of a store.

use serde::Serialize;

/// The most runs that are named of a worker.
pub const MOST_NAMED_RUNS: usize = 100;

/// A process that drives runs of a store, or serves a folder with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its name, which it made up for itself.
    pub name: String,
    /// Whether it is this process.
    pub is_self: bool,
    /// Whether it lives: its runs are left alone.
    pub is_alive: bool,
    /// The name of its machine; none where all are on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The number of its process on that machine; none where an older version registered it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Its version of loopctl.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The digest of the folder that it serves; none when it serves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Since when it is there, in milliseconds since 1970.
    pub since_ms: i64,
    /// For how long it has not renewed its lease, in milliseconds; none where the system reports that a process died.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silent_ms: Option<i64>,
    /// How many runs it has.
    pub driven: u64,
    /// These runs, the oldest first; at most [`MOST_NAMED_RUNS`].
    pub runs: Vec<String>,
}
