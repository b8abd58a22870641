//! The queue of a store: the runs that are under way and that no living driver has.

use super::{Lease, StoreError};
use loopctl_engine::outcome::Status;

/// Which runs wait for a driver: those that are under way, and waiting ones in which something is due. Runs that other
/// runs called are driven by their callers, and quarantined ones by nobody.
#[derive(Debug, Clone, Default)]
pub struct QueueQuery {
    /// The time, for what is due, in milliseconds since 1970.
    pub now_ms: i64,
    /// Runs that the caller does not want.
    pub except: Vec<String>,
}

/// How many runs of one owner wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRuns {
    /// The organisation.
    pub org: Option<String>,
    /// The name of the token that started them.
    pub token: Option<String>,
    /// How many.
    pub runs: u64,
    /// Since when the first of them has waited, in milliseconds since 1970.
    pub since_ms: i64,
}

/// How many runs of one owner are to be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueShare {
    /// The organisation.
    pub org: Option<String>,
    /// The name of the token that started them.
    pub token: Option<String>,
    /// The maximum number.
    pub runs: usize,
}

/// A run that was claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedRun {
    /// Its id.
    pub run_id: String,
    /// The organisation.
    pub org: Option<String>,
    /// The name of the token that started it.
    pub token: Option<String>,
    /// Its lease, or why it can't be leased.
    pub lease: Result<Lease, StoreError>,
}

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    /// Its id.
    pub run_id: String,
    /// How many events it has.
    pub events: u64,
    /// Its status.
    pub status: Status,
    /// Whether a living driver has it now.
    pub driven: bool,
}
