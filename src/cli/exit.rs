//! The exit codes: one table for all commands.

use std::process::ExitCode;

use crate::engine::outcome::Status;
use crate::engine::state::State;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The run completed, or the command did what was asked.
    Completed,
    /// The run failed.
    Failed,
    /// No run: wrong arguments, an invalid document, a store that can't be opened.
    NoRun,
    /// The run waits for a human.
    Paused,
    /// The store can't be reached now: the same command may succeed later (`EX_TEMPFAIL` of sysexits.h).
    StoreAway,
    /// The run was cancelled, or stopped by a signal.
    Cancelled,
}

impl Exit {
    /// The process's exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::NoRun => 2,
            Self::Paused => 3,
            Self::StoreAway => 75,
            Self::Cancelled => 130,
        }
    }

    /// The exit code for a run's state. A run that is still under way counts as stopped, because it can be
    /// resumed.
    pub fn of(state: &State) -> Self {
        match state.status() {
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Paused => Self::Paused,
            Status::Cancelled | Status::Running | Status::Quarantined => Self::Cancelled,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
