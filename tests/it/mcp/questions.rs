//! Servers that ask a human before they continue with a call: the run pauses, and the call is made again with the answer.

use serde_json::{Value, json};

use super::steps::flow;
use super::{looped, notes, pin, read};
use crate::common::{Place, Ran, complete, observed, think};

/// A project with a server of the newest revision, and a loop that calls the tool that asks.
pub fn asking(kind: &str) -> Place {
    let place = notes("newest");
    pin(&place);
    looped(&place, &["questions"], json!({}));
    scripted(&place, kind);
    place
}

/// Writes a script that calls the tool once.
pub fn scripted(place: &Place, kind: &str) {
    let replies = [think("notes.questions", json!({ "kind": kind })), complete(json!("done"))];
    place.json("script.json", &json!({ "replies": replies }));
}

fn call(place: &Place, args: &[&str]) -> Ran {
    place.call(&[args, &["--script", "script.json", "--output", "json"]].concat())
}

fn resume(place: &Place, how: &[&str]) -> Ran {
    call(place, &[&["resume", "r"], how].concat())
}

fn started(place: &Place, document: &str) -> Value {
    let ran = call(place, &["run", document, "--run-id", "r"]);
    assert_eq!((ran.code, ran.json()["termination"].as_str()), (3, Some("human")), "{ran:#?}");
    ran.json()["pause"].clone()
}

#[test]
fn a_server_s_question_is_a_form_and_its_answer_outlives_the_server() {
    let place = asking("form");
    let pause = started(&place, "loop.json");
    let step = &pause["steps"][0];
    assert_eq!(
        (&step["at"], &step["action"], &step["asked_by"]),
        (&json!("1.0"), &json!("notes.questions"), &json!({ "mcp_server": "notes", "tool": "questions" })),
        "{pause}"
    );
    assert_eq!(
        (&step["fields"][0]["type"], &step["fields"][0]["choices"]),
        (&json!("choice"), &json!(["ops", "sales"]))
    );
    assert_eq!(step["answer_schema"]["required"], json!(["account"]));
    let question = "The MCP server `notes` asks, before it continues with `questions`: Which account?";
    assert_eq!((pause["question"].as_str(), step["question"].as_str()), (Some(question), Some(question)));
    let shown = place.call(&["trace", "r"]);
    assert!(shown.stdout.contains(question) && shown.stdout.contains("notes.questions"), "{shown:#?}");
    // What does not fit is asked again, and nothing is sent.
    for (how, why) in [
        (&["--answer", r#"{"account":"finance"}"#][..], "`account`"),
        (&["--answer", "{}"], "`account`: it is required"),
        (&["--answer", r#"{"account":"ops","more":1}"#], "`more`"),
        (&["--approve"], "waits for an answer"),
        (&["--at", "1.1", "--answer", "ops"], "no step waits at `1.1`"),
    ] {
        let refused = resume(&place, how);
        assert!(refused.code == 2 && refused.stderr.contains(why), "{how:?}: {refused:#?}");
    }
    assert_eq!(read(&place, "calls.txt").lines().count(), 1);
    // Another process has another server, which refuses the state of the first one: it is called afresh, asks the same, and is
    // answered of the journal.
    let ran = resume(&place, &["--answer", "ops"]);
    assert_eq!((ran.code, observed(&ran.json()["trace"][0]).as_str()), (0, "booked for ops"), "{ran:#?}");
    let calls = read(&place, "calls.txt");
    let calls: Vec<Value> = calls.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answered: Vec<bool> = calls.iter().map(|call| call["params"].get("inputResponses").is_some()).collect();
    assert_eq!(answered, [false, true, false, true], "{calls:#?}");
    assert_eq!(
        calls[3]["params"]["inputResponses"],
        json!({ "who": { "action": "accept", "content": { "account": "ops" } } })
    );
    let declared = &calls[0]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*declared, json!({ "elicitation": { "form": {}, "url": {} } }));
    assert_eq!(ran.json()["decisions"][0]["decision"], "answer", "{ran:#?}");
    assert_eq!(read(&place, "booked.txt"), "ops\n");
}

#[test]
fn a_no_declines_and_what_is_asked_of_nobody_fails() {
    let place = asking("form");
    started(&place, "loop.json");
    let ran = resume(&place, &["--deny"]);
    assert_eq!((ran.code, observed(&ran.json()["trace"][0]).as_str()), (0, "declined"), "{ran:#?}");
    assert_eq!(read(&place, "booked.txt"), "");

    let place = asking("url");
    let pause = started(&place, "loop.json");
    assert_eq!(pause["steps"][0]["show"]["url"], "https://x.example/a", "{pause}");
    let ran = resume(&place, &["--at", "1.0", "--answer", r#"{"done":false}"#]);
    assert_eq!(observed(&ran.json()["trace"][0]), "declined", "{ran:#?}");

    for (kind, said) in [("sampling", "sampling/createMessage"), ("shed", "not shed")] {
        let place = asking(kind);
        let ran = call(&place, &["run", "loop.json"]);
        assert!(ran.code == 0 && observed(&ran.json()["trace"][0]).contains(said), "{kind}: {ran:#?}");
    }
    // A server that has no end is not asked for one.
    let place = asking("endless");
    started(&place, "loop.json");
    let mut ran = resume(&place, &["--answer", "ops"]);
    let mut rounds = 1;
    while ran.code == 3 && rounds < 20 {
        ran = resume(&place, &["--answer", "ops"]);
        rounds += 1;
    }
    let said = observed(&ran.json()["trace"][0]);
    assert!(rounds == 10 && said.contains("it has asked 10 times"), "{rounds}: {said}");
}

#[test]
fn a_step_s_question_and_that_of_a_run_below_are_answered_the_same_way() {
    let place = asking("form");
    let step =
        json!({ "id": "book", "type": "notes.questions", "properties": { "kind": "form" }, "outputKey": "booked" });
    flow(&place, json!([step]), json!("@booked"));
    let pause = started(&place, "flow.json");
    assert_eq!(
        (&pause["steps"][0]["at"], &pause["steps"][0]["asked_by"]["tool"]),
        (&json!("book"), &json!("questions"))
    );
    let refused = resume(&place, &["--answer", r#"{"account":1}"#]);
    assert!(refused.code == 2 && refused.stderr.contains("`account`"), "{refused:#?}");
    let ran = resume(&place, &["--at", "book", "--answer", r#"{"account":"sales"}"#]);
    assert_eq!(ran.json()["result"]["answer"], "booked for sales", "{ran:#?}");
    flow(&place, json!([step]), json!("@booked"));
    let ran = call(&place, &["run", "flow.json", "--run-id", "no"]);
    assert_eq!(ran.code, 3);
    let ran = call(&place, &["resume", "no", "--deny"]);
    assert_eq!(ran.json()["result"]["answer"], "declined", "{ran:#?}");

    // A loop that a workflow runs.
    let place = asking("form");
    std::fs::create_dir(place.path().join("loops")).unwrap();
    std::fs::rename(place.path().join("loop.json"), place.path().join("loops/reader.json")).unwrap();
    let replies = [think("notes.questions", json!({ "kind": "form" })), complete(json!("done"))];
    place.json("script.json", &json!({ "replies": [], "loops": { "reader": replies } }));
    flow(&place, json!([{ "id": "read", "type": "loop", "name": "reader" }]), json!("@reader.answer"));
    let pause = started(&place, "flow.json");
    assert_eq!(pause["steps"][0]["at"], "read/1.0", "{pause}");
    let refused = resume(&place, &["--answer", r#"{"account":"finance"}"#]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    let ran = resume(&place, &["--answer", r#"{"account":"ops"}"#]);
    assert_eq!(
        (ran.json()["result"]["answer"].as_str(), read(&place, "booked.txt").as_str()),
        (Some("done"), "ops\n"),
        "{ran:#?}"
    );
    let ran = call(&place, &["run", "flow.json", "--run-id", "no"]);
    assert_eq!(ran.code, 3);
    let ran = call(&place, &["resume", "no", "--deny"]);
    assert_eq!((ran.code, read(&place, "booked.txt").as_str()), (0, "ops\n"), "{ran:#?}");
}

#[test]
fn a_scenario_and_a_script_play_a_question() {
    let place = asking("form");
    let before = read(&place, "starts.txt");
    let who = json!({ "method": "elicitation/create", "params": { "message": "Which account?", "requestedSchema": {
        "type": "object", "properties": { "account": { "enum": ["ops", "sales"] } }, "required": ["account"] } } });
    let asks = json!({ "resultType": "input_required", "inputRequests": { "who": who } });
    let tools = json!({ "notes.questions": [asks, "booked"] });
    let replies = json!([think("notes.questions", json!({ "kind": "form" })), complete(json!("done"))]);
    let scenario = |answer: Value, status: &str| {
        json!({ "name": answer.to_string(), "replies": replies, "tools": tools, "decisions": [answer],
            "expect": { "status": status, "calls": [{ "action": "notes.questions" }] } })
    };
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "scenarios": [scenario(json!({ "answer": { "account": "ops" } }), "completed"),
            scenario(json!({ "for": "notes.questions", "deny": "" }), "completed")] }),
    );
    // A crash behind the question does not ask it again.
    let played = place.call(&["test", "loop.test.json", "--crash"]);
    assert_eq!(played.code, 0, "{played:#?}");
    place.json("script.json", &json!({ "replies": replies, "tools": tools }));
    started(&place, "loop.json");
    let ran = resume(&place, &["--answer", "sales"]);
    assert_eq!((ran.code, observed(&ran.json()["trace"][0]).as_str()), (0, "booked"), "{ran:#?}");
    assert_eq!(read(&place, "starts.txt"), before);
}
