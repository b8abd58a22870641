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
