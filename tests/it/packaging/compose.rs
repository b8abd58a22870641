//! The files for Compose: they fit each other, the image and the program.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::common::complete;
use crate::packaging::{after, read, root};
use crate::serve::client::{Serving, parse, place, read_until_closed};

/// A YAML file with its aliases resolved.
pub fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub fn compose() -> Value {
    yaml("packaging/compose/compose.yaml")
}

pub fn texts(value: &Value) -> Vec<String> {
    value
        .as_array()
        .unwrap_or_else(|| panic!("no list: {value}"))
        .iter()
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

/// The services that start loopctl with this subcommand.
pub fn services<'a>(compose: &'a Value, subcommand: &str) -> Vec<(&'a String, &'a Value)> {
    let all = compose["services"].as_object().unwrap().iter();
    all.filter(|(_, service)| service["command"][0] == subcommand).collect()
}

/// Seconds of a time like `30s`.
pub fn seconds(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.strip_suffix('s')).and_then(|text| text.parse().ok()).expect("seconds")
}

/// The value of an option that is written `--name=value`.
pub fn option<'a>(command: &'a [String], name: &str) -> Option<&'a str> {
    command.iter().find_map(|word| word.strip_prefix(&format!("--{name}=")))
}

/// The lease of a store, in milliseconds, as the documentation has it.
pub fn lease_ms() -> u64 {
    let page = read("docs/serve.md");
    let row = page.lines().find(|line| line.starts_with("| `lease_ms` |")).unwrap();
    row.split('|').nth(2).unwrap().trim().parse().unwrap()
}

#[test]
fn the_command_lines_of_the_services_are_taken() {
    let compose = compose();
    let (workers, migrations) = (services(&compose, "serve"), services(&compose, "store"));
    assert_eq!((workers.len(), migrations.len()), (3, 1));
    for (name, service) in workers.into_iter().chain(migrations) {
        let command = texts(&service["command"]);
        let output = Command::new(env!("CARGO_BIN_EXE_loopctl")).args(&command).arg("--help").output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_workers_have_the_images_user_and_nothing_that_can_be_written() {
    let (compose, image) = (compose(), read("Dockerfile"));
    let user = after(&image, "USER ").next().unwrap().concat();
    let version = env!("CARGO_PKG_VERSION");
    for (name, service) in services(&compose, "serve").into_iter().chain(services(&compose, "store")) {
        assert_eq!(service["image"], format!("loopctl:{version}"), "{name}");
        assert_eq!(service["user"], user, "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        let mounted = service["volumes"].as_array().cloned().unwrap_or_default();
        assert!(mounted.iter().all(|volume| volume.as_str().unwrap().ends_with(":ro")), "{name}: {mounted:?}");
    }
}

#[test]
fn a_worker_is_killed_later_than_it_ends_by_itself_and_later_than_its_lease() {
    let compose = compose();
    for (name, service) in services(&compose, "serve") {
        let grace: u64 = option(&texts(&service["command"]), "grace-ms").unwrap().parse().unwrap();
        let killed = seconds(&service["stop_grace_period"]) * 1000;
        assert!(killed >= grace + 5000 && killed > lease_ms(), "{name}: {killed} ms");
    }
}

#[test]
fn every_secret_that_a_service_reads_is_given_to_it_and_declared() {
    let compose = compose();
    let declared: BTreeSet<String> = compose["secrets"].as_object().unwrap().keys().cloned().collect();
    let mut given = BTreeSet::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        let mut own: BTreeSet<String> = BTreeSet::new();
        if service["secrets"].is_array() {
            own.extend(texts(&service["secrets"]));
        }
        let mut texts = vec![service["command"].to_string(), service["environment"].to_string()];
        let mounted = service["volumes"].to_string();
        if mounted.contains("./loops:") {
            texts.push(read("packaging/compose/loops/loopctl.json"));
        }
        if mounted.contains("./database.sh:") {
            texts.push(read("packaging/compose/database.sh").replace("$secrets/", "/run/secrets/"));
        }
        let word = |rest: &str| {
            rest.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').next().unwrap().to_owned()
        };
        let read: BTreeSet<String> =
            texts.iter().flat_map(|text| text.split("/run/secrets/").skip(1).map(word)).collect();
        let read: BTreeSet<String> = read.into_iter().filter(|name| !name.is_empty()).collect();
        assert_eq!(read, own, "{name}");
        given.extend(own);
    }
    assert_eq!(given, declared);
}

#[test]
fn the_load_balancer_knows_all_workers_and_asks_each_whether_it_is_ready() {
    let (compose, config) = (compose(), read("packaging/compose/haproxy.cfg"));
    let workers = services(&compose, "serve");
    let listen = option(&texts(&workers[0].1["command"]), "listen").unwrap().rsplit(':').next().unwrap().to_owned();
    let wanted: Vec<String> = workers.iter().map(|(name, _)| format!("{name} {name}:{listen}")).collect();
    let servers: Vec<String> = after(&config, "  server ").map(|words| words.join(" ")).collect();
    assert_eq!(servers, wanted);
    let published = texts(&compose["services"]["balancer"]["ports"]).concat();
    let bound = after(&config, "  bind ").next().unwrap().concat();
    assert!(published.ends_with(&bound), "{published}: {bound} is bound");

    // The request of the check, as HAProxy sends it.
    let check = after(&config, "  http-check send ").next().unwrap();
    let field = |name: &str| check.iter().skip_while(|word| **word != name).nth(1).unwrap().to_string();
    let host = check.iter().skip_while(|word| **word != "hdr").nth(2).unwrap();
    let server =
        Serving::start(&place(serde_json::json!({}), &[complete(serde_json::json!("ok"))]), &["--store", "memory"]);
    let mut stream = server.connect();
    let request =
        format!("{} {} {}\r\nHost: {host}\r\nconnection: close\r\n\r\n", field("meth"), field("uri"), field("ver"));
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let reply = parse(&read_until_closed(&mut stream)).unwrap();
    let expected: u16 = after(&config, "  http-check expect status ").next().unwrap().concat().parse().unwrap();
    assert_eq!((reply.status, &reply.json()["status"]), (expected, &serde_json::json!("ready")));
}

#[test]
fn the_loops_beside_the_file_are_valid() {
    let mut check = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    let output =
        check.args(["check", "--deny-warnings", "packaging/compose/loops"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
