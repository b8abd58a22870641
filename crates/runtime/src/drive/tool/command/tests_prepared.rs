//! What a program of an action is given, and what a program that the user names is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::json;

use super::*;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::template::ValueEscape;

const SECRET: &str = "hunter22-and-more";

fn plain(text: &str) -> Template {
    Template::compile(text, ValueEscape::Plain).unwrap()
}

/// An action on `sh` with these templates, prepared in a project whose only secret is `k`.
fn prepared(args: &[&str], env: &[(&str, &str)], stdin: Option<&str>) -> Result<Prepared, ToolFault> {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("key"), SECRET).unwrap();
    let vault = Vault::new(BTreeMap::from([("k".to_owned(), "file:key".into())]), root.path());
    let action = json!({ "action_name": "t", "program": "sh" }).to_string();
    let tool = CommandTool {
        action: serde_json::from_str(&action).unwrap(),
        args: args.iter().map(|text| plain(text)).collect(),
        stdin: stdin.map(plain),
        env: env.iter().map(|(name, text)| ((*name).to_owned(), plain(text))).collect(),
    };
    let allow = Allow { commands: vec!["sh".to_owned()], env: vec!["TICKET".to_owned()], ..Allow::default() };
    let arguments = json!({ "x": "one" });
    let scope = Scope {
        arguments: &arguments,
        now: "2026-01-01T00:00:00Z",
        run_id: "r",
        secrets: Some(&vault),
        ..Scope::of_input(&Value::Null, JsonRule::Plain.into())
    };
    prepare(&tool, &allow, root.path(), &scope)
}

#[test]
fn a_secret_reaches_the_input_and_the_environment_of_a_program_and_never_its_arguments() {
    let ready = prepared(&["{{x}}"], &[("TOKEN", "Bearer orgconfig:k")], Some("orgconfig:k {{x}}")).unwrap();
    assert_eq!(ready.args, ["one"]);
    assert_eq!(ready.stdin.as_deref(), Some(format!("{SECRET} one").as_bytes()));
    assert_eq!(ready.env.last().unwrap(), &("TOKEN".to_owned(), format!("Bearer {SECRET}")));
    let shown = prepared(&["orgconfig:k"], &[], None);
    assert!(!format!("{shown:?}").contains(SECRET), "{shown:?}");
    assert_eq!(shown.unwrap_err().class, "a value is missing or can't be used");
}

#[test]
fn a_variable_of_the_action_takes_the_place_of_the_fixed_one() {
    let names = |ready: &Prepared| ready.env.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let ready = prepared(&[], &[("PATH", "/opt/bin"), ("TICKET", "{{x}}")], None).unwrap();
    assert_eq!(names(&ready), ["LANG", "PATH", "TICKET"]);
    assert_eq!(ready.env[1].1, "/opt/bin");
    assert_eq!(names(&prepared(&[], &[], None).unwrap()), ["PATH", "LANG"]);
    assert_eq!(prepared(&[], &[("OTHER", "{{x}}")], None).unwrap_err().class, "environment not allowed");
}

#[test]
fn a_program_is_a_file_that_may_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tool");
    fs::write(&file, "").unwrap();
    for (mode, is_one) in [(0o644, false), (0o744, true), (0o654, true), (0o645, true)] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(is_program(&file), is_one, "{mode:o}");
    }
    assert!(!is_program(folder.path()) && !is_program(&folder.path().join("none")));
}

#[test]
fn the_end_of_a_program_is_said_with_its_status_its_signal_or_its_memory() {
    let raw = ExitStatus::from_raw;
    assert_eq!(process::ended(raw(3 << 8), true), "program ended with status 3");
    assert_eq!(process::ended(raw(9), false), "program ended by signal 9");
    assert_eq!(process::ended(raw(15), true), "program ended by signal 15");
    assert_eq!(process::ended(raw(9), true), "program was killed for the memory that it took");
}

#[tokio::test]
async fn a_failure_says_what_was_printed_when_there_is_no_error_output() {
    let ready = prepared(&["-c", "echo out; exit 3"], &[], None).unwrap();
    let ready = Prepared { cwd: "/".into(), ..ready };
    let fault = process::run(&ready, false).await.unwrap_err().fault;
    assert_eq!((fault.class.as_str(), fault.detail.as_str()), ("program ended with status 3", "out\n"));
    // One line end is the program's; the others are the text's.
    let lines = Prepared { args: vec!["-c".to_owned(), "printf 'a\\n\\n'".to_owned()], ..ready };
    assert_eq!(process::run(&lines, false).await.unwrap(), json!("a\n"));
}

#[tokio::test]
async fn a_named_program_gets_one_argument_and_its_input_and_ends_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let (file, output) = (folder.path().join("program"), folder.path().join("output"));
    let write = |script: &str| {
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let run = |program: &'static str, at_most: Duration| {
        let program = if program.is_empty() { file.clone() } else { PathBuf::from(program) };
        async move { NamedProgram { program: &program, argument: "r 1", stdin: "in".to_owned(), at_most }.run().await }
    };
    let long = Duration::from_secs(60);
    write(&format!("echo \"$# $1 $(cat) $LANG\" > {}", output.display()));
    run("", long).await.unwrap();
    assert_eq!(fs::read_to_string(&output).unwrap(), "1 r 1 in C.UTF-8\n");
    write("exit 4");
    assert_eq!(run("", long).await.unwrap_err().class, "program ended with status 4");
    write("sleep 1000");
    assert_eq!(run("", Duration::from_millis(50)).await.unwrap_err().class, "timed out after 50 ms");
    // A name without a folder is searched in the fixed path, and not in the current folder.
    run("true", long).await.unwrap();
    let fault = run("Cargo.toml", long).await.unwrap_err();
    assert_eq!(fault.class, "program not found");
}
