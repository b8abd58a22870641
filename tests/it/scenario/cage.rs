//! What a folder of somebody else can't do to whoever tests it: show or write a file outside of it, play without an end, or
//! hide signs in a report.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{a_loop, answer, files, folder, lookup, loopctl, path, stderr, stdout, with_scenarios};

const SECRET: &str = "s3cret-of-the-machine";

/// A folder `p` with a loop and a scenario, and files around it that are nobody's business.
fn cage(expect: Value, scenario: Value) -> tempfile::TempDir {
    let mut one = json!({"name": "s", "replies": [answer("x")], "expect": expect});
    for (key, value) in scenario.as_object().unwrap() {
        one[key] = value.clone();
    }
    if one["script"].is_string() || one["recording"].is_string() {
        one.as_object_mut().unwrap().remove("replies");
    }
    let folder = folder(&[
        ("p/loopctl.json", json!({})),
        ("p/l.json", a_loop()),
        ("p/actions/lookup.json", lookup()),
        ("p/l.test.json", json!({"document": "l.json", "scenarios": [one]})),
    ]);
    std::fs::write(folder.path().join("outside.txt"), format!("{SECRET}\n")).unwrap();
    std::fs::write(folder.path().join("outside.json"), format!("{{\"{SECRET}\": 1}}\n")).unwrap();
    std::fs::write(folder.path().join("p/notes.txt"), format!("{SECRET}\n")).unwrap();
    folder
}

fn call(folder: &tempfile::TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    command.current_dir(folder.path().join("p")).args(arguments).env("S3CRET", SECRET);
    command.env_remove("CI").env("NO_COLOR", "1").output().unwrap()
}

/// `check`, `test`, its reports and `--update` refuse the folder by L148, show nothing, and write nothing.
fn is_refused(folder: &tempfile::TempDir, what: &str) {
    let before: Vec<(std::path::PathBuf, Option<Vec<u8>>)> = contents(folder.path());
    let checked = call(folder, &["check"]);
    assert_eq!(checked.status.code(), Some(1), "{what}: {}", stderr(&checked));
    let mut shown = format!("{}{}", stderr(&checked), stdout(&checked));
    assert!(shown.contains("L148"), "{what}: {shown}");
    let reports = tempfile::tempdir().unwrap();
    let [junit, tap] = ["junit", "tap"].map(|kind| format!("{kind}={}", reports.path().join(kind).display()));
    for more in [&[][..], &["--report", &junit, "--report", &tap, "--report", "json=-"], &["--update"]] {
        let tested = call(folder, &[&["test"], more].concat());
        assert_eq!(tested.status.code(), Some(2), "{what} {more:?}: {}", stderr(&tested));
        shown.push_str(&stderr(&tested));
        shown.push_str(&stdout(&tested));
    }
    shown.extend(["junit", "tap"].map(|kind| std::fs::read_to_string(reports.path().join(kind)).unwrap()));
    assert!(!shown.contains(SECRET) && !shown.contains("PATH="), "{what}: {shown}");
    assert_eq!(contents(folder.path()), before, "{what}");
}

fn contents(folder: &Path) -> Vec<(std::path::PathBuf, Option<Vec<u8>>)> {
    files(folder).into_iter().map(|file| (file.clone(), std::fs::read(&file).ok())).collect()
}

#[test]
fn a_snapshot_is_no_file_outside_no_link_not_hidden_and_no_other_file() {
    let outside = |folder: &tempfile::TempDir| folder.path().join("outside.txt").display().to_string();
    let absolute = outside(&cage(json!({}), json!({})));
    for name in [
        absolute.as_str(),
        "/proc/self/environ",
        "../outside.txt",
        "../escape.txt",
        "new/../../escape.txt",
        ".git/hooks/pre-commit",
        ".envrc",
        "notes.txt",
        "loopctl.json",
        "l.json",
        "l.test.json",
        "actions/lookup.json",
        "actions/new.json",
        "sub/loopctl.json",
    ] {
        let folder = cage(json!({"snapshot": name}), json!({}));
        std::fs::create_dir_all(folder.path().join("p/.git/hooks")).unwrap();
        is_refused(&folder, name);
        let under = json!({"faults": "each", "under_faults": {"snapshot": name}});
        is_refused(&cage(json!({"status": "completed"}), under), name);
    }
}

#[cfg(unix)]
#[test]
fn no_link_leads_a_snapshot_anywhere() {
    for (name, link, to) in [
        ("link.txt", "link.txt", "outside.txt"),
        ("out/outside.txt", "out", ""),
        ("dangling.txt", "dangling.txt", "new.txt"),
    ] {
        let folder = cage(json!({"snapshot": name}), json!({}));
        std::os::unix::fs::symlink(folder.path().join(to), folder.path().join("p").join(link)).unwrap();
        is_refused(&folder, name);
    }
}

#[test]
fn every_file_that_a_scenario_names_is_one_of_the_project() {
    for name in ["../outside.json", "/proc/self/environ"] {
        for field in ["script", "recording"] {
            is_refused(&cage(json!({"status": "completed"}), json!({field: name})), &format!("{field} {name}"));
        }
        let folder = cage(json!({"status": "completed"}), json!({}));
        let file = folder.path().join("p/l.test.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("\"l.json\"", &format!("{name:?}"))).unwrap();
        is_refused(&folder, &format!("document {name}"));
    }
    // Without a project file nobody says where the project ends: what is no document of ours shows nothing.
    let folder = cage(json!({"status": "completed"}), json!({}));
    std::fs::remove_file(folder.path().join("p/loopctl.json")).unwrap();
    let file = folder.path().join("p/l.test.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"l.json\"", "\"../outside.json\"")).unwrap();
    let tested = call(&folder, &["test"]);
    assert_eq!(tested.status.code(), Some(2), "{}", stderr(&tested));
    assert!(!stderr(&tested).contains(SECRET), "{}", stderr(&tested));
}

#[test]
fn what_a_project_file_names_is_opened_in_its_folder_only() {
    let folder = cage(json!({"status": "completed"}), json!({}));
    std::fs::write(folder.path().join("p/in.sql"), "CREATE TABLE t (v);").unwrap();
    for (name, code) in [("../outside.txt", 1), ("in.sql", 0)] {
        let project = json!({"datasources": {"x": {"url": "sqlite:x.db", "init": name}}});
        std::fs::write(folder.path().join("p/loopctl.json"), project.to_string()).unwrap();
        let checked = call(&folder, &["check"]);
        assert_eq!(checked.status.code(), Some(code), "{}", stderr(&checked));
        assert!(!stderr(&checked).contains(SECRET), "{}", stderr(&checked));
        assert_eq!(stderr(&checked).contains("L148"), code == 1, "{}", stderr(&checked));
    }
    let model = |script: &str| json!({"model": "m", "models": {"m": {"provider": "script", "script": script}}});
    std::fs::write(folder.path().join("p/loopctl.json"), model("../outside.json").to_string()).unwrap();
    for arguments in [&["check"][..], &["run", "l.json", "--store", "memory"]] {
        let refused = call(&folder, arguments);
        assert_ne!(refused.status.code(), Some(0), "{}", stderr(&refused));
        assert!(!stderr(&refused).contains(SECRET) && stderr(&refused).contains("outside"), "{}", stderr(&refused));
    }
}

#[test]
fn a_snapshot_below_the_folder_is_made_compared_and_brought_up_to_date() {
    let folder = cage(json!({"snapshot": "kept/deep/s.json"}), json!({}));
    let kept = folder.path().join("p/kept/deep/s.json");
    assert_eq!(call(&folder, &["test", "--update"]).status.code(), Some(0));
    assert_eq!(call(&folder, &["test"]).status.code(), Some(0));
    let text = std::fs::read_to_string(&kept).unwrap();
    std::fs::write(&kept, text.replace("Done.", "Undone.")).unwrap();
    let differs = call(&folder, &["test"]);
    assert_eq!(differs.status.code(), Some(1), "{}", stderr(&differs));
    assert!(stderr(&differs).contains("was `1: Undone.` and is `1: Done.`"), "{}", stderr(&differs));
    assert_eq!(call(&folder, &["test", "--update"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text);
}

#[test]
fn each_line_of_a_snapshot_begins_as_lines_of_snapshots_do() {
    let reply = json!({"thought": "x\ntouch pwned\n#", "action": "look\nup", "action_input": {"a\nb": "c\nd"}});
    let long = json!({"thought": "y", "action": "__complete__", "action_input": {"answer": "rm -r\n".repeat(40)}});
    let folder = cage(json!({"snapshot": "s.txt"}), json!({"replies": [reply, long]}));
    let updated = call(&folder, &["test", "--update"]);
    assert_eq!(updated.status.code(), Some(0), "{}", stderr(&updated));
    let text = std::fs::read_to_string(folder.path().join("p/s.txt")).unwrap();
    assert!(text.starts_with("1: x\\ntouch pwned\\n#\n"), "{text}");
    for line in text.lines() {
        let line = line.trim_start();
        let of_json = line.starts_with(['"', '{', '}', '[', ']']);
        let of_call = line.starts_with(|c: char| c.is_ascii_digit());
        let of_outcome = ["gives ", "fails with ", "is not made: ", "completed (complete)"];
        assert!(of_json || of_call || of_outcome.iter().any(|begin| line.starts_with(begin)), "{line}\n{text}");
    }
    assert_eq!(call(&folder, &["test"]).status.code(), Some(0));
}

#[test]
fn a_query_and_an_init_without_an_end_are_ended_though_the_clock_is_simulated() {
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) AS n FROM c";
    let action = |query: &str, timeout_ms: u32| {
        json!({"action_name": "lookup", "kind": "db", "description": "Counts.", "datasource": "x", "query": query,
               "timeout_ms": timeout_ms})
    };
    let of = |init: &str, query: &str, timeout_ms: u32| {
        let look = json!({"thought": "Now.", "action": "lookup", "action_input": {}});
        let expect = json!({"calls": [{"action": "lookup", "success": true}]});
        let folder = cage(expect, json!({"replies": [look, answer("x")]}));
        let write = |name: &str, text: String| std::fs::write(folder.path().join("p").join(name), text).unwrap();
        write("loopctl.json", json!({"datasources": {"x": {"url": "sqlite:x.db", "init": "i.sql"}}}).to_string());
        write("i.sql", init.to_owned());
        write("actions/lookup.json", action(query, timeout_ms).to_string());
        let since = Instant::now();
        let tested = call(&folder, &["test"]);
        assert!(since.elapsed() < Duration::from_secs(60), "{}", stderr(&tested));
        tested
    };
    let rows = "CREATE TABLE t (v); INSERT INTO t WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50000) \
                SELECT x FROM c;";
    let works = of(rows, "SELECT count(*) AS n FROM t", 20_000);
    assert_eq!(works.status.code(), Some(0), "{}", stderr(&works));
    let query = of("CREATE TABLE t (v);", endless, 600);
    assert_eq!(query.status.code(), Some(1), "{}", stderr(&query));
    assert!(stderr(&query).contains("timed out"), "{}", stderr(&query));
    let init = of(&format!("CREATE TABLE t AS {endless};"), "SELECT 1 AS n", 600);
    assert_eq!(init.status.code(), Some(1), "{}", stderr(&init));
}

#[test]
fn a_report_shows_signs_that_nobody_sees_and_leaves_letters_and_emoji() {
    let name = "in\u{202E}side\u{200B} Zürich 東京 👩\u{200D}💻";
    let folder = with_scenarios(json!([
        {"name": name, "replies": [answer("x")], "expect": {"answer": "y\u{202E}"}},
    ]));
    for kind in ["junit", "tap", "json", "github"] {
        let report = if kind == "github" { kind.to_owned() } else { format!("{kind}=-") };
        let tested = loopctl(&["test", &path(&folder), "--report", &report]);
        let text = format!("{}{}", stdout(&tested), stderr(&tested));
        assert!(!text.contains(['\u{202E}', '\u{200B}']), "{kind}: {text}");
        assert!(text.contains("Zürich 東京"), "{kind}: {text}");
    }
    let junit = stdout(&loopctl(&["test", &path(&folder), "--report", "junit=-"]));
    assert!(junit.contains("in\\u{202E}side\\u{200B} Zürich 東京 👩\u{200D}💻"), "{junit}");
    let json: Value = serde_json::from_str(&stdout(&loopctl(&["test", &path(&folder), "--report", "json=-"]))).unwrap();
    assert_eq!(json["files"][0]["scenarios"][0]["name"], name);
}

#[test]
fn an_address_that_a_variable_or_a_file_holds_is_never_shown() {
    for (held, store) in [
        ("sk-secret-17", "env:KEY"),
        ("host=db user=u password=secret-17", "env:KEY"),
        ("postgres://u:secret-17@/d?x=1", "env:KEY"),
        ("sqlite://none/secret-17/r.db", "env:KEY"),
        ("line one\nsecret-17", "file:key.txt"),
    ] {
        let folder = cage(json!({"status": "completed"}), json!({}));
        std::fs::write(folder.path().join("p/loopctl.json"), json!({"store": store}).to_string()).unwrap();
        std::fs::write(folder.path().join("p/key.txt"), held).unwrap();
        for arguments in [
            &["runs"][..],
            &["run", "l.json"],
            &["trace", "last"],
            &["workers"],
            &["store", "check"],
            &["serve", ".", "--listen", "127.0.0.1:0"],
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
            command.current_dir(folder.path().join("p")).args(arguments).env("KEY", held).env("NO_COLOR", "1");
            let refused = command.env("OPENAI_API_KEY", "k").output().unwrap();
            let shown = format!("{}{}", stderr(&refused), stdout(&refused));
            assert_ne!(refused.status.code(), Some(0), "{arguments:?}: {shown}");
            assert!(!shown.contains("secret-17") && shown.contains(store), "{arguments:?}: {shown}");
        }
    }
}

#[test]
fn a_file_of_the_project_that_is_no_script_and_no_recording_is_not_shown() {
    for (field, word) in [("recording", "recording"), ("script", "script")] {
        for text in [
            SECRET.to_owned(),
            format!("[\"{SECRET}\"]"),
            format!("{{\"{SECRET}\": {SECRET}}}"),
            format!("{{\"key\": \"{SECRET}\"}}"),
        ] {
            let folder = cage(json!({"status": "completed"}), json!({field: "keys.json"}));
            std::fs::write(folder.path().join("p/keys.json"), &text).unwrap();
            let tested = call(&folder, &["test"]);
            let shown = format!("{}{}", stderr(&tested), stdout(&tested));
            assert_eq!(tested.status.code(), Some(2), "{text}: {shown}");
            assert!(shown.contains(&format!("the {word} `keys.json` can't be used: it is no ")), "{text}: {shown}");
            assert!(!shown.contains(SECRET), "{text}: {shown}");
        }
    }
}

#[test]
fn a_file_of_the_project_that_is_no_document_is_not_shown() {
    for text in [
        SECRET.to_owned(),
        format!("[\"{SECRET}\"]"),
        format!("{{\"{SECRET}\": 1}}"),
        format!("{{\"type\": \"service_account\", \"private_key\": \"{SECRET}\"}}"),
        format!("{{\"type\": \"{SECRET}\", \"properties\": \"{SECRET}\"}}"),
    ] {
        let folder = cage(json!({"status": "completed"}), json!({}));
        let file = folder.path().join("p/l.test.json");
        let named = std::fs::read_to_string(&file).unwrap().replace("l.json", "keys.json");
        std::fs::write(&file, named).unwrap();
        std::fs::write(folder.path().join("p/keys.json"), &text).unwrap();
        for arguments in [&["test"][..], &["check", "l.test.json"], &["test", "--report", "junit=-"]] {
            let tested = call(&folder, arguments);
            let shown = format!("{}{}", stderr(&tested), stdout(&tested));
            assert_ne!(tested.status.code(), Some(0), "{text}: {shown}");
            assert!(shown.contains("the document `keys.json` can't be tested"), "{text}: {shown}");
            assert!(!shown.contains(SECRET), "{text}: {shown}");
        }
    }
}

#[test]
fn the_snapshot_under_faults_has_the_traces_of_all_of_them() {
    let look = json!({"thought": "Look.", "action": "lookup", "action_input": {"id": "7"}});
    let more = json!({"replies": [look, answer("x")], "tools": {"lookup": [{"ok": true}]}, "faults": "each",
        "under_faults": {"snapshot": "kept/faults.txt"}});
    let folder = cage(json!({}), more);
    let kept = folder.path().join("p/kept/faults.txt");
    let absent = call(&folder, &["test"]);
    assert_eq!(absent.status.code(), Some(1), "{}", stderr(&absent));
    assert!(stderr(&absent).contains("there is no snapshot to compare with"), "{}", stderr(&absent));
    let updated = call(&folder, &["test", "--update"]);
    assert_eq!(updated.status.code(), Some(0), "{}", stderr(&updated));
    assert_eq!(call(&folder, &["test"]).status.code(), Some(0));
    let text = std::fs::read_to_string(&kept).unwrap();
    for word in ["timeout", "refused", "reset", "not_json"] {
        assert!(text.contains(&format!("when lookup fails by {word}:")), "{text}");
    }
    std::fs::write(&kept, text.replacen("Done.", "Undone.", 1)).unwrap();
    let differs = call(&folder, &["test"]);
    assert_eq!(differs.status.code(), Some(1), "{}", stderr(&differs));
    assert!(stderr(&differs).contains("was `2: Undone.` and is `2: Done.`"), "{}", stderr(&differs));
    assert_eq!(call(&folder, &["test", "--update"]).status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text);
}
