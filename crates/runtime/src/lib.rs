//! No promise of stability: a part of loopctl. Use the crate `loopctl`.
//!
//! The world around the loop: the files of a project ([`project`]), the stores of runs ([`journal`]), the driver that
//! calls models and tools ([`drive`]), and what a program around it types ([`embed`]).
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

pub mod drive;
pub mod embed;
pub mod journal;
pub mod project;
