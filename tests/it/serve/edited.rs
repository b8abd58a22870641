//! A run whose loop the folder has changed since it started.

use serde_json::{Value, json};

use crate::common::{Place, complete, document, think};
use crate::serve::client::{Serving, place};

/// A run that waits, and the next server, whose folder has the loop like this.
fn waiting(edited: &Value) -> (Place, Serving, String) {
    let place =
        place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" })), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    drop(server);
    place.json("loop.json", edited);
    let next = Serving::start(&place, &[]);
    let resume = format!("/agents/{}/resume", run["agent_run_id"].as_str().unwrap());
    (place, next, resume)
}

#[test]
fn a_change_without_meaning_goes_on_and_another_is_refused_until_it_is_said_which_text_counts() {
    let mut described = document(&json!({}));
    described["description"] = json!("Now with a description.");
    let (_place, server, resume) = waiting(&described);
    assert_eq!(server.post(&resume, &json!({ "answer": "y" })).json()["status"], "completed");
    let changed = document(&json!({ "objective": "Something else." }));
    for new_document in [true, false] {
        let (_place, server, resume) = waiting(&changed);
        let refused = server.post(&resume, &json!({ "answer": "y" }));
        assert_eq!((refused.status, refused.code()), (409, "document_changed".to_owned()), "{refused:?}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("\"new_document\": true") && detail.contains("\"new_document\": false"), "{detail}");
        let done = server.post(&resume, &json!({ "answer": "y", "new_document": new_document }));
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
    }
}
