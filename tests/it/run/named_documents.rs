//! Documents by the names that people say, and what to do when none is named.

use serde_json::{Value, json};

use crate::common::{Place, complete};

fn a_loop(name: &str) -> Value {
    json!({ "type": "loop", "name": name, "description": "Does it.",
        "input": { "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] },
        "properties": { "mode": "react", "objective": "Look at {{input.id}}.", "tools": [] } })
}

fn place(loops: &[&str]) -> Place {
    let place = Place::new();
    for path in loops {
        place.json(path, &a_loop("one"));
    }
    place.json("data.json", &json!({ "id": 1 }));
    place.json("script.json", &json!({ "replies": [complete(json!("done"))] }));
    place.json(
        "loopctl.json",
        &json!({ "models": { "m": { "provider": "script", "script": "script.json" } }, "model": "m" }),
    );
    place
}

fn said(place: &Place, args: &[&str]) -> String {
    let ran = place.call(args);
    assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
    ran.stderr
}

#[test]
fn a_name_means_the_file_of_that_name() {
    let place = place(&["triage.json", "loops/deep.json"]);
    for args in [
        &["run", "triage", "--input", "id=1"][..],
        &["run", "deep", "--input", "id=1"],
        &["run", "loops/deep", "--input", "id=1"],
        &["prompt", "triage", "--input", "id=1"],
        &["check", "triage", "deep"],
    ] {
        let ran = place.call(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    }
    // A folder stays a folder for check, and a loop beside it is run.
    place.json("triage/other.json", &json!([]));
    assert_eq!(place.call(&["run", "triage", "--input", "id=1"]).code, 0);
    place.json("triage/other.json", &json!({ "type": "loop", "properties": {} }));
    assert_eq!(place.call(&["check", "triage"]).code, 1);
}

#[test]
fn a_near_name_is_suggested() {
    let place = place(&["triage.json"]);
    for name in ["traige", "triage.jsn", "traige.json"] {
        let said = said(&place, &["run", name]);
        assert!(
            said.contains(&format!("there is no file {name}")) && said.contains("the nearest name is triage.json"),
            "{said}"
        );
    }
    let far = said(&place, &["run", "refunds"]);
    assert!(far.contains("refunds") && !far.contains("nearest"), "{far}");
}

#[test]
fn without_a_name_nothing_is_run() {
    let nothing = Place::new();
    let here = said(&nothing, &["run"]);
    assert!(here.contains("this folder has none") && here.contains(" demo`") && here.contains(" init`"), "{here}");
    assert_eq!(nothing.files().len(), 0);

    let one = place(&["triage.json"]);
    let here = said(&one, &["run"]);
    assert!(here.contains("this folder has one") && here.contains("run triage.json --input id=..."), "{here}");
    assert!(said(&one, &["prompt"]).contains("run triage.json"));

    let several = place(&["b.json", "a.json", "loops/c.json"]);
    let here = said(&several, &["run"]);
    assert!(here.contains("has 3: a.json, b.json, loops/c.json") && here.contains("run a.json"), "{here}");
    let dashed = said(&place(&["-a.json"]), &["run"]);
    assert!(dashed.contains("run ./-a.json --input id=..."), "{dashed}");
    let names: Vec<String> = (0..210).map(|at| format!("many/{at}.json")).collect();
    let many = said(&place(&names.iter().map(String::as_str).collect::<Vec<_>>()), &["run", "many"]);
    assert!(many.contains("has 200 or more: ") && many.contains(", others"), "{many}");
    let there = said(&place(&["x/a.json"]), &["run", "x"]);
    assert!(there.contains("x has one") && there.contains("run x/a.json --input id=..."), "{there}");
    let none = said(&place(&["x/a.json"]), &["run", "."]);
    assert!(none.contains("this folder has none"), "{none}");
}

#[test]
fn a_name_that_is_near_to_none_is_answered_with_the_documents_there_are() {
    let place = place(&["triage.json", "loops/deep.json"]);
    let said_far = said(&place, &["run", "refunds"]);
    assert!(
        said_far.contains("there is no file refunds") && said_far.contains("triage.json, loops/deep.json"),
        "{said_far}"
    );
    place.file("refunds.yaml", "type: loop\n");
    let yaml = said(&place, &["run", "refunds"]);
    assert!(yaml.contains("refunds.yaml is no JSON"), "{yaml}");
}
