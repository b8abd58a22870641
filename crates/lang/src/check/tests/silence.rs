//! When rules are silent: a value that a rule needs is broken, or its fault is already reported.

use super::{all_diagnostics, all_shown, texts};

fn codes(main: &str, project: &str) -> Vec<&'static str> {
    all_diagnostics(&texts(main, project, "")).into_iter().map(|fault| fault.code).collect()
}

/// A loop with these properties, that uses these actions.
fn with(properties: &str, action: &str) -> String {
    format!(
        r#"{{"type": "loop", "actions": [{{"action_name": "a", "description": "Does it.", {action}}}],
            "properties": {{"mode": "react", "objective": "x", "tools": [{{"type": "action", "name": "a"}}]{properties}}}}}"#
    )
}

const GET: &str = r#""kind": "http", "url": "https://api.example.com/x", "http_method": "GET""#;

/// An action, what is reported of it beside a project file with an error elsewhere, and the part of the project
/// file that it is judged by.
const JUDGED_BY_PROJECT: [(&str, &str, &str); 4] = [
    (r#""kind": "http", "url": "https://api.example.com/orgconfig:nope", "http_method": "GET""#, "L041", "orgconfig"),
    (r#""kind": "db", "datasource": "s", "query": "SELECT 1""#, "L042", "datasources"),
    (r#""kind": "command", "program": "wc""#, "L110", "allow"),
    (r#""kind": "http", "url": "http://localhost/", "http_method": "GET""#, "L109", "allow"),
];

#[test]
fn an_error_of_the_project_file_leaves_its_other_settings_standing() {
    for (action, code, _) in JUDGED_BY_PROJECT {
        assert_eq!(codes(&with("", action), r#"{"store": 3}"#), ["L013", code], "{action}");
        assert_eq!(codes(&with("", action), r#"{"models": {"m": {"provider": 1}}}"#), ["L013", code], "{action}");
    }
    let project = r#"{"store": 3, "orgconfig": {"k": "hunter2hunter2"}}"#;
    assert_eq!(codes(&with("", GET), project), ["L013", "L116"]);
}

#[test]
fn what_an_error_of_the_project_file_may_hide_is_not_reported_as_missing() {
    for (action, code, part) in JUDGED_BY_PROJECT {
        for project in [
            format!(r#"{{"{part}": 3}}"#),
            r#"{"permissions_of_ours": {}}"#.to_owned(),
            r#"{"store": "memory" "x"}"#.to_owned(),
        ] {
            let found = codes(&with("", action), &project);
            assert!(!found.contains(&code) && !found.is_empty(), "{action}: {project}: {found:?}");
        }
    }
    let price = r#"{"models": {"m": {"provider": "openai", "price": "free"}}}"#;
    assert_eq!(codes(&with(r#", "model": "m", "budget": {"cost_usd": 1}"#, GET), price), ["L013"]);
}

#[test]
fn a_property_with_an_error_silences_its_own_rules_and_no_others() {
    let properties = r#", "max_iterations": "2", "on_stuck": {"iterations": 5, "hint": "h"}"#;
    assert_eq!(codes(&with(properties, GET), ""), ["L013", "L091"]);
    let properties = r#", "max_iterations": 2, "on_stuck": {"iterations": 5, "hint": "h", "action": "faill"}"#;
    assert_eq!(codes(&with(properties, GET), ""), ["L012", "L090"]);
    let properties = r#", "answer_schema": {"type": "strin", "enum": []}"#;
    assert_eq!(codes(&with(properties, GET), ""), ["L070"]);
}

#[test]
fn a_misspelt_tool_is_not_reported_a_second_time_as_an_unused_action() {
    let main = with("", GET).replace(r#""name": "a""#, r#""name": "b""#);
    assert_eq!(codes(&main, ""), ["L030"]);
    let cut = with("", GET).replace(r#"[{"type": "action", "name": "a"}]"#, r#"[{"type": "action", "name": }]"#);
    assert!(!codes(&cut, "").contains(&"L040"), "{:?}", codes(&cut, ""));
}

#[test]
fn a_pasted_key_is_reported_once_and_never_shown() {
    let key = concat!("sk-", "a1b2c3d4e5f6g7h8i9j0k1l2");
    for project in [
        format!(r#"{{"orgconfig": {{"k": "{key}"}}}}"#),
        format!(r#"{{"models": {{"m": {{"provider": "openai", "api_key": "{key}"}}}}}}"#),
    ] {
        assert_eq!(codes(&with("", GET), &project), ["L106"], "{project}");
    }
    for project in [
        r#"{"orgconfig": {"k": "hunter2hunter2"}}"#,
        r#"{"models": {"m": {"provider": "openai", "api_key": "hunter2hunter2"}}}"#,
        r#"{"models": {"m": {"provider": "openai", "base_url": "https://u:hunter2hunter2@h/"}}}"#,
        r#"{"models": {"m": {"provider": "openai", "base_url": "hunter2hunter2:x"}}}"#,
    ] {
        let found = all_diagnostics(&texts(&with("", GET), project, ""));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(!format!("{found:?}").contains("hunter2"), "{found:?}");
    }
}

#[test]
fn one_fault_of_a_host_is_reported_by_one_rule() {
    let url = |url: &str| with("", &GET.replace("https://api.example.com/x", url));
    // A secret that would go where the model says is an error of its own.
    let wandering = url("https://{{h}}/x?key=orgconfig:k");
    assert_eq!(codes(&wandering, r#"{"orgconfig": {"k": "env:K"}}"#), ["L102"]);
    // A host that is private and not in the list: one of the two.
    assert_eq!(codes(&url("http://127.0.0.1/"), r#"{"allow": {"hosts": ["api.example.com"]}}"#), ["L108"]);
    assert_eq!(codes(&url("http://127.0.0.1/"), r#"{"allow": {"hosts": ["127.0.0.1"]}}"#), ["L109"]);
    // An entry that is none; one that is written in other letters.
    let odd = r#"{"allow": {"hosts": ["https://api.example.com"]}}"#;
    assert_eq!(codes(&url("https://api.example.com/x"), odd), ["L115"]);
    let other = r#"{"allow": {"hosts": ["b\u00fccher.example"]}}"#;
    assert!(codes(&url("https://xn--bcher-kva.example/"), other).is_empty());
    // Another spelling of an address is that address.
    assert_eq!(codes(&url("http://0x7f.1/"), ""), ["L109"]);
}

#[test]
fn an_action_that_can_not_be_read_is_not_judged() {
    for action in [
        r#""kind": "command", "program": "{{p}}""#,
        r#""kind": "command", "program": 3"#,
        r#""kind": "http", "url": "ftp://localhost/", "http_method": "GET""#,
    ] {
        let found = all_shown(&texts(&with("", action), "", ""));
        assert_eq!(found.len(), 1, "{action}: {found:?}");
    }
}

#[test]
fn another_mode_and_another_kind_of_document_are_left_alone() {
    let foreach = r#"{"type": "loop", "properties": {"mode": "foreach", "items_path": "@input.x", "item_variable_name": "i",
        "actions_to_execute": [], "max_concurrency": 2}}"#;
    assert!(codes(foreach, "").is_empty());
    assert_eq!(codes(r#"{"replies": []}"#, ""), ["L019"]);
    assert!(codes(r#"{"name": "w", "definition": {"actions": []}}"#, "").is_empty());
}
