//! An event that does not fit.

use crate::outcome::Status;

/// An event that does not fit the run's phase. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It does not fit, for the reason that is said.
    #[error("{0}")]
    Unfit(String),
    /// The run of this step, by its address, is under way. The event may fit when that run waits again.
    #[error("the step `{0}` is under way, and what its run asks now is not known yet: try again")]
    Busy(String),
    /// The run has ended.
    #[error("the run has ended: {}", .status.word())]
    Ended {
        /// How.
        status: Status,
    },
    /// The run waits for no human.
    #[error("the run waits for no human")]
    NotAsked,
    /// The time is over in which the decision could be taken.
    #[error("{why}")]
    Expired {
        /// What was not decided in time, and what follows.
        why: String,
    },
    /// The hash of the decision is that of no call that waits: another one was shown.
    #[error("the call that waits is not the one that was shown: look at it again, and decide with its new hash")]
    Unseen,
    /// Several calls wait, and the decision does not say which one it is about.
    #[error("several calls wait: say which one, each is decided on its own")]
    SeveralCalls,
    /// The decision needs other rights than the one who decides has.
    #[error("{why}")]
    Rights {
        /// Which ones.
        why: String,
    },
}

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self::Unfit(why.into())
    }

    pub(super) fn expired(why: impl Into<String>) -> Self {
        Self::Expired { why: why.into() }
    }

    pub(super) fn rights(why: impl Into<String>) -> Self {
        Self::Rights { why: why.into() }
    }
}

impl From<String> for Refused {
    fn from(why: String) -> Self {
        Self::Unfit(why)
    }
}

impl From<&str> for Refused {
    fn from(why: &str) -> Self {
        Self::new(why)
    }
}
