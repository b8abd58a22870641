//! `loopctl test --probe`: the shortest scripts for what a loop can come to, and the same as scenarios.

use serde_json::{Value, json};

use super::{folder, lookup, loopctl, path, stderr, stdout};

/// A loop with rungs of each kind, whose input has a pattern.
fn loop_with_rungs() -> tempfile::TempDir {
    let document = json!({"type": "loop", "name": "orders",
        "input": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^A-[0-9]{4}$"}}, "required": ["id"]},
        "properties": {"mode": "react", "objective": "Settle {{input.id}}.", "max_iterations": 20,
                       "on_stuck": {"iterations": 3, "action": "escalate"}, "budget": {"tokens": 90000},
                       "fallback_models": ["other"],
                       "tools": [{"type": "action", "name": "lookup", "requires_approval": true, "max_calls": 2}]}});
    let project = json!({"model": "main", "models": {"main": {"provider": "openai", "model": "gpt-4o-mini"},
                                                      "other": {"provider": "openai", "model": "gpt-4o"}},
                         "allow": {"hosts": ["shop.example.com"]}});
    folder(&[("loop.json", document), ("loopctl.json", project), ("actions/lookup.json", lookup())])
}

#[test]
fn each_ending_pattern_and_rung_has_a_script_that_comes_to_it() {
    let folder = loop_with_rungs();
    let document = folder.path().join("loop.json").display().to_string();
    let probed = loopctl(&["test", "--probe", &document]);
    let text = stderr(&probed);
    assert_eq!(probed.status.code(), Some(0), "{text}");
    assert!(!text.contains('✗') && !text.contains("  ? "), "{text}");
    for what in [
        "✓ ends or waits by `timeout`: failed (timeout)",
        "✓ ends or waits by `budget`: failed (budget)",
        "✓ ends or waits by `stuck`: ",
        "✓ is stuck by `same_failure`: ",
        "✓ is stuck by `cycle`: ",
        "✓ the fallback `other` answers: completed (complete)",
        "✓ a call of `lookup` is denied: completed (complete)",
        "✓ the model is asked again: completed (complete)",
        "✓ call 3 of `lookup` is refused: completed (complete)",
        "- no run ends or waits by `forced_answer`: `on_limit` is not `answer`",
    ] {
        assert!(text.contains(what), "{what}\n{text}");
    }
    assert_eq!(stdout(&probed), "");
}

#[test]
fn probes_that_are_written_hold_as_scenarios() {
    let folder = loop_with_rungs();
    let (document, file) = (folder.path().join("loop.json"), folder.path().join("loop.test.json"));
    let (document, file) = (document.display().to_string(), file.display().to_string());
    let probe = || loopctl(&["test", "--probe", &document, "--write", &file]);
    assert_eq!(probe().status.code(), Some(0));
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["document"], "loop.json");
    let tested = loopctl(&["test", &path(&folder), "--coverage", "100"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    let again = probe();
    assert_eq!(again.status.code(), Some(2), "a file is never written over: {}", stderr(&again));
}

#[test]
fn what_no_script_can_be_made_for_is_said() {
    let workflow = loopctl(&["test", "--probe", "examples/ap-reconciliation/workflow.json"]);
    assert_eq!(workflow.status.code(), Some(2));
    assert!(stderr(&workflow).contains("is no loop of mode `react`"), "{}", stderr(&workflow));
    let nothing = folder(&[("data.json", json!({}))]);
    assert_eq!(loopctl(&["test", "--probe", &path(&nothing)]).status.code(), Some(2));
    let examples = stderr(&loopctl(&["test", "--probe", "examples"]));
    assert!(examples.contains("loop.json") && !examples.contains('✗') && !examples.contains("  ? "), "{examples}");
}

/// The commands of `docs/testing.md` that begin so, behind the word before them.
fn commands_of_docs(before: &str) -> Vec<Vec<String>> {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/testing.md")).unwrap();
    let words = |line: &str| line.split('#').next().unwrap().split_whitespace().map(str::to_owned).collect();
    let commands = docs.lines().filter_map(|line| line.trim().strip_prefix(before)?.strip_prefix("loopctl "));
    commands.map(words).collect()
}

/// The example without a key, in a folder of its own.
fn example(with_scenarios: bool) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/http-status");
    for file in
        ["loop.json", "loopctl.json", "script.json", "actions/service_status.json", "actions/announce_incident.json"]
    {
        let to = copy.path().join(file);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::copy(format!("{from}/{file}"), to).unwrap();
    }
    if with_scenarios {
        std::fs::copy(format!("{from}/loop.test.json"), copy.path().join("loop.test.json")).unwrap();
    }
    copy
}

fn holds_in(folder: &tempfile::TempDir, commands: &[Vec<String>]) {
    for command in commands {
        let mut loopctl = std::process::Command::new(env!("CARGO_BIN_EXE_loopctl"));
        let done = loopctl.current_dir(folder.path()).args(command).env("CI", "true").output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{command:?}: {}", stderr(&done));
    }
}

#[test]
fn the_way_from_a_probe_to_ci_holds_as_the_docs_show_it() {
    let commands = commands_of_docs("");
    let from = commands.iter().position(|command| command.contains(&"--probe".to_owned())).unwrap();
    holds_in(&example(false), &commands[from..from + 4]);
}

#[test]
fn the_workflow_of_the_docs_runs() {
    let commands = commands_of_docs("- run: ");
    assert_eq!(commands.len(), 3, "{commands:?}");
    let folder = example(true);
    holds_in(&folder, &commands);
    assert!(std::fs::read_to_string(folder.path().join("report.xml")).unwrap().contains("name=\"coverage\""));
}

#[test]
fn a_plain_text_is_no_invalid_reply_where_it_is_an_answer() {
    for dialect in ["json", "tags", "tool_calls"] {
        for schema in
            [None, Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))]
        {
            let mut document = json!({"type": "loop", "properties": {"mode": "react", "objective": "Do it.", "dialect": dialect,
                                      "tools": [{"type": "action", "name": "lookup"}]}});
            if let Some(schema) = schema {
                document["properties"]["answer_schema"] = schema;
            }
            let folder = folder(&[("loop.json", document), ("actions/lookup.json", lookup())]);
            let probed = loopctl(&["test", "--probe", &folder.path().join("loop.json").display().to_string()]);
            let text = stderr(&probed);
            assert!(
                text.contains("✓ ends or waits by `invalid_replies`: failed (invalid_replies)"),
                "{dialect}: {text}"
            );
        }
    }
}

#[test]
fn what_a_loop_cannot_come_to_is_no_failed_probe() {
    for more in [
        json!({ "dialect": "tool_calls", "budget": { "tokens": 5000 } }),
        json!({ "dialect": "final_answer", "budget": { "tokens": 5000 } }),
        json!({ "retry": { "attempts": 1 } }),
    ] {
        let mut properties =
            json!({"mode": "react", "objective": "Do it.", "tools": [{"type": "action", "name": "lookup"}]});
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let project = json!({"model": "m", "models": {"m": {"provider": "openai", "model": "gpt-4o-mini"}},
            "allow": {"hosts": ["shop.example.com"]}});
        let document = json!({"type": "loop", "name": "orders", "properties": properties});
        let folder = folder(&[("loop.json", document), ("loopctl.json", project), ("actions/lookup.json", lookup())]);
        let probed = loopctl(&["test", "--probe", &folder.path().join("loop.json").display().to_string()]);
        let text = stderr(&probed);
        assert!(probed.status.code() == Some(0) && !text.contains('✗'), "{more}: {text}");
    }
}

#[test]
fn a_retry_without_a_kind_asks_a_model_again_that_the_run_waits_for() {
    let properties = json!({"mode": "react", "objective": "Do it.", "on_model_outage": "pause", "retry": {"attempts": 1},
        "tools": [{"type": "action", "name": "lookup"}]});
    let document = json!({"type": "loop", "name": "orders", "properties": properties});
    let replies = json!([{"http": 503}, {"thought": "Done.", "answer": "ok"}]);
    for (decisions, code) in [(json!([{"retry": true}]), Some(0)), (json!([]), Some(1))] {
        let scenario =
            json!({"name": "one", "replies": replies, "decisions": decisions, "expect": {"status": "completed"}});
        let tests = json!({"document": "loop.json", "scenarios": [scenario]});
        let project = json!({"allow": {"hosts": ["shop.example.com"]}});
        let folder = folder(&[
            ("loop.json", document.clone()),
            ("loopctl.json", project),
            ("actions/lookup.json", lookup()),
            ("loop.test.json", tests),
        ]);
        let tested = loopctl(&["test", &path(&folder)]);
        assert_eq!(tested.status.code(), code, "{decisions}: {}{}", stdout(&tested), stderr(&tested));
    }
}
