//! Old runs: replayed against edited documents, compared, forked, explained and tuned. The outputs are golden files.
//!
//! `UPDATE_GOLDEN=1 cargo test --test it replay::` writes them again: read the difference.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

mod again;
mod against;
mod compared;
mod explained;
mod forked;
mod tuned;

use std::path::Path;

use crate::common::{Place, Ran, complete, document, look, think};
use serde_json::{Value, json};

/// Compares a text with its golden file.
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs; if it is right: UPDATE_GOLDEN=1 cargo test --test it replay::\n{text}");
}

/// A place with a run `r` of `loop.json`: it looks three times, acts once, and answers.
pub fn ran(properties: Value) -> Place {
    let place = Place::new();
    place.looped(&properties).script(&[look("a"), look("b"), think("act", json!({ "what": "x" })), look("c"), done()]);
    run(&place, "r", &[]);
    place
}

pub fn done() -> Value {
    complete(json!("all is well"))
}

/// Starts a run with the script.
pub fn run(place: &Place, id: &str, more: &[&str]) -> Ran {
    let args = ["run", "loop.json", "--script", "script.json", "--run-id", id, "--output", "json"];
    place.call(&[args.as_slice(), more].concat())
}

/// The document with other properties, as `edited.json`.
pub fn edited(place: &Place, properties: Value) {
    place.json("edited.json", &document(&properties));
}
