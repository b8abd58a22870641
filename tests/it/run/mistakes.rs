//! Mistakes on the command line: each is reported before anything is done, with the right form; nearly all end
//! with exit code 2.

use std::collections::BTreeSet;

use serde_json::json;

use crate::common::{Place, complete, think};

/// A place with a loop that has run once, as `first`.
fn ran_once() -> Place {
    let place = Place::new();
    place.looped(&json!({})).script(&[complete(json!("done"))]);
    assert_eq!(place.run(&["--run-id", "first"]).0.code, 0);
    place
}

/// What is said of a call that is refused.
fn refused(place: &Place, args: &[&str]) -> String {
    let ran = place.call(args);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {ran:#?}");
    ran.stderr
}

/// The variable in `--run-id "$STEP"` is not set: all runs would be one, and give the first one's result.
#[test]
fn an_empty_id_is_none() {
    let place = ran_once();
    for flag in ["--run-id", "--session", "--previous-run", "--model"] {
        let said = refused(&place, &["run", "loop.json", "--script", "script.json", flag, ""]);
        assert!(said.contains(&format!("a value is required for '{flag}")), "{said}");
    }
    assert!(refused(&place, &["token", ""]).contains("a value is required"));
}

#[test]
fn an_input_is_given_once_and_with_its_flag() {
    let place = ran_once();
    let run = ["run", "loop.json", "--script", "script.json"];
    let said = refused(&place, &[&run[..], &["--input", "tag=a", "--input", "tag=b"]].concat());
    assert!(said.contains("--input tag=... is given twice") && said.contains("'tag=[\"a\", \"b\"]'"), "{said}");
    let said = refused(&place, &[&run[..], &["tag=a"]].concat());
    assert!(said.contains("tip: an input is written '--input tag=a'"), "{said}");
    let other = refused(&place, &[&run[..], &["--inputs", "tag=a"]].concat());
    assert!(!other.contains("is written"), "{other}");
    place.file("empty.json", "\n");
    let said = refused(&place, &[&run[..], &["--input-file", "empty.json"]].concat());
    assert!(said.contains("empty.json is empty") && !said.contains("EOF"), "{said}");
}

#[test]
fn an_unreadable_input_file_or_script_is_reported_with_its_place() {
    let place = ran_once();
    place.file("twice.json", "{\"tag\": \"a\",\n \"tag\": \"b\"}");
    place.file("comma.json", "{\"tag\": \"a\",\n}");
    place.file("marked.json", "\u{feff}{\"tag\": \"a\"}");
    place.file("typo.json", "{\"replies\": [\"x\"],\n \"tols\": {}}");
    let script = ["run", "loop.json", "--script"];
    let input = ["run", "loop.json", "--script", "script.json", "--input-file"];
    for (args, file, said) in [
        (&input[..], "twice.json", "error[L008]: the key `tag` is written twice in this object\n --> twice.json:2:2"),
        (&input[..], "comma.json", "error[L006]: a comma before `}`\n --> comma.json:1:12"),
        (&input[..], "marked.json", "error[L002]: the file begins with a byte-order mark\n --> marked.json:1:1"),
        (&script[..], "comma.json", "error[L006]: a comma before `}`\n --> comma.json:1:12"),
        (&script[..], "typo.json", "error[L010]: the field `tols` is not known in the document\n --> typo.json:2:2"),
        (&script[..], "loop.json", "error: loop.json is not a script"),
    ] {
        let message = refused(&place, &[args, &[file]].concat());
        assert!(message.starts_with(said) && message.matches("error").count() <= 2, "{file}: {message}");
    }
}

#[test]
fn a_script_that_answers_for_a_misspelt_tool_says_that_the_real_one_is_called() {
    let place = Place::new();
    place.looped(&json!({}));
    let warned = |tools: serde_json::Value| {
        place.json("script.json", &json!({ "replies": [complete(json!("done"))], "tools": tools }));
        let ran = place.call(&["run", "loop.json", "--script", "script.json", "--store", "memory"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{ran:#?}");
        ran.stderr.lines().filter(|line| line.starts_with("warning")).map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let said = "warning: the script answers for `lok`, which is not a tool here; the tool `look` is really called";
    assert_eq!(warned(json!({ "lok": [1], "act": [1] })), BTreeSet::from([said.to_owned()]));
    assert!(warned(json!({ "lok": [1], "look": [1], "of_another_loop": [1] })).is_empty());
}

#[test]
fn a_document_that_is_not_there_shows_and_ends_no_runs_of_this_folder() {
    let place = ran_once();
    place.script(&[think("act", json!({ "what": "x" }))]);
    let commands: [&[&str]; 4] = [&["runs"], &["trace", "first"], &["resume", "first"], &["cancel", "first"]];
    for command in commands {
        for document in ["nope.json", "nope/loop.json", "."] {
            let said = refused(&place, &[command, &["--document", document]].concat());
            assert!(said.contains(&format!("there is no document {document}")), "{command:?}: {said}");
        }
        let said = refused(&place, &[command, &["--store", "memory"]].concat());
        assert!(said.contains("`memory` keeps no runs") && said.contains("--store sqlite:PATH"), "{command:?}: {said}");
    }
    assert_eq!(place.call(&["runs", "--document", "loop.json"]).stdout.matches("first").count(), 1);
}

#[test]
fn a_wrong_address_to_listen_on_is_reported_with_the_right_form() {
    let place = ran_once();
    for address in ["3009", "localhost:3009", ":3009", "127.0.0.1:99999"] {
        let said = refused(&place, &["serve", ".", "--listen", address]);
        assert!(said.contains("like 127.0.0.1:3009"), "{said}");
    }
}
