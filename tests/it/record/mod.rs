//! `loopctl record`: a run that happened becomes a scenario that holds, in each dialect, with called loops, pauses and
//! workflows; no secret is in the file; and a request that is not the recorded one is reported.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it record::` writes the golden files again: read the difference.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

mod examples;
mod native;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// What the clock of all calls stands at when a project is made, in milliseconds since 1970: the prompts of runs, and so the golden files, name
/// the day.
const NOON_MS: i64 = 1_767_355_200_000;

/// A folder with a project.
struct Project(tempfile::TempDir);

impl Project {
    fn new(files: &[(&str, Value)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let ahead_ms = NOON_MS - i64::try_from(since.as_millis()).unwrap();
        std::fs::write(project.path("clock"), ahead_ms.to_string()).unwrap();
        files.iter().for_each(|(name, value)| project.write(name, value));
        project
    }

    /// A copy of an example.
    fn example(name: &str) -> Self {
        let project = Self::new(&[]);
        copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name), project.0.path());
        project
    }

    fn write(&self, name: &str, value: &Value) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{value:#}")).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn call(&self, arguments: &[&str]) -> Output {
        self.with(arguments, &[])
    }

    fn with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
        let command = command.current_dir(self.0.path()).args(arguments).env_remove("CI").env("NO_COLOR", "1");
        let command = command.env("LOOPCTL_CLOCK", "clock");
        command.envs(variables.iter().copied()).output().unwrap()
    }

    /// Starts `main` as the run `r`, with `script.json`.
    fn run(&self, main: &str, more: &[&str]) -> Option<i32> {
        let args = ["run", main, "--script", "script.json", "--run-id", "r", "--store", "sqlite:runs.db"];
        self.call(&[args.as_slice(), more].concat()).status.code()
    }

    fn resume(&self, more: &[&str]) -> Option<i32> {
        let args = ["resume", "r", "--script", "script.json", "--store", "sqlite:runs.db"];
        self.call(&[args.as_slice(), more].concat()).status.code()
    }

    fn record(&self) -> Output {
        self.call(&["record", "r", "-o", "recordings/r.json", "--scenario", "as it was", "--store", "sqlite:runs.db"])
    }

    /// Records the run, and plays the scenario.
    fn is_recorded(&self) {
        let recorded = self.record();
        assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
        let tested = self.call(&["test", "--filter", "as it was", "--crash"]);
        assert_eq!(tested.status.code(), Some(0), "{}\n{}", stderr(&tested), self.text("recordings/r.json"));
        assert!(stderr(&tested).contains("✓ as it was"), "{}", stderr(&tested));
        fits_its_schema(&self.text("recordings/r.json"));
    }
}

/// The faults of a recording, by the published schema.
fn schema_faults(recording: &Value) -> Vec<String> {
    let schema = loopctl::language::schema::published("recording").unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(recording).map(|fault| format!("{}: {fault}", fault.instance_path())).collect()
}

fn fits_its_schema(text: &str) {
    let recording: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema_faults(&recording), Vec::<String>::new(), "{text}");
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            if entry.file_name() != ".loopctl" {
                std::fs::create_dir_all(&target).unwrap();
                copy(&entry.path(), &target);
            }
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs; if it is right: UPDATE_GOLDEN=1 cargo test --test it record::\n{text}");
}

fn action(name: &str) -> Value {
    json!({"action_name": name, "description": "Reads or pays an order.", "kind": "http", "http_method": "POST",
           "url": "https://shop.example.com/orders", "parameters": {"type": "object",
           "properties": {"id": {"type": "string"}, "note": {}}, "required": ["id"]}})
}

fn a_loop(more: Value) -> Value {
    let mut properties = json!({"mode": "react", "objective": "Settle the order.", "max_iterations": 8,
        "tools": [{"type": "action", "name": "lookup"}, {"type": "action", "name": "pay", "requires_approval": true}]});
    properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"type": "loop", "name": "orders", "properties": properties})
}

fn call(action: &str, input: Value) -> Value {
    json!({"thought": "Next.", "action": action, "action_input": input})
}

fn answer(text: &str) -> Value {
    json!({"thought": "Done.", "action": "__complete__", "action_input": {"answer": text}})
}

/// A project with a loop, its tools and a script.
fn project(more: Value, script: Value) -> Project {
    Project::new(&[
        ("loop.json", a_loop(more)),
        ("actions/lookup.json", action("lookup")),
        ("actions/pay.json", action("pay")),
        ("script.json", script),
    ])
}

#[test]
fn a_run_of_each_dialect_is_recorded_and_holds() {
    for dialect in ["json", "tool_calls", "tags", "final_answer"] {
        let replies = json!([call("lookup", json!({"id": "A-1"})), call("lookup", json!({"id": 7})), answer("late")]);
        let script = json!({"replies": replies, "tools": {"lookup": [{"state": "late"}, {"error": "http 503"}]}});
        let project = project(json!({"dialect": dialect}), script);
        assert_eq!(project.run("loop.json", &[]), Some(0), "{dialect}");
        project.is_recorded();
    }
}

#[test]
fn a_run_with_decisions_is_recorded_and_holds() {
    let replies = json!([call("pay", json!({"id": "A-1"})), call("pay", json!({"id": "A-2"})), answer("one was paid")]);
    let project = project(json!({}), json!({"replies": replies, "tools": {"pay": [{"paid": true}]}}));
    assert_eq!(project.run("loop.json", &[]), Some(3));
    assert_eq!(project.resume(&["--approve"]), Some(3));
    assert_eq!(project.resume(&["--deny", "--reason", "too much"]), Some(0));
    project.is_recorded();
}

#[test]
fn a_run_that_waits_is_recorded_and_holds() {
    let project = project(json!({}), json!({"replies": [call("pay", json!({"id": "A-1"}))], "tools": {"pay": [1]}}));
    assert_eq!(project.run("loop.json", &[]), Some(3));
    project.is_recorded();
}

#[test]
fn runs_that_end_otherwise_than_by_an_answer_are_recorded_and_hold() {
    let look = call("lookup", json!({"id": "A-1"}));
    let tools = json!({"lookup": [{"state": "late"}]});
    let limited = project(json!({"max_iterations": 2}), json!({"replies": [look, look], "tools": tools}));
    assert_eq!(limited.run("loop.json", &[]), Some(1));
    limited.is_recorded();
    let gone = project(json!({}), json!({"replies": [look, {"http": 401}], "tools": tools}));
    assert_eq!(gone.run("loop.json", &[]), Some(1));
    gone.is_recorded();
    let retried = project(json!({}), json!({"replies": [{"http": 503}, look, answer("late")], "tools": tools}));
    assert_eq!(retried.run("loop.json", &[]), Some(0));
    retried.is_recorded();
}

#[test]
fn called_loops_are_recorded_each_with_its_own_replies() {
    let called = json!({"type": "loop", "name": "clerk", "description": "Settles one.", "properties": {"mode": "react", "objective": "Settle {{input.id}}.",
        "max_iterations": 4, "tools": [{"type": "action", "name": "pay", "requires_approval": true}]},
        "input": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}});
    let outer = json!({"type": "loop", "name": "desk", "properties": {"mode": "react", "objective": "Settle all.",
        "max_iterations": 6, "tools": [{"type": "loop", "name": "clerk"}]}});
    let replies = json!([call("clerk", json!({"id": "A-1"})), call("clerk", json!({"id": "A-2"})), answer("both")]);
    let script = json!({"replies": replies, "loops": {"clerk": [call("pay", json!({"id": "A-1"})), answer("paid")]},
                        "tools": {"pay": [{"paid": true}]}});
    let project = Project::new(&[
        ("loop.json", outer),
        ("loops/clerk.json", called),
        ("actions/pay.json", action("pay")),
        ("script.json", script),
    ]);
    assert_eq!(project.run("loop.json", &[]), Some(3));
    assert_eq!(project.resume(&["--approve"]), Some(3));
    assert_eq!(project.resume(&["--approve"]), Some(0));
    project.is_recorded();
}

/// Secrets that no recording may have.
const PLANTED: [&str; 4] =
    ["ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "hunter2-of-the-shop", "AKIAIOSFODNN7EXAMPLE", "4929-secret-iban"];

#[test]
fn no_planted_secret_is_in_a_recording_and_it_still_holds() {
    let [token, password, key, iban] = PLANTED;
    let replies = json!([
        call("lookup", json!({"id": "A-1", "note": {"password": password}})),
        call("lookup", json!({"id": "A-2", "note": format!("use {key}")})),
        answer(&format!("the token is {token}")),
    ]);
    let tools = json!({"lookup": [{"token": token, "iban": iban}, format!("Authorization: Bearer {token}")]});
    let project = project(json!({}), json!({"replies": replies, "tools": tools}));
    project.write("loopctl.json", &json!({"redact": ["iban"]}));
    assert_eq!(project.run("loop.json", &[]), Some(0));
    project.is_recorded();
    let text = project.text("recordings/r.json");
    for secret in PLANTED {
        assert!(!text.contains(secret), "{secret}\n{text}");
    }
    for name in ["password", "iban", "token"] {
        assert!(text.contains(&format!("[hidden:{name}]")), "{name}\n{text}");
    }
}

#[test]
fn a_secret_of_orgconfig_is_refused_in_each_spelling() {
    let value = "a-long-secret-of-the-shop";
    for spelling in [value.to_owned(), "612d6c6f6e672d7365637265742d6f662d7468652d73686f70".to_owned()] {
        let script = json!({"replies": [answer(&format!("it is {spelling}"))]});
        let project = project(json!({}), script);
        project.write("loopctl.json", &json!({"orgconfig": {"shop": "env:SHOP_SECRET"}}));
        assert_eq!(project.run("loop.json", &[]), Some(0));
        let arguments = ["record", "r", "-o", "r.rec.json", "--store", "sqlite:runs.db"];
        let refused = project.with(&arguments, &[("SHOP_SECRET", value)]);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(!project.path("r.rec.json").exists() && !stderr(&refused).contains(&spelling), "{}", stderr(&refused));
    }
}

#[test]
fn secrets_and_documents_of_a_project_are_found_from_a_document_in_a_folder_of_it() {
    let value = "a-long-secret-of-the-shop";
    let flow = |answer: &str| {
        json!({"name": "w", "definition": {"actions": [{"type": "lookup", "outputKey": "a", "properties": {"id": answer}}],
            "output": "@a"}})
    };
    let files = [
        ("actions/lookup.json", action("lookup")),
        ("script.json", json!({"replies": [], "tools": {"lookup": [{"is": value}]}})),
    ];
    let project = Project::new(&files);
    project.write(
        "loopctl.json",
        &json!({"orgconfig": {"shop": "file:k.txt"}, "documents": {"rates": "data/rates.json"}}),
    );
    project.write("data/rates.json", &json!([{"of": "eur"}]));
    std::fs::write(project.path("k.txt"), format!("another-{value}\n")).unwrap();
    project.write("workflows/w.json", &flow("doc:rates.0.of"));
    assert_eq!(project.run("workflows/w.json", &[]), Some(0));
    let recorded =
        project.call(&["record", "r", "-o", "r.rec.json", "--scenario", "as it was", "--store", "sqlite:runs.db"]);
    assert_eq!(recorded.status.code(), Some(0), "{}", stderr(&recorded));
    let tested = project.call(&["test"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    std::fs::write(project.path("k.txt"), format!("{value}\n")).unwrap();
    let refused = project.call(&["record", "r", "-o", "again.rec.json", "--store", "sqlite:runs.db"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(!project.path("again.rec.json").exists() && !stderr(&refused).contains(value), "{}", stderr(&refused));
}

/// A project whose run is recorded.
fn kept() -> Project {
    let script = json!({"replies": [call("lookup", json!({"id": "A-1"})), answer("late")],
                        "tools": {"lookup": [{"state": "late", "pin_code": "0000"}]}});
    let project = project(json!({}), script);
    assert_eq!(project.run("loop.json", &[]), Some(0));
    project.is_recorded();
    project
}

#[test]
fn the_file_of_a_recording_is_what_its_golden_file_says() {
    let project = kept();
    let recording: Value = serde_json::from_str(&project.text("recordings/r.json")).unwrap();
    let text = project.text("recordings/r.json").replace(recording.get("now").unwrap().as_str().unwrap(), "NOW");
    // A script answers at once, and a busy machine takes a millisecond for it now and then.
    let took = |line: &&str| line.trim_start().starts_with("\"took_ms\"");
    let text: Vec<&str> = text.lines().filter(|line| !took(line)).collect();
    let text = text.join("\n").replace("},\n    }", "}\n    }") + "\n";
    golden("recording.json", &text);
    golden("scenario.json", &project.text("loop.test.json"));
}

#[test]
fn a_stale_recording_fails_with_the_line_that_differs() {
    let project = kept();
    project.write("loop.json", &a_loop(json!({"objective": "Settle the order, politely."})));
    let stale = project.call(&["test", "loop.test.json"]);
    assert_eq!(stale.status.code(), Some(1), "{}", stderr(&stale));
    golden("stale.txt", &stderr(&stale));
    let by_position = project.call(&["test", "--by-position"]);
    assert_eq!(by_position.status.code(), Some(0), "{}", stderr(&by_position));
    let before = project.text("recordings/r.json");
    let in_ci = project.with(&["test", "--update"], &[("CI", "true")]);
    assert_eq!((in_ci.status.code(), project.text("recordings/r.json") == before), (Some(2), true));
    assert_eq!(project.call(&["test", "--update"]).status.code(), Some(0));
    assert!(project.text("recordings/r.json").contains("politely"));
    let tested = project.call(&["test"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
}

#[test]
fn a_tool_that_needs_an_approval_now_makes_a_recording_fail() {
    let project = kept();
    let tools =
        json!([{"type": "action", "name": "lookup", "requires_approval": true}, {"type": "action", "name": "pay"}]);
    project.write("loop.json", &a_loop(json!({ "tools": tools })));
    let tested = project.call(&["test", "--by-position"]);
    assert_eq!(tested.status.code(), Some(1), "{}", stderr(&tested));
    assert!(stderr(&tested).contains("paused"), "{}", stderr(&tested));
}

#[test]
fn a_missing_recording_is_an_error_of_check() {
    let project = kept();
    std::fs::remove_file(project.path("recordings/r.json")).unwrap();
    let checked = project.call(&["check", "loop.test.json"]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(
        stderr(&checked).contains("L023") && stderr(&checked).contains("recordings/r.json"),
        "{}",
        stderr(&checked)
    );
    project.write("recordings/r.json", &json!({"recording": 2}));
    assert!(stderr(&project.call(&["check", "loop.test.json"])).contains("it has the format 2"));
}

#[test]
fn an_entry_that_is_none_is_refused_by_the_schema_and_by_check_at_its_place() {
    let project = kept();
    let recording: Value = serde_json::from_str(&project.text("recordings/r.json")).unwrap();
    let checked = project.call(&["check", "recordings/r.json"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    let wrong = [
        (json!({"call": {"at": "1.0", "action": "lookup"}, "gvae": 1}), "gvae"),
        (json!({"call": {"at": "1.0"}, "gave": 1}), "action"),
        (json!({"call": {"at": 1, "action": "lookup"}}), "`at` must be a text"),
        (json!({"aks": {"loop": "orders"}}), "aks"),
        (json!({"ask": {"loop": "orders", "messages": "9664792014d565e6"}}), "messages"),
        (json!({"ask": {"loop": "orders"}, "reply": {"usage": {"input": -1}}}), "input"),
        (json!({"ask": {"loop": "orders"}, "call": {"at": "1.0", "action": "lookup"}}), "call"),
        (json!({"decision": {"aprove": true}}), "aprove"),
        (json!({"gave": 1}), "gave"),
        (json!({}), "missing"),
        (json!("ask"), "entries[1]"),
    ];
    for (entry, named) in wrong {
        let mut recording = recording.clone();
        *recording.pointer_mut("/entries/1").unwrap() = entry.clone();
        let faults = schema_faults(&recording);
        assert!(
            !faults.is_empty() && faults.iter().all(|fault| fault.starts_with("/entries/1")),
            "{entry}: {faults:?}"
        );
        project.write("recordings/r.json", &recording);
        let checked = project.call(&["check", "recordings/r.json"]);
        assert_eq!(checked.status.code(), Some(1), "{entry}: {}", stderr(&checked));
        assert!(stderr(&checked).contains(named), "{entry}: {}", stderr(&checked));
    }
}

#[test]
fn a_second_record_of_a_name_is_refused_and_changes_nothing() {
    let document = |tools: Value| json!({"type": "loop", "name": "w", "properties": {"mode": "react", "objective": "Do it.", "tools": tools}});
    let project = Project::new(&[
        ("w.json", document(json!([{"type": "action", "name": "pay"}]))),
        (
            "actions/pay.json",
            json!({"action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
                "url": "https://bank.example.com/", "parameters": {"type": "object"}}),
        ),
        ("loopctl.json", json!({})),
        (
            "script.json",
            json!({"replies": [{"thought": "The end.", "action": "__complete__", "action_input": {"answer": "one"}}]}),
        ),
    ]);
    let run = |id: &str| {
        project.call(&["run", "w.json", "--script", "script.json", "--run-id", id, "--store", "sqlite:runs.db"])
    };
    let record = |id: &str, file: &str, name: &str| {
        project.call(&["record", id, "-o", file, "--scenario", name, "--store", "sqlite:runs.db"])
    };
    assert_eq!((run("r1").status.code(), run("r2").status.code()), (Some(0), Some(0)));
    assert_eq!(record("r1", "rec/a.json", "first").status.code(), Some(0));
    let before = (project.text("rec/a.json"), project.text("w.test.json"));
    std::fs::write(project.path("notes.json"), "{\"mine\": 1}").unwrap();
    for (id, file, name, why) in [
        ("r1", "rec/a.json", "first", "a scenario of this name"),
        ("r1", "rec/b.json", "first", "a scenario of this name"),
        ("r2", "rec/a.json", "second", "is the recording of r1"),
        ("r2", "notes.json", "second", "no recording"),
        ("r2", "w.json", "second", "no recording"),
        ("r2", "../outside.json", "second", "outside of the project's folder"),
        ("r2", "rec/c.json", "", "the name of a scenario"),
    ] {
        let refused = record(id, file, name);
        assert_eq!(refused.status.code(), Some(2), "{file} {name}: {}", stderr(&refused));
        assert!(stderr(&refused).contains(why), "{file} {name}: {}", stderr(&refused));
    }
    assert_eq!((project.text("rec/a.json"), project.text("w.test.json")), before);
    assert!(!project.path("rec/b.json").exists() && !project.path("rec/c.json").exists());
    assert_eq!(project.text("notes.json"), "{\"mine\": 1}");
    assert_eq!(record("r1", "rec/a.json", "the same again").status.code(), Some(0));
    assert_eq!(record("r2", "rec/b.json", "second").status.code(), Some(0));
    let tested = project.call(&["test"]);
    assert_eq!(tested.status.code(), Some(0), "{}", stderr(&tested));
    // The scenario would name a tool that the document no longer has: none of the file would be played.
    project.write("w.json", &document(json!([])));
    let before = project.text("w.test.json");
    let refused = record("r2", "rec/b.json", "third");
    assert!(stderr(&refused).contains("is not appended") && stderr(&refused).contains("no tool `pay`"), "{refused:?}");
    assert_eq!((refused.status.code(), project.text("w.test.json")), (Some(2), before));
}

#[test]
fn a_run_of_a_script_that_is_resumed_without_it_asks_for_it() {
    let ask = json!({"thought": "Ask.", "action": "__pause_for_human__", "action_input": {"question": "Which?"}});
    let end = json!({"thought": "The end.", "action": "__complete__", "action_input": {"answer": "one"}});
    let project = Project::new(&[
        (
            "w.json",
            json!({"type": "loop", "name": "w", "properties": {"mode": "react", "objective": "Do it.", "tools": []}}),
        ),
        ("loopctl.json", json!({})),
        ("script.json", json!({"replies": [ask, end]})),
    ]);
    assert_eq!(project.run("w.json", &[]), Some(3));
    let without = project.call(&["resume", "r", "--answer", "this", "--store", "sqlite:runs.db"]);
    assert_ne!(without.status.code(), Some(0));
    assert!(stderr(&without).contains("--script FILE"), "{}", stderr(&without));
    assert_eq!(project.resume(&["--answer", "this"]), Some(0));
}
