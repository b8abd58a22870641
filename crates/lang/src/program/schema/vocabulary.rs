//! The keywords of JSON Schema in all drafts: what each of them holds, and of which type the values are that it is
//! about.

use serde_json::Value;

/// A keyword.
#[derive(Debug)]
pub struct Keyword {
    /// As it is written.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The types of the values that it is about; empty when it is about all.
    pub about: &'static [&'static str],
}

/// What a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A schema.
    Schema,
    /// Schemas by name.
    NamedSchemas,
    /// A list of schemas.
    Schemas,
    /// A schema, or a list of them.
    SchemaOrSchemas,
    /// A number that bounds values.
    Bound,
    /// A number of things.
    Count,
    /// True or false.
    Flag,
    /// A text.
    Text,
    /// The name of a type, or several of them.
    Types,
    /// A list of names.
    Names,
    /// Values that are allowed.
    Values,
    /// Anything.
    Anything,
}

const ALL: &[&str] = &[];
const NUMBERS: &[&str] = &["number", "integer"];
const TEXTS: &[&str] = &["string"];
const LISTS: &[&str] = &["array"];
const OBJECTS: &[&str] = &["object"];

const fn keyword(name: &'static str, holds: Holds, about: &'static [&'static str]) -> Keyword {
    Keyword { name, holds, about }
}

/// All keywords.
pub const VOCABULARY: &[Keyword] = &[
    keyword("type", Holds::Types, ALL),
    keyword("properties", Holds::NamedSchemas, OBJECTS),
    keyword("required", Holds::Names, OBJECTS),
    keyword("items", Holds::SchemaOrSchemas, LISTS),
    keyword("enum", Holds::Values, ALL),
    keyword("const", Holds::Anything, ALL),
    keyword("description", Holds::Text, ALL),
    keyword("title", Holds::Text, ALL),
    keyword("default", Holds::Anything, ALL),
    keyword("examples", Holds::Values, ALL),
    keyword("format", Holds::Text, ALL),
    keyword("pattern", Holds::Text, TEXTS),
    keyword("minLength", Holds::Count, TEXTS),
    keyword("maxLength", Holds::Count, TEXTS),
    keyword("minimum", Holds::Bound, NUMBERS),
    keyword("maximum", Holds::Bound, NUMBERS),
    keyword("exclusiveMinimum", Holds::Bound, NUMBERS),
    keyword("exclusiveMaximum", Holds::Bound, NUMBERS),
    keyword("multipleOf", Holds::Bound, NUMBERS),
    keyword("minItems", Holds::Count, LISTS),
    keyword("maxItems", Holds::Count, LISTS),
    keyword("uniqueItems", Holds::Flag, LISTS),
    keyword("prefixItems", Holds::Schemas, LISTS),
    keyword("additionalItems", Holds::Schema, LISTS),
    keyword("unevaluatedItems", Holds::Schema, LISTS),
    keyword("contains", Holds::Schema, LISTS),
    keyword("minContains", Holds::Count, LISTS),
    keyword("maxContains", Holds::Count, LISTS),
    keyword("additionalProperties", Holds::Schema, OBJECTS),
    keyword("patternProperties", Holds::NamedSchemas, OBJECTS),
    keyword("propertyNames", Holds::Schema, OBJECTS),
    keyword("unevaluatedProperties", Holds::Schema, OBJECTS),
    keyword("minProperties", Holds::Count, OBJECTS),
    keyword("maxProperties", Holds::Count, OBJECTS),
    keyword("dependentRequired", Holds::Anything, OBJECTS),
    keyword("dependentSchemas", Holds::NamedSchemas, OBJECTS),
    keyword("dependencies", Holds::NamedSchemas, OBJECTS),
    keyword("allOf", Holds::Schemas, ALL),
    keyword("anyOf", Holds::Schemas, ALL),
    keyword("oneOf", Holds::Schemas, ALL),
    keyword("not", Holds::Schema, ALL),
    keyword("if", Holds::Schema, ALL),
    keyword("then", Holds::Schema, ALL),
    keyword("else", Holds::Schema, ALL),
    keyword("readOnly", Holds::Flag, ALL),
    keyword("writeOnly", Holds::Flag, ALL),
    keyword("deprecated", Holds::Flag, ALL),
    keyword("contentEncoding", Holds::Text, TEXTS),
    // An object with one is a file in the input of a loop.
    keyword("contentMediaType", Holds::Text, ALL),
    keyword("contentSchema", Holds::Schema, TEXTS),
    keyword("definitions", Holds::NamedSchemas, ALL),
    keyword("$defs", Holds::NamedSchemas, ALL),
    keyword("$ref", Holds::Text, ALL),
    keyword("$id", Holds::Text, ALL),
    keyword("$schema", Holds::Text, ALL),
    keyword("$anchor", Holds::Text, ALL),
    keyword("$dynamicRef", Holds::Text, ALL),
    keyword("$dynamicAnchor", Holds::Text, ALL),
    keyword("$recursiveRef", Holds::Text, ALL),
    keyword("$recursiveAnchor", Holds::Flag, ALL),
    keyword("$vocabulary", Holds::Anything, ALL),
    keyword("$comment", Holds::Text, ALL),
];

/// The keyword of a name.
pub fn keyword_named(name: &str) -> Option<&'static Keyword> {
    VOCABULARY.iter().find(|keyword| keyword.name == name)
}

impl Keyword {
    /// Whether it says which values match, or holds schemas that do; the others describe.
    pub fn asserts(&self) -> bool {
        let describes = matches!(
            self.name,
            "description" | "title" | "default" | "examples" | "readOnly" | "writeOnly" | "deprecated"
        );
        !describes && (!self.name.starts_with('$') || matches!(self.name, "$ref" | "$dynamicRef" | "$recursiveRef"))
    }
}

impl Holds {
    /// Whether a keyword may hold a value, as far as the value's type shows.
    pub fn takes(self, value: &Value) -> bool {
        let is_schema = |value: &Value| value.is_object() || value.is_boolean();
        let all = |value: &Value, takes: &dyn Fn(&Value) -> bool| {
            value.as_array().is_some_and(|items| items.iter().all(takes))
        };
        match self {
            Self::Schema => is_schema(value),
            Self::NamedSchemas => value.as_object().is_some_and(|members| members.values().all(is_schema)),
            Self::Schemas => all(value, &is_schema),
            Self::SchemaOrSchemas => is_schema(value) || all(value, &is_schema),
            // Draft 4 has `exclusiveMinimum: true`.
            Self::Bound => value.is_number() || value.is_boolean(),
            Self::Count => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Types => value.is_string() || all(value, &Value::is_string),
            Self::Names => all(value, &Value::is_string),
            Self::Values => value.is_array(),
            Self::Anything => true,
        }
    }
}
