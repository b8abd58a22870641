//! No promise of stability: a part of loopctl. Use the crate `loopctl`.
//!
//! The world around the loop: the files of a project ([`project`]), the stores of runs ([`journal`]), and the driver that
//! calls models and tools ([`drive`]).
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
pub mod journal;
pub mod project;
