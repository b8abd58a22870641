//! `loopctl test --coverage`: what a document can come to is counted, and nothing else is.

use serde_json::{Value, json};

use super::{answer, folder, golden, lookup, loopctl, path, stderr, stdout};

/// The coverage of the scenarios in a folder.
fn coverage(folder: &tempfile::TempDir) -> Value {
    let tested = loopctl(&["test", &path(folder), "--coverage", "--report", "json=-"]);
    let report: Value = serde_json::from_str(&stdout(&tested)).unwrap_or_else(|_| panic!("{}", stderr(&tested)));
    report.get("coverage").cloned().unwrap_or_default()
}

/// What is missing in the documents, in a line each.
fn missing(coverage: &Value) -> Vec<String> {
    let documents = coverage["documents"].as_array().unwrap().iter();
    let all = documents.flat_map(|document| document["missing"].as_array().unwrap());
    all.map(|missing| missing["message"].as_str().unwrap().to_owned()).collect()
}

/// A loop with an approval, a condition in its objective, and few endings.
fn approving() -> Value {
    json!({"type": "loop", "name": "orders",
           "input": {"type": "object", "properties": {"urgent": {"type": "boolean"}}},
           "properties": {"mode": "react", "objective": "Settle it{{#if input.urgent}} now{{/if}}.", "max_iterations": 2,
                          "builtins": [], "on_limit": "answer",
                          "tools": [{"type": "action", "name": "lookup", "requires_approval": true}]}})
}

fn look() -> Value {
    json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "A-1"}})
}

fn tested(scenarios: Value) -> tempfile::TempDir {
    let file = json!({"document": "loop.json", "scenarios": scenarios, "tools": {"lookup": [{"state": "late"}]}});
    folder(&[("loop.json", approving()), ("actions/lookup.json", lookup()), ("loop.test.json", file)])
}

#[test]
fn what_no_scenario_comes_to_is_listed_and_each_scenario_takes_its_points_away() {
    let plain = json!({"name": "plain", "replies": [answer("x")], "expect": {"answer": "x"}});
    let first = coverage(&tested(json!([plain])));
    assert_eq!(
        missing(&first),
        [
            "no scenario ends or waits by `model_error`",
            "in no scenario the condition `input.urgent` is true",
            "no scenario ends or waits by `forced_answer`",
            "no scenario ends or waits by `approval`",
            "no call of the tool `lookup` succeeds, fails, is approved or is denied",
        ]
    );
    let approve = json!([{"approve": true}]);
    let all = json!([
        plain,
        {"name": "urgent, and the limit", "input": {"urgent": true}, "replies": [look(), look(), answer("late")],
         "decisions": [{"approve": true}, {"deny": "No."}], "expect": {"termination": "forced_answer"}},
        {"name": "the lookup fails", "replies": [look(), answer("x")], "decisions": approve,
         "tools": {"lookup": [{"error": "http 503"}]}, "expect": {"answer": "x"}},
        {"name": "no model", "replies": [{"http": 401}], "expect": {"termination": "model_error"}},
    ]);
    let full = coverage(&tested(all));
    assert_eq!((&full["percent"], missing(&full)), (&json!(100), Vec::new()));
    assert_eq!(full["points"], first["points"]);
}

#[test]
fn a_minimum_fails_only_below_it() {
    let folder = tested(json!([{"name": "plain", "replies": [answer("x")], "expect": {"answer": "x"}}]));
    let percent = coverage(&folder)["percent"].as_u64().unwrap();
    let code = |minimum: u64| loopctl(&["test", &path(&folder), &format!("--coverage={minimum}")]).status.code();
    assert_eq!((code(percent), code(percent + 1)), (Some(0), Some(1)));
    let text = stderr(&loopctl(&["test", &path(&folder), "--coverage", "100"]));
    assert!(text.contains(&format!("the coverage of {percent} percent is under the minimum of 100")), "{text}");
    assert_eq!(loopctl(&["test", &path(&folder), "--coverage", "101"]).status.code(), Some(2));
}

#[test]
fn the_coverage_of_loops_and_workflows_is_reported_as_check_reports() {
    for of in ["keys", "flow"] {
        let tested = loopctl(&["test", &format!("tests/scenario/{of}/holds.test.json"), "--coverage"]);
        assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
        let text = stderr(&tested);
        let (_, from) = text.split_once("\n\n").unwrap();
        golden(&format!("coverage-{of}.txt"), from);
    }
}

#[test]
fn reports_for_programs_have_the_coverage() {
    let file = "tests/scenario/flow/holds.test.json";
    let report = |kind: &str| stdout(&loopctl(&["test", file, "--coverage", "--report", kind]));
    assert!(report("junit=-").contains("<property name=\"coverage\" value=\""), "{}", report("junit=-"));
    assert!(
        report("github").contains("::warning file=tests/scenario/flow/workflow.json,line="),
        "{}",
        report("github")
    );
    assert!(!stdout(&loopctl(&["test", file, "--report", "json=-"])).contains("coverage"));
}

#[test]
fn the_scenarios_of_the_examples_hold_and_come_to_all_tools_and_endings() {
    let tested = loopctl(&["test", "examples", "--coverage", "--report", "json=-"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    let report: Value = serde_json::from_str(&stdout(&tested)).unwrap();
    let left: Vec<String> = missing(&report["coverage"]);
    assert!(left.iter().all(|message| message.starts_with("no scenario is stuck by ")), "{left:#?}");
    assert_eq!(report["coverage"]["documents"].as_array().unwrap().len(), 7);
}

#[test]
fn a_document_without_a_scenario_counts_with_none_of_its_points() {
    let plain = json!({"name": "plain", "replies": [answer("x")], "expect": {"answer": "x"}});
    let folder = tested(json!([plain]));
    let before = coverage(&folder);
    let other = json!({"name": "dunning", "definition": {"actions": [{"type": "lookup", "properties": {"id": "b"}}]}});
    std::fs::create_dir_all(folder.path().join("workflows")).unwrap();
    std::fs::write(folder.path().join("workflows/dunning.json"), other.to_string()).unwrap();
    let after = coverage(&folder);
    let untested =
        after["documents"].as_array().unwrap().iter().find(|document| {
            document["document"].as_str().is_some_and(|file| file.ends_with("workflows/dunning.json"))
        });
    let untested = untested.unwrap_or_else(|| panic!("{after:#}"));
    assert_eq!((&untested["reached"], &untested["percent"]), (&json!(0), &json!(0)), "{after:#}");
    assert_eq!(untested["missing"][0]["message"], "no scenario tests this document");
    assert!(after["points"].as_u64() > before["points"].as_u64(), "{after:#}");
    assert_eq!(after["reached"], before["reached"]);
    // Breaking the document raises nothing.
    std::fs::write(
        folder.path().join("workflows/dunning.json"),
        r#"{"name": "dunning", "definition": {"actions": [{"type": "nope"}]}}"#,
    )
    .unwrap();
    let broken = coverage(&folder);
    assert_eq!(broken["points"].as_u64(), before["points"].as_u64().map(|points| points + 1), "{broken:#}");
    assert!(missing(&broken).contains(&"the document has errors, and no scenario tests it".to_owned()), "{broken:#}");
    let filtered = loopctl(&["test", &path(&folder), "--coverage", "--filter", "plain"]);
    assert!(!stderr(&filtered).contains("dunning"), "{}", stderr(&filtered));
}
