//! Files that are no documents, and inputs that do not fit: exit code 2, one diagnostic, no crash.

use std::process::Stdio;

use serde_json::json;

use crate::common::{Place, complete};

fn refused(place: &Place, args: &[&str]) -> String {
    let ran = place.call(args);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert_eq!(ran.stdout, "");
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran.stderr
}

fn one(place: &Place, text: &[u8]) -> String {
    place.file("loop.json", text);
    let said = refused(place, &["run", "loop.json"]);
    let count = said.matches("error[").count() + said.lines().filter(|line| line.starts_with("error:")).count();
    assert_eq!(count, 1, "one diagnostic:\n{said}");
    said
}

#[test]
fn a_missing_file() {
    assert!(refused(&Place::new(), &["run", "nowhere.json"]).contains("nowhere.json"));
}

#[test]
fn a_folder_instead_of_a_file() {
    refused(&Place::new(), &["run", "."]);
}

#[test]
fn an_empty_file() {
    one(&Place::new(), b"");
}

#[test]
fn a_file_that_is_not_utf_8() {
    one(&Place::new(), b"{\"type\": \"loop\xff\"}");
}

#[test]
fn a_file_that_is_not_json() {
    one(&Place::new(), b"type: loop");
}

#[test]
fn a_document_of_100_000_levels() {
    one(&Place::new(), "[".repeat(100_000).as_bytes());
    one(&Place::new(), "{\"a\":".repeat(100_000).as_bytes());
}

#[test]
fn a_file_of_100_mb_is_refused_unread() {
    let place = Place::new();
    let file = std::fs::File::create(place.path().join("loop.json")).expect("a file");
    file.set_len(100 * 1024 * 1024).expect("it grows");
    refused(&place, &["run", "loop.json"]);
}

#[test]
fn a_pipe_instead_of_a_file_does_not_hang() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.path().join("loop.json")).stdin(Stdio::null()).status();
    if made.is_ok_and(|status| status.success()) {
        refused(&place, &["run", "loop.json"]);
    }
}

#[test]
fn a_missing_input_names_the_flag_that_gives_it() {
    let place = Place::new();
    place.looped(&json!({ "objective": "Look at {{input.ticket}}." })).script(&[complete(json!("ok"))]);
    let said = refused(&place, &["run", "loop.json", "--script", "script.json"]);
    assert!(said.contains("ticket") && said.contains("--input"), "{said}");
}

#[test]
fn an_input_against_its_schema_is_refused_before_the_first_call() {
    let place = Place::new();
    let mut document = crate::common::document(&json!({}));
    document["input"] = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    place.json("loop.json", &document);
    place.script(&[complete(json!("ok"))]);
    let said = refused(&place, &["run", "loop.json", "--script", "script.json", "--input", "n=many"]);
    assert!(said.contains('n'), "{said}");
    refused(&place, &["run", "loop.json", "--script", "script.json"]);
    assert_eq!(place.run(&["--input", "n=3"]).0.code, 0);
}

#[test]
fn a_text_input_that_looks_like_a_number_stays_a_text_when_the_schema_says_so() {
    let place = Place::new();
    let mut document = crate::common::document(&json!({}));
    document["input"] = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
    place.json("loop.json", &document);
    place.script(&[complete(json!("ok"))]);
    assert_eq!(place.run(&["--input", "id=0042"]).0.code, 0);
    assert_eq!(place.run(&["--input", "id=42"]).0.code, 0);
    document["input"]["properties"]["id"] = json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] });
    place.json("loop.json", &document);
    assert_eq!(place.run(&["--input", "id=7"]).0.code, 0);
}

#[test]
fn an_input_file_and_standard_input_are_taken() {
    let place = Place::new();
    place.looped(&json!({ "objective": "Look at {{input.x}}." })).script(&[complete(json!("ok"))]);
    place.file("in.json", r#"{"x": 1}"#);
    assert_eq!(place.run(&["--input-file", "in.json"]).0.code, 0);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--input-file", "-"];
    assert_eq!(place.call_reading(&args, br#"{"x": 1}"#).code, 0);
    assert_eq!(place.call_reading(&args, b"[1]").code, 2);
}

#[test]
fn a_store_that_can_not_be_written_is_reported_before_the_first_call() {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("ok"))]);
    place.file("file", "not a folder");
    for store in ["sqlite:file/runs.db", "sqlite:/proc/nowhere/runs.db", "nothing:here"] {
        refused(&place, &["run", "loop.json", "--script", "script.json", "--store", store]);
    }
}

#[test]
fn a_store_that_is_something_else_is_refused_and_left_as_it_is() {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("ok"))]);
    let other = place.file("other.db", "this is no database, and it stays what it is".repeat(100));
    let before = std::fs::read(&other).expect("it is there");
    refused(&place, &["run", "loop.json", "--script", "script.json", "--store", "sqlite:other.db"]);
    assert_eq!(std::fs::read(&other).expect("it is there"), before);
}

#[test]
fn what_is_not_there_is_recognised_and_refused_plainly() {
    let place = Place::new();
    place.script(&[complete(json!("ok"))]);
    for tool in [json!({ "type": "workflow", "name": "w" }), json!({ "type": "mcp", "server": "s" })] {
        place.looped(&json!({ "tools": [tool] }));
        refused(&place, &["run", "loop.json", "--script", "script.json"]);
    }
}
