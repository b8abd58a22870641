//! The hooks of pre-commit and the action of GitHub: what they call is accepted by the program and does what it is for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::{read, root};

const PROGRAM: &str = env!("CARGO_BIN_EXE_loopctl");

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// With `--help` at the end all before it is read, and nothing is done.
fn is_accepted(line: &str) {
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("loopctl"), "{line}");
    let output = Command::new(PROGRAM).args(words).arg("--help").output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A folder with a formatted loop, its scenario, and the program first on a path.
fn folder() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        let to = folder.path().join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(root().join(from), to).unwrap();
    };
    for file in ["loop.json", "loop.test.json", "loopctl.json", "script.json"] {
        copy(&format!("examples/http-status/{file}"), file);
    }
    for file in ["announce_incident", "service_status"] {
        copy(&format!("examples/http-status/actions/{file}.json"), &format!("actions/{file}.json"));
    }
    let path = format!("{}:/usr/bin:/bin", Path::new(PROGRAM).parent().unwrap().display());
    (folder, path)
}

fn shell(folder: &Path, path: &str, line: &str, env: &[(&str, &str)]) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-ec", line]).current_dir(folder).env_clear().env("PATH", path).env("HOME", folder);
    shell.envs(env.iter().copied()).output().unwrap()
}

#[test]
fn the_hooks_of_pre_commit_pass_a_sound_folder_and_stop_a_commit_of_any_other() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let entries: BTreeMap<&str, &str> =
        hooks.as_array().unwrap().iter().map(|hook| (text(hook, "id"), text(hook, "entry"))).collect();
    assert_eq!(entries.keys().copied().collect::<Vec<_>>(), ["loopctl-check", "loopctl-fmt", "loopctl-test"]);
    for hook in hooks.as_array().unwrap() {
        // A name that is passed would be checked as a document, whatever it is.
        assert_eq!(hook["pass_filenames"], Value::Bool(false), "{hook}");
        assert_eq!(text(hook, "language"), "rust");
        is_accepted(text(hook, "entry"));
    }
    let (folder, path) = folder();
    let play = |id: &str| shell(folder.path(), &path, entries[id], &[]);
    for id in entries.keys() {
        let output = play(id);
        assert!(output.status.success(), "{id}: {output:?}");
    }
    let sound = fs::read_to_string(folder.path().join("loop.json")).unwrap();
    let change = |text: String| fs::write(folder.path().join("loop.json"), text).unwrap();
    // pre-commit stops when a hook changes a file.
    change(sound.replace("  \"type\"", "\"type\""));
    assert!(play("loopctl-fmt").status.success());
    assert_eq!(fs::read_to_string(folder.path().join("loop.json")).unwrap(), sound);
    change(sound.replace("\"max_iterations\": 10", "\"max_iteration\": 10"));
    assert_eq!(play("loopctl-check").status.code(), Some(1));
    change(sound);
    let scenarios = fs::read_to_string(folder.path().join("loop.test.json")).unwrap();
    fs::write(folder.path().join("loop.test.json"), scenarios.replace("INC-88\" },", "INC-99\" },")).unwrap();
    assert_eq!(play("loopctl-test").status.code(), Some(1));
}

#[test]
fn the_action_calls_the_program_and_no_input_is_a_part_of_a_command() {
    let action = yaml("action.yml");
    let steps = action["runs"]["steps"].as_array().unwrap();
    let inputs = action["inputs"].as_object().unwrap();
    let (folder, path) = folder();
    let mut called = Vec::new();
    for step in steps {
        let (line, shown) = (text(step, "run"), step.to_string());
        assert!(!line.contains("${{"), "{line}");
        assert_eq!(text(step, "shell"), "bash");
        for input in shown.split("inputs.").skip(1) {
            let name: String = input.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            assert!(inputs.contains_key(&name), "{name} is no input: {shown}");
        }
        if !line.starts_with("loopctl ") {
            assert!(root().join("packaging/action/install").exists() && line.ends_with("/packaging/action/install\""));
            continue;
        }
        is_accepted(&line.replace("\"$LOOPCTL_COVERAGE\"", "0"));
        let output = shell(folder.path(), &path, line, &[("LOOPCTL_COVERAGE", "80")]);
        assert!(output.status.success(), "{line}: {output:?}");
        called.push(line.split_whitespace().nth(1).unwrap());
    }
    assert_eq!(called, ["check", "check", "fmt", "test"]);
    fs::write(folder.path().join("loop.json"), r#"{"type": "loop", "properties": {"mode": "react"}}"#).unwrap();
    let annotated = |line: &str| String::from_utf8(shell(folder.path(), &path, line, &[]).stdout).unwrap();
    for line in ["loopctl check --format github", "loopctl fmt --check --format github"] {
        assert!(annotated(line).starts_with("::error file=loop.json,line=1"), "{line}: {}", annotated(line));
    }
    // GitHub finds a file by its path from the root of the repository alone.
    let (root, below) = (folder.path().display().to_string(), folder.path().join("my loops"));
    fs::create_dir(&below).unwrap();
    fs::rename(folder.path().join("loop.json"), below.join("loop.json")).unwrap();
    for line in ["loopctl check --format github", "loopctl fmt --check --format github"] {
        let output = shell(&below, &path, line, &[("GITHUB_WORKSPACE", &root)]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("::error file=my loops/loop.json,line=1"), "{line}: {said}");
    }
}

/// Plays `packaging/action/install` with releases in a folder.
#[cfg(target_os = "linux")]
#[test]
fn the_action_takes_a_release_with_its_checksum_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display().to_string();
    let name = format!("loopctl-{}-unknown-linux-musl", std::env::consts::ARCH);
    let script = format!(
        "mkdir -p v1.2.3/{name} && printf '#!/bin/sh\\necho loopctl 1.2.3\\n' > v1.2.3/{name}/loopctl && chmod +x v1.2.3/{name}/loopctl\n\
         cd v1.2.3 && tar -cJf {name}.tar.xz {name} && sha256sum {name}.tar.xz > {name}.tar.xz.sha256"
    );
    let path = "/usr/local/bin:/usr/bin:/bin";
    assert!(shell(folder.path(), path, &script, &[]).status.success());
    let install = |version: &str, repository: &str| {
        let line = format!("bash {}", root().join("packaging/action/install").display());
        let releases = format!("file://{at}");
        let paths = format!("{at}/path");
        let env = [
            ("LOOPCTL_VERSION", version),
            ("LOOPCTL_REPOSITORY", repository),
            ("LOOPCTL_RELEASES", &releases),
            ("RUNNER_TEMP", &at),
            ("GITHUB_PATH", &paths),
        ];
        let output = shell(folder.path(), path, &line, &env);
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    assert_eq!(install("v1.2.3", "owner/loopctl"), (true, "loopctl 1.2.3\n".to_owned()));
    let added = fs::read_to_string(folder.path().join("path")).unwrap();
    assert!(Path::new(added.trim()).join("loopctl").exists(), "{added}");
    for (version, repository) in
        [("1.2.4", "owner/loopctl"), ("1.2.3; rm -rf x", "owner/loopctl"), ("1.2.3", "../x"), ("1.2.3", "x/..")]
    {
        let (success, said) = install(version, repository);
        assert!(!success && said.contains("::error title=loopctl::"), "{version} {repository}: {said}");
    }
    fs::write(folder.path().join(format!("v1.2.3/{name}.tar.xz.sha256")), "0000  x\n").unwrap();
    let (success, said) = install("1.2.3", "owner/loopctl");
    assert!(!success && said.contains("does not have the checksum"), "{said}");
    let (success, said) = install("installed", "");
    assert!(!success && said.contains("no loopctl on the PATH"), "{said}");
}
