//! No promise of stability: a part of loopctl. Use the crate `loopctl`.
//!
//! The loop, pure: `state + event -> state + effects`. No clock, no randomness, no network, no disk; the same
//! events always give the same state, byte for byte.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::as_conversions,
        clippy::string_slice
    )
)]

pub mod address;
pub mod asked_targets;
mod begin;
pub mod blob;
pub mod budget;
mod builtin;
pub mod call_attempt;
pub mod canonical;
pub mod compaction;
pub mod continuation;
pub mod continuation_record;
pub mod conversation;
pub mod decision;
pub mod dialect;
pub mod digest;
pub mod effect;
pub mod estimate;
pub mod event;
mod find_tool;
mod fitted;
pub mod flow;
mod fork;
pub mod header;
pub mod history;
pub mod json;
mod limit;
pub mod lost_calls;
pub mod machine;
mod memory;
pub mod model_requests;
mod next;
pub mod notice;
mod observation;
pub mod open_posts;
pub mod operation;
pub mod outcome;
pub mod previous;
pub mod prompt;
pub mod question;
pub mod question_post;
pub mod record;
pub mod refused;
pub mod replay;
pub mod reply;
pub mod request_length;
pub mod run_stats;
pub mod server_question;
pub mod state;
pub mod step;
pub mod storable;
pub mod stuck;
mod subrun;
pub mod timestamp;
pub mod token_estimator;
mod token_usage;
pub mod trace;
mod turn;
mod turn_policy;
mod validate;
pub mod wait_deadline;
pub mod waiting_calls;
pub mod written_answer;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_approval;
#[cfg(test)]
mod tests_calls;
#[cfg(test)]
mod tests_decisions;
#[cfg(test)]
mod tests_held;
#[cfg(test)]
mod tests_reasoning;
#[cfg(test)]
mod tests_resume;
