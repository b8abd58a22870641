//! The faults of steps, where, and how often.

use crate::compile::{Compiled, Texts, compile};
use crate::diagnostic::{Diagnostic, Source, codes};

const ACTIONS: &str = r#"[{"action_name": "lookup", "kind": "http", "description": "Looks up.", "url": "https://a.example.com/{{id}}",
    "http_method": "GET"}, {"action_name": "keyed", "kind": "llm", "description": "Asks.", "template": "{{q}}", "outputKey": "asked"},
    {"action_name": "passing", "kind": "llm", "description": "Asks.", "template": "{{q}}", "passthrough": true}]"#;

fn reported(text: &str) -> Vec<Diagnostic> {
    let mut texts = Texts::new(Source::new("w.json", text));
    texts.actions.push(Source::new("actions/a.json", ACTIONS));
    compile(&texts).diagnostics
}

/// The codes and paths of the faults of a workflow of these steps.
fn of_steps(steps: &str) -> Vec<String> {
    let reported = reported(&format!(r#"{{"name": "w", "definition": {{"actions": [{steps}]}}}}"#));
    reported
        .iter()
        .map(|fault| format!("{} {}", fault.code, fault.path.trim_start_matches("/definition/actions")))
        .collect()
}

#[test]
fn a_path_is_known_from_the_step_on_that_writes_it() {
    let reads = r#"{"type": "lookup", "properties": {"id": "@claim.id"}}"#;
    let writes = r#"{"type": "lookup", "properties": {"id": "1"}, "outputKey": "claim"}"#;
    assert_eq!(of_steps(&format!("{writes}, {reads}")), [""; 0]);
    assert_eq!(of_steps(&format!("{reads}, {writes}")), ["L054 /0/properties/id"]);
}

#[test]
fn what_each_kind_of_step_writes_is_known_after_it() {
    for (step, path) in [
        (r#"{"type": "keyed", "properties": {"q": "x"}}"#, "asked"),
        (r#"{"type": "matcher", "properties": {"left": [], "right": []}}"#, "unmatchedLeft.length"),
        (r#"{"type": "matcher", "properties": {"outputMatched": "pairs"}}"#, "pairs"),
        (r#"{"type": "PbotApproval", "properties": {"comment": "?"}}"#, "__approved"),
        (r#"{"type": "PbotForm", "properties": {"expected_keys": ["amount"]}}"#, "amount"),
        (
            r#"{"type": "loop", "properties": {"mode": "react", "objective": "x", "tools": [{"type": "action", "name": "lookup"}],
            "result_key": "answer"}}"#,
            "answer.decision",
        ),
        (
            r#"{"type": "loop", "properties": {"mode": "foreach", "items_path": "@input.all", "item_variable_name": "one",
            "actions_to_execute": [{"type": "lookup", "properties": {"id": "@one.id"}, "outputKey": "inner"}],
            "collect_results": true, "result_key": "every"}}"#,
            "every",
        ),
    ] {
        let reads = format!(r#"{{"type": "lookup", "properties": {{"id": "@{path}"}}}}"#);
        assert_eq!(of_steps(&format!("{step}, {reads}")), [""; 0], "{path}");
        assert_eq!(of_steps(&reads), ["L054 /0/properties/id"], "{path}");
    }
}

#[test]
fn an_item_is_known_inside_its_loop_and_nowhere_else() {
    let inside = |path: &str| {
        format!(
            r#"{{"type": "loop", "properties": {{"mode": "foreach", "items_path": "@input.all", "item_variable_name": "one",
            "actions_to_execute": [{{"type": "lookup", "properties": {{"id": "{path}"}}}}]}}}}"#
        )
    };
    assert_eq!(of_steps(&inside("@one.id")), [""; 0]);
    assert_eq!(of_steps(&inside("@item.id")), [""; 0]);
    assert_eq!(of_steps(&inside("{{one.id}}")), [""; 0]);
    let after = format!(r#"{}, {{"type": "lookup", "properties": {{"id": "@one.id"}}}}"#, inside("@one.id"));
    assert_eq!(of_steps(&after), ["L054 /1/properties/id"]);
}

#[test]
fn what_an_action_writes_without_a_key_has_its_name() {
    let reads = r#"{"type": "lookup", "properties": {"id": "@whatever.id"}}"#;
    let reads_name = r#"{"type": "lookup", "properties": {"id": "@passing.id"}}"#;
    assert_eq!(of_steps(&format!(r#"{{"type": "passing", "properties": {{}}}}, {reads_name}"#)), [""; 0]);
    let other = of_steps(&format!(r#"{{"type": "passing", "properties": {{}}}}, {reads}"#));
    assert_eq!(other, ["L054 /1/properties/id"]);
    assert_eq!(of_steps(&format!(r#"{{"type": "gmail_send", "properties": {{}}}}, {reads}"#)), ["L030 /0/type"]);
    // Where the step itself names the key, that is all that it writes.
    let keyed = format!(r#"{{"type": "passing", "properties": {{}}, "outputKey": "raw"}}, {reads}"#);
    assert_eq!(of_steps(&keyed), ["L054 /1/properties/id"]);
}

#[test]
fn a_step_in_the_place_of_another_does_not_see_what_that_one_writes_and_later_ones_see_both() {
    let both = r#"{"type": "lookup", "properties": {}, "outputKey": "a",
        "onFalse": {"type": "lookup", "properties": {"id": "@a.id"}, "outputKey": "b"}},
        {"type": "lookup", "properties": {"id": "@a.id", "x": "@b.id"}}"#;
    assert_eq!(of_steps(both), ["L054 /0/onFalse/properties/id"]);
}

#[test]
fn a_loop_among_the_steps_is_judged_as_if_it_stood_alone() {
    let properties = r#"{"mode": "react", "objective": "{{nme}} {{{x}", "tools": [{"type": "action", "name": "lokup"},
        {"type": "action", "name": "keyed"}, {"type": "action", "name": "keyed"}], "max_iterations": 0, "dialect": "tags",
        "on_stuck": {"action": "stop"}, "answer_schema": {"type": "objct"}}"#;
    let alone = reported(&format!(r#"{{"type": "loop", "properties": {properties}}}"#));
    let alone: Vec<String> = alone.iter().map(|fault| format!("{} {}", fault.code, fault.path)).collect();
    assert!(alone.len() >= 6, "{alone:?}");
    let nested = of_steps(&format!(r#"{{"type": "loop", "properties": {properties}}}"#));
    let expected: Vec<String> = alone.iter().map(|fault| fault.replace(" /", " /0/")).collect();
    assert_eq!(nested, expected);
    let deep = of_steps(&format!(
        r#"{{"type": "lookup", "properties": {{}}, "onFalse": {{"type": "loop", "properties": {{"mode": "foreach",
        "items_path": "@input.x", "item_variable_name": "one", "actions_to_execute": [{{"type": "loop", "properties": {properties}}}]}}}}}}"#
    ));
    let at = " /0/onFalse/properties/actions_to_execute/0/";
    let expected: Vec<String> = alone.iter().map(|fault| fault.replace(" /", at)).collect();
    assert_eq!(deep, expected);
}

#[test]
fn a_step_on_false_of_a_loop_that_stands_alone_is_judged_too_and_a_sound_one_does_not_keep_it_from_running() {
    let with = |step: &str| {
        let mut texts = Texts::new(Source::new(
            "l.json",
            format!(
                r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": [{{"type": "action", "name": "lookup"}}]}},
                "onFalse": {step}}}"#
            ),
        ));
        texts.actions.push(Source::new("actions/a.json", ACTIONS));
        compile(&texts)
    };
    let sound = with(r#"{"type": "lookup", "properties": {"id": "@input.id"}}"#);
    assert!(sound.program.is_some() && sound.diagnostics.is_empty(), "{:?}", sound.diagnostics);
    let wrong = with(r#"{"type": "lokup", "properties": {}}"#);
    assert!(wrong.program.is_none() && wrong.diagnostics[0].code == codes::UNKNOWN_ACTION);
}

#[test]
fn conditions_are_reported_by_their_operator() {
    let of = |condition: &str| {
        of_steps(&format!(r#"{{"type": "lookup", "properties": {{}}, "filter": {{"condition": {condition}}}}}"#))
    };
    let at = "/0/filter/condition";
    for sound in [
        r#"{"equal": ["@input.a", 1]}"#,
        r#"{"eq": [{"length": "@input.a"}, 1]}"#,
        r#"{"hasKey": "input.a"}"#,
        r#"{"in": ["@input.a", ["x", "y"]]}"#,
        r#"{"and": [{"not": {"matches": ["@input.a", "^x"]}}, {"or": [{"lessThan": [1, "@input.b"]}]}]}"#,
    ] {
        assert_eq!(of(sound), [""; 0], "{sound}");
    }
    assert_eq!(of(r#"{"equals": ["@input.a", 1]}"#), [format!("L010 {at}/equals")]);
    assert_eq!(of(r#"{"equal": ["@input.a"]}"#), [format!("L015 {at}/equal")]);
    assert_eq!(of(r#"{"equal": "@input.a"}"#), [format!("L013 {at}/equal")]);
    assert_eq!(of("{}"), [format!("L011 {at}")]);
    assert_eq!(of(r#"{"equal": [1, 1], "in": [1, []]}"#), [format!("L010 {at}/in")]);
    assert_eq!(
        of(r#"{"not": {"equl": [1, "@nope"]}}"#),
        [format!("L010 {at}/not/equl"), format!("L054 {at}/not/equal/1")]
    );
    assert_eq!(of(r#""@input.a""#), [format!("L013 {at}")]);
}

#[test]
fn a_document_of_very_many_steps_is_cut_off_with_a_word() {
    let step = r#"{"type": "lookup", "properties": {"id": "@nope.id"}, "outputKey": "k"}"#;
    let reported = of_steps(&vec![step; 1_500].join(","));
    assert_eq!(reported.iter().filter(|fault| fault.starts_with(codes::TOO_MUCH)).count(), 1);
}

/// A loop of this name that calls others.
fn calling(name: &str, calls: &[&str]) -> String {
    let tools: Vec<String> = calls.iter().map(|name| format!(r#"{{"type": "loop", "name": "{name}"}}"#)).collect();
    let properties = format!(r#"{{"mode": "react", "objective": "x", "tools": [{}]}}"#, tools.join(", "));
    format!(r#"{{"type": "loop", "name": "{name}", "description": "Does it.", "properties": {properties}}}"#)
}

/// The step that calls loops.
fn step_calling(calls: &[&str]) -> String {
    calling("", calls).replace(r#""name": "", "description": "Does it.", "#, "")
}

fn with_loops(main: &str, loops: &[(&str, &[&str])]) -> Compiled {
    let mut texts = Texts::new(Source::new("w.json", main));
    for (name, calls) in loops {
        texts.loops.push(Source::new(format!("loops/{name}.json"), calling(name, calls)));
    }
    compile(&texts)
}

fn errors_but_not_yet(compiled: &Compiled) -> Vec<String> {
    let others = compiled.diagnostics.iter().filter(|fault| fault.is_error());
    others.map(|fault| format!("{} {}{}", fault.code, fault.place.file, fault.path)).collect()
}

#[test]
fn a_loop_among_the_steps_finds_the_loops_that_it_calls() {
    let workflow =
        |steps: &[String]| format!(r#"{{"name": "w", "definition": {{"actions": [{}]}}}}"#, steps.join(", "));
    let twice = workflow(&[step_calling(&["a"]), step_calling(&["a", "b"])]);
    let sound = with_loops(&twice, &[("a", &["b"]), ("b", &[])]);
    assert_eq!(errors_but_not_yet(&sound), [""; 0]);
    let levels = sound.steps.loops.iter().map(|inner| inner.program.as_ref().map(|program| program.levels));
    assert_eq!((levels.collect::<Vec<_>>(), sound.called.len()), (vec![Some(3), Some(3)], 2));
    let missing = with_loops(&twice, &[("a", &[])]);
    assert_eq!(errors_but_not_yet(&missing), ["L039 w.json/definition/actions/1/properties/tools/1/name"]);
    assert_eq!(missing.steps.loops.iter().filter(|inner| inner.program.is_some()).count(), 1);
    let round = with_loops(&twice, &[("a", &["b"]), ("b", &["a"])]);
    assert_eq!(errors_but_not_yet(&round), ["L048 loops/a.json/properties/tools/0/name"]);
    let next = ["l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8"];
    let chain: Vec<(&str, &[&str])> =
        next.iter().enumerate().map(|(at, name)| (*name, &next[at + 1..][..1.min(7 - at)])).collect();
    let deep = with_loops(&workflow(&[step_calling(&["l1"])]), &chain);
    assert_eq!(errors_but_not_yet(&deep), ["L049 loops/l7.json/properties/tools/0/name"]);
    assert!(deep.diagnostics.iter().any(|fault| fault.message.contains(": w -> l1 -> l2")), "{:?}", deep.diagnostics);
}

#[test]
fn a_loop_whose_steps_call_it_is_a_circle() {
    let step = step_calling(&["w"]);
    let foreach = format!(
        r#"{{"type": "loop", "name": "w", "properties": {{"mode": "foreach", "items_path": "@input.x", "item_variable_name": "one",
        "actions_to_execute": [{step}]}}}}"#
    );
    let at = "/properties/actions_to_execute/0/properties/tools/0/name";
    assert_eq!(errors_but_not_yet(&with_loops(&foreach, &[])), [format!("L048 w.json{at}")]);
    let own = calling("w", &["a"]).replacen(r#""name""#, &format!(r#""onFalse": {step}, "name""#), 1);
    let at = "/onFalse/properties/tools/0/name";
    assert_eq!(errors_but_not_yet(&with_loops(&own, &[("a", &[])])), [format!("L048 w.json{at}")]);
}
