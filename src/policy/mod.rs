//! Facts that several rooms must agree on. Each stands here once: what `check` judges by, `run` obeys.

pub mod characters;
pub mod variables;
