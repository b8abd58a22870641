//! What is asked of texts that are JSON, that should be, and that are none.

use serde_json::{Value, json};

use super::*;
use crate::language::Condition;
use crate::program::condition::{CompiledCondition, OrderRules};
use crate::program::reference::{Field, Scope, UnresolvedKind};

fn scope(input: &Value, rule: JsonRule) -> Scope<'_> {
    Scope {
        arguments: &Value::Null,
        input,
        lists: None,
        files: None,
        now: "",
        run_id: "",
        context: &[],
        extra: &[],
        json: rule.into(),
        secrets: None,
    }
}

fn field(written: &Value) -> Field {
    Field::compile(written).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn holds(condition: Value, scope: &Scope<'_>) -> Result<bool, String> {
    let read: Condition = serde_json::from_value(condition).unwrap();
    let compiled = CompiledCondition::compile(&read).unwrap_or_else(|faults| panic!("{faults:?}"));
    compiled.holds(scope, OrderRules::PRESENT).map_err(|fault| fault.0)
}

fn texts() -> Value {
    json!({
        "cut": "{\"amount\": 5,", "twice": "{\"amount\":1,\"amount\":2}", "list": "[{\"a\":1}, {",
        "fence": "Here:\n```json\n{\"amount\": 5,\n```", "two": "```\n[1]\n```\n```\n[2]\n```",
        "good": "{\"amount\": 5}", "plain": "late", "code": "```python\nprint(1)\n```", "empty": "",
    })
}

#[test]
fn a_text_that_should_be_json_and_is_none_has_no_missing_values() {
    let input = texts();
    for (name, why) in [
        ("cut", "EOF while parsing"),
        ("twice", "it has the key `amount` twice"),
        ("list", "EOF while parsing"),
        ("fence", "in its fence, EOF while parsing"),
        ("two", "it has several fences with JSON"),
    ] {
        let path = format!("input.{name}.amount");
        let asked = [
            json!({ "id": 7, "amount": format!("@{path}?") }),
            json!([format!("@{path}?")]),
            json!(format!("{{{{#if {path}}}}}yes{{{{else}}}}no{{{{/if}}}}")),
            json!(format!("{{{{#with {path}}}}}yes{{{{else}}}}no{{{{/with}}}}")),
            json!(format!("{{{{#each {path}}}}}yes{{{{else}}}}no{{{{/each}}}}")),
            json!(format!("{{{{#each input.{name}}}}}yes{{{{else}}}}no{{{{/each}}}}")),
        ];
        for written in asked {
            let unresolved = field(&written).resolve(&scope(&input, JsonRule::Whole)).unwrap_err();
            assert_eq!(unresolved.kind, UnresolvedKind::Broken, "{written}: {unresolved}");
            assert!(unresolved.why.contains(why), "{written}: {unresolved}");
            let older = field(&written).resolve(&scope(&input, JsonRule::Fenced));
            assert!(older.is_ok(), "{written}: {older:?}");
        }
        for condition in [
            json!({ "hasKey": format!("@{path}") }),
            json!({ "equal": [format!("@{path}?"), null] }),
            json!({ "greaterThan": [format!("@{path}?"), 1] }),
            json!({ "equal": [{ "length": format!("@{path}") }, 0] }),
            json!({ "in": [1, [format!("@{path}?")]] }),
        ] {
            let fault = holds(condition.clone(), &scope(&input, JsonRule::Whole)).unwrap_err();
            assert!(fault.contains(why), "{condition}: {fault}");
            assert!(holds(condition.clone(), &scope(&input, JsonRule::Fenced)).is_ok(), "{condition}");
        }
    }
}

#[test]
fn what_is_no_json_or_is_whole_has_missing_values_as_before() {
    let input = texts();
    for name in ["good", "plain", "code", "empty", "none"] {
        let path = format!("input.{name}.note");
        let scope = scope(&input, JsonRule::Whole);
        assert_eq!(field(&json!({ "n": format!("@{path}?") })).resolve(&scope), Ok(json!({})), "{name}");
        let asks = json!(format!("{{{{#if {path}}}}}yes{{{{else}}}}no{{{{/if}}}}"));
        assert_eq!(field(&asks).resolve(&scope), Ok(json!("no")), "{name}");
        assert_eq!(holds(json!({ "hasKey": format!("@{path}") }), &scope), Ok(false), "{name}");
    }
}

#[test]
fn a_long_text_is_parsed_once_and_each_has_its_own_values() {
    let text = |number: usize| json!({ "n": number, "pad": "x".repeat(MIN_KEPT_BYTES) }).to_string();
    let many = MAX_KEPT_TEXTS + 2;
    let input = json!({ "of": (0..many).map(text).collect::<Vec<_>>() });
    let scope = scope(&input, JsonRule::Whole);
    for _ in 0..2 {
        for number in 0..many {
            let path = format!("@input.of.{number}.n");
            assert_eq!(field(&json!(path)).resolve(&scope), Ok(json!(number)));
        }
    }
    let kept = scope.json.kept.borrow();
    assert_eq!(kept.len(), MAX_KEPT_TEXTS);
    let bytes: usize = kept.iter().map(|kept| kept.bytes).sum();
    assert!(bytes <= MAX_KEPT_BYTES);
}
