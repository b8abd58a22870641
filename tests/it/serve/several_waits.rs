//! A run that waits for several things at once: each is looked at in its own time, and a human is asked whatever else is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loopctl::drive::clock::wall_ms;
use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, web, with};
use crate::serve::client::{Serving, scripted};
use crate::serve::reloads::{hangup, until};
use crate::serve::workflows::waiting;

/// A model that is away until it is back.
fn model(back: &Arc<AtomicBool>) -> Server {
    let is_back = Arc::clone(back);
    Server::with(move |_, _| match is_back.load(Ordering::SeqCst) {
        true => Answer::openai(&complete(json!("ok")).to_string()),
        false => Answer::json(&json!({ "error": { "message": "away" } })).status(503),
    })
}

/// A workflow whose items do what they say: `ask` a human, `wait` for a second and then act, have a `form` filled in within a second, `act`
/// alone, or ask a model with `one`, which is asked again at most `max_ms` after its first failure.
fn place(model: &Server, tools: &Server, max_ms: u64, more: Value) -> Place {
    let place = Place::new();
    let main = json!({ "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": "fake-1" });
    let project = json!({ "model": "main", "models": { "main": main }, "allow": { "private_addresses": true } });
    place.json("loopctl.json", &with(project, more));
    let retry = json!({ "attempts": 1, "base_ms": 100, "max_ms": max_ms });
    let react =
        json!({ "mode": "react", "objective": "Do it.", "tools": [], "retry": retry, "on_model_outage": "pause" });
    place.json(
        "loops/inner.json",
        &json!({ "type": "loop", "name": "inner", "description": "Does it.", "properties": react }),
    );
    place.json("actions/act.json", &web("act", &format!("{}/act", tools.url()), json!({})));
    place.json("workflows/w.json", &workflow(json!({ "type": "loop", "name": "inner", "properties": {} })));
    place
}

fn workflow(one: Value) -> Value {
    let step = |id: &str, items: &[&str], step: Value| {
        let is: Vec<Value> = items.iter().map(|item| json!({ "equal": ["@one", item] })).collect();
        with(step, json!({ "id": id, "filter": { "condition": { "or": is } } }))
    };
    let steps = [
        step("ask", &["ask"], json!({ "type": "PbotApproval", "properties": { "comment": "Pay?" } })),
        step("rest", &["wait"], json!({ "type": "wait", "properties": { "for": "1s" } })),
        step(
            "fill",
            &["form"],
            json!({ "type": "PbotForm", "properties": { "expected_keys": ["a"], "ttl_seconds": 1 } }),
        ),
        step("one", &["one"], one),
        step("act", &["wait", "act"], json!({ "type": "act", "properties": {} })),
    ];
    let each = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one", "max_concurrency": 4,
        "failure_strategy": "continue_on_error", "actions_to_execute": steps });
    json!({ "name": "w", "definition": { "actions": [{ "id": "each", "type": "loop", "properties": each }] },
        "input": { "type": "object", "properties": { "items": { "type": "array" } } } })
}

fn begin(server: &Serving, items: &[&str], more: Value) -> String {
    let body = with(json!({ "loop": "w", "input": { "items": items } }), more);
    let started = server.execute("?async=true", body).json();
    started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
}

fn status(server: &Serving, run: &str) -> Value {
    server.get(&format!("/agents/{run}/status")).json()
}

/// Waits until a paused run waits for these steps.
fn until_it_waits_for(server: &Serving, run: &str, steps: &[&str]) -> Value {
    loop {
        let run = status(server, run);
        if run["status"] == "paused" && waiting(&run) == steps {
            return run;
        }
        crate::common::wait_poll_interval();
    }
}

fn those_that_wait_for_humans(server: &Serving) -> Vec<String> {
    let listed = server.get("/agents?waiting=true").json();
    let ids = listed["agents"].as_array().unwrap().iter().map(|run| run["agent_run_id"].as_str().unwrap().to_owned());
    ids.collect()
}

#[test]
fn a_human_is_asked_once_while_a_model_is_away_and_the_model_is_asked_until_it_is_back() {
    for (items, ask) in [(["one", "ask", "one"], "each.1.ask"), (["ask", "one", "one"], "each.0.ask")] {
        let back = Arc::new(AtomicBool::new(false));
        let (model, tools, hook) =
            (model(&back), Server::with(|_, _| Answer::json("{}")), Server::with(|_, _| Answer::json("{}")));
        let place = place(&model, &tools, 300, json!({ "serve": { "callback_secret": "file:hook.key" } }));
        place.file("hook.key", "s3cret-of-the-hook\n");
        let server = Serving::start(&place, &[]);
        let run = begin(&server, &items, json!({ "callback_url": hook.url() }));
        hook.wait_for(1);
        // Two of them are asked each time.
        model.wait_for(8);
        let paused = loop {
            let paused = server.settled(&run);
            if waiting(&paused).len() == 3 {
                break paused;
            }
        };
        assert_eq!(paused["result"]["termination"], "approval", "{paused:#}");
        assert_eq!(those_that_wait_for_humans(&server), [run.as_str()]);
        let is_counted = |line: &str| line.starts_with("loopctl_runs_waiting{loop=\"w\"") && line.ends_with(" 1");
        until(|| String::from_utf8(server.get("/metrics").body).unwrap().lines().any(is_counted));
        let bulk = server.post("/agents/bulk", &json!({ "action": "retry", "dry_run": true })).json();
        assert_eq!(bulk["done"], json!([run]), "{bulk:#}");
        back.store(true, Ordering::SeqCst);
        until_it_waits_for(&server, &run, &[ask]);
        let posts: Vec<Value> = hook.requests().iter().map(|request| request.json()).collect();
        let [post] = posts.as_slice() else { panic!("asked again: {posts:#?}") };
        let steps = post["payload"]["pause"]["steps"].as_array().or(post["payload"]["steps"].as_array()).unwrap();
        assert_eq!((steps.len(), &steps[0]["at"], &steps[0]["kind"]), (1, &json!(ask), &json!("approval")), "{post:#}");
        let token = &steps[0]["answer"]["token"];
        let answered = server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "approve": true }));
        assert_eq!(answered.status, 202, "its link stays good: {answered:?}");
        until(|| status(&server, &run)["status"] == "completed");
    }
}

#[test]
fn what_has_a_time_is_looked_at_in_its_time_while_a_model_is_away() {
    let model = model(&Arc::default());
    let tools = Server::with(|_, _| Answer::json("{}"));
    let place = place(&model, &tools, 600_000, json!({}));
    let server = Serving::start(&place, &[]);
    let began_ms = wall_ms();
    let begin = |items: [&str; 2]| begin(&server, &items, json!({}));
    let timers = [begin(["one", "wait"]), begin(["wait", "one"])];
    let forms = [begin(["one", "form"]), begin(["form", "one"])];
    tools.wait_for(2);
    for (run, step) in timers.iter().chain(&forms).zip(["each.0.one", "each.1.one"].iter().cycle()) {
        let paused = until_it_waits_for(&server, run, &[step]);
        assert_eq!(paused["result"]["termination"], "model_error", "{paused:#}");
    }
    // The model is asked again 150 s after its first failure, or later.
    assert!(wall_ms() - began_ms < 120_000, "as late as the model");
    assert_eq!(model.requests().len(), 4, "the model rests until its own time");
}

#[test]
fn a_step_whose_model_is_away_asks_no_human_while_others_are_under_way() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = model(&Arc::default());
    let (tools, hook) =
        (Server::with(move |_, _| Answer::json("{}").behind(&held)), Server::with(|_, _| Answer::json("{}")));
    let place = place(&model, &tools, 600_000, json!({ "serve": { "callback_secret": "file:hook.key" } }));
    place.file("hook.key", "s3cret-of-the-hook\n");
    let server = Serving::start(&place, &[]);
    let run = begin(&server, &["one", "act"], json!({ "callback_url": hook.url() }));
    until(|| server.get(&format!("/agents/{run}.each.0.one/status")).json()["status"] == "paused");
    // What is asked beside others is posted within two looks.
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(those_that_wait_for_humans(&server), [] as [&str; 0]);
    assert_eq!(status(&server, &run)["status"], "running");
    gate.open();
    until_it_waits_for(&server, &run, &["each.0.one"]);
    assert!(hook.requests().is_empty(), "{:?}", hook.requests());
}

#[test]
fn what_lacks_room_beside_a_question_looks_again_when_the_limit_is_raised() {
    for (items, ask) in [(["one", "ask"], "each.1.ask"), (["ask", "one"], "each.0.ask")] {
        let said = json!({ "text": "Yes.", "usage": { "input": 290, "output": 10 } });
        let place = Place::new();
        let judge = json!({ "action_name": "judge", "kind": "llm", "description": "Judges.", "template": "Is it covered?",
            "max_tokens": 100 });
        place.json("actions/all.json", &json!([judge, web("act", "http://127.0.0.1:9/", json!({}))]));
        place.json("workflows/w.json", &workflow(json!({ "type": "judge", "properties": {} })));
        let limited = |tokens: u64| {
            let limit = json!({ "loop": "w", "every": "month", "tokens": tokens, "on_limit": "wait" });
            scripted(&place, std::slice::from_ref(&said), json!({ "limits": [limit] }));
        };
        limited(350);
        let server = Serving::start(&place, &[]);
        let first = begin(&server, &["one"], json!({}));
        assert_eq!(server.settled(&first)["status"], "completed");
        let run = begin(&server, &items, json!({}));
        let paused = server.settled(&run);
        assert_eq!((waiting(&paused).len(), &paused["result"]["termination"]), (2, &json!("approval")), "{paused:#}");
        let bulk = server.post("/agents/bulk", &json!({ "action": "retry", "dry_run": true })).json();
        assert_eq!(bulk["done"], json!([run]), "{bulk:#}");
        limited(9_000);
        hangup(&server);
        until_it_waits_for(&server, &run, &[ask]);
        let answered = server.post(&format!("/agents/{run}/resume"), &json!({ "approve": true }));
        assert_eq!(answered.status, 200, "{answered:?}");
        until(|| status(&server, &run)["status"] == "completed");
    }
}

#[test]
fn a_call_that_lacked_room_beside_a_question_looks_again_when_that_is_decided() {
    let model = Server::reading(|_, request| {
        let text = request.text();
        let usage = json!({ "prompt_tokens": 900, "completion_tokens": 100 });
        let is_first = !text.contains("\"tool\"");
        let message = match text.contains("PARENT") && is_first {
            true => {
                let call = |id: &str, name: &str| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } });
                json!({ "role": "assistant", "content": "", "tool_calls": [call("a", "child"), call("b", "pay")] })
            }
            false => json!({ "role": "assistant", "content": "done" }),
        };
        Answer::json(&json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage }))
    });
    let place = Place::new();
    let limited = |tokens: u64| {
        let main = json!({ "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": "fake-1" });
        let limit = json!({ "loop": "child", "every": "month", "tokens": tokens, "on_limit": "wait" });
        place.json(
            "loopctl.json",
            &json!({ "model": "main", "models": { "main": main }, "limits": [limit], "allow": { "private_addresses": true } }),
        );
    };
    limited(2_000);
    let pay = json!({ "requires_approval": true });
    place.json("actions/pay.json", &web("pay", &format!("{}/pay", model.url()), pay));
    let react = |more: Value| with(json!({ "mode": "react", "dialect": "tool_calls" }), more);
    let of = |name: &str, properties: Value| json!({ "type": "loop", "name": name, "description": "Does it.", "properties": properties });
    place.json(
        "loops/child.json",
        &of("child", react(json!({ "objective": "CHILD", "tools": [], "max_tokens": 1_200 }))),
    );
    let tools = json!([{ "type": "loop", "name": "child" }, { "type": "action", "name": "pay" }]);
    let parent = react(json!({ "objective": "PARENT", "tools": tools, "order": "together", "max_tokens": 200 }));
    place.json("loops/parent.json", &of("parent", parent));
    let server = Serving::start(&place, &[]);
    let start = |name: &str| {
        let started = server.execute("?async=true", json!({ "loop": name })).json();
        started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned()
    };
    assert_eq!(server.settled(&start("child"))["status"], "completed");
    let run = start("parent");
    let paused = server.settled(&run);
    assert_eq!(paused["result"]["termination"], "approval", "{paused:#}");
    assert_eq!(status(&server, &format!("{run}.1.0"))["result"]["termination"], "spending_limit");
    limited(90_000);
    hangup(&server);
    until(|| server.get("/usage?journals=0").json()["limits"][0]["most_tokens"] == 90_000);
    let answered = server.post(&format!("/agents/{run}/resume"), &json!({ "approve": true }));
    assert_eq!(answered.status, 200, "{answered:?}");
    until(|| status(&server, &run)["status"] == "completed");
}
