//! What a step is when it begins.

use serde_json::Value;

use super::state::{ItemsState, StepProgress};

/// What a step is when it begins.
pub(super) enum Opened {
    /// A loop.
    Items(Box<ItemsState>),
    /// A call, a run or a question.
    Step { input: Value, progress: StepProgress },
}
