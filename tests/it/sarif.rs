//! What `loopctl check --format sarif` prints matches the standard's own schema, the whole of it: of every
//! kind of fault there is, and of names and texts that were made to forge something.

use std::collections::BTreeSet;
use std::process::Command;

use crate::common::Place;
use loopctl::diagnostic::codes::TABLE;
use serde_json::Value;

/// What is wrong with a log by the standard's schema.
fn faults(log: &Value) -> Vec<String> {
    let mut schema: Value = serde_json::from_str(include_str!("../sarif/sarif-2.1.0.json")).unwrap();
    // One pattern of it (of a language's name, which we do not print) has a bracket that only browsers read.
    for of in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{of}/properties/language")).unwrap();
        assert!(language.as_object_mut().unwrap().remove("pattern").is_some());
    }
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator.iter_errors(log).take(5).map(|fault| format!("{fault} at {}", fault.instance_path())).collect()
}

#[test]
fn the_log_of_every_case_matches_the_whole_schema() {
    // Judging the log of the cases of all rules by the schema takes a library 10 s in a build without optimisation.
    let is_whole = crate::common::is_nightly();
    let folders: &[&str] = if is_whole { &["tests/check", "tests/gallery"] } else { &["tests/gallery"] };
    let output = Command::new(env!("CARGO_BIN_EXE_loopctl"))
        .arg("check")
        .args(folders)
        .args(["--format", "sarif"])
        .env_clear()
        .output()
        .unwrap();
    let log: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(faults(&log), [""; 0]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let rules: BTreeSet<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    // Those of a run's input, and of what can't be a file in a folder, are not among them.
    assert!(!is_whole || rules.len() + 12 > TABLE.len(), "{} of {}: {rules:?}", rules.len(), TABLE.len());
}

#[test]
fn hostile_names_and_texts_make_a_log_that_matches_the_whole_schema() {
    let place = Place::new();
    let text = "{\"type\": \"loop\", \"m\\u000a::error::forged\\u001b[2J\\u202e\": 1, \"properties\": {\"mode\": \"reactt\", \"objective\": \
                \"{{x%20y}}\", \"tools\": [{\"type\": \"action\", \"name\": \"../../../etc/passwd\"}, \"$(rm -rf /)\"]}}";
    for name in [
        "a\n::error::forged.json",
        "b%2e%2e #?.json",
        "\u{e9}\u{202e}nosj.json",
        "-rf.json",
        "c\\..\\d.json",
        "e:f,g.json",
    ] {
        place.file(name, text);
    }
    let ran = place.call(&["check", "--format", "sarif"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (1, 1), "{ran:#?}");
    assert_eq!(faults(&ran.json()), [""; 0]);
    let github = place.call(&["check", "--format", "github"]).stdout;
    let whole = |line: &str| {
        let begin = ["::error file=", "::warning file="].iter().any(|begin| line.starts_with(begin));
        begin && line.contains(",title=L") && line.matches("::").count() >= 2
    };
    assert!(github.lines().count() >= 6 * 3 && github.lines().all(whole), "{github}");
}

#[test]
fn a_log_that_does_not_match_is_seen() {
    let place = Place::new();
    place.file("a.json", "{\"type\": \"loop\"}");
    let mut log = place.call(&["check", "--format", "sarif"]).json();
    assert_eq!(faults(&log), [""; 0]);
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"] = Value::from(0);
    assert!(!faults(&log).is_empty());
    let mut log = place.call(&["check", "--format", "sarif"]).json();
    log["runs"][0]["results"][0]["level"] = Value::from("fatal");
    assert!(!faults(&log).is_empty());
}
