//! Loops that call loops, over HTTP: whose the called run is, where it is listed, and how it goes on with
//! the run that called it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, scripted};

/// A loop `test` that calls the loop `helper` once, whose model says this and may call `act` at a server.
fn place(url: &str, helper: &[Value]) -> Place {
    let place = Place::new();
    let call = json!({ "type": "loop", "name": "helper" });
    let properties = json!({ "mode": "react", "objective": "Get it done.", "tools": [call] });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let act = json!({ "action_name": "act", "kind": "http", "description": "Acts.", "url": format!("{url}/{{{{at}}}}"),
        "http_method": "POST", "idempotent": true,
        "parameters": { "type": "object", "properties": { "at": { "type": "integer" } }, "required": ["at"] } });
    let properties = json!({ "mode": "react", "objective": "Help.", "tools": [{ "type": "action", "name": "act" }] });
    let helps = json!({ "type": "loop", "name": "helper", "description": "Helps.", "actions": [act],
        "properties": properties });
    place.json("loops/helper.json", &helps);
    scripted(&place, &[], json!({}));
    let replies = [think("helper", json!({})), complete(json!("all done"))];
    place.json("script.json", &json!({ "replies": replies, "loops": { "helper": helper } }));
    place
}

fn asks() -> Value {
    think("__pause_for_human__", json!({ "question": "Which one?" }))
}

fn ids(page: &Value) -> Vec<&str> {
    page["agents"].as_array().unwrap().iter().map(|run| run["agent_run_id"].as_str().unwrap()).collect()
}

/// The runs of the tests below: acts twice.
fn acting() -> [Value; 3] {
    [think("act", json!({ "at": 0 })), think("act", json!({ "at": 1 })), complete(json!("helped"))]
}

#[test]
fn a_called_run_is_its_caller_s_organisation_s_and_listed_when_it_is_asked_for() {
    let place = place("http://127.0.0.1:9", &[complete(json!("helped"))]);
    let server = Serving::start(&place, &[]);
    let acme = [("x-org-id", "acme")];
    let run = server.send("POST", "/agents/execute", &acme, br#"{"loop":"test"}"#).json();
    assert_eq!(run["status"], "completed", "{run:#}");
    let id = run["agent_run_id"].as_str().unwrap();
    let child = format!("{id}.1.0");
    assert_eq!(run["triggered_runs"], json!([child]));
    assert!(run.get("called_by").is_none());
    let get = |target: &str, org: &str| server.send("GET", target, &[("x-org-id", org)], b"");
    let status = get(&format!("/agents/{child}/status"), "acme").json();
    assert_eq!((&status["status"], &status["called_by"]), (&json!("completed"), &json!(id)));
    for route in ["status", "trace", "events"] {
        assert_eq!(get(&format!("/agents/{child}/{route}"), "acme").status, 200, "{route}");
        assert_eq!(get(&format!("/agents/{child}/{route}"), "other").code(), "no_such_run", "{route}");
    }
    assert_eq!(ids(&get("/agents", "acme").json()), [id]);
    let all = get("/agents?called=true", "acme").json();
    assert_eq!(ids(&all), [child.as_str(), id]);
    assert_eq!((&all["agents"][0]["called_by"], all["agents"][1].get("called_by")), (&json!(id), None));
    assert!(ids(&get("/agents?called=true", "other").json()).is_empty());
}

#[test]
fn a_called_run_that_asks_goes_on_with_its_caller_alone() {
    let place = place("http://127.0.0.1:9", &[asks(), complete(json!("helped"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    let child = format!("{id}.1.0");
    assert_eq!(run["status"], "paused", "{run:#}");
    let pause = &run["result"]["pause"];
    assert_eq!((&pause["question"], &pause["run_id"]), (&json!("Which one?"), &json!(child)));
    assert_eq!(run["triggered_runs"], json!([child]));
    let direct = server.post(&format!("/agents/{child}/resume"), &json!({ "answer": "a" }));
    assert_eq!(direct.code(), "refused");
    assert!(direct.json()["detail"].as_str().unwrap().contains(&format!("called by run {id}")), "{direct:?}");
    assert_eq!(server.get(&format!("/agents/{child}/status")).json()["status"], "paused");
    let done = server.post(&format!("/agents/{id}/resume"), &json!({ "answer": "b" })).json();
    assert_eq!(done["final_answer"], "all done", "{done:#}");
    let helper = server.get(&format!("/agents/{child}/trace")).json();
    assert_eq!(helper["trace"][0]["observation"], "b");
    let events = server.events(id, &[]);
    assert_eq!(events.last().unwrap().1["status"], "completed");
}

#[test]
fn a_called_run_takes_no_turn_of_its_own_and_a_killed_server_s_goes_on_with_its_caller() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = place(&tools.url(), &acting());
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    let id = server.execute("?async=true", json!({ "loop": "test" })).json()["agent_run_id"].clone();
    let id = id.as_str().unwrap();
    tools.wait_for(1);
    let child = format!("{id}.1.0");
    let under_way = server.get(&format!("/agents/{id}/status")).json();
    assert_eq!((&under_way["status"], &under_way["triggered_runs"]), (&json!("running"), &json!([child])));
    drop(server);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    tools.wait_for(2);
    let ready = server.get("/readyz").json();
    assert_eq!((&ready["driven"], &ready["queued"]), (&json!(1), &json!(0)), "the sub-run is not resumed by itself");
    gate.open();
    assert_eq!(server.events(id, &[]).last().unwrap().1["status"], "completed");
    let requests = tools.requests();
    let paths: Vec<&str> = requests.iter().map(|request| request.path.as_str()).collect();
    assert_eq!(paths, ["/0", "/0", "/1"], "the call that was cut off is made again, and no other");
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(ids(&server.get("/agents?called=true").json()), [child.as_str(), id]);
}

#[test]
fn a_signal_leaves_both_runs_as_they_are_for_the_next_server() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = place(&tools.url(), &acting());
    let server = Serving::start(&place, &[]);
    let id = server.execute("?async=true", json!({ "loop": "test" })).json()["agent_run_id"].clone();
    let id = id.as_str().unwrap();
    tools.wait_for(1);
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGTERM).unwrap();
    while server.get("/readyz").status == 200 {
        crate::common::wait_poll_interval();
    }
    gate.open();
    assert_eq!(server.ended(), Some(0));
    assert_eq!(tools.requests().len(), 1, "the step ended, and no other began");
    let left = place.call(&["runs", "--called", "--status", "running", "--output", "json"]).json();
    let left: Vec<&str> = left.as_array().unwrap().iter().map(|run| run["run_id"].as_str().unwrap()).collect();
    assert_eq!(left, [format!("{id}.1.0").as_str(), id], "neither is interrupted");
    let next = Serving::start(&place, &[]);
    assert_eq!(next.events(id, &[]).last().unwrap().1["status"], "completed");
    let paths: Vec<String> = tools.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/0", "/1"]);
}
