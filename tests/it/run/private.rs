//! What our process holds is not shown to the programs that it starts.
#![cfg(target_os = "linux")]

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;

use serde_json::json;

use crate::common::{Place, complete, think};

/// Nobody's number.
const NOBODY: u32 = 65_534;

#[test]
fn a_program_of_a_tool_reads_neither_our_environment_nor_our_memory() {
    let place = Place::new();
    let peek = "#!/bin/sh\ncat /proc/$1/environ >/dev/null && echo environment\ncat /proc/$1/mem >/dev/null 2>&1; \
                ls -l /proc/$1/fd >/dev/null && echo descriptors\necho looked\n";
    place.file("peek", peek.replace("$1", "$PPID"));
    place.file("own", peek.replace("$1", "$$"));
    let action = |name: &str| json!({ "action_name": name, "kind": "command", "description": "Looks.", "program": format!("./{name}") });
    place.actions(&[action("peek"), action("own")], &json!({ "allow": { "commands": ["./peek", "./own"] } }));
    let replies = [think("peek", json!({})), think("own", json!({})), complete(json!("done"))];
    place.json("script.json", &json!({ "replies": replies }));
    let args = ["run", "loop.json", "--script", "script.json", "--output", "json", "--store", "memory"];
    let mut command = place.command(&args);
    command.env("OF_OURS", "hunter22-and-more");
    for name in ["peek", "own"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.path().join(name), mode).expect("it is ours");
    }
    // Root sees everything: there the program runs as somebody else.
    if rustix::process::geteuid().is_root() {
        for (path, _) in place.files() {
            chown(place.path().join(path), Some(NOBODY), Some(NOBODY)).expect("we are root");
        }
        chown(place.path(), Some(NOBODY), Some(NOBODY)).expect("we are root");
        command.uid(NOBODY).gid(NOBODY);
    }
    let out = command.output().expect("it starts");
    let result: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}"));
    assert_eq!(result["trace"][0]["observation"], "looked", "{result:#}");
    let own = result["trace"][1]["observation"].as_str().expect("a text");
    assert!(own.contains("environment") && own.contains("descriptors"), "the twin: it could have been seen: {own}");
}
