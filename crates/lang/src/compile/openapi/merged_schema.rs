//! Schemas that are joined: what `allOf` asks for in one schema where that means the same, a value that may be null as well, and a
//! choice that a word names.

use serde_json::{Map, Value, json};

/// The keywords of a schema that is an object with these properties, and nothing else.
const OF_OBJECTS: [&str; 4] = ["type", "properties", "required", "description"];

/// A schema and all of the others: one schema where that means the same, else `allOf`.
pub(super) fn flat(own: Map<String, Value>, mut parts: Vec<Value>) -> Value {
    // What asks for nothing.
    parts.retain(|part| part.as_object().is_none_or(|members| !members.is_empty()));
    let mut all = vec![Value::Object(own.clone())];
    all.extend(parts.iter().cloned());
    if let Some(whole) = one_object(&all) {
        return whole;
    }
    match parts.as_slice() {
        [] => Value::Object(own),
        [Value::Object(only)]
            if own.keys().all(|key| key == "description" || !only.contains_key(key)) && fits(&own, only) =>
        {
            let mut whole = only.clone();
            whole.extend(own);
            Value::Object(whole)
        }
        _ => {
            let mut whole = own;
            whole.insert("allOf".to_owned(), Value::Array(parts));
            Value::Object(whole)
        }
    }
}

/// Whether keywords of one part mean the same beside those of the other: `additionalProperties` looks at the properties beside it,
/// and what is beside a reference is not read by all.
fn fits(own: &Map<String, Value>, only: &Map<String, Value>) -> bool {
    let looks = |members: &Map<String, Value>| {
        ["additionalProperties", "items", "if", "then", "else", "contains"]
            .iter()
            .any(|word| members.contains_key(*word))
    };
    let is_text = own.keys().all(|key| key == "description");
    is_text || !(only.contains_key("$ref") || looks(own) || looks(only))
}

/// One object with the properties of all, when each is an object and no two of them describe a property otherwise.
fn one_object(parts: &[Value]) -> Option<Value> {
    let (mut properties, mut required, mut description) = (Map::new(), Vec::<Value>::new(), None);
    let mut is_object = false;
    for part in parts {
        let members = part.as_object()?;
        let is_plain = members.iter().all(|(key, value)| match key.as_str() {
            "additionalProperties" => *value == Value::Bool(true) || *value == json!({}),
            "type" => value == "object",
            known => OF_OBJECTS.contains(&known),
        });
        if !is_plain {
            return None;
        }
        is_object |= members.contains_key("type") || members.contains_key("properties");
        for (name, schema) in members.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if properties.get(name).is_some_and(|known| known != schema) {
                return None;
            }
            properties.insert(name.clone(), schema.clone());
        }
        let names = members.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in names {
            if !required.contains(name) {
                required.push(name.clone());
            }
        }
        description = description.or_else(|| members.get("description").cloned());
    }
    if !is_object {
        return None;
    }
    let mut whole = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    whole.extend(description.map(|text| ("description".to_owned(), text)));
    if !properties.is_empty() {
        properties.sort_keys();
        whole.insert("properties".to_owned(), Value::Object(properties));
    }
    if !required.is_empty() {
        whole.insert("required".to_owned(), Value::Array(required));
    }
    Some(Value::Object(whole))
}

/// A schema that null matches as well.
pub(super) fn with_null(schema: Value) -> Value {
    let null = json!("null");
    let Value::Object(mut members) = schema else { return schema };
    let is_bound =
        ["$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"].iter().any(|word| members.contains_key(*word));
    if is_bound {
        let text = members.remove("description");
        let mut whole = json!({ "anyOf": [Value::Object(members), { "type": "null" }] });
        if let (Some(whole), Some(text)) = (whole.as_object_mut(), text) {
            whole.insert("description".to_owned(), text);
        }
        return whole;
    }
    match members.get_mut("type") {
        Some(Value::String(kind)) => {
            let both = json!([kind, "null"]);
            members.insert("type".to_owned(), both);
        }
        Some(Value::Array(kinds)) if !kinds.contains(&null) => kinds.push(null),
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum").filter(|values| !has_null(values)) {
        values.push(Value::Null);
    }
    Value::Object(members)
}

fn has_null(values: &Value) -> bool {
    values.as_array().is_some_and(|values| values.contains(&Value::Null))
}

/// A choice that needs one of these words in a property.
pub(super) fn with_word(choice: Value, property: &str, words: &[String]) -> Value {
    let word = json!({ "type": "string", "enum": words });
    let named = |members: &mut Map<String, Value>| {
        let required = members.entry("required").or_insert_with(|| json!([]));
        if let Some(required) = required.as_array_mut().filter(|names| !names.iter().any(|name| name == property)) {
            required.push(Value::from(property));
        }
    };
    let Value::Object(mut members) = choice else { return choice };
    let is_object = members.get("type").is_some_and(|kind| kind == "object")
        && members.get("properties").is_none_or(Value::is_object)
        && members.get("required").is_none_or(Value::is_array);
    if !is_object {
        let mut asked = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), json!({ property: word })),
        ]);
        named(&mut asked);
        return json!({ "allOf": [Value::Object(members), Value::Object(asked)] });
    }
    if let Value::Object(properties) = members.entry("properties").or_insert_with(|| json!({})) {
        let mut word = word;
        let known = properties.get(property).and_then(|old| old.get("enum")).and_then(Value::as_array);
        if let Some(known) = known {
            // A choice that names its words itself is as it says.
            let both: Vec<&String> =
                words.iter().filter(|word| known.iter().any(|known| known == word.as_str())).collect();
            if both.is_empty() || both.len() == known.len() {
                named(&mut members);
                return Value::Object(members);
            }
            word = json!({ "type": "string", "enum": both });
        }
        if let (Some(word), Some(text)) =
            (word.as_object_mut(), properties.get(property).and_then(|old| old.get("description")))
        {
            word.insert("description".to_owned(), text.clone());
        }
        properties.insert(property.to_owned(), word);
    }
    named(&mut members);
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "a test writes its values where it passes them")]
    fn flat_of(own: Value, parts: Value) -> Value {
        flat(own.as_object().unwrap().clone(), parts.as_array().unwrap().clone())
    }

    #[test]
    fn objects_become_one_where_no_property_is_described_twice() {
        let whole = flat_of(
            json!({"description": "An order.", "required": ["b"]}),
            json!([
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "integer"}}, "description": "B."},
                {},
            ]),
        );
        assert_eq!(
            whole,
            json!({"type": "object", "description": "An order.",
                "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["b", "a"]})
        );
    }

    #[test]
    fn what_would_mean_something_else_stays_apart() {
        for parts in [
            json!([{"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "object", "properties": {"a": {"type": "integer"}}}]),
            json!([{"type": "object", "additionalProperties": false}, {"type": "object", "properties": {"a": {}}}]),
            json!([{"type": "string"}, {"minLength": 1}]),
        ] {
            assert_eq!(flat_of(json!({}), parts.clone()), json!({"allOf": parts}));
        }
        let closed = json!([{"type": "object", "additionalProperties": false}]);
        assert_eq!(
            flat_of(json!({"properties": {"a": {}}}), closed.clone()),
            json!({"properties": {"a": {}}, "allOf": closed})
        );
        let named = json!([{"$ref": "#/$defs/A"}]);
        assert_eq!(flat_of(json!({"description": "x"}), named), json!({"$ref": "#/$defs/A", "description": "x"}));
    }

    #[test]
    fn null_is_one_more_value() {
        assert_eq!(
            with_null(json!({"type": "string", "enum": ["a"]})),
            json!({"type": ["string", "null"], "enum": ["a", null]})
        );
        assert_eq!(
            with_null(json!({"$ref": "#/$defs/A", "description": "x"})),
            json!({"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "description": "x"})
        );
        assert_eq!(with_null(json!({})), json!({}));
    }

    #[test]
    fn a_choice_needs_its_word() {
        let cat = json!({"type": "object", "properties": {"kind": {"type": "string", "description": "Which."}}});
        assert_eq!(
            with_word(cat, "kind", &["cat".to_owned()]),
            json!({"type": "object", "properties": {"kind": {"type": "string", "enum": ["cat"], "description": "Which."}},
                "required": ["kind"]})
        );
        let other = with_word(json!({"$ref": "#/$defs/A"}), "kind", &["a".to_owned()]);
        assert_eq!(other["allOf"][1]["properties"]["kind"]["enum"], json!(["a"]));
    }
}
