//! The tokens of a project: their ends, two of one name, their list, and those for all organisations.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::{Reply, Serving, place, read_until_closed, scripted, until};
use crate::serve::workflows;

/// A new token, and its entry for the project file.
struct NewToken {
    text: String,
    entry: Value,
}

fn token(place: &Place, args: &[&str]) -> NewToken {
    let made = place.call(&[&["token"], args].concat());
    assert_eq!(made.code, 0, "{made:?}");
    let entry = made.stderr.lines().nth(1).expect("an entry");
    NewToken { text: made.stdout.trim().to_owned(), entry: serde_json::from_str(entry).expect("JSON") }
}

fn serve(place: &Place, entries: &[&Value]) -> Serving {
    configure(place, entries);
    Serving::start(place, &[])
}

fn configure(place: &Place, entries: &[&Value]) {
    let replies = [think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))];
    scripted(place, &replies, json!({ "serve": { "tokens": entries } }));
}

fn ask(server: &Serving, token: &NewToken, method: &str, path: &str, more: &[(&str, &str)]) -> Reply {
    let bearer = format!("Bearer {}", token.text);
    let body = if method == "POST" { &br#"{"loop":"test"}"#[..] } else { b"" };
    server.send(method, path, &[&[("authorization", bearer.as_str())], more].concat(), body)
}

#[test]
fn a_token_is_refused_from_its_end_on_while_the_one_that_replaces_it_is_taken() {
    let place = place(json!({}), &[]);
    let mut old = token(&place, &["ci", "--scope", "read", "--expires-in", "90d"]);
    assert!(old.entry["expires_at"].is_string(), "{:?}", old.entry);
    let new = token(&place, &["ci", "--scope", "read"]);
    assert!(new.entry.get("expires_at").is_none(), "{:?}", new.entry);
    old.entry["expires_at"] = json!("2020-01-31T12:00:00Z");
    let server = serve(&place, &[&old.entry, &new.entry]);
    let refused = ask(&server, &old, "GET", "/agents", &[]);
    assert_eq!((refused.status, refused.code()), (401, "token_expired".to_owned()));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    assert_eq!(ask(&server, &new, "GET", "/agents", &[]).status, 200);
    assert_eq!(server.get("/readyz").json()["tokens_expiring"], 1);
    let metrics = String::from_utf8(ask(&server, &new, "GET", "/metrics", &[]).body).unwrap();
    assert!(metrics.contains("\nloopctl_tokens_expiring 1\n"), "{metrics}");
}

#[test]
fn a_token_whose_end_can_t_be_read_keeps_the_server_from_starting() {
    let place = place(json!({}), &[]);
    let mut soon = token(&place, &["ci"]);
    soon.entry["expires_at"] = json!("next week");
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "tokens": [soon.entry] } }));
    let refused = place.call(&["serve", ".", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("expires_at") && refused.stderr.contains("`ci`"), "{refused:?}");
}

#[test]
fn a_token_that_has_expired_and_a_scope_for_no_loop_are_warnings_of_the_folder() {
    let place = place(json!({}), &[]);
    let mut old = token(&place, &["old", "--scope", "read"]);
    old.entry["expires_at"] = json!("2020-01-31T12:00:00Z");
    let till = token(&place, &["till", "--scope", "run:tset", "--scope", "decide:test"]);
    scripted(&place, &[complete(json!("ok"))], json!({ "serve": { "tokens": [old.entry, till.entry] } }));
    let folder = place.call(&["check", "."]);
    assert_eq!(folder.code, 0, "{folder:?}");
    let said = folder.stdout + &folder.stderr;
    assert!(said.contains("the token `old` has expired"), "{said}");
    assert!(said.contains("`run:tset`, and there is no such loop") && said.contains("the nearest one is `test`"));
    assert!(!said.contains("decide:test`, and"), "{said}");
    // Who checks a part of the folder knows only a part of its loops.
    let file = place.call(&["check", "loopctl.json"]);
    let said = file.stdout + &file.stderr;
    assert!(said.contains("has expired") && !said.contains("no such loop"), "{said}");
}

#[test]
fn the_tokens_are_listed_without_their_hashes_and_taken_out_of_the_file_one_by_one() {
    let place = place(json!({}), &[]);
    let (old, new) = (token(&place, &["ci", "--org", "acme"]), token(&place, &["ci", "--org", "acme"]));
    let other = token(&place, &["ops", "--scope", "admin", "--scope", "run:test"]);
    let digits = |token: &NewToken| token.entry["hash"].as_str().unwrap()["sha256:".len()..].to_owned();
    // As somebody writes it by hand.
    let text = format!(
        "{{\n  \"serve\" : {{ \"tokens\": [\n      {},\n      {},\n\n      {}\n  ], \"keep_days\":   30}}\n}}\n",
        old.entry, new.entry, other.entry
    );
    let file = place.path().join("loopctl.json");
    std::fs::write(&file, &text).unwrap();
    let listed = place.call(&["token", "list"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{listed:?}");
    assert!(lines[3].starts_with("ops") && lines[3].contains("admin run:test"), "{listed:?}");
    for token in [&old, &new, &other] {
        assert!(listed.stdout.contains(&digits(token)[..8]) && !listed.stdout.contains(&digits(token)[..16]));
    }
    let rows: Value = serde_json::from_str(&place.call(&["token", "list", "--output", "json"]).stdout).unwrap();
    assert_eq!((&rows[0]["name"], &rows[0]["org"], &rows[0]["expired"]), (&json!("ci"), &json!("acme"), &json!(false)));

    let several = place.call(&["token", "revoke", "ci"]);
    assert_eq!(several.code, 2, "{several:?}");
    assert!(several.stderr.contains("--hash") && several.stderr.contains(&digits(&old)[..8]), "{several:?}");
    assert_eq!(place.call(&["token", "revoke", "cli"]).code, 2);
    assert_eq!(place.call(&["token", "revoke", "ops", "--hash", &digits(&old)[..8]]).code, 2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);

    let one = place.call(&["token", "revoke", "ci", "--hash", &digits(&old)[..8]]);
    assert_eq!(one.code, 0, "{one:?}");
    let left = text.replace(&format!("{},\n      ", old.entry), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), left);
    assert_eq!(place.call(&["token", "revoke", "ci"]).code, 0);
    let before = std::fs::read_to_string(&file).unwrap();
    for which in [&["ops"][..], &["ops", "--hash", &digits(&other)]] {
        let last = place.call(&[&["token", "revoke"], which].concat());
        assert!(last.code == 2 && last.stderr.contains("is the last token"), "{last:?}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    let last = place.call(&["token", "revoke", "ops", "--all"]);
    assert!(last.code == 0 && last.stderr.contains("no token is left"), "{last:?}");
    let empty = std::fs::read_to_string(&file).unwrap();
    assert_eq!(empty, "{\n  \"serve\" : { \"tokens\": [], \"keep_days\":   30}\n}\n");
    assert!(place.call(&["token", "list"]).stderr.contains("no tokens"));
}

#[test]
fn a_token_for_all_organisations_sees_and_cancels_all_runs_and_starts_and_decides_nothing() {
    let place = place(json!({}), &[]);
    let acme = token(&place, &["acme", "--org", "acme", "--scope", "run", "--scope", "read"]);
    let other = token(&place, &["other", "--org", "other", "--scope", "run", "--scope", "read"]);
    let admin = token(&place, &["ops", "--scope", "admin"]);
    let auditor = token(&place, &["auditor", "--org", "*", "--scope", "read"]);
    let scraper = token(&place, &["scraper", "--scope", "metrics"]);
    let server = serve(&place, &[&acme.entry, &other.entry, &admin.entry, &auditor.entry, &scraper.entry]);
    let start = |token: &NewToken| {
        let started = ask(&server, token, "POST", "/agents/execute", &[]).json();
        started["agent_run_id"].as_str().unwrap().to_owned()
    };
    let (one, two) = (start(&acme), start(&other));
    let orgs = |token: &NewToken, more: &[(&str, &str)]| {
        let list = ask(&server, token, "GET", "/agents", more).json();
        let rows = list["agents"].as_array().unwrap().iter();
        rows.map(|row| (row["agent_run_id"].as_str().unwrap().to_owned(), row["org"].clone())).collect::<Vec<_>>()
    };
    for all in [&admin, &auditor] {
        assert_eq!(orgs(all, &[]), [(two.clone(), json!("other")), (one.clone(), json!("acme"))]);
        assert_eq!(orgs(all, &[("x-org-id", "acme")]), [(one.clone(), Value::Null)]);
        for path in ["status", "trace"] {
            let path = format!("/agents/{one}/{path}");
            assert_eq!(ask(&server, all, "GET", &path, &[]).status, 200, "{path}");
            assert_eq!(ask(&server, all, "GET", &path, &[("x-org-id", "other")]).status, 404, "{path}");
        }
        assert_eq!(ask(&server, all, "GET", "/metrics", &[]).status, 200);
        for path in ["/agents/execute".to_owned(), format!("/agents/{one}/resume"), format!("/agents/{one}/rerun")] {
            assert_eq!(ask(&server, all, "POST", &path, &[]).status, 403, "{path}");
        }
    }
    assert_eq!(orgs(&acme, &[]), [(one.clone(), Value::Null)]);
    for path in ["/metrics", "/workers"] {
        assert_eq!(ask(&server, &acme, "GET", path, &[]).status, 403);
        assert_eq!(ask(&server, &scraper, "GET", path, &[]).status, 200);
    }
    assert_eq!(ask(&server, &scraper, "GET", "/agents", &[]).status, 403);
    let cancel = |token: &NewToken| ask(&server, token, "DELETE", &format!("/agents/{one}"), &[]);
    assert_eq!(cancel(&auditor).status, 403);
    assert_eq!(cancel(&admin).json()["status"], "cancelled");
    assert_eq!(ask(&server, &auditor, "GET", &format!("/agents/{one}/events"), &[]).status, 200);
}

#[test]
fn a_token_that_would_be_refused_at_once_or_whose_end_no_calendar_has_is_not_made() {
    let place = place(json!({}), &[]);
    for (time, why) in
        [("0s", "refused at once"), ("0d", "refused at once"), ("36501d", "36500d"), ("5000000d", "36500d")]
    {
        let refused = place.call(&["token", "ci", "--expires-in", time]);
        assert!(refused.code == 2 && refused.stdout.is_empty() && refused.stderr.contains(why), "{refused:?}");
    }
    for scope in ["admin", "metrics"] {
        let refused = place.call(&["token", "ops", "--org", "acme", "--scope", "read", "--scope", scope]);
        assert!(refused.code == 2 && refused.stdout.is_empty(), "{refused:?}");
        assert!(refused.stderr.contains(&format!("the scope {scope} is for all organisations")), "{refused:?}");
    }
    let longest = token(&place, &["ci", "--expires-in", "36500d"]);
    serve(&place, &[&longest.entry]);
}

#[test]
fn the_key_of_a_rerun_is_of_the_organisation_that_the_new_run_gets() {
    let place = place(json!({}), &[]);
    let scopes = ["--scope", "run", "--scope", "read"];
    let acme = token(&place, &[&["acme", "--org", "acme"], &scopes[..]].concat());
    let all = token(&place, &[&["all", "--org", "*"], &scopes[..]].concat());
    let none = token(&place, &[&["none"], &scopes[..]].concat());
    let server = serve(&place, &[&acme.entry, &all.entry, &none.entry]);
    let send = |token: &NewToken, path: &str, org: Option<&str>, body: &str| {
        let bearer = format!("Bearer {}", token.text);
        let mut headers = vec![("authorization", bearer.as_str()), ("idempotency-key", "k")];
        headers.extend(org.map(|org| ("x-org-id", org)));
        server.send("POST", path, &headers, body.as_bytes())
    };
    let first = ask(&server, &acme, "POST", "/agents/execute", &[]).json();
    let rerun = format!("/agents/{}/rerun", first["agent_run_id"].as_str().unwrap());
    let again = send(&all, &rerun, None, "{}").json()["agent_run_id"].clone();
    assert!(again.is_string() && again != first["agent_run_id"], "{again}");
    assert_eq!(send(&all, &rerun, None, "{}").json()["agent_run_id"], again);
    assert_eq!(
        send(&all, &rerun, Some("acme"), "{}").json()["agent_run_id"],
        again,
        "the same request of the same run"
    );
    assert_eq!(send(&acme, &rerun, None, "{}").json()["agent_run_id"], again);
    // The key of another organisation is another one: its runs are not found by it.
    let own = send(&none, "/agents/execute", None, r#"{"loop":"test"}"#);
    assert_eq!((own.status, &own.json()["status"]), (200, &json!("paused")), "{own:?}");
    assert_ne!(own.json()["agent_run_id"], again);
}

#[test]
fn a_rerun_by_command_belongs_to_the_organisation_of_the_earlier_run() {
    let place = place(json!({}), &[]);
    let acme = token(&place, &["acme", "--org", "acme", "--scope", "run", "--scope", "read"]);
    let other = token(&place, &["other", "--org", "other", "--scope", "read"]);
    let server = serve(&place, &[&acme.entry, &other.entry]);
    let run = ask(&server, &acme, "POST", "/agents/execute", &[]).json();
    let ran = place.call(&["rerun", run["agent_run_id"].as_str().unwrap(), "--run-id", "again"]);
    let status = |token: &NewToken| ask(&server, token, "GET", "/agents/again/status", &[]).status;
    assert_eq!((status(&acme), status(&other)), (200, 404), "{ran:?}");
}

#[test]
fn sessions_are_listed_for_one_organisation() {
    let place = place(json!({}), &[]);
    let acme = token(&place, &["acme", "--org", "acme", "--scope", "run", "--scope", "read"]);
    let all = token(&place, &["all", "--org", "*", "--scope", "read"]);
    let server = serve(&place, &[&acme.entry, &all.entry]);
    let bearer = format!("Bearer {}", acme.text);
    let body = json!({ "loop": "test", "session": "ada" }).to_string();
    let run = server.send("POST", "/agents/execute", &[("authorization", &bearer)], body.as_bytes()).json();
    let listed = |more: &[(&str, &str)]| ask(&server, &all, "GET", "/agents?session=ada", more);
    let refused = listed(&[]);
    assert_eq!((refused.status, refused.code()), (400, "bad_request".to_owned()));
    assert!(refused.json()["detail"].as_str().unwrap().contains("X-Org-Id"), "{refused:?}");
    assert_eq!(listed(&[("x-org-id", "acme")]).json()["agents"][0]["agent_run_id"], run["agent_run_id"]);
}

#[test]
fn a_stream_ends_with_the_token_that_reads_it() {
    let place = place(json!({}), &[]);
    let soon = token(&place, &["soon", "--scope", "read", "--expires-in", "1h"]);
    let own = token(&place, &["own", "--scope", "run", "--scope", "decide"]);
    configure(&place, &[&soon.entry, &own.entry]);
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &[], &[("LOOPCTL_CLOCK", &clock)]);
    let run = ask(&server, &own, "POST", "/agents/execute", &[]).json();
    let agent = format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    let mut reader = server.connect();
    let head = format!("host: {}\r\nauthorization: Bearer {}\r\nconnection: close", server.address, soon.text);
    write!(reader, "GET {agent}/events HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
    let seen = until(&mut reader, "\"paused\"");
    assert!(!seen.contains("stream_failed"), "{seen}");
    place.file("clock", (2 * 3_600_000).to_string());
    let rest = String::from_utf8(read_until_closed(&mut reader)).unwrap();
    let last = rest.lines().rfind(|line| line.starts_with("data: ")).expect("a last event");
    assert!(last.contains("\"stream_failed\"") && last.contains("\"token_expired\""), "{rest}");
    assert_eq!(ask(&server, &soon, "GET", &format!("{agent}/events"), &[]).code(), "token_expired");
}

#[test]
fn an_answer_that_waited_longer_than_its_token_shows_nothing_of_the_run() {
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |_, _| Answer::json(&json!({ "done": true })).behind(&held));
    let place = workflows::place(&tools, json!({ "actions": [workflows::act("7", None)], "output": "@input.id" }));
    let soon = token(&place, &["soon", "--scope", "run", "--scope", "read", "--expires-in", "1h"]);
    let own = token(&place, &["own", "--scope", "read"]);
    configure(&place, &[&soon.entry, &own.entry]);
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    let server = Serving::start_with(&place, &[], &[("LOOPCTL_CLOCK", &clock)]);
    let bearer = format!("Bearer {}", soon.text);
    let body = json!({ "input": { "id": "of-the-run" } }).to_string();
    let answer = std::thread::scope(|scope| {
        let path = "/workflows/pay/execute?wait_ms=600000";
        let waits = scope.spawn(|| server.send("POST", path, &[("authorization", &bearer)], body.as_bytes()));
        tools.wait_for(1);
        place.file("clock", (2 * 3_600_000).to_string());
        gate.open();
        waits.join().unwrap()
    });
    assert_eq!((answer.status, answer.code()), (401, "token_expired".to_owned()), "{answer:?}");
    let text = answer.json().to_string();
    assert!(text.contains("was carried out") && !text.contains("of-the-run"), "{text}");
    let runs = ask(&server, &own, "GET", "/agents", &[]).json();
    assert_eq!(runs["agents"][0]["status"], "completed", "{runs:#}");
}

#[test]
fn a_faulty_token_is_said_once_and_not_for_each_document() {
    let place = place(json!({}), &[]);
    place.json("other.json", &crate::common::document(&json!({})));
    let token =
        json!({ "name": "desk", "hash": format!("sha256:{}", "0".repeat(64)), "scopes": ["admin"], "org": "acme" });
    place.json("loopctl.json", &json!({ "serve": { "tokens": [token] } }));
    let refused = place.call(&["serve", ".", "--listen", "127.0.0.1:0", "--store", "memory"]);
    assert_eq!((refused.code, refused.stderr.matches("error[L139]").count()), (2, 1), "{refused:#?}");
}
