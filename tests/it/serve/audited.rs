//! What was done with runs, and by whom: the list over HTTP and of the command line.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Reply, Serving, place, scripted};
use crate::serve::workflows;

/// The names of tokens with their texts.
struct Tokens(Vec<(&'static str, String)>);

impl Tokens {
    fn bearer(&self, name: &str) -> String {
        let (_, text) = self.0.iter().find(|(known, _)| *known == name).expect("a token");
        format!("Bearer {text}")
    }
}

/// A place whose loop asks a question, with these tokens: their names and their arguments.
fn guarded(tokens: &[(&'static str, &[&str])]) -> (Place, Tokens) {
    let place = place(json!({}), &[]);
    let (mut texts, mut entries) = (Vec::new(), Vec::new());
    for (name, args) in tokens {
        let made = place.call(&[&["token", name], *args].concat());
        assert_eq!(made.code, 0, "{made:?}");
        entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        texts.push((*name, made.stdout.trim().to_owned()));
    }
    let replies = [think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))];
    scripted(&place, &replies, json!({ "serve": { "tokens": entries } }));
    (place, Tokens(texts))
}

fn send(server: &Serving, bearer: &str, method: &str, path: &str, body: &Value) -> Reply {
    let body = if method == "POST" { body.to_string() } else { String::new() };
    server.send(method, path, &[("authorization", bearer)], body.as_bytes())
}

fn start(server: &Serving, bearer: &str) -> String {
    let started = send(server, bearer, "POST", "/agents/execute", &json!({ "loop": "test" })).json();
    started["agent_run_id"].as_str().expect("an id").to_owned()
}

/// The lines of a list, each as its action, who, and the run.
fn said(list: &Value) -> Vec<String> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap_or("-").to_owned();
    let lines = list["audit"].as_array().expect("lines").iter();
    lines.map(|line| ["action", "by", "agent_run_id"].map(|name| text(line, name)).join(" ")).collect()
}

const ORGS: [(&str, &[&str]); 4] = [
    ("ann", &["--org", "acme", "--scope", "run", "--scope", "decide"]),
    ("eye", &["--org", "acme", "--scope", "read"]),
    ("bob", &["--org", "other", "--scope", "run", "--scope", "read"]),
    ("ops", &["--scope", "admin"]),
];

#[test]
fn what_was_done_is_listed_for_its_organisation_and_for_the_admin_and_stays_when_the_run_is_pruned() {
    let (place, tokens) = guarded(&ORGS);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let [ann, eye, bob, ops] = ["ann", "eye", "bob", "ops"].map(|name| tokens.bearer(name));
    let (one, two, theirs) = (start(&server, &ann), start(&server, &ann), start(&server, &bob));
    let answer = json!({ "answer": "hunter2", "comment": "hunter3" });
    assert_eq!(send(&server, &ann, "POST", &format!("/agents/{one}/resume"), &answer).status, 200);
    assert_eq!(send(&server, &ops, "DELETE", &format!("/agents/{two}?reason=hunter4"), &json!({})).status, 200);
    let list = |bearer: &str, query: &str| send(&server, bearer, "GET", &format!("/audit{query}"), &json!({}));
    let own = [
        format!("cancelled ops {two}"),
        format!("decided ann {one}"),
        format!("started ann {two}"),
        format!("started ann {one}"),
    ];
    let mine = list(&eye, "");
    assert!(!String::from_utf8_lossy(&mine.body).contains("hunter"), "{mine:?}");
    assert_eq!(said(&mine.json()), own);
    assert_eq!(mine.json()["audit"][1]["detail"], "answer 1.0");
    assert_eq!(said(&list(&bob, "").json()), [format!("started bob {theirs}")]);
    assert_eq!(list(&ann, "").code(), "forbidden");
    assert_eq!(said(&list(&ops, "").json()).len(), 5);
    // A filter shows no more than the list.
    assert_eq!(said(&list(&bob, &format!("?run={one}")).json()), [""; 0]);
    assert_eq!(said(&list(&eye, &format!("?run={one}")).json()), [&*own[1], &*own[3]]);
    assert_eq!(said(&list(&ops, "?token=ops").json()), [&*own[0]]);
    assert_eq!(said(&list(&eye, "?action=decided").json()), [&*own[1]]);
    assert_eq!(said(&list(&eye, "?until=2020-01-31T12:00:00Z").json()), [""; 0]);
    let page = list(&eye, "?limit=3").json();
    let rest = list(&eye, &format!("?limit=3&cursor={}", page["next_cursor"])).json();
    assert_eq!((said(&page).len(), said(&rest), &rest["next_cursor"]), (3, vec![own[3].clone()], &Value::Null));
    for wrong in ["?limit=0", "?limit=501", "?action=eaten", "?since=yesterday", "?org=other"] {
        assert_eq!(list(&eye, wrong).code(), "bad_request", "{wrong}");
    }
    drop(server);

    let store = ["--store", "sqlite:runs.db"];
    let pruned = place.call(&[&["runs", "prune", "--older-than", "0s"], &store[..]].concat());
    assert_eq!(pruned.code, 0, "{pruned:?}");
    let audit = place.call(&[&["audit", "--output", "ndjson", "--limit", "0"], &store[..]].concat());
    let lines: Vec<Value> = audit.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 6, "{audit:?}");
    assert_eq!((&lines[0]["action"], &lines[0]["times"]), (&json!("pruned"), &json!(2)), "{audit:?}");
    assert_eq!((&lines[4]["run_id"], &lines[4]["by"], &lines[4]["org"]), (&json!(two), &json!("ann"), &json!("acme")));
    let table = place.call(&[&["audit", "--run", &*one], &store[..]].concat());
    assert_eq!(table.stdout.lines().count(), 3, "{table:?}");
    assert!(table.stdout.contains("decided") && table.stdout.contains("answer"), "{table:?}");
    let none = place.call(&[&["audit", "--since", "0s"], &store[..]].concat());
    assert_eq!((none.code, none.stdout.as_str()), (0, ""), "{none:?}");
}

#[cfg(unix)]
#[test]
fn refusals_are_counted_and_stored_when_the_server_stops() {
    let (place, tokens) = guarded(&ORGS);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    for _ in 0..20 {
        assert_eq!(send(&server, "Bearer wrong", "GET", "/agents", &json!({})).status, 401);
    }
    assert_eq!(send(&server, &tokens.bearer("eye"), "POST", "/loops/test/disable", &json!({})).status, 403);
    crate::serve::restart::terminate(&server);
    assert_eq!(server.ended(), Some(0));
    let refused = place.call(&["audit", "--action", "refused", "--output", "ndjson", "--store", "sqlite:runs.db"]);
    let mut lines: Vec<Value> = refused.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    lines.sort_by_key(|line| line["times"].as_u64());
    assert_eq!(lines.len(), 2, "{refused:?}");
    assert_eq!((&lines[0]["by"], &lines[0]["org"], &lines[0]["times"]), (&json!("eye"), &json!("acme"), &json!(1)));
    assert_eq!(lines[0]["detail"], "forbidden /loops/{name}/disable");
    assert_eq!((&lines[1]["by"], &lines[1]["times"]), (&Value::Null, &json!(20)), "{refused:?}");
    assert_eq!(lines[1]["detail"], "unauthorized /agents");
    assert!(!refused.stdout.contains("wrong"), "{refused:?}");
}

#[test]
fn a_loop_that_is_switched_off_is_started_by_nobody_until_it_is_switched_on_again() {
    let (place, tokens) = guarded(&ORGS);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let [ann, eye, ops] = ["ann", "eye", "ops"].map(|name| tokens.bearer(name));
    let switch =
        |bearer: &str, path: &str| send(&server, bearer, "POST", path, &json!({ "reason": "the bank is away" }));
    let begin = || send(&server, &ann, "POST", "/agents/execute", &json!({ "loop": "test" }));
    let one = start(&server, &ann);
    for other in [&ann, &eye] {
        assert_eq!(switch(other, "/loops/test/disable").code(), "forbidden");
        assert_eq!(switch(other, "/loops/test/enable").code(), "forbidden");
    }
    let unknown = switch(&ops, "/loops/tset/disable");
    assert!(unknown.status == 404 && unknown.json()["detail"].as_str().unwrap().contains("`test`"), "{unknown:?}");
    let off = switch(&ops, "/loops/test/disable");
    assert_eq!((off.status, &off.json()["disabled"]), (200, &json!(true)), "{off:?}");
    let refused = begin();
    assert_eq!((refused.status, refused.code()), (409, "loop_off".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("the bank is away"), "{refused:?}");
    assert_eq!(send(&server, &ann, "POST", &format!("/agents/{one}/rerun"), &json!({})).code(), "loop_off");
    let listed = send(&server, &eye, "GET", "/loops", &json!({})).json();
    assert_eq!(listed["loops"][0]["disabled"]["reason"], "the bank is away");
    // What is under way continues.
    let decided = send(&server, &ann, "POST", &format!("/agents/{one}/resume"), &json!({ "answer": "yes" }));
    assert_eq!(decided.json()["status"], "completed", "{decided:?}");
    assert_eq!(switch(&ops, "/loops/test/enable").json()["disabled"], false);
    assert_eq!(begin().status, 200);

    // The command line switches it for the server, which reads that within a second.
    let call = |args: &[&str]| place.call(&[args, &["--store", "sqlite:runs.db"][..]].concat());
    assert_eq!(call(&["loops", "disable", "test", "--reason", "x"]).code, 0);
    assert!(call(&["loops", "list"]).stdout.starts_with("test  off since "));
    while begin().status != 409 {
        crate::common::wait_poll_interval();
    }
    assert!(call(&["loops", "disable", "tset"]).stderr.contains("no run of the store"));
    assert_eq!(call(&["loops", "enable", "test"]).code, 0);
    assert_eq!(call(&["loops", "enable", "test"]).code, 2);
    while begin().status != 200 {
        crate::common::wait_poll_interval();
    }
    let list = send(&server, &ops, "GET", "/audit?token=ops", &json!({})).json();
    assert_eq!(said(&list), ["switched_on ops -", "switched_off ops -"]);
    assert_eq!(list["audit"][0]["loop"], "test");
}

#[test]
fn the_line_of_a_decision_names_its_step_however_it_was_sent() {
    let tools = workflows::tools();
    let steps = json!([workflows::asks(json!({}))]);
    let each = workflows::each(json!({ "max_concurrency": 3 }), steps);
    let last = json!({ "id": "last", "type": "PbotApproval", "properties": { "comment": "Done?" } });
    let place = workflows::place(&tools, json!({ "actions": [each, last] }));
    let server = Serving::start(&place, &[]);
    let items: Vec<Value> = ["a", "b", "c"].iter().map(|id| json!({ "id": id })).collect();
    let run = server.post("/workflows/pay/execute", &json!({ "input": { "items": items } })).json();
    let id = run["run_id"].as_str().expect("an id").to_owned();
    let hash = |item: usize| run["result"]["pause"]["steps"][item]["hash"].clone();
    for body in [
        json!({ "approve": true, "hash": hash(0) }),
        json!({ "deny": true, "hash": hash(1) }),
        json!({ "approve": true, "at": "each.2.ask" }),
        json!({ "approve": true }),
    ] {
        let taken = server.post(&format!("/agents/{id}/resume"), &body);
        assert!([200, 202].contains(&taken.status), "{body}: {taken:?}");
    }
    let list = server.get(&format!("/audit?run={id}&action=decided")).json();
    let details: Vec<&str> =
        list["audit"].as_array().unwrap().iter().map(|line| line["detail"].as_str().unwrap_or_default()).collect();
    assert_eq!(details, ["approve last", "approve each.2.ask", "deny each.1.ask", "approve each.0.ask"]);
}
