//! Forms with typed fields, on the command line: what is asked, what is refused at its field, and what later steps read.

use serde_json::{Value, json};

use crate::common::terminal::Terminal;
use crate::run::workflows::{definition, place, resume, run};

/// A form about an amount up to 120.50, and a step that is given what was filled in.
fn form() -> Value {
    json!({ "output": { "amount": "@amount", "reason": "@reason", "until": "@until", "urgent": "@urgent" }, "actions": [
        { "id": "ask", "type": "PbotForm", "properties": {
            "question": "How much of {{input.id}} is accepted?", "show": { "claim": "@input" },
            "fields": [
                { "name": "amount", "type": "number", "min": 0, "max": "@input.amount", "label": "Amount of {{input.id}}" },
                { "name": "reason", "type": "choice", "choices": ["damage", "delay"], "default": "delay" },
                { "name": "until", "type": "date", "required": false },
                { "name": "urgent", "type": "yes_no", "default": false }] } },
        { "type": "a", "properties": { "amount": "@amount", "why": "{{reason}}" } }] })
}

fn input() -> Value {
    serde_json::from_str(r#"{ "id": "C-7", "amount": 120.50 }"#).unwrap()
}

#[test]
fn a_form_refuses_what_does_not_fit_at_its_field_and_stays_open() {
    let place = place();
    definition(&place, form());
    let (ran, result) = run(&place, input());
    let step = &result["pause"]["steps"][0];
    assert_eq!((ran.code, &step["at"], &step["question"]), (3, &json!("ask"), &json!("How much of C-7 is accepted?")));
    assert_eq!(step["show"].to_string(), r#"{"claim":{"id":"C-7","amount":120.50}}"#);
    assert_eq!(step["expected_keys"], json!(["amount", "reason", "until", "urgent"]));
    let schema = &step["answer_schema"];
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["amount"]), &json!(false)));
    assert_eq!(
        schema["properties"]["amount"].to_string(),
        r#"{"type":"number","minimum":0,"maximum":120.50,"title":"Amount of C-7"}"#
    );
    assert_eq!(schema["properties"]["until"], json!({ "type": "string", "format": "date" }));
    for (answer, says) in [
        ("7", "a form is answered by a JSON object"),
        ("{}", "`amount`: it is required"),
        (r#"{"amount": "7 "}"#, "`amount`: \"7 \" is no number, and has blanks around it"),
        (r#"{"amount": 1e400}"#, "`amount`: 1e+400 is beyond what a number can be here"),
        (r#"{"amount": 120.51}"#, "`amount`: 120.51 is more than 120.50"),
        (r#"{"amount": 7, "amount": 8}"#, "`amount`: it is twice in the answer"),
        (r#"{"amount": 7, "until": "2026-02-30"}"#, "`until`: \"2026-02-30\" is no date"),
        (r#"{"amount": 7, "reason": "Delay"}"#, "`reason`: \"Delay\" is none of the choices; did you mean delay?"),
        (r#"{"amount": 7, "resaon": "delay"}"#, "`resaon`: the form has no such field; did you mean `reason`?"),
    ] {
        let (ran, said) = resume(&place, &["--answer", answer]);
        assert_eq!(ran.code, 2, "{answer}: {ran:#?}");
        assert!(said["stderr"].as_str().unwrap().contains(says), "{answer}: {said}");
    }
    let (ran, _) = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let (ran, result) = resume(&place, &["--answer", r#"{"amount": "12.50", "urgent": "yes"}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let answer = &result["result"]["answer"];
    assert_eq!(answer.to_string(), r#"{"amount":12.50,"reason":"delay","until":null,"urgent":true}"#);
    let trace = place.call(&["trace", "r", "--at", "ask"]);
    for words in ["How much of C-7 is accepted?", "C-7", "120.50", "12.50", "delay"] {
        assert!(trace.stdout.contains(words), "{words}: {}", trace.stdout);
    }
    let page = place.call(&["trace", "r", "--at", "ask", "--format", "html"]);
    for words in ["How much of C-7 is accepted?", "12.50"] {
        assert!(page.stdout.contains(words), "{words}: {}", page.stdout);
    }
}

#[test]
fn a_form_whose_bound_is_no_number_fails_its_step_before_anybody_is_asked() {
    let place = place();
    definition(&place, form());
    let (ran, result) = run(&place, json!({ "id": "C-7", "amount": "a lot" }));
    assert_eq!((ran.code, &result["steps"][0]["error"]["code"]), (1, &json!("bad_form")), "{ran:#?}");
    let why = result["error"]["message"].as_str().unwrap();
    assert!(why.contains("`amount`") && why.contains("its `max` is \"a lot\", which is no number"), "{why}");
}

#[test]
fn the_terminal_asks_again_at_the_field_that_is_not_taken() {
    let place = place();
    definition(&place, form());
    let (ran, _) = run(&place, input());
    assert_eq!(ran.code, 3, "{ran:#?}");
    let mut terminal =
        Terminal::start(&place, &["resume", "r", "--script", "script.json", "--output", "json", "--interactive"]);
    let shown = terminal.sees("Amount of C-7 (a number from 0 to 120.50) >");
    assert!(shown.contains("How much of C-7 is accepted?") && shown.contains("\"id\": \"C-7\""), "{shown}");
    for (typed, says) in [("", "it is required"), ("7 ", "has blanks around it"), ("121", "121 is more than 120.50")] {
        terminal.types(typed);
        terminal.sees(says);
        terminal.sees("Amount of C-7 (a number from 0 to 120.50) >");
    }
    terminal.types("120.50");
    terminal.sees("reason (one of: damage, delay · delay if it is left out) >");
    terminal.types("");
    terminal.sees("until (a date like 2026-02-28 · may be left out) >");
    terminal.types("2026-02-30");
    terminal.sees("is no date");
    terminal.sees("may be left out) >");
    terminal.types("2026-03-01");
    terminal.sees("urgent (yes or no");
    terminal.types("no");
    let (code, shown, stdout) = terminal.ends(&place);
    assert_eq!(code, 0, "{shown}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    let answer = &result["result"]["answer"];
    assert_eq!(answer.to_string(), r#"{"amount":120.50,"reason":"delay","until":"2026-03-01","urgent":false}"#);
}

#[test]
fn the_texts_of_a_field_and_its_default_are_hidden_where_they_are_secret() {
    let place = place();
    let fields = json!([
        { "name": "amount", "type": "number", "label": "For {{input.key}}", "help": "Ask {{input.key}}" },
        { "name": "password", "type": "text", "default": "@input.password" }]);
    let form = json!({ "type": "PbotForm", "id": "ask",
        "properties": { "question": "How much?", "fields": fields } });
    definition(&place, json!({ "actions": [form, { "type": "a", "properties": { "password": "@password" } }] }));
    let key = concat!("sk-", "proj-a1B2c3D4e5F6g7H8i9J0k1L2");
    let (ran, result) = run(&place, json!({ "key": key, "password": "s-4711" }));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let step = &result["pause"]["steps"][0];
    assert!(!ran.stdout.contains(key) && !ran.stderr.contains(key), "{ran:#?}");
    assert_eq!(step["fields"][0]["label"], "For [hidden]", "{step}");
    assert_eq!(step["answer_schema"]["properties"]["amount"]["description"], "Ask [hidden]", "{step}");
    assert_eq!(step["fields"][1]["default"], "[hidden]", "{step}");
    assert_eq!(step["answer_schema"]["properties"]["password"].get("default"), None, "{step}");
    let (ran, said) = resume(&place, &["--answer", r#"{"amount": 7, "password": "[hidden]"}"#]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(
        said["stderr"].as_str().unwrap().contains("`password`: [hidden] is no value: leave the field out"),
        "{said}"
    );
    let (ran, _) = resume(&place, &["--answer", r#"{"amount": 7, "password": ""}"#]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let trace = place.call(&["trace", "r", "--at", "ask", "--format", "json"]);
    assert!(trace.stdout.contains("How much?") && !trace.stdout.contains("s-4711"), "{}", trace.stdout);
}

#[test]
fn a_bound_at_null_fails_and_a_default_at_null_is_none() {
    let place = place();
    let form = json!({ "type": "PbotForm", "id": "ask", "properties": { "question": "How much?", "fields": [
        { "name": "amount", "type": "number", "max": "@input.max" },
        { "name": "reason", "type": "text", "default": "@input.reason", "min": 3, "max": "@input.none?" },
        { "name": "days", "type": "integer", "min": "@input.least?", "required": false },
        { "name": "day", "type": "date", "default": "@now" }] } });
    definition(&place, json!({ "actions": [form] }));
    let (ran, result) = run(&place, json!({ "max": null, "reason": "late", "least": null }));
    let why = result["error"]["message"].as_str().unwrap();
    assert_eq!((ran.code, &result["steps"][0]["error"]["code"]), (1, &json!("bad_form")), "{ran:#?}");
    assert!(why.contains("`amount`") && why.contains("its `max` is null, which is no number"), "{why}");
    place.json("input.json", &json!({ "max": 9, "reason": null, "least": null }));
    let (ran, result) = place.run(&["--run-id", "two", "--input-file", "input.json"]);
    assert_eq!((ran.code, &result["pause"]["steps"][0]["fields"][1]["required"]), (3, &json!(true)), "{ran:#?}");
    let day = result["pause"]["steps"][0]["fields"][3]["default"].as_str().unwrap();
    assert_eq!(day.len(), 10, "{day}");
    let answer = ["resume", "two", "--script", "script.json", "--answer", r#"{"amount": 7, "reason": ""}"#];
    let ran = place.call(&answer);
    assert!(ran.code == 2 && ran.stderr.contains("`reason`: it is required"), "{ran:#?}");
}

#[test]
fn the_terminal_takes_a_text_of_several_lines_and_says_what_it_drops() {
    let place = place();
    definition(
        &place,
        json!({ "output": { "why": "@why", "who": "@who" }, "actions": [
            { "id": "ask", "type": "PbotForm", "properties": { "question": "What happened?", "fields": [
                { "name": "why", "type": "long_text" }, { "name": "who", "type": "text" }] } }] }),
    );
    let (ran, _) = run(&place, json!({}));
    assert_eq!(ran.code, 3, "{ran:#?}");
    let args = ["resume", "r", "--script", "script.json", "--output", "json", "--interactive"];
    let mut terminal = Terminal::start(&place, &args);
    terminal.sees("why (a text) up to a line with a point alone >");
    terminal.types(&"x".repeat(5_000));
    terminal.sees("not taken");
    terminal.sees("up to a line with a point alone >");
    terminal.types("It broke.\n\nTwice.\n.\nmore\nand more");
    terminal.sees("dropped");
    terminal.sees("who (a text of one line) >");
    terminal.types("Ada");
    let (code, shown, stdout) = terminal.ends(&place);
    assert_eq!(code, 0, "{shown}");
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(result["result"]["answer"], json!({ "why": "It broke.\n\nTwice.", "who": "Ada" }));
}

#[test]
fn a_form_of_keys_takes_no_answer_in_which_a_key_is_twice() {
    let place = place();
    let form = json!({ "id": "ask", "type": "PbotForm", "properties": { "expected_keys": ["fee"] } });
    definition(&place, json!({ "actions": [form], "output": "@fee" }));
    run(&place, json!({}));
    let (ran, _) = resume(&place, &["--answer", r#"{"fee":1,"fee":2}"#]);
    assert!(ran.code == 2 && ran.stderr.contains("the key `fee` is twice"), "{ran:#?}");
    let (ran, result) = resume(&place, &["--answer", r#"{"fee":1}"#]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!(1)), "{ran:#?}");
}
