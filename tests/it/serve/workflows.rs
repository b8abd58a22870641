//! Workflows over HTTP: started by their names, decided step by step, and found again by the next server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, web, with};
use crate::serve::client::{Reply, Serving, scripted};

pub const STORES: [&[&str]; 2] = [&["--store", "sqlite:runs.db"], &["--store", "memory"]];

/// A place with a workflow `pay` of these steps, and an action `act` that posts to this server.
pub fn place(tools: &Server, definition: Value) -> Place {
    let place = Place::new();
    let more = json!({ "http_method": "POST", "idempotent": true,
        "parameters": { "type": "object", "properties": { "id": {} } } });
    place.json("actions/act.json", &json!([web("act", &format!("{}/act", tools.url()), more)]));
    place.json(
        "workflows/pay.json",
        &json!({ "name": "pay", "description": "Pays.", "definition": definition,
        "input": { "type": "object", "properties": { "items": { "type": "array" } }, "additionalProperties": true } }),
    );
    scripted(&place, &[], json!({}));
    place
}

/// A server that takes everything.
pub fn tools() -> Server {
    Server::with(|_, _| Answer::json(&json!({ "done": true })))
}

/// A loop over the items of the input, as the last word of the workflow.
pub fn each(settings: Value, steps: Value) -> Value {
    let properties = with(
        json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one", "collect_results": true,
            "result_key": "all", "actions_to_execute": steps }),
        settings,
    );
    json!({ "id": "each", "type": "loop", "properties": properties })
}

pub fn asks(more: Value) -> Value {
    let properties = with(
        json!({ "comment": "Pay {{one.id}}?", "request_payload": { "id": "@one.id" }, "on_rejected": "go_on" }),
        more,
    );
    json!({ "id": "ask", "type": "PbotApproval", "properties": properties })
}

pub fn act(id: &str, filter: Option<Value>) -> Value {
    let step = json!({ "type": "act", "properties": { "id": id } });
    match filter {
        Some(condition) => with(step, json!({ "filter": { "condition": condition } })),
        None => step,
    }
}

/// The addresses that wait.
pub fn waiting(run: &Value) -> Vec<&str> {
    let steps = run["result"]["pause"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    steps.iter().map(|step| step["at"].as_str().expect("an address")).collect()
}

fn begin(server: &Serving, input: Value) -> (String, Value) {
    let reply = server.post("/workflows/pay/execute", &json!({ "input": input }));
    assert_eq!(reply.status, 200, "{reply:?}");
    let run = reply.json();
    (run["run_id"].as_str().expect("an id").to_owned(), run)
}

/// A refusal with this status, in a sentence that has these words.
fn refused(reply: &Reply, status: u16, words: &str) {
    assert_eq!(reply.status, status, "{reply:?}");
    let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.contains(words), "{detail}");
}

#[test]
fn a_workflow_is_begun_by_its_name_and_its_status_has_its_context() {
    for store in STORES {
        let tools = tools();
        let place = place(&tools, json!({ "actions": [with(act("@input.n", None), json!({ "outputKey": "did" }))] }));
        let foreach = json!({ "mode": "foreach", "items_path": "@input.items", "item_variable_name": "one",
            "collect_results": true, "result_key": "all", "actions_to_execute": [act("@one", None)] });
        place.json(
            "all.json",
            &json!({ "type": "loop", "name": "all", "properties": foreach,
            "input": { "type": "object", "properties": { "items": { "type": "array" } } } }),
        );
        place.json("think.json", &with(crate::common::document(&json!({ "tools": [] })), json!({ "name": "think" })));
        let server = Serving::start(&place, store);
        let listed = server.get("/loops").json();
        let kinds: BTreeMap<&str, &str> = listed["loops"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["name"].as_str().unwrap(), row["kind"].as_str().unwrap()))
            .collect();
        assert_eq!(kinds, BTreeMap::from([("all", "foreach"), ("pay", "workflow"), ("think", "loop")]));
        let pay = listed["loops"].as_array().unwrap().iter().find(|row| row["name"] == "pay").unwrap();
        assert_eq!((&pay["description"], &pay["tools"]), (&json!("Pays."), &json!(["act"])));

        let (id, run) = begin(&server, json!({ "n": 7 }));
        assert_eq!((&run["status"], &run["agent_run_id"]), (&json!("completed"), &json!(id)), "{run:#}");
        assert_eq!(run["context"], json!({ "input": { "n": 7 }, "did": { "done": true } }));
        assert_eq!(run["result"]["steps"][0]["status"], "completed");
        assert_eq!(server.get(&format!("/runs/{id}/status")).json()["context"], run["context"]);
        let same = server.execute("", json!({ "loop": "pay", "input": { "n": 7 } })).json();
        assert_eq!(same["final_answer"], json!({ "did": { "done": true } }));
        for reply in [
            server.execute("", json!({ "loop": "all", "input": { "items": [1, 2] } })),
            server.post("/workflows/all/execute", &json!({ "input": { "items": [1, 2] } })),
        ] {
            assert_eq!((reply.status, reply.json()["final_answer"].as_array().unwrap().len()), (200, 2), "{reply:?}");
        }
        // Not waited for, twice with one key: one run.
        let send = || {
            server.send(
                "POST",
                "/workflows/pay/execute?async=true",
                &[("idempotency-key", "k")],
                br#"{"input": {"n": 1}}"#,
            )
        };
        let (first, second) = (send(), send());
        assert_eq!((first.status, &first.json()["run_id"]), (202, &second.json()["run_id"]), "{first:?}");
        let id = first.json()["run_id"].as_str().unwrap().to_owned();
        assert_eq!(server.events(&id, &[]).last().unwrap().1["status"], "completed");

        refused(&server.post("/workflows/pai/execute", &json!({})), 404, "did you mean `pay`?");
        refused(&server.post("/workflows/think/execute", &json!({})), 404, "POST /agents/execute");
        refused(&server.post("/workflows/pay/execute", &json!({ "inputs": {} })), 400, "unknown field `inputs`");
        refused(&server.post("/workflows/pay/execute", &json!({ "input": { "items": 1 } })), 422, "");
        refused(&server.get("/runs/none/status"), 404, "no such run");
    }
}

#[test]
fn a_folder_with_two_documents_of_one_name_is_not_served() {
    let tools = tools();
    let place = place(&tools, json!({ "actions": [act("@input.n", None)] }));
    place.json("pay.json", &with(crate::common::document(&json!({ "tools": [] })), json!({ "name": "pay" })));
    let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("two loops or workflows have the name `pay`"), "{ran:?}");
}

#[test]
fn several_approvals_wait_and_each_is_decided_alone_in_either_spelling() {
    for store in STORES {
        let tools = tools();
        let approved = json!({ "equal": ["@__approved", true] });
        let steps = json!([asks(json!({})), act("@one.id", Some(approved))]);
        let settings = json!({ "max_concurrency": 4, "collect": "@__approval_data" });
        let place = place(&tools, json!({ "output": "@all", "actions": [each(settings, steps)] }));
        let server = Serving::start(&place, store);
        let items: Vec<Value> = ["a", "b", "c", "d"].iter().map(|id| json!({ "id": id })).collect();
        let (id, run) = begin(&server, json!({ "items": items }));
        assert_eq!(waiting(&run), ["each.0.ask", "each.1.ask", "each.2.ask", "each.3.ask"], "{run:#}");
        let decide = |at: &str, body: Value| server.post(&format!("/approvals/{id}/{at}"), &body);

        refused(&decide("each.9.ask", json!({ "approved": true })), 409, "no step waits at `each.9.ask`");
        refused(&decide("each.*.ask", json!({ "approved": true })), 400, "one step");
        refused(&decide("each.0.ask", json!({})), 400, "missing field `approved`");
        refused(&decide("each.0.ask", json!({ "approved": "yes" })), 400, "boolean");
        refused(&decide("each.0.ask", json!({ "approved": true, "comment": "a", "comments": "b" })), 400, "one field");
        refused(&decide("each.0.ask", json!({ "approved": false, "data": { "id": "x" } })), 400, "goes with");
        refused(&decide("each.0.ask", json!({ "approved": true, "hash": "0123456789abcdef" })), 409, "");
        refused(&decide("each.0.ask", json!({ "approved": true, "pause": 7 })), 409, "has not come yet");
        refused(&server.post(&format!("/forms/{id}/each.0.ask/submit"), &json!({ "x": 1 })), 409, "approv");
        refused(&server.post("/approvals/none/each.0.ask", &json!({ "approved": true })), 404, "no such run");

        let first = decide("each.1.ask", json!({ "approved": true, "comments": "fine" }));
        assert_eq!((first.status, waiting(&first.json()).len()), (200, 3), "{first:?}");
        let hash = run["result"]["pause"]["steps"][0]["hash"].clone();
        let second =
            decide("each.0.ask", json!({ "approved": true, "comment": "ok", "data": { "id": "A" }, "hash": hash }));
        assert_eq!(waiting(&second.json()), ["each.2.ask", "each.3.ask"]);
        let third = decide("each.2.ask", json!({ "approved": false, "comment": "too much" }));
        assert_eq!(waiting(&third.json()), ["each.3.ask"]);
        // The routes of agents decide about a step, too.
        let last = server.post(&format!("/agents/{id}/resume"), &json!({ "deny": true, "at": "each.3.ask" })).json();
        assert_eq!(last["status"], "completed", "{last:#}");
        let collected: Vec<&Value> =
            last["final_answer"].as_array().unwrap().iter().map(|item| &item["output"]).collect();
        assert_eq!(
            collected,
            [&json!({ "id": "A" }), &json!({ "id": "b" }), &json!({ "id": "c" }), &json!({ "id": "d" })]
        );
        let mut acted: Vec<Value> = tools.requests().iter().map(|request| request.json()["id"].clone()).collect();
        acted.sort_by_key(Value::to_string);
        assert_eq!(acted, [json!("a"), json!("b")]);
        let decisions = last["result"]["decisions"].as_array().unwrap();
        let said: Vec<(&str, &str)> = decisions
            .iter()
            .map(|decision| (decision["step"].as_str().unwrap(), decision["decision"].as_str().unwrap()))
            .collect();
        assert_eq!(
            said,
            [("each.1.ask", "approve"), ("each.0.ask", "edit"), ("each.2.ask", "deny"), ("each.3.ask", "deny")]
        );
        assert_eq!(decisions[0]["comment"], "fine");
        refused(&decide("each.3.ask", json!({ "approved": true })), 409, "the run has ended");
    }
}

#[test]
fn an_approval_of_an_action_takes_no_data() {
    let tools = tools();
    let place = place(&tools, json!({ "actions": [act("@input.n", None)] }));
    let more = json!({ "http_method": "POST", "requires_approval": true });
    place.json("actions/act.json", &json!([web("act", &format!("{}/act", tools.url()), more)]));
    place.json(
        "workflows/pay.json",
        &json!({ "name": "pay", "definition": { "actions": [{ "type": "act", "properties": {} }] } }),
    );
    let server = Serving::start(&place, &[]);
    let (id, run) = begin(&server, json!({}));
    assert_eq!(waiting(&run), ["0"], "{run:#}");
    let target = format!("/approvals/{id}/0");
    refused(&server.post(&target, &json!({ "approved": true, "data": { "id": 2 } })), 400, "`edit`");
    let done = server.post(&target, &json!({ "approved": true, "data": {} }));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    assert_eq!(tools.requests().len(), 1);
}

#[test]
fn a_form_takes_its_keys_at_the_top_or_below_data_and_no_others() {
    for store in STORES {
        for below in [false, true] {
            let tools = tools();
            let form =
                json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount", "why"] } });
            let place = place(&tools, json!({ "output": { "why": "@why" }, "actions": [form, act("@amount", None)] }));
            let server = Serving::start(&place, store);
            let (id, run) = begin(&server, json!({}));
            assert_eq!(run["result"]["pause"]["steps"][0]["expected_keys"], json!(["amount", "why"]));
            let fill = |values: Value| {
                let body = if below { json!({ "data": values }) } else { values };
                server.post(&format!("/forms/{id}/fill/submit"), &body)
            };
            refused(&fill(json!({ "amount": 1 })), 409, "the form lacks why");
            refused(&fill(json!({ "amount": 1, "why": "x", "more": 2 })), 409, "does not ask for `more`");
            refused(&server.post(&format!("/forms/{id}/fill/submit"), &json!([1])), 400, "");
            refused(&server.post(&format!("/approvals/{id}/fill"), &json!({ "approved": true })), 409, "answer");
            let done = fill(json!({ "amount": 12, "why": { "is": "x" } }));
            assert_eq!(done.json()["final_answer"], json!({ "why": { "is": "x" } }), "{done:?}");
            assert_eq!(tools.requests()[0].json()["id"], 12);
        }
    }
}

#[test]
fn a_form_that_nobody_fills_in_ends_its_run_though_nobody_asks() {
    for store in STORES {
        let tools = tools();
        let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount"], "ttl_seconds": 3600 } });
        let place = place(&tools, json!({ "actions": [form, act("@amount", None)] }));
        place.file("clock", "0");
        let clock = place.path().join("clock").to_str().expect("a path").to_owned();
        let server = Serving::start_with(&place, store, &[("LOOPCTL_CLOCK", &clock)]);
        let (id, run) = begin(&server, json!({}));
        assert_eq!(run["status"], "paused");
        place.file("clock", 3_600_000.to_string());
        let ended = loop {
            let run = server.get(&format!("/runs/{id}/status")).json();
            if !["paused", "running", "queued"].iter().any(|status| run["status"] == **status) {
                break run;
            }
            crate::common::wait_poll_interval();
        };
        assert_eq!((&ended["status"], &ended["result"]["termination"]), (&json!("failed"), &json!("form_expired")));
        assert_eq!(ended["result"]["error"]["step"], "fill");
        refused(&server.post(&format!("/forms/{id}/fill/submit"), &json!({ "amount": 1 })), 409, "the run has ended");
        assert!(tools.requests().is_empty());
    }
}

/// A loop of items whose server is killed again and again.
#[test]
fn a_loop_of_items_goes_on_where_the_killed_server_left_it() {
    const ITEMS: usize = 40;
    for concurrency in [1, 7] {
        let tools = tools();
        let settings = json!({ "max_concurrency": concurrency, "collect": "@one" });
        let place = place(&tools, json!({ "output": "@all", "actions": [each(settings, json!([act("@one", None)]))] }));
        let store: &[&str] = &["--store", "sqlite:runs.db"];
        let mut server = Serving::start(&place, store);
        let body = json!({ "input": { "items": (0..ITEMS).collect::<Vec<_>>() } }).to_string();
        let begin = |server: &Serving, query: &str| {
            server.send(
                "POST",
                &format!("/workflows/pay/execute{query}"),
                &[("idempotency-key", "one")],
                body.as_bytes(),
            )
        };
        assert_eq!(begin(&server, "?async=true").status, 202);
        for round in 1..4 {
            tools.wait_for(round * ITEMS / 4);
            drop(server);
            server = Serving::start(&place, store);
        }
        let run = begin(&server, "");
        assert_eq!((run.status, &run.json()["status"]), (200, &json!("completed")), "{run:?}");
        let outputs: Vec<u64> = run.json()["final_answer"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["output"].as_u64().unwrap())
            .collect();
        assert_eq!(outputs, (0..ITEMS as u64).collect::<Vec<_>>());
        let mut keys: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for request in tools.requests() {
            let key = request.header("idempotency-key").expect("a key").to_owned();
            keys.entry(request.json()["id"].as_u64().unwrap()).or_default().push(key);
        }
        assert_eq!(keys.len(), ITEMS);
        let calls: usize = keys.values().map(Vec::len).sum();
        assert!(calls <= ITEMS + 3 * concurrency, "{calls} calls");
        for (item, mut keys) in keys {
            keys.dedup();
            assert_eq!(keys.len(), 1, "item {item}: a repeated call has the key of the first");
        }
    }
}

#[test]
fn a_token_for_one_workflow_decides_about_its_steps_only() {
    let tools = tools();
    let place = place(
        &tools,
        json!({ "actions": [asks(json!({ "comment": "Pay?", "request_payload": {} })), act("@input.n", None)] }),
    );
    let mut tokens = BTreeMap::new();
    let mut entries = Vec::new();
    for scope in ["run", "read", "decide:pay", "decide:other"] {
        let made = place.call(&["token", scope, "--scope", scope]);
        entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).expect("an entry")).unwrap());
        tokens.insert(scope, format!("Bearer {}", made.stdout.trim()));
    }
    scripted(&place, &[], json!({ "serve": { "tokens": entries } }));
    let server = Serving::start(&place, &[]);
    let send = |who: &str, method: &str, target: &str, body: Value| {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        server.send(method, target, &[("authorization", &tokens[who])], body.as_bytes())
    };
    refused(&send("read", "POST", "/workflows/pay/execute", json!({})), 403, "scope `run`");
    let run = send("run", "POST", "/workflows/pay/execute", json!({ "input": { "n": 1 } })).json();
    let id = run["run_id"].as_str().expect("an id");
    let target = format!("/approvals/{id}/ask");
    refused(&send("run", "GET", &format!("/runs/{id}/status"), json!({})), 403, "scope `read`");
    assert_eq!(send("read", "GET", &format!("/runs/{id}/status"), json!({})).json()["status"], "paused");
    refused(&send("run", "POST", &target, json!({ "approved": true })), 403, "scope `decide`");
    refused(&send("decide:other", "POST", &target, json!({ "approved": true })), 403, "`decide:pay`");
    let form = format!("/forms/{id}/ask/submit");
    refused(&send("decide:other", "POST", &form, json!({ "a": 1 })), 403, "`decide:pay`");
    let done = send("decide:pay", "POST", &target, json!({ "approved": true })).json();
    assert_eq!((&done["status"], &done["result"]["decisions"][0]["by"]), (&json!("completed"), &json!("decide:pay")));
}

#[test]
fn a_failed_workflow_continues_with_a_corrected_action_and_failed_items_of_a_completed_one_run_again() {
    let failures = std::sync::atomic::AtomicUsize::new(0);
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({ "path": request.path }));
        let is_first = request.path == "/once" && failures.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
        if request.path == "/act" {
            answer.status(404)
        } else if is_first {
            answer.status(500)
        } else {
            answer
        }
    });
    let place = place(&tools, json!({ "actions": [act("@input.id", None)] }));
    let action = |path: &str| {
        let more = json!({ "http_method": "POST", "idempotent": true,
            "parameters": { "type": "object", "properties": { "id": {} } } });
        place.json("actions/act.json", &json!([web("act", &format!("{}/{path}", tools.url()), more)]));
    };
    let server = Serving::start(&place, STORES[0]);
    let begin = |server: &Serving, input: Value| {
        let run = server.post("/workflows/pay/execute", &json!({ "input": input })).json();
        let id = run["run_id"].as_str().unwrap_or_else(|| panic!("{run:#}")).to_owned();
        (run, format!("/agents/{id}/retry"), format!("/runs/{id}/status"))
    };
    let (failed, retry, _) = begin(&server, json!({ "id": "1" }));
    assert_eq!(failed["status"], "failed", "{failed:#}");
    drop(server);
    action("right");
    let server = Serving::start(&place, STORES[0]);
    let refused = server.post(&retry, &json!({}));
    assert_eq!((refused.status, refused.code()), (409, "document_changed".to_owned()), "{refused:?}");
    let done = server.post(&retry, &json!({ "new_document": true }));
    assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
    drop(server);
    action("once");
    let settings = json!({ "failure_strategy": "continue_on_error", "summary_key": "s" });
    let definition = json!({ "output": "@s", "actions": [each(settings, json!([act("@one", None)]))] });
    place.json("workflows/pay.json", &json!({ "name": "pay", "description": "Pays.", "definition": definition }));
    let server = Serving::start(&place, STORES[0]);
    let (_, retry, status) = begin(&server, json!({ "items": ["1", "2"] }));
    let partly = server.get(&status).json();
    assert_eq!(partly["final_answer"]["failed"], 1, "{partly:#}");
    let done = server.post(&retry, &json!({}));
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(server.get(&status).json()["final_answer"]["completed"], 2, "{done:?}");
    assert_eq!(server.post(&retry, &json!({})).status, 409);
}

#[test]
fn a_step_that_is_being_made_is_running_in_the_status_of_its_run() {
    for store in STORES {
        let gate = Gate::default();
        let held = gate.clone();
        let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
        let place = place(&tools, json!({ "actions": [act("@input.n", None)] }));
        let server = Serving::start(&place, store);
        let run = server.post("/agents/execute?async=true", &json!({ "loop": "pay", "input": { "n": 1 } })).json();
        let id = run["agent_run_id"].as_str().unwrap();
        tools.wait_for(1);
        let status = server.get(&format!("/agents/{id}/status")).json();
        assert_eq!(status["result"]["steps"][0]["status"], "running", "{status:#}");
        gate.open();
        assert_eq!(server.settled(id)["result"]["steps"][0]["status"], "completed");
    }
}
