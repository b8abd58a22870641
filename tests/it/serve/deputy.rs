//! Confused deputies: an organisation's run, token, key, session or callback that is to reach another's.
//! Thirty ways, each with nothing to show for it; the twin of each is the owner's own request.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, observed, think, web, with};
use crate::serve::client::{Reply, Serving, place, scripted};

const SECRET: &str = "sEcReT-of-the-folder-51c2";

/// A request as somebody.
struct As<'a> {
    server: &'a Serving,
    token: String,
}

impl As<'_> {
    fn send(&self, method: &str, target: &str, more: &[(&str, &str)], body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers: Vec<(&str, &str)> =
            [("authorization", bearer.as_str())].into_iter().chain(more.iter().copied()).collect();
        self.server.send(method, target, &headers, body.as_bytes())
    }

    fn get(&self, target: &str) -> Reply {
        self.send("GET", target, &[], "")
    }

    fn post(&self, target: &str, body: &Value) -> Reply {
        self.send("POST", target, &[], &body.to_string())
    }
}

/// A place with a token of all scopes for each of two organisations.
fn two(replies: &[Value], more: Value) -> (Place, [String; 2]) {
    let place = place(json!({}), &[]);
    let mut entries: Vec<Value> = Vec::new();
    let tokens = ["acme", "other"].map(|org| {
        let all = ["--scope", "run", "--scope", "read", "--scope", "decide"];
        let made = place.call(&[&["token", org, "--org", org][..], &all].concat());
        entries.push(serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        made.stdout.trim().to_owned()
    });
    scripted(&place, replies, with(json!({ "serve": { "tokens": entries } }), more));
    (place, tokens)
}

fn id(run: &Value) -> &str {
    run["agent_run_id"].as_str().unwrap_or_else(|| panic!("no run: {run}"))
}

fn asks() -> Value {
    think("__pause_for_human__", json!({ "question": "Go on?" }))
}

#[test]
fn s7_a_run_s_id_gives_nothing_to_another_organisation() {
    let (place, [acme, other]) = two(&[asks(), complete(json!("acme's own"))], json!({}));
    let server = Serving::start(&place, &[]);
    let (acme, other) = (As { server: &server, token: acme }, As { server: &server, token: other });
    let run = acme.post("/agents/execute", &json!({ "loop": "test", "session": "s" })).json();
    let (run, since) = (id(&run).to_owned(), run["created_at"].as_str().unwrap().to_owned());
    let at = |rest: &str| format!("/agents/{run}{rest}");
    let decisions = [
        json!({ "answer": "yes" }),
        json!({ "approve": true }),
        json!({ "deny": true }),
        json!({ "edit": {} }),
        json!({ "happened": 1 }),
        json!({ "retry": true }),
    ];
    let mut tried = 0;
    let mut refused = |reply: Reply| {
        tried += 1;
        assert_eq!((reply.status, reply.code()), (404, "no_such_run".to_owned()), "{tried}");
    };
    // 1 to 6: to see it.
    for rest in ["/status", "/status?include_trace=true", "/trace", "/events"] {
        refused(other.get(&at(rest)));
    }
    refused(other.send("GET", &at("/events"), &[("last-event-id", "0.0")], ""));
    refused(other.get(&at(".1.0/status")));
    // 7 to 12: to decide about it.
    for decision in &decisions {
        refused(other.post(&at("/resume"), decision));
    }
    // 13: to end it.
    refused(other.send("DELETE", &at(""), &[], ""));
    // 14 to 16: to find it in a list, by its session, its loop, or its time.
    for query in ["?session=s", "?loop=test&called=true", &format!("?since={since}&status=paused")] {
        let listed = other.get(&format!("/agents{query}")).json();
        assert_eq!(listed["agents"], json!([]), "{query}");
        tried += 1;
    }
    // 17: to learn by a page's cursor that there is such a run.
    let (known, unknown) = (other.get(&format!("/agents?cursor={run}")), other.get("/agents?cursor=agent-none"));
    assert_eq!((known.status, &known.body), (400, &unknown.body));
    // 18: to say that one is of another organisation.
    assert_eq!(other.send("GET", &at("/status"), &[("x-org-id", "acme")], "").code(), "forbidden");
    assert_eq!(tried + 2, 18);
    // The twin: its own organisation does all of it.
    assert_eq!(acme.get("/agents?session=s").json()["agents"][0]["agent_run_id"], run.as_str());
    assert_eq!(acme.get(&format!("/agents?cursor={run}")).status, 200);
    assert_eq!(acme.get(&at("/trace")).status, 200);
    let done = acme.post(&at("/resume"), &decisions[0]).json();
    assert_eq!((&done["status"], &done["final_answer"]), (&json!("completed"), &json!("acme's own")));
}

#[test]
fn s7_neither_keys_nor_sessions_lead_into_another_organisation() {
    let (place, [acme, other]) = two(&[], json!({}));
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    let replies = [
        think("__retrieve_memory__", json!({ "key": "k" })),
        think("__store_memory__", json!({ "key": "k", "value": "acme's" })),
        complete(json!("ok")),
    ];
    scripted(&place, &replies, json!({ "serve": project["serve"] }));
    let server = Serving::start(&place, &[]);
    let (acme, other) = (As { server: &server, token: acme }, As { server: &server, token: other });
    let body = json!({ "loop": "test", "session": "s" }).to_string();
    let key = [("idempotency-key", "k")];
    let run = |who: &As<'_>, body: &str| who.send("POST", "/agents/execute?include_trace=true", &key, body);
    let first = run(&acme, &body).json();
    assert_eq!(first["status"], "completed", "{first:#}");
    // 19: a key that another organisation used starts a run of one's own, 20: and no conflict reveals the other
    // run.
    let theirs = run(&other, &body).json();
    assert_ne!(id(&theirs), id(&first));
    assert_eq!(run(&other, &body).json()["agent_run_id"], theirs["agent_run_id"]);
    assert_eq!(run(&acme, r#"{"loop":"test"}"#).code(), "run_id_conflict", "the twin: one's own key does");
    // 21: a session of the same name holds nothing of the other's.
    assert!(!theirs["trace"][0]["observation"].to_string().contains("acme's"), "{theirs:#}");
    // 22 to 24: a session's name can't be made to be another organisation's.
    for session in ["acme:s", "../acme:s", "acme\u{3a}s"] {
        assert_eq!(other.post("/agents/execute", &json!({ "loop": "test", "session": session })).code(), "bad_request");
        assert_eq!(other.get(&format!("/agents?session={session}")).json()["agents"], json!([]));
    }
    let again = acme.post("/agents/execute?include_trace=true", &json!({ "loop": "test", "session": "s" })).json();
    assert!(again["trace"][0]["observation"].to_string().contains("acme's"), "the twin: {again:#}");
}

/// What each of two hosts was sent, whole.
fn seen(host: &Server) -> String {
    host.requests().iter().map(|request| format!("{:?} {}", request, String::from_utf8_lossy(&request.body))).collect()
}

#[test]
fn s7_a_caller_s_token_and_the_folder_s_secret_reach_only_whom_they_are_for() {
    let (own, foreign) = (Server::with(|_, _| Answer::json("{}")), Server::with(|_, _| Answer::json("{}")));
    let (place, [acme, _]) = two(&[], json!({}));
    let project: Value = serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    place.file("key", SECRET);
    let (of_own, of_foreign) = (format!("{}/{{{{at}}}}", own.url()), format!("{}/{{{{at}}}}", foreign.url()));
    let parameters = json!({ "type": "object", "properties": { "at": { "type": "string" } }, "required": ["at"] });
    let actions = [
        web("keyed", &of_own, json!({ "headers": { "x-key": "orgconfig:KEY" }, "parameters": parameters })),
        web("plain", &of_foreign, json!({ "parameters": parameters })),
    ];
    let names = [json!({ "type": "action", "name": "keyed" }), json!({ "type": "action", "name": "plain" })];
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "actions": actions, "properties": {
        "mode": "react", "objective": "x", "tools": names } }),
    );
    let host = format!("{}/x", foreign.url());
    let replies = [
        think("keyed", json!({ "at": "a" })),
        think("keyed", json!({ "at": format!("@{}", foreign.address()) })),
        think("keyed", json!({ "at": host })),
        think("plain", json!({ "at": "orgconfig:KEY" })),
        think("plain", json!({ "at": "{{orgconfig.KEY}}" })),
        think("plain", json!({ "at": "b", "headers": { "x-key": "orgconfig:KEY" } })),
        complete(json!("ok")),
    ];
    place.file("hook.key", "the-secret-of-the-callbacks");
    let serve = with(project["serve"].clone(), json!({ "callback_secret": "file:hook.key" }));
    let more = json!({ "serve": serve, "orgconfig": { "KEY": "file:key" } });
    scripted(&place, &replies, more);
    let server = Serving::start(&place, &[]);
    let acme = As { server: &server, token: acme };
    let body = json!({ "loop": "test", "callback_url": format!("{}/hook", foreign.url()) });
    let run = acme.post("/agents/execute?include_trace=true", &body).json();
    assert_eq!(run["status"], "completed", "{run:#}");
    while acme.get(&format!("/agents/{}/status", id(&run))).json()["callback"]["state"] != "delivered" {
        crate::common::wait_poll_interval();
    }
    // 25 and 26: what the model writes into the address keeps the host; 27 and 28: its words resolve to no
    // secret; 29: it brings no header of its own. The twin: the host of the declaration has it.
    assert!(own.requests()[0].header("x-key") == Some(SECRET), "{:?}", own.requests());
    let theirs = seen(&foreign);
    assert!(!theirs.contains(SECRET), "{theirs}");
    assert!(foreign.requests().iter().all(|request| request.header("x-key").is_none()), "{theirs}");
    assert!(foreign.requests().len() >= 2, "the twin: it was asked: {:?}", foreign.requests());
    let observations = run["trace"].as_array().unwrap().iter().map(observed).collect::<String>();
    assert!(!observations.contains(SECRET) && !run.to_string().contains(SECRET));
    assert!(!theirs.contains("the-secret-of-the-callbacks") && theirs.contains("/hook"), "{theirs}");
    // 30: the token of the caller goes to no tool and no callback.
    for host in [&own, &foreign] {
        assert!(!seen(host).contains(&acme.token) && !seen(host).to_lowercase().contains("bearer"));
    }
}
