//! The calls of a story, each in a line: for reports and snapshots. Secrets are hidden, and control characters escaped.

use serde_json::Value;

use super::story::{RunStory, StoryCall};
use crate::trace::json::gist;
use crate::trace::{Redaction, escape};

/// The columns of a value.
const COLUMNS: usize = 70;

/// A line for each call.
pub fn trace_lines(story: &RunStory, redact: &Redaction) -> Vec<String> {
    story.calls.iter().map(|call| line(call, redact)).collect()
}

fn line(call: &StoryCall, redact: &Redaction) -> String {
    let indent = "  ".repeat(call.depth);
    let number = match &call.at {
        Some(at) => at.clone(),
        None => call.iteration.to_string(),
    };
    let value = |value: &Value| gist(&redact.value(value), COLUMNS);
    let outcome = match (&call.observation, call.success, call.is_made) {
        (Value::Null, true, _) => String::new(),
        (observation, true, _) => format!(" -> {}", value(observation)),
        (observation, false, true) => format!(" failed: {}", value(observation)),
        (observation, false, false) => format!(" not made: {}", value(observation)),
    };
    let text = match &call.action {
        Some(action) => format!("{indent}{number}  {action} {}{outcome}", value(&call.input)),
        None => format!("{indent}{number}  a reply that can't be read{outcome}"),
    };
    escape::line(&text).into_owned()
}
