//! Schemas that were made to freeze or to fill a server: each is judged or refused, and none is kept.

use serde_json::{Value, json};

use crate::common::{complete, document};
use crate::serve::client::{Serving, place};

/// The memory that such documents may take beyond what the server had, in KB. Before patterns were counted together, a dozen
/// took 6.6 GB, and four 2.2 GB.
const MOST: usize = 256 * 1024;

/// A loop whose tool takes what this schema takes.
fn taking(parameters: &Value) -> Value {
    let mut document = document(&json!({}));
    document["actions"][0]["parameters"] = parameters.clone();
    document
}

/// Different patterns, of sixty bytes each, that compile to half a mebibyte each.
fn patterns(kind: usize, count: usize) -> Value {
    let part = |at: usize| (format!("p{at}"), json!({ "pattern": format!("^\\p{{L}}{{10}}{kind}x{at}$") }));
    let parts: serde_json::Map<_, _> = (0..count).map(part).collect();
    json!({ "type": "object", "properties": { "at": { "type": "string" }, "n": { "properties": parts } }, "required": ["at"] })
}

#[test]
fn documents_of_heavy_patterns_leave_the_server_as_small_as_it_was() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let check = |count: usize, kind: usize| server.post("/check", &taking(&patterns(kind, count)));
    assert_eq!(check(1, 0).status, 200);
    let before = server.memory();
    let documents = if crate::common::is_nightly() { 12 } else { 2 };
    for kind in 0..documents {
        let (heavy, light) = (check(1_000, kind), check(8, kind));
        let said = heavy.json().to_string();
        assert!(said.contains("compile to more than 16 MiB"), "{said}");
        assert!(!light.json().to_string().contains("MiB"), "the twin: {}", light.json());
    }
    let grown = server.memory().saturating_sub(before);
    eprintln!("{grown} KB more, of {before} KB");
    assert!(grown < MOST, "{grown} KB");
}

#[test]
fn parts_that_double_forty_times_are_judged_over_http() {
    let mut parts = serde_json::Map::new();
    for at in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", at + 1) });
        parts.insert(format!("d{at}"), json!({ "allOf": [next, next] }));
    }
    parts.insert("d40".to_owned(), json!({ "required": ["at"] }));
    let schema = json!({ "type": "object", "properties": { "at": { "type": "string" } }, "required": ["at"],
        "$ref": "#/$defs/d0", "$defs": parts });
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let reply = server.post("/check", &taking(&schema));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(server.get("/healthz").status, 200);
    let run = server.execute("", taking(&schema));
    assert!(run.status < 500, "{run:?}");
    assert_eq!(server.get("/healthz").status, 200);
}
