//! Old runs: the events of a run under another document, decision by decision. Pure: nothing is asked and nothing called.

pub mod fork;
pub mod moves;
pub mod patterns;
pub mod restart;
pub mod together;
pub mod verdict;
