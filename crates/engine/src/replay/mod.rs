//! Old runs: the events of a run under another document, decision by decision. Pure: nothing is asked and nothing called.

pub mod fork;
pub mod paired_fold;
pub mod patterns;
pub mod pending_calls;
pub mod restart;
pub mod verdict;
