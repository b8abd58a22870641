//! Several approvals of a workflow in one request: each is a decision of its own.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Gate, Server};
use crate::serve::client::{Serving, parse, read_until_closed, scripted, until};
use crate::serve::workflows::{STORES, act, asks, each, place, tools, waiting};

/// Items that ask before they act.
fn asking(tools: &Server) -> Place {
    let done = json!({ "equal": ["@__approved", true] });
    let steps = json!([asks(json!({})), act("@one.id", Some(done))]);
    place(tools, json!({ "output": "@all", "actions": [each(json!({ "max_concurrency": 4 }), steps)] }))
}

fn begin(server: &Serving, ids: &[&str]) -> (String, Value) {
    let items: Vec<Value> = ids.iter().map(|id| json!({ "id": id })).collect();
    let run = server.post("/workflows/pay/execute", &json!({ "input": { "items": items } })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    (run["run_id"].as_str().expect("an id").to_owned(), run)
}

#[test]
fn approvals_are_decided_together_and_those_that_do_not_fit_say_why() {
    for store in STORES {
        let tools = tools();
        let place = asking(&tools);
        let server = Serving::start(&place, store);
        let (run, asked) = begin(&server, &["a", "b", "c", "d"]);
        assert_eq!(waiting(&asked).len(), 4);
        let hash = |item: usize| asked["result"]["pause"]["steps"][item]["hash"].clone();
        let decisions = json!([
            { "at": "each.0.ask", "approved": true, "hash": hash(0) },
            { "at": "each.1.ask", "approved": true, "hash": "0000000000000000" },
            { "at": "each.2.ask", "approved": false, "comment": "too much", "hash": hash(2) },
            { "at": "each.9.ask", "approved": true },
        ]);
        let answer = server.post(&format!("/approvals/{run}"), &json!({ "decisions": decisions }));
        let body = answer.json();
        assert_eq!((answer.status, &body["taken"]), (200, &json!(["each.0.ask", "each.2.ask"])), "{body:#}");
        let refused = body["refused"].as_array().unwrap();
        let of = |number: usize| (refused[number]["at"].as_str().unwrap(), refused[number]["code"].as_str().unwrap());
        assert_eq!((refused.len(), of(0), of(1)), (2, ("each.1.ask", "refused"), ("each.9.ask", "refused")));
        assert!(body.get("stopped").is_none(), "{body:#}");
        let rest = json!({ "decisions": [
            { "at": "each.3.ask", "approved": true, "data": { "id": "D" } },
            { "at": "each.1.ask", "approved": true },
        ] });
        let body = server.post(&format!("/approvals/{run}"), &rest).json();
        assert_eq!(body["taken"], json!(["each.3.ask", "each.1.ask"]), "{body:#}");
        let ended = server.settled(&run);
        let late = json!({ "decisions": [{ "at": "each.1.ask", "approved": false }, { "at": "each.3.ask", "approved": true }] });
        let late = server.post(&format!("/approvals/{run}"), &late).json();
        assert_eq!((&late["taken"], &late["status"]), (&json!([]), &json!("completed")), "{late:#}");
        let sentences: Vec<&Value> = late["refused"].as_array().unwrap().iter().map(|one| &one["detail"]).collect();
        assert_eq!(sentences, ["the run has ended: completed"; 2]);
        assert_eq!(ended["status"], "completed", "{ended:#}");
        let decided: Vec<String> = ended["result"]["decisions"].as_array().unwrap().iter().map(said).collect();
        assert_eq!(
            decided,
            ["each.0.ask approve", "each.2.ask deny", "each.3.ask edit", "each.1.ask approve"],
            "{ended:#}"
        );
        let mut called: Vec<Value> = tools.requests().iter().map(|request| request.json()["id"].clone()).collect();
        called.sort_by_key(Value::to_string);
        assert_eq!(called, ["a", "b", "d"]);
    }
}

fn said(decision: &Value) -> String {
    format!("{} {}", decision["step"].as_str().unwrap(), decision["decision"].as_str().unwrap())
}

#[test]
fn approvals_are_decided_while_another_step_is_under_way_and_a_request_that_is_wrong_decides_nothing() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = asking(&tools);
    let server = Serving::start(&place, STORES[0]);
    let (run, _) = begin(&server, &["a", "b", "c"]);
    let send = |body: &Value| server.post(&format!("/approvals/{run}"), body);
    let yes = |at: &str| json!({ "at": at, "approved": true });
    for wrong in [
        json!({}),
        json!({ "decisions": [] }),
        json!({ "decisions": vec![yes("each.0.ask"); 501] }),
        json!({ "decisions": [yes("each.0.ask"), yes("each.0.ask")] }),
        json!({ "decisions": [yes("each.0.ask"), yes("each.*.ask")] }),
        json!({ "decisions": [yes("each.0.ask"), { "at": "each.1.ask" }] }),
        json!({ "decisions": [yes("each.0.ask")], "pause": 1 }),
    ] {
        assert_eq!(send(&wrong).code(), "bad_request", "{wrong}");
    }
    assert_eq!(server.post("/approvals/nobody", &json!({ "decisions": [yes("each.0.ask")] })).status, 404);
    assert_eq!(tools.requests().len(), 0);
    assert_eq!(send(&json!({ "decisions": [yes("each.0.ask")] })).json()["taken"], json!(["each.0.ask"]));
    tools.wait_for(1);
    // The call of the first item is under way.
    let both = json!({ "decisions": [yes("each.1.ask"), { "at": "each.2.ask", "approved": false }] });
    let answer = send(&both).json();
    assert_eq!(
        (&answer["taken"], &answer["status"]),
        (&json!(["each.1.ask", "each.2.ask"]), &json!("running")),
        "{answer:#}"
    );
    tools.wait_for(2);
    gate.open();
    assert_eq!(server.settled(&run)["status"], "completed");
}

#[test]
fn a_token_that_ends_while_its_request_is_under_way_decides_nothing_from_then_on() {
    let tools = tools();
    let place = asking(&tools);
    let token = |name: &str, more: &[&str]| {
        let made = place.call(&[&["token", name, "--scope", "decide", "--scope", "run"], more].concat());
        let entry = made.stderr.lines().nth(1).expect("an entry");
        (format!("Bearer {}", made.stdout.trim()), serde_json::from_str::<Value>(entry).expect("JSON"))
    };
    let ((own, own_entry), (soon, soon_entry)) =
        (token("own", &["--scope", "read"]), token("soon", &["--expires-in", "1h"]));
    scripted(&place, &[], json!({ "serve": { "tokens": [own_entry, soon_entry] } }));
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &[], &[("LOOPCTL_CLOCK", &clock)]);
    let ask = |method: &str, path: &str, body: &Value| {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        server.send(method, path, &[("authorization", &own)], body.as_bytes()).json()
    };
    let run = ask("POST", "/workflows/pay/execute", &json!({ "input": { "items": [{ "id": "a" }, { "id": "b" }] } }));
    assert_eq!(run["status"], "paused", "{run:#}");
    let id = run["run_id"].as_str().unwrap();
    let yes = |at: &str| json!({ "at": at, "approved": true });
    // Each is admitted, and its body comes once the token has ended.
    let requests = [
        (format!("/approvals/{id}"), json!({ "decisions": [yes("each.0.ask"), yes("each.1.ask")] })),
        ("/agents/bulk".to_owned(), json!({ "action": "cancel" })),
        ("/approvals/nobody".to_owned(), json!({ "decisions": [yes("each.0.ask")] })),
    ];
    let begun = requests.map(|(path, body)| {
        let (mut stream, body) = (server.connect(), body.to_string());
        let head = format!("host: {}\r\nauthorization: {soon}\r\nconnection: close", server.address);
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\n{head}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        )
        .unwrap();
        until(&mut stream, "100 Continue\r\n\r\n");
        (stream, body)
    });
    place.file("clock", (2 * 3_600_000).to_string());
    let [decided, cancelled, nobody] = begun.map(|(mut stream, body)| {
        stream.write_all(body.as_bytes()).unwrap();
        parse(&read_until_closed(&mut stream)).expect("an answer")
    });
    let body = decided.json();
    assert_eq!(
        (decided.status, &body["taken"], &body["stopped"]),
        (200, &json!([]), &json!("token_expired")),
        "{body:#}"
    );
    let body = cancelled.json();
    assert_eq!(
        (cancelled.status, &body["done"], &body["stopped"]),
        (200, &json!([]), &json!("token_expired")),
        "{body:#}"
    );
    // What was refused was not carried out.
    assert_eq!((nobody.status, nobody.code()), (401, "token_expired".to_owned()));
    assert!(!nobody.json()["detail"].as_str().unwrap().contains("carried out"), "{nobody:?}");
    let after = ask("GET", &format!("/runs/{id}/status"), &Value::Null);
    assert_eq!((after["status"].as_str(), waiting(&after).len()), (Some("paused"), 2), "{after:#}");
    assert_eq!(tools.requests().len(), 0);
}

#[test]
fn approvals_of_a_run_whose_document_has_changed_are_decided_once_it_is_said_which_text_counts() {
    let tools = tools();
    let place = asking(&tools);
    let server = Serving::start(&place, STORES[0]);
    let (run, asked) = begin(&server, &["a", "b", "c", "d"]);
    let (other, _) = begin(&server, &["e", "f"]);
    drop(server);
    let text = std::fs::read_to_string(place.path().join("workflows/pay.json")).unwrap();
    place.file("workflows/pay.json", text.replace("Pay {{one", "Really pay {{one"));
    let server = Serving::start(&place, STORES[0]);
    let decisions = |asked: &Value, items: std::ops::Range<usize>| -> Vec<Value> {
        let steps = &asked["result"]["pause"]["steps"];
        items.map(|item| json!({ "at": steps[item]["at"], "approved": true, "hash": steps[item]["hash"] })).collect()
    };
    let send = |body: Value| server.post(&format!("/approvals/{run}"), &body).json();
    let refused = send(json!({ "decisions": decisions(&asked, 0..2) }));
    let of = |number: usize| &refused["refused"][number]["code"];
    assert_eq!((&refused["taken"], of(0), of(1)), (&json!([]), &json!("document_changed"), &json!("document_changed")));
    let recorded = send(json!({ "decisions": decisions(&asked, 0..1), "new_document": false }));
    assert_eq!(recorded["taken"], json!(["each.0.ask"]), "{recorded:#}");
    server.settled(&run);
    let one = json!({ "approved": true });
    assert_eq!(server.post(&format!("/approvals/{run}/each.1.ask"), &one).code(), "document_changed");
    let one = json!({ "approved": true, "new_document": false });
    assert_eq!(server.post(&format!("/approvals/{run}/each.1.ask"), &one).status, 200);
    // By the new text the steps may ask something else: they are looked at again, and have other hashes.
    let resume = format!("/agents/{other}/resume");
    let look = server.post(&resume, &json!({ "resume": true, "new_document": true }));
    assert_eq!(look.status, 200, "{look:?}");
    let asked = server.get(&format!("/runs/{other}/status")).json();
    let body = json!({ "decisions": decisions(&asked, 0..2), "new_document": true });
    let all = server.post(&format!("/approvals/{other}"), &body).json();
    assert_eq!(all["taken"], json!(["each.0.ask", "each.1.ask"]), "{all:#}");
    assert_eq!(server.settled(&other)["status"], "completed");
}
