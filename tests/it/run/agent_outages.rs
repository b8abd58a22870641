//! An agent of a workflow whose model could not be asked: its run continues when the workflow is retried.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web};

/// A workflow with an agent that looks twice and answers.
pub struct Judging {
    pub place: Place,
    pub server: Server,
    renewed: Arc<AtomicBool>,
}

impl Judging {
    /// `status`: of the third request to the model, and of those after it until the key is renewed.
    pub fn new(status: u16, actions: &dyn Fn(Value) -> Value) -> Self {
        let (renewed, asked) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
        let is_renewed = Arc::clone(&renewed);
        let server = Server::with(move |_, request| {
            if !request.path.starts_with("/v1/") {
                return Answer::json(&json!({ "seen": true }));
            }
            match asked.fetch_add(1, Ordering::SeqCst) {
                number @ (0 | 1) => Answer::openai(&think("look", json!({ "at": number.to_string() })).to_string()),
                _ if is_renewed.load(Ordering::SeqCst) => Answer::openai(&complete(json!("seen")).to_string()),
                _ => Answer::json(&json!({ "error": { "message": "token expired" } })).status(status),
            }
        });
        let place = Place::new();
        let parameters = json!({ "type": "object", "properties": { "at": { "type": "string" } } });
        let look = web("look", &format!("{}/look/{{{{at}}}}", server.url()), json!({ "parameters": parameters }));
        place.json("actions/all.json", &json!([look]));
        let model = json!({ "provider": "openai", "base_url": format!("{}/v1", server.url()), "model": "fake-1" });
        place.json(
            "loopctl.json",
            &json!({ "allow": { "private_addresses": true }, "model": "m", "models": { "m": model } }),
        );
        let properties = json!({ "mode": "react", "objective": "Look.", "tools": [{ "type": "action", "name": "look" }],
            "result_key": "judged", "retry": { "attempts": 1 } });
        let agent = json!({ "id": "judge", "type": "loop", "properties": properties });
        let definition = json!({ "actions": actions(agent) });
        place.json("loop.json", &json!({ "name": "w", "definition": definition }));
        Self { place, server, renewed }
    }

    pub fn renew(&self) {
        self.renewed.store(true, Ordering::SeqCst);
    }

    /// How often the tool was called.
    pub fn looked(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path.starts_with("/look")).count()
    }
}

fn alone(agent: Value) -> Value {
    json!([agent])
}

#[test]
fn an_agent_whose_key_expired_continues_where_it_was_and_repeats_no_call() {
    for status in [401, 402, 403, 503] {
        let judging = Judging::new(status, &alone);
        let run = ["run", "loop.json", "--run-id", "r", "--output", "json"];
        assert_eq!(judging.place.call(&run).code, 1, "{status}");
        assert_eq!(judging.looked(), 2);
        let again = ["resume", "r", "--retry-failed", "--output", "json"];
        let ran = judging.place.call(&again);
        assert_eq!((ran.code, judging.looked()), (1, 2), "the key is still the old one: {ran:#?}");
        judging.renew();
        let ran = judging.place.call(if status == 401 { &["retry", "r", "--output", "json"] } else { &again });
        assert_eq!(ran.code, 0, "{status}: {ran:#?}");
        assert_eq!(judging.looked(), 2, "{status}");
        let result = ran.json();
        assert_eq!(result["steps"][0]["run_id"], "r.judge", "{result:#}");
        assert_eq!(result["result"]["answer"]["judged"]["answer"], "seen");
        // Three replies of 10 and 5 tokens; those before the failure count once.
        assert_eq!(result["usage"]["input_tokens"], 30, "{result:#}");
        assert_eq!(result["usage"]["output_tokens"], 15);
        let trace = judging.place.call(&["trace", "r.judge", "--format", "json"]).json();
        assert_eq!(trace["iterations"].as_u64(), Some(3), "{trace:#}");
        let runs = judging.place.call(&["runs", "--called", "--output", "json"]);
        assert!(!runs.stdout.contains("retry-"), "{runs:#?}");
    }
}

#[test]
fn the_agents_of_items_continue_too() {
    let each = |agent: Value| {
        let properties = json!({ "mode": "foreach", "items_path": "@input.l", "item_variable_name": "x", "actions_to_execute": [agent] });
        json!([{ "id": "each", "type": "loop", "properties": properties }])
    };
    let judging = Judging::new(401, &each);
    let run = ["run", "loop.json", "--run-id", "r", "--input", r#"{"l":[1]}"#, "--output", "json"];
    assert_eq!(judging.place.call(&run).code, 1);
    judging.renew();
    let ran = judging.place.call(&["resume", "r", "--retry-failed", "--output", "json"]);
    assert_eq!((ran.code, judging.looked()), (0, 2), "{ran:#?}");
    assert_eq!(ran.json()["usage"]["input_tokens"], 30);
}

#[test]
fn an_agent_that_failed_by_itself_begins_anew() {
    let judging = Judging::new(400, &alone);
    assert_eq!(judging.place.call(&["run", "loop.json", "--run-id", "r"]).code, 1);
    judging.renew();
    let ran = judging.place.call(&["resume", "r", "--retry-failed", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(ran.json()["steps"][0]["run_id"], "r.judge.retry-1");
}
