//! The log of a server, as an operator reads it from stderr: which lines there are, whose they are, and what is never in one.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think, with};
use crate::serve::client::{Serving, place, scripted};
use crate::serve::restart::terminate;
use crate::serve::workflows;

/// A server whose log goes to a file.
struct Logged {
    server: Serving,
    log: PathBuf,
}

impl Logged {
    fn start(place: &Place, more: &[&str], env: &[(&str, &str)]) -> Self {
        let log = place.path().join("log.txt");
        let server = Serving::start_logged_with(place, more, &log, env);
        Self { server, log }
    }

    /// Ends the server; its whole log.
    fn text(self) -> String {
        self.server.whole_log(&self.log)
    }

    /// The same, each line as JSON.
    fn lines(self) -> Vec<Value> {
        let text = self.text();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

/// A place with a token of an organisation for each name, and the tokens.
fn guarded(replies: &[Value], names: &[(&str, &[&str])]) -> (Place, Vec<String>) {
    let place = place(json!({}), replies);
    let (mut entries, mut tokens) = (Vec::new(), Vec::new());
    for (name, scopes) in names {
        let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
        let made = place.call(&[&["token", name, "--org", "acme"], scopes.as_slice()].concat());
        entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).unwrap()).unwrap());
        tokens.push(made.stdout.trim().to_owned());
    }
    scripted(&place, replies, json!({ "serve": { "tokens": entries } }));
    (place, tokens)
}

/// The lines with this message that are about this run.
fn of<'l>(lines: &'l [Value], message: &str, run: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["message"] == message && line["run_id"] == run).collect()
}

#[test]
fn each_thing_that_happens_to_a_run_is_one_line_with_its_owner() {
    let replies = [think("__pause_for_human__", json!({ "question": "Which one?" })), complete(json!("ok"))];
    let (place, tokens) = guarded(&replies, &[("bob", &["run", "read", "decide"])]);
    for store in ["sqlite:runs.db", "memory"] {
        let logged = Logged::start(&place, &["--store", store, "--log-format", "json"], &[]);
        let bearer = format!("Bearer {}", tokens[0]);
        let post = |target: &str, body: Value| {
            logged.server.send("POST", target, &[("authorization", &bearer)], body.to_string().as_bytes())
        };
        let run =
            post("/agents/execute", json!({ "loop": "test" })).json()["agent_run_id"].as_str().unwrap().to_owned();
        let decided = post(&format!("/agents/{run}/resume"), json!({ "answer": "the second" }));
        assert_eq!(decided.json()["status"], "completed", "{decided:?}");
        let lines = logged.lines();
        for (message, fields) in [
            ("started", json!({})),
            ("paused", json!({ "pause": 1, "kind": "human" })),
            ("decided", json!({ "decision": "answer", "by": "bob" })),
            ("ended", json!({ "status": "completed", "termination": "complete" })),
        ] {
            let found = of(&lines, message, &run);
            assert_eq!(found.len(), 1, "{message}: {lines:#?}");
            let expected = with(fields, json!({ "loop": "test", "org": "acme", "token": "bob", "level": "info" }));
            for (field, value) in expected.as_object().unwrap() {
                assert_eq!(&found[0][field], value, "{message}: {:#}", found[0]);
            }
        }
        let asked: Vec<&Value> =
            lines.iter().filter(|line| line["message"] == "answered" && line["method"] == "POST").collect();
        assert_eq!(asked.len(), 2, "{lines:#?}");
        for line in asked {
            assert!(line["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{line:#}");
            assert_eq!((&line["token"], &line["org"]), (&json!("bob"), &json!("acme")), "{line:#}");
        }
        let text = Value::from(lines).to_string();
        assert!(!text.contains(&tokens[0]) && !text.contains("the second"), "{text}");
    }
}

#[test]
fn the_line_of_an_answer_names_whose_run_it_was_and_never_the_token() {
    let replies = [think("__pause_for_human__", json!({ "question": "Which one?" })), complete(json!("ok"))];
    let (place, tokens) = guarded(&replies, &[("bob", &["run", "read", "decide"])]);
    let hook = Server::with(|_, _| Answer::json("{}"));
    place.file("hook.key", "s3cret-of-the-hook\n");
    let mut project: Value =
        serde_json::from_slice(&std::fs::read(place.path().join("loopctl.json")).unwrap()).unwrap();
    project["serve"]["callback_secret"] = json!("file:hook.key");
    place.json("loopctl.json", &project);
    let logged = Logged::start(&place, &["--log-format", "json"], &[]);
    let bearer = format!("Bearer {}", tokens[0]);
    let start = json!({ "loop": "test", "callback_url": hook.url() }).to_string();
    let started = logged.server.send("POST", "/agents/execute", &[("authorization", &bearer)], start.as_bytes()).json();
    let run = started["agent_run_id"].as_str().unwrap_or_else(|| panic!("{started:#}")).to_owned();
    hook.wait_for(1);
    let token = hook.requests()[0].json()["payload"]["pause"]["answer"]["token"].as_str().expect("a token").to_owned();
    let answer = json!({ "token": token, "answer": "the second" });
    let path = format!("/agents/{run}/answer");
    let answered = logged.server.send("POST", &path, &[], answer.to_string().as_bytes());
    assert_eq!(answered.status, 202, "{answered:?}");
    hook.wait_for(2);
    let lines = logged.lines();
    let line = lines.iter().find(|line| line["message"] == "answered" && line["path"] == path.as_str());
    let line = line.unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!((&line["token"], &line["org"]), (&json!("callback of bob"), &json!("acme")), "{line:#}");
    assert!(!Value::from(lines.clone()).to_string().contains(&token));
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a post that is made at once and one that is found later differ by their time alone"
)]
fn what_its_first_event_settles_is_logged_counted_and_posted_while_no_slot_is_free() {
    let (hook, gate) = (Server::with(|_, _| Answer::json("{}")), Gate::default());
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({})).behind(&held));
    let place = workflows::place(&tools, json!({ "actions": [workflows::act("@input.n", None)] }));
    let fails = json!({ "type": "matcher", "properties": { "left": "@input.x", "right": [], "matchOn": ["a"] } });
    for (name, step) in
        [("asks", workflows::asks(json!({ "comment": "Go?", "request_payload": {} }))), ("fails", fails)]
    {
        let document = json!({ "name": name, "definition": { "actions": [step] },
            "input": { "type": "object", "properties": { "x": {} } } });
        place.json(&format!("workflows/{name}.json"), &document);
    }
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let logged = Logged::start(&place, &["--log-format", "json", "--max-concurrent-runs", "1"], &[]);
    let server = &logged.server;
    let id = |reply: Value| reply["agent_run_id"].as_str().unwrap().to_owned();
    let hold = |n: u64| id(server.execute("?async=true", json!({ "loop": "pay", "input": { "n": n } })).json());
    let first = hold(1);
    tools.wait_for(1);
    let queued = hold(2);
    let began = std::time::Instant::now();
    let start = |name: &str| {
        let url = hook.url();
        server.execute("", json!({ "loop": name, "input": { "x": 5 }, "callback_url": url })).json()
    };
    let (asks, fails) = (start("asks"), start("fails"));
    assert_eq!((&asks["status"], &fails["status"]), (&json!("paused"), &json!("failed")), "{asks:#} {fails:#}");
    let (asks, fails) = (id(asks), id(fails));
    hook.wait_until(|posts| {
        let has = |event: &str| posts.iter().any(|post| post.json()["event"] == event);
        has("agent_run_paused") && has("agent_run_failed")
    });
    // A server that looks for what nobody posts takes a minute.
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    for series in ["loopctl_runs_ended_total{loop=\"fails\"", "loopctl_pauses_total{loop=\"asks\""] {
        assert!(metrics.lines().any(|line| line.starts_with(series) && line.ends_with(" 1")), "{series}: {metrics}");
    }
    // What is refused does not begin anything.
    assert_eq!(server.post(&format!("/agents/{fails}/resume"), &json!({ "timeout_ms": 60_000 })).status, 409);
    gate.open();
    assert_eq!(server.settled(&queued)["status"], "completed");
    server.post(&format!("/agents/{asks}/resume"), &json!({ "approve": true, "pause": 1 }));
    assert_eq!(server.settled(&asks)["status"], "completed");
    let lines = logged.lines();
    for run in [&first, &queued, &asks, &fails] {
        assert_eq!(of(&lines, "started", run).len(), 1, "{run}: {lines:#?}");
    }
    assert_eq!(of(&lines, "paused", &asks).len(), 1, "{lines:#?}");
    let of_failure = |line: &&Value| {
        line["run_id"] == json!(fails) && line["message"].as_str().unwrap().starts_with("the run failed: ")
    };
    assert_eq!(lines.iter().filter(of_failure).count(), 1, "{lines:#?}");
}

#[test]
fn a_run_that_nobody_drives_is_cancelled_in_a_line_with_its_owner() {
    let (place, tokens) = guarded(
        &[think("__pause_for_human__", json!({ "question": "Which one?" }))],
        &[("bob", &["run", "read"]), ("eve", &["read", "cancel"])],
    );
    let logged = Logged::start(&place, &["--log-format", "json"], &[]);
    let ask = |method: &str, target: &str, token: &str, body: &[u8]| {
        logged.server.send(method, target, &[("authorization", &format!("Bearer {token}"))], body)
    };
    let body = json!({ "loop": "test" }).to_string();
    let run = ask("POST", "/agents/execute", &tokens[0], body.as_bytes()).json();
    let run = run["agent_run_id"].as_str().unwrap().to_owned();
    assert_eq!(ask("DELETE", &format!("/agents/{run}"), &tokens[1], b"").status, 200);
    let lines = logged.lines();
    let found = of(&lines, "cancelled", &run);
    assert_eq!(found.len(), 1, "{lines:#?}");
    for (field, value) in [("org", "acme"), ("token", "bob"), ("by", "eve")] {
        assert_eq!(found[0][field], value, "{:#}", found[0]);
    }
}

#[test]
fn a_refusal_is_a_warning_with_its_code_and_equal_ones_are_counted() {
    let (place, tokens) = guarded(&[complete(json!("ok"))], &[("bob", &["run", "read"]), ("eve", &["read"])]);
    let logged = Logged::start(&place, &["--log-format", "json", "--max-body-bytes", "1000"], &[]);
    let bearer: Vec<String> = tokens.iter().map(|token| format!("Bearer {token}")).collect();
    let ask = |method: &str, target: &str, token: &str, body: &str| {
        logged.server.send(method, target, &[("authorization", token)], body.as_bytes()).status
    };
    let body = json!({ "loop": "test" }).to_string();
    for _ in 0..30 {
        assert_eq!(ask("GET", "/agents?token=s3cret", "Bearer wrong-token-value", ""), 401);
    }
    assert_eq!(ask("POST", "/agents/execute", &bearer[1], &body), 403);
    assert_eq!(ask("GET", "/agents/nobody/status", &bearer[0], ""), 404);
    let run = logged.server.send("POST", "/agents/execute", &[("authorization", &bearer[0])], body.as_bytes()).json();
    let run = run["agent_run_id"].as_str().unwrap();
    assert_eq!(ask("DELETE", &format!("/agents/{run}"), &bearer[0], ""), 409);
    assert_eq!(ask("POST", "/agents/execute", &bearer[0], &json!({ "loop": "x".repeat(2_000) }).to_string()), 413);
    let lines = logged.lines();
    let refused: Vec<&Value> = lines.iter().filter(|line| line["message"] == "refused").collect();
    let with_status = |status: u64| -> Vec<&&Value> {
        let all: Vec<&&Value> = refused.iter().filter(|line| line["status"] == status).collect();
        assert!(all.iter().all(|line| line["level"] == "warn" && line["code"].is_string()), "{all:#?}");
        all
    };
    let counted: u64 = with_status(401).iter().map(|line| line["equal_lines"].as_u64().unwrap_or(0)).sum();
    let unauthorized = with_status(401);
    // The line of a count is the last of the equal ones, which it counts.
    let alone = unauthorized.iter().filter(|line| line.get("equal_lines").is_none()).count();
    assert_eq!((alone, alone + usize::try_from(counted).unwrap()), (1, 30), "{unauthorized:#?}");
    for (status, token) in [(403, "eve"), (404, "bob"), (409, "bob"), (413, "bob")] {
        let found = with_status(status);
        assert_eq!(found.len(), 1, "{status}: {lines:#?}");
        assert_eq!((&found[0]["token"], &found[0]["org"]), (&json!(token), &json!("acme")), "{:#}", found[0]);
        assert!(found[0]["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{:#}", found[0]);
    }
    let text = Value::from(lines).to_string();
    assert!(!text.contains("wrong-token-value") && !text.contains("s3cret"), "{text}");
}

#[test]
fn the_holder_of_a_token_that_is_not_taken_is_in_the_line_of_the_refusal() {
    let (place, tokens) = guarded(&[complete(json!("ok"))], &[("bob", &["read"])]);
    let logged = Logged::start(&place, &["--log-format", "json"], &[]);
    let bearer = format!("Bearer {}", tokens[0]);
    let headers = [("authorization", bearer.as_str()), ("x-org-id", "other")];
    assert_eq!(logged.server.send("GET", "/agents", &headers, b"").status, 403);
    let lines = logged.lines();
    let refused: Vec<&Value> = lines.iter().filter(|line| line["message"] == "refused").collect();
    assert_eq!(
        (refused.len(), &refused[0]["token"], &refused[0]["org"]),
        (1, &json!("bob"), &json!("acme")),
        "{lines:#?}"
    );
}

#[test]
fn a_server_logs_unless_it_is_switched_off_and_a_wrong_variable_is_reported() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let text = |env: &[(&str, &str)], more: &[&str]| {
        let logged = Logged::start(&place, more, env);
        let run = logged.server.execute("", json!({ "loop": "test" })).json();
        (run["agent_run_id"].as_str().unwrap().to_owned(), logged.text())
    };
    let (run, written) = text(&[], &[]);
    let line = written.lines().find(|line| line.contains(" ended ")).unwrap();
    assert!(line.contains(&format!("run_id=\"{run}\" loop=\"test\" status=\"completed\"")), "{written}");
    let (_, written) = text(&[("LOOPCTL_LOG", "off")], &[]);
    assert!(!written.contains(" ended "), "{written}");
    let (_, written) = text(&[("LOOPCTL_LOG", "loopctl=loud"), ("LOOPCTL_LOG_FORMAT", "xml")], &[]);
    assert!(written.contains("LOOPCTL_LOG can't be read") && written.contains(" ended "), "{written}");
    let (_, written) = text(&[("LOOPCTL_LOG_FORMAT", "json")], &[]);
    assert!(written.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{written}");
    let (_, written) = text(&[("LOOPCTL_LOG_FORMAT", "json")], &["--log-format", "text"]);
    assert!(written.lines().all(|line| serde_json::from_str::<Value>(line).is_err()), "{written}");
    // A command logs nothing by itself.
    assert_eq!(place.call(&["run", "loop.json", "--output", "json"]).stderr.matches("loop=\"test\"").count(), 0);
}

#[test]
fn why_a_server_does_not_start_is_json_where_the_log_is() {
    let place = place(json!({}), &[]);
    let ran = place.call(&["serve", ".", "--listen", "0.0.0.0:0", "--log-format", "json"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let line: Value = serde_json::from_str(ran.stderr.trim_end()).unwrap();
    assert_eq!(line["level"], "error");
    assert!(line["message"].as_str().unwrap().contains("serve.tokens"), "{line:#}");
}

#[test]
fn what_a_provider_and_a_tenant_write_forges_no_line() {
    let hostile =
        "away\n{\"level\":\"error\",\"message\":\"forged\"}\u{1b}[31m token=sk-abcdefghijklmnopqrstuvwxyz0123456789";
    let away = Server::with(move |_, _| Answer::json(&json!({ "error": { "message": hostile } })).status(400));
    let place = Place::new();
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "m",
            "models": { "m": { "provider": "openai", "base_url": format!("{}/v1", away.url()), "model": "fake-1" } } }),
    );
    place.json("loop.json", &crate::common::document(&json!({})));
    let logged = Logged::start(&place, &["--log-format", "json"], &[]);
    let composed = json!({ "objective": "a\nERROR loopctl: forged", "tools": [] });
    for body in [json!({ "loop": "test" }), composed] {
        let run = logged.server.execute("", body).json();
        assert_eq!(run["status"], "failed", "{run:#}");
    }
    logged.server.execute("", json!({ "loop": "x\nERROR loopctl: forged" }));
    let lines = logged.lines();
    let failed: Vec<&Value> =
        lines.iter().filter(|line| line["message"].as_str().unwrap().starts_with("the run failed: ")).collect();
    assert_eq!(failed.len(), 2, "{lines:#?}");
    assert!(failed.iter().all(|line| line["level"] == "warn" && line["status"] == "failed"), "{failed:#?}");
    let text = Value::from(lines.clone()).to_string();
    assert!(!text.contains("sk-abcdef") && lines.iter().all(|line| line["message"] != "forged"), "{text}");
}

#[test]
fn a_reader_of_the_log_that_stops_reading_stops_no_run() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let mut command = place.command(&["serve", ".", "--listen", "127.0.0.1:0"]);
    // A pipe that nobody reads is full after some hundred lines.
    command.env("LOOPCTL_LOG", "debug").stderr(std::process::Stdio::piped());
    let server = Serving::started_unread(command);
    for _ in 0..2_000 {
        assert_eq!(server.get("/healthz").status, 200);
    }
    assert_eq!(server.execute("", json!({ "loop": "test" })).json()["status"], "completed");
    terminate(&server);
    assert_eq!(server.ended(), Some(0));
}
