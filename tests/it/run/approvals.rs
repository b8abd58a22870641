//! Approvals: what is shown is what runs, and a yes is for what was shown.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, document, think, with};

fn approval() -> Value {
    json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] })
}

/// A run `r` that waits for its first call.
fn paused(input: &str) -> (Place, Value) {
    let place = Place::new();
    place.looped(&approval()).script(&[
        format!(r#"{{"thought": "t", "action": "act", "action_input": {input}}}"#).into(),
        think("act", json!({ "what": "second" })),
        complete(json!("done")),
    ]);
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let call = result["pause"]["call"].clone();
    (place, call)
}

fn resume(place: &Place, how: &[&str]) -> Ran {
    let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
    args.extend(how);
    place.call(&args)
}

fn hash(call: &Value) -> &str {
    let hash = call["hash"].as_str().expect("a hash");
    assert!(hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{hash}");
    hash
}

#[test]
fn a_yes_with_the_hash_is_taken_and_with_another_one_refused() {
    let (place, call) = paused(r#"{"what": "x"}"#);
    for wrong in ["0123456789abcdef", "", "0123456789abcde", &hash(&call).to_uppercase()] {
        let ran = resume(&place, &["--approve", "--if", wrong]);
        assert_eq!(ran.code, 2, "{wrong}: {ran:#?}");
        assert!(ran.stderr.contains("is not the one that was shown"), "{}", ran.stderr);
    }
    let ran = resume(&place, &["--approve", "--if", hash(&call)]);
    assert_eq!((ran.code, ran.json()["trace"][0]["action_input"].clone()), (3, json!({ "what": "x" })));
}

#[test]
fn a_yes_is_for_one_call_and_the_next_one_is_asked_about_again() {
    let (place, call) = paused(r#"{"what": "x"}"#);
    let second = resume(&place, &["--approve", "--if", hash(&call)]).json()["pause"]["call"].clone();
    assert_eq!((&second["id"], &second["action_input"]), (&json!("2.0"), &json!({ "what": "second" })));
    assert_eq!(resume(&place, &["--approve", "--if", hash(&call)]).code, 2, "the yes to the first call");
    assert_eq!(resume(&place, &["--approve", "--if", hash(&second)]).code, 0);
}

#[test]
fn the_hash_is_of_the_bytes_that_run() {
    let hashes: Vec<String> = [r#"{"what":"x","n":100}"#, r#"{"what":"x","n":1e2}"#, r#"{"what":"x","n":100.0}"#]
        .iter()
        .map(|input| hash(&paused(input).1).to_owned())
        .collect();
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2] && hashes[0] != hashes[2], "{hashes:?}");
    // The same call of the same run has the same hash wherever it is shown.
    let (place, call) = paused(r#"{"what": "x"}"#);
    let trace = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(trace["pause"]["call"], call);
    assert_eq!(resume(&place, &[]).json()["pause"]["call"], call);
    assert!(place.call(&["trace", "r"]).stdout.contains(&format!("call 1.0  hash {}", hash(&call))));
}

#[test]
fn a_document_that_changed_between_the_question_and_the_yes_is_asked_about_again() {
    let (place, call) = paused(r#"{"what": "x"}"#);
    let mut changed = document(&approval());
    changed["actions"][1]["url"] = json!("https://elsewhere.example.com/act");
    place.json("loop.json", &changed);
    assert_eq!(resume(&place, &["--approve"]).code, 2, "a changed document");
    let blind = resume(&place, &["--approve", "--new-document"]);
    assert_eq!(blind.code, 2, "{blind:#?}");
    assert!(blind.stderr.contains("the document has changed since the call was shown"), "{}", blind.stderr);
    let old = resume(&place, &["--approve", "--new-document", "--if", hash(&call)]);
    assert_eq!(old.code, 2, "{old:#?}");
    assert!(old.stderr.contains("is not the one that was shown"), "{}", old.stderr);
    let shown = resume(&place, &["--new-document"]);
    let now = shown.json()["pause"]["call"].clone();
    assert!(shown.code == 3 && hash(&now) != hash(&call), "{shown:#?}");
    assert_eq!(resume(&place, &["--approve", "--if", hash(&now)]).code, 3, "the second call waits");
}

#[test]
fn a_denial_and_an_edit_are_bound_as_well() {
    let (place, call) = paused(r#"{"what": "x"}"#);
    for decision in [vec!["--deny"], vec!["--edit", r#"{"what":"y"}"#]] {
        let wrong: Vec<&str> = decision.iter().copied().chain(["--if", "0000000000000000"]).collect();
        assert_eq!(resume(&place, &wrong).code, 2);
    }
    let ran = resume(&place, &["--edit", r#"{"what":"y"}"#, "--if", hash(&call)]);
    assert_eq!(ran.json()["trace"][0]["action_input"], json!({ "what": "y" }));
    assert_eq!(resume(&place, &["--if", "0000000000000000"]).code, 2, "a hash without a decision");
}

/// Two calls of one turn.
fn two() -> Value {
    let act = |what: &str| json!({ "action": "act", "action_input": { "what": what } });
    json!({ "thought": "both", "calls": [act("a"), act("b")] })
}

/// Both calls that wait, as they are shown.
fn both(result: &Value) -> [Value; 2] {
    let calls = result["pause"]["calls"].as_array().unwrap_or_else(|| panic!("two calls wait: {result:#}"));
    assert_eq!((&calls[0]["id"], &calls[1]["id"]), (&json!("1.0"), &json!("1.1")));
    assert_eq!(result["pause"]["call"], calls[0]);
    assert_ne!(hash(&calls[0]), hash(&calls[1]));
    [calls[0].clone(), calls[1].clone()]
}

#[test]
fn two_calls_of_a_turn_are_decided_each_on_its_own_by_hash_and_by_call() {
    let place = Place::new();
    place.looped(&with(approval(), json!({ "dialect": "tool_calls" }))).json(
        "script.json",
        &json!({ "replies": [two(), complete(json!("done"))], "tools": { "act": [{ "did": 1 }] } }),
    );
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let [first, second] = both(&result);
    for all in [vec!["--approve"], vec!["--edit", "{}"], vec!["--approve", "--call", "1.0", "--if", hash(&second)]] {
        assert_eq!(resume(&place, &all).code, 2, "{all:?}");
    }
    let ran = resume(&place, &["--approve", "--if", hash(&second)]);
    let result = ran.json();
    assert_eq!((ran.code, &result["pause"]["call"]), (3, &first), "{ran:#?}");
    assert!(result["pause"]["calls"].is_null() && result["trace"] == json!([]), "nothing was called yet: {result:#}");
    assert_eq!(resume(&place, &["--deny", "--if", hash(&second)]).code, 2, "it is decided");
    assert_eq!(resume(&place, &["--deny", "--call", "1.1"]).code, 2, "it is decided");
    let ran = resume(&place, &["--deny", "--reason", "not that", "--call", "1.0"]);
    let trace = ran.json()["trace"].clone();
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(trace[0]["success"] == json!(false) && trace[0]["observation"].to_string().contains("not that"));
    assert_eq!(trace[1]["observation"], json!({ "did": 1 }));
}

/// A run `r` that calls a loop `helper`, whose two calls of a turn want approval.
fn called() -> Place {
    let place = Place::new();
    let tools = json!([{ "type": "loop", "name": "helper" }]);
    let properties = json!({ "mode": "react", "objective": "Get it done.", "tools": tools });
    place.json("loop.json", &json!({ "type": "loop", "name": "boss", "properties": properties }));
    helper(&place, "https://tools.example.com/act");
    let boss = [think("helper", json!({})), complete(json!("done"))];
    place.json(
        "script.json",
        &json!({ "replies": boss, "loops": { "helper": [two(), complete(json!("helped"))] },
            "tools": { "act": [{ "did": 1 }] } }),
    );
    place
}

fn helper(place: &Place, url: &str) {
    let act = json!({ "action_name": "act", "kind": "http", "description": "Does.", "http_method": "POST", "url": url,
        "parameters": { "type": "object", "properties": { "what": {} } } });
    let properties = with(approval(), json!({ "mode": "react", "objective": "Help.", "dialect": "tool_calls" }));
    place.json(
        "loops/helper.json",
        &json!({ "type": "loop", "name": "helper", "description": "Helps.", "actions": [act], "properties": properties }),
    );
}

#[test]
fn a_decision_about_a_called_loop_is_bound_to_what_that_loop_shows() {
    let place = called();
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!((ran.code, &result["pause"]["run_id"]), (3, &json!("r.1.0")), "{ran:#?}");
    let [first, second] = both(&result);
    let own = |place: &Place| place.call(&["trace", "r.1.0", "--format", "json"]).json();
    assert_eq!(both(&own(&place)), [first.clone(), second.clone()], "the same hash wherever it is shown");
    let journal = own(&place);
    for wrong in [
        vec!["--approve"],
        vec!["--approve", "--if", "0000000000000000"],
        vec!["--approve", "--if", hash(&first), "--call", "1.1"],
    ] {
        let ran = resume(&place, &wrong);
        assert_eq!(ran.code, 2, "{wrong:?}: {ran:#?}");
    }
    assert_eq!(own(&place), journal, "nothing was handed on");
    let ran = resume(&place, &["--approve", "--if", hash(&second)]);
    assert_eq!((ran.code, &ran.json()["pause"]["call"]), (3, &first), "{ran:#?}");
    assert_eq!(resume(&place, &["--approve", "--if", hash(&second)]).code, 2, "it is decided");
    let ran = resume(&place, &["--approve", "--call", "1.0", "--if", hash(&first)]);
    assert_eq!((ran.code, &ran.json()["trace"][0]["observation"]), (0, &json!("helped")), "{ran:#?}");
    let trace = own(&place)["trace"].clone();
    assert!(trace[0]["success"] == json!(true) && trace[1]["success"] == json!(true), "{trace:#}");
}

#[test]
fn a_called_loop_whose_document_changed_shows_its_calls_again() {
    let place = called();
    let (_, result) = place.run(&["--run-id", "r"]);
    let [old, _] = both(&result);
    helper(&place, "https://elsewhere.example.com/act");
    for blind in [vec!["--approve", "--call", "1.0"], vec!["--approve", "--if", hash(&old)]] {
        let ran = resume(&place, &[blind, vec!["--new-document"]].concat());
        assert_eq!(ran.code, 2, "{ran:#?}");
        assert!(ran.stderr.contains("the document has changed since the call was shown"), "{}", ran.stderr);
    }
    let shown = resume(&place, &["--new-document"]);
    assert_eq!(shown.code, 3, "{shown:#?}");
    let [first, second] = both(&shown.json());
    assert_ne!(hash(&first), hash(&old));
    assert_eq!(resume(&place, &["--approve", "--if", hash(&old)]).code, 2, "the old hash");
    assert_eq!(resume(&place, &["--approve", "--if", hash(&second)]).code, 3);
    let ran = resume(&place, &["--approve", "--if", hash(&first)]);
    assert_eq!((ran.code, &ran.json()["trace"][0]["observation"]), (0, &json!("helped")), "{ran:#?}");
}

#[test]
fn a_call_is_shown_with_what_could_deceive() {
    let (place, _) = paused(
        r#"{"what": "p\u0430y \u202e\u200b", "am\u043eunt": 1e2, "amount": 100, "api_key": "k7",
        "command": "rm\u00a0-rf\u3000/\u2800\u034f"}"#,
    );
    let ran = place.call(&["resume", "r", "--script", "script.json"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    for part in [
        "\\u{202E}\\u{200B}",
        ": 1e2",
        "\"amount\": 100",
        "rm\\u{A0}-rf\\u{3000}/\\u{2800}\\u{34F}",
        "3 characters that nobody sees",
        "3 characters that look like a space and are none",
        "two names look alike",
        "am\\u{43E}unt",
        "letters of several scripts in one word",
        "1 value hidden as a secret",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
    assert!(
        !ran.stderr.contains("k7") && !ran.stderr.contains(['\u{202e}', '\u{200b}', '\u{a0}', '\u{3000}', '\u{34f}'])
    );
}
