//! The `matcher` tool: an agent matches two lists, its own or those of the run's input.

use serde_json::{Value, json};

use crate::common::{Place, observed, think, with};

fn matcher(more: Value) -> Value {
    let action = json!({ "action_name": "match", "kind": "matcher", "description": "Matches invoices with payments." });
    with(action, more)
}

fn place(more: Value) -> Place {
    let place = Place::new();
    place.actions(&[matcher(more)], &json!({}));
    place
}

fn invoices() -> Value {
    json!([{ "id": "A", "amount": 100.00 }, { "id": "B", "amount": "40.5" }, { "id": "C", "amount": 7 }])
}

fn payments() -> Value {
    json!([{ "id": "B", "amount": 40.52 }, { "id": "A", "amount": 99 }, { "id": "A", "amount": 100.02 }])
}

#[test]
fn an_agent_gives_both_lists_and_reads_pairs_and_what_is_left() {
    let place = place(json!({ "matchOn": ["id"], "tolerance": 0.02, "outputMatched": "reconciled" }));
    let trace = place.calls(&[think("match", json!({ "left": invoices(), "right": payments() }))]);
    let expected = json!({
        "reconciled": [
            { "a": { "id": "A", "amount": 100.00 }, "b": { "id": "A", "amount": 100.02 } },
            { "a": { "id": "B", "amount": "40.5" }, "b": { "id": "B", "amount": 40.52 } },
        ],
        "unmatchedLeft": [{ "id": "C", "amount": 7 }],
        "unmatchedRight": [{ "id": "A", "amount": 99 }],
    });
    assert_eq!(trace[0]["observation"], expected, "{:#}", trace[0]);
}

#[test]
fn lists_of_the_input_are_taken_where_the_call_gives_none_of_that_name() {
    let place = place(json!({ "left": "@input.invoices", "right": "@input.payments", "matchOn": ["id"] }));
    place.json("input.json", &json!({ "invoices": invoices(), "payments": payments() }));
    let own = json!([{ "id": "C" }]);
    let calls = [
        think("match", json!({})),
        think("match", json!({ "payments": own })),
        think("match", json!({ "right": own.to_string(), "left": own })),
        think("match", json!({ "tolerance": 5000, "matchOn": ["amount"] })),
    ];
    let trace = place.calls_with(&calls, &["--input-file", "input.json"], &[]);
    let counts = |at: usize| {
        let found = &trace[at]["observation"];
        ["matched", "unmatchedLeft", "unmatchedRight"].map(|key| found[key].as_array().expect("a list").len())
    };
    assert_eq!([counts(0), counts(1), counts(2), counts(3)], [[2, 1, 1], [1, 2, 0], [1, 0, 0], [0, 3, 3]]);
    // Without the input, a call that gives no list says what is missing.
    let trace = place.calls(&[think("match", json!({ "invoices": [] }))]);
    assert!(observed(&trace[0]).contains("`right`: `input` has no `payments`"), "{:#}", trace[0]);
}

#[test]
fn wrong_input_is_refused_with_what_is_wrong() {
    let place = place(json!({ "tolerance": 1 }));
    let lists = || json!({ "left": [], "right": [], "matchOn": ["id"] });
    for (more, word) in [
        (json!({ "left": null }), "left"),
        (json!({ "left": "[1" }), "`left` must be a list; a text was given"),
        (json!({ "left": "{\"a\": []}" }), "`left` must be a list; a text was given"),
        (json!({ "left": { "a": [] } }), "left"),
        (json!({ "matchOn": [] }), "matchOn"),
        (json!({ "tolerance": -1 }), "tolerance"),
        (json!({ "tolerance_mode": "percent" }), "tolerance_mode"),
        (json!({ "fuzzyThreshold": 80 }), "`fuzzyThreshold` needs `descriptionKey`"),
        (json!({ "outputMatched": "unmatchedLeft" }), "the same key"),
        (json!({ "tolerence": 1 }), "tolerence"),
        (
            json!({ "left": [{ "id": 1, "amount": "10,00" }], "right": [{ "id": 1, "amount": 10 }] }),
            "no entry on the left has a number in `amount`: the first one has",
        ),
    ] {
        let trace = place.calls(&[think("match", with(lists(), more.clone()))]);
        assert_eq!(trace[0]["success"], false, "{more}: {:#}", trace[0]);
        assert!(observed(&trace[0]).contains(word), "{more}: {:#}", trace[0]);
    }
    // No text of a call is a path or a template.
    place.json("input.json", &json!({ "secret": [{ "id": 1 }] }));
    let call = think("match", with(lists(), json!({ "left": "@input.secret" })));
    let trace = place.calls_with(&[call], &["--input-file", "input.json"], &[]);
    assert!(observed(&trace[0]).contains("a text was given"), "{:#}", trace[0]);
}

#[test]
fn a_threshold_that_is_set_needs_the_field_of_its_texts_from_each_call() {
    let place = place(json!({ "matchOn": ["id"], "fuzzyThreshold": 80 }));
    let lists = json!({ "left": [{ "id": 1, "memo": "Rent May" }], "right": [{ "id": 1, "memo": "rent  may" }] });
    let trace =
        place.calls(&[think("match", with(lists.clone(), json!({ "descriptionKey": "memo" }))), think("match", lists)]);
    assert_eq!(trace[0]["observation"]["matched"].as_array().map(Vec::len), Some(1), "{:#}", trace[0]);
    assert_eq!(trace[1]["success"], false, "{:#}", trace[1]);
    assert!(observed(&trace[1]).contains("descriptionKey"), "{:#}", trace[1]);
}

#[test]
fn a_mode_that_is_set_is_that_of_the_tolerance_of_a_call_and_without_one_amounts_are_the_same() {
    let place = place(json!({ "matchOn": ["id"], "tolerance_mode": "relative" }));
    let lists = json!({ "left": [{ "id": 1, "amount": 100 }], "right": [{ "id": 1, "amount": 98 }] });
    let trace = place.calls(&[
        think("match", with(lists.clone(), json!({ "tolerance": 0.05 }))),
        think("match", with(lists.clone(), json!({ "tolerance": 0.01 }))),
        think("match", with(lists.clone(), json!({ "tolerance": 5, "tolerance_mode": "absolute" }))),
        think("match", lists),
    ]);
    let matched = |call: &Value| call["observation"]["matched"].as_array().expect("a list").len();
    assert_eq!(trace.iter().take(4).map(matched).collect::<Vec<_>>(), [1, 0, 1, 0]);
}

#[test]
fn lists_that_take_too_much_work_end_in_a_sentence() {
    let place = place(json!({ "left": "@input.rows", "right": "@input.rows", "matchOn": ["id"] }));
    let rows: Vec<Value> = vec![json!({ "id": 1 }); 1_500];
    place.json("input.json", &json!({ "rows": rows }));
    let trace = place.calls_with(&[think("match", json!({}))], &["--input-file", "input.json"], &[]);
    assert!(observed(&trace[0]).contains("too large to match"), "{:#}", trace[0]);
}

#[test]
fn settings_that_can_not_be_used_are_refused_before_a_run() {
    let lists_only = json!({ "parameters": { "type": "object", "properties": { "left": { "type": "array" }, "right": { "type": "array" } },
        "required": ["left", "right"] } });
    for (more, word) in [
        (json!({ "matchOn": [] }), "`matchOn` is empty"),
        (json!({ "matchOn": ["id"], "rules": [{}] }), "`rules`"),
        (with(json!({ "matchOn": ["id"], "fuzzyThreshold": 80 }), lists_only.clone()), "`descriptionKey`"),
        (lists_only, "`matchOn`"),
        (json!({ "matchOn": ["id"], "left": "input.rows" }), "a path begins with `@`"),
        (json!({ "matchOn": ["id"], "left": ["orgconfig:key"] }), "secret"),
        (json!({ "matchOn": ["id"], "matchn": 1 }), "matchn"),
    ] {
        let message = place(more.clone()).refused();
        assert!(message.contains(word), "{more}: {message}");
    }
}
