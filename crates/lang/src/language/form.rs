//! A form that a human fills in, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A form that a human fills in: `expected_keys`, or `question` and `fields`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Form {
    /// The keys that are asked for, all of them required; each becomes one of the context. Either these, or `fields`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_keys: Option<Vec<String>>,
    /// What the human is asked. A template. It goes with `fields`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// What the human is shown. It goes with `fields`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show: Option<Map<String, Value>>,
    /// The fields with their types; each becomes a key of the context. Either these, or `expected_keys`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FormField>>,
    /// How long the form is open, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds: Option<f64>,
    /// When the human is reminded, in seconds from the form's making.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reminder_intervals: Option<Vec<f64>>,
    /// The targets of the project's `notify` that the question is posted to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Vec<String>>,
}

/// A field of a form.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormField {
    /// The name, which becomes a key of the context.
    #[schemars(length(min = 1))]
    pub name: String,
    /// What is filled in.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// What the human reads in place of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the human reads beside the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Whether something must be filled in. Default: true, and false beside a `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// What the field is when it is left out: a value, or an `@path`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The least number, or the earliest date or time: a value, or an `@path`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The largest number, or the latest date or time: a value, or an `@path`.
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// The texts of which one is chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choices: Option<Vec<String>>,
}

/// What is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FieldType {
    /// A text of one line, at most 1,000 characters.
    Text,
    /// A text of several lines, at most 20,000 characters.
    LongText,
    /// A whole number of at most 64 bits.
    Integer,
    /// A number.
    Number,
    /// A date: `2026-02-28`.
    Date,
    /// A time of the day: `09:30`, or `09:30:15`.
    Time,
    /// One of the `choices`.
    Choice,
    /// Yes or no: `true` or `false`.
    YesNo,
}

impl FieldType {
    /// Whether its values have an order, which `min` and `max` bound.
    pub fn has_order(self) -> bool {
        matches!(self, Self::Integer | Self::Number | Self::Date | Self::Time)
    }
}

/// `null` is nothing.
fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(|value| Some(value).filter(|value| !value.is_null()))
}
