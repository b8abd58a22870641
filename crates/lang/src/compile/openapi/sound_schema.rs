//! The schema of an action's input as `check` takes it: what a page writes that is no JSON Schema, or that nothing matches, is taken
//! out and said. A stranger's slip is no error of the project.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::compile::review::{ReviewedValues, review};
use crate::compile::tool::bad_schema;
use crate::diagnostic::codes;
use crate::program::fault::LocalFault;
use crate::program::schema::Schema;

/// The most times that a schema is looked at again after something was taken out.
const MAX_ROUNDS: usize = 40;

/// A schema without faults, and what was taken out, in words; none when it can't be made sound.
pub(super) fn sound(mut schema: Value) -> Option<(Value, Vec<String>)> {
    let mut notes = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let faults = faults(&schema);
        if faults.is_empty() {
            return Some((schema, notes));
        }
        let mut has_changed = false;
        // The last ones first: what is taken out of a list moves those behind it.
        for fault in faults.iter().rev() {
            if take_out(&mut schema, fault) {
                // What had no effect, and a name that had no description, are as they were.
                has_changed = true;
                if matches!(fault.code, codes::IDLE_KEYWORD | codes::UNDESCRIBED_NAME) {
                    continue;
                }
                notes.push(format!("`{}` was taken out: {}", fault.pointer, fault.message));
            }
        }
        if !has_changed {
            return None;
        }
    }
    None
}

fn faults(schema: &Value) -> Vec<LocalFault> {
    let written = Arc::new(schema.clone());
    let examined = Schema::examine(&written);
    let mut faults: Vec<LocalFault> = examined.faults.into_iter().map(|fault| bad_schema(schema, fault)).collect();
    let refused: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    let reviewed = review(schema, ReviewedValues::Objects, &refused).faults;
    faults.extend(reviewed);
    faults
}

/// Takes what a fault points at out of a schema, or makes it mean what it can; whether something has changed.
fn take_out(schema: &mut Value, fault: &LocalFault) -> bool {
    let Some((above, last)) = fault.pointer.rsplit_once('/') else { return false };
    let last = last.replace("~1", "/").replace("~0", "~");
    let is_name = above.ends_with("/required") || above == "/required";
    if is_name && fault.code == codes::UNDESCRIBED_NAME {
        return describe_required(schema, above, &last);
    }
    let holder = above.rsplit('/').next().unwrap_or_default();
    match schema.pointer_mut(above) {
        Some(Value::Object(members)) => {
            // A property whose schema is at fault as a whole may be anything.
            if matches!(holder, "properties" | "patternProperties" | "$defs") {
                let is_changed = members.get(&last).is_some_and(|old| *old != json!({}));
                members.insert(last, json!({}));
                return is_changed;
            }
            members.shift_remove(&last).is_some()
        }
        Some(Value::Array(items)) => {
            let index = last.parse::<usize>().ok().filter(|index| *index < items.len());
            if let (Some(index), true) = (index, matches!(holder, "allOf" | "anyOf" | "oneOf" | "prefixItems")) {
                if let Some(item) = items.get_mut(index).filter(|item| **item != json!({})) {
                    *item = json!({});
                    return true;
                }
                return false;
            }
            index.map(|index| items.remove(index)).is_some()
        }
        _ => false,
    }
}

/// Describes a name that is required and not described: any value may be there.
fn describe_required(schema: &mut Value, list: &str, index: &str) -> bool {
    let name = schema.pointer(&format!("{list}/{index}")).and_then(Value::as_str).map(str::to_owned);
    let above = list.strip_suffix("/required").unwrap_or_default();
    let Some((name, Value::Object(members))) = name.zip(schema.pointer_mut(above)) else { return false };
    match members.entry("properties").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(properties) if !properties.contains_key(&name) => {
            properties.insert(name, json!({}));
            true
        }
        _ => false,
    }
}
