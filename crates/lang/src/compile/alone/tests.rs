//! Documents that are no loops.

use super::*;
use crate::diagnostic::Source;
use crate::syntax::document::read;

const LOOP: &str = r#"{"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": TOOLS}}"#;

fn reported(text: &str, tools: &str) -> Vec<(&'static str, String)> {
    let mut declared = Declared::default();
    declared.add(&read(&Source::new("loop.json", LOOP.replace("TOOLS", tools))));
    let faults = alone(&read(&Source::new("actions.json", text)), &declared);
    faults.into_iter().map(|fault| (fault.code, fault.path)).collect()
}

fn action(name: &str, more: &str) -> String {
    format!(r#"{{"action_name": "{name}", "kind": "http", "url": "https://e.com/x", "http_method": "GET"{more}}}"#)
}

fn at(code: &'static str, path: &str) -> (&'static str, String) {
    (code, path.to_owned())
}

#[test]
fn an_action_that_no_loop_uses_is_judged_like_one_that_is_used() {
    let text = format!("[{}, {}]", action("a", ""), action("b", r#", "description": "d", "body": "{{x.}}""#));
    assert_eq!(reported(&text, "[]"), [at("L072", "/0/action_name"), at("L050", "/1/body")]);
    assert_eq!(reported(&action("a", ""), "[]"), [at("L072", "/action_name")]);
}

#[test]
fn a_description_where_it_is_declared_is_one() {
    let text = action("a", "");
    assert!(reported(&text, r#"[{"type": "action", "name": "a", "description": "d"}]"#).is_empty());
    assert_eq!(
        reported(&text, r#"[{"type": "action", "name": "a", "description": " "}]"#),
        [at("L072", "/action_name")]
    );
    assert_eq!(reported(&text, r#"["a"]"#), [at("L072", "/action_name")]);
}

#[test]
fn names_are_judged_where_no_loop_declares_them() {
    let described = r#", "description": "d""#;
    let text = format!(
        "[{}, {}, {}, {}]",
        action("a", described),
        action("a", described),
        action("__mine__", described),
        action("b c", described)
    );
    assert_eq!(
        reported(&text, "[]"),
        [at("L031", "/1/action_name"), at("L034", "/2/action_name"), at("L032", "/3/action_name")]
    );
    assert!(reported(&text, r#"["a", "__mine__", "b c"]"#).is_empty());
}

#[test]
fn what_runs_elsewhere_and_documents_of_other_kinds_are_left_in_peace() {
    assert!(reported(r#"{"action_name": "a", "kind": "custom-table", "description": "A."}"#, "[]").is_empty());
    assert!(reported(&LOOP.replace("TOOLS", "[]"), "[]").is_empty());
    assert!(reported(r#"{"models": {"a": {"provider": "openai"}}}"#, "[]").is_empty());
    assert!(reported(r#"{"replies": ["x"]}"#, "[]").is_empty());
    assert!(reported(r#"{"scenarios": []}"#, "[]").is_empty());
    assert!(reported("[7, null, {}]", "[]").is_empty());
}

#[test]
fn a_script_calls_the_loops_of_a_workflow_by_the_names_of_their_steps() {
    let react = |more: &str| {
        format!(r#"{{"type": "loop"{more}, "properties": {{"mode": "react", "objective": "x", "tools": []"#)
    };
    let (named, keyed) = (react(r#", "id": "judge""#), react(""));
    let list =
        format!(r#"{named}}}}}, {keyed}, "result_key": "found"}}, "onFalse": {keyed}, "result_key": "other"}}}}}}"#);
    let each = format!(
        r#"{{"type": "loop", "id": "each", "properties": {{"mode": "foreach", "items_path": "@input.x", "item_variable_name": "i",
        "actions_to_execute": [{list}, {keyed}}}}}]}}}}"#
    );
    let mut declared = Declared::default();
    let workflow = format!(r#"{{"name": "w", "definition": {{"actions": [{each}]}}}}"#);
    declared.add(&read(&Source::new("workflow.json", workflow)));
    let script = r#"{"replies": [], "loops": {"judge": [], "found": [], "other": [], "2": [], "each": []}}"#;
    let faults = alone(&read(&Source::new("script.json", script)), &declared);
    let faults: Vec<_> = faults.into_iter().map(|fault| (fault.code, fault.path)).collect();
    assert_eq!(faults, [at("L022", "/loops/each")]);
}

#[test]
fn a_script_calls_a_workflow_that_is_a_tool_by_its_id_under_its_name() {
    let tool = |tools: &str| Source::new("loop.json", LOOP.replace("TOOLS", tools));
    let workflow = r#"{"id": "wf-7", "name": "notify", "definition": {"actions": []}}"#;
    let script = r#"{"replies": [{"action": "notify", "action_input": {}}, {"action": "ask", "action_input": {}}]}"#;
    let ask = r#"{"type": "action", "name": "ask"}"#;
    let by_id = format!(r#"[{ask}, {{"type": "workflow", "id": "wf-7"}}]"#);
    for (tools, known) in [(by_id.as_str(), true), (&format!("[{ask}]"), false)] {
        let both = [tool(tools), Source::new("workflow.json", workflow)];
        for order in [[0, 1], [1, 0]] {
            let mut declared = Declared::default();
            order.into_iter().for_each(|at| declared.add(&read(&both[at])));
            let faults = alone(&read(&Source::new("script.json", script)), &declared);
            assert_eq!(faults.is_empty(), known, "{tools}: {faults:#?}");
        }
    }
}
