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

/// The texts of the lines of the log in a source, each up to its first value.
fn logged(source: &str) -> Vec<String> {
    let macros = ["tracing::info!(", "tracing::warn!(", "tracing::error!("];
    let begins = macros.iter().flat_map(|begin| source.match_indices(begin).map(|(at, begin)| at + begin.len()));
    let texts = begins.filter_map(|begin| {
        let (mut depth, mut literals, mut literal) = (1, Vec::new(), None::<String>);
        let mut rest = source[begin..].chars();
        while let Some(c) = rest.next() {
            match (&mut literal, c) {
                (Some(_), '"') => literals.extend(literal.take()),
                (Some(text), '\\') => text.extend(rest.next()),
                (Some(text), c) => text.push(c),
                (None, '"') => literal = Some(String::new()),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                (None, _) => {}
            }
            if depth == 0 {
                break;
            }
        }
        // A name of a field is no text.
        literals.into_iter().find(|text| text != "loop")
    });
    texts.map(|text| text.split('{').next().unwrap_or_default().trim_end().to_owned()).collect()
}

#[test]
fn every_line_of_the_log_is_on_the_page() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/observe.md")).unwrap();
    // A line of the page may end within a text.
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut folders, mut lines) = (vec![root.join("src"), root.join("crates/runtime/src")], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !name.starts_with("tests") {
                for text in logged(&std::fs::read_to_string(&path).unwrap()).iter().filter(|text| text.len() > 3) {
                    lines += 1;
                    let begin = text.split([':', ';', ',']).next().unwrap_or_default();
                    assert!(page.contains(begin), "docs/observe.md: {text:?} of {}", path.display());
                }
            }
        }
    }
    assert!(lines > 50, "{lines}");
}
