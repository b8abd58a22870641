//! `docs/serve.md` is true: its requests are sent in their order, and the answers are as it shows them.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Serving, scripted};

/// Whether an answer matches the documented one: `"..."` there matches any text, an empty array any array.
fn holds(shown: &Value, answer: &Value, at: &str) {
    match (shown, answer) {
        (Value::String(any), Value::String(_)) if any == "..." => {}
        (Value::Array(shown), Value::Array(_)) if shown.is_empty() => {}
        (Value::Object(shown), Value::Object(_)) => {
            shown.iter().for_each(|(name, shown)| holds(shown, &answer[name], &format!("{at}/{name}")));
        }
        (Value::Array(shown), Value::Array(found)) => {
            assert_eq!(shown.len(), found.len(), "{at}");
            shown.iter().zip(found).for_each(|(shown, found)| holds(shown, found, at));
        }
        _ => assert_eq!(shown, answer, "{at}"),
    }
}

#[test]
fn every_request_of_the_page_is_answered_as_the_page_says() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/serve.md")).unwrap();
    let place = Place::new();
    place.json(
        "loops/triage.json",
        &json!({ "type": "loop", "name": "triage",
            "input": { "type": "object", "properties": { "ticket_id": { "type": "string" } }, "required": ["ticket_id"] },
            "properties": { "mode": "react", "objective": "Triage ticket {{input.ticket_id}}.", "tools": [] } }),
    );
    let replies = [think("__pause_for_human__", json!({ "question": "Which account?" })), complete(json!("done"))];
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    let mut blocks = page.split("```http\n").skip(1).map(|rest| {
        let (request, rest) = rest.split_once("```").unwrap();
        let shown = rest.trim_start().strip_prefix("```json\n").and_then(|rest| rest.split_once("```")).unwrap().0;
        (request.to_owned(), serde_json::from_str::<Value>(shown).unwrap())
    });
    let (mut run, mut count) = (String::new(), 0);
    for (request, shown) in blocks.by_ref() {
        let (line, body) = request.split_once('\n').unwrap();
        let (method, target) = line.split_once(' ').unwrap();
        let reply = server.send(method, &target.replace("{id}", &run), &[], body.trim().as_bytes());
        let answer = reply.json();
        holds(&shown, &answer, line);
        if run.is_empty() {
            run = answer["agent_run_id"].as_str().unwrap().to_owned();
        }
        count += 1;
    }
    assert!(count >= 6, "only {count} requests were found");
}

#[test]
fn every_route_and_option_is_on_the_page() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/serve.md")).unwrap();
    let place = Place::new();
    scripted(&place, &[], json!({}));
    let server = Serving::start(&place, &[]);
    let described = server.get("/openapi.json").json();
    for route in described["paths"].as_object().unwrap().keys() {
        assert!(page.contains(route.as_str()), "docs/serve.md: {route}");
    }
    let help = place.call(&["serve", "--help"]).stdout;
    for option in help.split_whitespace().filter(|word| word.starts_with("--") && *word != "--help") {
        let option = option.trim_end_matches(|c: char| !c.is_alphanumeric());
        assert!(page.contains(option), "docs/serve.md: {option}");
    }
}
