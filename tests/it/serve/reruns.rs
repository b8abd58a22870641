//! Reruns over HTTP, and ids: new ones can be read aloud, and only a whole id names a run.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::{complete, document};
use crate::serve::client::{Serving, place};

fn agent(run: &Value) -> String {
    format!("/agents/{}", run["agent_run_id"].as_str().unwrap())
}

#[test]
fn a_rerun_starts_a_new_run_with_the_same_input() {
    for store in [&[][..], &["--store", "memory"]] {
        let mut with_input = document(&json!({ "objective": "Settle {{input.ticket}}." }));
        with_input["input"] = json!({ "type": "object", "properties": { "ticket": { "type": "string" } } });
        let place = place(json!({}), &[complete(json!("ok"))]);
        place.json("loop.json", &with_input);
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test", "input": { "ticket": "TK-1" } })).json();
        let rerun = format!("{}/rerun", agent(&run));
        let again = server.post(&rerun, &json!({}));
        let body = again.json();
        assert_eq!(
            (again.status, &body["status"], &body["rerun_of"]),
            (200, &json!("completed"), &run["agent_run_id"])
        );
        assert_ne!(body["agent_run_id"], run["agent_run_id"]);
        assert_eq!(body["objective"], "Settle TK-1.", "{body:#}");
        assert_eq!(server.post(&rerun, &json!({ "file": "x" })).code(), "bad_request");
        assert_eq!(server.post("/agents/none/rerun", &json!({})).code(), "no_such_run");
        let key = [("idempotency-key", "k")];
        let keyed = || server.send("POST", &rerun, &key, b"{}").json()["agent_run_id"].clone();
        assert_eq!(keyed(), keyed(), "the same key is the same run");
    }
}

#[test]
fn only_a_whole_id_names_a_run() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    for named in [&id[..id.len() - 1], "last", "last:test", &id.to_uppercase()] {
        assert_eq!(server.get(&format!("/agents/{named}/status")).code(), "no_such_run", "{named}");
        for verb in ["rerun", "retry", "resume"] {
            assert_eq!(server.post(&format!("/agents/{named}/{verb}"), &json!({})).code(), "no_such_run", "{named}");
        }
    }
    assert!(id.starts_with("test-") && id.len() >= "test-".len() + 8, "{id}");
}

#[test]
fn runs_of_one_moment_and_one_input_have_ids_of_their_own() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let start = || {
            let started = || server.execute("?async=true", json!({ "loop": "test" })).json();
            (0..40).map(|_| started()["agent_run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 160, "two starts became one run");
}
