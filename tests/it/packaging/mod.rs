//! What is packaged fits the program: the image is built from all that the build reads, the units know how the program
//! ends, and the files for Compose and Kubernetes name its options, ports and routes.

mod chart;
mod compose;
mod crates;
mod hooks;
mod packages;
#[cfg(all(unix, debug_assertions))]
mod topology;
mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The words after an instruction, of each line that has it.
fn after<'a>(text: &'a str, instruction: &'a str) -> impl Iterator<Item = Vec<&'a str>> {
    text.lines().filter_map(move |line| line.strip_prefix(instruction)).map(|rest| rest.split_whitespace().collect())
}

/// What the image is built from.
fn copied() -> Vec<PathBuf> {
    let file = read("Dockerfile");
    let own = after(&file, "COPY ").filter(|words| !words.iter().any(|word| word.starts_with("--from=")));
    let paths = own.flat_map(|words| words.iter().rev().skip(1).map(|path| root().join(path)).collect::<Vec<_>>());
    paths.map(|path| path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()))).collect()
}

#[test]
fn the_image_copies_all_that_cargo_toml_names() {
    let copied = copied();
    assert!(["Cargo.toml", "Cargo.lock"].iter().all(|name| copied.contains(&root().join(name))), "{copied:?}");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]);
    let output = cargo.current_dir(root()).output().unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let manifest = read("Cargo.toml");
    let mut count = 0;
    let packages = metadata["packages"].as_array().unwrap();
    for target in packages.iter().flat_map(|package| package["targets"].as_array().unwrap()) {
        let (kind, file) = (target["kind"][0].as_str().unwrap(), target["src_path"].as_str().unwrap());
        // Cargo builds nothing when one of these is not there; others it finds or does not find.
        if ["lib", "bin", "custom-build"].contains(&kind) || manifest.contains(&format!("[[{kind}]]")) {
            assert!(copied.iter().any(|path| Path::new(file).starts_with(path)), "the image misses {file}");
            count += 1;
        }
    }
    assert!(count >= 6, "only {count} were found");
}

#[test]
fn no_source_reads_a_file_that_the_image_does_not_copy() {
    let (mut folders, mut count, copied) = (vec![root().join("src"), root().join("crates")], 0, copied());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            // What tests read is not needed for the program.
            if entry.extension().is_none_or(|ending| ending != "rs") || entry.ends_with("tests.rs") {
                continue;
            }
            let text = fs::read_to_string(&entry).unwrap();
            for part in text.split("include_").skip(1) {
                let path = part.strip_prefix("str!(\"").or_else(|| part.strip_prefix("bytes!(\""));
                // The pages of the codes: a folder, and a name that a macro puts behind it.
                let pages = part.strip_prefix("str!(concat!(\"").and_then(|path| path.split_once('"'));
                let Some((named, _)) = path.and_then(|path| path.split_once("\")")).or(pages) else { continue };
                let file = folder.join(named).canonicalize().unwrap_or_else(|error| panic!("{named}: {error}"));
                assert!(copied.iter().any(|path| file.starts_with(path)), "{} reads {named}", entry.display());
                count += 1;
            }
        }
    }
    assert!(count >= 6, "only {count} were found");
}

#[test]
fn the_image_has_the_rust_that_is_asked_for_and_starts_what_it_built() {
    let (file, manifest) = (read("Dockerfile"), read("Cargo.toml"));
    let wanted = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    let base = after(&file, "FROM ").next().unwrap()[0];
    assert!(base.starts_with(&format!("rust:{wanted}-")), "{base}: Cargo.toml wants {wanted}");
    let built = after(&file, "COPY --from=build ").next().unwrap();
    assert_eq!(built[0], "/source/target/dist/loopctl");
    assert_eq!(after(&file, "ENTRYPOINT ").next().unwrap(), [format!("[{:?}]", built[1])]);
}

#[test]
fn the_image_is_built_from_images_that_nobody_can_exchange() {
    let file = read("Dockerfile");
    let bases: Vec<&str> = after(&file, "FROM ").map(|words| words[0]).collect();
    assert_eq!(bases.len(), 2);
    for base in bases {
        let (image, digest) = base.split_once("@sha256:").unwrap_or_else(|| panic!("{base} has no digest"));
        assert!(image.contains(':'), "{base}: the tag says what the digest is of");
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{base}");
    }
}

/// Plays `packaging/build` with a `cargo` that writes this into the program; what it said, and the flags that
/// `cargo` was given.
#[cfg(unix)]
fn built(home: &Path, program: &str) -> (std::process::Output, String) {
    use std::os::unix::fs::PermissionsExt as _;
    let tools = home.join("tools");
    fs::create_dir_all(&tools).unwrap();
    for (name, script) in [
        ("rustc", "echo /opt/rust".to_owned()),
        (
            "cargo",
            format!(
                "mkdir -p \"$CARGO_TARGET_DIR/dist\"; printf %s \"$CARGO_ENCODED_RUSTFLAGS\" > \"$CARGO_TARGET_DIR/flags\"\n\
                 printf %s '{program}' > \"$CARGO_TARGET_DIR/dist/loopctl\""
            ),
        ),
    ] {
        fs::write(tools.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut build = Command::new(root().join("packaging/build"));
    build.env_clear().env("HOME", home).env("CARGO_TARGET_DIR", home.join("target"));
    let output = build.env("PATH", format!("{}:/usr/bin:/bin", tools.display())).output().unwrap();
    (output, fs::read_to_string(home.join("target/flags")).unwrap())
}

#[cfg(unix)]
#[test]
fn what_is_given_to_others_holds_no_path_of_its_builder() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap().join("a home");
    fs::create_dir(&home).unwrap();
    let shown = home.display();
    let (output, flags) = built(&home, "/cargo/registry/src/x.rs /home");
    assert!(output.status.success(), "{output:?}");
    let flags: Vec<&str> = flags.split('\u{1f}').collect();
    for path in [format!("{shown}=/home"), format!("{shown}/.cargo=/cargo"), format!("{}=/loopctl", root().display())] {
        assert!(flags.contains(&format!("--remap-path-prefix={path}").as_str()), "{path}: {flags:?}");
    }
    for path in [format!("{shown}/.cargo/registry/src/x.rs"), format!("{}/src/main.rs", root().display())] {
        let (output, _) = built(&home, &path);
        assert!(!output.status.success(), "{path}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("holds the path"), "{output:?}");
    }
}

#[test]
fn the_command_lines_of_the_container_are_taken() {
    let page = read("docs/as-a-step.md");
    let section = page.split("## A container").nth(1).unwrap().split("\n## ").next().unwrap().replace("\\\n", " ");
    let lines = section.lines().filter(|line| line.contains("docker run")).map(|line| {
        let words = line.trim_end_matches(')').split_whitespace();
        words.skip_while(|&word| word != "loopctl").skip(1).collect::<Vec<_>>()
    });
    let lines: Vec<Vec<&str>> = lines.collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    for line in lines {
        // With `--help` at the end all before it is read, and nothing is done.
        let output = Command::new(env!("CARGO_BIN_EXE_loopctl")).args(&line).arg("--help").output().unwrap();
        assert!(output.status.success(), "{line:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The unit's user and the image's own neither the folder nor its files.
#[cfg(unix)]
#[test]
fn a_loop_that_the_servers_user_may_not_read_is_reported_and_not_left_out() {
    use std::os::unix::fs::PermissionsExt;
    for (name, barred) in [("loops", "loops/inner"), ("loops/inner", "loops/inner/loop.json")] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loops/inner/loop.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, r#"{"type": "loop", "properties": {"mode": "react", "objective": "Do it.", "tools": []}}"#)
            .unwrap();
        let barred = folder.path().join(barred);
        fs::set_permissions(&barred, PermissionsExt::from_mode(0o000)).unwrap();
        if fs::read(&file).is_ok() {
            eprintln!("SKIPPED: root may read everything");
            return;
        }
        let mut serve = Command::new(env!("CARGO_BIN_EXE_loopctl"));
        // A folder that were taken would be refused for this address, and not be waited for.
        serve.args(["serve", name, "--listen", "0.0.0.0:0", "--store", "memory"]);
        let ended = serve.current_dir(folder.path()).env("HOME", folder.path()).output().unwrap();
        fs::set_permissions(&barred, PermissionsExt::from_mode(0o700)).unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("can't be read"), "{stderr}");
    }
}
