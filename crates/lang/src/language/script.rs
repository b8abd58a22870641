//! The script: what a scripted model says, and what scripted tools answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A script: it takes the place of every model, and of the tools that it names.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The JSON Schema of this document, for editors. It is never fetched.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// What the model says, one entry a call: `{"thought", "action", "action_input"}`,
    /// `{"thought", "calls": [{"action", "action_input"}]}` and `{"thought", "answer"}` are said in the
    /// words of the loop's dialect; a string is said as it stands; `{"http": 429, "headers": {}}` is a server's
    /// refusal; `{"delay_ms": 50, "text": "..."}` waits first.
    pub replies: Vec<Value>,
    /// What the model says for certain inputs: the first case whose `when` fits the input of the run is played in place
    /// of `replies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<ScriptCase>,
    /// What the model says in the loops that are called, by their names, as in `replies`; each run of
    /// such a loop begins at the first entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loops: BTreeMap<String, Vec<Value>>,
    /// What tools answer, by name, one entry a call and the last one again and again:
    /// `{"error": "..."}` is a failure, anything else the result. Tools without an entry really run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Vec<Value>>,
}

/// What the model says in runs with a certain input.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptCase {
    /// The fields of the run's input, and the value that each of them must have; others may have any.
    pub when: Map<String, Value>,
    /// What the model says then, as in `replies` of the script.
    pub replies: Vec<Value>,
}

/// A form of a reply: the field that says it, and those that it may have beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyForm {
    /// The field that it must have.
    pub field: &'static str,
    /// The others.
    pub others: &'static [&'static str],
}

/// One call.
pub const CALL: ReplyForm = ReplyForm { field: "action", others: &["thought", "action_input"] };
/// Several calls in one reply.
pub const CALLS: ReplyForm = ReplyForm { field: "calls", others: &["thought"] };
/// The answer.
pub const ANSWER: ReplyForm = ReplyForm { field: "answer", others: &["thought"] };
/// A text with what a provider says about it.
pub const TEXT: ReplyForm = ReplyForm { field: "text", others: &["delay_ms", "usage", "finish"] };
/// A server's refusal.
pub const REFUSAL: ReplyForm = ReplyForm { field: "http", others: &["headers", "body", "delay_ms"] };
/// One of several calls.
pub const ONE_OF_CALLS: ReplyForm = ReplyForm { field: "action", others: &["action_input"] };

/// All forms of a reply. An object of no form is a text that the model writes.
pub const REPLY_FORMS: [ReplyForm; 5] = [CALL, CALLS, ANSWER, TEXT, REFUSAL];

impl ReplyForm {
    /// Whether an object with these fields has the form.
    pub fn has<'k>(&self, mut fields: impl Iterator<Item = &'k str> + Clone) -> bool {
        fields.clone().any(|name| name == self.field) && fields.all(|name| self.allows(name))
    }

    /// Whether it may have a field.
    pub fn allows(&self, name: &str) -> bool {
        name == self.field || self.others.contains(&name)
    }
}
