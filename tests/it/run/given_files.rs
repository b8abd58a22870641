//! Files that an option names: a pipe is not waited for, a device not read to an end that it has not, and what
//! is too long is not taken into memory. Standard input is a pipe by right, and has a bound.
#![cfg(unix)]

use std::fs::File;
use std::process::Command;

use serde_json::json;

use crate::common::{Place, complete};

fn pipe(place: &Place, name: &str) {
    let made = Command::new("mkfifo").arg(place.path().join(name)).status().expect("mkfifo");
    assert!(made.success());
}

fn refused(place: &Place, args: &[&str], why: &str) {
    let ran = place.call(args);
    assert_eq!(ran.code, 2, "{args:?}: {ran:#?}");
    assert!(ran.stderr.contains(why), "{args:?}: {}", ran.stderr);
}

fn sound() -> Place {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("ok"))]);
    place
}

#[test]
fn no_option_waits_for_a_pipe() {
    let place = sound();
    pipe(&place, "pipe.json");
    const WHY: &str = "no regular file (a pipe, a device or a socket)";
    refused(&place, &["run", "loop.json", "--script", "pipe.json"], WHY);
    refused(&place, &["run", "loop.json", "--script", "script.json", "--input-file", "pipe.json"], WHY);
    refused(&place, &["run", "loop.json", "--script", "script.json", "--actions", "pipe.json"], WHY);
    refused(&place, &["prompt", "loop.json", "--script", "pipe.json"], WHY);
    refused(&place, &["check", "loop.json", "--actions", "pipe.json"], WHY);
    let (ran, run) = place.run(&["--run-id", "r1"]);
    assert_eq!(ran.code, 0, "{ran:#?} {run}");
    refused(&place, &["resume", "r1", "--script", "pipe.json"], WHY);
    refused(&place, &["resume", "r1", "--new-document", "--actions", "pipe.json"], WHY);
}

#[test]
fn no_option_reads_a_device_or_a_hole() {
    let place = sound();
    for option in ["--script", "--input-file", "--actions"] {
        refused(&place, &["run", "loop.json", option, "/dev/zero"], "no regular file");
    }
    File::create(place.path().join("hole.json")).and_then(|file| file.set_len(8 << 30)).expect("a hole");
    for (option, most) in [("--script", "64 MiB"), ("--input-file", "64 MiB"), ("--actions", "16 MiB")] {
        refused(&place, &["run", "loop.json", option, "hole.json"], most);
    }
}

#[test]
fn a_script_of_the_project_is_no_pipe_either() {
    let place = sound();
    pipe(&place, "said.json");
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "models": { "m": { "provider": "script", "script": "said.json" } } }),
    );
    refused(&place, &["run", "loop.json"], "no regular file");
}

#[test]
fn standard_input_has_a_bound_and_is_read_up_to_it() {
    let place = sound();
    let run = ["run", "loop.json", "--script", "script.json", "--input-file", "-"];
    let ran = place.call_reading(&run, b" {\"x\": 1} ");
    assert_eq!(ran.code, 0, "{ran:#?}");
    let ran = place.call_reading(&run, &vec![b' '; (64 << 20) + 1]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("stdin can't be read: it has more than 64 MiB"), "{}", ran.stderr);
}
