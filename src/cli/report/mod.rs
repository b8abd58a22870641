//! Reports of faults in documents: for people, for machines.

mod human;
mod json;

pub use human::human;
pub use json::json;
