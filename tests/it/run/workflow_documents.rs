//! Files of the project as values of a workflow: `doc:NAME`.

use serde_json::{Value, json};

use crate::common::{Place, complete};
use crate::run::workflows::{answer, definition, foreach, place, resume, run, steps};

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
fn a_retry_says_which_files_have_changed_whose_old_values_it_keeps() {
    let place = with_files();
    steps(&place, json!([{ "type": "a", "properties": { "id": "doc:invoices.0.id", "text": "doc:policy" } }]));
    place.json("script.json", &json!({ "replies": [], "tools": { "a": [{ "error": "http 400" }] } }));
    assert_eq!(run(&place, json!({})).0.code, 1);
    place.file("data/invoices.csv", "id,amount\n9,1\n");
    let ran = place.call(&["resume", "r", "--script", "script.json", "--retry-failed"]);
    let said = ran.stderr.matches(" has changed since the run began; it keeps the values that it read").count();
    assert!(said == 1 && ran.stderr.contains("data/invoices.csv has changed"), "{ran:#?}");
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

#[test]
fn a_long_document_has_the_values_that_a_short_one_has() {
    let place = place();
    let note = "x".repeat(300);
    let rows: Vec<Value> =
        (0..400).map(|number| json!({ "id": number.to_string(), "note": format!("{number} {note}") })).collect();
    let csv: String = (0..400).map(|number| format!("{number},{number} {note}\n")).collect();
    place.file("data/rows.csv", format!("id,note\n{csv}"));
    place.json("data/day.json", &json!({ "day": 7, "rows": rows, "few": [1] }));
    place.json("loopctl.json", &json!({ "documents": { "rows": "data/rows.csv", "day": "data/day.json" } }));
    let shown = json!({ "list": "doc:rows", "count": "doc:rows.length", "third": "doc:rows.3.note", "all": "doc:day",
        "inner": "doc:day.rows", "last": "doc:day.rows.399.id", "few": "doc:day.few",
        "text": "{{doc:rows.1.id}}{{#each doc:day.few}}-{{this}}{{/each}}-{{doc:day.rows.2.id}}" });
    let ask = json!({ "id": "ask", "type": "PbotApproval", "filter": { "condition": { "equal": ["@one.id", "7"] } },
        "properties": { "comment": "{{one.note}}", "request_payload": shown } });
    let call = json!({ "id": "call", "type": "a", "properties": { "id": "@one.id" } });
    let settings = json!({ "collect": "@one.id", "collect_results": true, "result_key": "ids" });
    let again = json!([{ "type": "a", "properties": { "id": "@one.id" } }]);
    let mut inner = foreach("doc:day.rows", json!({ "collect_results": true, "result_key": "days" }), again);
    inner["id"] = json!("inner");
    let matcher = json!({ "type": "matcher", "properties": { "left": "doc:rows", "right": "doc:day.rows", "matchOn": ["id"],
        "outputMatched": "pairs" } });
    definition(
        &place,
        json!({ "condition": { "greaterThan": [{ "length": "doc:rows" }, 1] },
            "actions": [foreach("doc:rows", settings, json!([ask, call])), inner, matcher],
            "output": { "ids": "@ids", "days": "@days.length", "first": "@pairs.0.b.id", "pairs": "@pairs.length", "none": "doc:rows.400.id" } }),
    );
    let (ran, paused) = run(&place, json!({}));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let asked = &paused["pause"]["steps"][0];
    assert_eq!(asked["question"], rows[7]["note"], "{asked}");
    let shown = &asked["action_input"];
    assert_eq!((&shown["list"], &shown["inner"], &shown["count"]), (&json!(rows), &json!(rows), &json!(400)));
    assert_eq!(shown["all"].to_string(), json!({ "day": 7, "rows": rows, "few": [1] }).to_string());
    assert_eq!((&shown["third"], &shown["last"], &shown["few"]), (&rows[3]["note"], &json!("399"), &json!([1])));
    assert_eq!(shown["text"], "1-1-2");
    // Another process reads the files from the journal.
    place.file("data/rows.csv", "id,note\n");
    let (ran, result) = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = answer(&result);
    assert_eq!((&answer["ids"][399]["output"], &answer["days"]), (&json!("399"), &json!(400)));
    assert_eq!((&answer["first"], &answer["pairs"], &answer["none"]), (&json!("0"), &json!(400), &Value::Null));
}

#[test]
fn a_result_that_is_longer_than_a_step_gives_is_not_made() {
    let place = place();
    let rows: String = (0..4_000).map(|number| format!("{number},{}\n", "x".repeat(300))).collect();
    place.file("rows.csv", format!("id,note\n{rows}"));
    place.json("loopctl.json", &json!({ "documents": { "rows": "rows.csv" } }));
    let matcher = json!({ "id": "m", "type": "matcher",
        "properties": { "left": "doc:rows", "right": [{ "id": "x" }], "matchOn": ["id"] } });
    definition(&place, json!({ "actions": [matcher] }));
    let (ran, result) = run(&place, json!({}));
    assert_eq!(ran.code, 1, "{ran:#?}");
    let said = result["error"]["message"].as_str().unwrap();
    // As long as the text of `{"matched":[],"unmatchedLeft":[...],"unmatchedRight":[{"id":"x"}]}` would be.
    let entry = |number: usize| json!({ "id": number.to_string(), "note": "x".repeat(300) }).to_string().len() + 1;
    let bytes: usize = (0..4_000).map(entry).sum::<usize>() - 1;
    let bytes = bytes + r#"{"matched":[],"unmatchedLeft":[],"unmatchedRight":[{"id":"x"}]}"#.len();
    assert!(said.contains(&format!("its output has {bytes} bytes, and a step gives at most 1 MiB")), "{said}");
}
