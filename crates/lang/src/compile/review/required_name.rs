//! Names in `required` that nothing in the schema describes, or that it does not allow.

use std::collections::HashSet;

use serde_json::Value;

use super::{Part, short};
use crate::diagnostic::{codes, nearest};
use crate::program::fault::LocalFault;
use crate::program::reference::escape_pointer;

/// The maximum number of names of a part for which the nearest one is looked for, and of candidates.
const MAX_JUDGED_NAMES: usize = 50;
const MAX_COMPARED_NAMES: usize = 1_000;
/// Keywords that may describe a name, or allow one.
const DESCRIBES: [&str; 12] = [
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "then",
    "else",
    "$ref",
    "$dynamicRef",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
];

/// Reports the names in `required` of a part; not those that are written outside of `properties`, which is reported.
pub(super) fn faults(part: &Part<'_>, outside: &[&str]) -> Vec<LocalFault> {
    let Some(Value::Array(required)) = part.members.get("required").filter(|_| part.judges_values()) else {
        return Vec::new();
    };
    let properties = match part.members.get("properties") {
        Some(Value::Object(properties)) => Some(properties),
        Some(_) => return Vec::new(),
        None => None,
    };
    let names = || properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let listed: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
    let is_required = |name: &str| listed.contains(name);
    let is_described = || part.in_place || DESCRIBES.iter().any(|keyword| part.members.contains_key(*keyword));
    let others =
        || ["additionalProperties", "unevaluatedProperties"].into_iter().find_map(|name| part.members.get(name));
    let mut faults = Vec::new();
    for (at, name) in required.iter().enumerate() {
        let Some(name) = name.as_str() else { continue };
        let pointer = || format!("{}/{at}", part.below("required"));
        match properties.and_then(|properties| properties.get(name)) {
            Some(Value::Bool(false)) => {
                let message = format!("`{}` is required, and nothing matches its schema", short(name));
                let at = format!("{}/{}", part.below("properties"), escape_pointer(name));
                let fault = LocalFault::error(codes::IMPOSSIBLE_SCHEMA, at, message);
                faults.push(fault.help("write what it may be, or take it out of `required`"));
                continue;
            }
            Some(_) => continue,
            None if outside.contains(&name) || is_described() => continue,
            None => {}
        }
        let is_measured = faults.len() < MAX_JUDGED_NAMES;
        let near = nearest(name, names().take(MAX_COMPARED_NAMES).filter(|known| is_measured && !is_required(known)));
        let fault = match (others(), near) {
            (Some(Value::Bool(false)), _) => {
                let message = format!("`{}` is required, and not among the properties, which are all", short(name));
                LocalFault::error(codes::IMPOSSIBLE_SCHEMA, pointer(), message)
            }
            (_, Some(_)) => LocalFault::error(codes::UNDESCRIBED_NAME, pointer(), undescribed(name)),
            // What it says of other names describes this one.
            (Some(_), None) => continue,
            (None, None) => LocalFault::warning(codes::UNDESCRIBED_NAME, pointer(), undescribed(name)),
        };
        faults.push(match near {
            Some(near) => fault.help(format!("the nearest name is `{}`", short(near))).rename(name, near),
            None => fault.help("put it among the `properties`, or take it out of `required`"),
        });
    }
    faults
}

fn undescribed(name: &str) -> String {
    format!("`{}` is required, and `properties` does not have it", short(name))
}
