//! Runs that have ended and continue, over HTTP: a retry after an outage of the model, raised limits, and runs that
//! wait for their model and resume by themselves.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, document, think};
use crate::serve::client::{Serving, place, scripted};
use crate::serve::workflows;

fn keep(key: &str) -> Value {
    think("__store_memory__", json!({ "key": key, "value": 1 }))
}

fn away() -> [Value; 2] {
    [json!({ "http": 503, "body": "overloaded" }), json!({ "http": 503, "body": "overloaded" })]
}

const STORES: [&[&str]; 2] = [&[], &["--store", "memory"]];

fn agent(run: &Value) -> String {
    format!("/agents/{}", run["agent_run_id"].as_str().unwrap())
}

fn names(server: &Serving, run: &Value) -> Vec<String> {
    let events = server.events(run["agent_run_id"].as_str().unwrap(), &[]);
    events.iter().map(|(_, event)| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_failed_run_is_retried_once_and_its_events_have_one_end() {
    for store in STORES {
        let [one, two] = away();
        let place = place(json!({}), &[keep("a"), one, two, complete(json!("done"))]);
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!((&run["status"], &run["result"]["error"]["retryable"]), (&json!("failed"), &json!(true)), "{run:#}");
        assert_eq!(names(&server, &run).last().unwrap(), "result");
        let retry = format!("{}/retry", agent(&run));
        assert_eq!(server.post(&retry, &json!({ "why": 1 })).code(), "bad_request");
        let done = server.post(&retry, &json!({}));
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
        assert_eq!(done.json()["result"]["continuations"][0]["termination"], "model_error");
        let events = names(&server, &run);
        let count = |name: &str| events.iter().filter(|event| *event == name).count();
        assert_eq!((count("retried"), count("result"), count("run_ended")), (1, 1, 2), "{events:?}");
        let again = server.post(&retry, &json!({}));
        assert_eq!((again.status, again.code()), (409, "refused".to_owned()), "{again:?}");
        assert!(again.json()["detail"].as_str().unwrap().contains("nothing to retry"), "{again:?}");
    }
}

#[test]
fn a_limit_is_raised_and_one_that_does_not_fit_is_refused() {
    for store in STORES {
        let place = place(json!({ "max_iterations": 1 }), &[keep("a"), keep("b"), complete(json!("done"))]);
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!(run["result"]["termination"], "max_iterations", "{run:#}");
        let resume = format!("{}/resume", agent(&run));
        for (body, status, words) in [
            (json!({ "timeout_ms": 9_000_000 }), 409, "this limit did not end the run"),
            (json!({ "max_iterations": 1 }), 409, "must be more than 1"),
            (json!({ "budget": { "usd": 1 } }), 400, "unknown field"),
            (json!({ "max_iterations": -1 }), 400, "expected a whole number"),
            (json!({ "budget": {} }), 400, "give one decision"),
            (json!({ "max_iterations": 5, "comment": "x" }), 400, "give one decision"),
        ] {
            let reply = server.post(&resume, &body);
            let detail = reply.json()["detail"].as_str().unwrap().to_owned();
            assert!(reply.status == status && detail.contains(words), "{body}: {reply:?}");
        }
        assert_eq!(server.get(&format!("{}/status", agent(&run))).json()["result"], run["result"], "nothing changed");
        let done = server.post(&resume, &json!({ "max_iterations": 3 }));
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
        assert_eq!(done.json()["result"]["continuations"][0]["limits"], json!({ "max_iterations": 3 }));
        assert!(names(&server, &run).contains(&"limits_raised".to_owned()));
    }
}

#[test]
fn the_result_of_a_run_that_continued_is_posted_too() {
    let hook = Server::with(|_, _| Answer::json(&json!({})));
    let [one, two] = away();
    let place = place(json!({}), &[]);
    let more = json!({ "serve": { "callback_secret": "env:HOOK" } });
    scripted(&place, &[one, two, complete(json!("done"))], more);
    let server = Serving::start_with(&place, &[], &[("HOOK", "s3cret-of-the-hook")]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    hook.wait_for(1);
    assert_eq!(server.post(&format!("{}/retry", agent(&run)), &json!({})).status, 200);
    hook.wait_for(2);
    let events: Vec<Value> = hook.requests().iter().map(|request| request.json()["event"].clone()).collect();
    assert_eq!(events, ["agent_run_failed", "agent_run_completed"]);
    let keys: Vec<_> =
        hook.requests().iter().map(|request| request.header("idempotency-key").map(str::to_owned)).collect();
    assert_ne!(keys[0], keys[1], "a receiver must not take the second one for a duplicate");
}

#[test]
fn a_cancelled_run_continues_and_the_old_request_to_cancel_it_does_not_end_it_again() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::with(move |number, _| {
        let answer = Answer::openai(&complete(json!("done")).to_string());
        if number == 0 { answer.behind(&held) } else { answer }
    });
    let place = outage_place(&model, json!({ "max_iterations": 5 }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("?async=true", json!({ "loop": "test" })).json();
    model.wait_for(1);
    // It is driven: its driver is asked.
    assert!(matches!(server.send("DELETE", &agent(&run), &[], b"").status, 200 | 202));
    while server.get(&format!("{}/status", agent(&run))).json()["status"] != "cancelled" {
        crate::common::wait_poll_interval();
    }
    gate.open();
    let done = server.post(&format!("{}/resume", agent(&run)), &json!({ "max_iterations": 9 }));
    assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
}

/// A place whose model is behind this server.
fn outage_place(model: &Server, properties: Value) -> Place {
    let place = Place::new();
    place.json("loop.json", &document(&properties));
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "models": { "m": { "provider": "openai", "base_url": model.url() } },
            "allow": { "private_addresses": true } }),
    );
    place
}

#[test]
fn a_run_that_waits_for_its_model_resumes_by_itself_with_its_own_next_request() {
    for store in STORES {
        let model = Server::with(|number, _| match number {
            0..=8 => Answer::json("{}").status(503),
            _ => Answer::openai(&complete(json!("done")).to_string()),
        });
        let place = outage_place(&model, json!({ "on_model_outage": "pause" }));
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        let status = || server.get(&format!("{}/status", agent(&run))).json();
        while status()["status"] != "completed" {
            crate::common::wait_poll_interval();
        }
        let status = status();
        assert_eq!(model.requests().len(), 10, "each request was one of the run: {status:#}");
        assert!(status["result"]["continuations"].is_null(), "no human was needed: {status:#}");
        let events = names(&server, &run);
        assert!(events.iter().filter(|event| *event == "paused").count() >= 4, "{events:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_next_server_asks_the_model_again_of_a_run_that_waits_for_it() {
    let model = Server::with(|number, _| match number {
        0 | 1 => Answer::json("{}").status(503),
        _ => Answer::openai(&complete(json!("done")).to_string()),
    });
    // The first server would wait for a day.
    let retry = json!({ "attempts": 2, "base_ms": 0, "max_ms": 86_400_000 });
    let place = outage_place(&model, json!({ "on_model_outage": "pause", "retry": retry }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    drop(server);
    let next = Serving::start(&place, &[]);
    while next.get(&format!("{}/status", agent(&run))).json()["status"] != "completed" {
        crate::common::wait_poll_interval();
    }
    assert_eq!(model.requests().len(), 3);
}

#[test]
fn an_agent_of_a_workflow_whose_key_expired_continues_and_repeats_no_call() {
    for store in STORES {
        let (asked, renewed) =
            (std::sync::atomic::AtomicUsize::new(0), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
        let is_renewed = std::sync::Arc::clone(&renewed);
        let tools = Server::with(move |_, request| {
            use std::sync::atomic::Ordering::SeqCst;
            if !request.path.starts_with("/v1/") {
                return Answer::json(&json!({ "seen": true }));
            }
            match asked.fetch_add(1, SeqCst) {
                0 => Answer::openai(&think("look", json!({})).to_string()),
                _ if is_renewed.load(SeqCst) => Answer::openai(&complete(json!("seen")).to_string()),
                _ => Answer::json(&json!({ "error": { "message": "token expired" } })).status(401),
            }
        });
        let looked = || tools.requests().iter().filter(|request| request.path == "/look").count();
        let place = Place::new();
        place.json(
            "actions/look.json",
            &json!([crate::common::web("look", &format!("{}/look", tools.url()), json!({}))]),
        );
        let model = json!({ "provider": "openai", "base_url": format!("{}/v1", tools.url()), "model": "fake-1" });
        let project = json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": model } });
        place.json("loopctl.json", &project);
        let properties = json!({ "mode": "react", "objective": "Look.", "tools": [{ "type": "action", "name": "look" }],
            "result_key": "judged", "retry": { "attempts": 1 } });
        let agent = json!({ "id": "judge", "type": "loop", "properties": properties });
        place.json("workflows/w.json", &json!({ "name": "w", "definition": { "actions": [agent] } }));
        let server = Serving::start(&place, store);
        let run = server.post("/workflows/w/execute", &json!({})).json();
        assert_eq!((&run["status"], looked()), (&json!("failed"), 1), "{run:#}");
        let retry = format!("{}/retry", agent_of(&run));
        let again = server.post(&retry, &json!({})).json();
        assert_eq!((&again["status"], looked()), (&json!("failed"), 1), "{again:#}");
        renewed.store(true, std::sync::atomic::Ordering::SeqCst);
        let done = server.post(&retry, &json!({})).json();
        assert_eq!((&done["status"], looked()), (&json!("completed"), 1), "{done:#}");
        assert_eq!(done["result"]["usage"]["input_tokens"], 20, "{done:#}");
        let called = server.get("/agents?called=true").json();
        let ids: Vec<&str> =
            called["agents"].as_array().unwrap().iter().filter_map(|run| run["agent_run_id"].as_str()).collect();
        assert_eq!(ids.len(), 2, "{ids:?}");
    }
}

fn agent_of(run: &Value) -> String {
    format!("/agents/{}", run["run_id"].as_str().or(run["agent_run_id"].as_str()).unwrap())
}

#[test]
fn a_workflow_has_no_iterations_to_raise() {
    let tools = workflows::tools();
    let asks = workflows::asks(json!({ "comment": "Go?", "request_payload": {} }));
    let place = workflows::place(&tools, json!({ "actions": [asks] }));
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let run = server.execute("", json!({ "loop": "pay", "input": {} })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    for most in [5, 20] {
        let refused = server.post(&format!("/agents/{id}/resume"), &json!({ "max_iterations": most }));
        assert_eq!(refused.status, 409, "{refused:?}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("a workflow has no iterations"), "{detail}");
    }
    let refused = place.call(&["resume", id, "--store", "sqlite:runs.db", "--max-iterations", "40"]);
    assert!(refused.code != 0 && refused.stderr.contains("a workflow has no iterations"), "{refused:#?}");
    let run = server.get(&format!("/agents/{id}/status")).json();
    assert_eq!((&run["status"], run["result"]["continuations"].as_array().map_or(0, Vec::len)), (&json!("paused"), 0));
}
