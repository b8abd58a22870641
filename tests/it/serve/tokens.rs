//! The tokens of a project: their ends, two of one name, their list, and those for all organisations.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Reply, Serving, place, scripted};

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
    let replies = [think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))];
    scripted(place, &replies, json!({ "serve": { "tokens": entries } }));
    Serving::start(place, &[])
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
    let last = place.call(&["token", "revoke", "ops"]);
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
    let server = serve(&place, &[&acme.entry, &other.entry, &admin.entry, &auditor.entry]);
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
    assert_eq!(ask(&server, &acme, "GET", "/metrics", &[]).status, 403);
    let cancel = |token: &NewToken| ask(&server, token, "DELETE", &format!("/agents/{one}"), &[]);
    assert_eq!(cancel(&auditor).status, 403);
    assert_eq!(cancel(&admin).json()["status"], "cancelled");
    assert_eq!(ask(&server, &auditor, "GET", &format!("/agents/{one}/events"), &[]).status, 200);
}
