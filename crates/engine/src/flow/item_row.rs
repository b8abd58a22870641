//! What is shown of an item of a loop beside its status: the beginning of the item, what it gave, and why it failed. All of it is
//! bounded, because a list shows hundreds of items at once.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::record::StepStatus;

/// The most texts of a value that are shown, and the most numbers.
const MOST_TEXTS: usize = 2;
const MOST_NUMBERS: usize = 1;
/// The most characters of such a text, and of the reason of a failure.
const MOST_TEXT_CHARS: usize = 120;
const MOST_REASON_CHARS: usize = 300;

/// An item of a loop. What is no longer known of it is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ItemRow {
    /// Its number, from 0.
    pub index: u32,
    /// What it is called, by the `item_label` of its loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it is.
    pub status: StepStatus,
    /// The item, or of an object the first texts and the first number, cut to a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Value>,
    /// What was gathered of it, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is known of an item.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownItem<'i> {
    /// The item.
    pub item: Option<&'i Value>,
    /// What was gathered of it.
    pub output: Option<&'i Value>,
    /// Why it failed.
    pub error: Option<&'i str>,
}

impl ItemRow {
    /// A row with the beginnings of what is known.
    pub(super) fn new(index: u32, label: Option<String>, status: StepStatus, known: KnownItem<'_>) -> Self {
        Self {
            index,
            label,
            status,
            item: known.item.and_then(beginning),
            output: known.output.and_then(beginning),
            error: known.error.map(|reason| cut(reason, MOST_REASON_CHARS)),
        }
    }
}

/// The beginning of a value: a text, a number or a word, or the first members of an object that are.
fn beginning(value: &Value) -> Option<Value> {
    match value {
        Value::Null | Value::Array(_) => None,
        Value::Bool(_) | Value::Number(_) => Some(value.clone()),
        Value::String(text) => Some(cut(text, MOST_TEXT_CHARS).into()),
        Value::Object(members) => {
            let (mut texts, mut numbers) = (0, 0);
            let mut shown = Map::new();
            for (key, member) in members {
                let (count, most) = match member {
                    Value::String(text) if !text.trim().is_empty() => (&mut texts, MOST_TEXTS),
                    Value::Number(_) | Value::Bool(_) => (&mut numbers, MOST_NUMBERS),
                    _ => continue,
                };
                if *count < most {
                    *count += 1;
                    shown.insert(cut(key, MOST_TEXT_CHARS), beginning(member)?);
                }
            }
            (!shown.is_empty()).then_some(Value::Object(shown))
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
