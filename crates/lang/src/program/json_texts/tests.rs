//! What is asked of texts that are JSON, that should be, and that are none.

use serde_json::{Value, json};

use super::*;
use crate::language::Condition;
use crate::program::condition::{CompiledCondition, OrderRules};
use crate::program::reference::{Field, Scope, UnresolvedKind};

fn scope(input: &Value, rule: JsonRule) -> Scope<'_> {
    Scope::of_input(input, rule.into())
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
            let unresolved = field(&written).resolve(&scope(&input, JsonRule::PRESENT)).unwrap_err();
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
            let fault = holds(condition.clone(), &scope(&input, JsonRule::PRESENT)).unwrap_err();
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
        let scope = scope(&input, JsonRule::PRESENT);
        assert_eq!(field(&json!({ "n": format!("@{path}?") })).resolve(&scope), Ok(json!({})), "{name}");
        let asks = json!(format!("{{{{#if {path}}}}}yes{{{{else}}}}no{{{{/if}}}}"));
        assert_eq!(field(&asks).resolve(&scope), Ok(json!("no")), "{name}");
        assert_eq!(holds(json!({ "hasKey": format!("@{path}") }), &scope), Ok(false), "{name}");
    }
}

#[test]
fn json_is_read_out_of_fences_of_all_forms() {
    for text in [
        "```json\n{\"grade\": 2}\n```",
        "```json\r\n{\"grade\": 2}\r\n```",
        "```JSON\n{\"grade\": 2}```",
        "```json {\"grade\": 2}```",
        "```{\"grade\": 2}```",
        "~~~json\n{\"grade\": 2}\n~~~",
        "````json\n{\"grade\": 2}\n````",
        "```json5\n{\"grade\": 2}\n```",
        "```jsonc title=a\n{\"grade\": 2}\n```",
        "Here: ```json\n{\"grade\": 2}\n``` Good?",
        "```python\nx = {}\n```\n```json\n{\"grade\": 2}\n```",
        "Write ```x``` so:\n```\n{\"grade\": 2, \"md\": \"```js``` and ~~~\"}\n```",
        "```json\n{\"grade\": 2}",
    ] {
        let input = json!({ "t": text });
        assert_eq!(field(&json!("@input.t.grade")).resolve(&scope(&input, JsonRule::PRESENT)), Ok(json!(2)), "{text}");
    }
    for (text, why) in [
        ("```json {\"grade\": 2 oops}```", "in its fence, expected"),
        ("```json5\n{grade: 2}\n```", "in its fence, key must be a string"),
        ("~~~\n{\"grade\": 2, \"grade\": 3}\n~~~", "in its fence, it has the key `grade` twice"),
        ("```json {\"grade\": 1}``` or ```json {\"grade\": 2}```", "it has several fences with JSON"),
        ("```javascript\n{\"grade\": 2}\n```", "its fence is marked `javascript`"),
    ] {
        let input = json!({ "t": text });
        let scope = scope(&input, JsonRule::PRESENT);
        let unresolved = field(&json!(["@input.t.grade?"])).resolve(&scope).unwrap_err();
        assert!(unresolved.is_broken() && unresolved.why.contains(why), "{text}: {unresolved}");
    }
    let older = json!({ "t": "```json {\"grade\": 2}```" });
    assert_eq!(field(&json!(["@input.t.grade?"])).resolve(&scope(&older, JsonRule::Whole)), Ok(json!([])));
}

#[test]
fn json_is_read_behind_marks_of_encodings_and_thoughts() {
    for text in [
        "\u{feff}{\"grade\": 2}",
        "\u{200b} \u{feff}\n{\"grade\": 2}\u{feff}\n",
        "<think>{\"grade\": 9}</think>\n{\"grade\": 2}",
        "<THINKING>No </think> here.</thinking>{\"grade\": 2}",
        "<think>1</think><think>2</think>\n```json\n{\"grade\": 2}\n```",
        "<think>```json\n{\"grade\": 9}\n```</think>\n```json\n{\"grade\": 2}\n```",
        "Is it 9, or {\"grade\": 9}?</think>\n\n{\"grade\": 2}",
        "\u{feff}<think></think>So:\n```\n{\"grade\": 2}\n```",
        // Tags in a value are a part of it.
        "{\"grade\": 2, \"note\": \"<think>x</think>{\"}",
        "```json\n{\"grade\": 2, \"note\": \"</think>[1]\"}\n```",
    ] {
        let input = json!({ "t": text });
        assert_eq!(field(&json!("@input.t.grade")).resolve(&scope(&input, JsonRule::PRESENT)), Ok(json!(2)), "{text}");
    }
    // What comes before is the same for what is asked of a text that can't be read.
    for text in ["\u{feff}{\"grade\": 2,", "<think>Hm.</think>{\"grade\": 2, \"grade\": 3}"] {
        let input = json!({ "t": text });
        let unresolved = field(&json!(["@input.t.grade?"])).resolve(&scope(&input, JsonRule::PRESENT)).unwrap_err();
        assert!(unresolved.is_broken(), "{text}: {unresolved}");
        assert!(field(&json!(["@input.t.grade?"])).resolve(&scope(&input, JsonRule::AnyFence)).is_ok(), "{text}");
    }
    // A text of words that names a tag, and thoughts that never end.
    for text in ["Write </think> after it.", "<think>{\"grade\": 2}"] {
        let input = json!({ "t": text });
        assert_eq!(
            field(&json!(["@input.t.grade?"])).resolve(&scope(&input, JsonRule::PRESENT)),
            Ok(json!([])),
            "{text}"
        );
    }
}

#[test]
fn many_marks_take_no_more_than_their_length() {
    for text in [
        "```".repeat(50_000),
        "<think></think>".repeat(50_000),
        "```[".repeat(50_000),
        "~~~\n{\"".repeat(50_000),
        "```json\n{\"a\": [".repeat(50_000),
    ] {
        let reader = std::thread::spawn(move || JsonTexts::from(JsonRule::PRESENT).why_broken(&text));
        reader.join().unwrap();
    }
}

#[test]
fn json_that_is_too_deep_or_has_half_of_a_character_says_so() {
    let deep = |levels: usize| format!("{{\"a\": {}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let input = json!({ "most": deep(MAX_DEPTH), "deep": deep(MAX_DEPTH + 1), "half": r#"{"a": "x \ud83d y"}"#,
        "key": r#"{"$serde_json::private::Number": "1"}"# });
    let read = |name: &str, rule: JsonRule| field(&json!(format!("@input.{name}.a"))).resolve(&scope(&input, rule));
    assert!(read("most", JsonRule::PRESENT).is_ok());
    let why = |name: &str, rule: JsonRule| read(name, rule).unwrap_err().why;
    assert!(why("deep", JsonRule::PRESENT).contains("it is nested deeper than 127 levels"));
    assert!(why("key", JsonRule::PRESENT).contains("it has the key `$serde_json::private::Number`"));
    assert!(
        why("half", JsonRule::Whole).contains("it has half of a surrogate pair"),
        "{}",
        why("half", JsonRule::Whole)
    );
    assert_eq!(read("half", JsonRule::PRESENT), Ok(json!("x \u{fffd} y")));
}

#[test]
fn a_condition_that_needs_a_part_of_a_text_which_is_no_json_fails() {
    let input = json!({ "page": "<html>Down</html>", "empty": "", "good": "{\"state\": \"open\"}", "none": "null\n",
        "number": "5" });
    for name in ["page", "empty"] {
        let path = format!("@input.{name}.state");
        for condition in [
            json!({ "notEqual": [path, "cancelled"] }),
            json!({ "not": { "in": [path, ["cancelled"]] } }),
            json!({ "not": { "matches": [path, "x"] } }),
            json!({ "equal": [{ "length": path }, 0] }),
            json!({ "in": ["a", [path]] }),
        ] {
            let fault = holds(condition.clone(), &scope(&input, JsonRule::PRESENT)).unwrap_err();
            assert!(fault.contains("is a text and has no `state`"), "{condition}: {fault}");
            assert!(holds(condition.clone(), &scope(&input, JsonRule::Whole)).is_ok(), "{condition}");
        }
        for (condition, expected) in [
            (json!({ "hasKey": path }), false),
            (json!({ "notEqual": [format!("{path}?"), "cancelled"] }), true),
            (json!({ "equal": [{ "length": format!("{path}?") }, 0] }), true),
            (json!({ "greaterThan": [format!("{path}?"), 1] }), false),
            (json!({ "equal": [{ "length": format!("@input.{name}") }, 17] }), name == "page"),
        ] {
            assert_eq!(holds(condition.clone(), &scope(&input, JsonRule::PRESENT)), Ok(expected), "{condition}");
        }
    }
    // JSON that has no such part.
    for of in ["good.other", "none.state", "number.state"] {
        let missing = json!({ "notEqual": [format!("@input.{of}"), "cancelled"] });
        assert_eq!(holds(missing, &scope(&input, JsonRule::PRESENT)), Ok(true), "{of}");
    }
}

#[test]
fn a_long_text_is_parsed_once_and_each_has_its_own_values() {
    let text = |number: usize| json!({ "n": number, "pad": "x".repeat(MIN_KEPT_BYTES) }).to_string();
    let many = MAX_KEPT_TEXTS + 2;
    let input = json!({ "of": (0..many).map(text).collect::<Vec<_>>() });
    let scope = scope(&input, JsonRule::PRESENT);
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
