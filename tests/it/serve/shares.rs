//! Shares: whatever one token or organisation takes, and whoever comes without a token, the others are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::acting;
use crate::serve::client::{Reply, Serving, parse, place, read_until_closed, until};

/// Gives the place these tokens, each with every scope, and limits; what each one's header says.
fn share<const N: usize>(place: &Place, tokens: [(&str, &str); N], limits: Value) -> [String; N] {
    let mut entries: Vec<Value> = Vec::new();
    let headers = tokens.map(|(name, org)| {
        let made = place.call(&["token", name, "--org", org, "--scope", "run", "--scope", "read", "--scope", "decide"]);
        assert_eq!(made.code, 0, "{made:?}");
        entries.push(serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON"));
        format!("Bearer {}", made.stdout.trim())
    });
    let text = std::fs::read(place.path().join("loopctl.json")).unwrap();
    let mut project: Value = serde_json::from_slice(&text).unwrap();
    project["serve"] = json!({ "tokens": entries, "limits": limits });
    place.json("loopctl.json", &project);
    headers
}

fn ask(server: &Serving, token: &str, method: &str, target: &str, body: &str) -> Reply {
    server.send(method, target, &[("authorization", token)], body.as_bytes())
}

fn start(server: &Serving, token: &str, query: &str, n: usize) -> Reply {
    let body = json!({ "loop": "test", "input": { "n": n } }).to_string();
    ask(server, token, "POST", &format!("/agents/execute{query}"), &body)
}

/// Whether a share is spent, by its code; then it says when it is worth trying again.
fn is_spent(reply: &Reply, code: &str) -> bool {
    if reply.status != 429 {
        return false;
    }
    assert_eq!(reply.code(), code, "{reply:?}");
    let after: u64 = reply.header("retry-after").expect("a moment").parse().expect("seconds");
    assert!((1..=3_600).contains(&after), "{after}");
    true
}

/// Sends a request on a connection that stays open; its status.
fn keeps(server: &Serving, token: &str, target: &str) -> (TcpStream, u16) {
    let mut stream = server.connect();
    let head = format!("GET {target} HTTP/1.1\r\nhost: {}\r\nauthorization: {token}\r\n\r\n", server.address);
    stream.write_all(head.as_bytes()).unwrap();
    let text = until(&mut stream, "\r\n\r\n");
    let status = parse(text.as_bytes()).expect("an answer").status;
    (stream, status)
}

/// Lets this process open so many files, for it holds the other ends of as many connections.
#[cfg(target_os = "linux")]
fn open_files(needed: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    if soft < needed {
        setrlimit(Resource::RLIMIT_NOFILE, needed.min(hard), hard).unwrap();
    }
}

/// Of so many streams of one token so many are open, and the other token is served as if there were none.
fn streams(asked: usize, open: usize, limits: Value, start: impl Fn(&Place) -> Serving) {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "?" })), complete(json!(1))]);
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], limits);
    let server = start(&place);
    let id = |token: &str| {
        let run = ask(&server, token, "POST", "/agents/execute", r#"{"loop":"test"}"#).json();
        run["agent_run_id"].as_str().unwrap().to_owned()
    };
    let (own, theirs) = (id(&one), id(&two));
    let events = format!("/agents/{own}/events");
    let mut held: Vec<TcpStream> = Vec::new();
    for number in 0..asked {
        let (stream, status) = keeps(&server, &one, &events);
        assert_eq!(status, if number < open { 200 } else { 429 }, "stream {number}");
        if status == 200 {
            held.push(stream);
        }
    }
    assert!(is_spent(&ask(&server, &one, "GET", &events, ""), "too_many_event_streams"));
    // The other token has all of its own: requests, streams, decisions.
    assert_eq!(ask(&server, &two, "GET", &format!("/agents/{theirs}/status"), "").status, 200);
    let (mut stream, status) = keeps(&server, &two, &format!("/agents/{theirs}/events"));
    assert_eq!(status, 200);
    let done = ask(&server, &two, "POST", &format!("/agents/{theirs}/resume"), r#"{"answer":"yes"}"#);
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    assert!(until(&mut stream, "\"status\":\"completed\"").contains("run_ended"));
    // So has the first one, but for streams, and one that it closes makes room for another.
    assert_eq!(ask(&server, &one, "GET", &format!("/agents/{own}/status"), "").status, 200);
    drop(held.pop());
    let again = (0..10_000).any(|_| keeps(&server, &one, &events).1 == 200);
    assert!(again, "a stream that was closed is given back");
}

#[test]
fn the_event_streams_of_one_token_leave_the_others_theirs() {
    streams(40, 20, json!({ "token": { "event_streams": 20 } }), |place| Serving::start(place, &[]));
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "nightly: 4,096 streams of one token"]
fn four_thousand_event_streams_of_one_token_leave_the_others_theirs() {
    // By what is written nowhere: an eighth of 3,840 connections.
    open_files(8_192);
    streams(4_096, 480, json!({}), |place| Serving::start_limited(place, "-n 8192", &[]));
}

#[test]
fn sixty_four_runs_that_hang_leave_the_runs_of_others_to_be_driven() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({}));
        if request.path.starts_with("/1/") { answer.behind(&held) } else { answer }
    });
    let place = acting(&tools.url(), 1, 0);
    let [one, other, two] = share(&place, [("one", "a"), ("other", "a"), ("two", "b")], json!({}));
    let server = Serving::start(&place, &[]);
    for _ in 0..64 {
        assert_eq!(start(&server, &one, "?async=true", 1).status, 202);
    }
    // Half of the places are shared out: 16 to each organisation, and of those 4 to each token of the first one.
    tools.wait_for(44);
    let ready = server.get("/readyz").json();
    assert_eq!((&ready["driven"], &ready["queued"]), (&json!(44), &json!(20)), "they hang, and 20 wait");
    for (token, n) in [(&two, 2), (&other, 3)] {
        let run = start(&server, token, "", n);
        assert_eq!((run.status, &run.json()["status"]), (200, &json!("completed")), "{run:?}");
    }
    // Nobody else's are driven before their turn.
    assert_eq!(server.get("/readyz").json()["queued"], 20);
    gate.open();
    tools.wait_for(64 + 2);
}

#[test]
fn decided_runs_that_hang_take_no_place_of_others_and_are_not_without_end() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({}));
        if request.path.starts_with("/1/") { answer.behind(&held) } else { answer }
    });
    let place = acting(&tools.url(), 1, 0);
    let asks = think("__pause_for_human__", json!({ "question": "?" }));
    place.json("script.json", &json!({ "replies": [asks, think("act", json!({ "at": 0 })), complete(json!("ok"))] }));
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], json!({}));
    let server = Serving::start(&place, &["--max-concurrent-runs", "2"]);
    let paused = |token: &str, n: usize| {
        let run = start(&server, token, "", n).json();
        assert_eq!(run["status"], "paused", "{run}");
        format!("/agents/{}/resume", run["agent_run_id"].as_str().unwrap())
    };
    let decide = |token: &str, target: &str| ask(&server, token, "POST", target, r#"{"answer":"yes"}"#);
    let theirs = paused(&two, 2);
    let mine: Vec<String> = (0..10).map(|_| format!("{}?async=true", paused(&one, 1))).collect();
    // One place of its own, and half of sixteen beyond the places.
    for target in &mine[..9] {
        assert_eq!(decide(&one, target).status, 202);
    }
    tools.wait_for(9);
    assert!(is_spent(&decide(&one, &mine[9]), "too_many_running"));
    assert_eq!(start(&server, &one, "?async=true", 1).status, 202, "it waits");
    let ready = server.get("/readyz").json();
    assert_eq!((&ready["driven"], &ready["queued"]), (&json!(9), &json!(1)));
    assert_eq!(decide(&two, &theirs).json()["status"], "completed", "the others have their place");
    assert_eq!(start(&server, &two, "", 2).json()["status"], "paused");
    gate.open();
}

#[test]
fn runs_that_may_not_wait_are_refused_and_others_wait_in_their_turn() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let limits = json!({ "token": { "queued": 3 }, "org": { "queued": 4 } });
    let [one, other, two] = share(&place, [("one", "a"), ("other", "a"), ("two", "b")], limits);
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    assert_eq!(start(&server, &one, "?async=true", 0).status, 202);
    tools.wait_for(1);
    for n in 1..=3 {
        assert_eq!(start(&server, &one, "?async=true", n).status, 202);
    }
    assert!(is_spent(&start(&server, &one, "?async=true", 9), "too_many_queued"), "a token's share");
    assert_eq!(start(&server, &other, "?async=true", 10).status, 202);
    assert!(is_spent(&start(&server, &other, "?async=true", 19), "too_many_queued"), "an organisation's share");
    assert_eq!(start(&server, &two, "?async=true", 20).status, 202, "the others have theirs");
    let listed = ask(&server, &one, "GET", "/agents", "").json();
    assert_eq!(listed["agents"].as_array().unwrap().len(), 5, "what was refused is not in the store");
    gate.open();
    tools.wait_for(6);
    let order: Vec<String> = tools.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(order, ["/0/0", "/1/0", "/20/0", "/10/0", "/2/0", "/3/0"], "organisations, then tokens, take turns");
}

#[test]
fn runs_of_organisations_take_turns_also_after_a_restart() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], json!({}));
    let server = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    for (token, n) in [(&one, 0), (&one, 1), (&one, 2), (&one, 3), (&two, 20)] {
        assert_eq!(start(&server, token, "?async=true", n).status, 202);
    }
    tools.wait_for(1);
    drop(server);
    gate.open();
    let _next = Serving::start(&place, &["--max-concurrent-runs", "1"]);
    tools.wait_for(6);
    let order: Vec<String> = tools.requests().iter().map(|request| request.path.clone()).collect();
    assert_eq!(order, ["/0/0", "/0/0", "/20/0", "/1/0", "/2/0", "/3/0"]);
}

#[test]
fn connections_that_are_kept_open_count_for_the_token_that_they_showed() {
    let place = place(json!({}), &[complete(json!(1))]);
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], json!({ "token": { "connections": 3 } }));
    let server = Serving::start(&place, &[]);
    let mut kept: Vec<(TcpStream, u16)> = (0..3).map(|_| keeps(&server, &one, "/loops")).collect();
    assert!(kept.iter().all(|(_, status)| *status == 200));
    let refused = ask(&server, &one, "GET", "/loops", "");
    assert!(is_spent(&refused, "too_many_connections"));
    assert_eq!(refused.header("connection"), Some("close"));
    assert_eq!(ask(&server, &two, "GET", "/loops", "").status, 200);
    assert_eq!(server.get("/healthz").status, 200);
    // One that shows another token counts for that one.
    let (stream, _) = &mut kept[0];
    write!(stream, "GET /agents HTTP/1.1\r\nhost: {}\r\nauthorization: {two}\r\n\r\n", server.address).unwrap();
    until(stream, "{\"agents\":[]}");
    assert_eq!(ask(&server, &one, "GET", "/loops", "").status, 200);
}

#[test]
fn bytes_are_counted_both_ways_and_come_back_with_the_time() {
    let place = place(json!({}), &[complete(json!("x".repeat(200_000)))]);
    let limits = json!({ "token": { "bytes_per_minute": 100_000 } });
    let [one, two, three] = share(&place, [("one", "a"), ("two", "b"), ("three", "c")], limits);
    let server = Serving::start(&place, &[]);
    let body = format!("{}{{}}", " ".repeat(200_000));
    assert_eq!(ask(&server, &one, "POST", "/check", &body).status, 200);
    let refused = ask(&server, &one, "GET", "/loops", "");
    assert!(is_spent(&refused, "bytes_spent"), "what it sent: {refused:?}");
    let run = ask(&server, &two, "POST", "/agents/execute", r#"{"loop":"test"}"#);
    assert_eq!(run.json()["status"], "completed", "an answer comes whole");
    assert!(is_spent(&ask(&server, &two, "GET", "/loops", ""), "bytes_spent"), "what it was answered");
    let run = ask(&server, &three, "POST", "/agents/execute?async=true", r#"{"loop":"test"}"#).json();
    let events = format!("/agents/{}/events", run["agent_run_id"].as_str().unwrap());
    assert_eq!(ask(&server, &three, "GET", &events, "").status, 200);
    assert!(is_spent(&ask(&server, &three, "GET", "/loops", ""), "bytes_spent"), "and what a stream sent");
}

#[test]
fn runs_that_wait_since_before_a_restart_count_in_the_share_of_their_owner() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = acting(&tools.url(), 1, 0);
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], json!({ "token": { "queued": 3 } }));
    let started = || Serving::start(&place, &["--max-concurrent-runs", "1", "--store", "sqlite:runs.db"]);
    let server = started();
    for n in 0..4 {
        assert_eq!(start(&server, &one, "?async=true", n).status, 202);
    }
    assert!(is_spent(&start(&server, &one, "?async=true", 9), "too_many_queued"));
    drop(server);
    let server = started();
    // One of the four is driven again, and three wait.
    while server.get("/readyz").json()["driven"] != 1 {
        crate::common::wait_poll_interval();
    }
    assert!(is_spent(&start(&server, &one, "?async=true", 9), "too_many_queued"), "they wait since before the restart");
    assert_eq!(start(&server, &two, "?async=true", 9).status, 202, "others have their own share");
    gate.open();
    while server.get("/readyz").json()["queued"] != 0 {
        crate::common::wait_poll_interval();
    }
    assert_eq!(start(&server, &one, "?async=true", 9).status, 202, "none of them waits any more");
}

#[test]
fn limits_that_mean_nothing_are_refused_before_anything_is_served() {
    for limits in [
        json!({ "tokens": {} }),
        json!({ "token": { "conections": 3 } }),
        json!({ "org": { "queued": 0 } }),
        json!({ "org": { "running": -1 } }),
        json!({ "token": { "bytes_per_minute": "1 MB" } }),
        json!({ "unknown_connections": 100_000 }),
    ] {
        let place = place(json!({}), &[]);
        share(&place, [("one", "a")], limits.clone());
        let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{limits}: {ran:?}");
        assert_eq!(place.call(&["check", "loopctl.json"]).code, 1, "{limits}");
    }
}

#[test]
fn runs_that_hang_spend_their_running_time() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, request| {
        let answer = Answer::json(&json!({}));
        if request.path.starts_with("/1/") { answer.behind(&held) } else { answer }
    });
    let place = acting(&tools.url(), 1, 0);
    let limits = json!({ "token": { "running_seconds_per_hour": 1, "running": 1, "queued": 1 } });
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], limits);
    let server = Serving::start(&place, &[]);
    for _ in 0..2 {
        assert_eq!(start(&server, &one, "?async=true", 1).status, 202);
    }
    tools.wait_for(1);
    // What is refused at first is that more wait; when the second is spent, that.
    let mut codes: Vec<String> = Vec::new();
    while codes.last().is_none_or(|code| code != "running_time_spent") {
        codes.push(start(&server, &one, "?async=true", 1).code());
    }
    assert_eq!(codes[0], "too_many_queued");
    assert!(is_spent(&start(&server, &one, "", 1), "running_time_spent"));
    assert_eq!(start(&server, &two, "", 2).status, 200);
    gate.open();
}

#[test]
#[cfg(target_os = "linux")]
fn idle_connections_without_a_token_leave_tools_their_descriptors() {
    open_files(4_096);
    let place = acting("http://127.0.0.1:9", 1, 0);
    let action = json!({ "action_name": "act", "kind": "command", "description": "Acts.", "program": "echo",
        "args": ["done"], "parameters": { "type": "object", "properties": { "at": { "type": "integer" } } } });
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["actions"] = json!([action]);
    document["properties"]["objective"] = json!("Act {{input.n}}.");
    place.json("loop.json", &document);
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    project["allow"]["commands"] = json!(["echo"]);
    place.json("loopctl.json", &project);
    let [one, _] = share(&place, [("one", "a"), ("ops", "b")], json!({}));
    let server = Serving::start_limited(&place, "-n 1024", &[]);
    let (mut kept, status) = keeps(&server, &one, "/loops");
    assert_eq!(status, 200);
    let mut idle: Vec<TcpStream> = (0..1_300).map(|_| server.connect()).collect();
    // By a connection that is there already: what needs descriptors is the tool.
    let body = r#"{"loop":"test","input":{"n":1}}"#;
    let head = format!(
        "POST /agents/execute?include_trace=true HTTP/1.1\r\nhost: {}\r\nauthorization: {one}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    kept.write_all(head.as_bytes()).unwrap();
    let run = String::from_utf8(read_until_closed(&mut kept)).unwrap();
    assert!(run.contains("\"observation\":\"done\""), "the program ran: {run}");
    // The twin: the pool was full, and the oldest made room for the newest. All but the pool are closed.
    let mut closed = 0;
    for stream in idle.drain(..1_300 - 144) {
        closed += usize::from(matches!((&stream).read(&mut [0; 1]), Ok(0)));
    }
    assert_eq!(closed, 1_300 - 144);
    // The server hides its memory, and so its descriptors, from all but root.
    if let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", server.pid())) {
        let files = files.count();
        assert!((144..300).contains(&files), "{files} descriptors are open");
    }
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn what_is_refused_and_what_is_open_is_counted() {
    let place = place(json!({}), &[complete(json!(1))]);
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], json!({ "token": { "connections": 2 } }));
    let text = std::fs::read_to_string(place.path().join("loopctl.json")).unwrap();
    // The second one sees the metrics.
    let mut project: Value = serde_json::from_str(&text).unwrap();
    project["serve"]["tokens"][1]["scopes"] = json!(["read", "metrics"]);
    project["serve"]["tokens"][1]["org"] = json!("*");
    place.json("loopctl.json", &project);
    let server = Serving::start(&place, &[]);
    let _kept: Vec<(TcpStream, u16)> = (0..2).map(|_| keeps(&server, &one, "/loops")).collect();
    assert!(is_spent(&ask(&server, &one, "GET", "/loops", ""), "too_many_connections"));
    let text = String::from_utf8(ask(&server, &two, "GET", "/metrics", "").body).unwrap();
    for line in [
        "loopctl_requests_refused_total{code=\"too_many_connections\"} 1",
        "loopctl_connections{kind=\"known\"} 3",
        "loopctl_event_streams 0",
    ] {
        assert!(text.lines().any(|written| written == line), "{line}\n{text}");
    }
}

#[test]
fn runs_that_a_run_starts_take_the_places_of_its_owner_in_the_queue() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "did": 1 })).behind(&held));
    let call = json!({ "action": "side", "action_input": {} });
    let calls = json!({ "thought": "t", "calls": vec![call; 8] });
    let place = place(json!({}), &[calls, complete(json!("x"))]);
    place.json("actions/a.json", &json!([crate::common::web("act", &format!("{}/act", tools.url()), json!({}))]));
    place.json(
        "workflows/side.json",
        &json!({ "name": "side", "description": "S.",
        "definition": { "actions": [{ "type": "act", "properties": {} }] } }),
    );
    let tool = json!({ "type": "workflow", "name": "side", "wait": false });
    let properties = json!({ "mode": "react", "objective": "Do the task.", "tools": [tool], "dialect": "tool_calls",
        "max_tool_calls_per_turn": 20 });
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "test", "properties": properties,
        "input": { "type": "object" } }),
    );
    let limits = json!({ "token": { "queued": 3, "running": 1 } });
    let [one, two] = share(&place, [("one", "a"), ("two", "b")], limits);
    let server = Serving::start(&place, &["--max-concurrent-runs", "4"]);
    let run = start(&server, &one, "?include_trace=true", 1).json();
    assert_eq!(run["status"], "completed", "{run:#}");
    let entries: Vec<String> =
        run["trace"].as_array().unwrap().iter().map(|entry| entry["observation"].to_string()).collect();
    let launched = entries.iter().filter(|seen| seen.contains("run_id")).count();
    let refused: Vec<&String> = entries.iter().filter(|seen| seen.contains("was not started")).collect();
    assert_eq!((launched, refused.len()), (3, 5), "{entries:#?}");
    assert!(refused.iter().all(|seen| seen.contains("that wait for their turn")), "{refused:?}");
    // One of them is driven now, and keeps its place: the owner's next start finds none.
    tools.wait_for(1);
    assert!(is_spent(&start(&server, &one, "?async=true", 9), "too_many_queued"));
    assert_eq!(start(&server, &two, "?async=true", 1).status, 202, "others have their own places");
    gate.open();
}
