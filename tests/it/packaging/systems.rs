//! `packaging/systems` checks each target of another system that is installed, and needs no compiler of C for it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use crate::packaging::{read, root};

/// What the script says, with a `rustup` that has these targets and a `cargo` that compiles C for the first.
fn checked(targets: &[&str]) -> (Output, String) {
    let folder = tempfile::tempdir().unwrap();
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let cargo = "echo \"$@\" >>\"$HOME/calls\"\n\
                 case $* in\n\
                 *apple*) \"$CC_aarch64_apple_darwin\" -O2 -c a.c -o \"$HOME/a.o\" && \"$AR_aarch64_apple_darwin\" cq \"$HOME/libx.a\" a.o &&\n\
                 [ -e \"$HOME/a.o\" ] && [ -e \"$HOME/libx.a\" ] || exit 7 ;;\n\
                 esac";
    for (name, script) in [("rustup", format!("printf '%s\\n' {}", targets.join(" "))), ("cargo", cargo.to_owned())] {
        fs::write(tools.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut check = Command::new(root().join("packaging/systems"));
    check.env_clear().env("HOME", folder.path()).env("PATH", format!("{}:/usr/bin:/bin", tools.display()));
    let output = check.output().unwrap();
    (output, fs::read_to_string(folder.path().join("calls")).unwrap_or_default())
}

#[test]
fn each_other_system_that_is_installed_is_checked_and_nothing_else() {
    let (output, calls) = checked(&[
        "aarch64-apple-darwin",
        "wasm32-unknown-unknown",
        "x86_64-pc-windows-gnu",
        "x86_64-unknown-linux-gnu",
    ]);
    assert!(output.status.success(), "{output:?}");
    let wanted = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];
    assert_eq!(calls.lines().collect::<Vec<_>>(), wanted.map(|target| format!("check --locked --target {target}")));
    let (output, calls) = checked(&["x86_64-unknown-linux-gnu"]);
    assert!(output.status.success() && calls.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("skipped: "), "{output:?}");
}

#[test]
fn the_nightly_checks_the_other_systems_and_the_page_says_so() {
    let commands = read("justfile");
    assert!(commands.contains("\nsystems:\n    packaging/systems\n"), "{commands}");
    let nightly = commands.lines().find(|line| line.starts_with("nightly:")).unwrap();
    assert!(nightly.split_whitespace().any(|word| word == "systems"), "{nightly}");
    assert!(read("docs/running.md").contains("compiled each night (`just systems`)"));
}
