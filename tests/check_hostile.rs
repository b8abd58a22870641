//! `loopctl check` on folders that were made to hurt it: it opens only what is a regular file below them, each
//! once, and a name is never a path.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(clippy::needless_pass_by_value)]

mod common;

use common::{ACTION, Place, SOUND, sound};
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

/// A document with an action of these fields, and these properties.
fn wide(action: &Value, properties: &Value) -> String {
    let mut look: Value = serde_json::from_str(ACTION).unwrap();
    look.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
    let mut document: Value = serde_json::from_str(SOUND).unwrap();
    document["actions"] = json!([look]);
    document["properties"].as_object_mut().unwrap().extend(properties.as_object().unwrap().clone());
    document.to_string()
}

/// Thirty thousand members, each made of its number.
fn many(member: impl Fn(u32) -> (String, Value)) -> Value {
    Value::Object((0..30_000).map(member).collect())
}

#[test]
fn a_document_as_wide_as_may_be_costs_what_its_length_costs() {
    let required: Vec<String> = (0..30_000).map(|at| format!("q{at}")).collect();
    let described = |name: &str| json!({"type": "object", "properties": many(|at| (format!("{name}{at}"), json!({})))});
    let mut closed = described("q");
    closed["required"] = json!(required);
    closed["additionalProperties"] = json!(false);
    let taken = |name: &str| many(|at| (format!("k{at}"), json!(format!("{{{{{name}{at}}}}}"))));
    let nothing = json!({});
    let place = Place::new();
    for (what, text, code) in [
        ("fields", wide(&nothing, &many(|at| (format!("zq{at}x"), json!(1)))), 1),
        ("headers", wide(&json!({"headers": many(|at| (format!("X-{at}"), json!("1")))}), &nothing), 0),
        ("required", wide(&json!({"parameters": closed, "http_method": "POST", "body": "x"}), &nothing), 0),
        ("query", wide(&json!({"query": taken("q")}), &nothing), 0),
        ("slips", wide(&json!({"query": taken("longer_qs"), "parameters": described("longer_q")}), &nothing), 1),
        ("fallbacks", wide(&nothing, &json!({"model": "m", "fallback_models": required})), 0),
    ] {
        place.file("loops/wide.json", &*text);
        let ran = place.call(&["check", "loops/wide.json"]);
        assert_eq!(ran.code, code, "{what}: {}", ran.stdout.chars().take(900).collect::<String>());
    }
}

#[test]
fn wrong_names_by_the_thousand_among_names_by_the_thousand_are_told_without_measuring_all() {
    let action = |at: u32| {
        json!({"action_name": format!("a{at}"), "kind": "http", "description": "Asks.", "http_method": "GET",
            "url": format!("https://some-long-host-nome{at}x.example.com/{{{{k}}}}"), "headers": {"X-Key": format!("orgconfig:SOME_LONG_NOME_{at}X")}})
    };
    let actions: Vec<Value> = (0..300).map(action).collect();
    let tools: Vec<Value> = (0..300).map(|at| json!({"type": "action", "name": format!("a{at}")})).collect();
    let place = Place::new();
    let properties = json!({"mode": "react", "objective": "Do it.", "tools": tools});
    place.json("loop.json", &json!({"type": "loop", "actions": actions, "properties": properties}));
    let hosts: Vec<String> = (0..20_000).map(|at| format!("some-long-host-name{at}.example.com")).collect();
    let keys = many(|at| (format!("SOME_LONG_NAME_{at}"), json!("env:KEY")));
    place.json("loopctl.json", &json!({"allow": {"hosts": hosts}, "orgconfig": keys}));
    let found = told(&place, &["loop.json"]);
    assert_eq!(found.iter().filter(|fault| fault["code"] == "L108").count(), 300);
    assert!(found[0]["help"].as_str().unwrap().starts_with("the nearest one"), "{}", found[0]);
    assert_eq!(found.len(), 600, "{:?}", found.last());
}
