//! No promise of stability: a part of loopctl. Use the crate `loopctl`.
//!
//! The language: what can be written ([`language`]), what it means ([`compile`]), and whether it is sound ([`check`]).
//! Pure: it opens no file, reads no clock, and knows no run.
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

pub mod check;
pub mod compile;
pub mod diagnostic;
pub mod language;
pub mod policy;
pub mod program;
pub mod syntax;
