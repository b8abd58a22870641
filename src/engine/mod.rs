//! THE LOOP, pure: `state + event -> state + effects`. No clock, no chance, no network, no disk;
//! the same events give the same state, byte for byte, always.

mod begin;
pub mod blob;
pub mod budget;
mod builtin;
mod called;
pub mod canonical;
mod company;
pub mod consent;
pub mod conversation;
pub mod dialect;
pub mod digest;
pub mod effect;
pub mod event;
mod gauge;
pub mod history;
mod human;
pub mod json;
mod limit;
mod memory;
pub mod notice;
pub mod outcome;
pub mod previous;
pub mod prompt;
mod reply;
pub mod state;
pub mod step;
pub mod storable;
pub mod stuck;
mod turn;
mod validate;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_calls;
#[cfg(test)]
mod tests_held;
#[cfg(test)]
mod tests_resume;
