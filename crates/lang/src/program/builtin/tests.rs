//! The built-in tools: their names, their inputs, and when the model gets them.

use serde_json::json;

use super::*;

#[test]
fn the_names_are_those_of_the_tools_in_their_order() {
    let tools = of(None);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, NAMES);
    assert!(NAMES.iter().zip(ALL).all(|(text, builtin)| named(text) == Some(builtin) && name(builtin) == *text));
    assert_eq!(named("__Complete__"), None);
}

#[test]
fn all_but_the_old_way_to_call_a_workflow_are_offered() {
    let offered: Vec<String> = of(None).into_iter().filter(Tool::is_offered).map(|tool| tool.name).collect();
    assert_eq!(offered, NAMES[..5]);
}

#[test]
fn each_takes_what_it_should_and_nothing_else() {
    let tools = of(None);
    let fits = |name: &str, input: serde_json::Value| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        tool.parameters.faults(&input).is_empty()
    };
    for (name, good, bad) in [
        ("__complete__", json!({"answer": null}), json!({})),
        (
            "__complete__",
            json!({"answer": [1], "confidence": 1.0, "summary": "s"}),
            json!({"answer": 1, "confidence": 1.1}),
        ),
        ("__complete__", json!({"answer": "a", "confidence": 0}), json!({"answer": 1, "sumary": "s"})),
        (
            "__pause_for_human__",
            json!({"question": "?", "context": "c", "options": ["a"]}),
            json!({"question": "?", "options": [1]}),
        ),
        ("__pause_for_human__", json!({"question": "?"}), json!({"question": ""})),
        ("__store_memory__", json!({"key": "k", "value": null}), json!({"key": "k"})),
        ("__retrieve_memory__", json!({}), json!({"key": 1})),
        (
            "__log_progress__",
            json!({"message": "m", "milestone": "x", "percent": 100}),
            json!({"message": "m", "percent": 101}),
        ),
        ("__run_workflow__", json!({"workflow_id": "w", "input": {}}), json!({"input": {}})),
        ("__run_workflow__", json!({"workflow_name": "w"}), json!({"workflow_name": "w", "wait": true})),
    ] {
        assert!(fits(name, good.clone()), "{name} {good}");
        assert!(!fits(name, bad.clone()), "{name} {bad}");
    }
    assert!(tools.iter().all(|tool| tool.parameters.is_closed() && !tool.description.is_empty()));
}
