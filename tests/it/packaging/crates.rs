//! How many crates the program and the library are built from.

use std::collections::BTreeSet;
use std::process::Command;

use super::root;

/// The crates of a build, our own included, by name and version.
fn crates(options: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--edges", "normal", "--prefix", "none", "--offline", "--locked", "--format", "{p}"]);
    let output = cargo.args(options).current_dir(root()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let names: BTreeSet<String> = text.lines().map(name).filter(|name| !name.is_empty()).collect();
    assert!(names.contains("loopctl v0.1.0"), "{output:?}");
    names
}

#[test]
fn few_crates_are_built() {
    let cure = "CONTRIBUTING.md says which crates Cargo.lock holds back, and with which commands";
    for (options, limit) in [(&[][..], 240), (&["--no-default-features"][..], 170)] {
        let crates = crates(options);
        assert!(crates.len() <= limit, "{options:?}: {} crates, {limit} at most: {cure}", crates.len());
    }
}
