//! An event that does not fit.

/// An event that does not fit the run's phase. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not fit, for the reason that is said.
    #[error("{0}")]
    Unfit(String),
    /// The run of this step, by its address, is under way. The event may fit when that run waits again.
    #[error("the step `{0}` is under way, and what its run asks now is not known yet: try again")]
    Busy(String),
}

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self::Unfit(why.into())
    }
}
