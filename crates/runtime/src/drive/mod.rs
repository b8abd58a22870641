//! Performs effects. This is the only room with a clock, a network and randomness; tools read their files here.

mod audit;
pub mod begin;
pub mod builder;
mod calls;
pub mod clock;
mod concurrent_decisions;
pub mod copy;
pub mod decision_queue;
mod descriptors;
mod document_change;
pub mod egress;
mod end_request;
pub mod engine;
pub mod export;
pub mod fault;
pub mod fold;
pub mod folded_events;
pub mod future;
pub mod import;
mod inbox;
mod input_files;
mod kept_events;
mod launch;
pub mod launcher;
pub mod lease_guard;
pub mod list;
pub mod model;
mod model_waits;
pub mod notices;
pub mod outside_events;
mod passed_on;
pub mod pending_model_call;
mod previous_run;
mod question_owner;
mod read_files;
mod reply_bounds;
pub mod requirements;
pub mod rerun;
mod retry;
mod run;
pub mod run_file;
pub mod run_id;
pub mod run_meter;
pub mod run_result;
pub mod run_stats;
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
pub mod verified_fold;
mod world;
