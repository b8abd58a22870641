//! Files of the project as values of a workflow: `doc:NAME`.

use serde_json::{Value, json};

use crate::common::{Place, complete};
use crate::workflows::{answer, definition, foreach, place, resume, run, steps};

/// A place whose project names a CSV file, a JSON file and a text.
fn with_files() -> Place {
    let place = place();
    place.json(
        "loopctl.json",
        &json!({ "documents": { "invoices": "data/invoices.csv", "rates": "data/rates.json", "policy": "policy.md" } }),
    );
    place.file("data/invoices.csv", "id,amount\n007,12.50\n8,3\n");
    place.json("data/rates.json", &json!({ "usd": 1.5 }));
    place.file("policy.md", "Pay late.");
    place
}

fn started(place: &Place, at: &str) -> Value {
    let lines = place.call(&["run", "loop.json", "--script", "script.json", "--output", "ndjson"]);
    let mut events = lines.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let started = events.find(|event| event["event"] == "step_started" && event["at"] == at);
    started.unwrap_or_else(|| panic!("{lines:#?}"))["action_input"].clone()
}

#[test]
fn a_csv_file_is_a_list_of_objects_a_json_file_its_value_and_a_text_a_text() {
    let place = with_files();
    steps(
        &place,
        json!([{ "type": "a", "properties": { "all": "doc:invoices", "first": "doc:invoices.0.id", "usd": "doc:rates.usd",
            "text": "{{doc:policy}} {{#each doc:invoices}}{{this.amount}};{{/each}}", "count": "doc:invoices.length" } }]),
    );
    let input = started(&place, "0");
    assert_eq!(input["all"], json!([{ "id": "007", "amount": "12.50" }, { "id": "8", "amount": "3" }]));
    assert_eq!((&input["first"], &input["usd"], &input["count"]), (&json!("007"), &json!(1.5), &json!(2)));
    assert_eq!(input["text"], "Pay late. 12.50;3;");
}

#[test]
fn documents_are_lists_of_loops_sides_of_matchers_operands_and_outputs() {
    let place = with_files();
    place.file("data/paid.csv", "id,amount\n007,12.50\n");
    place.json("loopctl.json", &json!({ "documents": { "invoices": "data/invoices.csv", "paid": "data/paid.csv" } }));
    let matcher = json!({ "type": "matcher", "properties": { "left": "doc:invoices", "right": "doc:paid", "matchOn": ["id"],
        "tolerance": 0.01, "tolerance_mode": "absolute" } });
    let each = foreach(
        "doc:invoices",
        json!({ "collect_results": true, "result_key": "all", "collect": "@one.id" }),
        json!([{ "type": "a", "properties": { "id": "@one.id" } }]),
    );
    let more = json!({ "greaterThan": [{ "length": "doc:invoices" }, 1] });
    definition(
        &place,
        json!({ "condition": more, "actions": [matcher, each], "output": { "open": "@unmatchedLeft", "ids": "@all", "n": "doc:paid.length" } }),
    );
    let (ran, result) = run(&place, json!({}));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = answer(&result);
    assert_eq!((&answer["open"][0]["id"], &answer["n"]), (&json!("8"), &json!(1)));
    assert_eq!(answer["ids"].as_array().unwrap().iter().map(|item| &item["output"]).collect::<Vec<_>>(), ["007", "8"]);
}

#[test]
fn a_loop_of_a_workflow_reads_a_document_in_its_objective() {
    let place = with_files();
    let step = json!({ "type": "loop", "properties": { "mode": "react", "objective": "Follow this: {{doc:policy}}",
        "tools": [], "result_key": "found" } });
    steps(&place, json!([step]));
    place.json("script.json", &json!({ "replies": [complete(json!("fine"))] }));
    let (ran, _) = run(&place, json!({}));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = place.call(&["trace", "r.0"]).stdout;
    assert!(trace.contains("Follow this: Pay late."), "{trace}");
}

#[test]
fn a_run_reads_a_document_once_and_a_resume_has_the_same_value_though_the_file_has_changed() {
    let place = with_files();
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Go on?" } });
    definition(&place, json!({ "actions": [ask], "output": { "ids": "doc:invoices", "policy": "doc:policy" } }));
    assert_eq!(run(&place, json!({})).0.code, 3);
    place.file("data/invoices.csv", "id,amount\n9,1\n");
    place.file("policy.md", "Never pay.");
    let (ran, result) = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!((&answer(&result)["ids"][0]["id"], &answer(&result)["policy"]), (&json!("007"), &json!("Pay late.")));
}

#[test]
fn a_document_that_can_t_be_read_begins_no_run_and_check_says_so_before() {
    for (file, text, words) in [
        ("data/invoices.csv", &b"id,amount\n1\n"[..], "line 2: the row has 1 values"),
        ("data/invoices.csv", &b""[..], "line 1: it is empty: the first row has the names of the columns"),
        ("data/rates.json", &b"{\n"[..], "line 2: it is not JSON"),
        ("policy.md", &b"\xff\xfe"[..], "it is no text"),
    ] {
        let place = with_files();
        steps(&place, json!([{ "type": "a", "properties": { "x": ["doc:invoices", "doc:rates", "doc:policy"] } }]));
        place.file(file, text);
        for command in [&["check", "loop.json"][..], &["run", "loop.json", "--script", "script.json"][..]] {
            let ran = place.call(command);
            let said = format!("{}{}", ran.stdout, ran.stderr);
            assert!(said.contains("L158") && said.contains(words), "{said}");
        }
    }
    // What lies outside of the project is not read, by whatever way.
    let outside = tempfile::NamedTempFile::new().unwrap();
    let place = with_files();
    steps(&place, json!([{ "type": "a", "properties": { "x": "doc:policy" } }]));
    for path in [outside.path().to_str().unwrap(), "../x.md"] {
        place.json("loopctl.json", &json!({ "documents": { "policy": path } }));
        let ran = place.call(&["check", "loop.json"]);
        assert_eq!(ran.code, 1, "{ran:#?}");
    }
}
