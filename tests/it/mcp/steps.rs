//! Steps of workflows whose type is a tool of a server.

use serde_json::{Value, json};

use super::{notes, pin, project, read, relocked};
use crate::common::{Place, Ran};

/// A workflow of these steps.
pub fn flow(place: &Place, steps: Value, output: Value) {
    place.json("flow.json", &json!({ "name": "notes", "definition": { "actions": steps, "output": output } }));
}

fn step(kind: &str, properties: Value) -> Value {
    json!({ "type": kind, "properties": properties })
}

fn pinned() -> Place {
    let place = notes("legacy");
    pin(&place);
    place
}

fn start(place: &Place, more: &[&str]) -> Ran {
    let args = ["run", "flow.json", "--run-id", "r", "--output", "json", "--input", r#"{"path":"a"}"#];
    place.call(&[&args[..], more].concat())
}

/// Checks the workflow of a step, or of a list of them, and returns the report.
fn checked(place: &Place, step: Value, output: Value) -> String {
    flow(place, if step.is_array() { step } else { json!([step]) }, output);
    let checked = place.call(&["check", "flow.json"]);
    format!("{}{}", checked.stdout, checked.stderr)
}

#[test]
fn a_step_calls_a_tool_and_later_steps_name_what_it_gives() {
    let place = pinned();
    let inner = json!({ "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.all", "item_variable_name": "one",
        "collect_results": true, "result_key": "each", "actions_to_execute": [step("notes.read", json!({ "path": "@one" }))] } });
    let counts = json!({ "type": "notes.counts", "id": "count", "outputKey": "counted" });
    let steps = json!([step("notes.read", json!({ "path": "@input.path" })), counts,
        { "type": "notes.numbers", "filter": { "condition": { "greaterThan": ["@counted.n", 7] } } }, inner]);
    flow(&place, steps, json!({ "text": "@read", "n": "@counted.n", "each": "@each" }));
    let checked = place.call(&["check", "flow.json"]);
    assert_eq!(checked.code, 0, "{checked:#?}");
    assert!(checked.stderr.contains("no errors or warnings"), "{checked:#?}");
    let ran = place.call(&[
        "run",
        "flow.json",
        "--run-id",
        "r",
        "--output",
        "json",
        "--input",
        r#"{"path":"a","all":["b","c"]}"#,
    ]);
    let answer = &ran.json()["result"]["answer"];
    assert_eq!((&answer["text"], &answer["n"]), (&json!("a note"), &json!(7)), "{ran:#?}");
    assert_eq!(answer["each"][1]["output"], "a note", "{ran:#?}");
    // One process serves the run; the step whose filter does not hold sent nothing.
    assert_eq!(read(&place, "calls.txt").lines().count(), 4);
    assert!(!read(&place, "calls.txt").contains("numbers"));
    let shown = place.call(&["trace", "r"]);
    assert!(shown.stdout.contains("notes.read") && shown.stdout.contains("notes.counts"), "{shown:#?}");
    // A script answers in the place of the server, and so does a scenario.
    let before = read(&place, "starts.txt");
    let tools = json!({ "notes.read": ["played"], "notes.counts": [{ "n": 9 }], "notes.numbers": [{}] });
    place.json("script.json", &json!({ "replies": [], "tools": tools }));
    let ran = place.call(&[
        "run",
        "flow.json",
        "--output",
        "json",
        "--script",
        "script.json",
        "--input",
        r#"{"path":"a","all":[]}"#,
    ]);
    assert_eq!(ran.json()["result"]["answer"]["n"], 9, "{ran:#?}");
    place.json(
        "flow.test.json",
        &json!({ "document": "flow.json", "scenarios": [{ "name": "counts", "input": { "path": "a", "all": [] }, "tools": tools,
            "expect": { "status": "completed", "calls": [{ "action": "notes.read", "success": true }, { "action": "notes.numbers" }] } }] }),
    );
    let played = place.call(&["test", "flow.test.json"]);
    assert_eq!(played.code, 0, "{played:#?}");
    assert_eq!(read(&place, "starts.txt"), before);
}

#[test]
fn what_a_step_gives_a_tool_and_takes_of_it_is_checked_without_the_server() {
    let place = pinned();
    let before = read(&place, "starts.txt");
    let sound = step("notes.read", json!({ "path": "@input.path" }));
    for (step, output, said) in [
        (step("notes.raed", json!({ "path": "a" })), json!("@raed"), "the nearest name is `read`"),
        (step("nots.read", json!({ "path": "a" })), json!("@read"), "the nearest one is `notes`"),
        (step("notes.hologram", json!({})), json!(1), "loopctl mcp pin notes"),
        (step("notes.read", json!({})), json!("@read"), "needs the input `path`"),
        (step("notes.read", json!({ "path": 7 })), json!("@read"), "the input of the tool `notes.read`"),
        (step("notes.read", json!({ "path": "a", "paht": "b" })), json!("@read"), "never uses `paht`"),
        (
            json!([step("notes.counts", json!({})), step("notes.counts", json!({ "least": "@counts" }))]),
            json!("@counts"),
            "`least` of the tool `notes.counts` is a number, and `@counts` is an object",
        ),
        (step("notes.counts", json!({})), json!("@counts.m"), "it has `n`"),
        (step("notes.counts", json!({})), json!("@cuonts.n"), "@counts"),
        (
            json!({ "type": "notes.read", "properties": { "path": "a" }, "retry": { "attempts": 3 } }),
            json!("@read"),
            "the tool `notes.read` may not be repeated",
        ),
        (step("notes.wipes", json!({})), json!("@wipes"), "each call waits for a human"),
    ] {
        let report = checked(&place, step.clone(), output);
        assert!(report.contains(said), "{step}: {report}");
    }
    // The twins.
    for (step, output) in [
        (sound.clone(), json!("@read")),
        (step("notes.counts", json!({ "least": "7" })), json!("@counts.n")),
        (json!({ "type": "notes.numbers" }), json!("@numbers")),
    ] {
        let report = checked(&place, step.clone(), output);
        assert!(report.contains("no errors or warnings"), "{step}: {report}");
    }
    // What models see is the name: another one is wanted where the project has given one.
    project(&place, "legacy", json!({ "tools": { "read": { "name": "look" } } }));
    let report = checked(&place, sound, json!("@read"));
    assert!(report.contains("notes.look"), "{report}");
    assert_eq!(read(&place, "starts.txt"), before);
    // An action of the same name keeps its meaning, and needs no server.
    std::fs::remove_file(place.path().join("mcp.lock.json")).unwrap();
    let action = json!({ "action_name": "notes.read", "kind": "command", "description": "Prints.", "program": "sh",
        "args": ["-c", "echo own"], "parameters": { "type": "object" } });
    place.json("actions/own.json", &action);
    flow(&place, json!([{ "type": "notes.read", "outputKey": "own" }]), json!("@own"));
    assert_eq!(start(&place, &[]).json()["result"]["answer"], "own");
}

#[test]
fn a_step_waits_for_the_approval_of_its_tool_and_fails_as_its_call_does() {
    let place = pinned();
    flow(&place, json!([step("notes.wipes", json!({}))]), json!("@wipes"));
    let ran = start(&place, &[]);
    assert_eq!((ran.code, ran.json()["termination"].as_str()), (3, Some("approval")), "{ran:#?}");
    assert_eq!(read(&place, "calls.txt"), "");
    let ran = place.call(&["resume", "r", "--approve", "--output", "json"]);
    assert_eq!(ran.json()["result"]["answer"], "wiped", "{ran:#?}");
    let failed = json!([step("notes.errs", json!({}))]);
    let handled = json!({ "name": "notes", "definition": { "actions": failed,
        "on_failure": [step("notes.read", json!({ "path": "{{__error.code}}" }))], "output": 1 } });
    place.json("flow.json", &handled);
    let ran = place.call(&["run", "flow.json", "--output", "json"]);
    let error = &ran.json()["steps"][0]["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!("call_failed"), &json!("server notes: `errs` failed")));
    assert!(error["answer"].as_str().unwrap().contains("no such note"), "{ran:#?}");
    assert!(read(&place, "calls.txt").lines().last().unwrap().contains("call_failed"));
    // Nothing of a call is sent to a tool that has changed, and an answer that is lost is said to be.
    relocked(&place, "changed");
    project(&place, "changed", json!({}));
    flow(&place, json!([step("notes.read", json!({ "path": "a" }))]), json!("@read"));
    let ran = place.call(&["run", "flow.json", "--output", "json"]);
    assert!(
        ran.json()["error"]["message"].as_str().unwrap().contains("changed since it was pinned: input"),
        "{ran:#?}"
    );
    assert_eq!(read(&place, "calls.txt").lines().count(), 3);
    relocked(&place, "legacy");
    let pauses = json!({ "on_uncertain": "pause" });
    project(&place, "legacy", json!({ "tools": { "dies": pauses, "counts": pauses } }));
    flow(&place, json!([step("notes.dies", json!({}))]), json!("@dies"));
    let ran = place.call(&["run", "flow.json", "--run-id", "d", "--output", "json"]);
    assert_eq!((ran.code, ran.json()["termination"].as_str()), (3, Some("uncertain")), "{ran:#?}");
    let ran = place.call(&["resume", "d", "--happened", "7", "--output", "json"]);
    assert_eq!(ran.json()["result"]["answer"], 7, "{ran:#?}");
    // What its output schema does not describe is no output: later steps name its parts.
    flow(&place, json!([step("notes.counts", json!({ "least": 99 }))]), json!("@counts.n"));
    let ran = place.call(&["run", "flow.json", "--run-id", "c", "--output", "json"]);
    let pause = ran.json();
    assert_eq!((ran.code, &pause["termination"]), (3, &json!("uncertain")), "{ran:#?}");
    assert!(pause.to_string().contains("is not what its pinned output schema describes"), "{pause:#}");
    let ran = place.call(&["resume", "c", "--happened", r#"{"n":7}"#, "--output", "json"]);
    assert_eq!(ran.json()["result"]["answer"], 7, "{ran:#?}");
}

#[test]
fn a_run_keeps_the_tools_of_its_steps() {
    let place = pinned();
    project(&place, "legacy", json!({ "tools": { "read": { "requires_approval": true } } }));
    flow(&place, json!([step("notes.read", json!({ "path": "a" }))]), json!("@read"));
    assert_eq!(start(&place, &[]).code, 3);
    project(&place, "legacy", json!({}));
    let resumed = place.call(&["resume", "r", "--approve", "--output", "json"]);
    assert_eq!(resumed.code, 2, "{resumed:#?}");
    assert!(resumed.stderr.contains("MCP tool notes/read has changed since the run began"), "{resumed:#?}");
    let resumed = place.call(&["resume", "r", "--approve", "--recorded-document", "--output", "json"]);
    assert_eq!(resumed.json()["result"]["answer"], "a note", "{resumed:#?}");
    for gone in ["mcp.lock.json", "loopctl.json"] {
        std::fs::remove_file(place.path().join(gone)).unwrap();
        let shown = place.call(&["trace", "r"]);
        assert!(shown.code == 0 && shown.stdout.contains("notes.read"), "{gone}: {shown:#?}");
    }
}

#[test]
fn a_played_result_is_held_against_the_pinned_schema_as_one_of_the_server_is() {
    let place = pinned();
    flow(&place, json!([step("notes.counts", json!({}))]), json!("@counts"));
    for (given, status) in [(json!({ "n": 9 }), "completed"), (json!({ "m": 9 }), "failed"), (json!("9"), "failed")] {
        let scenario = json!({ "name": "counts", "input": {}, "tools": { "notes.counts": [given] },
            "expect": { "status": status } });
        place.json("flow.test.json", &json!({ "document": "flow.json", "scenarios": [scenario] }));
        let played = place.call(&["test", "flow.test.json"]);
        assert_eq!(played.code, 0, "{given}: {played:#?}");
    }
}
