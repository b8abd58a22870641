//! Reports of faults in documents: for people, for machines.

mod brief;
mod github;
mod hidden_secrets;
mod human;
mod json;
mod sarif;

pub use brief::{Fixed, brief, fixed};
pub use github::github;
pub use human::{Tally, checked, each, human, tally};
pub use json::json;
pub use sarif::sarif;
