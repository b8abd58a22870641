//! Tool names: conversion in both directions, without collisions.

use proptest::prelude::*;

use super::{ToolNames, is_taken};

#[test]
fn a_name_that_providers_take_stays() {
    let called = ToolNames::of(["look_up", "act-2", "__complete__"].into_iter());
    assert_eq!(called.changed().count(), 0);
    assert_eq!(called.out("look_up"), "look_up");
    assert_eq!(called.back("look_up"), "look_up");
}

#[test]
fn names_that_would_become_one_do_not() {
    let called = ToolNames::of(["crm/find", "crm.find", "crm_find", "поиск", "отчёт"].into_iter());
    let names: Vec<_> = called.changed().collect();
    assert_eq!(
        names,
        [("crm/find", "crm_find_2"), ("crm.find", "crm_find_3"), ("поиск", "_____"), ("отчёт", "______2")]
    );
    assert_eq!(called.back("crm_find"), "crm_find");
    assert_eq!(called.back("crm_find_3"), "crm.find");
}

#[test]
fn a_name_begins_as_all_providers_take_it() {
    let long = "1".repeat(64);
    let called = ToolNames::of(["21st_magic", "-x", "_21st_magic", "x1", &long].into_iter());
    let names: Vec<_> = called.changed().collect();
    let of_long = format!("_{}", "1".repeat(63));
    assert_eq!(names, [("21st_magic", "_21st_magic_2"), ("-x", "_-x"), (long.as_str(), of_long.as_str())]);
    assert_eq!(called.sendable("1 made up"), "_1_made_up");
}

#[test]
fn what_a_model_made_up_can_be_reported_to_a_provider() {
    let called = ToolNames::of(["a.b"].into_iter());
    assert_eq!(called.sendable("a.b"), "a_b");
    assert_eq!(called.sendable("no such tool"), "no_such_tool");
    assert_eq!(called.sendable(""), "_");
}

proptest! {
    #[test]
    fn every_tool_is_found_again(names in prop::collection::hash_set("[a-c./_é0-]{1,70}|[a-z0_]{1,4}", 1..24)) {
        let names: Vec<String> = names.into_iter().collect();
        let called = ToolNames::of(names.iter().map(String::as_str));
        let mut given: Vec<&str> = names.iter().map(|name| called.out(name)).collect();
        for (name, out) in names.iter().zip(&given) {
            prop_assert!(is_taken(out), "{out}");
            prop_assert_eq!(called.back(out), name);
        }
        given.sort_unstable();
        given.dedup();
        prop_assert_eq!(given.len(), names.len());
    }
}
