//! loopctl runs agent loops that are declared in JSON.
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

pub mod cli;
pub mod compile;
pub mod diagnostic;
pub mod drive;
pub mod engine;
pub mod journal;
pub mod language;
pub mod trace;
