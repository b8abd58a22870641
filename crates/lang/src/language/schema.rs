//! The JSON Schemas of all documents, made from the types of this room: what the shape of a
//! document is judged by, and the same as it is published.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::action::ActionsDocument;
use super::{AgentRequest, LoopDocument, Project, Recording, ScenarioFile, Script, WorkflowDocument, editor, examples};

/// The names of all documents that have a schema, as `loopctl schema NAME` and `schemas/NAME.json`
/// know them.
pub const KINDS: [&str; 8] =
    ["loop", "workflow", "agent-request", "actions", "project", "scenario", "recording", "script"];

/// The JSON Schema of a kind of document; nothing for a name that is not in [`KINDS`].
pub fn schema(kind: &str) -> Option<Value> {
    match kind {
        "loop" => Some(generate::<LoopDocument>("loop", "A loop of loopctl")),
        "workflow" => Some(generate::<WorkflowDocument>("workflow", "A workflow of loopctl")),
        "agent-request" => Some(generate::<AgentRequest>("agent-request", "An agent request of loopctl")),
        "actions" => Some(generate::<ActionsDocument>("actions", "Registered actions of loopctl")),
        "project" => Some(generate::<Project>("project", "A project file of loopctl")),
        "scenario" => Some(generate::<ScenarioFile>("scenario", "Scenarios of loopctl")),
        "recording" => Some(generate::<Recording>("recording", "A recorded run of loopctl")),
        "script" => Some(generate::<Script>("script", "A script of loopctl")),
        _ => None,
    }
}

/// The JSON Schema of a kind of document as editors and validators read it: `schemas/` and `loopctl schema`.
pub fn published(kind: &str) -> Option<Value> {
    schema(kind).map(|schema| editor::for_editors(&schema))
}

fn generate<T: JsonSchema>(kind: &str, title: &str) -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(bound_integers))
        .with_transform(RecursiveTransform(examples::fields))
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".to_owned(), Value::from(title));
    examples::whole(&mut schema, kind);
    schema.to_value()
}

/// An integer's width is a bound: without it the schema would accept numbers that no document can
/// hold.
fn bound_integers(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        // A doc comment's line breaks are those of our source, and mean nothing to an editor.
        *text = text.replace('\n', " ");
    }
    let maximum = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => u64::from(u8::MAX),
        Some("uint16") => u64::from(u16::MAX),
        Some("uint32") => u64::from(u32::MAX),
        Some("uint64" | "uint") => u64::MAX,
        _ => return,
    };
    if schema.get("maximum").is_none() {
        schema.insert("maximum".to_owned(), Value::from(maximum));
    }
}
