//! The hosts of `http` actions: what `check` passes the driver does not refuse by its text, and what the driver
//! refuses by its text `check` reports.

use loopctl::diagnostic::Source;
use loopctl::drive::egress::Egress;
use loopctl::language::Project;
use loopctl::load_texts;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::config;

/// Hosts that are written in more than one way, and whether they are private or not.
const HOSTS: [&str; 30] = [
    "example.com",
    "EXAMPLE.com.",
    "api.example.com",
    "b\u{fc}cher.example",
    "xn--bcher-kva.example",
    "localhost",
    "a.LOCALHOST",
    "localhost.example.com",
    "metadata.google.internal",
    "metadata.google.internal.",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "100.64.0.1",
    "100.127.255.254",
    "100.128.0.1",
    "168.63.129.16",
    "192.0.0.8",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.9",
    "240.0.0.1",
    "255.255.255.255",
    "8.8.8.8",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b::a00:1]",
    "[2001:db8::1]",
    "[2606:4700::1111]",
];

fn host() -> impl Strategy<Value = String> {
    let written = select(HOSTS.to_vec()).prop_map(str::to_owned);
    let v4 = any::<[u8; 4]>().prop_map(|[a, b, c, d]| format!("{a}.{b}.{c}.{d}"));
    let number = any::<u32>().prop_map(|number| number.to_string());
    let v6 = any::<[u16; 8]>().prop_map(|parts| format!("[{}]", core::net::Ipv6Addr::from(parts)));
    prop_oneof![4 => written, 1 => v4, 1 => number, 1 => v6]
}

fn entry() -> impl Strategy<Value = String> {
    let odd = select(vec!["*.example.com", "example.com:443", "*.1.2.3.4", "https://example.com", "127.0.0.1", "*"]);
    prop_oneof![2 => host(), 1 => odd.prop_map(str::to_owned)]
}

proptest! {
    #![proptest_config(config(150, 0x405))]

    #[test]
    fn check_and_the_guard_agree_on_every_host_that_is_written_out(
        host in host(),
        port in select(vec!["", ":443", ":8080"]),
        hosts in prop::option::of(prop::collection::vec(entry(), 0..3)),
        private in any::<bool>(),
    ) {
        let url = format!("https://{host}{port}/x");
        let mut allow = json!({ "private_addresses": private });
        if let Some(hosts) = &hosts {
            allow["hosts"] = json!(hosts);
        }
        let project: Project = serde_json::from_value(json!({ "allow": allow })).unwrap();
        let refused = Egress::new(&project.allow).check(&url.parse().unwrap()).is_err();
        let reported = codes(&url, &json!({ "allow": allow }));
        let about_host = reported.iter().any(|code| matches!(code.as_str(), "L108" | "L109"));
        // An entry that is no host is reported by itself: what the others allow is judged once it is right.
        let bad_entry = reported.iter().any(|code| code == "L115");
        prop_assert!(about_host || bad_entry || !refused, "not reported: {} under {}: {:?}", url, allow, reported);
        prop_assert!(refused || !about_host, "not refused: {} under {}: {:?}", url, allow, reported);
    }
}

/// What `check` reports of a loop that asks this address, but for entries of the list itself.
fn codes(url: &str, project: &Value) -> Vec<String> {
    let document = json!({ "type": "loop", "name": "l",
        "actions": [{ "action_name": "call", "kind": "http", "description": "Asks.", "http_method": "GET", "url": url }],
        "properties": { "mode": "react", "objective": "Do it.", "tools": [{ "type": "action", "name": "call" }] } });
    let mut texts = loopctl::compile::Texts::new(Source::new("loop.json", document.to_string()));
    texts.project = Some(Source::new("loopctl.json", project.to_string()));
    match load_texts(&texts, ".".into()) {
        Ok(loaded) => loaded.warnings.iter().map(|fault| fault.code.to_owned()).collect(),
        Err(unsound) => unsound.diagnostics.iter().map(|fault| fault.code.to_owned()).collect(),
    }
}
