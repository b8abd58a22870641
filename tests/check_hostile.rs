//! `loopctl check` on folders that were made to hurt it: it opens only what is a regular file below them, each
//! once, and a name is never a path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(clippy::needless_pass_by_value)]

mod common;

use common::{Place, SOUND, sound};
use serde_json::{Value, json};

/// What is told of errors.
fn told(place: &Place, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["check", "--format", "json"].iter().chain(args).copied().collect();
    let ran = place.call(&args);
    assert_eq!(ran.code, 1, "{args:?}: {ran:#?}");
    ran.json().as_array().expect("an array").clone()
}

fn codes(told: &[Value]) -> Vec<(&str, &str)> {
    told.iter().map(|fault| (fault["code"].as_str().unwrap(), fault["file"].as_str().unwrap())).collect()
}

/// A folder of so many documents, half of them workflows, with links that lead round and out.
fn crowded(count: usize) {
    let place = sound();
    place.file("outside/secret.json", "{\"type\": \"loop\", \"name\": \"not to be read\"}");
    let workflow = r#"{"name": "w", "definition": {"actions": [{"type": "look", "properties": {}}]}}"#;
    for number in 0..count / 2 {
        place.file(&format!("loops/{}/l{number}.json", number % 7), SOUND);
        place.file(&format!("loops/{}/w{number}.json", number % 7), workflow);
    }
    #[cfg(unix)]
    for folder in 0..7 {
        let at = place.path().join(format!("loops/{folder}"));
        std::os::unix::fs::symlink(place.path().join("loops"), at.join("round")).unwrap();
        std::os::unix::fs::symlink("../../../outside/secret.json", at.join("out.json")).unwrap();
    }
    place.file("loops/loopctl.json", "{}");
    let found = told(&place, &["loops"]);
    assert_eq!(found.len(), count / 2, "{:?}", found.first());
    assert!(found.iter().all(|fault| fault["code"] == "L018"));
}

#[test]
fn many_files_with_links_in_circles_are_each_checked_once() {
    crowded(400);
}

#[test]
#[ignore = "nightly: ten thousand files; 9 s, most of it for making them"]
fn ten_thousand_files_with_links_in_circles_are_each_checked_once() {
    crowded(10_000);
}

#[test]
fn names_that_are_paths_open_nothing() {
    let place = sound();
    place.file("secret.json", r#"[{"action_name": "look", "kind": "http"}]"#);
    for name in ["../../secret", "/etc/passwd", "..", "actions/../../secret.json", "$(touch x)"] {
        let text = SOUND.replace("\"look\"", &json!(name).to_string());
        place.file("loops/a.json", &*text);
        let found = told(&place, &["loops/a.json"]);
        assert_eq!(codes(&found), [("L032", "loops/a.json")], "{name}: {found:?}");
        let workflow = SOUND.replace(
            "\"type\": \"action\", \"name\": \"look\"",
            &format!("\"type\": \"workflow\", \"name\": {}", json!(name)),
        );
        place.file("loops/a.json", &*workflow);
        let found = told(&place, &["loops/a.json"]);
        assert_eq!(codes(&found), [("L018", "loops/a.json"), ("L056", "loops/a.json")], "{name}: {found:?}");
    }
    assert!(!place.path().join("loops/x").exists());
}
