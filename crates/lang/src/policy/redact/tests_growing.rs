//! A text that grows by any pieces gives the same as the whole, and never a part of what is hidden.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Redaction;

/// The whole begins with what is settled of each beginning of the text. So no cuts, wherever they are, give anything
/// else.
fn grows(redaction: &Redaction, text: &str) {
    let whole = redaction.whole(text);
    for (end, _) in text.char_indices().chain([(text.len(), ' ')]) {
        let settled = redaction.settled(&text[..end]);
        assert!(whole.starts_with(&settled), "{:?}:\n{whole}\n{settled}", &text[..end]);
    }
}

/// Keys of known shapes, composed here, so that this file contains none.
fn keys() -> Vec<String> {
    secrets().into_iter().map(|(before, secret, after)| format!("{before}{secret}{after}")).collect()
}

/// What is before a secret, the secret, and what is behind it.
fn secrets() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("", format!("ghp_{}", "0123456789abcdefghijABCDEFGHIJ012345"), ""),
        ("", format!("sk-ant-{}", "api03-abcdefghij0123456789xyz"), ""),
        ("", format!("eyJhbGciOiJIUzI1NiJ9.{}", "eyJzdWIiOiIxMjM0In0.c2ln"), ""),
        ("Bearer ", format!("abcdefgh{}", "12345678+/=="), ""),
        ("Authorization: Basic ", "dXNlcjpwYXNz".to_owned(), ""),
        ("postgres://app:", "s3cr3t-pass".to_owned(), "@db/x"),
        ("https://app:", "pass,s3cr3t,more".to_owned(), "@h/x"),
        ("https://h/p?page=2&api_key=", "0a1b2c3d".to_owned(), ""),
        ("/p?token=", "0a1b,2c3d".to_owned(), ""),
        ("", format!("123456789:AA{}", "abcdefghijABCDEFGHIJ0123456789xyz"), ""),
        ("-----BEGIN RSA PRIVATE KEY-----", format!("\nMIIB{}\n", "0a1b2c"), "-----END RSA PRIVATE KEY-----"),
        ("-----BEGIN PRIVATE KEY-----", format!("MIIB {}", "0a1b2c"), "-----END PRIVATE KEY-----"),
    ]
}

#[test]
fn a_key_of_a_known_shape_that_is_cut_anywhere_is_never_passed_on() {
    let own = Redaction::default();
    for (before, secret, after) in secrets() {
        let key = format!("{before}{secret}{after}");
        for text in [
            format!("It is {key}"),
            format!("It is {key}, and then it goes on. "),
            format!("{{\"text\": \"A=1\\n{key}\\tB\", \"n\": 1}}"),
        ] {
            assert!(!own.whole(&text).contains(&secret), "{text}\n{}", own.whole(&text));
            grows(&own, &text);
        }
        grows(&own, &format!("{key}{key} {key}"));
    }
}

#[test]
fn a_value_of_a_secret_name_is_held_back_until_it_is_known_where_it_ends() {
    let own = Redaction::default();
    for (text, shown) in [
        (r#"{"thought": "T", "password": "hunt"#, r#"{"thought": "T", "password": ""#),
        (r#"{"thought": "T", "password": "hunter2", "a"#, r#"{"thought": "T", "password": "[hidden]", ""#),
        (r#"so {"credentials": {"user": "ann", "pin": [1, "}"#, r#"so {"credentials": "#),
        (r#"so {"credentials": {"user": "ann"}, "b"#, r#"so {"credentials": [hidden], ""#),
        (r#"{"password": 123"#, r#"{"password": "#),
        (r#"{"password": 123, "x"#, r#"{"password": [hidden], ""#),
        (r#"{"pass\u0077ord": "hunter2", "x"#, r#"{"pass\u0077ord": "[hidden]", ""#),
        (r#"{"body": "{\"api_key\": 12, \"token\": \"ab\\\"cd"#, r#"{"body": "{\"api_key\": [hidden], \"token\": \""#),
        // What a value is may be said behind it.
        (r#"{"h": [{"value": "Basic eA", "name": "Au"#, r#"{"h": [{"value": ""#),
        (r#"{"value": "x", "name": "Authorization"} and"#, r#"{"value": "[hidden]", "name": "Authorization"} "#),
        (r#"{"value": "x", "name": "Accept"} and"#, r#"{"value": "x", "name": "Accept"} "#),
        (r#"the "password": is asked for "#, r#"the "password": is asked for "#),
    ] {
        assert_eq!(own.settled(text), shown, "{text}");
        grows(&own, text);
    }
}

#[test]
fn prose_is_passed_on_to_its_last_word() {
    let own = Redaction::default();
    assert_eq!(own.settled("It is so? Yes, it i"), "It is so? Yes, it ");
    assert_eq!(own.settled("It is so, (see thi"), "It is so, (see ");
    assert_eq!(own.settled("It is so (se"), "It is so (");
    assert_eq!(own.settled("It is at https://h/p"), "It is at ");
    assert_eq!(own.settled("这是一个没有空格的句子，还在继续"), "这是一个没有空格的句子，还在继续");
    assert_eq!(own.settled(r#"{"thought":"It","action":"loo"#), r#"{"thought":"It","action":""#);
}

/// JSON with secrets in it, each of which contains `s3cr3t`.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(12)),
        Just(json!(true)),
        Just(json!(null)),
        Just(json!("plain text, \"quoted\" \\ and é")),
        Just(json!("")),
        Just(json!({ "name": "Authorization", "value": "s3cr3t" })),
        Just(json!({ "value": ["s3cr3t"], "other": "x", "name": "api_key" })),
        Just(json!({ "value": "plain", "name": "Accept" })),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![Just("a"), Just("name"), Just("key"), Just("n\"m"), Just("max_tokens")];
        let secret = prop_oneof![Just("password"), Just("apiKey"), Just("client_secret"), Just("credentials")];
        let held = prop_oneof![
            Just(json!("s3cr3t")),
            Just(json!("a\"s3cr3t\\")),
            Just(json!({ "x": ["s3cr3t", "}"] })),
            Just(json!(["s3cr3t", { "a": "]" }])),
            Just(json!(null)),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            (name, inner.clone(), secret, held)
                .prop_map(|(name, value, secret, held)| { json!({ name: value, secret: held, "z": 1 }) }),
            // JSON in a text.
            inner.prop_map(|value| json!({ "body": value.to_string() })),
        ]
    })
}

proptest! {
    #[test]
    fn json_that_grows_shows_no_secret_that_the_whole_hides(value in value(), pretty: bool, before in 0usize..3) {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        let text = format!("{}{text}", ["", "Thought: so.\n", "```json\n"][before]);
        let own = Redaction::default();
        prop_assert!(!own.value(&value).to_string().contains("s3cr3t"), "the whole hides it");
        prop_assert!(!own.whole(&text).contains("s3cr3t"), "{text}\n{}", own.whole(&text));
        grows(&own, &text);
    }

    #[test]
    fn a_text_that_grows_by_any_pieces_gives_the_whole_hidden(
        parts in proptest::collection::vec((0usize..24, 0usize..48, 0usize..60), 1..8),
    ) {
        let keys = keys();
        let others = ["\"", "\\\"", "\\n", " ", "\n", ":", "password", "\"token\": ", "{", "}", "[", "]", ",", "?", "&a=", "@",
            "://", "\"name\": \"", "\"value\": ", "12", "null", "é", "Bearer ", "prose. ", "-----BEGIN ", "<b>"];
        let mut text = String::new();
        for (kind, from, length) in parts {
            match keys.get(kind) {
                Some(key) => text.extend(key.chars().skip(from / 2 * (from % 2)).take(length * 2)),
                None => text.push_str(others[(from + length) % others.len()]),
            }
            text.push_str(others[(kind + from + length) % others.len()]);
        }
        grows(&Redaction::default(), &text);
    }
}
