//! `loopctl check` on folders that were made to hurt it: it opens only what is a regular file below them, each
//! once, and a name is never a path.

use crate::common::{ACTION, Place, SOUND, cases, sound};
use serde_json::{Value, json};

/// The errors that `check` reports.
fn report(place: &Place, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["check", "--format", "json"].iter().chain(args).copied().collect();
    let ran = place.call(&args);
    assert_eq!(ran.code, 1, "{args:?}: {ran:#?}");
    ran.json().as_array().expect("an array").clone()
}

fn codes(faults: &[Value]) -> Vec<(&str, &str)> {
    faults.iter().map(|fault| (fault["code"].as_str().unwrap(), fault["file"].as_str().unwrap())).collect()
}

/// A folder of so many documents, half of them workflows, with links that lead round and out.
fn crowded(count: usize) {
    let place = sound();
    place.file("outside/secret.json", "{\"type\": \"loop\", \"name\": \"not to be read\"}");
    let workflow = r#"{"name": "w", "definition": {"actions": [{"type": "unknown", "properties": {}}]}}"#;
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
    let found = report(&place, &["loops"]);
    assert_eq!(found.len(), count / 2, "{:?}", found.first());
    assert!(found.iter().all(|fault| fault["code"] == "L030"), "{:?}", found.first());
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
        let found = report(&place, &["loops/a.json"]);
        assert_eq!(codes(&found), [("L032", "loops/a.json")], "{name}: {found:?}");
        let workflow = SOUND.replace(
            "\"type\": \"action\", \"name\": \"look\"",
            &format!("\"type\": \"workflow\", \"name\": {}", json!(name)),
        );
        place.file("loops/a.json", &*workflow);
        let found = report(&place, &["loops/a.json"]);
        assert_eq!(codes(&found), [("L056", "loops/a.json")], "{name}: {found:?}");
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

/// How many members an object has that is as wide as may be: some at each commit, all at night.
fn width() -> u32 {
    if cases(1) > 1 { 30_000 } else { 8_000 }
}

/// An object of that width, each member of which is made of its number.
fn many(member: impl Fn(u32) -> (String, Value)) -> Value {
    Value::Object((0..width()).map(member).collect())
}

#[test]
fn a_document_as_wide_as_may_be_costs_what_its_length_costs() {
    let required: Vec<String> = (0..width()).map(|at| format!("q{at}")).collect();
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
fn thousands_of_wrong_names_among_thousands_of_names_are_reported_without_measuring_all() {
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
    let found = report(&place, &["loop.json"]);
    assert_eq!(found.iter().filter(|fault| fault["code"] == "L108").count(), 300);
    assert!(found[0]["help"].as_str().unwrap().starts_with("the nearest one"), "{}", found[0]);
    // The warnings of the secrets, and one of the number of tools.
    assert_eq!(found.len(), 601, "{:?}", found.last());
}

/// A name that would colour a terminal, begin a line of its own, and turn the reading direction.
const NAME: &str = "a\u{1b}[31m\nerror: b\u{202e}c";

fn is_plain(text: &str) {
    let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!text.contains(bad), "{text:?}");
    assert!(text.lines().all(|line| !line.starts_with("error: b")), "{text:?}");
}

#[test]
fn a_name_of_a_file_steers_no_output() {
    let place = sound();
    let file = format!("{NAME}.json");
    place.file(&file, "{\"type\": \"loop\", \"properties\": 1}");
    place.file(&format!("loops/{file}"), "{\"type\": \"loop\", \"properties\": 1}");
    for format in ["human", "json", "sarif", "github"] {
        for paths in [vec![&*file], vec![], vec!["no-such-\u{1b}[31m\nerror: b\u{202e}"]] {
            let ran = place.call(&[&["check", "--format", format][..], &paths].concat());
            assert_ne!(ran.code, 0, "{ran:#?}");
            is_plain(&ran.stderr);
            is_plain(&ran.stdout);
        }
    }
    let fixed = place.call(&["check", "--fix", &file]);
    is_plain(&(fixed.stderr + &fixed.stdout));
}

#[test]
fn what_an_argument_says_steers_no_output_of_any_command() {
    let place = sound();
    for args in [
        vec!["run", NAME],
        vec!["check", NAME],
        vec![NAME],
        vec!["check", "--format", NAME],
        vec!["run", "loops/a.json", NAME],
        vec!["run", "loops/a.json", "--timeout-ms", NAME],
        vec!["run", "loops/a.json", &format!("--{NAME}")],
        vec!["run", "loops/a.json", "--input", NAME],
        vec!["run", "loops/a.json", "--script", NAME],
        vec!["run", "loops/a.json", "--input-file", NAME],
        vec!["run", "loops/a.json", "--actions", NAME],
        vec!["run", "loops/a.json", "--store", NAME],
        vec!["resume", NAME],
        vec!["resume", "r", "--edit", NAME],
        vec!["resume", "r", "--call", NAME],
        vec!["trace", NAME, "--document", NAME],
        vec!["runs", "--store", NAME],
        vec!["serve", NAME],
        vec!["serve", ".", "--listen", NAME],
        vec!["explain", NAME],
        vec!["schema", NAME],
        vec!["token", NAME, "--scope", NAME],
        vec!["completions", NAME],
    ] {
        let ran = place.call(&args);
        assert_ne!(ran.code, 0, "{args:?}: {ran:#?}");
        assert!(!ran.stderr.is_empty(), "{args:?}");
        is_plain(&ran.stderr);
        is_plain(&ran.stdout);
    }
}

#[cfg(unix)]
#[test]
fn no_line_of_a_file_outside_of_the_folder_is_shown_through_a_link() {
    let outside = Place::new();
    let secret = "root:x:0:0:hunter2-4711";
    let text = format!("{{\"type\": \"loop\", \"{secret}\": 1}}\n{secret}\n");
    outside.file("secret.json", &*text);
    let target = outside.path().join("secret.json");
    let shown = |place: &Place, args: &[&str]| {
        ["human", "json", "sarif", "github"].map(|format| {
            let ran = place.call(&[&["check", "--format", format][..], args].concat());
            ran.stderr + &ran.stdout
        })
    };
    for link in [
        "loops/x.json",
        "loopctl.json",
        "loops/loopctl.json",
        "actions/x.json",
        "loops/loops/x.json",
        "workflows/x.json",
    ] {
        let place = sound();
        let at = place.path().join(link);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        drop(std::fs::remove_file(&at));
        std::os::unix::fs::symlink(&target, &at).unwrap();
        for text in [&["."][..], &["loops"], &["loops/a.json"]].into_iter().flat_map(|args| shown(&place, args)) {
            assert!(!text.contains("hunter2"), "{link}: {text}");
        }
    }
    // The twin: the same text in the folder itself is shown, and a link to a file of the folder is followed.
    let place = sound();
    place.file("own/loopctl.json", &*text);
    drop(std::fs::remove_file(place.path().join("loopctl.json")));
    place.file("secret.json", &*text);
    std::os::unix::fs::symlink("secret.json", place.path().join("loopctl.json")).unwrap();
    assert!(shown(&place, &["."]).iter().all(|text| text.contains("hunter2")));
}
