//! Faults that other workflow engines had, each with the issue that reported it: a loop here has none of them, whatever
//! the order in which its items end.

use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Request, Server};
use crate::common::{Place, Ran, ran, web};
use crate::run::workflows::{answer, foreach, steps};

/// A workflow whose actions `first` and `second` are answered by a server with what they were given.
struct Echoing {
    place: Place,
    server: Server,
    /// What calls of a held item wait for.
    gate: Gate,
}

impl Echoing {
    /// `held`: the calls that wait for the gate, by action and item. `failing`: the items whose first call of `first`
    /// fails.
    fn new(held: &'static [(&str, u64)], failing: &'static [u64]) -> Self {
        let gate = Gate::default();
        let (behind, failures) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
        let server = Server::reading(move |_, request| {
            let given = given(request);
            let action = request.path.trim_start_matches('/');
            let item = given["n"].as_u64().unwrap_or(u64::MAX);
            let mut answer = Answer::json(&json!({ "by": action, "given": given }));
            if action == "first" && failing.contains(&item) && failures.fetch_add(1, Ordering::SeqCst) < failing.len() {
                answer = answer.status(400);
            }
            if held.contains(&(action, item)) { answer.behind(&behind) } else { answer }
        });
        let place = Place::new();
        let action = |name: &str| {
            web(
                name,
                &format!("{}/{name}", server.url()),
                json!({ "http_method": "POST", "parameters": { "type": "object" } }),
            )
        };
        place.json("actions/all.json", &json!([action("first"), action("second")]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        Self { place, server, gate }
    }

    /// Runs a loop over the items 0, 1, 2; `meanwhile` happens while the held calls wait.
    fn run(&self, actions: &Value, meanwhile: impl Fn(&Server)) -> (Ran, Value) {
        steps(&self.place, actions.clone());
        self.place.json("input.json", &json!({ "items": [{ "n": 0, "own": true }, { "n": 1 }, { "n": 2 }] }));
        let args = ["run", "loop.json", "--run-id", "r", "--input-file", "input.json", "--output", "json"];
        let child = self.place.start(&args, &[]);
        meanwhile(&self.server);
        self.gate.open();
        let ran = ran(&child.wait_with_output().unwrap());
        let result = ran.json();
        (ran, result)
    }

    /// Runs the loop; the held calls wait until the step at this address has ended. The result.
    fn run_until(&self, actions: &Value, at: &str) -> Value {
        steps(&self.place, actions.clone());
        self.place.json("input.json", &json!({ "items": [{ "n": 0 }, { "n": 1 }, { "n": 2 }] }));
        let args = ["run", "loop.json", "--run-id", "r", "--input-file", "input.json", "--output", "ndjson"];
        let mut child = self.place.start(&args, &[]);
        let mut last = Value::Null;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            last = serde_json::from_str(&line.unwrap()).unwrap();
            if last["event"] == "step_ended" && last["at"] == at {
                self.gate.open();
            }
        }
        assert_eq!(child.wait().unwrap().code(), Some(1), "{last:#}");
        last
    }

    fn calls(&self, action: &str) -> Vec<u64> {
        let requests = self.server.requests();
        let of_action = requests.iter().filter(|request| request.path == format!("/{action}"));
        of_action.map(|request| given(request)["n"].as_u64().unwrap()).collect()
    }
}

fn given(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

fn step(kind: &str, properties: Value) -> Value {
    json!({ "type": kind, "properties": properties })
}

fn together(more: Value, actions: Value) -> Value {
    let settings =
        json!({ "max_concurrency": 3, "collect_results": true, "result_key": "all", "summary_key": "counts" });
    foreach("@input.items", crate::common::with(settings, more), actions)
}

/// What the items gave, by a member of it.
fn outputs(result: &Value, pointer: &str) -> Vec<Value> {
    let all = answer(result)["all"].as_array().unwrap();
    all.iter().map(|entry| entry["output"].pointer(pointer).cloned().unwrap_or_default()).collect()
}

/// Argo Workflows 7617: a retry appended the results of the loop to those from before.
#[test]
fn a_retry_does_not_double_the_results() {
    let flow = Echoing::new(&[], &[1]);
    let each = together(json!({}), json!([step("first", json!({ "n": "@one.n" }))]));
    let (ran, _) = flow.run(&json!([each]), |_| {});
    assert_eq!(ran.code, 1, "{ran:#?}");
    let ran = flow.place.call(&["resume", "r", "--retry-failed", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outputs(&ran.json(), "/given/n"), [0, 1, 2]);
    assert_eq!(answer(&ran.json())["counts"]["completed"], 3);
    let mut calls = flow.calls("first");
    calls.sort_unstable();
    assert_eq!(calls, [0, 1, 1, 2]);
}

/// Synapse 181: the name of the item stayed in the context after the loop.
#[test]
fn the_name_of_the_item_is_gone_after_the_loop() {
    let flow = Echoing::new(&[], &[]);
    let each = together(json!({}), json!([step("first", json!({ "n": "@one.n" }))]));
    let ask = |name: &str| json!({ "hasKey": name });
    let any = json!({ "or": [ask("one"), ask("item"), ask("__index"), ask("__count")] });
    let later = json!({ "type": "second", "filter": { "condition": any }, "properties": { "n": 9 } });
    let (ran, result) = flow.run(&json!([each, later]), |_| {});
    assert_eq!((ran.code, &result["steps"][1]["status"]), (0, &json!("skipped")), "{ran:#?}");
    let mut keys: Vec<&String> = answer(&result).as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["all", "counts", "first"]);
}

/// Elsa 1162: all items that ran beside each other got the value of the last one.
#[test]
fn each_item_gets_its_own_value_when_all_run_at_the_same_time() {
    let flow = Echoing::new(&[("first", 0), ("first", 1), ("first", 2)], &[]);
    let actions =
        json!([step("first", json!({ "n": "@one.n" })), step("second", json!({ "n": "@one.n", "index": "@__index" }))]);
    let (ran, result) = flow.run(&json!([together(json!({}), actions)]), |server| server.wait_for(3));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outputs(&result, "/given/n"), [0, 1, 2]);
    assert_eq!(outputs(&result, "/given/index"), [0, 1, 2]);
}

/// Dify 39977: what parallel iterations gave was gathered as `[null]`.
#[test]
fn what_is_collected_is_there_when_items_end_in_another_order() {
    let flow = Echoing::new(&[("first", 0), ("first", 1)], &[]);
    let actions = json!([{ "type": "first", "properties": { "n": "@one.n" }, "outputKey": "k" }]);
    let each = together(json!({ "collect": "@k.given.n" }), actions);
    let (ran, result) = flow.run(&json!([each]), |server| server.wait_for(3));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outputs(&result, ""), [0, 1, 2]);
}

/// SonataFlow (kogito-runtimes) 4051: parallel branches read the data of each other.
#[test]
fn no_item_sees_what_another_one_wrote_although_both_run() {
    // Item 0 writes `k`; items 1 and 2 begin their second step after that.
    let flow = Echoing::new(&[("first", 1), ("first", 2)], &[]);
    let actions = json!([
        { "type": "first", "properties": { "n": "@one.n" } },
        { "type": "second", "filter": { "condition": { "hasKey": "one.own" } }, "properties": { "n": "@one.n" }, "outputKey": "k" },
        { "type": "second", "filter": { "condition": { "hasKey": "k" } }, "properties": { "n": "@one.n" },
          "onFalse": { "type": "first", "properties": { "n": "@one.n", "alone": true } } },
    ]);
    let is_written = |requests: &[Request]| requests.iter().filter(|request| request.path == "/second").count() == 2;
    let (ran, result) = flow.run(&json!([together(json!({}), actions)]), |server| server.wait_until(is_written));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outputs(&result, "/given/alone"), [json!(null), json!(true), json!(true)]);
}

/// workflow-core 189: all items did their first step before one did its second.
#[test]
fn an_item_does_its_second_step_while_another_is_in_its_first() {
    let flow = Echoing::new(&[("first", 0)], &[]);
    let actions = json!([step("first", json!({ "n": "@one.n" })), step("second", json!({ "n": "@one.n" }))]);
    let is_ahead = |requests: &[Request]| requests.iter().filter(|request| request.path == "/second").count() == 2;
    let (ran, result) = flow.run(&json!([together(json!({}), actions)]), |server| server.wait_until(is_ahead));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(flow.calls("second").last(), Some(&0), "item 0 was held in its first step until then");
    assert_eq!(outputs(&result, "/given/n"), [0, 1, 2]);
}

/// GitHub Actions (`outputs` of a matrix): the output was that of whichever job ended last.
#[test]
fn a_key_has_the_value_of_the_last_item_in_order_and_not_in_time() {
    let flow = Echoing::new(&[("first", 0), ("first", 1)], &[]);
    let actions = json!([{ "type": "first", "properties": { "n": "@one.n" }, "outputKey": "k" }]);
    let is_last_done = |requests: &[Request]| requests.len() == 3;
    let (ran, result) = flow.run(&json!([together(json!({}), actions)]), |server| server.wait_until(is_last_done));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(answer(&result)["k"]["given"]["n"], 2);
}

/// Step Functions (inline `Map`): one failing iteration stopped the others, and their results were lost.
#[test]
fn a_success_is_kept_when_another_item_fails() {
    // Item 0 is under way when item 1 has failed: its call ends, and its result stays.
    let flow = Echoing::new(&[("first", 0)], &[1]);
    let each = together(json!({ "max_concurrency": 2 }), json!([step("first", json!({ "n": "@one.n" }))]));
    let result = flow.run_until(&json!([each]), "each.1.0");
    assert_eq!(result["error"]["step"], json!("each.1.0"), "{result:#}");
    let counts = &result["steps"][0]["items"];
    assert_eq!((&counts["completed"], &counts["failed"], &counts["cancelled"]), (&json!(1), &json!(1), &json!(1)));
    let ran = flow.place.call(&["resume", "r", "--retry-failed", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(outputs(&ran.json(), "/given/n"), [0, 1, 2]);
    assert_eq!(flow.calls("first").iter().filter(|item| **item == 0).count(), 1, "item 0 had its result");
}
