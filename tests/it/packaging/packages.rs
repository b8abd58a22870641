//! What packages are made of: the descriptions agree, each file that they name is there, the launcher of npm passes on what it
//! is given, and a release is started by a person.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{read, root};

/// The value of a key in a text of TOML: the first line that has it, without its quotes.
fn value<'a>(toml: &'a str, key: &str) -> &'a str {
    let line = toml.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
    line.unwrap_or_else(|| panic!("no {key}")).trim().trim_matches('"')
}

#[test]
fn every_package_says_the_same_of_the_program() {
    let (cargo, wheel) = (read("Cargo.toml"), read("packaging/pypi/pyproject.toml"));
    let npm: Value = serde_json::from_str(&read("packaging/npm/package.json")).unwrap();
    let description = value(&cargo, "description");
    assert_eq!(value(&wheel, "description"), description);
    assert_eq!(npm["description"], description);
    assert_eq!(npm["license"], value(&cargo, "license"));
    assert_eq!(value(&wheel, "license"), value(&cargo, "license"));
    assert_eq!(npm["keywords"], serde_json::from_str::<Value>(value(&cargo, "keywords")).unwrap());
    assert_eq!(value(&wheel, "profile"), "dist");
    assert_eq!(value(&read("dist-workspace.toml"), "cargo-dist-version"), "0.34.0");
    // `pack` writes the version of Cargo.toml in the place of this one.
    let versions = npm["optionalDependencies"].as_object().unwrap().values().chain([&npm["version"]]);
    assert!(versions.into_iter().all(|version| version == "0.0.0"));
    assert!(npm.get("scripts").is_none(), "nothing runs when the package is installed");
}

#[test]
fn what_the_package_of_debian_holds_is_there_or_made_by_pack() {
    let (cargo, pack) = (read("Cargo.toml"), read("packaging/pack"));
    let assets = cargo.split("assets = [").nth(1).unwrap().split("\n]").next().unwrap();
    let mut count = 0;
    for line in assets.lines().map(str::trim).filter(|line| line.starts_with('[')) {
        let asset: Vec<String> = serde_json::from_str(line.trim_end_matches(',')).unwrap();
        let made = asset[0].strip_prefix("target/packages-share/").map(|path| path.rsplit_once('/').unwrap().0);
        match made {
            Some(folder) => assert!(pack.contains(&format!("\"$share/{folder}\"")), "pack does not make {folder}"),
            None => assert!(asset[0] == "target/dist/loopctl" || root().join(&asset[0]).exists(), "{}", asset[0]),
        }
        count += 1;
    }
    assert!(count >= 8, "only {count} were found");
}

#[test]
fn the_man_pages_are_those_of_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let man = |to: &Path| Command::new(env!("CARGO_BIN_EXE_loopctl")).arg("man").arg(to).output().unwrap();
    assert!(man(folder.path()).status.success());
    let page =
        |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(page("loopctl.1").contains("loopctl\\-fmt(1)"), "{}", page("loopctl.1"));
    assert!(page("loopctl-fmt.1").contains("lines of at most 100 characters"));
    assert!(page("loopctl-store-migrate.1").starts_with(".ie"), "a page for each part of a command");
    assert!(!folder.path().join("loopctl-man.1").exists(), "a hidden command has no page");
    let output = man(&folder.path().join("absent"));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_release_is_started_by_a_person_and_no_input_is_a_part_of_a_command() {
    let workflow: Value = serde_saphyr::from_str(&read(".github/workflows/release.yml")).unwrap();
    assert_eq!(workflow["on"].as_object().unwrap().keys().collect::<Vec<_>>(), ["workflow_dispatch"]);
    assert_eq!(workflow["permissions"], serde_json::json!({ "contents": "read" }));
    let jobs = workflow["jobs"].as_object().unwrap();
    let mut count = 0;
    for (name, job) in jobs {
        for step in job["steps"].as_array().unwrap() {
            let Some(run) = step["run"].as_str() else { continue };
            assert!(!run.contains("${{"), "{name}: {run}");
            for script in run.split_whitespace().filter(|word| word.starts_with("packaging/")) {
                assert!(root().join(script).exists(), "{name}: {script}");
                count += 1;
            }
        }
        // What is published waits for the draft, and the draft for a person's word.
        if ["pypi", "npm", "images"].contains(&name.as_str()) {
            let waits = job["needs"] == "draft" || job["needs"][0] == "draft";
            assert!(waits && job["environment"] == name.as_str(), "{name}");
        } else {
            let steps = job["steps"].to_string();
            assert!(!["docker push", "npm publish", "pypi-publish"].iter().any(|word| steps.contains(word)), "{name}");
        }
    }
    assert!(count >= 3, "{count}");
    assert!(jobs["images"]["steps"].to_string().contains("docker push"));
    assert!(jobs["draft"]["if"].as_str().unwrap().contains("inputs.publish"));
}

/// Whether there is Node.js, which the launcher of npm needs; without one its test is skipped, and says so.
#[cfg(unix)]
fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no node");
    }
    found
}

#[cfg(unix)]
#[test]
fn the_launcher_of_npm_passes_on_arguments_exit_codes_and_signals() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Stdio;
    if !has_node() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("node_modules/loopctl/bin/loopctl.js");
    fs::create_dir_all(launcher.parent().unwrap()).unwrap();
    fs::copy(root().join("packaging/npm/loopctl.js"), &launcher).unwrap();
    let call = |args: &[&str]| {
        let mut node = Command::new("node");
        node.arg(&launcher).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        node.spawn().unwrap()
    };
    let output = call(&["--version"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not installed"), "{output:?}");
    let platform = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let program = folder.path().join(format!("node_modules/@loopctl/{platform}-{cpu}/bin/loopctl"));
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let script = "#!/bin/sh\nif [ \"$1\" = wait ]; then trap 'echo ended; exit 130' TERM; echo ready; \
                  for at in $(seq 600); do sleep 0.05; done; fi\n\
                  printf '<%s>' \"$@\"; exit 3\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let output = call(&["a b", "", "*"]).wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), b"<a b><><*>".as_slice()));
    let mut child = call(&["wait"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(lines.next().unwrap().unwrap(), "ended");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
