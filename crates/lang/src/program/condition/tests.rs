//! What conditions hold for, and what can't be evaluated.

use serde_json::{Value, json};

use super::*;

fn compiled(condition: Value) -> CompiledCondition {
    CompiledCondition::compile(&serde_json::from_value(condition).unwrap()).unwrap()
}

fn evaluate(condition: Value, input: &Value) -> Result<bool, String> {
    let scope = Scope {
        arguments: &Value::Null,
        input,
        lists: None,
        files: None,
        now: "",
        run_id: "",
        context: &[],
        extra: &[],
        reads_fences: false,
        secrets: None,
    };
    compiled(condition).evaluate(&scope).map_err(|fault| fault.0)
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
            "`@input.amount` is a text, and `greaterThan` compares numbers",
        ),
        (
            json!({ "lessThan": ["@input.flag", 500] }),
            "`@input.flag` is true or false, and `lessThan` compares numbers",
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
