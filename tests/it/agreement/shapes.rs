//! Documents made from a JSON Schema, every field and word of it in time, and what a slip of the
//! hand makes of them.

use serde_json::{Map, Value, json};

use super::choices::Choices;

const TEXTS: [&str; 9] =
    ["lookup_ticket", "a", "Read {{input.ticket_id}}", "@input.x", "react", "", "true", "10", "\u{e9}\u{1f501}"];
const KEYS: [&str; 6] = ["type", "ticket_id", "a/b", "~", "", "mode"];

/// A document that the schema accepts.
pub fn accepted(root: &Value, choices: &mut Choices) -> Value {
    part(root, root, choices, 0)
}

fn part(root: &Value, part_of: &Value, choices: &mut Choices, depth: usize) -> Value {
    let schema = resolve(root, part_of);
    for branches in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get(branches).and_then(Value::as_array) {
            return part(root, &branches[choices.below(branches.len())], choices, depth);
        }
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words[choices.below(words.len())].clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds[choices.below(kinds.len())].as_str().unwrap(),
        Some(kind) => kind.as_str().unwrap(),
        None => return anything(choices, depth),
    };
    match kind {
        "null" => Value::Null,
        "boolean" => Value::from(choices.below(2) == 1),
        "string" => text(schema, choices),
        "integer" => integer(schema, choices),
        "number" => number(schema, choices),
        "array" => {
            let bound =
                |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
            let count = choices.below(if depth > 4 { 2 } else { 4 });
            let count = count.max(bound("minItems").unwrap_or(0)).min(bound("maxItems").unwrap_or(usize::MAX));
            (0..count).map(|_| part(root, &schema["items"], choices, depth + 1)).collect()
        }
        _ => object(root, schema, choices, depth),
    }
}

fn object(root: &Value, schema: &Value, choices: &mut Choices, depth: usize) -> Value {
    let mut made = Map::new();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if required.contains(&json!(name)) || choices.once_in(3) {
            made.insert(name.clone(), part(root, field, choices, depth + 1));
        }
    }
    match schema.get("additionalProperties") {
        Some(Value::Bool(false)) => {}
        Some(others @ Value::Object(_)) => {
            for _ in 0..choices.below(3) {
                made.insert(choices.of(&KEYS).to_owned(), part(root, others, choices, depth + 1));
            }
        }
        _ if schema.get("properties").is_none() => {
            for _ in 0..choices.below(3) {
                made.insert(choices.of(&KEYS).to_owned(), anything(choices, depth + 1));
            }
        }
        _ => {}
    }
    Value::Object(made)
}

fn text(schema: &Value, choices: &mut Choices) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
    let (least, most) = (bound("minLength").unwrap_or(0), bound("maxLength").unwrap_or(usize::MAX));
    let mut text = choices.of(&TEXTS).to_owned();
    while text.chars().count() < least {
        text.push('x');
    }
    // At the bound, in characters that have more than one byte.
    if most < 100 && choices.once_in(5) {
        text = "\u{e9}".repeat(most);
    }
    Value::from(text.chars().take(most).collect::<String>())
}

fn integer(schema: &Value, choices: &mut Choices) -> Value {
    let (low, high) = (schema.get("minimum"), schema.get("maximum"));
    let least = low.and_then(whole).unwrap_or(0);
    match choices.below(4) {
        0 => Value::from(least),
        1 => Value::from(least + 1),
        2 => high.and_then(whole).map_or(json!(7), Value::from),
        _ => Value::from((least + 9).min(high.and_then(whole).unwrap_or(u64::MAX))),
    }
}

/// A bound that may be written with a fraction of zero.
fn whole(bound: &Value) -> Option<u64> {
    bound.to_string().trim_end_matches(".0").parse().ok()
}

fn number(schema: &Value, choices: &mut Choices) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let (low, high) = (bound("minimum").unwrap_or(0.0), bound("maximum").unwrap_or(8.5));
    match choices.below(4) {
        0 => json!(low),
        1 => json!(high),
        2 => json!(1),
        _ => json!(low + (high - low) * 0.375),
    }
}

/// Any JSON.
fn anything(choices: &mut Choices, depth: usize) -> Value {
    match choices.below(if depth > 5 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(choices.of(&TEXTS)),
        3 => json!(-3),
        4 => json!(0.25),
        5 => json!([anything(choices, depth + 1), 1]),
        _ => {
            let count = choices.below(3);
            Value::Object((0..count).map(|_| (choices.of(&KEYS).to_owned(), anything(choices, depth + 1))).collect())
        }
    }
}

fn resolve<'a>(root: &'a Value, part: &'a Value) -> &'a Value {
    let mut at = part;
    while let Some(pointer) = at.get("$ref").and_then(Value::as_str) {
        at = root.pointer(pointer.trim_start_matches('#')).unwrap();
    }
    at
}

/// Changes one thing somewhere: a field is renamed, dropped or added, a value gets another type, goes
/// out of its bounds, becomes another word, or is wrapped.
pub fn slip(document: &mut Value, choices: &mut Choices) {
    let mut pointers = Vec::new();
    gather(document, String::new(), &mut pointers);
    let pointer = pointers[choices.below(pointers.len())].clone();
    let Some(value) = document.pointer_mut(&pointer) else { return };
    match choices.below(9) {
        0 => rename(value, choices),
        1 => drop_field(value, choices),
        2 => {
            if let Value::Object(members) = value {
                members.insert(choices.of(&["extra", "max_iteration", "tool", "kinds", "x"]).to_owned(), json!(1));
            }
        }
        3 => *value = json!([value.take()]),
        4 => *value = json!({ "value": value.take() }),
        5 => *value = Value::Null,
        6 => *value = out_of_bounds(value, choices),
        7 => *value = other_type(value, choices),
        _ => *value = json!(choices.of(&["", "reakt", "escalte", "GET", "loop", "react", "foreach", "http"])),
    }
}

/// Spells numbers in other ways, and some so that they are others.
pub fn respell(value: &mut Value, choices: &mut Choices) {
    match value {
        Value::Number(number) => {
            let digits = number.to_string();
            let fraction = digits.contains(['.', 'e']);
            let spelled = match choices.below(8) {
                0 if !fraction => format!("{digits}.0"),
                1 if !fraction => format!("{digits}.000"),
                2 => format!("{digits}e0"),
                3 if !fraction && digits != "0" => format!("{digits}0e-1"),
                4 if !fraction => format!("{digits}.5"),
                5 => format!("{digits}e2"),
                6 => format!("{digits}e-1"),
                _ => digits,
            };
            *value = Value::Number(spelled.parse().unwrap());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| respell(item, choices)),
        Value::Object(members) => members.values_mut().for_each(|member| respell(member, choices)),
        _ => {}
    }
}

fn rename(value: &mut Value, choices: &mut Choices) {
    let Value::Object(members) = value else { return };
    let Some(name) = members.keys().nth(choices.below(members.len())).cloned() else { return };
    let held = members.shift_remove(&name).unwrap_or_default();
    let other = match choices.below(4) {
        0 => format!("{name}s"),
        1 => name.to_uppercase(),
        2 => name.chars().skip(1).collect(),
        _ => name.replace('_', "-"),
    };
    members.insert(other, held);
}

fn drop_field(value: &mut Value, choices: &mut Choices) {
    match value {
        Value::Object(members) => {
            let name = members.keys().nth(choices.below(members.len())).cloned();
            name.and_then(|name| members.shift_remove(&name));
        }
        Value::Array(items) if !items.is_empty() => {
            items.remove(choices.below(items.len()));
        }
        _ => {}
    }
}

fn out_of_bounds(value: &Value, choices: &mut Choices) -> Value {
    match value {
        Value::Number(_) => [json!(0), json!(-1), json!(1001), json!(4_294_967_296_u64), json!(2.5), json!(u64::MAX)]
            [choices.below(6)]
        .clone(),
        Value::String(_) => json!("x".repeat(choices.below(2) * 65)),
        other => other.clone(),
    }
}

fn other_type(value: &Value, choices: &mut Choices) -> Value {
    match value {
        Value::Number(number) => json!(number.to_string()),
        Value::String(text) if choices.below(2) == 0 => json!({ "text": text }),
        Value::String(_) => json!(7),
        Value::Bool(truth) => json!(truth.to_string()),
        Value::Array(_) => json!({}),
        Value::Object(_) => json!([]),
        Value::Null => json!(false),
    }
}

fn gather(value: &Value, pointer: String, pointers: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                gather(member, format!("{pointer}/{key}"), pointers);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                gather(item, format!("{pointer}/{at}"), pointers);
            }
        }
        _ => {}
    }
    pointers.push(pointer);
}
