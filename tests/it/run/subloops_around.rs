//! Loops that are called as tools, and what is around them: signals, missing models, changed documents,
//! checks.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::run::subloops::{asks, call, child, listed, parent, place, resume, run, script, trace};

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
