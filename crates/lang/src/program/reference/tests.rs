//! Fields: types and digits are kept, and data is never read as a path or template.

use serde_json::{Value, json};

use super::*;

fn resolve(field: &Value, arguments: &Value) -> Result<Value, String> {
    let input: Value =
        serde_json::from_str(r#"{"n":12345678901234567890123,"items":[{"name":"A"}],"x":null}"#).unwrap();
    let scope = Scope {
        arguments,
        input: &input,
        lists: None,
        files: None,
        now: "NOW",
        run_id: "RUN",
        context: &[],
        extra: &[("today", "Friday")],
        reads_fences: false,
        secrets: None,
    };
    let field = Field::compile(field).unwrap_or_else(|faults| panic!("{faults:?}"));
    field.resolve(&scope).map_err(|Unresolved(message)| message)
}

#[test]
fn a_whole_path_keeps_the_type() {
    let arguments =
        json!({"ticket_id": 7, "list": [1, 2], "deep": {"a": {"b": true}}, "text": "{\"a\":[1.50]}", "grüße": "ö"});
    for (path, expected) in [
        ("@ticket_id", "7"),
        ("@list", "[1,2]"),
        ("@list.length", "2"),
        ("@list.1", "2"),
        ("@deep.a", r#"{"b":true}"#),
        ("@deep.a.b", "true"),
        ("@text.a.0", "1.50"),
        ("@text", r#""{\"a\":[1.50]}""#),
        ("@text.length", "null"),
        ("@input.n", "12345678901234567890123"),
        ("@input.items.0.name", r#""A""#),
        ("@input.items.length", "1"),
        ("@input.x", "null"),
        ("@now", r#""NOW""#),
        ("@__run_id", r#""RUN""#),
        ("@today", r#""Friday""#),
        ("@grüße", r#""ö""#),
    ] {
        let found = resolve(&json!(path), &arguments);
        match path {
            "@text.length" => assert_eq!(found, Err("`text` is a text and has no `length`".to_owned())),
            _ => assert_eq!(found.map(|value| value.to_string()).as_deref(), Ok(expected), "{path}"),
        }
    }
}

#[test]
fn the_digits_of_numbers_pass_unchanged() {
    for digits in ["12345678901234567890123", "9007199254740993", "0.1", "1E400", "-0", "1.0", "1e2", "100", "-1.50e-3"]
    {
        let arguments: Value = serde_json::from_str(&format!("{{\"n\":{digits}}}")).unwrap();
        let field = serde_json::from_str(&format!("{{\"a\":\"@n\",\"b\":[\"{{{{n}}}}\"],\"c\":{digits}}}")).unwrap();
        let resolved = resolve(&field, &arguments).unwrap().to_string();
        let shown = serde_json::from_str::<Value>(digits).unwrap().to_string();
        assert_eq!(resolved, format!("{{\"a\":{shown},\"b\":[\"{shown}\"],\"c\":{shown}}}"));
    }
}

#[test]
fn what_is_no_path_stays_literal() {
    for text in [
        "@@x",
        "@ me",
        "@",
        "@.",
        "@a.",
        "@a..b",
        "@a b",
        "a@b.example",
        "@a/b",
        "@1",
        "@-a",
        "@a@b",
        "@a,",
        " @a",
        "@é!",
    ] {
        assert_eq!(as_path(text), None, "{text}");
        assert_eq!(resolve(&json!(text), &json!({"a": 1, "x": 1})), Ok(json!(text)));
    }
    assert!(as_path("@a-b_c.d.0").is_some());
}

#[test]
fn the_engines_names_win_over_arguments() {
    let arguments = json!({"input": "mine", "now": "mine", "__run_id": "mine", "today": "mine", "other": "mine"});
    let field = json!(["@now", "@__run_id", "@today", "@other", "{{now}}"]);
    assert_eq!(resolve(&field, &arguments), Ok(json!(["NOW", "RUN", "Friday", "mine", "NOW"])));
}

#[test]
fn what_values_hold_is_never_read_again() {
    for hostile in ["{{input.n}}", "@input.n", "orgconfig:k", "@@a", "${n}"] {
        let arguments = json!({"x": hostile, "o": {"deep": [hostile]}, "text": json!({"a": hostile}).to_string()});
        let field = json!({"a": "@x", "b": "{{x}}", "c": "@o.deep", "d": ["@o"], "e": "@text.a", "@x": 1});
        let expected =
            json!({"a": hostile, "b": hostile, "c": [hostile], "d": [{"deep": [hostile]}], "e": hostile, "@x": 1});
        assert_eq!(resolve(&field, &arguments), Ok(expected));
    }
}

#[test]
fn all_faults_of_a_value_are_reported_with_their_pointers() {
    let field = json!({"a": ["{{x", "ok"], "b/c": {"d~": "{{log y}}"}, "e": 1});
    let faults = Field::compile(&field).unwrap_err();
    let places: Vec<(&str, Option<std::ops::Range<usize>>)> =
        faults.iter().map(|fault| (fault.pointer.as_str(), fault.inside.clone())).collect();
    assert_eq!(places, [("/a/0", Some(0..3)), ("/b~1c/d~0", Some(2..5))]);
}

#[test]
fn variables_are_reported_with_their_pointers() {
    let field = json!({"a": ["@input.x", "{{y}} {{z}}", "plain", "orgconfig:k"], "b": "@w"});
    let field = Field::compile(&field).unwrap();
    let found: Vec<String> = field
        .variables()
        .iter()
        .map(|found| format!("{} {} {:?}", found.pointer, found.variable.path.join("."), found.variable.range))
        .collect();
    assert_eq!(found, ["/a/0 input.x 0..8", "/a/1 y 2..3", "/a/1 z 8..9", "/b w 0..2"]);
    assert_eq!(field.secrets(), ["k"]);
    assert!(matches!(Field::compile(&json!({"a": [1, "x"]})).unwrap(), Field::Literal(_)));
}

#[test]
fn a_secret_needs_leave_to_be_used() {
    assert_eq!(resolve(&json!("orgconfig:k"), &Value::Null), Err("the secret `k` may not be used here".to_owned()));
}
