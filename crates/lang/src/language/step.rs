//! A step of a workflow or of a loop of mode `foreach`: what it does, when, and where its output goes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

pub use super::action::{Matcher, ToleranceMode};
use super::choose::{self, CHOOSE};
pub use super::form::Form;
use super::notify::{NOTIFY, NoticeProperties};
use super::retry::CallRetry;
use super::wait::{self, StepForm};
use super::{Condition, Filter, LoopProperties, named_step};

/// The words of `type` that are no name of a registered action.
pub const PRIMITIVES: [&str; 5] = ["loop", "matcher", "custom-table", "PbotApproval", "PbotForm"];

/// The words of `type` that with a `name` are a document beside this one. Without one, they may be names of actions.
pub const NAMED: [&str; 2] = ["loop", "workflow"];

/// A step.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// What it does: a word of [`PRIMITIVES`], or the name of a registered action.
    #[serde(rename = "type")]
    pub kind: String,
    /// The loop or the workflow beside the document that the step runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the step lasts until the end of the run of that workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<bool>,
    /// What the step is given.
    pub properties: Properties,
    /// The step runs only when this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// The step that runs instead when `filter` does not hold.
    #[serde(rename = "onFalse", skip_serializing_if = "Option::is_none")]
    pub on_false: Option<Box<Step>>,
    /// The context key of the step's output.
    #[serde(rename = "outputKey", skip_serializing_if = "Option::is_none")]
    pub output_key: Option<String>,
    /// The step's name in addresses, in place of its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The time of the step's call in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How a failed call of the step is made again, in place of the action's own `retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<CallRetry>,
}

/// What a step is given, by its type.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Properties {
    /// A loop's.
    Loop(Box<LoopProperties>),
    /// Hyphen's matcher's.
    Matcher(Matcher),
    /// Hyphen's custom table's.
    CustomTable(CustomTable),
    /// Those of an approval by a human.
    Approval(Approval),
    /// Those of a form that a human fills in.
    Form(Form),
    /// The cases of a choice, which are written at the step itself.
    Choose(Choose),
    /// The input of a loop or a workflow beside the document.
    Named(Map<String, Value>),
    /// An action's: values for the names that it takes.
    Action(Map<String, Value>),
}

/// The cases of a choice, in their order.
#[derive(Debug, Clone, Serialize)]
pub struct Choose {
    /// The first one whose condition holds runs.
    pub cases: Vec<Case>,
    /// The steps that run when no case holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Vec<Step>>,
}

/// A case of a choice.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What must hold.
    pub when: Condition,
    /// The steps that run then, in their order.
    pub steps: Vec<Step>,
}

/// Hyphen's custom table: rows are written or read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomTable {
    /// The table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// What is done with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<TableOperation>,
    /// The columns that a row is found by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// The values of these columns, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
    /// Columns with their values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Map<String, Value>>,
    /// The most rows that are read; a larger result fails. Default: 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_rows: Option<u32>,
}

/// What is done with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TableOperation {
    /// A row is added.
    Write,
    /// Rows are read.
    Read,
    /// Rows are changed.
    Update,
    /// A row is changed, or added where there is none.
    Upsert,
}

/// An approval by a human.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// What the human is asked. A template.
    pub comment: String,
    /// What the human is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_payload: Option<Map<String, Value>>,
    /// What a no does. Default: `stop`, unless each step after it, up to the next approval or the end of the list, has a
    /// `filter` that reads `@__approved`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_rejected: Option<OnRejected>,
    /// When the human is reminded, in seconds from the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder_intervals: Option<Vec<f64>>,
    /// The targets of the project's `notify` that the question is posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
}

/// What a human's no does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRejected {
    /// The run, or the item, fails.
    Stop,
    /// The steps after it run.
    GoOn,
}

/// A step before its type is looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    wait: Option<bool>,
    #[serde(default)]
    cases: Option<Vec<Case>>,
    #[serde(default)]
    otherwise: Option<Vec<Step>>,
    /// An action may take nothing.
    #[serde(default)]
    properties: Option<Value>,
    #[serde(default)]
    filter: Option<Filter>,
    #[serde(rename = "onFalse", default)]
    on_false: Option<Box<Step>>,
    #[serde(rename = "outputKey", default)]
    output_key: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    retry: Option<CallRetry>,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plain = Plain::deserialize(deserializer)?;
        let Plain { kind, name, wait, cases, otherwise, properties, filter, on_false, output_key, id, .. } = plain;
        let (timeout_ms, retry) = (plain.timeout_ms, plain.retry);
        let is_named = name.is_some();
        if is_named && !NAMED.contains(&kind.as_str()) {
            return Err(D::Error::custom("only a step of type `loop` or `workflow` has a `name`"));
        }
        if kind != CHOOSE && (cases.is_some() || otherwise.is_some()) {
            return Err(D::Error::custom("only a step of type `choose` has `cases`"));
        }
        let properties = match properties {
            Some(properties) => properties,
            None if !is_named && PRIMITIVES.contains(&kind.as_str()) => {
                return Err(D::Error::missing_field("properties"));
            }
            None => Value::Object(Map::new()),
        };
        let properties = match kind.as_str() {
            _ if let Some(cases) = cases => Ok(Properties::Choose(Choose { cases, otherwise })),
            _ if is_named => Map::deserialize(&properties).map(Properties::Named),
            "loop" => LoopProperties::deserialize(&properties).map(|read| Properties::Loop(Box::new(read))),
            "matcher" => Matcher::deserialize(&properties).map(Properties::Matcher),
            "custom-table" => CustomTable::deserialize(&properties).map(Properties::CustomTable),
            "PbotApproval" => Approval::deserialize(&properties).map(Properties::Approval),
            "PbotForm" => Form::deserialize(&properties).map(Properties::Form),
            _ => Map::deserialize(&properties).map(Properties::Action),
        };
        Ok(Self {
            kind,
            name,
            wait,
            properties: properties.map_err(D::Error::custom)?,
            filter,
            on_false,
            output_key,
            id,
            timeout_ms,
            retry,
        })
    }
}

impl JsonSchema for Step {
    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let [a_loop, matcher, table, approval, form] = PRIMITIVES;
        let primitives = [
            (a_loop, "A loop.", generator.subschema_for::<LoopProperties>()),
            (
                matcher,
                "Hyphen's matcher: which entries of two lists belong together.",
                generator.subschema_for::<Matcher>(),
            ),
            (table, "Hyphen's custom table: rows are written or read.", generator.subschema_for::<CustomTable>()),
            (approval, "A human approves, or does not.", generator.subschema_for::<Approval>()),
            (form, "A human fills a form in.", generator.subschema_for::<Form>()),
        ];
        let branches = primitives.map(|(word, about, properties)| {
            branch(
                generator,
                about,
                &json!({ "const": word, "type": "string", "description": about }),
                &properties.to_value(),
                &["type", "properties"],
            )
        });
        let named =
            named_step::branches(|about, kind, values, required| branch(generator, about, kind, values, required));
        let waits = wait::forms(generator).map(|StepForm { word, about, properties }| {
            let kind = json!({ "const": word, "type": "string", "description": about });
            branch(generator, about, &kind, &properties.to_value(), &["type"])
        });
        let built_in = [&PRIMITIVES[..], &wait::WORDS, &[NOTIFY]].concat();
        let choice = choose::branch(&generator.subschema_for::<Self>(), &generator.subschema_for::<Case>());
        let action = json!({
            "type": "string",
            "minLength": 1,
            "not": { "enum": built_in },
            "description": "What the step does: the name of a registered action, a tool of an MCP server of the project (`SERVER.TOOL`), or a word of the platform's.",
        });
        let values = json!({
            "type": "object",
            "description": "Values for the names that the action takes: texts, templates, `@paths`. What is `\"@input.note?\"` is left out without the value.",
        });
        let action = branch(generator, "A registered action.", &action, &values, &["type"]);
        let notify = notify(generator);
        let all: Vec<Value> = branches.into_iter().chain(named).chain(waits).chain([choice, notify, action]).collect();
        json_schema!({ "oneOf": all })
    }
}

/// A step that sends a text. A registered action of this name takes what it wants, so nothing is required here.
fn notify(generator: &mut SchemaGenerator) -> Value {
    let about = "A text is sent to a target of the project, unless a registered action has this name.";
    let properties = generator.subschema_for::<NoticeProperties>().to_value();
    branch(
        generator,
        about,
        &json!({ "const": NOTIFY, "type": "string", "description": about }),
        &properties,
        &["type"],
    )
}

/// A step of a type.
fn branch(generator: &mut SchemaGenerator, about: &str, kind: &Value, properties: &Value, required: &[&str]) -> Value {
    let or_nothing =
        |schema: Schema, about: &str| json!({ "anyOf": [schema, { "type": "null" }], "description": about });
    json!({
        "type": "object",
        "description": about,
        "properties": {
            "type": kind,
            "properties": properties,
            "filter": or_nothing(generator.subschema_for::<Filter>(), "The step runs only when this holds."),
            "onFalse": or_nothing(
                generator.subschema_for::<Step>(),
                "The step that runs instead when `filter` does not hold.",
            ),
            "outputKey": {
                "type": ["string", "null"],
                "description": "The context key of the step's output: later steps read it as `@key`.",
            },
            "id": {
                "type": ["string", "null"],
                "minLength": 1,
                "description": "The step's name in addresses, in place of its number. It stays when steps are put before it.",
            },
            "timeout_ms": {
                "type": ["integer", "null"],
                "format": "uint64",
                "minimum": 1,
                "description": "The time of the step's call in milliseconds.",
            },
            "retry": or_nothing(
                generator.subschema_for::<CallRetry>(),
                "How a failed call of the step is made again, in place of the action's own `retry`.",
            ),
        },
        "required": required,
        "additionalProperties": false,
    })
}
