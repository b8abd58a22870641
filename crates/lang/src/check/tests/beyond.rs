//! Rules beyond their first case: agent requests, actions in files beside, the project file, several
//! faults at once, and texts that are broken in any way.

use proptest::prelude::*;

use super::{all_diagnostics, all_shown, case, judged, texts};

#[test]
fn an_agent_request_is_judged_at_its_own_places() {
    let main = r#"{"objective": "x", "tools": [{"type": "action", "name": "a", "timeout_ms": 9000}],
"config": {"max_iterations": 4, "timeout_ms": 5000, "on_stuck": {"iterations": 5, "hint": "h"},
"model": "m", "fallback_models": ["m"], "result_key": "now"},
"actions": [{"action_name": "a", "kind": "llm", "description": "d", "template": "{{t}}", "temperature": 2, "model": "o1"},
{"action_name": "b", "kind": "llm", "description": "d", "template": "t"}]}"#;
    let expected = [
        "L093 loop.json:1:76 /tools/0/timeout_ms: 9000",
        "L090 loop.json:2:80 /config/on_stuck/iterations: 5",
        "L091 loop.json:2:83 /config/on_stuck/hint: \"hint\"",
        "L044 loop.json:3:35 /config/fallback_models/0: \"m\"",
        "L046 loop.json:3:55 /config/result_key: \"now\"",
        "L098 loop.json:4:90 /actions/0/temperature: \"temperature\"",
        "L040 loop.json:5:17 /actions/1/action_name: \"b\"",
    ];
    assert_eq!(all_shown(&texts(main, "", "")), expected);
}

#[test]
fn an_action_in_a_file_beside_is_judged_there() {
    let main = r#"{"type": "loop", "properties": {"mode": "react", "objective": "x",
"tools": [{"type": "action", "name": "a"}], "timeout_ms": 1000}}"#;
    let one = r#"{"action_name": "a", "kind": "http", "description": "d", "url": "https://10.0.0.7:81/x", "http_method": "PATCH",
"on_uncertain": "retry", "timeout_ms": 2000, "headers": {"x~y": "\u0041 orgconfig:key_2"}}"#;
    let expected = |at: &str, line: u32| {
        vec![
            format!("L109 actions/a.json:{line}:74 {at}/url: 10.0.0.7:81"),
            format!("L112 actions/a.json:{}:17 {at}/on_uncertain: \"retry\"", line + 1),
            format!("L093 actions/a.json:{}:40 {at}/timeout_ms: 2000", line + 1),
            format!("L041 actions/a.json:{}:83 {at}/headers/x~0y: key_2", line + 1),
        ]
    };
    assert_eq!(all_shown(&texts(main, "", one)), expected("", 1));
    let other =
        r#"{"action_name": "b", "kind": "http", "description": "d", "url": "http://10.0.0.7/", "http_method": "GET"}"#;
    assert_eq!(all_shown(&texts(main, "", &format!("[{other},\n{one}]"))), expected("/1", 2));
}

#[test]
fn all_faults_of_a_project_file_are_reported_in_its_order() {
    let project = r#"{"model": "mian", "models": {"main": {"provider": "openai", "base_url": "http://m.example/v1", "api_key": "orgconfig:key"}},
"orgconfig": {"key": "env:KEY", "other": "env:"}, "allow": {"hosts": ["*", "api.example.com:x", "a b", "*.ok.example:443"]},
"store": "sqlite://runs.db"}"#;
    let main = r#"{"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": ["__complete__"]}}"#;
    let found = all_shown(&texts(main, project, ""));
    let expected = [
        "L036 loop.json:1:78 /properties/tools/0: \"__complete__\"",
        "L043 loopctl.json:1:11 /model: \"mian\"",
        "L118 loopctl.json:1:74 /models/main/base_url: http://",
        "L117 loopctl.json:1:107 /models/main/api_key: \"orgconfig:key\"",
        "L116 loopctl.json:2:42 /orgconfig/other: \"env:\"",
        "L115 loopctl.json:2:71 /allow/hosts/0: \"*\"",
        "L115 loopctl.json:2:76 /allow/hosts/1: \"api.example.com:x\"",
        "L115 loopctl.json:2:97 /allow/hosts/2: \"a b\"",
        "L081 loopctl.json:3:10 /store: \"sqlite://runs.db\"",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_template_host_must_be_able_to_be_in_the_list() {
    let fires = |url: &str, hosts: &str| {
        let main = format!(
            r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": ["a"]}},
            "actions": [{{"action_name": "a", "kind": "http", "description": "d", "url": "{url}", "http_method": "GET"}}]}}"#
        );
        let project = format!(r#"{{"allow": {{"hosts": [{hosts}]}}}}"#);
        all_diagnostics(&texts(&main, &project, "")).iter().any(|fault| fault.code == "L108")
    };
    assert!(!fires("https://{{t}}.example.com/", r#""*.example.com""#));
    assert!(!fires("https://{{t}}.example.com/", r#""eu.example.com""#));
    assert!(!fires("https://{{t}}.eu.example.com:8443/", r#""*.example.com""#));
    assert!(!fires("https://{{t}}/", r#""eu.example.com""#));
    assert!(fires("https://{{t}}.exmaple.com/", r#""*.example.com", "example.org""#));
    assert!(fires("https://{{t}}.example.com/", ""));
    assert!(fires("https://eu.example.com:8443/", r#""eu.example.com:443""#));
    assert!(!fires("https://EU.Example.com./", r#""eu.example.com:443""#));
}

#[test]
fn a_host_with_a_fixed_ending_is_not_reported_as_any_host() {
    let fires = |url: &str| {
        let main = format!(
            r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": ["a"]}},
            "actions": [{{"action_name": "a", "kind": "http", "description": "d", "url": "{url}", "http_method": "GET"}}]}}"#
        );
        all_diagnostics(&texts(&main, "", "")).iter().any(|fault| fault.code == "L107")
    };
    assert!(fires("https://{{h}}/") && fires("https://{{h}}:8443/") && fires("https://{{input.h}}/"));
    assert!(
        fires("https://{{h}}example.com/") && fires("https://{{h}}.com/") && fires("https://a.{{h}}/x.example.com")
    );
    assert!(!fires("https://{{h}}.example.com/") && !fires("https://api.example.com/{{h}}"));
}

#[test]
fn a_value_after_the_script_of_a_shell_is_only_a_value() {
    let found = |args: &str| {
        let main = format!(
            r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": [{{"type": "action", "name": "a"}}]}},
"actions": [{{"action_name": "a", "kind": "command", "description": "d", "program": "bash", "args": {args}}}]}}"#
        );
        let diagnostics = all_diagnostics(&texts(&main, r#"{"allow": {"commands": ["bash"]}}"#, ""));
        diagnostics.into_iter().map(|fault| (fault.code, fault.is_error())).collect::<Vec<_>>()
    };
    assert_eq!(found(r#"["-ec", "wc \"$1\"", "bash", "{{x}}"]"#), [("L111", false)]);
    assert_eq!(found(r#"["-c", "wc {{input.x}}"]"#), [("L111", false)]);
    assert_eq!(found(r#"["-c", "wc {{x}}"]"#), [("L111", true)]);
    assert_eq!(found(r#"["script.sh", "{{x}}"]"#), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]

    #[test]
    fn no_change_of_a_case_makes_a_rule_panic(at in 0..2000usize, length in 0..40usize, with in "[\\[\\]{}:,\"a0 -]{0,6}") {
        for code in judged() {
            let whole = case(code, "fires");
            let change = |text: &str| {
                let mut text = text.to_owned();
                let at = text.floor_char_boundary(at % text.len());
                let end = text.ceil_char_boundary((at + length).min(text.len()));
                text.replace_range(at..end, &with);
                text
            };
            let project = whole.project.as_ref().map_or_else(String::new, |project| change(&project.text));
            all_diagnostics(&texts(&change(&whole.main.text), &project, ""));
        }
    }
}
