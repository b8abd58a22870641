//! What the project says of how long runs are kept, and backups that are restored.

use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{complete, look, with};
use crate::serve::client::{Serving, place, scripted};

const A_DAY: i64 = 86_400_000;

#[test]
fn runs_are_deleted_by_how_they_ended_and_by_their_loops() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    place.json("nightly.json", &with(crate::common::document(&json!({})), json!({ "name": "nightly" })));
    let retention = json!({ "failed_days": 365, "loops": { "nightly": { "completed_days": 1 } } });
    let serve = json!({ "serve": { "keep_days": 30, "retention": retention } });
    scripted(&place, &[complete(json!("ok"))], serve);
    let start = |day: i64| {
        place.file("clock", (day * A_DAY + 60_000).to_string());
        let clock = place.path().join("clock").to_str().unwrap().to_owned();
        let env = [("LOOPCTL_CLOCK", clock.as_str()), ("LOOPCTL_LOG", "info")];
        Serving::start_logged_with(&place, &["--store", "sqlite:runs.db"], &place.path().join("log"), &env)
    };
    let server = start(0);
    let runs: Vec<String> = ["test", "nightly"]
        .iter()
        .map(|name| server.execute("", json!({ "loop": name })).json()["agent_run_id"].as_str().unwrap().to_owned())
        .collect();
    drop(server);
    for (day, kept, deleted) in [(0, [200, 200], 0), (2, [200, 404], 1), (31, [404, 404], 1)] {
        let server = start(day);
        // The rule of those that were cancelled is the last one.
        let metrics = loop {
            let text = String::from_utf8(server.get("/metrics").body).unwrap();
            if text.contains("loopctl_runs_deleted_total{status=\"cancelled\"} 0") {
                break text;
            }
            crate::common::wait_poll_interval();
        };
        let found: Vec<u16> = runs.iter().map(|run| server.get(&format!("/agents/{run}/status")).status).collect();
        assert_eq!(found, kept, "day {day}");
        assert!(
            metrics.contains(&format!("loopctl_runs_deleted_total{{status=\"completed\"}} {deleted}\n")),
            "{metrics}"
        );
        let log = server.whole_log(&place.path().join("log"));
        assert_eq!(log.contains("deleted runs that ended more than"), deleted > 0, "day {day}: {log}");
    }
}

#[test]
fn a_number_of_days_that_there_is_not_is_an_error_of_check() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    for (retention, words) in [
        (json!({ "completed_days": 0 }), "completed_days"),
        (json!({ "days": 1 }), "days"),
        (json!({ "loops": { "nightly": { "failed_days": 40_000 } } }), "failed_days"),
    ] {
        scripted(&place, &[], json!({ "serve": { "retention": retention } }));
        let ran = place.call(&["check", "loop.json"]);
        assert!(ran.code != 0 && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn a_backup_that_was_made_under_load_is_restored_with_all_that_was_acknowledged_before() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let place = place(json!({}), &[look("a"), look("b"), complete(json!("ok"))]);
    let mut document = crate::common::document(&json!({ "tools": [{ "type": "action", "name": "look" }] }));
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let started: Mutex<Vec<String>> = Mutex::default();
    let start = || {
        let reply = server.execute("?async=true", json!({ "loop": "test" }));
        assert_eq!(reply.status, 202, "{reply:?}");
        started.lock().unwrap().push(reply.json()["agent_run_id"].as_str().unwrap().to_owned());
    };
    start();
    let before: Vec<Vec<String>> = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..12).for_each(|_| start()));
        }
        let backup = |number: usize| {
            let before = started.lock().unwrap().clone();
            let ran = place.call(&["store", "backup", "sqlite:runs.db", &format!("{number}.db")]);
            assert_eq!(ran.code, 0, "{ran:?}");
            before
        };
        (0..3).map(backup).collect()
    });
    drop(server);
    for (number, before) in before.iter().enumerate() {
        // As docs/serve.md says it.
        for name in ["runs.db", "runs.db-wal", "runs.db-shm"] {
            drop(std::fs::remove_file(place.path().join(name)));
        }
        std::fs::rename(place.path().join(format!("{number}.db")), place.path().join("runs.db")).unwrap();
        let sound: String = rusqlite::Connection::open(place.path().join("runs.db"))
            .and_then(|store| store.query_row("PRAGMA integrity_check", (), |row| row.get(0)))
            .unwrap();
        assert_eq!(sound, "ok");
        let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
        assert!(!before.is_empty());
        for run in before {
            assert_eq!(server.settled(run)["status"], "completed", "{number}: {run}");
        }
        let listed: Value = server.get("/agents?limit=200").json();
        let ids: Vec<&str> =
            listed["agents"].as_array().unwrap().iter().map(|run| run["agent_run_id"].as_str().unwrap()).collect();
        let all = started.lock().unwrap();
        assert!(ids.iter().all(|id| all.iter().any(|run| run == id)), "{ids:?}");
    }
}
