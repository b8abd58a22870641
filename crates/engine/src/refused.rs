//! An event that does not fit.

/// An event that does not fit the run's phase. The state is untouched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
