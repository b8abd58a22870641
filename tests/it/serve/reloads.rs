//! A folder that is read again while it is served: all of it or nothing, and what is under way keeps its document.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::{Place, complete, document, think, with};
use crate::serve::client::{Reply, Serving, place, scripted};

pub fn hangup(server: &Serving) {
    kill(Pid::from_raw(i32::try_from(server.pid()).unwrap()), Signal::SIGHUP).unwrap();
}

fn names(server: &Serving, headers: &[(&str, &str)]) -> Vec<String> {
    let loops = server.send("GET", "/loops", headers, b"").json();
    let rows = loops["loops"].as_array().expect("loops").iter();
    rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

/// Waits until something is so.
pub fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        crate::common::wait_poll_interval();
    }
}

fn asking() -> [Value; 2] {
    [think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))]
}

fn token(place: &Place, name: &str) -> (String, Value) {
    let made = place.call(&["token", name, "--scope", "read", "--scope", "run", "--scope", "decide"]);
    let entry = serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON");
    (format!("Bearer {}", made.stdout.trim()), entry)
}

#[test]
fn loops_and_tokens_are_replaced_together_and_a_run_under_way_keeps_its_document() {
    let place = place(json!({}), &asking());
    let ((old, old_entry), (new, new_entry)) = (token(&place, "old"), token(&place, "new"));
    scripted(&place, &asking(), json!({ "serve": { "tokens": [old_entry] } }));
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let send = |bearer: &str, method: &str, path: &str, body: &Value| -> Reply {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        server.send(method, path, &[("authorization", bearer)], body.as_bytes())
    };
    let run = send(&old, "POST", "/agents/execute", &json!({ "loop": "test" })).json();
    let resume = format!("/agents/{}/resume", run["agent_run_id"].as_str().expect("an id"));
    assert_eq!(send(&new, "GET", "/loops", &json!({})).status, 401);

    place.json("loop.json", &document(&json!({ "objective": "Another one." })));
    place.json("more.json", &with(document(&json!({})), json!({ "name": "more" })));
    scripted(&place, &asking(), json!({ "serve": { "tokens": [new_entry] } }));
    hangup(&server);
    until(|| send(&new, "GET", "/loops", &json!({})).status == 200);
    assert_eq!(names(&server, &[("authorization", &new)]), ["more", "test"]);
    assert_eq!(send(&old, "GET", "/loops", &json!({})).code(), "unauthorized");
    assert_eq!(send(&new, "POST", "/agents/execute", &json!({ "loop": "more" })).json()["status"], "paused");
    assert_eq!(send(&new, "POST", &resume, &json!({ "answer": "yes" })).code(), "document_changed");
    let done = send(&new, "POST", &resume, &json!({ "answer": "yes", "new_document": false }));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    assert!(server.get("/readyz").json().get("reload_failed_since").is_none());
}

#[test]
fn a_folder_with_a_fault_is_served_as_it_was_and_that_is_seen() {
    let place = place(json!({}), &asking());
    let (bearer, entry) = token(&place, "ops");
    let serve = || scripted(&place, &asking(), json!({ "serve": { "tokens": [entry] } }));
    serve();
    let log = place.path().join("log");
    let server = Serving::start_logged(&place, &[], &log);
    let own = [("authorization", bearer.as_str())];
    let failed = || server.get("/readyz").json()["reload_failed_since"].is_string();
    let gauge = |value: u8| {
        let text = String::from_utf8(server.send("GET", "/metrics", &own, b"").body).unwrap();
        text.contains(&format!("\nloopctl_reload_failed {value}\n"))
    };
    assert!(!failed() && gauge(0));
    let sound = std::fs::read(place.path().join("loop.json")).unwrap();
    let faults: [(&str, &str); 3] = [
        ("loop.json", r#"{"type": "loop", "properties": {"#),
        ("loopctl.json", r#"{"serve": {"tokens": [{"name": "x", "hash": "1", "scopes": []}]}}"#),
        // Without tokens, everybody could do everything from now on.
        ("loopctl.json", "{}"),
    ];
    for (file, text) in faults {
        place.file(file, text);
        hangup(&server);
        until(failed);
        assert!(gauge(1));
        assert_eq!(server.get("/readyz").status, 200, "the folder before it is served");
        assert_eq!(names(&server, &own), ["test"]);
        assert!(server.send("GET", "/loops", &own, b"").json()["reload_failed_since"].is_string());
        std::fs::write(place.path().join("loop.json"), &sound).unwrap();
        serve();
        hangup(&server);
        until(|| !failed());
        assert!(gauge(0));
    }
    let document: Value = serde_json::from_slice(&sound).unwrap();
    place.json("other.json", &crate::common::with(document, json!({ "name": "other" })));
    hangup(&server);
    until(|| names(&server, &own) == ["other", "test"]);
    std::fs::remove_file(place.path().join("other.json")).unwrap();
    hangup(&server);
    until(|| names(&server, &own) == ["test"]);
    let log = server.whole_log(&log);
    assert_eq!(log.matches("is served as it was").count(), 3, "{log}");
    assert_eq!(log.matches("has no longer, and nothing starts any more: other").count(), 1, "{log}");
}

#[test]
fn a_folder_that_is_watched_is_read_again_when_a_document_changes() {
    let place = place(json!({}), &asking());
    let server = Serving::start(&place, &["--watch"]);
    assert_eq!(names(&server, &[]), ["test"]);
    place.json("more.json", &with(document(&json!({})), json!({ "name": "more" })));
    until(|| names(&server, &[]) == ["more", "test"]);
    std::fs::remove_file(place.path().join("more.json")).unwrap();
    until(|| names(&server, &[]) == ["test"]);
}
