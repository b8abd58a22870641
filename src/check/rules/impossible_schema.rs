//! A schema of the answer or of the input that nothing matches.

use serde_json::Value;

use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::document::DocumentKind;
use crate::syntax::token;

/// The rule.
pub const RULE: Rule = Rule { code: codes::IMPOSSIBLE_SCHEMA, check };

/// How deep it is looked for what can't be.
const DEPTH: usize = 16;

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let answer = subject.property("answer_schema").map(|cursor| (cursor, "answer"));
    let is_loop = subject.document().kind == Some(DocumentKind::Loop);
    let input =
        Some(subject.at("/input")).filter(|cursor| is_loop && cursor.is_written()).map(|cursor| (cursor, "input"));
    for (cursor, what) in answer.into_iter().chain(input) {
        let Some(schema) =
            subject.document().value.pointer(cursor.path()).filter(|_| !subject.is_faulty(cursor.path()))
        else {
            continue;
        };
        if let Some((pointer, why)) = impossible(schema, DEPTH) {
            let fault = cursor.below(&pointer).report(&RULE, format!("no {what} can match this: {why}"));
            found.push(fault.help(match what {
                "answer" => "the model could never complete: correct the schema",
                _ => "the loop could never be started: correct the schema",
            }));
        }
    }
}

/// Where a schema says what nothing matches, and why.
fn impossible(schema: &Value, depth: usize) -> Option<(String, String)> {
    let depth = depth.checked_sub(1)?;
    let of = |pointer: &str, why: String| Some((pointer.to_owned(), why));
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        if words.is_empty() {
            return of("/enum", "the `enum` is empty".to_owned());
        }
        if let Some(types) =
            types(schema).filter(|types| !words.iter().any(|word| types.iter().any(|of| is_of(word, of))))
        {
            return of("/enum", format!("no value of the `enum` is of the type `{}`", types.join("` or `")));
        }
    }
    for (least, most, of_type) in BOUNDS {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let only = types(schema).is_some_and(|types| types.iter().all(|name| of_type.contains(name)));
        if let (Some(low), Some(high), true) = (number(least), number(most), only)
            && low > high
        {
            return of(&format!("/{least}"), format!("`{least}` is above `{most}`, which is {high}"));
        }
    }
    if types(schema).is_none_or(|types| types != ["object"]) {
        return None;
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        let pointer = format!("/properties/{}", token(name));
        match schema.pointer(&pointer) {
            Some(Value::Bool(false)) => {
                return of(&pointer, format!("`{name}` is required, and nothing matches its schema"));
            }
            Some(part) => {
                if let Some((inner, why)) = impossible(part, depth) {
                    return of(&format!("{pointer}{inner}"), why);
                }
            }
            None => {
                let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
                if closed && schema.get("patternProperties").is_none() {
                    return of(
                        "/required",
                        format!("`{name}` is required, and not among the properties, which are all"),
                    );
                }
            }
        }
    }
    None
}

const BOUNDS: [(&str, &str, &[&str]); 4] = [
    ("minimum", "maximum", &["number", "integer"]),
    ("minLength", "maxLength", &["string"]),
    ("minItems", "maxItems", &["array"]),
    ("minProperties", "maxProperties", &["object"]),
];

fn types(schema: &Value) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => Some(names.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        // A number without a fraction is an integer, however it is spelled.
        Value::Number(_) => matches!(name, "number" | "integer"),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}
