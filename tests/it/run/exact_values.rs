//! Dates in conditions, and texts where the schema of an action wants a number or a boolean.

use serde_json::{Value, json};

use crate::common::Place;
use crate::run::workflows::{answer, definition, foreach, place, run, script};

/// The codes of what `check` reports of the document.
fn codes(place: &Place) -> Vec<String> {
    let checked = place.call(&["check", "loop.json", "--format", "json"]).json();
    let found = checked.as_array().or_else(|| checked["diagnostics"].as_array()).cloned().unwrap_or_default();
    found.iter().map(|fault| fault["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn times_are_ordered_in_the_zone_of_the_workflow_and_what_is_none_fails_its_step() {
    let place = place();
    script(&place, json!({ "a": [{ "n": 1 }] }));
    let settings = json!({ "failure_strategy": "continue_on_error", "item_label": "@one.id", "collect_results": true,
        "result_key": "all", "collect": "@a.n" });
    let filter = json!({ "condition": { "and": [
        { "lessThan": [{ "time": "@one.due", "plus": "30d" }, { "now": "-1d" }] },
        { "lessThan": ["@one.due", "2000-01-31T23:30:00Z"] } ] } });
    let steps = json!([{ "type": "a", "filter": filter, "properties": { "id": "@one.id" } }]);
    let actions = json!([foreach("@input.rows", settings, steps)]);
    definition(&place, json!({ "timezone": "Europe/Berlin", "output": "@all", "actions": actions }));
    let row = |id: &str, due: &str| json!({ "id": id, "due": due });
    // Midnight of 2000-02-01 in Berlin is 23:00 of the day before.
    let rows = json!([
        row("R-0", "2000-02-01"),
        row("R-1", "2000-02-02"),
        row("R-2", "31.12.2026"),
        row("R-3", "9000-01-01"),
        row("R-4", "2000-01-31T23:15:00+00:00")
    ]);
    assert_eq!(codes(&place), Vec::<String>::new());
    let (ran, result) = run(&place, json!({ "rows": rows }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let entries = answer(&result).as_array().unwrap().clone();
    let statuses: Vec<&Value> = entries.iter().map(|entry| &entry["status"]).collect();
    assert_eq!(statuses, ["completed", "skipped", "failed", "skipped", "completed"]);
    let why = entries[2]["error"]["message"].as_str().unwrap();
    assert!(why.contains("a time is an RFC 3339 date") && why.contains("\"31.12.2026\""), "{why}");
}

#[test]
fn a_text_is_read_where_the_action_wants_a_number_and_check_agrees_with_the_run() {
    let place = place();
    let parameters = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "on": { "type": "boolean" },
        "lines": { "type": "array", "items": { "type": "object", "properties": { "x": { "type": "number" } } } } } });
    let action = json!([{ "action_name": "take", "kind": "http", "description": "Takes.", "http_method": "POST",
        "url": "https://tools.example.com/take", "parameters": parameters }]);
    place.json("actions/take.json", &action);
    script(&place, json!({ "take": [{ "ok": true }] }));
    // Each value with what it is read as; none where the step fails, which `check` says of what is written out.
    for (number, (name, value, read)) in [
        ("n", json!("7"), Some(json!(7))),
        ("n", json!("-12345678901234567890"), serde_json::from_str("-12345678901234567890").ok()),
        ("n", json!(" 7"), None),
        ("n", json!("7.5"), None),
        ("n", json!(""), None),
        ("on", json!("true"), Some(json!(true))),
        ("lines", json!([{ "x": "1.50" }, { "x": 2 }]), serde_json::from_str(r#"[{"x":1.50},{"x":2}]"#).ok()),
        ("lines", json!([{ "x": "1,5" }]), None),
    ]
    .into_iter()
    .enumerate()
    {
        definition(&place, json!({ "actions": [{ "type": "take", "properties": { name: value } }] }));
        let is_sound = read.is_some();
        assert_eq!(codes(&place), if is_sound { vec![] } else { vec!["L142"] }, "{name} {value}");
        definition(&place, json!({ "actions": [{ "type": "take", "properties": { name: "@input.v" } }] }));
        assert_eq!(codes(&place), Vec::<String>::new(), "{name}: a value of the run");
        place.json("input.json", &json!({ "v": value }));
        let id = format!("r{number}");
        let (ran, result) = place.run(&["--run-id", &id, "--input-file", "input.json"]);
        assert_eq!(ran.code, i32::from(!is_sound), "{name} {value}: {ran:#?}");
        if let Some(read) = read {
            let shown = place.call(&["trace", &id, "--at", "0", "--format", "json"]).json();
            assert_eq!(shown["steps"][0]["input"][name].to_string(), read.to_string(), "{name} {value}");
        } else {
            let why = result["error"]["message"].as_str().unwrap();
            let text = value.as_str().map_or_else(|| "1,5".to_owned(), str::to_owned);
            assert!(why.contains(&format!("is the text \"{text}\"")), "{name} {value}: {why}");
        }
    }
}

#[test]
fn a_null_is_left_out_where_the_input_of_a_step_may_be_and_check_warns_where_it_may_not() {
    let place = place();
    let parameters = |required: Value| {
        json!({ "type": "object", "required": required, "properties": { "until": { "type": "string" },
            "note": { "type": ["string", "null"] }, "at": { "type": "object", "properties": { "n": { "type": "integer" } } } } })
    };
    let action = |required: Value| {
        json!([{ "action_name": "take", "kind": "http", "description": "Takes.", "http_method": "POST",
            "url": "https://tools.example.com/take", "parameters": parameters(required) }])
    };
    let document = |step: Value| {
        let until = json!({ "type": ["string", "null"] });
        let input = json!({ "type": "object", "properties": { "until": until }, "required": ["until"] });
        place.json("loop.json", &json!({ "name": "flow", "input": input, "definition": { "actions": [step] } }));
    };
    script(&place, json!({ "take": [{ "ok": true }] }));
    let given = json!({ "until": "@input.until", "note": "@input.until", "at": { "n": "@input.until" } });
    let guard = json!({ "condition": { "notEqual": ["@input.until", null] } });
    // What is required, the step, what `check` finds, the exit code, and the input of the step.
    for (number, (required, step, found, code, input)) in [
        (json!([]), json!({ "properties": given }), vec![], 0, json!({ "note": null, "at": {} })),
        (json!([]), json!({ "properties": { "until": null } }), vec![], 0, json!({})),
        (json!(["until"]), json!({ "properties": { "until": "@input.until" } }), vec!["L142"], 1, Value::Null),
        (json!(["until"]), json!({ "properties": { "until": null } }), vec!["L142"], 2, Value::Null),
        (json!(["until"]), json!({ "properties": given, "filter": guard }), vec![], 0, Value::Null),
    ]
    .into_iter()
    .enumerate()
    {
        let step = crate::common::with(step, json!({ "type": "take" }));
        place.json("actions/take.json", &action(required));
        document(step.clone());
        assert_eq!(codes(&place), found, "{step}");
        place.json("input.json", &json!({ "until": null }));
        let id = format!("n{number}");
        let ran =
            place.call(&["run", "loop.json", "--run-id", &id, "--input-file", "input.json", "--script", "script.json"]);
        assert_eq!(ran.code, code, "{step}: {ran:#?}");
        if code == 0 && input.is_object() {
            let shown = place.call(&["trace", &id, "--at", "0", "--format", "json"]).json();
            assert_eq!(shown["steps"][0]["input"], input, "{step}");
        }
    }
}
