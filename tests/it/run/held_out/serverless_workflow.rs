//! Scenarios of the conformance kit of the Serverless Workflow Specification 1.0 (github.com/serverlessworkflow/specification,
//! `ctk/features`: do, flow, for, switch, data-flow; Apache-2.0).

use serde_json::{Value, json};

use super::{Passing, map, outputs, pass};

/// A step that sets `colors` to a list.
fn set(colors: Value, filter: Option<Value>) -> Value {
    let mut step = json!({ "type": "pass", "properties": { "value": colors }, "outputKey": "colors" });
    if let Some(condition) = filter {
        step["filter"] = json!({ "condition": condition });
    }
    step
}

#[test]
fn implicit_sequence_flow_runs_red_then_green_then_blue() {
    let passing = Passing::new();
    let step = |color: &str| json!({ "type": "pass", "properties": { "value": color }, "outputKey": color });
    let output = json!({ "colors": ["@red", "@green", "@blue"] });
    let steps = json!([step("red"), step("green"), step("blue")]);
    let ended = passing.run(json!({ "output": output, "actions": steps }), &json!({}));
    assert_eq!(*ended.answer(), json!({ "colors": ["red", "green", "blue"] }));
    assert_eq!(passing.values("pass"), ["red", "green", "blue"]);
}

#[test]
fn task_with_sequential_sub_tasks_runs_them_in_order() {
    // A composite task is a loop over one item.
    let step = |color: &str| json!({ "type": "pass", "properties": { "value": color }, "outputKey": color });
    let each = map("@input.once", json!({}), json!([step("red"), step("green"), step("blue")]));
    let output = json!({ "colors": ["@red", "@green", "@blue"] });
    let ended = Passing::new().run(json!({ "output": output, "actions": [each] }), &json!({ "once": [1] }));
    assert_eq!(*ended.answer(), json!({ "colors": ["red", "green", "blue"] }));
}

#[test]
fn for_task_names_the_item_and_its_index() {
    let value = json!({ "color": "@one", "index": "@__index" });
    let each = map("@input.colors", json!({}), json!([pass(value)]));
    let ended = Passing::new()
        .run(json!({ "output": "@all", "actions": [each] }), &json!({ "colors": ["red", "green", "blue"] }));
    let given = |index: usize, color: &str| json!({ "color": color, "index": index });
    assert_eq!(outputs(ended.answer()), json!([given(0, "red"), given(1, "green"), given(2, "blue")]));
}

#[test]
fn differs_for_task_does_not_hand_the_output_of_one_item_to_the_next() {
    // There each iteration reads what the one before wrote (`.processed.colors + [ $color ]`). Here no item sees the keys of
    // another one, so that the number of items that run at a time changes nothing.
    let first = json!({ "type": "pass", "filter": { "condition": { "hasKey": "passed" } }, "properties": { "value": "seen" },
        "outputKey": "seen", "onFalse": pass(json!("@one")) });
    let each = map("@input.colors", json!({}), json!([first]));
    let ended =
        Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "colors": ["red", "green"] }));
    assert_eq!(outputs(ended.answer()), json!(["red", "green"]));
}

/// A switch over three colors: each step has its condition.
fn switch() -> Vec<Value> {
    let case = |color: &str| set(json!([color]), Some(json!({ "equal": ["@input.color", color] })));
    vec![case("red"), case("green"), case("blue")]
}

#[test]
fn switch_task_with_matching_case_runs_that_one() {
    let passing = Passing::new();
    let ended =
        passing.run(json!({ "output": { "colors": "@colors" }, "actions": switch() }), &json!({ "color": "red" }));
    assert_eq!(*ended.answer(), json!({ "colors": ["red"] }));
    assert_eq!(passing.values("pass").len(), 1);
}

#[test]
fn switch_task_with_implicit_default_case_runs_none_and_keeps_the_input() {
    let passing = Passing::new();
    let ended = passing
        .run(json!({ "output": { "color": "@input.color" }, "actions": switch() }), &json!({ "color": "yellow" }));
    assert_eq!(*ended.answer(), json!({ "color": "yellow" }));
    assert!(passing.values("pass").is_empty());
}

#[test]
fn switch_task_with_explicit_default_case_runs_that_one() {
    let mut step = set(json!(["@input.color"]), None);
    for case in switch().into_iter().rev() {
        let mut case = case;
        case["onFalse"] = step;
        step = case;
    }
    let ended = Passing::new()
        .run(json!({ "output": { "colors": "@colors" }, "actions": [step] }), &json!({ "color": "yellow" }));
    assert_eq!(*ended.answer(), json!({ "colors": ["yellow"] }));
}

#[test]
fn input_filtering_gives_a_task_the_subject_only() {
    let input = json!({ "user": { "claims": { "subject": "6AsnRgGEB0q2O7ux9JXFAw" } } });
    let step = json!({ "type": "pass", "properties": { "value": { "playerId": "@input.user.claims.subject" } }, "outputKey": "player" });
    let ended = Passing::new().run(json!({ "output": "@player", "actions": [step] }), &input);
    assert_eq!(*ended.answer(), json!({ "playerId": "6AsnRgGEB0q2O7ux9JXFAw" }));
}

#[test]
fn output_filtering_gives_the_id_of_the_pet_only() {
    let step = json!({ "type": "pass", "properties": { "value": { "id": "@input.petId", "name": "Rex" } }, "outputKey": "pet" });
    let ended = Passing::new().run(json!({ "output": "@pet.id", "actions": [step] }), &json!({ "petId": 1 }));
    assert_eq!(*ended.answer(), json!(1));
}

#[test]
fn a_non_object_output_can_be_used_by_the_next_task() {
    let first = json!({ "type": "pass", "properties": { "value": 1 }, "outputKey": "first" });
    let second = json!({ "type": "pass", "properties": { "value": { "ids": ["@first", 2] } }, "outputKey": "second" });
    let ended = Passing::new().run(json!({ "output": "@second", "actions": [first, second] }), &json!({}));
    assert_eq!(*ended.answer(), json!({ "ids": [1, 2] }));
}
