//! Questions that a run asks a human, put to the user of a client that can ask: answered in the same call.

use serde_json::{Value, json};

use super::client::StdioClient;
use super::{calling, modern, offer, project, runs};
use crate::common::server::Server;
use crate::common::{Place, complete, think, with};

/// What a client says that can ask its user.
fn asking(more: Value) -> Value {
    let mut params = modern(json!({}));
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
    with(params, more)
}

fn accepted(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

/// A loop that asks, and a workflow with two forms.
fn place() -> Place {
    let place = Place::new();
    let ask = json!({ "question": "Which account?", "options": ["main", "spare"] });
    offer(&place, "asks", &[think("__pause_for_human__", ask), complete(json!("done"))], json!({}));
    project(&place, &["asks"]);
    let form = |id: &str, kind: &str| {
        let fields = json!([{ "name": id, "type": kind }]);
        json!({ "type": "PbotForm", "id": format!("ask_{id}"), "properties": { "question": format!("The {id}?"), "fields": fields } })
    };
    let steps = json!([form("amount", "integer"), form("day", "date")]);
    let output = json!({ "amount": "@amount", "day": "@day" });
    place.json(
        "workflows/claim.json",
        &json!({ "name": "claim", "description": "Claims.", "definition": { "actions": steps, "output": output } }),
    );
    place
}

#[test]
fn the_user_of_a_client_answers_a_loop_and_the_forms_of_a_workflow() {
    let place = place();
    let mut client = StdioClient::start(&place, &[]);
    let asked = client.ask("1", "tools/call", asking(json!({ "name": "asks" })))["result"].clone();
    assert_eq!((&asked["resultType"], asked.get("content")), (&json!("input_required"), None), "{asked}");
    let request = &asked["inputRequests"]["answer"];
    assert_eq!((&request["method"], &request["params"]["mode"]), (&json!("elicitation/create"), &json!("form")));
    assert_eq!(request["params"]["message"], "Which account?");
    let answer = json!({ "type": "string", "description": "offered: main; spare" });
    assert_eq!(request["params"]["requestedSchema"]["properties"], json!({ "answer": answer }));
    let state = asked["requestState"].as_str().unwrap().to_owned();
    let again = |state: &str, responses: Value| {
        asking(json!({ "name": "asks", "requestState": state, "inputResponses": responses }))
    };
    // Nothing is taken that was not asked for, or that is not sealed.
    let responses = json!({ "answer": accepted(json!({ "answer": "main" })) });
    for state in [format!("{state}x"), state.replace('.', ""), String::new()] {
        let refused = client.ask("2", "tools/call", again(&state, responses.clone()));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let other = asking(json!({ "name": "claim", "requestState": state, "inputResponses": responses }));
    assert_eq!(client.ask("3", "tools/call", other)["error"]["code"], -32602);
    let odd = client.ask("4", "tools/call", again(&state, json!({ "answer": 7 })));
    assert_eq!(odd["error"]["code"], -32602, "{odd}");
    let missing = client.ask("5", "tools/call", again(&state, json!({ "other": 7 })))["result"].clone();
    assert_eq!(missing["resultType"], "input_required", "{missing}");
    let declined = client.ask("6", "tools/call", again(&state, json!({ "answer": { "action": "decline" } })));
    assert_eq!(declined["result"]["structuredContent"]["status"], "paused", "{declined}");
    let done = client.ask("7", "tools/call", again(&state, responses.clone()))["result"].clone();
    assert_eq!(
        (&done["resultType"], &done["structuredContent"]["answer"]),
        (&json!("complete"), &json!("done")),
        "{done}"
    );
    // The answer is taken once: the same again returns the run.
    let twice = client.ask("8", "tools/call", again(&state, responses))["result"].clone();
    assert_eq!(twice["structuredContent"], done["structuredContent"], "{twice}");

    let claim = |more: Value| asking(with(json!({ "name": "claim" }), more));
    let first = client.ask("9", "tools/call", claim(json!({})))["result"].clone();
    let schema = &first["inputRequests"]["ask_amount"]["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["amount"]["type"], "integer", "{first}");
    let answer = |asked: &Value, responses: Value| {
        claim(json!({ "requestState": asked["requestState"], "inputResponses": responses }))
    };
    let bad = json!({ "ask_amount": accepted(json!({ "amount": "x" })) });
    let again = client.ask("10", "tools/call", answer(&first, bad))["result"].clone();
    let message = again["inputRequests"]["ask_amount"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("The amount?") && message.contains("`amount`"), "{again}");
    let good = json!({ "ask_amount": accepted(json!({ "amount": 7 })) });
    let second = client.ask("11", "tools/call", answer(&again, good))["result"].clone();
    assert_eq!(second["inputRequests"]["ask_day"]["params"]["requestedSchema"]["properties"]["day"]["format"], "date");
    let day = json!({ "ask_day": accepted(json!({ "day": "2026-02-28" })) });
    let done = client.ask("12", "tools/call", answer(&second, day))["result"]["structuredContent"].clone();
    assert_eq!(done["answer"], json!({ "amount": 7, "day": "2026-02-28" }), "{done}");
    // Clients that can't ask, and those of older revisions, read that the run is paused.
    let plain = client.ask("13", "tools/call", modern(json!({ "name": "asks" })))["result"].clone();
    assert_eq!((&plain["resultType"], &plain["structuredContent"]["status"]), (&json!("complete"), &json!("paused")));
    assert_eq!(client.end(), Vec::<Value>::new());
    assert_eq!(runs(&place).len(), 3);
}

#[test]
fn an_approval_is_not_put_to_the_user_of_a_client() {
    let server = Server::new(Vec::new());
    let place = calling(&server, true);
    let mut client = StdioClient::start(&place, &[]);
    let paused = client.ask("1", "tools/call", asking(json!({ "name": "slow" })))["result"].clone();
    assert_eq!((&paused["resultType"], paused.get("inputRequests")), (&json!("complete"), None), "{paused}");
    assert_eq!(paused["structuredContent"]["pause"]["waits_for"], json!([{ "kind": "approval" }]));
    client.end();
}
