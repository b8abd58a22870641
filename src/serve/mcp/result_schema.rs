//! What the structure of a result is, as the list of tools says it. A client holds each result against it, and refuses what does not
//! fit: so it says only what is true of the outcomes of all runs, and of calls that came to none.

use serde_json::{Map, Value, json};

use crate::program::Program;

/// The deepest part of an answer's schema that is listed.
const MAX_LEVELS: usize = 16;

/// The schema of what calls of a loop or workflow give.
pub fn of(program: &Program) -> Value {
    let answer = program.as_loop().and_then(|program| program.answer.as_ref());
    let mut answer = answer.map_or_else(Map::new, |schema| plain(schema.source(), MAX_LEVELS));
    answer.entry("description").or_insert_with(|| json!("What the run answered, once it has completed."));
    json!({
        "type": "object",
        "properties": {
            "run_id": { "type": "string" },
            "status": { "type": "string", "description": "`completed`, `failed`, `cancelled` or `paused`." },
            "termination": { "type": "string", "description": "How the run ended, or what it waits for." },
            "answer": answer,
            "error": { "type": "object", "description": "Why there is no answer: `code` and `message`." },
            "pause": { "type": "object", "description": "What a paused run waits for, and who decides it." },
            "note": { "type": "string", "description": "What was wrong with the answers of the call." },
            "usage": { "type": "object", "description": "The tokens and the cost." },
        },
    })
}

/// A schema with the keywords alone that each client's validator reads alike. Patterns, formats and references are of one dialect or
/// of one document: a client that can't read one loses the whole list. What is left out takes more values, never fewer.
fn plain(schema: &Value, levels: usize) -> Map<String, Value> {
    let mut made = Map::new();
    let (Some(members), Some(below)) = (schema.as_object(), levels.checked_sub(1)) else { return made };
    for (keyword, value) in members {
        let kept = match (keyword.as_str(), value) {
            ("type", Value::String(_)) | ("type" | "required" | "enum", Value::Array(_)) => value.clone(),
            ("title" | "description", Value::String(_)) => value.clone(),
            ("properties", Value::Object(properties)) => {
                let all = properties.iter().map(|(name, schema)| (name.clone(), Value::Object(plain(schema, below))));
                Value::Object(all.collect())
            }
            ("items", Value::Object(_)) => Value::Object(plain(value, below)),
            _ => continue,
        };
        made.insert(keyword.clone(), kept);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keywords_that_every_client_reads_are_listed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "amount": { "type": "number", "minimum": 0, "description": "In euros." },
                "code": { "type": "string", "pattern": "^\\p{L}+$", "format": "x" },
                "lines": { "type": "array", "items": { "$ref": "#/$defs/line" } },
                "kind": { "enum": ["a", null] },
                "any": true,
            },
            "required": ["amount"],
            "additionalProperties": false,
            "not": { "required": ["x"] },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "amount": { "type": "number", "description": "In euros." },
                "code": { "type": "string" },
                "lines": { "type": "array", "items": {} },
                "kind": { "enum": ["a", null] },
                "any": {},
            },
            "required": ["amount"],
        });
        assert_eq!(Value::Object(plain(&schema, MAX_LEVELS)), expected);
        let deep = (0..100).fold(json!({ "type": "string" }), |below, _| json!({ "items": below }));
        let depth = Value::Object(plain(&deep, MAX_LEVELS)).to_string().matches("items").count();
        assert!(depth <= MAX_LEVELS, "{depth}");
    }
}
