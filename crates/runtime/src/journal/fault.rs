//! The errors of a store.

/// An error of a store. What was acknowledged before is still there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store can't be opened.
    #[error("the store {store} can't be opened: {reason}")]
    Open {
        /// The store.
        store: String,
        /// Why.
        reason: String,
    },
    /// The store can't be reached while it is opened: its server, or the way to it, is away.
    #[error("the store {store} can't be opened: {reason}")]
    Away {
        /// The store.
        store: String,
        /// Why.
        reason: String,
    },
    /// A newer loopctl made it.
    #[error(
        "the store {store} is of schema version {found}, made by a newer loopctl; this one knows {known}: use the newer one"
    )]
    Newer {
        /// The store.
        store: String,
        /// Its version.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Another process holds it locked.
    #[error("the store is locked by another process: try again when it is done")]
    Locked,
    /// The disk is full.
    #[error("the disk of the store is full: make room, then resume the run")]
    Full,
    /// It can't be written.
    #[error("the store can't be written: {0}")]
    ReadOnly(String),
    /// Its content is not valid.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// Another driver took the run over.
    #[error("run {0} was taken over by another driver")]
    Fenced(String),
    /// Another living driver has the run.
    #[error("run {0} is being driven by another process")]
    Driven(String),
    /// Whether the store did what it was asked is not known, and the patience is over.
    #[error("the store can't be reached: {0}; what it acknowledged is there")]
    Unreachable(String),
    /// Acknowledged events are gone: the store was put back to an earlier state.
    #[error(
        "events of run {0} that the store had acknowledged are gone: the database went back, by a failover or a backup; the run goes on from what is there"
    )]
    WentBack(String),
    /// An answer token of the run is unknown or was used.
    #[error("run {0}: the answer token was used already")]
    TokenUsed(String),
    /// The run is a read-only copy.
    #[error(
        "run {0} is a copy of a run that a Restate server drives: answer or cancel it there, with POST /loopctl/{0}/answer or /loopctl/{0}/cancel of its ingress"
    )]
    ReadOnlyCopy(String),
    /// The run came in a file, as a copy.
    #[error(
        "run {0} is the copy of a run that came in a file: nobody continues it here; continue it where it comes from, or import its file into another store so that it is continued there"
    )]
    Imported(String),
    /// An import or a copy was cut off in the run.
    #[error(
        "run {0} is not whole here: its import, or the copy of its store, has not finished; repeat that, and it continues where it was"
    )]
    Unfinished(String),
    /// There is no such run.
    #[error("there is no run {0}")]
    NoSuchRun(String),
    /// Any other error of the database or the disk.
    #[error("the store failed: {0}")]
    Other(String),
}

impl StoreError {
    /// An event that is not the next one of its run.
    pub(super) fn out_of_order(run_id: &str, seq: u64, next: u64) -> Self {
        Self::Other(format!("event {seq} of run {run_id} can't be appended: its next event is number {next}"))
    }

    /// A run that has lost events.
    #[cfg(any(feature = "sqlite", feature = "postgres"))]
    pub(super) fn cut_short(run_id: &str) -> Self {
        Self::Corrupt(format!("run {run_id}: its last events are missing"))
    }

    /// Whether the store is there and can't be reached now, so that the same may succeed later without a change.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::Unreachable(_) | Self::Locked)
    }

    /// The stable code of the fault.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } => "store_open",
            Self::Newer { .. } => "store_newer",
            Self::Locked => "store_locked",
            Self::Full => "store_full",
            Self::ReadOnly(_) => "store_read_only",
            Self::Corrupt(_) => "store_corrupt",
            Self::Fenced(_) => "run_taken_over",
            Self::Driven(_) => "run_driven",
            Self::Unreachable(_) | Self::Away { .. } => "store_unreachable",
            Self::WentBack(_) => "store_went_back",
            Self::TokenUsed(_) => "token_used",
            Self::ReadOnlyCopy(_) | Self::Imported(_) | Self::Unfinished(_) => "read_only_copy",
            Self::NoSuchRun(_) => "no_such_run",
            Self::Other(_) => "store_failed",
        }
    }
}
