//! What items are called where they are shown, and what is gathered of them.

use serde_json::{Value, json};

use crate::run::workflows::{answer, definition, foreach, place, run, script};

#[test]
fn an_item_is_shown_with_its_label_and_objects_of_paths_are_gathered() {
    let place = place();
    script(&place, json!({ "a": [{ "n": 1 }, { "error": "closed" }, { "n": 3 }, { "n": 4 }] }));
    let settings = json!({ "failure_strategy": "continue_on_error", "item_label": "claim {{one.id}}\n{{one.name}}",
        "collect_results": true, "result_key": "all",
        "collect": { "id": "@one.id", "n": "@made.n", "lost": "@made.lost", "none": "@made.lost?", "place": ["@__index"] } });
    let call = json!({ "id": "call", "type": "a", "properties": { "id": "@one.id" }, "outputKey": "made" });
    let ask = json!({ "id": "ask", "type": "PbotApproval", "properties": { "comment": "Pay?" },
        "filter": { "condition": { "equal": ["@one.id", "C-3"] } } });
    definition(&place, json!({ "output": "@all", "actions": [foreach("@input.items", settings, json!([call, ask]))] }));
    let items = json!([{ "id": "C-0", "name": "<b>Ada</b>" }, { "id": "C-1", "name": "\u{1b}[31m" }, { "id": "C-2" },
        { "id": "C-3", "name": "x".repeat(200) }]);
    let (ran, _) = run(&place, json!({ "items": items }));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let long = format!("claim C-3 {}…", "x".repeat(69));
    assert!(ran.stdout.contains(&format!("\"at\":\"each.3.ask\",\"item_label\":\"{long}\"")), "{ran:#?}");

    let at = |at: &str| -> Value {
        let shown = place.call(&["trace", "r", "--at", at, "--format", "json"]);
        serde_json::from_str(&shown.stdout).unwrap_or_else(|_| panic!("{shown:#?}"))
    };
    let rows = at("each")["items"]["rows"].clone();
    let labels: Vec<&Value> = rows.as_array().unwrap().iter().map(|row| &row["label"]).collect();
    let hidden = json!("claim C-1 \u{1b}[31m");
    assert_eq!(
        labels,
        [&json!("claim C-0 <b>Ada</b>"), &hidden, &Value::Null, &json!(long)],
        "a missing name: no label"
    );
    let item = at("each.0");
    assert_eq!(
        (&item["item_label"], &item["steps"][0]["item_label"]),
        (&json!("claim C-0 <b>Ada</b>"), &json!("claim C-0 <b>Ada</b>"))
    );
    assert_eq!(at("each.3")["questions"][0]["item_label"], json!(long));
    let text = place.call(&["trace", "r", "--at", "each"]).stdout;
    assert!(text.contains("1 (claim C-1 \\u{1B}[31m) failed"), "{text}");
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert!(page.contains("claim C-0 &lt;b&gt;Ada&lt;/b&gt;") && !page.contains("<b>Ada"), "{page}");

    let (ran, result) = crate::run::workflows::resume(&place, &["--approve"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let gathered: Vec<&Value> = answer(&result).as_array().unwrap().iter().map(|entry| &entry["output"]).collect();
    let entry = |id: &str, n: u32, place: u32| json!({ "id": id, "n": n, "lost": null, "place": [place] });
    assert_eq!(gathered, [&entry("C-0", 1, 0), &Value::Null, &entry("C-2", 3, 2), &entry("C-3", 4, 3)]);
    let ended = at("each.3.call");
    assert_eq!(ended["item_label"], json!(long), "an item that has ended has its label still");
}

#[test]
fn what_may_be_missing_is_gathered_of_the_items_that_have_it() {
    let place = place();
    let settings = json!({ "collect_results": true, "result_key": "all", "collect": "@one.note?" });
    let step = json!({ "id": "call", "type": "a", "properties": { "id": "@one.id" } });
    script(&place, json!({ "a": [{ "n": 1 }, { "n": 2 }] }));
    definition(&place, json!({ "output": "@all", "actions": [foreach("@input.items", settings, json!([step]))] }));
    let (ran, result) = run(&place, json!({ "items": [{ "id": 1, "note": "x" }, { "id": 2 }] }));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let rows = answer(&result).as_array().unwrap();
    assert_eq!(
        (&rows[0]["output"], rows[1].get("output"), &rows[1]["index"]),
        (&json!("x"), None, &json!(1)),
        "{rows:?}"
    );
}

#[test]
fn the_error_of_a_loop_names_the_item_that_failed() {
    let place = place();
    script(&place, json!({ "a": [{ "n": 1 }, { "error": "closed" }] }));
    let inner = json!({ "items_path": "@one.list", "item_variable_name": "two", "item_label": "{{one.id}}/{{two}}" });
    let inside = foreach("@one.list", inner, json!([{ "type": "a", "properties": { "of": "@two" } }]));
    let inside = crate::common::with(inside, json!({ "id": "inside" }));
    let settings = json!({ "item_label": "@one.id" });
    definition(&place, json!({ "actions": [foreach("@input.items", settings, json!([inside]))] }));
    let (ran, result) = run(&place, json!({ "items": [{ "id": 7, "list": ["p", "q"] }] }));
    assert_eq!(ran.code, 1, "{ran:#?}");
    let message = result["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("item 0 (7) failed: item 1 (7/q) failed: "), "{result:#}");
    let explained = place.call(&["explain", "r"]).stdout;
    assert!(explained.contains("item 1 (7/q) failed"), "{explained}");
}

#[test]
fn the_failed_items_of_a_run_that_completed_are_shown_with_their_labels_and_run_again() {
    let place = place();
    place.json("loopctl.json", &json!({ "documents": { "rows": "rows.csv" } }));
    place.file("rows.csv", "id,paid\nA-1,yes\nA-2,no\nA-3,no\n");
    script(&place, json!({ "a": [{ "n": 1 }, { "error": "the bank is closed" }, { "n": 3 }] }));
    let settings = json!({ "failure_strategy": "continue_on_error", "item_label": "{{one.id}}",
        "collect_results": true, "result_key": "all" });
    let step = json!({ "id": "call", "type": "a", "properties": { "id": "@one.id" } });
    definition(&place, json!({ "output": "@all", "actions": [foreach("doc:rows", settings, json!([step]))] }));
    let (ran, _) = run(&place, json!({}));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let shown = place.call(&["trace", "r", "--at", "each", "--format", "json"]);
    let rows: Value = serde_json::from_str(&shown.stdout).unwrap();
    let row = &rows["items"]["rows"][1];
    assert_eq!((&row["label"], &row["item"]["id"]), (&json!("A-2"), &json!("A-2")), "{row}");
    let text = place.call(&["trace", "r", "--at", "each"]).stdout;
    assert!(text.contains("\nitem 1 (A-2) failed: ") && text.contains("the bank is closed"), "{text}");
    let explained = place.call(&["explain", "r"]).stdout;
    assert!(explained.contains("item 1 (A-2) failed: ") && explained.contains("retry r"), "{explained}");
    script(&place, json!({ "a": [{ "n": 2 }] }));
    let again = place.call(&["retry", "r", "--script", "script.json"]);
    assert_eq!(again.code, 0, "{again:#?}");
    let explained = place.call(&["explain", "r"]).stdout;
    assert!(!explained.contains("failed") && !explained.contains("retry"), "{explained}");
}
