//! Calls whose request was sent and whose outcome is not known: who reads of the failure reads that they may have happened.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, observed, think, web, with};

const MAY: &str = "the call may have happened";

/// The observation of a call of an action with these properties, and the message of the step that it is in a workflow.
fn failures(url: &str, more: &Value) -> (String, String) {
    let place = Place::new();
    // Who answers at all does so long before.
    let action = with(web("pay", url, json!({ "http_method": "POST", "timeout_ms": 20_000 })), more.clone());
    let project = json!({ "allow": { "private_addresses": true } });
    place.actions(std::slice::from_ref(&action), &project);
    let trace = place.calls(&[think("pay", json!({}))]);
    let flow =
        json!({ "name": "flow", "definition": { "actions": [{ "type": "pay", "properties": {}, "outputKey": "a" }] } });
    place.json("flow.json", &flow);
    place.json("actions/pay.json", &action);
    let ran = place.call(&["run", "flow.json", "--output", "json", "--store", "memory"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    (observed(&trace[0]), ran.json()["error"]["message"].as_str().expect("a message").to_owned())
}

#[test]
fn a_call_that_timed_out_or_broke_may_have_happened_in_loops_and_steps() {
    const TIMED_OUT: &str = "timed out after 2 s";
    const NO_ANSWER: &str = "no valid http answer";
    let gate = Gate::default();
    let held = gate.clone();
    let silent = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let closed = Server::with(|_, _| Answer::closed());
    let cut = Server::with(|_, _| Answer::json("{\"paid\": true, \"by\": \"card\"}").cut());
    let zipped = Server::with(|_, _| Answer::json("{}").header("content-encoding", "gzip"));
    let gateway = Server::with(|_, _| Answer::json("{}").status(504));
    let moved = Server::with(|_, request| match request.path.as_str() {
        "/pay" => Answer::json("{}").status(303).header("location", "/paid"),
        _ => Answer::json("{}").status(500),
    });
    let soon = json!({ "timeout_ms": 2_000 });
    for (server, words) in [
        (&silent, TIMED_OUT),
        (&closed, NO_ANSWER),
        (&cut, "response cut off"),
        (&zipped, "compressed answer"),
        (&gateway, "http 504"),
        (&moved, "http 500"),
    ] {
        let is_lost = matches!(words, TIMED_OUT | NO_ANSWER);
        let more = if words == TIMED_OUT { &soon } else { &json!({}) };
        let (in_loop, in_step) = failures(&format!("{}/pay", server.url()), more);
        let address = server.url().replace("http://", "");
        assert!(!is_lost || in_step.contains(&address), "an operator reads which server it was: {in_step}");
        for message in [in_loop, in_step] {
            assert!(message.contains(words) && message.contains(MAY), "{words}: {message}");
        }
    }
    for harmless in [json!({ "idempotent": true }), json!({ "http_method": "GET" })] {
        for (server, more) in [(&silent, &soon), (&closed, &json!({}))] {
            let (in_loop, in_step) = failures(&server.url(), &with(harmless.clone(), more.clone()));
            assert!(!in_loop.contains(MAY) && !in_step.contains(MAY), "{in_loop} {in_step}");
        }
    }
    gate.open();
}

#[test]
fn a_call_that_was_never_sent_or_was_refused_is_a_plain_failure() {
    let free = {
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        format!("http://{}", port.local_addr().expect("its address"))
    };
    let refusing = Server::with(|_, _| Answer::json("{}").status(503));
    let wrong = Server::with(|_, _| Answer::json("{\"error\": \"no amount\"}").status(422));
    for (url, words) in [(free, "connection refused"), (refusing.url(), "http 503"), (wrong.url(), "http 422")] {
        let (in_loop, in_step) = failures(&url, &json!({}));
        for message in [in_loop, in_step] {
            assert!(message.contains(words) && !message.contains(MAY), "{words}: {message}");
        }
    }
}

#[test]
fn a_command_that_was_given_up_may_have_done_its_work() {
    let place = Place::new();
    let command = json!({ "action_name": "work", "kind": "command", "description": "Works.", "timeout_ms": 200,
        "program": "sleep", "args": ["30"] });
    place.actions(std::slice::from_ref(&command), &json!({ "allow": { "commands": ["sleep"] } }));
    let trace = place.calls(&[think("work", json!({}))]);
    assert!(observed(&trace[0]).contains("timed out after 200 ms") && observed(&trace[0]).contains(MAY), "{trace:#?}");
}

/// A place with a loop or a workflow that pays, and this `on_uncertain` of the payment.
fn paying(url: &str, on_uncertain: &str, is_flow: bool) -> Place {
    let place = Place::new();
    let more = json!({ "http_method": "POST", "timeout_ms": 60_000, "on_uncertain": on_uncertain });
    let action = web("pay", url, more);
    let project = json!({ "allow": { "private_addresses": true } });
    if !is_flow {
        place.actions(&[action], &project);
        place.json("script.json", &json!({ "replies": [think("pay", json!({})), complete(json!("done"))] }));
        return place;
    }
    place.json("loopctl.json", &project);
    let flow = json!({ "name": "flow", "definition": { "actions": [{ "type": "pay", "properties": {}, "outputKey": "a" }], "output": "@a" } });
    place.json("flow.json", &flow);
    place.json("actions/pay.json", &action);
    place
}

/// How the loop and the workflow are run, with the id of the run.
const RUNS: [(&str, &[&str]); 2] =
    [("in-loop", &["run", "loop.json", "--script", "script.json"]), ("in-flow", &["run", "flow.json"])];

fn begun(place: &Place, id: &str, args: &[&str]) -> Value {
    place.call(&[args, &["--run-id", id, "--store", "sqlite:runs.db", "--output", "json"]].concat()).json()
}

#[test]
fn a_document_that_says_pause_has_a_human_asked_about_a_call_whose_answer_was_lost() {
    for (id, args) in RUNS {
        let closed = Server::with(|_, _| Answer::closed());
        let resume = |place: &Place, decision: &[&str]| -> Value {
            place
                .call(
                    &[&["resume", id, "--store", "sqlite:runs.db", "--output", "json"], &args[2..], decision].concat(),
                )
                .json()
        };
        let place = paying(&closed.url(), "pause", id == "in-flow");
        let paused = begun(&place, id, args);
        assert_eq!((&paused["status"], &paused["termination"]), (&json!("paused"), &json!("uncertain")), "{paused:#}");
        let shown = paused.to_string();
        assert!(shown.contains("no valid http answer. Did it happen?") && !shown.contains("stopped while"), "{shown}");
        for form in ["text", "html", "json"] {
            let trace = place.call(&["trace", id, "--store", "sqlite:runs.db", "--format", form]).stdout;
            let trace = trace.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(trace.contains("its answer was lost"), "{form}: {trace}");
        }
        let done = resume(&place, &["--happened", "{\"paid\": true}"]);
        assert_eq!((&done["status"], closed.requests().len()), (&json!("completed"), 1), "{done:#}");
        assert!(done.to_string().contains("paid"), "{done:#}");
        let page = place.call(&["trace", id, "--store", "sqlite:runs.db", "--format", "html"]).stdout;
        let read = page.split_whitespace().collect::<Vec<_>>().join(" ");
        // What the model reads beside the result.
        let lost = read.contains("The answer to this call was lost. A human says that it happened");
        assert_eq!((lost, read.contains("The process stopped")), (id == "in-loop", false), "{read}");

        let place = paying(&closed.url(), "pause", id == "in-flow");
        begun(&place, id, args);
        // Made again, and lost again: the human is asked again.
        let again = resume(&place, &["--retry"]);
        assert_eq!((&again["termination"], closed.requests().len()), (&json!("uncertain"), 3), "{again:#}");
        let failed = resume(&place, &["--fail", "the bank says no"]);
        assert!(failed.to_string().contains("the bank says no"), "{failed:#}");
        assert_eq!(closed.requests().len(), 3);
    }
}

#[test]
fn a_document_that_says_retry_has_a_lost_call_made_once_more_with_the_same_key() {
    for answers in [1, 9] {
        for (id, args) in RUNS {
            let server = Server::with(move |number, _| match number {
                number if number < answers => Answer::closed(),
                _ => Answer::json("{\"paid\": true}"),
            });
            let ran = begun(&paying(&server.url(), "retry", id == "in-flow"), id, args).to_string();
            let keys: Vec<String> = server
                .requests()
                .iter()
                .map(|request| request.header("idempotency-key").expect("a key").to_owned())
                .collect();
            assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
            assert_eq!((ran.contains(MAY), ran.contains("paid")), (answers == 9, answers == 1), "{ran}");
        }
    }
}

#[test]
fn a_document_that_says_fail_and_one_that_says_nothing_have_the_failure_read() {
    let closed = Server::with(|_, _| Answer::closed());
    for more in [json!({}), json!({ "on_uncertain": "fail" })] {
        let (in_loop, in_step) = failures(&closed.url(), &more);
        assert!(in_loop.contains(MAY) && in_step.contains(MAY), "{in_loop} {in_step}");
    }
    // What is known to have failed asks nobody.
    let refusing = Server::with(|_, _| Answer::json("{}").status(422));
    for on_uncertain in ["pause", "retry"] {
        let (in_loop, in_step) = failures(&refusing.url(), &json!({ "on_uncertain": on_uncertain }));
        assert!(in_loop.contains("http 422") && in_step.contains("http 422"), "{in_loop} {in_step}");
    }
    assert_eq!(refusing.requests().len(), 4);
}

#[test]
fn a_call_that_is_given_up_while_it_connects_was_never_made() {
    // A server that takes connections and says nothing: what begins with a handshake is not sent.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("its address"));
    let (in_loop, in_step) = failures(&url, &json!({ "timeout_ms": 2_000 }));
    for message in [in_loop, in_step] {
        assert!(message.contains("connection timed out") && !message.contains(MAY), "{message}");
    }
}

#[test]
fn a_call_that_the_end_of_the_runs_time_cuts_off_may_have_happened() {
    let gate = Gate::default();
    let held = gate.clone();
    let silent = Server::with(move |_, _| Answer::json("{}").behind(&held));
    for (method, may) in [("POST", true), ("GET", false)] {
        let place = Place::new();
        let action = web("pay", &silent.url(), json!({ "http_method": method, "timeout_ms": 60_000 }));
        let project = json!({ "allow": { "private_addresses": true } });
        place.actions(&[action], &project);
        let path = place.path().join("loop.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("the loop")).expect("JSON");
        document["properties"]["timeout_ms"] = json!(500);
        place.json("loop.json", &document);
        place.json("script.json", &json!({ "replies": [think("pay", json!({}))] }));
        let ran = begun(&place, "late", &["run", "loop.json", "--script", "script.json"]);
        let shown = ran["trace"].to_string();
        assert!(shown.contains("cut off: the run's time is over") && shown.contains(MAY) == may, "{method}: {ran:#}");
    }
    gate.open();
}

#[test]
fn a_step_that_can_t_give_what_its_call_returned_says_that_the_call_may_have_happened() {
    let text = "x".repeat(1_500_000);
    let server = Server::with(move |_, _| Answer::json(&json!({ "text": text })));
    let (in_loop, in_step) = failures(&format!("{}/pay", server.url()), &json!({}));
    assert!(
        in_step.contains("its output has 1500011 bytes, and a step gives at most 1 MiB") && in_step.contains(MAY),
        "{in_step}"
    );
    assert!(!in_loop.contains(MAY), "a model reads the part that it has room for: {in_loop:.200}");
    let (_, in_step) = failures(&server.url(), &json!({ "idempotent": true }));
    assert!(in_step.contains("a step gives at most 1 MiB") && !in_step.contains(MAY), "{in_step}");
}

#[test]
fn the_model_that_calls_a_workflow_or_a_loop_reads_that_a_call_of_it_may_have_happened() {
    let server = Server::with(|_, _| Answer::closed());
    let place = Place::new();
    let pay = web("pay", &server.url(), json!({ "http_method": "POST" }));
    place.json("actions/pay.json", &pay);
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let flow = |name: &str, actions: Value| {
        let written = json!({ "name": name, "description": "Pays.", "definition": { "actions": actions } });
        place.json(&format!("workflows/{name}.json"), &written);
    };
    flow("once", json!([{ "type": "pay", "properties": {} }]));
    flow("above", json!([{ "type": "workflow", "name": "once", "properties": {} }]));
    let items = json!({ "mode": "foreach", "items_path": "@one", "item_variable_name": "x",
        "actions_to_execute": [{ "type": "pay", "properties": {} }] });
    let one =
        json!({ "type": "matcher", "properties": { "left": [], "right": [], "matchOn": ["a"] }, "outputKey": "m" });
    let list = with(items, json!({ "items_path": "@input.l" }));
    place.json(
        "workflows/each.json",
        &json!({ "name": "each", "description": "Pays.",
        "input": { "type": "object", "properties": { "l": { "type": "array" } }, "required": ["l"] },
        "definition": { "actions": [one, { "type": "loop", "id": "all", "properties": list }] } }),
    );
    let properties = json!({ "mode": "react", "objective": "Pay.", "max_iterations": 1,
        "tools": [{ "type": "action", "name": "pay" }] });
    place.json(
        "loops/payer.json",
        &json!({ "type": "loop", "name": "payer", "description": "Pays.", "properties": properties }),
    );
    let names = ["once", "above", "each", "payer"];
    let tool = |name: &&str| json!({ "type": if *name == "payer" { "loop" } else { "workflow" }, "name": name });
    let tools: Vec<Value> = names.iter().map(tool).collect();
    place.json("loop.json", &crate::common::document(&json!({ "tools": tools, "max_iterations": 9 })));
    let mut replies: Vec<Value> = Vec::new();
    for name in names {
        let input = if name == "each" { json!({ "l": [1] }) } else { json!({}) };
        replies.push(think(name, input));
    }
    replies.push(complete(json!("done")));
    let loops = json!({ "payer": [think("pay", json!({}))] });
    place.json("replies.json", &json!({ "replies": replies, "loops": loops }));
    let project = json!({ "allow": { "private_addresses": true }, "model": "m",
        "models": { "m": { "provider": "script", "script": "replies.json" } } });
    place.json("loopctl.json", &project);
    let ran = place.call(&["run", "loop.json", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = ran.json()["trace"].clone();
    for (at, name) in names.iter().enumerate() {
        let read = observed(&trace[at]);
        assert!(read.contains("ended: ") && read.contains(MAY), "{name}: {read}");
    }
    // One that completes although its items failed.
    let goes_on = with(list, json!({ "failure_strategy": "continue_on_error" }));
    place.json(
        "workflows/each.json",
        &json!({ "name": "each", "description": "Pays.",
        "input": { "type": "object", "properties": { "l": { "type": "array" } }, "required": ["l"] },
        "definition": { "actions": [{ "type": "loop", "id": "all", "properties": goes_on }], "output": "@input.l" } }),
    );
    let replies = [think("each", json!({ "l": [1] })), think("each", json!({ "l": [] })), complete(json!("done"))];
    place.json("replies.json", &json!({ "replies": replies }));
    let trace = place.call(&["run", "loop.json", "--output", "json", "--run-id", "completes"]).json()["trace"].clone();
    let observation = &trace[0]["observation"];
    assert_eq!(observation["answer"], json!([1]), "{observation}");
    assert!(observation["uncertain"].as_str().is_some_and(|said| said.contains("may have happened")), "{observation}");
    assert_eq!(trace[1]["observation"], json!([]), "nothing of it is uncertain");
    // As a step, the sentence is there once.
    place.json(
        "flow.json",
        &json!({ "name": "flow", "definition": { "actions": [
        { "type": "workflow", "name": "once", "properties": {} }] } }),
    );
    let ran = place.call(&["run", "flow.json", "--output", "json", "--store", "memory"]);
    let message = ran.json()["error"]["message"].as_str().expect("a message").to_owned();
    assert_eq!(message.matches(MAY).count(), 1, "{message}");
}
