//! A step that waits, where no action of the project has its name.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The words of a step's `type` that mean a built-in step where no action has the name.
pub const WORDS: [&str; 2] = [WAIT, WAIT_FOR_EVENT];

/// The type of a step that waits for a time.
pub const WAIT: &str = "wait";

/// The type of a step that waits for an event.
pub const WAIT_FOR_EVENT: &str = "wait_for_event";

/// A wait: `for` or `until`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// How long.
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// A wait as the schema has it: what it is given is open there, because an action may have the name.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "Wait")]
#[expect(dead_code, reason = "it is the schema alone")]
struct OpenWait {
    /// How long: a number with `s`, `m`, `h` or `d`, like `2h`, at most 366 days. An `@path` or a template may give it.
    #[serde(rename = "for", default)]
    duration: Value,
    /// Until when: a date or a date-time of RFC 3339, at most 366 days away. An `@path` or a template may give it. What is past is
    /// not waited for.
    #[serde(default)]
    until: Value,
}

/// A wait for an event as the schema has it.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "WaitForEvent")]
#[expect(dead_code, reason = "it is the schema alone")]
struct OpenWaitForEvent {
    /// The name of the event: letters, digits, `.`, `_`, `-`, `:` and `/`.
    #[serde(default)]
    event: Value,
    /// What members of its data must be, by their names or dotted paths: `@paths`, templates, literals.
    #[serde(rename = "match", default)]
    matches: Value,
    /// After how many seconds the step fails. Without it, it waits for at most 366 days.
    #[serde(default)]
    ttl_seconds: Value,
}

/// A wait for an event from outside.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitForEvent {
    /// The name of the event.
    pub event: String,
    /// What members of its data must be: the event is another one otherwise.
    #[serde(rename = "match", default, skip_serializing_if = "Map::is_empty")]
    pub matches: Map<String, Value>,
    /// For how long, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<f64>,
}

/// A step of a built-in type in the schema of a step.
pub(super) struct StepForm {
    /// Its type.
    pub word: &'static str,
    /// What it does.
    pub about: &'static str,
    /// The schema of what it is given.
    pub properties: Schema,
}

/// The forms of these steps in the schema of a step.
pub(super) fn forms(generator: &mut SchemaGenerator) -> [StepForm; WORDS.len()] {
    let of_event = generator.subschema_for::<OpenWaitForEvent>();
    let properties = generator.subschema_for::<OpenWait>();
    [
        StepForm { word: WAIT, about: "The run waits for a time.", properties },
        StepForm { word: WAIT_FOR_EVENT, about: "The run waits for an event from outside.", properties: of_event },
    ]
}
