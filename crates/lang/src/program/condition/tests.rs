//! What conditions hold for, and what can't be evaluated.

use serde_json::{Value, json};

use super::*;
use crate::program::json_texts::JsonRule;

fn compiled(condition: Value) -> CompiledCondition {
    CompiledCondition::compile(&serde_json::from_value(condition).unwrap()).unwrap()
}

fn scope(input: &Value) -> Scope<'_> {
    Scope { now: "2026-11-30T12:00:00.000Z", ..Scope::of_input(input, JsonRule::Plain.into()) }
}

fn evaluate(condition: Value, input: &Value) -> Result<bool, String> {
    compiled(condition).evaluate(&scope(input), OrderRules::PRESENT).map_err(|fault| fault.0)
}

#[test]
fn each_operator_holds_for_what_it_says() {
    let input =
        json!({ "amount": 500, "exact": "500.00", "name": "INV-7", "tags": ["a", 1.0], "note": null, "to": {"a": 1} });
    for (condition, holds) in [
        (json!({ "equal": ["@input.amount", 500.0] }), true),
        (json!({ "eq": ["@input.name", "INV-7"] }), true),
        (json!({ "equal": ["@input.amount", "500"] }), false),
        (json!({ "equal": ["@input.note", null] }), true),
        (json!({ "notEqual": ["@input.name", "INV-7"] }), false),
        (json!({ "greaterThan": ["@input.amount", 500] }), false),
        (json!({ "greaterOrEqual": ["@input.exact", 500] }), true),
        (json!({ "lessThan": ["499.99999999999999999999", "@input.amount"] }), true),
        (json!({ "lessOrEqual": ["@input.amount", 499] }), false),
        (json!({ "greaterThan": [{ "length": "@input.tags" }, 1] }), true),
        (json!({ "equal": [{ "length": "@input.name" }, 5] }), true),
        (json!({ "hasKey": "@input.amount" }), true),
        (json!({ "hasKey": "input.to.b" }), false),
        (json!({ "in": [1, "@input.tags"] }), true),
        (json!({ "in": ["@input.name", ["INV-8", "@input.name"]] }), true),
        (json!({ "matches": ["@input.name", "^INV-\\d+$"] }), true),
        (json!({ "matches": ["@input.name", "V"] }), true),
        (json!({ "not": { "equal": ["@input.amount", 1] } }), true),
        (json!({ "and": [] }), true),
        (json!({ "or": [] }), false),
        (json!({ "or": [{ "equal": [1, 2] }, { "equal": [2, 2] }] }), true),
        // What follows the deciding part is not evaluated.
        (json!({ "and": [{ "hasKey": "@input.x" }, { "greaterThan": ["@input.x", 1] }] }), false),
    ] {
        assert_eq!(evaluate(condition.clone(), &input), Ok(holds), "{condition}");
    }
}

#[test]
fn what_is_missing_or_of_another_type_is_a_fault_and_never_false() {
    let input = json!({ "amount": "n/a", "list": [1], "flag": true, "huge": 1 });
    for (condition, why) in [
        (
            json!({ "greaterThan": ["@input.amount", 500] }),
            "`greaterThan` compares two numbers or two times: `@input.amount` is the text \"n/a\", and `500` is a number",
        ),
        (
            json!({ "lessThan": ["@input.flag", 500] }),
            "`lessThan` compares two numbers or two times: `@input.flag` is true or false, and `500` is a number",
        ),
        (json!({ "greaterThan": ["@input.amuont", 500] }), "`@input.amuont` is missing"),
        (json!({ "equal": ["@input.kind", "x"] }), "`@input.kind` is missing"),
        (json!({ "notEqual": ["@input.kind", "x"] }), "`@input.kind` is missing"),
        (json!({ "in": ["@input.kind", ["x"]] }), "`@input.kind` is missing"),
        (json!({ "in": [1, "@input.amount"] }), "`@input.amount` is a text, and `in` looks into a list"),
        (json!({ "matches": ["@input.list", "x"] }), "`@input.list` is a list, and `matches` looks into a text"),
        (json!({ "equal": [{ "length": "@input.flag" }, 1] }), "is true or false, and has no length"),
        (json!({ "not": { "greaterThan": ["@input.kind", 1] } }), "is missing"),
        (json!({ "or": [{ "equal": ["@input.kind", 1] }, { "equal": [1, 1] }] }), "is missing"),
    ] {
        let fault = evaluate(condition.clone(), &input).unwrap_err();
        assert!(fault.contains(why), "{condition}: {fault}");
    }
}

#[test]
fn what_can_not_be_compiled_is_reported_at_its_place() {
    let faults = |condition: Value| {
        let read: Condition = serde_json::from_value(condition).unwrap();
        let faults = CompiledCondition::compile(&read).unwrap_err();
        faults.into_iter().map(|fault| format!("{} {}", fault.code, fault.pointer)).collect::<Vec<_>>()
    };
    assert_eq!(faults(json!({ "equal": [{ "length": "x y" }, 1] })), ["L141 /equal/0/length"]);
    assert_eq!(faults(json!({ "and": [{ "matches": ["@input.a", "("] }] })), ["L141 /and/0/matches/1"]);
    assert_eq!(faults(json!({ "matches": ["@input.a", "@input.b"] })), ["L141 /matches/1"]);
    assert_eq!(faults(json!({ "not": { "hasKey": "a b" } })), ["L141 /not/hasKey"]);
    let part = json!({ "equal": [1, 1] });
    let parts = |count: usize| json!({ "and": vec![part.clone(); count] });
    assert_eq!(faults(parts(MAX_OPERATORS)), ["L009 "]);
    compiled(parts(MAX_OPERATORS - 1));
}

fn judged(condition: &Value, input: &Value, rules: OrderRules<'_>) -> Result<bool, String> {
    let scope = Scope { now: "2026-11-30T12:00:00.000Z", ..Scope::of_input(input, JsonRule::Plain.into()) };
    compiled(condition.clone()).evaluate(&scope, rules).map_err(|fault| fault.0)
}

#[test]
fn two_times_have_an_order_and_a_date_alone_is_its_midnight_in_the_zone() {
    let zone = crate::program::timetable::zone("Europe/Berlin").unwrap();
    let berlin = OrderRules { zone: Some(&zone), ..OrderRules::PRESENT };
    let input = json!({ "due": "2026-10-30", "late": "2026-10-31T12:00:00+01:00", "first": "2026-03-28", "pin": "x9" });
    for (condition, in_utc, in_berlin) in [
        (json!({ "lessThan": ["@input.due", "@now"] }), true, true),
        (json!({ "lessThan": ["@input.due", { "now": "-30d" }] }), true, true),
        (json!({ "greaterOrEqual": ["@input.late", { "now": "-30d" }] }), false, false),
        (json!({ "greaterThan": [{ "now": "0s" }, "@input.late"] }), true, true),
        // Midnight in Berlin is 23:00 of the day before in UTC.
        (json!({ "lessThan": ["@input.due", "2026-10-30T00:00:00Z"] }), false, true),
        (json!({ "equal": ["@input.due", "2026-10-30"] }), true, true),
        // A day of the calendar: the night of 2026-03-29 has an hour less.
        (json!({ "lessOrEqual": [{ "time": "@input.first", "plus": "2d" }, "2026-03-29T22:00:00Z"] }), false, true),
        (json!({ "lessThan": [{ "time": "@input.first", "plus": "48h" }, "2026-03-30"] }), false, false),
        (json!({ "greaterThan": [{ "time": "2026-12-01", "plus": "-1d" }, "@now"] }), false, false),
    ] {
        let judge = |rules: OrderRules<'_>| judged(&condition, &input, rules);
        assert_eq!((judge(OrderRules::PRESENT), judge(berlin)), (Ok(in_utc), Ok(in_berlin)), "{condition}");
    }
}

#[test]
fn a_pair_without_an_order_is_a_fault_that_names_both_values_and_hides_secrets() {
    let input = json!({ "due": "31.12.2026", "n": 7, "blank": " 7", "day": "2026-10-30", "list": [1], "password": "abc", "pin": "x9" });
    let hidden = ["pin".to_owned()];
    let rules = OrderRules { hidden: &hidden, ..OrderRules::PRESENT };
    for (condition, why) in [
        (
            json!({ "lessThan": ["@input.due", "@now"] }),
            "`@input.due` is the text \"31.12.2026\", and `@now` is the text \"2026-11-30T12:00:00.000Z\"",
        ),
        (
            json!({ "lessThan": ["@input.n", "@input.day"] }),
            "`@input.n` is the number 7, and `@input.day` is the text \"2026-10-30\"",
        ),
        (json!({ "lessThan": ["@input.blank", 9] }), "`@input.blank` is the text \" 7\", and `9` is a number"),
        (json!({ "lessThan": ["@input.list", 9] }), "`@input.list` is a list, and `9` is a number"),
        (
            json!({ "lessThan": ["@input.password", 9] }),
            "`@input.password` is a text, which is hidden, and `9` is a number",
        ),
        (json!({ "lessThan": ["@input.pin", 9] }), "`@input.pin` is a text, which is hidden, and `9` is a number"),
        (
            json!({ "lessThan": [{ "time": "@input.due", "plus": "1d" }, "@now"] }),
            "counts from the text \"31.12.2026\"",
        ),
        (json!({ "lessThan": [{ "time": "@input.day", "plus": "36600d" }, 9] }), "and `9` is a number"),
    ] {
        let fault = judged(&condition, &input, rules).unwrap_err();
        assert!(fault.contains(why), "{condition}: {fault}");
    }
    let far = json!({ "lessThan": [{ "time": "9999-12-30", "plus": "2d" }, "@now"] });
    assert_eq!(
        judged(&far, &input, rules).unwrap_err(),
        "`{\"time\":\"9999-12-30\",\"plus\":\"2d\"}` is beyond all times"
    );
}

#[test]
fn a_run_of_an_older_edition_keeps_its_numbers_with_blanks_and_has_no_times() {
    let rules = OrderRules { is_exact: false, ..OrderRules::PRESENT };
    let input = json!({ "blank": " 7", "day": "2026-10-30" });
    assert_eq!(judged(&json!({ "lessThan": ["@input.blank", 9] }), &input, rules), Ok(true));
    let fault = judged(&json!({ "lessThan": ["@input.day", "@now"] }), &input, rules).unwrap_err();
    assert_eq!(fault, "`@input.day` is a text, and `lessThan` compares numbers");
}

#[test]
fn a_text_that_is_json_counts_as_what_it_is_and_a_broken_one_is_not_taken_for_a_missing_value() {
    let fence = "Here:\n```json\n[1, 2, 3]\n```";
    let input = json!({ "ids": "[4, 5]", "of": "{\"a\":1}", "fence": fence, "plain": "four", "cut": "{\"status\":\"late\",",
        "twice": "{\"status\":1,\"status\":2}" });
    let judge = |condition: Value, rules: OrderRules<'_>| {
        let scope = Scope { json: JsonRule::Fenced.into(), input: &input, ..scope(&input) };
        compiled(condition).holds(&scope, rules).map_err(|fault| fault.0)
    };
    let older = OrderRules { reads_json: false, ..OrderRules::PRESENT };
    for (path, length, characters) in
        [("ids", 2, 6), ("of", 1, 7), ("fence", 3, fence.len()), ("plain", 4, 4), ("none", 0, 0)]
    {
        let is = |length: usize| json!({ "equal": [{ "length": format!("@input.{path}") }, length] });
        assert_eq!(judge(is(length), OrderRules::PRESENT), Ok(true), "{path}");
        assert_eq!(judge(is(characters), older), Ok(true), "{path}");
    }
    assert_eq!(judge(json!({ "in": [4, "@input.ids"] }), OrderRules::PRESENT), Ok(true));
    assert_eq!(judge(json!({ "in": [9, "@input.ids"] }), OrderRules::PRESENT), Ok(false));
    assert!(judge(json!({ "in": [4, "@input.plain"] }), OrderRules::PRESENT).is_err());
    for (path, why) in [
        ("cut.status", "`input.cut` is a text and has no `status`"),
        ("twice.status", "has the key `status` twice"),
        ("cut.status.x", "`input.cut` is a text and has no `status`"),
    ] {
        for condition in
            [json!({ "equal": [format!("@input.{path}"), "late"] }), json!({ "in": [format!("@input.{path}"), [1]] })]
        {
            let fault = judge(condition.clone(), OrderRules::PRESENT).unwrap_err();
            assert!(fault.contains(why), "{condition}: {fault}");
            assert_eq!(judge(condition, older), Ok(false));
        }
    }
    for missing in ["plain.status", "of.status", "none.status", "cut.status?"] {
        let condition = json!({ "equal": [format!("@input.{missing}"), null] });
        assert_eq!(judge(condition, OrderRules::PRESENT), Ok(true), "{missing}");
    }
}

#[test]
fn a_moment_that_can_not_be_computed_is_reported_at_its_place() {
    for (condition, place) in [
        (json!({ "lessThan": ["@input.a", { "now": "30" }] }), "/lessThan/1/now: `30` is no span of time"),
        (json!({ "lessThan": [{ "now": "-30d", "plus": "1d" }, 1] }), "/lessThan/0: a moment has no `plus`"),
        (json!({ "lessThan": [{ "time": "@input.a", "minus": "1d" }, 1] }), "/lessThan/0: a moment has no `minus`"),
        (json!({ "lessThan": [{ "time": "@input.a" }, 1] }), "/lessThan/0: `plus` is missing"),
        (
            json!({ "lessThan": [{ "time": 5, "plus": "1d" }, 1] }),
            "/lessThan/0/time: `time` takes an `@path`, or a time; `5` was given",
        ),
        (json!({ "equal": ["@input.a", { "now": "-30d" }] }), "/equal/1: `equal` compares values as they are written"),
        (json!({ "in": [{ "now": "-30d" }, []] }), "/in/0: `in` compares values as they are written"),
    ] {
        let read: Condition = serde_json::from_value(condition.clone()).unwrap();
        let faults = CompiledCondition::compile(&read).unwrap_err();
        let fault = format!("{}: {}", faults[0].pointer, faults[0].message);
        assert!(fault.starts_with(place) && faults[0].help.is_some(), "{condition}: {fault}");
    }
}
