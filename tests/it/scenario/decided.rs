//! Decisions about calls of unknown outcome and about events, and what is reported of a scenario that can't use one.

use serde_json::{Value, json};

use super::{folder, loopctl, path, stderr};

fn workflow(name: &str, definition: Value) -> Value {
    json!({"name": name, "description": "Does it.", "definition": definition})
}

fn action(name: &str, more: Value) -> Value {
    let mut action = json!({"action_name": name, "description": "Does it.", "kind": "http", "http_method": "POST",
        "url": "https://bank.example.com/", "parameters": {"type": "object"}});
    action.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    action
}

/// A folder with a workflow and a loop that pay, and these files. The outcome of a payment is asked when its answer is lost.
fn payments(more: &[(&str, Value)]) -> tempfile::TempDir {
    let pays = json!({"type": "loop", "name": "pays", "properties": {"mode": "react", "objective": "Pay.",
        "tools": [{"type": "action", "name": "pay"}]}});
    let mut files = vec![
        ("actions/pay.json", action("pay", json!({"on_uncertain": "pause"}))),
        ("flow.json", workflow("flow", json!({"actions": [{"id": "p", "type": "pay"}], "output": "@pay"}))),
        ("pays.json", pays),
    ];
    files.extend(more.iter().cloned());
    folder(&files)
}

/// A file of scenarios whose first payment loses its answer.
fn lost(document: &str, scenarios: &[Value]) -> Value {
    let of_loop = document == "pays.json";
    let replies = json!([{"thought": "a", "action": "pay", "action_input": {}}, {"thought": "b", "answer": "done"}]);
    let scenarios = scenarios.iter().enumerate().map(|(number, scenario)| {
        let mut whole =
            json!({"name": format!("scenario {number}"), "faults": [{"action": "pay", "nth": 1, "fails": "timeout"}]});
        let whole_members = whole.as_object_mut().unwrap();
        whole_members.extend(of_loop.then(|| ("replies".to_owned(), replies.clone())));
        whole_members.extend(scenario.as_object().cloned().unwrap());
        whole
    });
    json!({"document": document, "tools": {"pay": [{"id": 1}]}, "scenarios": scenarios.collect::<Vec<_>>()})
}

#[test]
fn a_call_whose_answer_a_fault_loses_is_decided_by_the_scenario() {
    let asked = json!([{"kind": "uncertain"}]);
    let happened = json!({"happened": {"id": 5}});
    // These are played alike after a crash, too.
    let alike = [
        json!({"decisions": [happened], "expect": {"status": "completed", "answer": {"id": 5}, "pauses": asked}}),
        json!({"decisions": [{"at": "p", "happened": {"id": 5}}], "expect": {"status": "completed", "answer": {"id": 5}}}),
        json!({"decisions": [{"fail": "no"}], "expect": {"status": "failed", "steps": {"p": {"error": {"code": "call_failed"}}}}}),
        json!({"expect": {"status": "paused", "termination": "uncertain", "pauses": asked}}),
    ];
    let again = [
        json!({"decisions": [{"for": "pay", "retry": true}], "expect": {"status": "completed", "answer": {"id": 1}}}),
        json!({"decisions": [{"retry": true}], "expect": {"status": "completed", "once": ["pay"]}}),
    ];
    let of_loop = [
        json!({"decisions": [happened], "expect": {"status": "completed", "model_reads": ["\"id\":5"], "pauses": asked}}),
        json!({"decisions": [{"for": "pay", "retry": true}], "expect": {"status": "completed", "model_reads": ["\"id\":1"]}}),
        json!({"expect": {"status": "paused", "termination": "uncertain"}}),
    ];
    let folder = payments(&[
        ("flow.test.json", lost("flow.json", &alike)),
        ("again.test.json", lost("flow.json", &again)),
        ("pays.test.json", lost("pays.json", &of_loop)),
    ]);
    let tested = loopctl(&["test", &path(&folder)]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    let tested = loopctl(&["test", &format!("{}/flow.test.json", path(&folder)), "--crash"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
}

#[test]
fn a_decision_about_a_call_of_unknown_outcome_that_no_call_waits_for_is_reported() {
    let twice =
        json!({"decisions": [{"happened": {"id": 5}}, {"happened": {"id": 6}}], "expect": {"status": "completed"}});
    let other = json!({"faults": [], "decisions": [{"happened": {"id": 5}}], "expect": {"status": "completed"}});
    let folder = payments(&[("flow.test.json", lost("flow.json", &[twice]))]);
    let tested = loopctl(&["test", &path(&folder)]);
    let text = stderr(&tested);
    assert_eq!(tested.status.code(), Some(1), "{text}");
    assert!(text.contains("this decision is left over: no call waits for it whose outcome is unknown"), "{text}");

    // Without faults it may be for a play with crashes.
    let mut other = lost("flow.json", &[other]);
    other["scenarios"][0].as_object_mut().unwrap().remove("faults");
    let folder = payments(&[("flow.test.json", other)]);
    let tested = loopctl(&["test", &path(&folder)]);
    let text = stderr(&tested);
    assert_eq!(tested.status.code(), Some(0), "{text}");
    assert!(text.contains("decision 1 is not used without a crash"), "{text}");
    let tested = loopctl(&["test", &path(&folder), "--crash"]);
    let text = stderr(&tested);
    assert!(text.contains("2 ask whether pay happened") && !text.contains("not used"), "{text}");
}

#[test]
fn an_event_is_denied_expires_or_comes_by_the_next_decision_and_goes_to_the_step_that_it_fits() {
    let event =
        |id: &str| json!({"id": id, "type": "wait_for_event", "properties": {"event": "paid", "ttl_seconds": 7200}});
    let asks = json!({"id": "ok", "type": "PbotApproval", "properties": {"comment": "Close?"}});
    let one = json!([
        {"name": "denied", "decisions": [{"deny": "no"}],
         "expect": {"status": "failed", "steps": {"e": {"error": {"code": "rejected"}}}}},
        {"name": "late", "decisions": [{"expires": true}],
         "expect": {"status": "failed", "steps": {"e": {"error": {"code": "event_expired"}}}}},
        {"name": "late by itself", "expect": {"status": "failed", "steps": {"e": {"error": {"code": "event_expired"}}}}},
        {"name": "comes", "decisions": [{"answer": {"n": 1}}, {"approve": true}], "expect": {"status": "completed"}},
        {"name": "comes, and is refused", "decisions": [{"answer": {"n": 1}}, {"deny": "no"}],
         "expect": {"status": "failed", "steps": {"ok": {"error": {"code": "rejected"}}}}},
    ]);
    let each = json!({"id": "l", "type": "loop", "properties": {"mode": "foreach", "items_path": "@input.xs", "item_variable_name": "x",
        "max_concurrency": 2, "collect_results": true, "result_key": "r", "actions_to_execute": [
        {"id": "e", "type": "wait_for_event", "outputKey": "v", "properties": {"event": "paid", "match": {"k": "@x"}}}]}});
    let several = json!([{"name": "each its own", "input": {"xs": [1, 2]},
        "decisions": [{"answer": {"k": 2, "z": "a"}}, {"answer": {"k": 1, "z": "b"}}],
        "expect": {"status": "completed", "answer": {"r": [{"output": {"k": 1, "z": "b"}}, {"output": {"k": 2, "z": "a"}}]}}}]);
    let input = json!({"type": "object", "properties": {"xs": {"type": "array"}}, "required": ["xs"]});
    let mut of_items = workflow("several", json!({"actions": [each]}));
    of_items["input"] = input;
    let folder = folder(&[
        ("one.json", workflow("one", json!({"actions": [event("e"), asks]}))),
        ("one.test.json", json!({"document": "one.json", "scenarios": one})),
        ("several.json", of_items),
        ("several.test.json", json!({"document": "several.json", "scenarios": several})),
    ]);
    for more in [&[] as &[&str], &["--crash"]] {
        let folder = path(&folder);
        let tested = loopctl(&[&["test", folder.as_str()][..], more].concat());
        assert_eq!(tested.status.code(), Some(0), "{more:?}: {}", stderr(&tested));
    }
}

#[test]
fn the_status_of_a_run_that_is_not_waited_for_is_played_alike_after_a_crash() {
    let starts = json!({"actions": [{"type": "workflow", "name": "later", "wait": false, "outputKey": "later"}, {"type": "pay"}],
        "output": {"other": "@later.status"}});
    let folder = payments(&[
        ("workflows/later.json", workflow("later", json!({"actions": [{"type": "pay"}]}))),
        ("starts.json", workflow("starts", starts)),
        (
            "starts.test.json",
            json!({"document": "starts.json", "tools": {"pay": [{"id": 1}]}, "scenarios": [
                {"name": "started", "expect": {"status": "completed", "answer": {"other": "running"}}}]}),
        ),
    ]);
    let tested = loopctl(&["test", &path(&folder), "--crash"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
}

#[test]
fn several_calls_in_a_reply_are_reported_where_the_dialect_has_one() {
    let call = json!({"action": "pay", "action_input": {}});
    let replies = json!([{"thought": "a", "calls": [call, call]}, {"thought": "b", "answer": "done"}]);
    let scenario = |name: &str| {
        json!({"document": name, "tools": {"pay": [{"id": 1}]},
            "scenarios": [{"name": "two", "replies": replies, "expect": {"status": "completed"}}]})
    };
    let native = json!({"type": "loop", "name": "native", "properties": {"mode": "react", "objective": "Pay.",
        "dialect": "tool_calls", "tools": [{"type": "action", "name": "pay"}]}});
    let folder = payments(&[
        ("pays.test.json", scenario("pays.json")),
        ("native.json", native),
        ("native.test.json", scenario("native.json")),
    ]);
    let at = |name: &str| format!("{}/{name}", path(&folder));
    let checked = loopctl(&["check", &at("pays.test.json")]);
    let text = stderr(&checked) + &super::stdout(&checked);
    assert!(text.contains("warning[L027]: a reply in the dialect `json` is one call"), "{text}");
    let checked = loopctl(&["check", &at("native.test.json")]);
    let text = stderr(&checked) + &super::stdout(&checked);
    assert!(!text.contains("L027"), "{text}");
}
