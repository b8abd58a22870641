//! Each text of a recording is hidden under its name, and what holds no secret stays.

use serde_json::{Value, json};

use super::{HiddenCount, hide, shown};
use crate::language::recording::Recording;
use crate::trace::Redaction;

const TOKEN: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";

fn recording(input: &Value, entries: &Value) -> Recording {
    let recording = json!({"recording": 1, "document": "d", "loop": "l", "now": "2026-01-01T00:00:00Z",
                           "input": input, "entries": entries});
    serde_json::from_value(recording).unwrap()
}

/// The recording as it is written, and what was hidden.
fn hidden(input: &Value, entries: &Value) -> (Value, HiddenCount) {
    let mut recording = recording(input, entries);
    let count = hide(&mut recording, &Redaction::new(&["iban".to_owned()]));
    (serde_json::to_value(recording).unwrap(), count)
}

/// What becomes of a value in the input of a run.
fn input(value: &Value) -> (Value, HiddenCount) {
    let (recording, count) = hidden(value, &json!([]));
    (recording.get("input").cloned().unwrap_or_default(), count)
}

fn counted(names: &[(&str, usize)]) -> HiddenCount {
    let hidden = names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    HiddenCount { hidden, doubtful: Vec::new() }
}

#[test]
fn a_secret_is_hidden_in_each_text_that_a_run_brought_in() {
    let ask = |more: Value| json!({"ask": {"loop": "l", "request": 1}, "reply": more});
    let said = json!([{"id": "1", "name": TOKEN, "arguments": format!("{{\"a\":\"{TOKEN}\"}}")}]);
    let entries = json!([
        ask(json!({"text": TOKEN, "reasoning": TOKEN, "calls": said})),
        {"ask": {"loop": "l", "request": 2}, "failed": {"code": "http", "message": TOKEN}},
        {"call": {"at": "1.0", "action": "a", "input": {"iban": 7}}, "gave": [TOKEN]},
        {"call": {"at": "2.0", "action": "a"}, "failed": {"class": TOKEN, "detail": TOKEN, "answer": TOKEN}},
        {"decision": {"answer": TOKEN, "deny": TOKEN, "edit": {"note": TOKEN}}},
        {"decision": {"happened": {"state": TOKEN}}},
        {"decision": {"fail": TOKEN}},
    ]);
    let (recording, count) = hidden(&json!({"note": TOKEN}), &entries);
    let written = recording.to_string();
    assert!(!written.contains("ghp_") && !written.contains("iban\":7"), "{written}");
    let names = [
        "a",
        "answer",
        "arguments",
        "class",
        "deny",
        "detail",
        "fail",
        "gave",
        "iban",
        "message",
        "name",
        "note",
        "reasoning",
        "state",
        "text",
    ];
    for name in names.iter().filter(|name| **name != "arguments") {
        assert!(written.contains(&format!("[hidden:{name}]")), "{name}: {written}");
        assert!(count.hidden.contains_key(*name), "{name}: {count:?}");
    }
    assert_eq!((count.total(), count.hidden.get("note"), count.hidden.get("answer")), (16, Some(&2), Some(&2)));
    assert_eq!(count.doubtful, Vec::<String>::new());
}

#[test]
fn what_holds_no_secret_stays_as_it_was_written() {
    let entries = json!([
        {"ask": {"loop": "l", "request": 1},
         "reply": {"text": "{\"a\" : 1.0}", "raw": {"origin": "o", "sealed": "[ {\"thinking\": \"t\"} ]"}}},
        {"call": {"at": "1.0", "action": "a", "input": {"n": 1}}, "gave": null},
        {"decision": {"approve": true, "edit": {"n": [1, "[hidden]"]}}},
    ]);
    let input = json!({"text": "[hidden:name] and [hidden]", "more": {"password": "[hidden:password]"}});
    let (written, count) = hidden(&input, &entries);
    assert_eq!(written, serde_json::to_value(recording(&input, &entries)).unwrap());
    assert_eq!((count.total(), count), (0, HiddenCount::default()));
}

#[test]
fn reasoning_for_its_provider_is_left_out_when_it_holds_a_secret() {
    let sealed = format!("[{{\"thinking\":\"use {TOKEN}\",\"signature\":\"s\"}}]");
    let entries = json!([{"ask": {"loop": "l", "request": 1},
                          "reply": {"text": "t", "raw": {"origin": "o", "sealed": sealed}}}]);
    let (written, count) = hidden(&Value::Null, &entries);
    assert_eq!(written.pointer("/entries/0/reply"), Some(&json!({"text": "t"})));
    assert_eq!(count, counted(&[("raw", 1)]));
}

#[test]
fn what_was_hidden_has_the_name_of_its_nearest_field() {
    for (value, expected, names) in [
        (json!({"password": "p"}), json!({"password": "[hidden:password]"}), vec![("password", 1)]),
        (json!({"iban": 7}), json!({"iban": "[hidden:iban]"}), vec![("iban", 1)]),
        (json!({"iban": [1, {"b": 2}]}), json!({"iban": "[hidden:iban]"}), vec![("iban", 1)]),
        (
            json!({"a": [["x", TOKEN], format!("{TOKEN}, {TOKEN}")]}),
            json!({"a": [["x", "[hidden:a]"], "[hidden:a], [hidden:a]"]}),
            vec![("a", 3)],
        ),
        (
            json!({"note é\n!": format!("{TOKEN} [hidden] [hidden:old]")}),
            json!({"note é\n!": "[hidden:note____] [hidden:note____] [hidden:old]"}),
            vec![("note____", 1)],
        ),
        (
            json!({"x".repeat(41): TOKEN}),
            json!({"x".repeat(41): format!("[hidden:{}]", "x".repeat(40))}),
            vec![("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 1)],
        ),
        (
            json!({"json": format!("{{\"list\": [\"{TOKEN}\"]}}")}),
            json!({"json": "{\"list\":[\"[hidden:json]\"]}"}),
            vec![("json", 1)],
        ),
    ] {
        let (written, count) = input(&value);
        assert_eq!((written, count), (expected, counted(&names)), "{value}");
    }
}

#[test]
fn a_text_that_holds_json_names_its_fields() {
    let text = format!("{{\"list\": [1, \"{TOKEN}\"], \"password\": \"p\", \"kept\": 1.50}}");
    let entries = json!([{"ask": {"loop": "l", "request": 1}, "reply": {"text": text}}]);
    let (written, count) = hidden(&Value::Null, &entries);
    let expected = "{\"list\":[1,\"[hidden:list]\"],\"password\":\"[hidden:password]\",\"kept\":1.50}";
    assert_eq!(written.pointer("/entries/0/reply/text"), Some(&json!(expected)));
    assert_eq!(count, counted(&[("list", 1), ("password", 1)]));
    assert_eq!(shown(&text, &Redaction::default()), expected);
    assert_eq!(shown("[1, 2]", &Redaction::default()), "[1, 2]");
}

#[test]
fn words_that_look_like_a_key_are_reported_once_and_stay() {
    let doubtful = "Aa0-_+6789abcdefghijklmn";
    assert_eq!(doubtful.len(), 24);
    let (written, count) = input(&json!([format!("{doubtful}é, {doubtful}"), doubtful]));
    assert_eq!(written, json!([format!("{doubtful}é, {doubtful}"), doubtful]));
    assert_eq!(count, HiddenCount { doubtful: vec!["Aa0-_+…".to_owned()], ..HiddenCount::default() });
    let (_, count) = input(&json!(format!("{TOKEN} {doubtful}")));
    assert_eq!((count.total(), count.doubtful.len()), (1, 1));
    for plain in [
        "Aa0-_+6789abcdefghijklm",
        "aa0-_+6789abcdefghijklmn",
        "AA0-_+6789ABCDEFGHIJKLMN",
        "Aaabcdefghijklmnopqrstuvwx",
    ] {
        assert_eq!(input(&json!(plain)).1, HiddenCount::default(), "{plain}");
    }
}
