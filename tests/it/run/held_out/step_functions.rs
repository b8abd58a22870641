//! `Map` states of AWS Step Functions: the templates of LocalStack (github.com/localstack/localstack,
//! tests/aws/services/stepfunctions, Apache-2.0), whose answers were recorded from AWS; and the tests of
//! github.com/nibble-4bits/aws-local-stepfunctions (`MapStateAction.test.ts`, MIT).

use serde_json::{Value, json};

use super::{Passing, map, outputs, pass};

/// Runs a loop whose items are passed on, over `input.items`; what the items gave.
fn passed(items: &Value, more: Value) -> Value {
    let each = map("@input.items", more, json!([pass(json!("@one"))]));
    outputs(
        &Passing::new()
            .run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": items }))
            .answer()
            .clone(),
    )
}

#[test]
fn map_state_hands_each_item_of_any_type_on_in_order() {
    let items = json!([1, "Hello", {}, null, 3.3, 3, 4, 5]);
    assert_eq!(passed(&items, json!({})), items);
    let pairs = json!([{ "num1": 5, "num2": 3 }, { "num1": 2, "num2": 6 }, { "num1": 7, "num2": 4 }]);
    assert_eq!(passed(&pairs, json!({})), pairs);
}

#[test]
fn map_state_items_input_array_is_empty_a_singleton_or_mixed() {
    for items in [json!([]), json!([0]), json!([1, "two", true])] {
        assert_eq!(passed(&items, json!({})), items);
    }
}

#[test]
fn map_state_items_input_types_other_than_an_array_fail() {
    let each = map("@input.items", json!({}), json!([pass(json!("@one"))]));
    for items in [json!(1), json!("string"), json!(true), json!({ "foo": "bar" }), json!(null), json!("not an array")] {
        let ended = Passing::new().run(json!({ "actions": [each] }), &json!({ "items": items }));
        assert_eq!(ended.fault(), ("not_a_list".to_owned(), "each".to_owned()), "{items}");
    }
}

#[test]
fn map_state_config_parameters_and_item_selector_mix_constants_the_item_and_the_input() {
    let value = json!({ "constantValue": "constant", "mapValue": "@one", "fromInput": "@input.items" });
    let each = map("@input.items", json!({}), json!([pass(value)]));
    let ended =
        Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": ["Hello", "World"] }));
    let given = |item: &str| json!({ "constantValue": "constant", "mapValue": item, "fromInput": ["Hello", "World"] });
    assert_eq!(outputs(ended.answer()), json!([given("Hello"), given("World")]));
}

#[test]
fn map_state_item_selector_singletons_have_the_index_and_the_original_input() {
    let detail = json!({ "delivery_partner": "UQS", "shipped": ["A", "B", "C"] });
    let value = json!({ "original_input": "@detail", "iteration_input_value": "@one", "iteration_index": "@__index",
        "from_input_constant": "@detail.delivery_partner", "constant_value": "HelloWorld" });
    let start = json!({ "type": "pass", "properties": { "value": detail }, "outputKey": "detail" });
    let each = map("@detail.shipped", json!({}), json!([pass(value)]));
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [start, each] }), &json!({}));
    let given = |index: usize, item: &str| {
        json!({ "original_input": detail, "iteration_input_value": item, "iteration_index": index,
            "from_input_constant": "UQS", "constant_value": "HelloWorld" })
    };
    assert_eq!(outputs(ended.answer()), json!([given(0, "A"), given(1, "B"), given(2, "C")]));
}

#[test]
fn map_state_nested_gives_lists_of_lists() {
    let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@one",
        "item_variable_name": "two", "collect_results": true, "result_key": "twos",
        "actions_to_execute": [{ "type": "pass", "properties": { "value": "@two" } }] } });
    let each = map("@input.items", json!({}), json!([inner]));
    let ended =
        Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": [[1, 2, 3], [4, 5, 6]] }));
    let lists: Value = outputs(ended.answer()).as_array().unwrap().iter().map(outputs).collect();
    assert_eq!(lists, json!([[1, 2, 3], [4, 5, 6]]));
}

#[test]
fn map_state_nested_config_distributed_keeps_the_item_beside_the_result() {
    let values = json!([{ "sub_values": [{ "num": 1, "str": "A" }, { "num": 2, "str": "B" }] }]);
    let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@one.sub_values",
        "item_variable_name": "two", "collect_results": true, "result_key": "twos",
        "actions_to_execute": [{ "type": "pass", "properties": { "value": "@two" } }] } });
    let last = pass(json!({ "sub_values": "@one.sub_values", "first": "@twos.0.output", "second": "@twos.1.output" }));
    let each = map("@input.items", json!({}), json!([inner, last]));
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": values }));
    let sub = &values[0]["sub_values"];
    assert_eq!(outputs(ended.answer()), json!([{ "sub_values": sub, "first": sub[0], "second": sub[1] }]));
}

#[test]
fn map_state_nested_without_max_concurrency_gives_all_jobs() {
    let inner = json!({ "id": "inner", "type": "loop", "properties": { "mode": "foreach", "items_path": "@one.innerJobs",
        "item_variable_name": "two", "max_concurrency": 256, "collect_results": true, "result_key": "twos",
        "actions_to_execute": [{ "type": "pass", "properties": { "value": "@two" } }] } });
    let each = map("@input.items", json!({ "max_concurrency": 256 }), json!([inner]));
    let jobs = json!([0, 1, 2, 3, 4]);
    let items: Vec<Value> = (0..4).map(|_| json!({ "innerJobs": jobs })).collect();
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": items }));
    let lists: Vec<Value> = outputs(ended.answer()).as_array().unwrap().iter().map(outputs).collect();
    assert_eq!(lists, vec![jobs; 4]);
}

#[test]
fn map_state_break_condition_fails_at_the_first_three_and_begins_no_item_after_it() {
    let is_three = json!({ "condition": { "equal": ["@one", 3] } });
    let step = json!({ "type": "fail", "filter": is_three, "properties": { "value": "@one" }, "onFalse": pass(json!("@one")) });
    let each = map("@input.items", json!({}), json!([step]));
    let passing = Passing::new();
    let ended = passing.run(json!({ "actions": [each] }), &json!({ "items": [1, "Hello", {}, 3.3, 3, 4, 5] }));
    // AWS: five iterations started, four succeeded, one failed.
    assert_eq!(ended.fault().1, "each.4.0");
    let counts = ended.counts();
    assert_eq!((&counts["completed"], &counts["failed"], &counts["cancelled"]), (&json!(4), &json!(1), &json!(2)));
    assert_eq!(passing.values("pass").len(), 4);
}

#[test]
fn map_state_catch_goes_on_after_the_loop_with_the_error() {
    let settings = json!({ "failure_strategy": "continue_on_error" });
    let each = map("@input.items", settings, json!([{ "type": "fail", "properties": {} }]));
    let caught = json!({ "type": "pass", "filter": { "condition": { "greaterThan": ["@counts.failed", 0] } },
        "properties": { "value": "@all.0.error.code" }, "outputKey": "caught" });
    let ended = Passing::new().run(json!({ "output": "@caught", "actions": [each, caught] }), &json!({ "items": [1] }));
    assert_eq!(*ended.answer(), json!("call_failed"));
}

#[test]
fn differs_map_state_retry_repeats_the_failing_call_and_not_the_whole_loop() {
    // AWS with two retries of the state: three iterations started. Here a step is retried, so that no item runs again.
    let retry = json!({ "attempts": 3, "base_ms": 1, "max_ms": 1 });
    let steps = json!([pass(json!("@one")), { "type": "fail", "properties": { "value": "@one" }, "retry": retry }]);
    let passing = Passing::new();
    let ended = passing.run(json!({ "actions": [map("@input.items", json!({}), steps)] }), &json!({ "items": [1] }));
    assert_eq!(ended.fault(), ("call_failed".to_owned(), "each.0.1".to_owned()));
    assert_eq!((passing.values("fail").len(), passing.values("pass").len()), (3, 1));
}

#[test]
fn map_state_tolerated_failure_count_lets_so_many_items_fail() {
    let steps = json!([{ "type": "fail", "filter": { "condition": { "equal": ["@one", "bad"] } }, "properties": {},
        "onFalse": pass(json!("@one")) }]);
    for (most, items, fails) in
        [(0, json!([0]), false), (1, json!([0]), false), (1, json!(["bad", 0]), false), (0, json!(["bad", 0]), true)]
    {
        let settings = json!({ "failure_strategy": "continue_on_error", "max_failures": most });
        let each = map("@input.items", settings, steps.clone());
        let ended = Passing::new().run(json!({ "actions": [each] }), &json!({ "items": items }));
        if fails {
            assert_eq!(ended.fault().0, "too_many_failures", "{most} {items}");
        } else {
            ended.answer();
        }
    }
}

#[test]
fn differs_tolerated_failures_are_a_number_in_the_document_and_no_path_or_share() {
    let each = map("@input.items", json!({ "max_failures": "@input.most" }), json!([pass(json!("@one"))]));
    let place = Passing::new().place;
    crate::run::workflows::definition(&place, json!({ "actions": [each] }));
    let ran = place.call(&["check", "loop.json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
}

#[test]
fn map_state_reentrant_runs_again_over_what_it_gave() {
    // AWS loops back to the state three times; here the document says it three times.
    let loops: Vec<Value> = ["@input.items", "@values0", "@values1"]
        .iter()
        .enumerate()
        .map(|(number, from)| {
            json!({ "id": format!("round{number}"), "type": "loop", "properties": { "mode": "foreach", "items_path": from,
                "item_variable_name": "one", "collect_results": true, "result_key": format!("values{number}"),
                "actions_to_execute": [pass(if number == 0 { json!("@one") } else { json!("@one.output") })] } })
        })
        .collect();
    let ended =
        Passing::new().run(json!({ "output": "@values2", "actions": loops }), &json!({ "items": [0, 1, 2, 3] }));
    assert_eq!(outputs(ended.answer()), json!([0, 1, 2, 3]));
}

#[test]
fn max_concurrency_path_of_one_gives_the_same() {
    assert_eq!(passed(&json!(["HelloWorld"]), json!({ "max_concurrency": 1 })), json!(["HelloWorld"]));
}

#[test]
fn differs_max_concurrency_zero_is_an_error_and_not_without_limit() {
    let each = map("@input.items", json!({ "max_concurrency": 0 }), json!([pass(json!("@one"))]));
    let place = Passing::new().place;
    crate::run::workflows::definition(&place, json!({ "actions": [each] }));
    assert_eq!(place.call(&["check", "loop.json"]).code, 1);
}

#[test]
fn map_state_config_items_path_may_lead_into_the_output_of_a_step_before() {
    let start = pass(json!(["item-value-from-previous"]));
    let each =
        map("@passed", json!({}), json!([{ "type": "pass", "properties": { "value": "@one" }, "outputKey": "own" }]));
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [start, each] }), &json!({}));
    assert_eq!(outputs(ended.answer()), json!(["item-value-from-previous"]));
}

#[test]
fn a_single_failing_iteration_fails_the_map() {
    let each = map("@input.items", json!({}), json!([{ "type": "fail", "properties": {} }]));
    let passing = Passing::new();
    let ended = passing.run(json!({ "actions": [each] }), &json!({ "items": [1, 2, 3] }));
    assert_eq!(ended.fault(), ("call_failed".to_owned(), "each.0.0".to_owned()));
    assert_eq!(passing.values("fail").len(), 1);
}
