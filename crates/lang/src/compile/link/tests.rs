//! Loops that loops call: found, shared, bounded.

use serde_json::json;

use super::*;
use crate::compile::compile;
use crate::program::ToolKind;

fn document(name: &str, calls: &[&str], more: &Value) -> String {
    let tools: Vec<Value> = calls.iter().map(|name| json!({ "type": "loop", "name": name })).collect();
    let mut document = json!({ "type": "loop", "name": name, "description": "Does it.",
        "properties": { "mode": "react", "objective": "x", "tools": tools } });
    for (field, value) in more.as_object().unwrap() {
        document[field] = value.clone();
    }
    document.to_string()
}

fn texts(main: &[&str], loops: &[(&str, &[&str])]) -> Texts {
    let mut texts = Texts::new(Source::new("loop.json", document("main", main, &json!({}))));
    for (name, calls) in loops {
        texts.loops.push(Source::new(format!("loops/{name}.json"), document(name, calls, &json!({}))));
    }
    texts
}

fn codes(texts: &Texts) -> Vec<(&'static str, String)> {
    let errors = compile(texts).diagnostics.into_iter().filter(Diagnostic::is_error);
    errors.map(|fault| (fault.code, fault.place.file.to_string())).collect()
}

fn called<'p>(program: &'p Program, name: &str) -> &'p Arc<Program> {
    match &program.tool(name).unwrap().kind {
        ToolKind::Loop(called) => called,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loop_that_two_others_call_is_compiled_once_and_shared() {
    let compiled = compile(&texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"]), ("c", &[])]));
    let program = compiled.program.unwrap();
    assert!(Arc::ptr_eq(called(called(&program, "a"), "c"), called(called(&program, "b"), "c")));
    assert_eq!((compiled.called.len(), program.levels), (3, 3));
    let names: Vec<&str> = program.sources.iter().map(|source| &*source.name).collect();
    assert_eq!(names, ["loop.json", "loops/a.json", "loops/c.json", "loops/b.json"]);
}

#[test]
fn the_texts_that_a_journal_keeps_make_the_same_program() {
    let program = compile(&texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"]), ("c", &[])])).program.unwrap();
    let mut kept = program.sources.iter().cloned();
    let mut again = Texts::new(kept.next().unwrap());
    again.extra_actions = kept.collect();
    let again = compile(&again).program.unwrap();
    let names = |program: &Program| program.sources.iter().map(|source| source.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&program));
    assert!(called(called(&again, "a"), "c").tools().iter().any(|tool| tool.name == "__complete__"));
}

#[test]
fn a_fault_of_a_called_loop_is_reported_once_in_its_own_file() {
    let mut texts = texts(&["a", "b"], &[("a", &["c"]), ("b", &["c"])]);
    let broken = document("c", &[], &json!({ "inputs": {} }));
    texts.loops.push(Source::new("loops/c.json", broken));
    assert_eq!(codes(&texts), [(codes::UNKNOWN_FIELD, "loops/c.json".to_owned())]);
}

#[test]
fn a_circle_is_reported_the_same_way_from_wherever_one_looks() {
    let loops: &[(&str, &[&str])] = &[("a", &["b"]), ("b", &["c"]), ("c", &["a"])];
    let reported: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let mut texts = texts(&[], loops);
            texts.main =
                texts.loops.iter().find(|source| source.name.ends_with(&format!("{name}.json"))).unwrap().clone();
            let found = compile(&texts).diagnostics;
            assert_eq!(found.len(), 1, "{found:#?}");
            (found[0].message.clone(), found[0].place.clone(), found[0].related.len())
        })
        .collect();
    assert!(reported.windows(2).all(|pair| pair[0] == pair[1]), "{reported:#?}");
    assert!(reported[0].0.ends_with("a -> b -> c -> a") && reported[0].2 == 2, "{reported:#?}");
}

#[test]
fn many_ways_through_the_same_loops_are_compiled_once_each() {
    let names: Vec<String> = (0..7).flat_map(|level| (0..20).map(move |at| format!("l{level}_{at}"))).collect();
    let level = |at: usize| names.iter().skip(at * 20).take(20).map(String::as_str).collect::<Vec<_>>();
    let mut texts = texts(&level(0), &[]);
    for (at, name) in names.iter().enumerate() {
        texts.loops.push(Source::new(format!("loops/{name}.json"), document(name, &level(at / 20 + 1), &json!({}))));
    }
    let compiled = compile(&texts);
    assert_eq!((compiled.called.len(), compiled.program.unwrap().levels), (140, 8));
}

#[test]
fn a_chain_without_end_is_cut_at_its_bound() {
    let names: Vec<String> = (0..3_000).map(|at| format!("l{at}")).collect();
    let mut texts = texts(&["l0"], &[]);
    for (at, name) in names.iter().enumerate() {
        let next: Vec<&str> = names.get(at + 1).map(String::as_str).into_iter().collect();
        texts.loops.push(Source::new(format!("loops/{name}.json"), document(name, &next, &json!({}))));
    }
    assert_eq!(codes(&texts), [(codes::LOOPS_TOO_DEEP, "loops/l6.json".to_owned())]);
}

#[test]
fn what_a_loop_takes_is_its_input_or_what_it_names_of_it() {
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    let objective =
        json!({ "mode": "react", "objective": "{{input.a}}{{#if input.b}}{{input.b}}{{/if}}", "tools": [] });
    for (more, expected) in [
        (json!({ "input": input }), input),
        (
            json!({ "properties": objective }),
            json!({ "type": "object", "properties": { "a": {}, "b": {} }, "required": ["a"], "additionalProperties": false }),
        ),
    ] {
        let mut texts = texts(&["c"], &[]);
        texts.loops.push(Source::new("loops/c.json", document("c", &[], &more)));
        let program = compile(&texts).program.unwrap();
        assert_eq!(program.tool("c").unwrap().parameters.source(), &expected);
    }
    let mut texts = texts(&["c"], &[]);
    texts.loops.push(Source::new("loops/c.json", document("c", &[], &json!({ "input": { "type": "string" } }))));
    assert_eq!(codes(&texts), [(codes::NO_OBJECT, "loops/c.json".to_owned())]);
}

#[test]
fn a_loop_without_a_description_is_a_warning_where_it_is_called() {
    let mut texts = texts(&["c"], &[]);
    texts.loops.push(Source::new("loops/c.json", document("c", &[], &json!({ "description": " " }))));
    let reported = compile(&texts).diagnostics;
    let here = |fault: &&Diagnostic| fault.code == codes::NO_DESCRIPTION && &*fault.place.file == "loop.json";
    assert_eq!(reported.iter().filter(here).count(), 1, "{reported:?}");
}
