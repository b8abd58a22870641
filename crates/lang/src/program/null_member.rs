//! Members of a value that are null where their schema takes no null: they are left out, if they may be.

use serde_json::Value;

use super::schema::Schema;
use crate::syntax::unescaped;

/// How often a value is looked at again: each time, up to twenty faults are reported.
const MAX_ROUNDS: u32 = 32;

/// The value without the nulls that its schema does not take. None where it does not match then either: a member that is needed
/// is null, or something else is wrong.
pub fn without_nulls(schema: &Schema, value: &Value) -> Option<Value> {
    let mut read = value.clone();
    for _ in 0..MAX_ROUNDS {
        let faults = schema.faults(&read);
        if faults.is_empty() {
            return Some(read);
        }
        let mut is_changed = false;
        for fault in &faults {
            is_changed |= read.pointer(&fault.path).is_some_and(Value::is_null) && left_out(&mut read, &fault.path);
        }
        if !is_changed {
            return None;
        }
    }
    None
}

/// Leaves out a member. An entry of a list has a place, and stays.
pub fn left_out(whole: &mut Value, path: &str) -> bool {
    let Some((parent, name)) = path.rsplit_once('/') else { return false };
    let name = unescaped(name);
    let members = whole.pointer_mut(parent).and_then(Value::as_object_mut);
    members.is_some_and(|members| members.shift_remove(&*name).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_null_is_left_out_where_the_schema_takes_none_and_the_member_may_be_missing() {
        let schema = json!({ "type": "object", "required": ["id"], "properties": {
            "id": { "type": "string" }, "until": { "type": "string" }, "note": { "type": ["string", "null"] },
            "at/x": { "type": "object", "properties": { "n": { "type": "integer" } } },
            "ids": { "type": "array", "items": { "type": "integer" } } } });
        let schema = Schema::compile(schema).unwrap();
        for (given, read) in [
            (json!({ "id": "A", "until": null, "note": null }), Some(json!({ "id": "A", "note": null }))),
            (json!({ "id": "A", "at/x": { "n": null } }), Some(json!({ "id": "A", "at/x": {} }))),
            (json!({ "id": "A" }), Some(json!({ "id": "A" }))),
            (json!({ "id": null }), None),
            (json!({ "id": "A", "ids": [null] }), None),
            (json!({ "id": "A", "until": null, "ids": ["1"] }), None),
        ] {
            assert_eq!(without_nulls(&schema, &given), read, "{given}");
        }
    }
}
