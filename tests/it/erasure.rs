//! `docs/erasure.md`: its commands are taken by the program, and what it says of a deletion holds of the bytes of a store.
#![cfg(unix)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::pasted;

/// The name of one person, as inputs, memory and replies have it.
const PERSON: &str = "Adalbert-Quux-4711";

#[test]
fn each_command_of_the_page_is_taken() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/erasure.md")).unwrap();
    let (place, mut seen) = (Place::new(), 0);
    for section in pasted::sections(&page) {
        for line in section.commands.lines().filter_map(|line| line.strip_prefix("loopctl ")) {
            let arguments: Vec<&str> = line.split_whitespace().chain(["--help"]).collect();
            let ran = place.call(&arguments);
            assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
            seen += 1;
        }
    }
    assert!(seen >= 6, "only {seen} commands were found");
}

/// A place with a loop that remembers who it is about, and says so.
fn place() -> Place {
    let place = Place::on_disk();
    let input = json!({ "type": "object", "properties": { "who": { "type": "string" } }, "required": ["who"] });
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "greet", "input": input,
            "properties": { "mode": "react", "objective": "Greet {{input.who}}.", "tools": [] } }),
    );
    place
}

/// Runs the loop: it remembers the person, and ends, or else asks.
fn greet(place: &Place, id: &str, who: &str, more: &[&str], ends: bool) {
    let end = if ends {
        complete(json!(format!("Hello, {who}.")))
    } else {
        think("__pause_for_human__", json!({ "question": format!("Is it {who}?") }))
    };
    let replies = [think("__store_memory__", json!({ "key": "name", "value": who })), end];
    place.json("script.json", &json!({ "replies": replies }));
    let input = format!("who={who}");
    let args = ["run", "loop.json", "--script", "script.json", "--run-id", id, "--input", &input];
    let ran = place.call(&[&args[..], more].concat());
    assert_eq!(ran.code, if ends { 0 } else { 3 }, "{ran:#?}");
}

/// The files of the store in which a text is.
fn files_with(place: &Place, text: &str) -> Vec<String> {
    let folder = place.path().join(".loopctl");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let has = |path: &Path| fs::read(path).unwrap().windows(text.len()).any(|piece| piece == text.as_bytes());
    files.filter(|path| path.is_file() && has(path)).map(|path| path.display().to_string()).collect()
}

fn erase(place: &Place, args: &[&str]) -> (i32, Value) {
    let ran = place.call(&[&["runs", "erase", "--output", "json"], args].concat());
    (ran.code, ran.json())
}

#[test]
fn nothing_of_a_person_is_left_in_the_file_after_the_runs_and_the_memory_of_the_session_are_erased() {
    let place = place();
    for id in ["one", "two"] {
        greet(&place, id, PERSON, &["--session", "customer-1"], true);
    }
    greet(&place, "other", "Somebody-Else", &["--session", "customer-2"], true);
    assert!(!files_with(&place, PERSON).is_empty());
    assert_eq!(place.call(&["runs", "--session", "customer-1", "--ids"]).stdout, "two\none\n");
    assert_eq!(place.call(&["runs", "--session", "customer-1", "--org", "acme", "--ids"]).stdout, "");
    let counted = json!({ "runs": 2, "memory": 1, "stay": [], "dry_run": true });
    assert_eq!(erase(&place, &["--session", "customer-1", "--dry-run"]), (0, counted));
    assert!(!files_with(&place, PERSON).is_empty(), "a dry run deletes nothing");
    let erased = json!({ "runs": 2, "memory": 1, "stay": [], "dry_run": false });
    assert_eq!(erase(&place, &["--session", "customer-1"]), (0, erased));
    assert_eq!(files_with(&place, PERSON), Vec::<String>::new());
    assert!(!files_with(&place, "Somebody-Else").is_empty());
    assert_eq!(place.call(&["runs", "--ids"]).stdout, "other\n");
    let audit = place.call(&["audit", "--action", "pruned", "--output", "ndjson"]).json();
    assert_eq!((&audit["times"], &audit["detail"]), (&json!(2), &json!("erased, a session")), "{audit:#}");
    assert!(!audit.to_string().contains("customer-1"));
    // Once more: nothing is there, and nothing is noted.
    let nothing = json!({ "runs": 0, "memory": 0, "stay": [], "dry_run": false });
    assert_eq!(erase(&place, &["--session", "customer-1"]), (0, nothing));
    assert_eq!(place.call(&["audit", "--action", "pruned", "--output", "ndjson"]).stdout.lines().count(), 1);
}

#[test]
fn a_run_that_has_not_ended_stays_with_the_memory_of_its_session_and_is_named() {
    let place = place();
    greet(&place, "done", PERSON, &["--session", "customer-1"], true);
    greet(&place, "asks", PERSON, &["--session", "customer-1"], false);
    let ran = place.call(&["runs", "erase", "--session", "customer-1"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    for line in ["1 run deleted", "run asks stays: it is paused; end it first: loopctl cancel asks", "keeps its memory"]
    {
        assert!(ran.stdout.contains(line), "{line}: {ran:#?}");
    }
    assert_eq!(place.call(&["runs", "--ids"]).stdout, "asks\n");
    assert!(!files_with(&place, PERSON).is_empty());
    assert_eq!(place.call(&["cancel", "asks"]).code, 0);
    let erased = json!({ "runs": 1, "memory": 1, "stay": [], "dry_run": false });
    assert_eq!(erase(&place, &["--session", "customer-1"]), (0, erased));
    assert_eq!(files_with(&place, PERSON), Vec::<String>::new());
}

#[test]
fn runs_are_erased_by_their_whole_ids_and_an_unknown_one_refuses_all() {
    let place = place();
    for id in ["one", "two", "three"] {
        greet(&place, id, PERSON, &[], true);
    }
    let refused = place.call(&["runs", "erase", "one", "tw"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(
        refused.stderr.contains("there is no run tw") && refused.stderr.contains("nothing was deleted"),
        "{refused:#?}"
    );
    assert_eq!(place.call(&["runs", "--ids"]).stdout.lines().count(), 3);
    let erased = json!({ "runs": 2, "memory": null, "stay": [], "dry_run": false });
    assert_eq!(erase(&place, &["one", "three", "one"]), (0, erased));
    assert_eq!(place.call(&["runs", "--ids"]).stdout, "two\n");
    assert_eq!(place.call(&["runs", "erase"]).code, 2, "nothing is named");
}
