//! A step that waits for a time: whether that has passed, and what it gives.

use serde_json::{Value, json};

use crate::operation::{AwaitedKind, AwaitedThing, Progress};

/// Whether a step waits for a time that has passed.
pub(super) fn is_over(progress: &Progress, now_ms: i64) -> bool {
    matches!(progress, Progress::Waits(AwaitedThing { what: AwaitedKind::Time, .. })) && progress.is_expired(now_ms)
}

/// What a wait gives: until when it was to wait, and whether somebody ended it before.
pub(super) fn output(input: &Value, early: bool) -> Value {
    json!({ "until": input.get("until"), "early": early })
}
