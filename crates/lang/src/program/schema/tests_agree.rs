//! What matches a schema here matches it by the library of schemas, and what does not does not.

use jsonschema::Draft;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::Schema;

const DRAFTS: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(1)),
        Just(json!(2)),
        Just(json!(-3)),
        Just(serde_json::from_str::<Value>("1.0").unwrap()),
        Just(serde_json::from_str::<Value>("0.5").unwrap()),
        Just(serde_json::from_str::<Value>("2e1").unwrap()),
        Just(json!("")),
        Just(json!("a")),
        Just(json!("ab")),
        Just(json!("b1")),
        Just(json!("2020-01-01")),
        Just(json!("YQ==")),
    ]
}

/// Values of few members, so that schemas and values meet.
fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        let key = prop_oneof![Just("a"), Just("b"), Just("c"), Just("ab")];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..4).prop_map(|members| Value::Object(
                members.into_iter().map(|(key, member)| (key.to_owned(), member)).collect::<Map<_, _>>()
            )),
        ]
    })
}

fn assertion() -> impl Strategy<Value = (&'static str, Value)> {
    let types = prop_oneof![
        Just(json!("string")),
        Just(json!("integer")),
        Just(json!("number")),
        Just(json!("object")),
        Just(json!("array")),
        Just(json!(["null", "integer"])),
        Just(json!(["object", "boolean"])),
    ];
    let names = prop_oneof![Just(json!(["a"])), Just(json!(["b", "c"])), Just(json!(["ab"]))];
    let pattern = prop_oneof![Just("a"), Just("^a.$"), Just("\\d"), Just("^(?!b)"), Just("^\\S*$")];
    prop_oneof![
        types.prop_map(|value| ("type", value)),
        value().prop_map(|value| ("const", value)),
        proptest::collection::vec(value(), 1..4).prop_map(|mut values| {
            values.dedup();
            ("enum", Value::Array(values))
        }),
        (0..3_i64).prop_map(|limit| ("minimum", json!(limit))),
        (0..3_i64).prop_map(|limit| ("maximum", json!(limit))),
        (0..3_i64).prop_map(|limit| ("exclusiveMinimum", json!(limit))),
        (0..3_i64).prop_map(|limit| ("exclusiveMaximum", json!(limit))),
        prop_oneof![Just("2"), Just("0.5"), Just("3"), Just("1e1")]
            .prop_map(|unit| ("multipleOf", serde_json::from_str(unit).unwrap())),
        (0..3_u64).prop_map(|limit| ("minLength", json!(limit))),
        (0..3_u64).prop_map(|limit| ("maxLength", json!(limit))),
        (0..3_u64).prop_map(|limit| ("minItems", json!(limit))),
        (0..3_u64).prop_map(|limit| ("maxItems", json!(limit))),
        (0..3_u64).prop_map(|limit| ("minProperties", json!(limit))),
        (0..3_u64).prop_map(|limit| ("maxProperties", json!(limit))),
        names.clone().prop_map(|names| ("required", names)),
        names.prop_map(|names| ("dependentRequired", json!({"a": names}))),
        pattern.prop_map(|pattern| ("pattern", json!(pattern))),
        Just(("uniqueItems", json!(true))),
        Just(("format", json!("date"))),
        Just(("contentEncoding", json!("base64"))),
        Just(("minContains", json!(0))),
        Just(("minContains", json!(2))),
        Just(("maxContains", json!(1))),
        Just(("exclusiveMinimum", json!(true))),
    ]
}

/// A part of a schema. References lead down into the value, or to a part that has none.
fn part() -> impl Strategy<Value = Value> {
    let leaf = proptest::collection::vec(assertion(), 0..3).prop_map(joined);
    leaf.prop_recursive(4, 40, 4, |inner| {
        let below = prop_oneof![
            3 => inner.clone(),
            1 => Just(json!({"$ref": "#/$defs/one"})),
            1 => Just(json!({"$ref": "#/$defs/two"})),
            1 => Just(json!({"$ref": "#"})),
            1 => any::<bool>().prop_map(Value::Bool),
        ];
        let same = prop_oneof![
            4 => inner,
            1 => Just(json!({"$ref": "#/$defs/leaf"})),
            1 => any::<bool>().prop_map(Value::Bool),
        ];
        let many = |part: BoxedStrategy<Value>| proptest::collection::vec(part, 1..4).prop_map(Value::Array);
        let keys = prop_oneof![Just("a"), Just("b"), Just("^a"), Just("b$")];
        let members = |part: BoxedStrategy<Value>| {
            proptest::collection::vec((keys.clone(), part), 1..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(key, part)| (key.to_owned(), part)).collect::<Map<_, _>>())
            })
        };
        let (below, same) = (below.boxed(), same.boxed());
        let keyword = prop_oneof![
            assertion(),
            members(below.clone()).prop_map(|parts| ("properties", parts)),
            members(below.clone()).prop_map(|parts| ("patternProperties", parts)),
            below.clone().prop_map(|part| ("additionalProperties", part)),
            same.clone().prop_map(|part| ("propertyNames", part)),
            below.clone().prop_map(|part| ("items", part)),
            many(below.clone()).prop_map(|parts| ("items", parts)),
            many(below.clone()).prop_map(|parts| ("prefixItems", parts)),
            below.clone().prop_map(|part| ("additionalItems", part)),
            below.clone().prop_map(|part| ("contains", part)),
            members(same.clone()).prop_map(|parts| ("dependentSchemas", parts)),
            members(same.clone()).prop_map(|parts| ("dependencies", parts)),
            many(same.clone()).prop_map(|parts| ("allOf", parts)),
            many(same.clone()).prop_map(|parts| ("anyOf", parts)),
            many(same.clone()).prop_map(|parts| ("oneOf", parts)),
            same.clone().prop_map(|part| ("not", part)),
            same.clone().prop_map(|part| ("if", part)),
            same.clone().prop_map(|part| ("then", part)),
            same.prop_map(|part| ("else", part)),
            below.clone().prop_map(|part| ("unevaluatedProperties", part)),
            below.prop_map(|part| ("unevaluatedItems", part)),
            Just(("$ref", json!("#/$defs/leaf"))),
        ];
        proptest::collection::vec(keyword, 1..5).prop_map(joined)
    })
}

fn joined(members: Vec<(&'static str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn whole() -> impl Strategy<Value = Value> {
    (part(), part(), part(), proptest::sample::select(DRAFTS.to_vec()), proptest::collection::vec(assertion(), 0..3))
        .prop_map(|(top, one, two, draft, leaf)| {
            let mut schema = json!({"$schema": draft, "$defs": {"one": one, "two": two, "leaf": joined(leaf)}});
            if let (Some(schema), Value::Object(top)) = (schema.as_object_mut(), top) {
                schema.extend(top);
            }
            schema
        })
}

/// The library's reading of a schema. From draft 2019-09 on it applies `dependencies` and forgets what their
/// parts evaluated, while it remembers it for `dependentSchemas`. A part that applies to the value itself
/// evaluates its members whichever keyword holds it, as Ajv has it too, so the library reads the new keyword.
fn library(schema: &Value) -> Option<jsonschema::Validator> {
    let draft = super::draft(schema);
    let mut schema = schema.clone();
    if matches!(draft, Draft::Draft201909 | Draft::Draft202012) {
        say_dependent_schemas(&mut schema);
    }
    jsonschema::options().offline().with_draft(draft).build(&schema).ok()
}

/// Each `dependencies` becomes a part of `allOf` that says `dependentSchemas`.
fn say_dependent_schemas(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(say_dependent_schemas),
        Value::Object(members) => {
            members.values_mut().for_each(say_dependent_schemas);
            if let Some(parts) = members.shift_remove("dependencies")
                && let Some(all) = members.entry("allOf").or_insert_with(|| json!([])).as_array_mut()
            {
                all.push(json!({"dependentSchemas": parts}));
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_matches_is_what_matches_by_the_library(
        schema in whole(),
        values in proptest::collection::vec(value(), 24)
    ) {
        let (own, library) = (Schema::compile(schema.clone()), library(&schema));
        prop_assert_eq!(own.is_ok(), library.is_some(), "{} {:?}", schema, own.map(|_| ()));
        if let (Ok(own), Some(library)) = (own, library) {
            for value in values {
                let faults = own.faults(&value);
                prop_assert_eq!(faults.is_empty(), library.is_valid(&value), "{} by {}: {:?}", value, schema, faults);
            }
        }
    }
}
