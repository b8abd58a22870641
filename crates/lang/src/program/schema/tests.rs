//! Tests of schemas: nothing is fetched or read, messages are ours, bombs end early.
#![expect(clippy::needless_pass_by_value, reason = "schemas are written at the call")]

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{Value, json};

use super::*;

fn schema(source: Value) -> Schema {
    Schema::compile(source.clone()).unwrap_or_else(|fault| panic!("{source}: {fault:?}"))
}

fn reported(source: Value, instance: &str) -> Vec<String> {
    let instance = serde_json::from_str(instance).unwrap();
    schema(source).faults(&instance).iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
}

fn refused(source: Value) -> SchemaFault {
    Schema::compile(source.clone()).map(|_| panic!("{source}")).unwrap_err()
}

#[test]
fn a_reference_to_elsewhere_is_refused_and_nothing_is_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let host = listener.local_addr().unwrap();
    for place in ["$ref", "$dynamicRef"] {
        for scheme in ["http", "https"] {
            let reference = format!("{scheme}://{host}/schema.json#/a");
            let fault = refused(json!({"type": "object", "properties": {"a": {(place): reference.clone()}}}));
            assert_eq!(fault.path, format!("/properties/a/{place}"), "{fault:?}");
            assert!(fault.message.contains(&reference), "{fault:?}");
            assert!(fault.message.contains("nothing is fetched"), "{fault:?}");
        }
    }
    for base in ["$id", "$schema"] {
        let _ = Schema::compile(json!({(base): format!("http://{host}/x"), "$ref": "other.json"}));
    }
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "something was fetched");
    // The twin: a listener that is asked does see it.
    std::net::TcpStream::connect(host).unwrap();
    assert!(listener.accept().is_ok());
}

#[test]
fn a_reference_to_a_file_is_refused_and_the_file_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("canary.json");
    std::fs::write(&canary, r#"{"type": "integer", "description": "CANARY-7"}"#).unwrap();
    for reference in [format!("file://{}", canary.display()), canary.display().to_string(), "canary.json".to_owned()] {
        let fault = refused(
            json!({"items": [{"$ref": reference.clone()}], "$schema": "http://json-schema.org/draft-07/schema#"}),
        );
        assert_eq!(fault.path, "/items/0/$ref");
        assert!(fault.message.contains("refers to") && !format!("{fault:?}").contains("CANARY"), "{fault:?}");
    }
    // The twin: the same schema in its own text works.
    assert!(Schema::compile(json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}})).is_ok());
}

#[test]
fn a_schema_may_refer_to_its_own_parts_and_to_itself() {
    let tree = json!({"type": "object", "properties": {"name": {"$ref": "#/$defs/n"}, "children": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["name"], "$defs": {"n": {"type": "string"}}});
    assert!(reported(tree.clone(), r#"{"name":"a","children":[{"name":"b"}]}"#).is_empty());
    assert_eq!(
        reported(tree, r#"{"name":"a","children":[{"nam":"b"}]}"#),
        ["/children/0: `children[0]` lacks the property `name`; it has `nam`"]
    );
    let with_id = json!({"$id": "https://example.com/a", "$ref": "b", "$defs": {"b": {"$id": "b", "type": "integer"}}});
    assert_eq!(reported(with_id, "\"x\""), [": the value must be an integer, but it is \"x\""]);
}

#[test]
fn a_reference_to_a_part_that_is_not_there_is_refused() {
    let fault = refused(json!({"properties": {"a": {"$ref": "#/$defs/nope"}}}));
    assert_eq!(fault.path, "/properties/a/$ref");
    assert!(fault.message.contains("no such part"), "{fault:?}");
    refused(json!({"$ref": "#nope"}));
}

#[test]
fn odd_identifiers_are_refused_or_taken_and_never_panic() {
    for id in [
        "",
        "#",
        "#a",
        "a",
        "./a",
        "/",
        "//",
        "urn:x",
        "http://",
        "http://[",
        "a b",
        "\u{0}",
        "%",
        "file:///etc/passwd",
        "é:é",
    ] {
        for draft in [
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2020-12/schema",
            "http://x.test/none",
        ] {
            for key in ["$id", "id", "$anchor", "$schema", "$ref", "$dynamicRef"] {
                let _ = Schema::compile(json!({"$schema": draft, "properties": {"a": {(key): id}}}));
                let _ = Schema::compile(json!({"$schema": draft, (key): id, "properties": {"a": {"$ref": "#"}}}));
            }
        }
    }
}

#[test]
fn faults_are_reported_in_plain_words() {
    let cases = [
        (json!({"type": "string"}), "7", ": the value must be a string, but it is 7"),
        (json!({"type": ["string", "null"]}), "[1]", ": the value must be null or a string, but it is [1]"),
        (
            json!({"properties": {"a": {"type": "integer"}}}),
            r#"{"a":1.5}"#,
            "/a: `a` must be an integer, but it is 1.5",
        ),
        (
            json!({"properties": {"a": {"items": {"type": "boolean"}}}}),
            r#"{"a":[true,"x"]}"#,
            "/a/1: `a[1]` must be true or false, but it is \"x\"",
        ),
        (
            json!({"required": ["ticket_id"]}),
            r#"{"ticketid":1}"#,
            ": the value lacks the property `ticket_id`; it has `ticketid`",
        ),
        (json!({"required": ["ticket_id"]}), r#"{}"#, ": the value lacks the property `ticket_id`"),
        (
            json!({"properties": {"ticket_id": {}, "b": {}}, "additionalProperties": false}),
            r#"{"ticket_di":1}"#,
            ": the value has an unknown property: `ticket_di` (did you mean `ticket_id`?); known are `ticket_id`, `b`",
        ),
        (
            json!({"additionalProperties": false}),
            r#"{"x":1,"y":2}"#,
            ": the value has unknown properties: `x`, `y`; it may have none",
        ),
        (
            json!({"enum": ["open", "closed", 3, null]}),
            "\"opne\"",
            ": the value must be one of \"open\", \"closed\", 3, null, but it is \"opne\"; did you mean \"open\"?",
        ),
        (json!({"const": {"a": 1}}), "2", ": the value must be {\"a\":1}, but it is 2"),
        (json!({"minimum": 0}), "-1", ": the value must be at least 0, but it is -1"),
        (json!({"maximum": 1}), "1.5", ": the value must be at most 1, but it is 1.5"),
        (json!({"exclusiveMinimum": 0}), "0", ": the value must be more than 0, but it is 0"),
        (json!({"exclusiveMaximum": 0}), "0", ": the value must be less than 0, but it is 0"),
    ];
    for (source, instance, expected) in cases {
        assert_eq!(reported(source.clone(), instance), [expected], "{source}");
    }
}

#[test]
fn sizes_and_forms_are_reported_in_plain_words() {
    let cases = [
        (json!({"multipleOf": 0.1}), "0.25", ": the value must be a multiple of 0.1, but it is 0.25"),
        (json!({"minLength": 1}), "\"\"", ": the value must have at least 1 character, but it is \"\" (0 characters)"),
        (
            json!({"maxLength": 2}),
            "\"abc\"",
            ": the value must have at most 2 characters, but it is \"abc\" (3 characters)",
        ),
        (json!({"minItems": 2}), "[1]", ": the value must have at least 2 items, but it is [1] (1 item)"),
        (json!({"maxItems": 1}), "[1,2]", ": the value must have at most 1 item, but it is [1,2] (2 items)"),
        (json!({"minProperties": 1}), "{}", ": the value must have at least 1 property, but it is {} (0 properties)"),
        (
            json!({"maxProperties": 0}),
            r#"{"a":1}"#,
            ": the value must have at most 0 properties, but it is {\"a\":1} (1 property)",
        ),
        (json!({"uniqueItems": true}), "[1,1]", ": the value has the same item more than once"),
        (json!({"pattern": "^TK-"}), "\"x\"", ": the value must match the pattern `^TK-`, but it is \"x\""),
        (json!({"not": {"type": "null"}}), "null", ": the value must not match {\"type\":\"null\"}, but it is null"),
        (json!(false), "1", ": the value is not allowed here"),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
            "1.5",
            ": the value must be a string or an integer, but it is 1.5",
        ),
        (
            json!({"oneOf": [{"type": "null"}, {"properties": {"a": {"type": "string"}}, "required": ["a"]}]}),
            r#"{"a":1}"#,
            ": the value matches none of the 2 allowed forms; by the nearest one, `a` must be a string, but it is 1",
        ),
        (
            json!({"oneOf": [{}, {"type": "string"}]}),
            "\"a\"",
            ": the value matches more than one of the forms that exclude each other, but it is \"a\"",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            r#"{"ab":1}"#,
            ": the value has a property whose name is not allowed: the value must have at most 1 character, but it is \"ab\" (2 characters)",
        ),
        (
            json!({"contains": {"type": "string"}}),
            "[1]",
            ": the value has no item, or not the right number of items, of the kind that it must contain",
        ),
        (
            json!({"properties": {"a/b": {"properties": {"c~d": {"type": "null"}}}}}),
            r#"{"a/b":{"c~d":1}}"#,
            "/a~1b/c~0d: `a/b.c~d` must be null, but it is 1",
        ),
    ];
    for (source, instance, expected) in cases {
        assert_eq!(reported(source.clone(), instance), [expected], "{source}");
    }
}

#[test]
fn long_values_are_cut_in_messages() {
    let long = format!("\"{}\"", "é".repeat(5000));
    let message = reported(json!({"type": "integer"}), &long).remove(0);
    assert!(message.chars().count() < 120 && message.ends_with("..."), "{message}");
    let many = reported(json!({"items": {"type": "string"}}), &format!("[{}1]", "1,".repeat(500)));
    assert_eq!(many.len(), 20);
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_are_judged_by_their_digits() {
    let fits = |source: Value, number: &str| reported(source, number).is_empty();
    for number in ["12345678901234567890123", "1.0", "-0", "1e2", "100.00", "9007199254740993", "1E400"] {
        assert!(fits(json!({"type": "integer"}), number), "{number}");
        assert!(fits(json!({"type": "number"}), number), "{number}");
    }
    for number in ["0.1", "1e-2", "12345678901234567890123.5"] {
        assert!(!fits(json!({"type": "integer"}), number), "{number}");
    }
    let big: Value = serde_json::from_str("{\"maximum\": 9007199254740992}").unwrap();
    assert!(!fits(big.clone(), "9007199254740993"));
    assert!(fits(big, "9007199254740992"));
    assert_eq!(
        reported(json!({"type": "string"}), "12345678901234567890123"),
        [": the value must be a string, but it is 12345678901234567890123"]
    );
    assert!(fits(json!({"multipleOf": 0.01}), "0.07"));
    assert!(!fits(json!({"minimum": 0}), "-1E400"));
}

#[cfg(feature = "exact-numbers")]
#[test]
fn immense_numbers_are_refused_at_once() {
    let kinds = [
        json!({"type": "integer"}),
        json!({"multipleOf": 3}),
        json!({"minimum": 5}),
        json!({"enum": [1]}),
        json!({"uniqueItems": true}),
        json!({"const": 1}),
    ];
    for source in kinds {
        for number in ["1e999999999", "-1e-999999999", "1e100000", "0.5e+0999999999999999999999"] {
            let instance = format!("[{number},{number}]");
            let faults = reported(json!({"items": source.clone(), "uniqueItems": true}), &instance);
            assert!(faults.first().is_some_and(|fault| fault.contains("exponent")), "{faults:?}");
        }
        let _ = reported(json!({"items": source.clone(), "uniqueItems": true}), "[1e99999,-1E-99999,1e99998]");
    }
}

/// Every one of these takes a few milliseconds; without the bounds, some would not end at all.
#[test]
fn a_pattern_bomb_ends_early() {
    let long = format!("(a{})", "|b".repeat(50_000));
    let many = "a".repeat(30);
    let patterns = [
        "^(a+)+$",
        "(x+x+)+y",
        "((a*)*)*b",
        "^(?=(a+)+$)b",
        "(a|a)*\\1b",
        "a{1000}{1000}",
        "(?=a{1000}{1000})",
        "((a{100}){100}){100}",
        "(?:(?=a)b{1000}){1000}",
        "(a+)+(?<!b)c",
        "\\p{L}{1000}",
        "(",
        "[",
        "(?<=a+)b",
        "(?:a?){1000}a{1000}",
        &long,
    ];
    for pattern in patterns {
        let shown = &pattern[..pattern.len().min(30)];
        let compiled = Schema::compile(json!({"type": "string", "pattern": pattern}));
        let verdict = compiled.map(|schema| schema.faults(&json!(format!("{many}!x{many}"))).len());
        assert!(verdict.is_err() || verdict == Ok(1), "{shown}: {verdict:?}");
    }
    assert!(Schema::compile(json!({"pattern": "^(?!x).*$"})).is_ok(), "looking ahead is not refused as such");
    assert_eq!(refused(json!({"properties": {"a": {"pattern": "("}}})).path, "/properties/a/pattern");
}

#[test]
fn the_draft_is_that_of_the_schema_where_it_is_known() {
    // `items` with a list is a tuple in draft 7, and `prefixItems` is not known there.
    let tuple =
        |draft: &str| json!({"$schema": draft, "items": [{"type": "string"}], "prefixItems": [{"type": "null"}]});
    for draft in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-04/schema#",
    ] {
        assert!(schema(tuple(draft)).faults(&json!(["a"])).is_empty(), "{draft}");
    }
    refused(json!({"items": [{"type": "string"}]}));
    let newest = json!({"prefixItems": [{"type": "null"}]});
    assert_eq!(schema(newest.clone()).faults(&json!(["a"])).len(), 1);
    let mut unknown = newest;
    unknown["$schema"] = json!("https://example.com/a-dialect-of-our-own");
    assert_eq!(schema(unknown).faults(&json!(["a"])).len(), 1);
}

#[test]
fn what_a_dependency_describes_is_evaluated_whichever_keyword_holds_it() {
    for draft in ["2019-09", "2020-12"] {
        for keyword in ["dependencies", "dependentSchemas"] {
            let source = json!({
                "$schema": format!("https://json-schema.org/draft/{draft}/schema"),
                (keyword): {"a": {"patternProperties": {"^b": {}}}},
                "properties": {"a": {}},
                "unevaluatedProperties": false,
            });
            assert_eq!(reported(source.clone(), r#"{"a": 1, "b1": 2}"#), [""; 0], "{source}");
            assert_eq!(reported(source.clone(), r#"{"b1": 2}"#).len(), 1, "{source}");
            assert_eq!(reported(source.clone(), r#"{"a": 1, "c": 2}"#).len(), 1, "{source}");
        }
    }
}

#[test]
fn what_is_no_schema_is_refused_in_place() {
    for (source, path) in [
        (json!({"type": "strnig"}), "/type"),
        (json!({"properties": {"a": {"type": 7}}}), "/properties/a/type"),
        (json!({"required": "a"}), "/required"),
        (json!({"properties": []}), "/properties"),
        (json!({"minLength": -1}), "/minLength"),
        (json!(7), ""),
        (json!([]), ""),
    ] {
        let fault = refused(source.clone());
        assert_eq!(fault.path, path, "{source}: {fault:?}");
        assert!(fault.message.starts_with("this is no JSON Schema: "), "{fault:?}");
    }
}

#[test]
fn a_wrong_type_is_reported_with_the_nearest_one() {
    let message = refused(json!({"type": "strnig"})).message;
    assert!(message.ends_with("but it is \"strnig\"; did you mean \"string\"?"), "{message}");
}

#[test]
fn a_schema_knows_the_names_that_it_describes() {
    let source = json!({"$ref": "#/$defs/in", "allOf": [{"properties": {"c": {}}}], "$defs": {"in": {"properties": {"a": {}, "b": {}}, "required": ["a"]}}, "required": ["c"]});
    let schema = schema(source);
    assert_eq!(schema.properties(), ["a", "b", "c"]);
    assert_eq!(schema.required(), ["c", "a"]);
    assert!(!schema.is_open() && !schema.is_closed());
    let looped = Schema::compile(
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}], "properties": {"x": {}}}}}),
    );
    assert_eq!(looped.unwrap().properties(), ["x"]);
}

#[test]
fn parts_that_name_each_other_a_thousand_times_over_are_gone_through_once() {
    let again = vec![json!({"$ref": "#/$defs/a"}); 1_000];
    let looped = schema(json!({"allOf": again, "$defs": {"a": {"properties": {"x": {}}, "anyOf": again}}}));
    assert_eq!((looped.properties(), looped.is_open()), (vec!["x"], false));
    // A part that was met at the bound is searched when it is met again nearer to the top.
    let far = (0..4).fold(json!({"$ref": "#/$defs/a"}), |inner, _| json!({"allOf": [inner]}));
    let near = json!({"$ref": "#/$defs/a"});
    let parts = json!({"a": {"allOf": [{"allOf": [{"allOf": [{"allOf": [{"properties": {"x": {}}}]}]}]}]}});
    assert!(schema(json!({"allOf": [far], "$defs": parts})).properties().is_empty());
    assert_eq!(schema(json!({"allOf": [far, near], "$defs": parts})).properties(), ["x"]);
}

#[test]
fn every_object_matches_any_and_nothing_else_does() {
    let any = Schema::any();
    assert!(any.faults(&json!({"a": [1]})).is_empty());
    assert_eq!(any.faults(&json!([])).len(), 1);
    assert!(any.properties().is_empty());
}

#[test]
fn deep_values_are_judged_without_harm() {
    let recursive = json!({"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"type": "null"}]});
    let schema = schema(recursive);
    let deep = |depth: usize, core: &str| -> Value {
        serde_json::from_str(&format!("{}{core}{}", "[".repeat(depth), "]".repeat(depth))).unwrap()
    };
    assert!(schema.faults(&deep(100, "null")).is_empty());
    let faults = schema.faults(&deep(100, "7"));
    assert!(!faults.is_empty() && faults[0].message.len() < 4000, "{}", faults[0].message.len());
}
