//! A run whose document was edited since it started: what has no meaning for it does not stop it.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, document, think};

fn paused(document: &Value) -> Place {
    let place = Place::new();
    place.json("loop.json", document);
    let replies = [think("__pause_for_human__", json!({ "question": "?" })), complete(json!("done"))];
    place.json("script.json", &json!({ "replies": replies }));
    let ran = place.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    place
}

fn resume(place: &Place, more: &[&str]) -> Ran {
    let mut args = vec!["resume", "r", "--answer", "y", "--script", "script.json", "--output", "json"];
    args.extend(more);
    place.call(&args)
}

#[test]
fn white_space_the_schema_and_the_description_of_the_loop_mean_nothing_for_a_run() {
    let before = document(&json!({}));
    let mut described = before.clone();
    described["description"] = json!("Now with a description.");
    described["$schema"] = json!("https://example.com/loop.schema.json");
    for text in [before.to_string(), described.to_string(), format!("\n\n{before:#}\n\n")] {
        let place = paused(&before);
        place.file("loop.json", text);
        let ran = resume(&place, &[]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
}

#[test]
fn another_change_asks_which_text_counts() {
    let before = document(&json!({}));
    let changed = |name: &str| match name {
        "objective" => document(&json!({ "objective": "Something else." })),
        _ => {
            let mut changed = before.clone();
            changed["actions"][0]["description"] = json!("The model reads this.");
            changed
        }
    };
    for name in ["objective", "action"] {
        for flag in ["--new-document", "--recorded-document"] {
            let place = paused(&before);
            place.json("loop.json", &changed(name));
            let refused = resume(&place, &[]);
            assert_eq!(refused.code, 2, "{refused:#?}");
            for words in ["loop.json has changed", "--new-document", "--recorded-document"] {
                assert!(refused.stderr.contains(words), "{words}: {refused:#?}");
            }
            let ran = resume(&place, &[flag]);
            assert_eq!(ran.code, 0, "{flag}: {ran:#?}");
        }
    }
}
