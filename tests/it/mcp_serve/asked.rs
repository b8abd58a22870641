//! Questions that a run asks a human, put to the user of a client that can ask: answered in the same call.

use serde_json::{Value, json};

use super::client::StdioClient;
use super::{calling, modern, offer, project, runs};
use crate::common::server::{Answer, Gate, Server};
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
fn what_one_process_asked_another_one_of_the_store_is_answered() {
    let place = place();
    let mut client = StdioClient::start(&place, &[]);
    let asked = client.ask("1", "tools/call", asking(json!({ "name": "asks" })))["result"].clone();
    client.end();
    let state = asked["requestState"].as_str().unwrap();
    let responses = json!({ "answer": accepted(json!({ "answer": "main" })) });
    let again =
        |state: &str| asking(json!({ "name": "asks", "requestState": state, "inputResponses": responses.clone() }));
    let mut client = StdioClient::start(&place, &[]);
    let forged = format!("{}.{}", state.split_once('.').unwrap().0, "A".repeat(43));
    assert_eq!(client.ask("2", "tools/call", again(&forged))["error"]["code"], -32602);
    let done = client.ask("3", "tools/call", again(state));
    assert_eq!(done["result"]["structuredContent"]["answer"], "done", "{done}");
    client.end();
    let all = runs(&place);
    assert_eq!(all.iter().map(|run| run.1.as_str()).collect::<Vec<_>>(), ["completed"]);
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
    // Another one is not taken, and that is said.
    let other = json!({ "answer": accepted(json!({ "answer": "spare" })) });
    let other = client.ask("8b", "tools/call", again(&state, other))["result"]["structuredContent"].clone();
    let note = other["note"].as_str().unwrap();
    assert!(other["answer"] == "done" && note.contains("\"answer\" was not taken"), "{other}");

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
    let late = json!({ "ask_amount": accepted(json!({ "amount": 8 })) });
    let second = client.ask("11b", "tools/call", answer(&again, late))["result"].clone();
    let message = second["inputRequests"]["ask_day"]["params"]["message"].as_str().unwrap();
    assert!(message.contains("\"ask_amount\" was not taken: the question was answered before"), "{second}");
    let day = json!({ "ask_day": accepted(json!({ "day": "2026-02-28" })) });
    let done = client.ask("12", "tools/call", answer(&second, day))["result"]["structuredContent"].clone();
    assert_eq!(done["answer"], json!({ "amount": 7, "day": "2026-02-28" }), "{done}");
    // Clients that can't ask, and those of older revisions, read that the run is paused.
    let plain = client.ask("13", "tools/call", modern(json!({ "name": "asks" })))["result"].clone();
    assert_eq!((&plain["resultType"], &plain["structuredContent"]["status"]), (&json!("complete"), &json!("paused")));
    assert_eq!(client.end(), Vec::<Value>::new());
    assert_eq!(runs(&place).len(), 3);
}

/// The steps of a workflow that asks one form for each of three items.
fn forms_of_items(place: &Place) {
    let form = json!({ "type": "PbotForm", "id": "q", "properties": { "question": "How many?", "fields": [{ "name": "v", "type": "integer" }] } });
    let each = json!({ "mode": "foreach", "items_path": "@input.all", "item_variable_name": "one", "on_pause": "go_on",
        "actions_to_execute": [form], "collect": "@v", "collect_results": true, "result_key": "all" });
    let steps = json!([{ "type": "loop", "id": "e", "properties": each }]);
    let input = json!({ "type": "object", "properties": { "all": { "type": "array" } }, "required": ["all"] });
    let definition = json!({ "actions": steps, "output": "@all" });
    place.json(
        "workflows/each.json",
        &json!({ "name": "each", "description": "Asks.", "input": input, "definition": definition }),
    );
}

#[test]
fn a_wrong_answer_takes_no_other_one_with_it_and_is_said_of_its_own_question_alone() {
    let place = place();
    forms_of_items(&place);
    let mut client = StdioClient::start(&place, &[]);
    let call = |more: Value| asking(with(json!({ "name": "each", "arguments": { "all": [1, 2, 3] } }), more));
    let asked = client.ask("1", "tools/call", call(json!({})))["result"].clone();
    let keys: Vec<String> = asked["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 3, "{asked}");
    let given = |value: Value| accepted(json!({ "v": value }));
    let answers = |asked: &Value, responses: Value| {
        call(json!({ "requestState": asked["requestState"], "inputResponses": responses }))
    };
    let responses = json!({ &keys[0]: given(json!(1)), &keys[1]: given(json!("bad")), &keys[2]: given(json!(3)) });
    let again = client.ask("2", "tools/call", answers(&asked, responses))["result"].clone();
    let left = again["inputRequests"].as_object().unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), [&keys[1]], "{again}");
    assert!(left[&keys[1]]["params"]["message"].as_str().unwrap().contains("bad"), "{again}");
    // Answers to what the run asked before are not taken; a question that is open still was not answered before.
    let stale = client.ask("2b", "tools/call", answers(&asked, json!({ &keys[1]: given(json!(2)) })))["result"].clone();
    let message = stale["inputRequests"][&keys[1]]["params"]["message"].as_str().unwrap();
    assert!(message.contains("what the run asks has changed since: answer again"), "{stale}");
    // One that is empty is asked again, too.
    let empty = json!({ &keys[1]: { "action": "accept" } });
    let again = client.ask("3", "tools/call", answers(&again, empty))["result"].clone();
    assert!(again["inputRequests"][&keys[1]]["params"]["message"].as_str().unwrap().contains("`v`"), "{again}");
    let last = json!({ &keys[1]: given(json!(2)) });
    let done = client.ask("4", "tools/call", answers(&again, last))["result"]["structuredContent"].clone();
    assert_eq!((&done["status"], done.get("note")), (&json!("completed"), None), "{done}");
    let outputs: Vec<&Value> = done["answer"].as_array().unwrap().iter().map(|item| &item["output"]).collect();
    assert_eq!(outputs, [&json!(1), &json!(2), &json!(3)], "{done}");
    client.end();
}

#[test]
fn an_answer_that_is_sent_again_while_the_run_works_waits_for_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::with(move |_, _| Answer::json("{}").behind(&held));
    let place = calling(&server, false);
    let ask = think("__pause_for_human__", json!({ "question": "Now?" }));
    let replies = [ask, think("look", json!({})), complete(json!("looked"))];
    place.json("slow.script.json", &json!({ "replies": replies }));
    let mut client = StdioClient::start(&place, &[]);
    let asked = client.ask("1", "tools/call", asking(json!({ "name": "slow" })))["result"].clone();
    let responses = json!({ "answer": accepted(json!({ "answer": "yes" })) });
    let again = asking(json!({ "name": "slow", "requestState": asked["requestState"], "inputResponses": responses }));
    client.send("2", "tools/call", again.clone());
    server.wait_for(1);
    client.send("3", "tools/call", again);
    // What comes after it is answered at once, so it is waiting.
    client.ask("4", "tools/list", modern(json!({})));
    gate.open();
    for id in ["2", "3"] {
        let given = client.answer(&json!(id))["result"]["structuredContent"].clone();
        assert_eq!((&given["answer"], given.get("note")), (&json!("looked"), None), "{id}: {given}");
    }
    client.end();
    assert_eq!((server.requests().len(), runs(&place).len()), (1, 1));
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
