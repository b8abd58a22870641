//! What of an action is compared when its page has changed: what a model reads, what a call takes, and what it gives. The order of
//! keys and titles are notation.

use serde_json::{Map, Value, json};

use super::MadeAction;
use crate::program::canonical::spelling;

/// Texts that are the same where nothing of a kind has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedTexts {
    /// What a model reads.
    pub text: String,
    /// What a call takes, and how it is sent.
    pub input: String,
}

impl MadeAction {
    /// What of it is compared.
    pub fn compared(&self) -> ComparedTexts {
        let mut sent = self.action.clone();
        let mut texts = Vec::new();
        if let Some(members) = sent.as_object_mut() {
            texts.extend(members.shift_remove("description"));
            for name in ["action_name", "kind"] {
                members.shift_remove(name);
            }
            if let Some(parameters) = members.get_mut("parameters") {
                *parameters = without_texts(parameters, &mut texts);
            }
        }
        ComparedTexts { text: spelling(&json!(texts)), input: spelling(&sent) }
    }
}

/// A schema without what only describes it, which is gathered. The schemas are read here, so they are bounded.
fn without_texts(schema: &Value, texts: &mut Vec<Value>) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (keyword, value) in members {
        let value = match keyword.as_str() {
            "description" => {
                texts.push(value.clone());
                continue;
            }
            "properties" | "patternProperties" | "$defs" => match value {
                Value::Object(named) => {
                    named.iter().map(|(name, schema)| (name.clone(), without_texts(schema, texts))).collect()
                }
                other => other.clone(),
            },
            "required" => sorted(value),
            // Values, and no schemas.
            "enum" | "const" | "default" | "dependentRequired" => value.clone(),
            _ => match value {
                Value::Array(schemas) => schemas.iter().map(|schema| without_texts(schema, texts)).collect(),
                schema => without_texts(schema, texts),
            },
        };
        kept.insert(keyword.clone(), value);
    }
    Value::Object(kept)
}

pub(super) fn sorted(names: &Value) -> Value {
    let Value::Array(names) = names else { return names.clone() };
    let mut names = names.clone();
    names.sort_by_key(ToString::to_string);
    Value::Array(names)
}
