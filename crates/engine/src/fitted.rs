//! Values that a model wrote otherwise than a schema says, where they have one reading: a `null` for a member that may be
//! left out, a number, a truth value or JSON as a text, a number for a text. What is read matches the schema as a whole;
//! where it would not, the value stays as it was written, and its faults are reported.

use std::collections::HashMap;

use serde_json::{Map, Number, Value};

use super::dialect;
use super::storable;
use loopctl_lang::program::Schema;
use loopctl_lang::program::null_member::left_out;

/// How often a value is read again: each time, up to twenty faults are looked at.
const MAX_ROUNDS: u32 = 32;
/// How often one part of a value is read: a text may hold the JSON of a text.
const MAX_READINGS: u32 = 3;
/// The most members of an object that are left out one by one.
const MAX_NULLS: usize = 16;

/// The one reading of a value that does not match a schema; none when it matches, or has no such reading.
pub(super) fn fitted(schema: &Schema, value: &Value) -> Option<Value> {
    let mut faults = schema.faults(value);
    if faults.is_empty() {
        return None;
    }
    let mut read = value.clone();
    let mut readings: HashMap<String, u32> = HashMap::new();
    for _ in 0..MAX_ROUNDS {
        let mut is_changed = false;
        for fault in &faults {
            let count = readings.entry(fault.path.clone()).or_default();
            *count += 1;
            is_changed |= *count <= MAX_READINGS && read_at(schema, &mut read, &fault.path);
        }
        if !is_changed {
            return None;
        }
        faults = schema.faults(&read);
        if faults.is_empty() {
            return storable::fault_of(&read).is_none().then_some(read);
        }
    }
    None
}

/// Reads the part at a path anew. Returns whether it changed.
fn read_at(schema: &Schema, whole: &mut Value, path: &str) -> bool {
    let Some(part) = whole.pointer_mut(path) else { return false };
    let other = match part {
        Value::Null => return left_out(whole, path),
        // Where a null does not fit either, it is read once more.
        Value::String(text) => match of_text(text) {
            Some(other) => other,
            None => return false,
        },
        Value::Number(_) | Value::Bool(_) => Value::String(part.to_string()),
        Value::Object(members) if members.values().any(Value::is_null) => return without_nulls(schema, whole, path),
        Value::Object(_) | Value::Array(_) => return false,
    };
    *part = other;
    true
}

/// The value that a text writes; none for a text that is only a text.
fn of_text(text: &str) -> Option<Value> {
    dialect::as_json(text).filter(|value| !value.is_string())
}

/// Leaves out nulls of an object that does not match as a whole: one, or all. A null that the schema knows is only left out
/// where nothing else matches.
fn without_nulls(schema: &Schema, whole: &mut Value, path: &str) -> bool {
    let Some(Value::Object(members)) = whole.pointer(path) else { return false };
    let nulls: Vec<String> =
        members.iter().filter(|(_, value)| value.is_null()).map(|(name, _)| name.clone()).collect();
    let before = schema.faults(whole).len();
    let without = |gone: &[String]| -> Option<Value> {
        let mut other = whole.clone();
        let members: &mut Map<String, Value> = other.pointer_mut(path)?.as_object_mut()?;
        members.retain(|name, _| !gone.contains(name));
        Some(other)
    };
    let fits = |other: &Value| schema.faults(other).len() < before;
    let one = nulls.iter().take(MAX_NULLS).filter_map(|name| without(std::slice::from_ref(name))).find(fits);
    let Some(other) = one.or_else(|| without(&nulls).filter(fits)) else { return false };
    *whole = other;
    true
}

/// How sure a model is of its answer, as the schema has it: from 0 to 1. It may be written as a text or in percent; from 1 to
/// 10, it could also be a mark.
pub(super) fn confidence(value: &Value) -> Option<Value> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let percent = text.strip_suffix('%').map(str::trim);
    let number = percent.unwrap_or(&text).parse::<f64>().ok()?;
    let is_percent = percent.is_some() && (0.0..=100.0).contains(&number) || number > 10.0 && number <= 100.0;
    if is_percent {
        return Number::from_f64(number / 100.0).map(Value::Number);
    }
    (value.is_string() && (0.0..=1.0).contains(&number)).then(|| Number::from_f64(number).map(Value::Number))?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(schema: Value, value: &Value) -> Option<Value> {
        fitted(&Schema::compile(schema).unwrap(), value)
    }

    fn order() -> Value {
        json!({ "type": "object", "required": ["id"], "additionalProperties": false, "properties": {
            "id": { "type": "string" }, "limit": { "type": "integer", "maximum": 100 }, "all": { "type": "boolean" },
            "note": { "type": ["string", "null"] }, "ids": { "type": "array", "items": { "type": "integer" } },
            "where": { "type": "object", "properties": { "x": { "type": "number" } } },
            "day": { "type": "string", "format": "date" },
            "until": { "anyOf": [{ "type": "integer" }, { "type": "null" }] }, "size": { "enum": [1, 2] }, "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] } } })
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_value_with_one_reading_is_read() {
        for (written, meant) in [
            (json!({ "id": "A", "limit": null }), json!({ "id": "A" })),
            (json!({ "id": "A", "limit": null, "note": null, "all": null }), json!({ "id": "A", "note": null })),
            (json!({ "id": "A", "other": null }), json!({ "id": "A" })),
            (json!({ "id": "A", "other": null, "note": null }), json!({ "id": "A", "note": null })),
            (json!({ "id": "A", "limit": "null" }), json!({ "id": "A" })),
            (json!({ "id": "A", "until": "null" }), json!({ "id": "A", "until": null })),
            (json!({ "id": "A", "until": "7" }), json!({ "id": "A", "until": 7 })),
            (json!({ "id": "A", "limit": "5" }), json!({ "id": "A", "limit": 5 })),
            (json!({ "id": "A", "all": "True" }), json!({ "id": "A", "all": true })),
            (json!({ "id": 12, "size": "2" }), json!({ "id": "12", "size": 2 })),
            (json!({ "id": "A", "ids": "[1, 2]" }), json!({ "id": "A", "ids": [1, 2] })),
            (json!({ "id": "A", "ids": ["1", 2, "3"] }), json!({ "id": "A", "ids": [1, 2, 3] })),
            (json!({ "id": "A", "where": "{\"x\": \"1.5\"}" }), json!({ "id": "A", "where": { "x": 1.5 } })),
            (json!({ "id": "A", "where": { "x": null } }), json!({ "id": "A", "where": {} })),
            (json!({ "id": "A", "limit": "```json\n5\n```" }), json!({ "id": "A", "limit": 5 })),
        ] {
            assert_eq!(read(order(), &written), Some(meant), "{written}");
        }
        let digits: Value = serde_json::from_str("{\"id\": 12345678901234567890123}").unwrap();
        assert_eq!(read(order(), &digits), Some(json!({ "id": "12345678901234567890123" })));
        let many: Vec<Value> = (0..300).map(|n| json!(n.to_string())).collect();
        let numbers: Vec<i32> = (0..300).collect();
        assert_eq!(read(order(), &json!({ "id": "A", "ids": many })), Some(json!({ "id": "A", "ids": numbers })));
    }

    #[test]
    fn a_value_without_one_reading_stays() {
        for written in [
            json!({ "id": null }),
            json!({ "limit": 5 }),
            json!({ "id": "A", "limit": "many" }),
            json!({ "id": "A", "limit": "500" }),
            json!({ "id": "A", "limit": 500 }),
            json!({ "id": "A", "limit": "" }),
            json!({ "id": "A", "ids": [1, null] }),
            json!({ "id": "A", "ids": "1, 2" }),
            json!({ "id": ["A"] }),
            json!({ "id": "A", "all": "yes" }),
            json!({ "id": "A", "all": 1 }),
            json!({ "id": "A", "limit": null, "other": 1 }),
            json!({ "id": "A", "day": "soon" }),
        ] {
            assert_eq!(read(order(), &written), None, "{written}");
        }
        for matching in [json!({ "id": "5", "note": null, "either": "5" }), json!({ "id": "null" })] {
            assert_eq!(read(order(), &matching), None, "it matches: {matching}");
        }
    }

    #[test]
    fn confidence_is_read_as_a_text_and_in_percent() {
        for (written, meant) in [
            (json!("0.9"), Some(0.9)),
            (json!(" 1 "), Some(1.0)),
            (json!(95), Some(0.95)),
            (json!("95"), Some(0.95)),
            (json!("95 %"), Some(0.95)),
            (json!("5%"), Some(0.05)),
            (json!(100), Some(1.0)),
            (json!(8), None),
            (json!(0.5), None),
            (json!("high"), None),
            (json!(101), None),
            (json!("NaN"), None),
            (json!("-1"), None),
            (json!(null), None),
        ] {
            assert_eq!(confidence(&written).and_then(|value| value.as_f64()), meant, "{written}");
        }
    }
}
