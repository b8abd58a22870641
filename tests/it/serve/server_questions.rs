//! What an MCP server asks in the middle of a call is answered as every form: by its token, by its page, and over HTTP.
#![cfg(unix)]

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::mcp::questions::asking;
use crate::serve::client::Serving;

#[test]
fn a_server_s_question_is_posted_shown_and_answered_as_a_form_and_declined_by_a_no() {
    let place = asking("form");
    place.file("hook.key", "s3cret-of-the-hook\n");
    let project = std::fs::read(place.path().join("loopctl.json")).unwrap();
    let mut project: Value = serde_json::from_slice(&project).unwrap();
    project["model"] = json!("m");
    project["models"] = json!({ "m": { "provider": "script", "script": "script.json" } });
    project["serve"] = json!({ "callback_secret": "file:hook.key" });
    project["allow"]["private_addresses"] = json!(true);
    place.json("loopctl.json", &project);
    let hook = Server::with(|_, _| Answer::json("{}"));
    let server = Serving::start(&place, &["--store", "memory"]);
    let begin = || {
        let run = server.execute("", json!({ "loop": "reader", "callback_url": hook.url() })).json();
        assert_eq!(run["status"], "paused", "{run:#}");
        run["agent_run_id"].as_str().unwrap().to_owned()
    };
    let run = begin();
    hook.wait_for(1);
    let posted = hook.requests()[0].json();
    let step = &posted["payload"]["pause"]["steps"][0];
    assert_eq!((&step["asked_by"]["mcp_server"], &step["at"]), (&json!("notes"), &json!("1.0")), "{posted:#}");
    assert_eq!(step["answer_schema"]["properties"]["account"]["enum"], json!(["ops", "sales"]), "{posted:#}");
    let token = step["answer"]["token"].as_str().unwrap();
    let answer = |data: Value| server.post(&format!("/agents/{run}/answer"), &json!({ "token": token, "data": data }));
    let refused = answer(json!({ "account": "finance" }));
    assert_eq!((refused.status, refused.code().as_str()), (400, "bad_answer"), "{refused:?}");
    assert_eq!(refused.json()["fields"][0]["field"], "account");
    let page = server.get(&format!("/agents/{run}/answer?token={token}"));
    let page = String::from_utf8(page.body).unwrap();
    for words in
        ["The MCP server `notes` asks, before it continues with `questions`: Which account?", "<option value=\"ops\">"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    let taken = answer(json!({ "account": "ops" }));
    assert_eq!(taken.status, 202, "{taken:?}");
    server.events(&run, &[]);
    let status = server.get(&format!("/agents/{run}/status")).json();
    let booked = || std::fs::read_to_string(place.path().join("booked.txt")).unwrap();
    assert_eq!((status["status"].as_str(), booked().as_str()), (Some("completed"), "ops\n"), "{status:#}");
    let run = begin();
    let denied = server.post(&format!("/agents/{run}/resume"), &json!({ "deny": true })).json();
    assert_eq!((denied["status"].as_str(), booked().as_str()), (Some("completed"), "ops\n"), "{denied:#}");
    let trace = server.get(&format!("/agents/{run}/trace")).json().to_string();
    assert!(trace.contains("declined"), "{trace}");
}
