//! Events as `--output ndjson` prints them: a notice as an object with its secrets hidden, the result last, and
//! the JSON Schema of both, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value};

use super::redact::Redaction;
use super::result::RunResult;
use crate::flow::view::StepView;
use crate::notice::Notice;

/// The fields with JSON that models and tools wrote: in them, names say what is secret. All other fields have
/// names of ours.
const WRITTEN: [&str; 5] = ["action_input", "input", "input_before", "observation", "output"];

/// A line of `--output ndjson`. New kinds and new fields may come; those that are there stay.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Line<'a> {
    /// Something happened.
    Notice(&'a Notice),
    /// The last line.
    Last(Last<'a>),
}

/// What is no event of the run: the last line of a stream, and the steps as they are now.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Last<'a> {
    /// The result of the run, as `--output json` prints it.
    Result(&'a RunResult),
    /// Over HTTP only, if the reader asks for it: the steps of a workflow at the address that it asks for, in place of what
    /// begins and ends one by one. It is no part of the run's record, and has no id.
    Steps(&'a StepView),
    /// Over HTTP only, in place of `steps`: the workflow has no such step, or no such item yet.
    NoSteps {
        /// The address.
        at: String,
        /// What there is, in a sentence.
        message: String,
    },
    /// Over HTTP only: a model failed and is asked again, or, with 0 `attempts`, a request to it, or a call, waits for its turn. It is no part of the
    /// run's record, and has no id; it is over with the next event that has one.
    ModelAway {
        /// The run below that asks it, when it is not this one.
        #[serde(skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// What a call waits for its turn at, when it is no model: `action`, `datasource` or `mcp`.
        #[serde(skip_serializing_if = "Option::is_none")]
        of: Option<String>,
        /// The name of the model, or of that.
        model: String,
        /// The attempts that failed so far.
        attempts: u32,
        /// When the first of them failed, RFC 3339.
        since: String,
        /// What kind of failure the last one was.
        kind: String,
        /// When it is asked again, RFC 3339; absent where nobody knows when the turn of a request comes.
        #[serde(skip_serializing_if = "Option::is_none")]
        again_at: Option<String>,
    },
    /// Over HTTP only: the stream can't go on, although the run may. A reader comes again with the id of the
    /// last event that had one.
    StreamFailed {
        /// A stable word for what happened, as in the answers of the server.
        code: String,
        /// What happened, in a sentence.
        message: String,
    },
}

/// A notice as it is printed, with the secrets in its texts and values hidden.
///
/// # Errors
/// When it can't be written as JSON.
pub fn shown(notice: &Notice, redact: &Redaction) -> serde_json::Result<Value> {
    Ok(own(serde_json::to_value(Line::Notice(notice))?, redact))
}

/// A part of a reply whose secrets are hidden already: hidden again, a part could be mistaken for a whole.
///
/// # Errors
/// When it can't be written as JSON.
pub fn delta(notice: &Notice) -> serde_json::Result<Value> {
    serde_json::to_value(Line::Notice(notice))
}

/// The last line for a result whose secrets are hidden already.
pub fn last(result: &RunResult) -> Line<'_> {
    Line::Last(Last::Result(result))
}

/// A value whose field names are ours: every text in it is redacted.
fn own(value: Value, redact: &Redaction) -> Value {
    match value {
        Value::String(text) => Value::String(redact.text(&text).into_owned()),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| own(item, redact)).collect()),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| {
                    let written = WRITTEN.contains(&name.as_str());
                    let shown = if written { redact.value(&value) } else { own(value, redact) };
                    (name, shown)
                })
                .collect::<Map<String, Value>>(),
        ),
        other => other,
    }
}

/// The JSON Schema of a line: `schemas/events.schema.json`, `loopctl schema events`.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(in_one_line))
        .into_generator()
        .into_root_schema_for::<Line<'_>>();
    schema.insert("title".to_owned(), Value::from("A line of loopctl run --output ndjson"));
    schema.to_value()
}

/// Replaces the line breaks of doc comments by spaces.
fn in_one_line(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::CallId;
    use crate::outcome::Termination;
    use crate::question::{Question, WaitingCall};

    #[test]
    fn what_others_wrote_is_hidden_by_its_names_and_our_own_fields_stay_what_they_are() {
        let redact = Redaction::new(&["iteration".to_owned(), "call".to_owned(), "success".to_owned()]);
        let notice = Notice::ToolCalled {
            call: CallId { iteration: 2, index: 0 },
            action: "pay".to_owned(),
            action_input: json!({ "password": "hunter2", "call": 7, "to": "https://u:pw1@h/" }),
        };
        let shown = shown(&notice, &redact).unwrap();
        assert_eq!(shown["call"], json!({ "iteration": 2, "index": 0 }));
        assert_eq!(
            shown["action_input"],
            json!({ "password": "[hidden]", "call": "[hidden]", "to": "https://u:[hidden]@h/" })
        );
    }

    #[test]
    fn the_calls_of_a_pause_are_hidden_as_well() {
        let call = WaitingCall {
            id: "1.0".to_owned(),
            call: CallId { iteration: 1, index: 0 },
            action: "pay".to_owned(),
            action_input: json!({ "api_key": "k" }),
            hash: "00".to_owned(),
            approval: None,
            ask: None,
        };
        let notice = Notice::Paused {
            steps: Vec::new(),
            pause: 1,
            question: Question {
                options: vec!["use Bearer abcdefgh12345678".to_owned()],
                ..Question::new(Termination::Approval, "send {\"token\":\"abc\"}?")
            },
            calls: vec![call],
        };
        let text = shown(&notice, &Redaction::default()).unwrap().to_string();
        for secret in ["\"k\"", "abc\\\"", "abcdefgh"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}
