//! The schema of a field that holds a JSON Schema itself, for editors.

use serde_json::{Map, Value, json};

/// What a field holds that is a JSON Schema itself, of any draft.
pub fn json_schema() -> Value {
    let words = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let schema = json!({ "type": ["object", "boolean"], "$ref": "#/$defs/JsonSchema" });
    let several = json!({ "type": "array", "items": schema });
    let named = json!({ "type": "object", "additionalProperties": schema });
    let either = json!({ "type": ["object", "boolean", "array"], "$ref": "#/$defs/JsonSchema", "items": schema });
    let count = json!({ "type": "integer", "minimum": 0 });
    let bound = json!({ "type": ["number", "boolean"] });
    let text = json!({ "type": "string" });
    let names = json!({ "type": "array", "items": { "type": "string" } });
    let flag = json!({ "type": "boolean" });
    let of_types = json!({ "type": ["string", "array"], "if": { "type": "string" }, "then": { "enum": words }, "items": { "enum": words } });
    let fields = [
        ("type", &of_types, "The type of the value, or several."),
        ("description", &text, "What the value is: the model reads it."),
        ("properties", &named, "The properties of an object, each with its schema."),
        ("required", &names, "The properties that must be there."),
        ("additionalProperties", &schema, "Which other properties an object may have."),
        ("patternProperties", &named, "The properties whose names match a pattern."),
        ("items", &either, "What a list holds."),
        ("prefixItems", &several, "What a list holds at its first places."),
        ("enum", &json!({ "type": "array" }), "The values that are allowed."),
        ("title", &text, "A name for the value."),
        ("examples", &json!({ "type": "array" }), "Examples of the value."),
        ("format", &text, "What a text is, as in `date-time`, `email`, `uri`."),
        ("pattern", &text, "A regular expression that a text matches."),
        ("minLength", &count, "The fewest characters of a text."),
        ("maxLength", &count, "The most characters of a text."),
        ("minimum", &json!({ "type": "number" }), "The least number."),
        ("maximum", &json!({ "type": "number" }), "The greatest number."),
        ("exclusiveMinimum", &bound, "A number is greater than this."),
        ("exclusiveMaximum", &bound, "A number is less than this."),
        ("multipleOf", &json!({ "type": "number" }), "A number is a multiple of this."),
        ("minItems", &count, "The fewest entries of a list."),
        ("maxItems", &count, "The most entries of a list."),
        ("uniqueItems", &flag, "Whether all entries of a list differ."),
        ("minProperties", &count, "The fewest properties of an object."),
        ("maxProperties", &count, "The most properties of an object."),
        ("allOf", &several, "The value matches all of these."),
        ("anyOf", &several, "The value matches one or more of these."),
        ("oneOf", &several, "The value matches exactly one of these."),
        ("not", &schema, "The value does not match this."),
        ("$defs", &named, "Schemas that `$ref` names: `#/$defs/x`."),
        ("$ref", &text, "A part of this schema: `#/$defs/x`."),
    ];
    let properties: Map<String, Value> = fields
        .into_iter()
        .map(|(name, field, about)| {
            let mut field = field.clone();
            if let Some(members) = field.as_object_mut() {
                members.insert("description".to_owned(), json!(about));
                members.insert("markdownDescription".to_owned(), json!(about));
            }
            (name.to_owned(), field)
        })
        .collect();
    json!({ "description": "A JSON Schema.", "properties": properties })
}
