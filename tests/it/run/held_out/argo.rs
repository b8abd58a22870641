//! Examples of Argo Workflows (github.com/argoproj/argo-workflows, `examples/loops*.yaml`, `dag-disable-failFast.yaml`,
//! `retry-*.yaml`; Apache-2.0): which steps run, how often and with which values.

use serde_json::{Value, json};

use super::{Passing, map, outputs, pass};

fn print(message: &str) -> Value {
    json!({ "type": "pass", "properties": { "value": message } })
}

#[test]
fn loops_runs_a_step_for_each_of_two_texts() {
    let passing = Passing::new();
    let each = map("@input.items", json!({ "max_concurrency": 2 }), json!([pass(json!("{{one}}"))]));
    let ended = passing
        .run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": ["hello world", "goodbye world"] }));
    assert_eq!(outputs(ended.answer()), json!(["hello world", "goodbye world"]));
}

#[test]
fn loops_maps_reads_the_members_of_each_item() {
    let item = |image: &str, tag: &str| json!({ "image": image, "tag": tag });
    let items = [item("debian", "9.1"), item("debian", "8.9"), item("alpine", "3.6"), item("ubuntu", "17.10")];
    let each = map("@input.items", json!({ "max_concurrency": 4 }), json!([pass(json!("{{one.image}}:{{one.tag}}"))]));
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "items": items }));
    assert_eq!(outputs(ended.answer()), json!(["debian:9.1", "debian:8.9", "alpine:3.6", "ubuntu:17.10"]));
}

#[test]
fn loops_param_argument_takes_the_list_from_json_text() {
    let list = r#"[{"image": "debian", "tag": "9.1"}, {"image": "alpine", "tag": "3.6"}]"#;
    let each = map("@input.os.list", json!({}), json!([pass(json!("@one.image"))]));
    let text = format!(r#"{{"list": {list}}}"#);
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [each] }), &json!({ "os": text }));
    assert_eq!(outputs(ended.answer()), json!(["debian", "alpine"]));
}

#[test]
fn loops_param_result_runs_over_the_list_that_a_step_gave() {
    let numbers: Vec<u32> = (20..31).collect();
    let generate = json!({ "type": "pass", "properties": { "value": numbers }, "outputKey": "generated" });
    let each = map("@generated", json!({ "max_concurrency": 11 }), json!([pass(json!("@one"))]));
    let ended = Passing::new().run(json!({ "output": "@all", "actions": [generate, each] }), &json!({}));
    assert_eq!(outputs(ended.answer()), json!(numbers));
}

#[test]
fn loops_dag_runs_a_before_all_items_and_c_after_them() {
    let passing = Passing::new();
    let each = map("@input.items", json!({ "max_concurrency": 3 }), json!([pass(json!("@one"))]));
    passing
        .run(json!({ "actions": [print("A"), each, print("C")] }), &json!({ "items": ["foo", "bar", "baz"] }))
        .answer();
    let values = passing.values("pass");
    assert_eq!((&values[0], &values[4], values.len()), (&json!("A"), &json!("C"), 5));
}

/// Items with an exit code, one after the other: a code that is not 0 fails.
fn exits(more: Value) -> (Passing, Value) {
    let is_bad = json!({ "condition": { "notEqual": ["@one.exit_code", 0] } });
    let step = json!({ "type": "fail", "filter": is_bad, "properties": { "value": "@one.message" },
        "onFalse": pass(json!("@one.message")) });
    (Passing::new(), map("@input.items", more, json!([step])))
}

fn codes(codes: &[u32]) -> Value {
    let item = |code: &u32| json!({ "exit_code": code, "message": format!("code {code}") });
    json!({ "items": codes.iter().map(item).collect::<Vec<_>>() })
}

#[test]
fn loops_arbitrary_sequential_steps_stop_at_the_first_that_fails() {
    let (passing, each) = exits(json!({}));
    let ended = passing.run(json!({ "actions": [each] }), &codes(&[0, 0, 0, 1, 0, 0]));
    assert_eq!(ended.fault().1, "each.3.0");
    let counts = ended.counts();
    assert_eq!((&counts["completed"], &counts["failed"], &counts["cancelled"]), (&json!(3), &json!(1), &json!(2)));
    assert_eq!(passing.values("pass").len(), 3);
}

#[test]
fn dag_disable_fail_fast_lets_the_other_branch_run_to_its_end() {
    let (passing, each) = exits(json!({ "failure_strategy": "continue_on_error", "max_concurrency": 2 }));
    let ended = passing.run(json!({ "output": "@counts", "actions": [each, print("D")] }), &codes(&[1, 0, 0]));
    // There the workflow fails in the end. Here `counts` says so, and what follows decides.
    let counts = ended.answer();
    assert_eq!((&counts["completed"], &counts["failed"]), (&json!(2), &json!(1)));
    assert_eq!(passing.values("pass").last(), Some(&json!("D")));
}

#[test]
fn retry_strategy_limit_makes_so_many_more_attempts_and_then_fails() {
    let passing = Passing::new();
    let retry = json!({ "attempts": 4, "base_ms": 1, "max_ms": 1 });
    let step = json!({ "id": "c", "type": "fail", "properties": { "value": "intentional failure" }, "retry": retry });
    let ended = passing.run(json!({ "actions": [print("A"), step, print("never")] }), &json!({}));
    assert_eq!(ended.fault(), ("call_failed".to_owned(), "c".to_owned()));
    assert_eq!((passing.values("fail").len(), passing.values("pass").len()), (4, 1));
}

#[test]
fn continue_on_fail_runs_what_follows() {
    let (passing, each) = exits(json!({ "failure_strategy": "continue_on_error" }));
    passing.run(json!({ "actions": [each, print("after")] }), &codes(&[1])).answer();
    assert_eq!(passing.values("pass"), ["after"]);
}
