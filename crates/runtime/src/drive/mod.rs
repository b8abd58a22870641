//! Performs effects. This is the only room with a clock, a network and randomness; tools read their files here.

mod adopt;
mod asking;
pub mod begin;
mod beside;
pub mod builder;
mod by_hand;
mod calls;
pub mod clock;
pub mod copy;
mod descriptors;
pub mod egress;
pub mod engine;
pub mod fault;
pub mod finished;
pub mod fold;
pub mod folded_events;
pub mod future;
mod inbox;
mod input_files;
mod launch;
pub mod launcher;
pub mod lease_guard;
pub mod list;
pub mod model;
pub mod model_waits;
pub mod notices;
pub mod pending_model_call;
mod previous;
pub mod queued;
mod read_files;
pub mod refold;
pub mod requirements;
pub mod rerun;
mod retry;
mod run;
pub mod run_id;
mod said;
mod search_text;
pub mod secret;
pub mod stage;
pub mod start;
pub mod status;
mod steps;
pub mod stop;
mod subrun;
mod subrun_budget;
mod subrun_id;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_again;
#[cfg(test)]
mod tests_notices;
#[cfg(test)]
mod tests_outage;
mod texts;
pub mod tool;
mod world;
