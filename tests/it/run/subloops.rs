//! Loops that are called as tools: what they answer, fail with, ask, cost, and how they end.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, Ran, complete, observed, think, with};

/// A loop `loop.json` that calls the loop `helper`, which may call the tools `look` and `act`.
pub fn place() -> Place {
    let place = Place::new();
    parent(&place, json!({}), json!({}));
    child(&place, json!({}), json!({}));
    place
}

pub fn parent(place: &Place, properties: Value, tool: Value) {
    let tool = with(json!({ "type": "loop", "name": "helper" }), tool);
    let properties = with(json!({ "mode": "react", "objective": "Get it done.", "tools": [tool] }), properties);
    place.json("loop.json", &json!({ "type": "loop", "name": "boss", "properties": properties }));
}

pub fn child(place: &Place, properties: Value, tool: Value) {
    let web = |name: &str, method: &str| {
        json!({ "action_name": name, "kind": "http", "description": "Does.", "http_method": method,
            "url": format!("https://tools.example.com/{name}"),
            "parameters": { "type": "object", "properties": { "n": {} } } })
    };
    let act = with(json!({ "type": "action", "name": "act" }), tool);
    let properties = with(
        json!({ "mode": "react", "objective": "Help with {{input.part}}.",
            "tools": [{ "type": "action", "name": "look" }, act] }),
        properties,
    );
    place.json(
        "loops/helper.json",
        &json!({ "type": "loop", "name": "helper", "description": "Helps with a part.",
            "actions": [web("look", "GET"), web("act", "POST")], "properties": properties }),
    );
}

pub fn script(place: &Place, boss: &[Value], helper: &[Value]) {
    place.json(
        "script.json",
        &json!({ "replies": boss, "loops": { "helper": helper },
            "tools": { "look": [{ "seen": 1 }], "act": [{ "done": true }] } }),
    );
}

pub fn call() -> Value {
    think("helper", json!({ "part": "p1" }))
}

pub fn asks() -> Value {
    think("__pause_for_human__", json!({ "question": "Which one?", "options": ["a", "b"] }))
}

pub fn resume(place: &Place, how: &[&str]) -> (Ran, Value) {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    let ran = place.call(&args);
    let value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({ "stderr": ran.stderr }));
    (ran, value)
}

pub fn run(place: &Place) -> (Ran, Value) {
    place.run(&["--run-id", "r"])
}

pub fn trace(place: &Place, run: &str) -> Value {
    place.call(&["trace", run, "--format", "json"]).json()
}

pub fn listed(place: &Place, more: &[&str]) -> Vec<String> {
    let mut args = vec!["runs", "--output", "json"];
    args.extend(more);
    let runs = place.call(&args).json();
    runs.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_answer_of_the_called_loop_is_the_observation() {
    let place = place();
    script(
        &place,
        &[call(), complete(json!("all done"))],
        &[think("look", json!({ "n": 1 })), complete(json!({ "found": 7 }))],
    );
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], json!({ "found": 7 }));
    assert_eq!(result["trace"][0]["run_id"], "r.1.0");
    assert_eq!(result["result"]["answer"], "all done");
    let helper = trace(&place, "r.1.0");
    assert_eq!(helper["status"], "completed");
    assert_eq!(helper["trace"][0]["observation"], json!({ "seen": 1 }));
    let sum = |result: &Value| result["usage"]["input_tokens"].as_u64().unwrap();
    assert!(sum(&result) > sum(&helper), "the tokens of the helper count in the run that called it");
    assert_eq!(listed(&place, &[]), ["r"]);
    assert_eq!(listed(&place, &["--called"]), ["r.1.0", "r"]);
}

#[test]
fn a_called_loop_that_fails_is_an_observation_with_the_reason() {
    let place = place();
    child(&place, json!({ "max_iterations": 1 }), json!({}));
    script(&place, &[call(), complete(json!("done without"))], &[think("look", json!({}))]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(observed(&result["trace"][0]), "Error: the loop `helper` ended: max_iterations");
    assert_eq!(result["trace"][0]["success"], false);
    assert!(result["trace"][0]["error"]["detail"].as_str().unwrap().contains("run r.1.0"), "{result:#}");
}

#[test]
fn an_input_that_the_called_loop_does_not_take_is_not_run() {
    let place = place();
    script(&place, &[think("helper", json!({ "wrong": 1 })), complete(json!("x"))], &[]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(observed(&result["trace"][0]).contains("part"), "{result:#}");
    assert_eq!(listed(&place, &["--called"]), ["r"]);
}

#[test]
fn a_question_of_the_called_loop_pauses_both_and_its_answer_goes_on_with_both() {
    let place = place();
    script(
        &place,
        &[call(), complete(json!("all done"))],
        &[think("act", json!({ "n": 1 })), asks(), complete(json!("helped"))],
    );
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(result["pause"]["kind"], "human");
    assert_eq!(result["pause"]["question"], "Which one?");
    assert_eq!(result["pause"]["options"], json!(["a", "b"]));
    assert_eq!(result["pause"]["run_id"], "r.1.0");
    assert_eq!(resume(&place, &["--approve"]).0.code, 2, "it asks no approval");
    assert_eq!(resume(&place, &[]).0.code, 3, "without a decision it stays as it is");
    let direct = place.call(&["resume", "r.1.0", "--answer", "a", "--script", "script.json"]);
    assert_eq!(direct.code, 2, "{direct:#?}");
    assert!(direct.stderr.contains("called by run r"), "{}", direct.stderr);
    let (ran, result) = resume(&place, &["--answer", "b"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "helped");
    let helper = trace(&place, "r.1.0");
    assert_eq!(helper["trace"][1]["observation"], "b");
    assert_eq!(helper["metadata"]["tool_calls_made"], 1, "what was done before the pause is not done again");
}

#[test]
fn a_call_that_the_called_loop_wants_approved_is_shown_and_only_that_one_is_made() {
    let place = place();
    child(&place, json!({}), json!({ "requires_approval": true }));
    script(
        &place,
        &[call(), complete(json!("done"))],
        &[think("act", json!({ "n": 1 })), think("act", json!({ "n": 2 })), complete(json!("helped"))],
    );
    let (_, result) = run(&place);
    let asked = &result["pause"]["call"];
    assert_eq!(
        (&asked["id"], &asked["action"], &asked["action_input"]),
        (&json!("1.0"), &json!("act"), &json!({ "n": 1 }))
    );
    let (ran, second) = resume(&place, &["--approve", "--pause", "1"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(second["pause"]["call"]["action_input"], json!({ "n": 2 }), "the yes was for one call");
    assert_eq!(resume(&place, &["--approve", "--pause", "1"]).0.code, 2, "that pause is over");
    let (ran, result) = resume(&place, &["--edit", r#"{"n":3}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let helper = trace(&place, "r.1.0");
    assert_eq!(helper["trace"][0]["action_input"], json!({ "n": 1 }));
    assert_eq!(helper["trace"][1]["action_input"], json!({ "n": 3 }));
    assert_eq!(result["trace"][0]["observation"], "helped");
}

#[test]
fn an_edit_that_the_tool_of_the_called_loop_does_not_take_is_refused_before_anything_is_written() {
    let place = place();
    child(&place, json!({}), json!({ "requires_approval": true }));
    script(&place, &[call(), complete(json!("done"))], &[think("act", json!({})), complete(json!("helped"))]);
    assert_eq!(run(&place).0.code, 3);
    let (ran, _) = resume(&place, &["--edit", "[]"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let (ran, _) = resume(&place, &["--deny", "--reason", "too dear"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(observed(&trace(&place, "r.1.0")["trace"][0]).contains("too dear"));
}

#[test]
fn cancelling_the_run_that_called_ends_the_called_one_too() {
    let place = place();
    script(&place, &[call()], &[asks()]);
    assert_eq!(run(&place).0.code, 3);
    assert_eq!(place.call(&["cancel", "r"]).code, 0);
    assert_eq!(trace(&place, "r")["status"], "cancelled");
    assert_eq!(trace(&place, "r.1.0")["status"], "cancelled");
}

#[test]
fn a_called_run_that_was_cancelled_by_itself_is_a_failed_call() {
    let place = place();
    script(&place, &[call(), complete(json!("without"))], &[asks()]);
    assert_eq!(run(&place).0.code, 3);
    assert_eq!(place.call(&["cancel", "r.1.0"]).code, 0);
    let (ran, result) = resume(&place, &["--answer", "a"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(observed(&result["trace"][0]), "Error: the loop `helper` ended: cancelled");
}

#[test]
fn the_time_of_the_run_bounds_the_called_one_which_ends_with_it() {
    let place = place();
    parent(&place, json!({ "timeout_ms": 1_500 }), json!({}));
    script(&place, &[call()], &[json!({ "delay_ms": 60_000, "text": "late" })]);
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("timeout")), "{ran:#?}");
    assert!(["failed", "cancelled"].contains(&trace(&place, "r.1.0")["status"].as_str().unwrap()));
}

#[test]
fn the_default_deadline_of_tools_does_not_cut_a_called_loop_and_its_own_does() {
    let place = place();
    parent(&place, json!({ "tool_timeout_ms": 1 }), json!({}));
    let slow = |delay_ms: u64| {
        let reply = json!({ "delay_ms": delay_ms, "text": complete(json!("slow")) });
        script(&place, &[call(), complete(json!("done"))], std::slice::from_ref(&reply));
    };
    slow(60);
    assert_eq!(run(&place).1["trace"][0]["observation"], "slow");
    slow(600_000);
    parent(&place, json!({}), json!({ "timeout_ms": 20 }));
    let (_, result) = place.run(&["--run-id", "r2"]);
    assert_eq!(observed(&result["trace"][0]), "Error: the loop `helper` ended: timeout");
}

#[test]
fn the_called_loop_spends_no_more_than_the_run_has_left() {
    let place = place();
    parent(&place, json!({ "budget": { "tokens": 100 } }), json!({}));
    let said = |value: Value| json!({ "text": value, "usage": { "input": 20, "output": 10 } });
    let looks: Vec<Value> = (0..9).map(|n| said(think("look", json!({ "n": n })))).collect();
    script(&place, &[said(call()), complete(json!("never"))], &looks);
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("budget")), "{ran:#?}");
    let used = result["usage"]["input_tokens"].as_u64().unwrap() + result["usage"]["output_tokens"].as_u64().unwrap();
    assert!((100..130).contains(&used), "{used}: over it by one call at most");
    assert_eq!(trace(&place, "r.1.0")["termination"], "budget");
}

#[test]
fn the_called_loop_costs_what_its_own_model_does() {
    let place = place();
    place.json(
        "loopctl.json",
        &json!({ "model": "cheap", "models": {
            "cheap": { "provider": "openai", "price": { "input": 1.0, "output": 1.0 } },
            "dear": { "provider": "openai", "price": { "input": 100.0, "output": 100.0 } } } }),
    );
    child(&place, json!({ "model": "dear" }), json!({}));
    let said = |value: Value| json!({ "text": value, "usage": { "input": 500_000, "output": 500_000 } });
    script(&place, &[said(call()), said(complete(json!("done")))], &[said(complete(json!("helped")))]);
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["usage"]["cost_usd"], json!(102.0));
    assert_eq!(result["usage"]["input_tokens"], 1_500_000);
}

#[test]
fn tools_of_the_run_that_called_are_not_those_of_the_called_one() {
    let place = place();
    let own = json!({ "type": "action", "name": "secret_tool" });
    place.json(
        "actions/more.json",
        &json!([{ "action_name": "secret_tool", "kind": "http", "description": "Does.", "http_method": "GET",
            "url": "https://tools.example.com/x" }]),
    );
    parent(&place, json!({ "tools": [{ "type": "loop", "name": "helper" }, own] }), json!({}));
    script(&place, &[call(), complete(json!("done"))], &[think("secret_tool", json!({})), complete(json!("helped"))]);
    assert_eq!(run(&place).0.code, 0);
    let helper = trace(&place, "r.1.0");
    assert_eq!(helper["trace"][0]["success"], false);
    assert_eq!(helper["metadata"]["tool_calls_made"], 0);
}

#[test]
fn text_that_looks_like_a_template_goes_through_two_loops_as_it_is() {
    let place = place();
    let nasty = "{{input.part}} @input.part orgconfig:key";
    script(
        &place,
        &[think("helper", json!({ "part": nasty })), complete(json!("done"))],
        &[think("look", json!({ "n": nasty })), complete(json!({ "said": nasty }))],
    );
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"]["said"], nasty);
    assert_eq!(trace(&place, "r.1.0")["trace"][0]["action_input"]["n"], nasty);
}

#[test]
fn a_question_two_loops_down_is_asked_at_the_top() {
    let place = place();
    child(&place, json!({ "tools": [{ "type": "loop", "name": "deep" }] }), json!({}));
    place.json(
        "loops/deep.json",
        &json!({ "type": "loop", "name": "deep", "description": "Goes deep.", "properties": {
            "mode": "react", "objective": "Think.", "tools": [], "on_stuck": { "iterations": 100 } } }),
    );
    place.json(
        "script.json",
        &json!({ "replies": [call(), complete(json!("done"))], "loops": {
            "helper": [think("deep", json!({})), complete(json!("helped"))],
            "deep": [asks(), asks(), complete(json!("thought"))] } }),
    );
    let (ran, result) = run(&place);
    assert_eq!((ran.code, &result["pause"]["run_id"]), (3, &json!("r.1.0.1.0")), "{ran:#?}");
    let (ran, result) = resume(&place, &["--answer", "one"]);
    assert_eq!((ran.code, &result["pause"]["run_id"]), (3, &json!("r.1.0.1.0")), "{ran:#?}");
    let (ran, result) = resume(&place, &["--answer", "two"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "helped");
    let deep = trace(&place, "r.1.0.1.0");
    assert_eq!((&deep["trace"][0]["observation"], &deep["trace"][1]["observation"]), (&json!("one"), &json!("two")));
}

#[test]
fn memory_of_a_session_is_shared_with_the_called_loop() {
    let place = place();
    script(
        &place,
        &[think("__store_memory__", json!({ "key": "k", "value": 7 })), call(), complete(json!("done"))],
        &[think("__retrieve_memory__", json!({ "key": "k" })), complete(json!("helped"))],
    );
    assert_eq!(place.run(&["--run-id", "r", "--session", "s"]).0.code, 0);
    assert_eq!(trace(&place, "r.2.0")["trace"][0]["observation"], 7);
}

#[test]
fn a_script_without_the_replies_of_a_called_loop_says_so() {
    let place = place();
    place.json("script.json", &json!({ "replies": [call(), complete(json!("done"))] }));
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let detail = result["trace"][0]["error"]["detail"].as_str().unwrap();
    assert!(detail.contains("the loop `helper`") && detail.contains("`loops`"), "{detail}");
}

#[test]
fn a_loop_that_the_script_answers_for_as_a_tool_is_not_run() {
    let place = place();
    place.json(
        "script.json",
        &json!({ "replies": [call(), complete(json!("done"))], "tools": { "helper": ["played"] } }),
    );
    let (ran, result) = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "played");
    assert_eq!(listed(&place, &["--called"]), ["r"]);
}

#[test]
fn a_signal_stops_the_called_loop_after_its_step_and_both_are_taken_up() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json(&json!({ "did": 1 })).behind(&held));
    let place = place();
    let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
        "url": format!("{}/post", server.url()), "parameters": { "type": "object" } });
    place.json("actions/post.json", &post);
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    child(&place, json!({ "tools": [{ "type": "action", "name": "post" }] }), json!({}));
    script(&place, &[call(), complete(json!("all done"))], &[think("post", json!({})), complete(json!("helped"))]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"];
    let child = place.start(&args, &[]);
    server.wait_for(1);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let mut child = child;
    let rest = crate::run::signals::wait_for_line(&mut child, "after this step");
    gate.open();
    let output = child.wait_with_output().unwrap();
    rest.join().unwrap();
    let ran = crate::common::ran(&output);
    assert_eq!(ran.code, 130, "{ran:#?}");
    let helper = trace(&place, "r.1.0");
    assert_eq!(helper["trace"][0]["observation"], json!({ "did": 1 }), "the step that was under way ended");
    let (ran, result) = resume(&place, &[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "helped");
    assert_eq!(server.requests().len(), 1, "and was not done again");
}

#[test]
fn what_the_models_of_called_loops_lack_is_reported_before_anything_is_run() {
    let place = place();
    let models = json!({ "cheap": { "provider": "openai", "price": { "input": 1.0, "output": 1.0 } },
        "free": { "provider": "openai" } });
    place.json("loopctl.json", &json!({ "model": "cheap", "models": models }));
    parent(&place, json!({ "budget": { "cost_usd": 1.0 } }), json!({}));
    child(&place, json!({ "model": "free" }), json!({}));
    script(&place, &[call(), complete(json!("done"))], &[complete(json!("helped"))]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--run-id", "r"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("helper") && ran.stderr.contains("price"), "{}", ran.stderr);
    assert!(listed(&place, &["--called"]).is_empty());
    child(&place, json!({ "model": "cheap" }), json!({}));
    assert_eq!(run(&place).0.code, 0);
}

#[test]
fn a_called_loop_that_has_changed_is_refused_unless_the_new_one_is_wanted() {
    let place = place();
    script(&place, &[call(), complete(json!("done"))], &[asks(), complete(json!("helped"))]);
    assert_eq!(run(&place).0.code, 3);
    child(&place, json!({ "max_iterations": 9 }), json!({}));
    let (ran, _) = resume(&place, &["--answer", "a"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("helper.json has changed"), "{}", ran.stderr);
    let (ran, result) = resume(&place, &["--answer", "a", "--new-document"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "helped");
}

#[test]
fn a_mistake_in_a_called_loop_keeps_the_first_one_from_running() {
    let place = place();
    script(&place, &[complete(json!("done"))], &[]);
    let rule = json!({ "retry": { "base_ms": 10, "max_ms": 5 } });
    child(&place, rule, json!({}));
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--store", "memory"]);
    assert!(ran.stderr.contains("L122") || ran.stderr.contains("longest"), "{ran:#?}");
    assert!(ran.stderr.contains("helper.json"), "{}", ran.stderr);
}

#[test]
fn a_cycle_is_reported_once_when_a_folder_is_checked() {
    let place = Place::new();
    let looped = |name: &str, calls: &str| {
        json!({ "type": "loop", "name": name, "description": "Does it.", "properties": { "mode": "react",
            "objective": "x", "tools": [{ "type": "loop", "name": calls }] } })
    };
    for (name, calls) in [("a", "b"), ("b", "a"), ("c", "a")] {
        place.json(&format!("loops/{name}.json"), &looped(name, calls));
    }
    place.json("loop.json", &looped("main", "c"));
    let ran = place.call(&["check", "--format", "json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let faults = ran.json();
    assert_eq!(faults.as_array().unwrap().len(), 1, "{faults:#}");
    assert_eq!(faults[0]["code"], "L048");
    assert!(faults[0]["message"].as_str().unwrap().contains("a -> b -> a"), "{faults:#}");
    let ran = place.call(&["run", "loop.json", "--store", "memory"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
}

#[test]
fn an_answer_that_a_limit_forced_says_so_in_the_observation_and_in_the_value_of_a_step() {
    let step = json!({ "type": "loop", "name": "helper", "properties": { "part": "p1" }, "outputKey": "v" });
    let output = json!({ "v": "@v", "forced": "@v.forced?" });
    let flow = json!({ "name": "w", "definition": { "actions": [step], "output": output } });
    for is_forced in [true, false] {
        let place = place();
        let limit = if is_forced { json!({ "max_iterations": 1, "on_limit": "answer" }) } else { json!({}) };
        child(&place, limit, json!({}));
        let helper = [think("look", json!({ "n": 1 })), complete(json!("guess"))];
        script(&place, &[call(), complete(json!("done"))], &helper);
        let (ran, result) = place.run(&[]);
        let read = &result["trace"][0]["observation"];
        let expected = if is_forced { json!({ "answer": "guess", "forced": true }) } else { json!("guess") };
        assert_eq!(read, &expected, "{ran:#?}");
        place.json("flow.json", &flow);
        let checked = place.call(&["check", "flow.json"]);
        assert!(checked.stderr.contains("no errors or warnings"), "{checked:#?}");
        let ran = place.call(&["run", "flow.json", "--script", "script.json", "--output", "json", "--store", "memory"]);
        let answer = ran.json()["result"]["answer"].clone();
        let forced = if is_forced { json!(true) } else { Value::Null };
        assert_eq!((&answer["forced"], &answer["v"]["forced"]), (&forced, &forced), "{ran:#?}");
        assert_eq!(answer["v"]["answer"], "guess");
    }
}
