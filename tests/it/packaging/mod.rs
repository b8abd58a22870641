//! What is packaged fits the program: the image is built from all that the build reads, the units know how the program
//! ends, and the files for Compose and Kubernetes name its options, ports and routes.

mod chart;
mod compose;
mod crates;
mod hooks;
mod packages;
mod prometheus;
#[cfg(target_os = "linux")]
mod systems;
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
    // It is built for this target, laid out where the image has it, and started from there.
    let target = "$(uname -m)-unknown-linux-musl";
    let steps: Vec<String> = after(&file, "RUN ").map(|words| words.join(" ")).collect();
    assert!(file.contains(&format!("rustup target add \"{target}\"")), "{file}");
    let [.., build, layout] = steps.as_slice() else { panic!("{steps:?}") };
    assert_eq!(*build, format!("packaging/build --offline --target \"{target}\""));
    assert_eq!(*layout, format!("packaging/image \"target/{target}/dist/loopctl\" /image"));
    assert_eq!(after(&file, "ENTRYPOINT ").next().unwrap(), ["[\"/usr/local/bin/loopctl\"]"]);
    assert!(read("packaging/image").contains("\"$program\" \"$folder/usr/local/bin/loopctl\""));
}

#[cfg(unix)]
#[test]
fn the_image_holds_a_static_program_certificates_and_a_user_and_refuses_another_program() {
    use std::os::unix::fs::PermissionsExt as _;
    if !Path::new("/etc/ssl/certs/ca-certificates.crt").exists() {
        eprintln!("skipped: there are no root certificates");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (program, image) = (folder.path().join("program"), folder.path().join("image"));
    let laid_out = || Command::new(root().join("packaging/image")).args([&program, &image]).output().unwrap();
    fs::write(&program, "\x7fELF /lib64/ld-linux-x86-64.so.2").unwrap();
    let output = laid_out();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not static"), "{output:?}");
    assert!(!image.exists());
    fs::write(&program, "\x7fELF /lib/libx.so").unwrap();
    assert!(laid_out().status.success());
    let mode = |path: &str| fs::metadata(image.join(path)).unwrap().permissions().mode() & 0o7777;
    let modes = ["usr/local/bin/loopctl", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "tmp"].map(mode);
    assert_eq!(modes, [0o755, 0o644, 0o644, 0o1777]);
    let (file, names) = (read("Dockerfile"), fs::read_to_string(image.join("etc/passwd")).unwrap());
    let user = after(&file, "USER ").next().unwrap().concat();
    let home = after(&file, "WORKDIR ").last().unwrap().concat();
    assert!(names.contains(&format!(":{user}:")) && names.contains(&format!(":{home}:")), "{names}");
    for folder in ["state", "tmp"] {
        assert!(image.join(folder).is_dir());
        assert!(file.contains(&format!("--chown={user} /image/{folder} /{folder}\n")), "{folder}");
    }
    assert!(!laid_out().status.success(), "a folder that is there is not mixed with another one");
}

#[test]
fn the_health_check_of_the_image_asks_its_server_without_a_shell() {
    let file = read("Dockerfile");
    let line = after(&file, "HEALTHCHECK ").next().unwrap();
    let at = line.iter().position(|word| *word == "CMD").unwrap();
    let command: Vec<String> = serde_json::from_str(&line[at + 1..].concat()).unwrap();
    assert_eq!(format!("[{:?}]", command[0]), after(&file, "ENTRYPOINT ").next().unwrap().concat());
    let output = Command::new(env!("CARGO_BIN_EXE_loopctl")).args(&command[1..]).arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && help.contains("without a shell and without a token"), "{help}");
    // It asks where the workers of the Compose file and of the pages listen, and ends before it is killed.
    let workers = compose::compose();
    let (_, worker) = compose::services(&workers, "serve")[0];
    let command = compose::texts(&worker["command"]);
    let port = compose::option(&command, "listen").unwrap().rsplit(':').next().unwrap();
    assert!(help.contains(&format!("[default: 127.0.0.1:{port}]")), "{help}");
    assert!(line.contains(&"--timeout=6s"), "longer than the five seconds of the command: {line:?}");
}

#[test]
fn the_image_is_built_from_images_that_nobody_can_exchange() {
    let file = read("Dockerfile");
    let bases: Vec<&str> = after(&file, "FROM ").map(|words| words[0]).collect();
    let (last, built) = bases.split_last().unwrap();
    assert_eq!((*last, built.len()), ("scratch", 1));
    for base in built {
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
