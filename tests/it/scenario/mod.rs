//! `loopctl test`: each expectation, matcher and fault holds in one scenario and does not in its twin; the reports are
//! the same bytes each time; and nothing of a run that is played is left behind.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it scenario::` writes the reports again: read the difference.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

mod cage;
mod coverage;
mod crashes;
mod decided;
mod live;
mod mutations;
mod probe;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Runs `loopctl` in the folder of this crate, so that reports name no folder of this machine.
fn loopctl(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    command.env_remove("CI").env("NO_COLOR", "1").output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Compares a text with its golden file.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenario/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs; if it is right: UPDATE_GOLDEN=1 cargo test --test it scenario::\n{text}");
}

/// A folder with files.
fn folder(files: &[(&str, Value)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, value) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{value:#}")).unwrap();
    }
    folder
}

fn lookup() -> Value {
    json!({"action_name": "lookup", "description": "Reads an order.", "kind": "http", "http_method": "GET",
           "url": "https://shop.example.com/orders/{{id}}", "parameters": {"type": "object",
           "properties": {"id": {"type": "string"}}, "required": ["id"]}})
}

fn a_loop() -> Value {
    json!({"type": "loop", "name": "orders", "properties": {"mode": "react", "objective": "Settle it.",
           "max_iterations": 40, "tools": [{"type": "action", "name": "lookup"}]}})
}

fn answer(text: &str) -> Value {
    json!({"thought": "Done.", "action": "__complete__", "action_input": {"answer": text}})
}

/// A folder with one loop, and these scenarios of it.
fn with_scenarios(scenarios: Value) -> tempfile::TempDir {
    let file = json!({"document": "loop.json", "scenarios": scenarios});
    folder(&[("loop.json", a_loop()), ("actions/lookup.json", lookup()), ("loop.test.json", file)])
}

fn path(folder: &tempfile::TempDir) -> String {
    folder.path().display().to_string()
}

#[test]
fn each_expectation_matcher_and_fault_holds() {
    for of in ["keys", "flow", "faults"] {
        let tested = loopctl(&["test", &format!("tests/scenario/{of}/holds.test.json")]);
        assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
        golden(&format!("{of}-holds.txt"), &stderr(&tested));
    }
}

#[test]
fn each_expectation_matcher_and_fault_has_a_scenario_that_must_not_hold() {
    for of in ["keys", "flow", "faults"] {
        let file = format!("tests/scenario/{of}/fails.test.json");
        let tested = loopctl(&["test", &file]);
        assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
        let text = stderr(&tested);
        let scenarios: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let count = scenarios["scenarios"].as_array().unwrap().len();
        assert_eq!((text.matches("  ✗ ").count(), text.matches("  ✓ ").count()), (count, 0), "{text}");
        golden(&format!("{of}-fails.txt"), &text);
    }
}

#[test]
fn reports_are_the_same_bytes_on_each_run_and_with_any_number_of_jobs() {
    const KINDS: [&str; 3] = ["junit", "tap", "json"];
    let with_jobs = |jobs: &str| {
        let folder = tempfile::tempdir().unwrap();
        let reports = KINDS.map(|kind| format!("--report={kind}={}", folder.path().join(kind).display()));
        let [junit, tap, json] = &reports;
        loopctl(&["test", "tests/scenario", "--jobs", jobs, junit, tap, json]);
        KINDS.map(|kind| std::fs::read_to_string(folder.path().join(kind)).unwrap())
    };
    let first = with_jobs("1");
    assert!(first.iter().all(|report| !report.is_empty()));
    for ((kind, report), first) in KINDS.iter().zip(with_jobs("7")).zip(&first) {
        assert!(report == *first, "{kind} with 7 jobs");
    }
}

#[test]
fn reports_for_programs_are_what_their_golden_files_say() {
    for kind in ["junit", "tap", "json", "github"] {
        let report = if kind == "github" { kind.to_owned() } else { format!("{kind}=-") };
        let tested = loopctl(&["test", "tests/scenario/faults/fails.test.json", "--report", &report]);
        golden(&format!("report.{kind}"), &stdout(&tested));
    }
}

/// Each crash point of these files ends as the run without a crash, and repeats no call.
fn survive_a_crash_everywhere(paths: &[&str]) {
    let tested = loopctl(&[&["test", "--crash"], paths].concat());
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    let text = stderr(&tested);
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("crash points")).collect();
    assert!(!lines.is_empty(), "{text}");
    for line in lines {
        let numbers: Vec<&str> = line.split_whitespace().filter(|word| word.parse::<usize>().is_ok()).collect();
        assert_eq!(numbers.first(), numbers.get(1), "{line}");
        assert!(line.ends_with("0 repeat a call"), "{line}");
    }
}

#[test]
fn the_loops_of_the_examples_survive_a_crash_everywhere() {
    survive_a_crash_everywhere(&["examples/http-status", "examples/support-triage"]);
}

#[test]
#[ignore = "for the nightly run: 300 invoices at each crash point"]
fn the_workflows_of_the_examples_survive_a_crash_everywhere() {
    survive_a_crash_everywhere(&["examples/ap-reconciliation", "examples/onboarding"]);
}

#[test]
fn the_exit_code_says_what_was_found() {
    let holds = with_scenarios(json!([{"name": "a", "replies": [answer("x")], "expect": {"answer": "x"}}]));
    assert_eq!(loopctl(&["test", &path(&holds)]).status.code(), Some(0));
    let fails = with_scenarios(json!([{"name": "a", "replies": [answer("x")], "expect": {"answer": "y"}}]));
    assert_eq!(loopctl(&["test", &path(&fails)]).status.code(), Some(1));
    let broken = with_scenarios(json!([{"name": "a", "replies": [answer("x")], "expect": {"never": ["refund"]}}]));
    assert_eq!(loopctl(&["test", &path(&broken)]).status.code(), Some(2));
    let nothing = folder(&[("loop.json", a_loop())]);
    assert_eq!(loopctl(&["test", &path(&nothing)]).status.code(), Some(2));
    assert_eq!(loopctl(&["test", &path(&holds), "--filter", "nothing of it"]).status.code(), Some(2));
    let no_scenarios = nothing.path().join("loop.json");
    assert_eq!(loopctl(&["test", no_scenarios.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn a_filter_selects_and_fail_fast_stops() {
    let scenarios = ["one", "two", "three"].map(|name| {
        json!({"name": name, "replies": [answer("x")], "expect": {"answer": if name == "one" { "x" } else { "y" }}})
    });
    let folder = with_scenarios(json!(scenarios));
    let filtered = stderr(&loopctl(&["test", &path(&folder), "--filter", "two"]));
    assert!(filtered.contains("✗ two") && !filtered.contains("one ") && !filtered.contains("three"), "{filtered}");
    let stopped = stderr(&loopctl(&["test", &path(&folder), "--fail-fast"]));
    assert!(stopped.contains("✓ one") && stopped.contains("✗ two") && !stopped.contains("three"), "{stopped}");
}

#[test]
fn a_snapshot_is_written_by_update_only_and_never_in_ci() {
    let scenario = json!({"name": "a", "replies": [answer("x")], "expect": {"snapshot": "kept/a.txt"}});
    let folder = with_scenarios(json!([scenario]));
    let kept: PathBuf = folder.path().join("kept/a.txt");
    assert_eq!(loopctl(&["test", &path(&folder)]).status.code(), Some(1));
    assert!(!kept.exists());
    let mut in_ci = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    let in_ci = in_ci.args(["test", &path(&folder), "--update"]).env("CI", "true").output().unwrap();
    assert_eq!((in_ci.status.code(), kept.exists()), (Some(2), false), "{}", stderr(&in_ci));
    assert_eq!(loopctl(&["test", &path(&folder), "--update"]).status.code(), Some(0));
    let text = std::fs::read_to_string(&kept).unwrap();
    assert!(text.ends_with("completed (complete)\n\"x\"\n"), "{text}");
    assert_eq!(loopctl(&["test", &path(&folder)]).status.code(), Some(0));
    std::fs::write(&kept, text.replace("Done.", "Undone.")).unwrap();
    let changed = loopctl(&["test", &path(&folder)]);
    assert_eq!(changed.status.code(), Some(1));
    assert!(stderr(&changed).contains("line 1 of the snapshot was"), "{}", stderr(&changed));
}

#[test]
fn a_played_run_leaves_no_file_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("TMPDIR", temporary.path());
    let before = files(Path::new("tests/scenario/keys"));
    let tested = command.args(["test", "tests/scenario/keys/holds.test.json", "--crash"]).output().unwrap();
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    assert_eq!(files(Path::new("tests/scenario/keys")), before);
    assert_eq!(files(temporary.path()), Vec::<PathBuf>::new());
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn a_check_of_a_folder_judges_its_scenarios_too() {
    let folder = with_scenarios(json!([{"name": "a", "replies": [answer("x")], "expect": {"never": ["lokup"]}}]));
    let checked = loopctl(&["check", &path(&folder)]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(stderr(&checked).contains("L024"), "{}", stderr(&checked));
}

/// Costs some seconds in a build for tests; the bar is for a release build.
#[test]
#[ignore = "for the nightly run: 1,000 scenarios"]
fn a_thousand_scenarios_of_ten_steps_are_played() {
    let replies: Vec<Value> = (0..9)
        .map(|at| json!({"thought": format!("Look {at}."), "action": "lookup", "action_input": {"id": format!("A-{at}")}}))
        .chain([answer("x")])
        .collect();
    let scenarios: Vec<Value> = (0..1000)
        .map(|at| {
            json!({"name": format!("scenario {at}"), "replies": replies, "tools": {"lookup": [{"state": "late"}]},
                   "expect": {"answer": "x", "calls": [{"action": "lookup", "times": 9}]}})
        })
        .collect();
    let folder = with_scenarios(json!(scenarios));
    let tested = loopctl(&["test", &path(&folder)]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    assert!(stderr(&tested).ends_with("1,000 scenarios in 1 file: all hold\n"));
}

#[test]
fn a_tool_with_no_answers_has_no_entry_and_its_call_is_reported() {
    let look = json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "A"}});
    let scenario =
        json!({"name": "a", "tools": {"lookup": []}, "replies": [look, answer("x")], "expect": {"answer": "x"}});
    let folder = with_scenarios(json!([scenario]));
    let tested = loopctl(&["test", &path(&folder)]);
    assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
    assert!(stderr(&tested).contains("give it an entry under `tools`"), "{}", stderr(&tested));
}

#[test]
fn a_key_that_is_not_known_is_reported_alone() {
    for scenario in [
        json!({"name": "a", "replies": [answer("x")], "expect": {"anwser": "x"}}),
        json!({"name": "a", "replies": [answer("x")], "expects": {"answer": "x"}}),
        json!({"name": "a", "reply": [answer("x")], "expect": {"answer": "x"}}),
        json!({"name": "a", "replies": [answer("x")], "decisions": [{"aprove": true}], "expect": {"answer": "x"}}),
    ] {
        let folder = with_scenarios(json!([scenario]));
        let checked = stderr(&loopctl(&["check", &path(&folder)]));
        assert!(checked.contains("L010") && !checked.contains("L026"), "{checked}");
    }
    let nothing = with_scenarios(json!([{"name": "a", "replies": [answer("x")], "expect": {}}]));
    assert!(stderr(&loopctl(&["check", &path(&nothing)])).contains("L026"));
}

/// A workflow with a loop in a loop, and scenarios of it.
fn nested(expect: Value) -> tempfile::TempDir {
    let call = |id: &str, filter: Value| {
        let mut step = json!({"type": "lookup", "properties": {"id": "@x"}, "filter": {"condition": filter}});
        if !id.is_empty() {
            step["id"] = json!(id);
        }
        step
    };
    let inner = json!({"type": "loop", "properties": {"mode": "foreach", "items_path": "@input.l", "item_variable_name": "y",
                       "actions_to_execute": [call("deep", json!({"equal": ["@y", "a"]}))]}});
    let outer = json!({"type": "loop", "id": "each", "properties": {"mode": "foreach", "items_path": "@input.l",
                       "item_variable_name": "x",
                       "actions_to_execute": [call("go", json!({"equal": ["@x", "a"]})), inner]}});
    let plain = json!({"type": "loop", "properties": {"mode": "foreach", "items_path": "@input.l",
                       "item_variable_name": "x", "actions_to_execute": [call("", json!({"equal": ["@x", "a"]}))]}});
    let workflow = json!({"name": "w", "input": {"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}},
                          "required": ["l"]}, "definition": {"actions": [outer, plain]}});
    let scenario = json!({"name": "one", "input": {"l": ["b", "a"]}, "expect": expect});
    let test = json!({"document": "w.json", "tools": {"lookup": [{"state": "late"}]}, "scenarios": [scenario]});
    folder(&[("w.json", workflow), ("actions/lookup.json", lookup()), ("w.test.json", test)])
}

#[test]
fn steps_of_items_are_found_by_their_addresses() {
    let folder = nested(json!({"status": "completed", "steps": {
        "each": {"status": "completed"},
        "each.0.go": {"status": "skipped"},
        "each.1.go": {"status": "completed", "output": {"state": "late"}, "input": {"id": "a"}},
        "each.0.1.0.deep": {"status": "skipped"},
        "each.0.1.1.deep": {"status": "completed"},
        "1.0.0": {"status": "skipped"},
        "1.1.0": {"status": "completed"},
    }}));
    let tested = loopctl(&["test", &path(&folder), "--crash"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    for (address, wanted, found) in [
        ("each.1.go", "skipped", "completed"),
        ("each.0.go", "completed", "skipped"),
        ("each.7.go", "completed", "did not begin"),
    ] {
        let folder = nested(json!({"steps": {address: {"status": wanted}}}));
        let tested = loopctl(&["test", &path(&folder)]);
        assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
        let text = stderr(&tested);
        assert!(text.contains(&format!("the step `{address}`")) && text.contains(found), "{text}");
    }
}

#[test]
fn a_broken_file_of_scenarios_in_a_folder_is_no_sound_one() {
    let place =
        folder(&[("loop.test.json", json!({"document": "gone.json", "scenario": [{"name": "n", "expect": {}}]}))]);
    let at = place.path().display().to_string();
    let near = loopctl(&["test", &at]);
    let said = stderr(&near);
    assert_eq!(near.status.code(), Some(2), "{said}");
    assert!(said.contains("`scenario` looks like `scenarios`") && said.contains("\"scenario\": ["), "{said}");
    std::fs::write(place.path().join("loop.test.json"), "").unwrap();
    let blank = loopctl(&["test", &at]);
    assert!(blank.status.code() == Some(2) && stderr(&blank).contains("the file has no JSON in it"), "{blank:?}");
    let script = json!({"replies": []}).to_string();
    std::fs::write(place.path().join("loop.test.json"), script).unwrap();
    let other = loopctl(&["test", &at]);
    assert!(other.status.code() == Some(2) && stderr(&other).contains("this is a script"), "{other:?}");
}
