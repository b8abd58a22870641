//! The JSON Schemas of all documents, made from the types of this room: what the shape of a
//! document is judged by, and the same as it is published.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use super::action::ActionsDocument;
use super::{AgentRequest, LoopDocument, Project, Recording, ScenarioFile, Script, WorkflowDocument, editor, examples};

/// The names of all documents that have a schema, as `loopctl schema NAME` and `schemas/NAME.json`
/// know them.
pub const KINDS: [&str; 8] =
    ["loop", "workflow", "agent-request", "actions", "project", "scenario", "recording", "script"];

/// The JSON Schema of a kind of document, as a document's shape is judged by it; nothing for a name that is not in
/// [`KINDS`].
pub fn schema(kind: &str) -> Option<Value> {
    // Each start of the program makes some of them. A judgement needs no examples, and asks `largest` itself.
    of_kind(kind, SchemaSettings::draft2020_12()).map(Schema::to_value)
}

/// The JSON Schema of a kind of document as editors and validators read it: `schemas/` and `loopctl schema`.
pub fn published(kind: &str) -> Option<Value> {
    let settings = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(bound_integers))
        .with_transform(RecursiveTransform(examples::fields));
    let mut schema = of_kind(kind, settings)?;
    examples::whole(&mut schema, kind);
    Some(editor::for_editors(&schema.to_value()))
}

fn of_kind(kind: &str, settings: SchemaSettings) -> Option<Schema> {
    let types = settings.into_generator();
    match kind {
        "loop" => Some(titled::<LoopDocument>(types, "A loop of loopctl")),
        "workflow" => Some(titled::<WorkflowDocument>(types, "A workflow of loopctl")),
        "agent-request" => Some(titled::<AgentRequest>(types, "An agent request of loopctl")),
        "actions" => Some(titled::<ActionsDocument>(types, "Registered actions of loopctl")),
        "project" => Some(titled::<Project>(types, "A project file of loopctl")),
        "scenario" => Some(titled::<ScenarioFile>(types, "Scenarios of loopctl")),
        "recording" => Some(titled::<Recording>(types, "A recorded run of loopctl")),
        "script" => Some(titled::<Script>(types, "A script of loopctl")),
        _ => None,
    }
}

fn titled<T: JsonSchema>(types: SchemaGenerator, title: &str) -> Schema {
    let mut schema = types.into_root_schema_for::<T>();
    schema.insert("title".to_owned(), Value::from(title));
    schema
}

/// An integer's width is a bound: without it the schema would accept numbers that no document can
/// hold.
fn bound_integers(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        // A doc comment's line breaks are those of our source, and mean nothing to an editor.
        *text = text.replace('\n', " ");
    }
    if let Some(largest) = schema.get("format").and_then(largest)
        && schema.get("maximum").is_none()
    {
        schema.insert("maximum".to_owned(), Value::from(largest));
    }
    if let Some(least) = schema.get("format").and_then(least)
        && schema.get("minimum").is_none()
    {
        schema.insert("minimum".to_owned(), Value::from(least));
    }
}

/// The largest integer of a format.
pub(crate) fn largest(format: &Value) -> Option<u64> {
    match format.as_str()? {
        "uint8" => Some(u64::from(u8::MAX)),
        "uint16" => Some(u64::from(u16::MAX)),
        "uint32" => Some(u64::from(u32::MAX)),
        "uint64" | "uint" => Some(u64::MAX),
        "int64" | "int" => Some(i64::MAX.unsigned_abs()),
        _ => None,
    }
}

/// The least integer of a format that has negative ones.
pub(crate) fn least(format: &Value) -> Option<i64> {
    matches!(format.as_str()?, "int64" | "int").then_some(i64::MIN)
}
