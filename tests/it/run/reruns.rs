//! Reruns, and the ids of runs: how new ones look, and what a user may type in their place.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, document, think};

fn place(properties: Value, replies: &[Value]) -> Place {
    let place = Place::new();
    place.json("loop.json", &with_input(&properties));
    place.json("script.json", &json!({ "replies": replies }));
    place
}

/// A loop with an input, as its objective shows.
fn with_input(properties: &Value) -> Value {
    let mut loop_document = document(properties);
    loop_document["name"] = json!("triage");
    loop_document["input"] = json!({ "type": "object", "properties": { "ticket": { "type": "string" } } });
    loop_document["properties"]["objective"] = json!("Settle {{input.ticket}}.");
    loop_document
}

fn done() -> Vec<Value> {
    vec![complete(json!("done"))]
}

fn asks() -> Vec<Value> {
    vec![think("__pause_for_human__", json!({ "question": "?" })), complete(json!("done"))]
}

fn run(place: &Place, more: &[&str]) -> Ran {
    let mut args = vec!["run", "loop.json", "--input", "ticket=TK-1", "--script", "script.json", "--output", "json"];
    args.extend(more);
    place.call(&args)
}

fn id(ran: &Ran) -> String {
    ran.json()["run_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_rerun_is_a_new_run_with_the_same_input_and_the_recorded_document() {
    let place = place(json!({}), &done());
    let first = run(&place, &["--session", "s", "--timeout-ms", "90000"]);
    let first = id(&first);
    // The recorded document counts, and not the file.
    place.file("loop.json", "{}");
    let again = place.call(&["rerun", &first, "--script", "script.json", "--output", "json"]);
    let result = again.json();
    assert_eq!((again.code, &result["rerun_of"]), (0, &json!(first)), "{again:#?}");
    let second = id(&again);
    assert_ne!(first, second);
    let shown = place.call(&["trace", &second]).stdout;
    assert!(shown.contains("Settle TK-1."), "{shown}");
    let human = place.call(&["rerun", &first, "--script", "script.json"]);
    assert!(human.code == 0 && human.stderr.contains(&format!("rerun of {first}")), "{human:#?}");
    assert_eq!(place.call(&["runs", "--output", "json"]).json().as_array().map(Vec::len), Some(3));
}

#[test]
fn a_rerun_takes_another_document_and_checks_the_input_by_it() {
    let place = place(json!({}), &done());
    let first = id(&run(&place, &[]));
    let mut other = with_input(&json!({ "objective": "x" }));
    other["properties"]["objective"] = json!("Close {{input.ticket}}.");
    place.json("other.json", &other);
    let again =
        place.call(&["rerun", &first, "--document", "other.json", "--script", "script.json", "--output", "json"]);
    assert_eq!(again.code, 0, "{again:#?}");
    assert!(place.call(&["trace", &id(&again)]).stdout.contains("Close TK-1."));
    other["input"] = json!({ "type": "object", "properties": { "number": { "type": "integer" } },
        "required": ["number"], "additionalProperties": false });
    other["properties"]["objective"] = json!("Close {{input.number}}.");
    place.json("other.json", &other);
    let refused = place.call(&["rerun", &first, "--document", "other.json", "--script", "script.json"]);
    assert!(refused.code == 2 && refused.stderr.contains("number"), "{refused:#?}");
    let missing = place.call(&["rerun", &first, "--document", "none.json"]);
    assert!(missing.code == 2 && missing.stderr.contains("none.json"), "{missing:#?}");
}

#[test]
fn a_new_id_is_the_name_of_the_loop_and_eight_signs_and_sorts_by_time() {
    let place = place(json!({}), &done());
    let ids: Vec<String> = (0..3).map(|_| id(&run(&place, &[]))).collect();
    for id in &ids {
        let (name, signs) = id.rsplit_once('-').unwrap();
        assert!(name == "triage" && signs.len() == 8, "{id}");
        assert!(signs.bytes().all(|sign| b"0123456789abcdefghjkmnpqrstvwxyz".contains(&sign)), "{id}");
    }
    let seconds: Vec<&str> = ids.iter().map(|id| id.split_at(id.len() - 2).0).collect();
    assert!(seconds.is_sorted(), "{ids:?}");
}

#[test]
fn any_id_that_the_caller_gives_is_taken() {
    let place = place(json!({}), &asks());
    for given in ["last", "Ein Lauf/7", "agent-01936f4e-0000-7000-8000-000000000000", "last:x"] {
        assert_eq!(run(&place, &["--run-id", given]).code, 3, "{given}");
        let resumed = place.call(&["resume", given, "--answer", "y", "--script", "script.json", "--output", "json"]);
        assert_eq!((resumed.code, id(&resumed).as_str()), (0, given), "{resumed:#?}");
    }
}

#[test]
fn a_run_is_named_by_the_beginning_of_its_id_by_last_and_by_the_last_of_a_loop() {
    let place = place(json!({}), &asks());
    for run_id in ["alpha-1", "beta-1", "beta-2"] {
        assert_eq!(run(&place, &["--run-id", run_id]).code, 3);
    }
    let mut other = with_input(&json!({}));
    other["name"] = json!("other");
    place.json("other.json", &other);
    place.call(&["run", "other.json", "--input", "ticket=TK-2", "--script", "script.json", "--run-id", "gamma"]);
    for (given, whole) in [("al", "alpha-1"), ("last", "gamma"), ("last:triage", "beta-2"), ("last:other", "gamma")] {
        let trace = place.call(&["trace", given, "--format", "json"]);
        assert_eq!((trace.code, id(&trace).as_str()), (0, whole), "{given}: {trace:#?}");
    }
    let resumed = place.call(&["resume", "al", "--answer", "y", "--script", "script.json", "--output", "json"]);
    assert_eq!((resumed.code, id(&resumed).as_str()), (0, "alpha-1"), "{resumed:#?}");
    let cancelled = place.call(&["cancel", "last", "--output", "json"]);
    assert_eq!((cancelled.code, id(&cancelled).as_str()), (0, "gamma"), "{cancelled:#?}");
    let after = run(&place, &["--previous-run", "alp", "--run-id", "after"]);
    assert_eq!(after.json()["previous_run_id"], "alpha-1", "{after:#?}");
    let again = place.call(&["rerun", "alph", "--script", "script.json", "--output", "json"]);
    assert_eq!(again.json()["rerun_of"], "alpha-1", "{again:#?}");
}

#[test]
fn a_beginning_of_several_ids_lists_them_and_an_unknown_one_names_the_nearest() {
    let place = place(json!({}), &asks());
    for n in 0..12 {
        run(&place, &["--run-id", &format!("beta-{n:02}")]);
    }
    for command in [["trace", "beta"], ["cancel", "beta"], ["retry", "beta"], ["resume", "beta"], ["rerun", "beta"]] {
        let refused = place.call(&command);
        assert!(
            refused.code == 2 && refused.stderr.contains("several runs begin with beta: beta-11, beta-10"),
            "{refused:#?}"
        );
        assert!(refused.stderr.contains("and more") && !refused.stderr.contains("beta-01"), "{refused:#?}");
    }
    for (given, words) in [
        ("betta-03", "did you mean beta-03?"),
        ("nothing", "there is no run nothing in .loopctl/runs.db"),
        ("", "there is no run "),
        ("last:triag", "did you mean `last:triage`?"),
        ("%", "there is no run %"),
        ("beta-_", "there is no run beta-_"),
    ] {
        let refused = place.call(&["trace", given]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{given}: {refused:#?}");
    }
    let paused = place.call(&["runs", "--status", "paused", "--output", "json"]).json();
    assert_eq!(paused.as_array().map(Vec::len), Some(12), "nothing changed");
}
