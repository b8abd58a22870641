//! Approvals that depend on the input of the call.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, think};

/// The action `pay`, and a loop that declares it.
fn document(action: &Value, declaration: &Value, parameters: &Value) -> Value {
    let mut pay = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "url": "https://pay.example.com",
        "http_method": "POST", "parameters": parameters });
    let mut declared = json!({ "type": "action", "name": "pay" });
    for (to, from) in [(&mut pay, action), (&mut declared, declaration)] {
        for (name, value) in from.as_object().expect("fields") {
            to[name] = value.clone();
        }
    }
    json!({ "type": "loop", "name": "payments", "actions": [pay],
        "properties": { "mode": "react", "objective": "Pay.", "tools": [declared] } })
}

fn any_object() -> Value {
    json!({ "type": "object" })
}

/// Makes one call of `pay` with this input.
fn paid(action: &Value, declaration: &Value, input: &Value) -> (Place, Ran) {
    let place = Place::new();
    place.json("loop.json", &document(action, declaration, &any_object()));
    place.json(
        "script.json",
        &json!({ "replies": [think("pay", input.clone()), complete(json!("done"))], "tools": { "pay": [{ "paid": true }] } }),
    );
    let (ran, _) = place.run(&["--run-id", "r"]);
    (place, ran)
}

fn over(limit: u32) -> Value {
    json!({ "requires_approval": { "greaterThan": ["@input.amount", limit] } })
}

#[test]
fn a_condition_decides_by_the_input_whether_the_call_asks() {
    for (amount, code) in [(json!(501), 3), (json!(500), 0), (json!(500.01), 3), (json!("501"), 3), (json!("12"), 0)] {
        let input = json!({ "amount": amount });
        assert_eq!(paid(&json!({}), &over(500), &input).1.code, code, "{amount} by the declaration");
        assert_eq!(paid(&over(500), &json!({}), &input).1.code, code, "{amount} by the action");
    }
}

#[test]
fn what_can_not_be_compared_never_skips_the_approval_and_the_question_says_why() {
    for (input, why) in [
        (json!({}), "`@input.amount` is missing"),
        (
            json!({ "amount": null }),
            "`greaterThan` compares two numbers or two times: `@input.amount` is null, and `500` is a number",
        ),
        (
            json!({ "amount": "n/a" }),
            "`greaterThan` compares two numbers or two times: `@input.amount` is the text \"n/a\", and `500` is a number",
        ),
        (
            json!({ "amount": [9] }),
            "`greaterThan` compares two numbers or two times: `@input.amount` is a list, and `500` is a number",
        ),
    ] {
        let (place, ran) = paid(&json!({}), &over(500), &input);
        assert_eq!(ran.code, 3, "{input}: {ran:#?}");
        let question = ran.json()["pause"]["question"].as_str().unwrap_or_default().to_owned();
        assert_eq!(question, format!("May the agent call pay? Whether pay needs an approval can't be decided: {why}."));
        assert!(place.call(&["trace", "r"]).stdout.contains("can't be decided"), "the trace shows it");
        let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
}

#[test]
fn a_declaration_makes_the_condition_of_an_action_stricter_and_never_weaker() {
    let input = |amount: u32| json!({ "amount": amount });
    // Either of the two is enough.
    for (amount, code) in [(600, 3), (200, 3), (50, 0)] {
        assert_eq!(paid(&over(500), &over(100), &input(amount)).1.code, code, "{amount}");
        assert_eq!(paid(&over(100), &over(500), &input(amount)).1.code, code, "{amount}");
    }
    let always = json!({ "requires_approval": true });
    assert_eq!(paid(&over(500), &always, &input(1)).1.code, 3);
    assert_eq!(paid(&always, &over(500), &input(1)).1.code, 3);
    let never = json!({ "requires_approval": false });
    let (place, ran) = paid(&over(500), &never, &input(501));
    assert_eq!(ran.code, 3);
    let checked = place.call(&["check", "loop.json"]);
    let both = format!("{}{}", checked.stdout, checked.stderr);
    assert!(checked.code == 0 && both.contains("L130") && both.contains("greaterThan"), "{checked:#?}");
}

#[test]
fn the_call_of_a_loop_may_ask_by_its_input_too() {
    let place = Place::new();
    place.json(
        "loops/small.json",
        &json!({ "type": "loop", "name": "small", "description": "Answers.",
            "input": { "type": "object", "properties": { "depth": { "type": "integer" } }, "required": ["depth"] },
            "properties": { "mode": "react", "objective": "Go {{input.depth}} deep.", "tools": [] } }),
    );
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "big", "properties": { "mode": "react", "objective": "Ask.", "tools": [
            { "type": "loop", "name": "small", "requires_approval": { "greaterThan": ["@input.depth", 3] } }] } }),
    );
    for (depth, code) in [(3, 0), (4, 3)] {
        place.json(
            "script.json",
            &json!({ "replies": [think("small", json!({ "depth": depth })), complete(json!("done"))],
                "loops": { "small": [complete(json!("deep"))] } }),
        );
        let (ran, _) = place.run(&["--run-id", &format!("r{depth}")]);
        assert_eq!(ran.code, code, "{depth}: {ran:#?}");
    }
}

#[test]
fn a_condition_that_can_not_be_meant_starts_no_run() {
    let schema = json!({ "type": "object", "properties": { "amount": { "type": "number" }, "to": { "type": "string" } },
        "required": ["amount", "to"], "additionalProperties": false });
    for (condition, code) in [
        (json!({ "greaterThan": ["@input.amont", 500] }), "L054"),
        (json!({ "greaterThan": ["@amount", 500] }), "L054"),
        (json!({ "greaterThan": ["input.amount", 500] }), "L141"),
        (json!({ "greaterThan": ["{{input.amount}}", 500] }), "L141"),
        (json!({ "greaterThan": ["@input.amount.name", 500] }), "L154"),
        (json!({ "greaterThan": ["@input.amount", "high"] }), "L141"),
        (json!({ "equal": ["@input.amount", "500"] }), "L140"),
        (json!({ "matches": ["@input.to", "("] }), "L141"),
        (json!({ "greaterThan": ["@input.amount"] }), "L015"),
        (json!({ "greaterThen": ["@input.amount", 500] }), "L010"),
        (json!("yes"), "L0"),
    ] {
        for action in [true, false] {
            let (there, nothing) = (json!({ "requires_approval": condition }), json!({}));
            let (of_action, of_declaration) = if action { (&there, &nothing) } else { (&nothing, &there) };
            let place = Place::new();
            place.json("loop.json", &document(of_action, of_declaration, &schema));
            let ran = place.call(&["run", "loop.json", "--script", "none.json"]);
            assert_eq!(ran.code, 2, "{condition}: {ran:#?}");
            let said = ran.stderr.matches("error[").count();
            assert!(ran.stderr.contains(&format!("error[{code}")) && said == 1, "{condition}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_path_into_json_text_is_judged_as_elsewhere_and_checked_as_elsewhere() {
    let limit = json!({ "requires_approval": { "greaterThan": ["@input.s.a", 5] } });
    for (text, code) in [
        ("{\"a\": 6}", 3),
        ("{\"a\": 5}", 0),
        ("```json\n{\"a\": 6}\n```", 3),
        ("so:\n```json\n{\"a\": 5}\n```", 0),
        ("none", 3),
    ] {
        let input = json!({ "s": text });
        assert_eq!(paid(&json!({}), &limit, &input).1.code, code, "{text} by the declaration");
        assert_eq!(paid(&limit, &json!({}), &input).1.code, code, "{text} by the action");
    }
    for (schema, codes) in [
        (json!({ "type": "string" }), vec![("L154", "warning")]),
        (json!({ "type": "string", "contentMediaType": "application/json" }), vec![]),
        (json!({ "type": "integer" }), vec![("L154", "error")]),
    ] {
        let place = Place::new();
        let parameters = json!({ "type": "object", "properties": { "s": schema }, "required": ["s"] });
        place.json("loop.json", &document(&json!({}), &limit, &parameters));
        let report = place.call(&["check", "loop.json", "--format", "json"]).json();
        let found = report
            .as_array()
            .unwrap()
            .iter()
            .map(|found| (found["code"].as_str().unwrap(), found["severity"].as_str().unwrap()));
        let found: Vec<_> = found.filter(|(code, _)| *code == "L154").collect();
        assert_eq!(found, codes, "{report:#}");
    }
}
