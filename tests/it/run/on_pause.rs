//! `--on-pause`: a program is notified once that a run waits, whatever comes of it.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, gone, ran, think};

fn ask(question: &str) -> Value {
    think("__pause_for_human__", json!({ "question": question, "options": ["a", "b"] }))
}

/// A place with a loop and a program `tell.sh` of these lines.
fn place(properties: Value, replies: &[Value], lines: &str) -> Place {
    let place = Place::new();
    place.looped(&properties).script(replies);
    let file = place.file("tell.sh", format!("#!/bin/sh\n{lines}\n"));
    std::process::Command::new("chmod").arg("+x").arg(file).status().expect("chmod");
    place
}

/// What the program wrote each time.
const RECORDS: &str = "cat >> notices; echo \"$# $1\" >> args; env | cut -d= -f1 | sort > variables; echo loud";

fn notices(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.path().join("notices")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON on a line")).collect()
}

fn call(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Ran {
    ran(&place.start(args, env).wait_with_output().expect("it ends"))
}

fn run(place: &Place, more: &[&str], env: &[(&str, &str)]) -> Ran {
    let args = ["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"];
    call(place, &[&args, more].concat(), env)
}

fn resume(place: &Place, more: &[&str]) -> Ran {
    call(place, &[&["resume", "r", "--script", "script.json", "--output", "json"], more].concat(), &[])
}

const TELL: [&str; 2] = ["--on-pause", "./tell.sh"];

#[test]
fn a_program_gets_what_the_run_waits_for_and_two_variables() {
    let place = place(json!({}), &[ask("Which one?"), complete(json!("ok"))], RECORDS);
    let paused = run(&place, &TELL, &[("SECRET_OF_THE_SHELL", "s3cret")]);
    assert_eq!((paused.code, &paused.json()["status"]), (3, &json!("paused")), "{paused:#?}");
    let [one] = &notices(&place)[..] else { panic!("it is notified once: {:?}", notices(&place)) };
    assert_eq!((&one["agent_run_id"], &one["status"], &one["loop"]), (&json!("r"), &json!("paused"), &json!("test")));
    let pause = &one["pause"];
    assert_eq!(
        (&pause["number"], &pause["question"], &pause["options"], &pause["choices"]),
        (&json!(1), &json!("Which one?"), &json!(["a", "b"]), &json!(["answer"]))
    );
    assert!(pause.get("answer").is_none(), "only a server has tokens: {pause}");
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).expect("it was written");
    assert_eq!(read("args"), "1 r\n");
    let variables = read("variables");
    for name in variables.lines() {
        assert!(matches!(name, "PATH" | "LANG" | "LOOPCTL_CALL" | "PWD" | "_" | "SHLVL" | "OLDPWD"), "{variables}");
    }
    assert!(!paused.stdout.contains("loud") && !paused.stderr.contains("loud"), "{paused:#?}");
}

#[test]
fn each_pause_is_told_by_the_command_in_which_the_run_pauses() {
    let place = place(json!({}), &[ask("One?"), ask("Two?"), complete(json!("ok"))], RECORDS);
    assert_eq!(run(&place, &TELL, &[]).code, 3);
    assert_eq!(run(&place, &TELL, &[]).code, 3, "it waits already");
    assert_eq!(resume(&place, &TELL).code, 3, "it is shown");
    assert_eq!(notices(&place).len(), 1);
    assert_eq!(resume(&place, &[&["--answer", "a"], &TELL[..]].concat()).code, 3);
    let numbers: Vec<Value> = notices(&place).iter().map(|one| one["pause"]["number"].clone()).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(resume(&place, &[&["--answer", "b"], &TELL[..]].concat()).code, 0);
    assert_eq!(notices(&place).len(), 2, "a run that ends notifies nobody");
}

#[test]
fn every_command_that_drives_a_run_notifies_the_program_of_its_pause() {
    let place = place(json!({}), &[ask("Which one?"), complete(json!("ok"))], RECORDS);
    assert_eq!(run(&place, &[], &[]).code, 3);
    let script = ["--script", "script.json", "--output", "json"];
    let rerun = call(&place, &[&["rerun", "r", "--run-id", "again"], &script[..], &TELL].concat(), &[]);
    assert_eq!(rerun.code, 3, "{rerun:#?}");
    let fork = ["fork", "again", "--at", "1", "--run-id", "forked"];
    let forked = call(&place, &[&fork, &script[..], &TELL].concat(), &[]);
    assert_eq!(forked.code, 3, "{forked:#?}");
    let notified: Vec<Value> = notices(&place).iter().map(|one| one["agent_run_id"].clone()).collect();
    assert_eq!(notified, ["again", "forked"]);
    // The same flags are judged in the same way.
    for args in [&["rerun", "r"][..], &["fork", "r", "--at", "1"], &["retry", "r"], &["resume", "r"]] {
        let refused = |flag: &'static str| call(&place, &[args, &[flag][..]].concat(), &[]);
        assert!(refused("--deltas").stderr.contains("add --output ndjson"), "{args:?}");
        let asked = refused("--interactive");
        assert!(asked.code == 2 && asked.stderr.contains("needs a terminal"), "{args:?}: {asked:#?}");
    }
    let lone = call(&place, &["rerun", "r", "--actions", "more.json"], &[]);
    assert!(lone.code == 2 && lone.stderr.contains("--actions goes with --document"), "{lone:#?}");
}

#[test]
fn a_waiting_call_is_told_with_its_hash_and_without_its_secrets() {
    let tool = json!({ "type": "action", "name": "act", "requires_approval": true });
    let reply = think("act", json!({ "what": "pay", "api_key": "k-0123456789" }));
    let place = place(json!({ "tools": [tool] }), &[reply, complete(json!("ok"))], RECORDS);
    assert_eq!(run(&place, &TELL, &[]).code, 3);
    let call = notices(&place)[0]["pause"]["calls"][0].clone();
    assert_eq!((&call["action"], &call["action_input"]["api_key"]), (&json!("act"), &json!("[hidden]")));
    assert_eq!(call["choices"], json!(["approve", "deny", "edit"]));
    let hash = call["hash"].as_str().expect("a hash");
    assert_ne!(resume(&place, &["--deny", "--if", hash]).code, 2, "the hash is that of the call");
}

#[test]
fn a_program_that_fails_is_a_warning_and_the_exit_code_stays() {
    for (lines, program, words) in [
        ("echo no channel >&2; exit 7", "./tell.sh", "no channel"),
        ("exit 0", "./no-such-program", "program not found"),
        ("exit 0", "no-such-program-0042", "is in none of"),
        ("yes | head -c 3000000", "./tell.sh", "output too large"),
        ("kill -9 $$", "./tell.sh", "signal"),
    ] {
        let place = place(json!({}), &[ask("?")], lines);
        let paused = run(&place, &["--on-pause", program], &[]);
        assert_eq!((paused.code, &paused.json()["status"]), (3, &json!("paused")), "{paused:#?}");
        let warning = paused.stderr.lines().find(|line| line.contains("--on-pause")).unwrap_or_default();
        assert!(warning.starts_with("warning:") && paused.stderr.contains(words), "{words}: {paused:#?}");
    }
}

#[test]
fn a_program_that_takes_too_long_is_killed_with_all_that_it_started() {
    let lines = "sleep 1000 & echo $$ > pids; echo $! >> pids; wait";
    let place = place(json!({}), &[ask("?")], lines);
    // Long enough for the program to start, on a busy machine too: what is killed before wrote no numbers.
    let paused = run(&place, &TELL, &[("LOOPCTL_FAIL", "time:1500:on_pause")]);
    assert_eq!(paused.code, 3, "{paused:#?}");
    assert!(paused.stderr.contains("timed out after 1500 ms"), "{paused:#?}");
    for pid in std::fs::read_to_string(place.path().join("pids")).unwrap_or_default().lines() {
        assert!(gone(pid), "process {pid} is left");
    }
}

#[test]
fn a_signal_kills_the_program_and_the_run_waits_all_the_same() {
    let place = place(json!({}), &[ask("?"), complete(json!("ok"))], "echo $$ > pid.new; mv pid.new pid; sleep 1000");
    let args = ["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"];
    let child = place.start(&[&args[..], &TELL].concat(), &[]);
    let file: PathBuf = place.path().join("pid");
    while !file.is_file() {
        crate::common::wait_poll_interval();
    }
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), Signal::SIGTERM).expect("it is there");
    let stopped = ran(&child.wait_with_output().expect("it ends"));
    assert_eq!((stopped.code, &stopped.json()["status"]), (3, &json!("paused")), "{stopped:#?}");
    assert!(stopped.stderr.contains("stopped by a signal"), "{stopped:#?}");
    assert!(gone(std::fs::read_to_string(file).expect("a pid").trim()));
    assert_eq!(resume(&place, &["--answer", "a"]).code, 0);
}
