//! Facts that several rooms must agree on. Each stands here once: what `check` judges by, `run` obeys.

pub mod address;
pub mod characters;
pub mod host;
pub mod provider;
pub mod secret_names;
pub mod secret_shapes;
pub mod variables;
