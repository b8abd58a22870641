//! Schemas and values that were made to take all the time that there is: each is judged in few steps, or
//! refused when it is loaded.

use serde_json::{Value, json};

use super::comparison::Judge;
use super::plan::Plan;
use super::work::TooMuch;
use super::{MAX_PATTERN_PROGRAMS, Schema, plan};

fn planned(source: &Value) -> Plan {
    plan(source, usize::MAX).unwrap_or_else(|fault| panic!("{fault:?}"))
}

/// Whether a value matches, and the steps that it took to know.
fn judged(source: &Value, value: &Value) -> (Result<bool, TooMuch>, u64) {
    let plan = planned(source);
    let mut judge = Judge::new(&plan, value);
    let before = judge.work.left();
    let matches = judge.matches(0, value);
    (matches, before - judge.work.left())
}

fn reported(source: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::compile(source.clone()).unwrap_or_else(|fault| panic!("{fault:?}"));
    schema.faults(value).iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
}

/// A filter of `and`, `or`, `not` and `eq`, as people write it, where each form takes what the others take.
fn filters() -> Value {
    json!({
        "type": "object",
        "properties": {"filter": {"$ref": "#/$defs/filter"}},
        "required": ["filter"],
        "$defs": {"filter": {"oneOf": [
            {"type": "object", "properties": {"op": {"const": "and"}, "of": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["op", "of"]},
            {"type": "object", "properties": {"op": {"const": "or"}, "of": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["op", "of"]},
            {"type": "object", "properties": {"op": {"const": "not"}, "of": {"type": "array", "items": {"$ref": "#/$defs/filter"}}}, "required": ["op", "of"]},
            {"type": "object", "properties": {"op": {"const": "eq"}, "field": {"type": "string"}, "value": {"type": ["string", "number"]}}, "required": ["op", "field", "value"]}
        ]}}
    })
}

fn nested(depth: usize, leaf: Value) -> Value {
    let ops = ["and", "or", "not"];
    let inner = (0..depth).fold(leaf, |inner, at| json!({"op": ops[at % 3], "of": [inner]}));
    json!({ "filter": inner })
}

#[test]
fn a_filter_that_is_nested_twenty_deep_with_a_wrong_leaf_gets_its_fault_in_few_steps() {
    let right = json!({"op": "eq", "field": "a", "value": 1});
    let wrong = json!({"op": "eq", "field": 7, "value": null});
    assert_eq!(reported(&filters(), &nested(20, right.clone())), [""; 0]);
    let (matches, steps) = judged(&filters(), &nested(20, wrong.clone()));
    assert_eq!(matches, Ok(false));
    assert!(steps < 5_000, "{steps}");
    let faults = reported(&filters(), &nested(20, wrong));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("matches none of the 4 allowed forms; by the nearest one"), "{faults:?}");
    // The twin: the steps are counted where there are many.
    let wide = json!({"filter": {"op": "and", "of": vec![right; 1_000]}});
    let (matches, steps) = judged(&filters(), &wide);
    assert_eq!(matches, Ok(true));
    assert!(steps > 5_000, "{steps}");
}

#[test]
fn forms_that_do_not_exclude_each_other_are_compared_once_however_they_are_reached() {
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let again = json!({"properties": {"of": {"$ref": "#"}}, "required": ["of"]});
        let source = json!({(keyword): [again, again, again, {"type": "integer"}, {"not": again}]});
        let value = (0..60).fold(json!("wrong"), |inner, _| json!({"of": inner}));
        let (matches, steps) = judged(&source, &value);
        assert!(matches.is_ok() && steps < 20_000, "{keyword}: {matches:?} in {steps}");
        assert!(!reported(&source, &value).is_empty() || keyword == "anyOf", "{keyword}");
    }
}

/// Forty parts that each ask twice for the next.
fn doubling(depth: usize, keyword: &str, last: Value) -> Value {
    let mut parts = serde_json::Map::new();
    for at in 0..depth {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        parts.insert(format!("d{at}"), json!({(keyword): [next, next]}));
    }
    parts.insert(format!("d{depth}"), last);
    json!({"$ref": "#/$defs/d0", "$defs": parts})
}

#[test]
fn parts_that_double_forty_times_are_loaded_and_compared_in_few_steps() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for last in [json!({}), json!({"type": "object"}), json!({"type": "string"}), json!(true), json!(false)] {
            let source = doubling(40, keyword, last.clone());
            let (matches, steps) = judged(&source, &json!({"a": 1}));
            assert!(matches.is_ok() && steps < 2_000, "{keyword} {last}: {matches:?} in {steps}");
            let faults = reported(&source, &json!({"a": 1}));
            assert_eq!(faults.is_empty(), matches == Ok(true), "{keyword} {last}: {faults:?}");
        }
    }
    for (outer, inner) in [("not", "allOf"), ("if", "anyOf"), ("unevaluatedProperties", "allOf")] {
        let mut source = doubling(40, inner, json!({"properties": {"b": {}}}));
        source[outer] = json!({"$ref": "#/$defs/d1"});
        let (matches, steps) = judged(&source, &json!({"a": {"a": 1}}));
        assert!(matches.is_ok() && steps < 5_000, "{outer}: {matches:?} in {steps}");
        let _ = reported(&source, &json!({"a": {"a": 1}}));
    }
}

#[test]
fn parts_that_double_through_conditions_and_dependencies_are_compared_in_few_steps() {
    let two = |at: usize, what: &str| {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        match what {
            "if" => json!({"if": next, "then": next, "else": next}),
            "dependentSchemas" => json!({"dependentSchemas": {"a": next, "b": next}}),
            _ => json!({"allOf": [next], "anyOf": [next], "unevaluatedProperties": {"not": next}}),
        }
    };
    for what in ["if", "dependentSchemas", "unevaluatedProperties"] {
        let mut parts: serde_json::Map<_, _> = (0..40).map(|at| (format!("d{at}"), two(at, what))).collect();
        parts.insert("d40".to_owned(), json!({"required": ["z"]}));
        let source = json!({"$ref": "#/$defs/d0", "$defs": parts});
        let (matches, steps) = judged(&source, &json!({"a": 1, "b": 2}));
        assert!(matches.is_ok() && steps < 20_000, "{what}: {matches:?} in {steps}");
        let _ = reported(&source, &json!({"a": 1, "b": 2}));
    }
}

#[test]
fn references_that_lead_in_a_circle_end() {
    for source in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/a"}]}}}),
        json!({"not": {"$ref": "#"}}),
        json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$dynamicAnchor": "a", "$dynamicRef": "#a"}),
        json!({"unevaluatedProperties": {"$ref": "#"}, "allOf": [{"$ref": "#"}]}),
    ] {
        for value in [json!({"a": {"a": 1}}), json!([[1]]), json!(1)] {
            let (matches, steps) = judged(&source, &value);
            assert!(matches.is_ok() && steps < 1_000, "{source} {value}: {matches:?} in {steps}");
            let _ = reported(&source, &value);
        }
    }
    // A chain of ten thousand references is one; one that asks for something at each is refused.
    let chain = |extra: Value| {
        let link = |at: usize| {
            let mut link = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            link.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            (format!("d{at}"), link)
        };
        let mut parts: serde_json::Map<_, _> = (0..10_000).map(link).collect();
        parts.insert("d10000".to_owned(), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": parts})
    };
    assert_eq!(reported(&chain(json!({})), &json!(1)).len(), 1);
    let fault = Schema::compile(chain(json!({"minLength": 1}))).unwrap_err();
    assert!(fault.message.contains("inside each other"), "{fault:?}");
}

#[test]
fn dynamic_references_are_followed_and_do_not_unfold_without_end() {
    let tree = json!({
        "$id": "https://example.com/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": false,
        "$defs": {"tree": {"$id": "https://example.com/tree", "$dynamicAnchor": "node", "type": "object",
            "properties": {"data": true, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}}}
    });
    assert!(reported(&tree, &json!({"children": [{"data": 1}]})).is_empty());
    assert_eq!(reported(&tree, &json!({"children": [{"daat": 1}]})).len(), 1);
    // A hundred resources that lead to each other in every order.
    let resources: serde_json::Map<_, _> = (0..12)
        .map(|at| {
            let all: Vec<Value> = (0..12).map(|next| json!({"$ref": format!("r{next}")})).collect();
            let resource = json!({"$id": format!("https://example.com/r{at}"), "$dynamicAnchor": "x", "items": {"anyOf": all}, "contains": {"$dynamicRef": "#x"}});
            (format!("r{at}"), resource)
        })
        .collect();
    let source = json!({"$id": "https://example.com/", "$ref": "r0", "$defs": resources});
    match Schema::compile(source) {
        Ok(schema) => assert!(schema.faults(&json!([[[[]]]])).len() < 2),
        Err(fault) => assert!(fault.message.contains("dynamicRef"), "{fault:?}"),
    }
}

#[test]
fn long_lists_and_large_objects_are_compared_in_steps_that_grow_with_them() {
    let items: Vec<Value> = (0..10_000).map(|at| json!({"id": at, "name": format!("n{at}")})).collect();
    let (all, few) = (Value::Array(items.clone()), Value::Array(items[..100].to_vec()));
    let choices: Vec<Value> = (0..100_000).map(|at| json!(format!("c{at}"))).collect();
    let parts: serde_json::Map<_, _> = (0..200).map(|at| (format!("^n{at}$"), json!({"type": "integer"}))).collect();
    for source in [
        json!({"uniqueItems": true}),
        json!({"items": {"enum": choices}}),
        json!({"contains": {"properties": {"id": {"const": -1}}, "required": ["id"]}, "minContains": 2}),
        json!({"items": {"propertyNames": {"maxLength": 4}}}),
        json!({"items": {"patternProperties": {"^n": {"type": "string"}}, "additionalProperties": {"type": "integer"}}}),
        json!({"unevaluatedItems": {"unevaluatedProperties": {"type": ["integer", "string"]}}}),
    ] {
        let ((_, many), (_, some)) = (judged(&source, &all), judged(&source, &few));
        assert!(many < some * 150, "{some} and {many}");
        assert!(!reported(&source, &all).iter().any(|fault| fault.contains("more work")));
    }
    // Patterns times names is what it is, and it is bounded.
    let members: serde_json::Map<_, _> = (0..50_000).map(|at| (format!("m{at}"), json!(1))).collect();
    let faults = reported(&json!({"patternProperties": parts}), &Value::Object(members));
    assert!(faults.is_empty() || faults[0].contains("more work"), "{faults:?}");
}

#[test]
fn a_comparison_that_takes_more_than_its_steps_is_a_fault_and_always_the_same_one() {
    let parts: Vec<Value> = (0..3_000).map(|at| json!({"required": [format!("r{at}")]})).collect();
    let source = json!({"items": {"anyOf": parts}});
    let value = Value::Array(vec![json!({"r2999": 1}); 20_000]);
    let faults = reported(&source, &value);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("takes more work to compare with its schema"), "{faults:?}");
    assert_eq!(reported(&source, &value), faults);
    // The twin: a tenth of it is compared.
    assert!(reported(&source, &Value::Array(vec![json!({"r2999": 1}); 500])).is_empty());
}

#[test]
fn values_that_lie_as_deep_as_they_may_are_compared_on_a_small_stack() {
    let source =
        json!({"anyOf": [{"allOf": [{"anyOf": [{"type": "array", "items": {"$ref": "#"}}]}]}, {"type": "null"}]});
    let deep = |core: &str| -> Value {
        serde_json::from_str(&format!("{}{core}{}", "[".repeat(120), "]".repeat(120))).unwrap()
    };
    assert!(reported(&source, &deep("null")).is_empty());
    assert_eq!(reported(&source, &deep("7")).len(), 1);
    let long = (0..190).fold(json!({"items": {"$ref": "#"}}), |inner, _| json!({"allOf": [inner]}));
    if let Ok(schema) = Schema::compile(long) {
        let faults = schema.faults(&deep("7"));
        assert!(faults[0].message.contains("more work"), "{faults:?}");
    }
}

#[cfg(feature = "exact-numbers")]
#[test]
fn numbers_with_large_exponents_are_compared_by_their_digits() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let many = format!("[{}]", (0..20_000).map(|at| format!("{at}e99999")).collect::<Vec<_>>().join(","));
    for source in [
        json!({"uniqueItems": true}),
        json!({"items": {"enum": [read("1e99998"), read("2e-99999")]}}),
        json!({"items": {"const": read("1e99999")}}),
        json!({"items": {"multipleOf": read("3e-99999")}}),
        json!({"items": {"maximum": read("1e99999"), "minimum": read("-1e99999")}}),
        json!({"items": {"type": "integer"}}),
    ] {
        let (matches, steps) = judged(&source, &read(&many));
        assert!(matches.is_ok() && steps < 500_000, "{source}: {matches:?} in {steps}");
    }
    assert_eq!(reported(&json!({"uniqueItems": true}), &read("[1e99999, 10e99998]")).len(), 1);
    for source in [
        "{\"maximum\": 1e1000000}",
        "{\"enum\": [1e999999999]}",
        "{\"multipleOf\": 1e-1000000}",
        "{\"const\": {\"a\": [1e1000000]}}",
    ] {
        let fault = Schema::compile(read(source)).unwrap_err();
        assert!(fault.message.contains("exponent"), "{source}: {fault:?}");
    }
}

#[test]
fn patterns_that_compile_to_much_are_refused_together_and_none_is_kept_compiled_before_it_is_needed() {
    let pattern = |at: usize| format!("^\\p{{L}}{{10}}{at}$");
    let of = |count: usize| -> Value {
        let parts: serde_json::Map<_, _> =
            (0..count).map(|at| (format!("p{at}"), json!({"pattern": pattern(at)}))).collect();
        json!({ "properties": parts })
    };
    let few = Schema::compile(of(8)).unwrap();
    assert!(
        few.pattern_bytes() > 8 * 100_000 && few.pattern_bytes() <= MAX_PATTERN_PROGRAMS,
        "{}",
        few.pattern_bytes()
    );
    assert_eq!(few.faults(&json!({"p7": "abcdefghij7"})), []);
    assert_eq!(few.faults(&json!({"p7": "abcdefghij8"})).len(), 1);
    let fault = Schema::compile(of(10_000)).unwrap_err();
    assert!(fault.message.contains("16 MiB"), "{fault:?}");
    assert!(fault.path.ends_with("/pattern"), "{fault:?}");
    // One that is there many times is one.
    let same: serde_json::Map<_, _> = (0..500).map(|at| (format!("p{at}"), json!({"pattern": pattern(7)}))).collect();
    assert!(Schema::compile(json!({ "properties": same })).is_ok());
}

#[test]
fn the_patterns_of_all_schemas_of_a_document_count_together() {
    let tools = |count: usize, each: usize| -> Value {
        let tool = |tool: usize| {
            let patterns: Vec<Value> =
                (0..each).map(|at| json!({"pattern": format!("^\\p{{L}}{{10}}{tool}x{at}$")})).collect();
            json!({"parameters": {"properties": {"x": {"anyOf": patterns}}}})
        };
        json!({"tools": (0..count).map(tool).collect::<Vec<_>>()})
    };
    let one = Schema::compile(tools(1, 8)["tools"][0]["parameters"].clone()).unwrap();
    assert!(one.pattern_bytes() < MAX_PATTERN_PROGRAMS / 2);
    assert_eq!(super::too_many_patterns_in(&tools(1, 8)), None);
    let fault = super::too_many_patterns_in(&tools(1_000, 8)).unwrap();
    assert!(fault.path.starts_with("/tools/") && fault.path.ends_with("/pattern"), "{fault:?}");
    // Thousands of short ones are no burden.
    let plain: Vec<Value> = (0..2_000).map(|at| json!({"pattern": format!("^TK-{at}$")})).collect();
    assert_eq!(super::too_many_patterns_in(&json!(plain)), None);
}

#[test]
fn a_long_text_is_not_gone_through_for_every_step_back() {
    let long = "a".repeat(200_000);
    for pattern in ["^(?=.*b)(?=.*c).*$", "(a+)+(?<!b)c", "(?=(a+)+$)b", "(a|a)*\\1b"] {
        let faults = reported(&json!({"pattern": pattern}), &json!(long));
        assert_eq!(faults.len(), 1, "{pattern}");
    }
    // What can't be judged does not match, and does not become a match by being turned round.
    let bomb = json!({"properties": {"a": {"not": {"pattern": "^(?=(a+)+$)b|(x+x+)+(?=y)"}}}});
    let faults = reported(&bomb, &json!({"a": "x".repeat(3_000)}));
    assert_eq!(faults, ["/a: `a` can't be compared with its pattern in reasonable time"]);
}
