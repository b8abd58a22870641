//! Documents that use one construct of the language very often: checking one takes work in proportion to its
//! size, reports a bounded number of faults, or reports that the document is too large (L009).

mod constructs;

use crate::common::{is_nightly, is_sampled};
use constructs::{all, judged};
use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::MAX_REPORTED;

fn texts(name: &str, n: usize) -> Texts {
    let (_, make) = all().find(|(known, _)| *known == name).expect("a construct");
    make(n)
}

/// One of four parts of the constructs, which are judged beside each other.
fn none_makes_judging_endless(part: usize) {
    for (_, (name, make)) in all().skip(part).step_by(4).enumerate().filter(|(nth, _)| is_sampled(*nth)) {
        // At night, what of these was quadratic took minutes each in a build without optimisation. Only schemas are
        // compiled by a library, at its own pace.
        let of_night = if name.starts_with("input_") { 1_000 } else { 10_000 };
        let n = if is_nightly() { of_night } else { of_night.min(2_000) / 10 };
        let found = judged(&make(n));
        let (errors, warnings) = (found.iter().filter(|fault| fault.is_error()).count(), found.len());
        assert!(errors <= 2 * MAX_REPORTED && warnings - errors <= 2 * MAX_REPORTED, "{name}: {errors} of {warnings}");
    }
}

#[test]
fn no_construct_of_the_first_part_makes_judging_endless() {
    none_makes_judging_endless(0);
}

#[test]
fn no_construct_of_the_second_part_makes_judging_endless() {
    none_makes_judging_endless(1);
}

#[test]
fn no_construct_of_the_third_part_makes_judging_endless() {
    none_makes_judging_endless(2);
}

#[test]
fn no_construct_of_the_fourth_part_makes_judging_endless() {
    none_makes_judging_endless(3);
}

#[test]
#[ignore = "nightly: as much work as a document may take"]
fn a_large_action_that_a_thousand_steps_use_is_too_much() {
    let few = compile(&texts("steps_with_large_tool", 40));
    assert!(few.diagnostics.iter().all(|fault| fault.code != "L009"), "{:?}", few.diagnostics);
    let many = judged(&texts("steps_with_large_tool", 900));
    assert_eq!(many.iter().filter(|fault| fault.code == "L009").count(), 1, "{many:?}");
}

#[test]
fn the_work_for_a_document_grows_with_its_size() {
    for name in ["tools", "steps", "headers", "names_of_query", "body_paths"] {
        let spent = |n: usize| compile(&texts(name, n)).effort.spent();
        let (one, eight) = (spent(100), spent(800));
        assert!(one > 0 && eight <= 9 * one, "{name}: {one}, then {eight}");
    }
}

#[test]
fn errors_are_found_behind_thousands_of_warnings() {
    // 100 warnings of optional inputs in each of 12 actions, and an error in each.
    let args: Vec<String> = (0..100).map(|at| format!("{{{{q{at}}}}}")).collect();
    let optional = (0..100).map(|at| (format!("q{at}"), serde_json::json!({}))).collect::<serde_json::Map<_, _>>();
    let names: Vec<String> = (0..12).map(|at| format!("tool_{at}")).collect();
    let action = |name: &String| {
        serde_json::json!({ "action_name": name, "kind": "command", "description": "Counts.", "program": "wc",
            "args": args, "parameters": { "type": "object", "properties": optional } })
    };
    let tool = |name: &String| serde_json::json!({ "type": "action", "name": name });
    let document = serde_json::json!({
        "type": "loop",
        "actions": names.iter().map(action).collect::<Vec<_>>(),
        "properties": { "mode": "react", "objective": "Go.", "tools": names.iter().map(tool).collect::<Vec<_>>() }
    });
    let found = judged(&Texts::new(loopctl::diagnostic::Source::new("a.json", document.to_string())));
    assert_eq!(found.iter().filter(|fault| !fault.is_error()).count(), MAX_REPORTED);
    // The program is not among those that the project allows.
    assert!(found.iter().any(|fault| fault.is_error()), "{:?}", found.first());
}

#[test]
fn keys_that_are_longer_than_all_that_is_named_by_them_are_too_much() {
    for (length, refused) in [(1_000, false), (9_000, true)] {
        let found = judged(&texts("long_path", length));
        assert_eq!(found.iter().any(|fault| fault.code == "L009"), refused, "{length}: {:?}", found.first());
    }
}
