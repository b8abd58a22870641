//! What is hidden, and what must stay readable.

use super::*;
use serde_json::json;

fn own() -> Redaction {
    Redaction::default()
}

#[test]
fn names_that_say_secret_are_hidden() {
    for name in [
        "password",
        "Password",
        "db_password",
        "userPassword",
        "password_value",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "clientSecret",
        "clientsecret",
        "api_key",
        "apikey",
        "apiKey",
        "x-api-key",
        "X-API-Key",
        "OPENAI_API_KEY",
        "authorization",
        "Authorization",
        "proxy-authorization",
        "authorization_header",
        "cookie",
        "Set-Cookie",
        "private_key",
        "privateKey",
        "access_key",
        "aws_secret_access_key",
        "token",
        "access_token",
        "accessToken",
        "refresh_token",
        "id_token",
        "auth_token",
        "csrfToken",
        "credentials",
        "credential",
        "jwt",
        "bearer",
        "connection_string",
        "PASSWORD_PROD",
        "token_1",
        "otp",
    ] {
        assert!(own().hides(name, &json!("abcdef")), "{name}");
    }
}

#[test]
fn names_of_other_things_stay_readable() {
    for name in [
        "max_tokens",
        "input_tokens",
        "output_tokens",
        "tokens",
        "token_count",
        "next_page_token",
        "nextPageToken",
        "continuation_token",
        "stop_token",
        "session_id",
        "sessionId",
        "request_id",
        "key",
        "public_key",
        "primary_key",
        "idempotency_key",
        "cache_key",
        "sha256",
        "hash",
        "checksum",
        "uuid",
        "etag",
        "commit",
        "secretary",
        "secret_name",
        "password_policy",
        "password_hint_shown_at",
        "credential_id",
        "token_type",
        "token_expires_at",
        "access_key_id",
        "cookie_policy",
        "author",
        "authority",
        "authors",
        "tokenizer",
        "keyboard",
        "passenger",
        "compass",
        "signature",
        "monkey",
        "accountKeyboard",
        "api_version",
        "secret_arn",
    ] {
        assert!(!own().hides(name, &json!("abcdef")), "{name}");
    }
}

#[test]
fn counts_and_switches_are_no_secrets_and_null_is_none() {
    for value in [json!(12), json!(true), json!(null)] {
        assert!(!own().hides("token", &value), "{value}");
    }
    assert!(!own().hides("has_password", &json!(true)));
    assert!(own().hides("password", &json!(123_456)));
    assert!(own().hides("token", &json!({"value": "x"})));
}

#[test]
fn the_projects_names_hide_every_value_whatever_their_spelling() {
    let redaction = Redaction::new(&["tax_number".to_owned()]);
    for name in ["tax_number", "taxNumber", "TAX-NUMBER"] {
        assert!(redaction.hides(name, &json!(42)), "{name}");
    }
    assert!(!redaction.hides("tax_number_count", &json!(42)));
}

#[test]
fn secrets_are_hidden_at_any_depth_and_inside_strings_of_json() {
    let value = json!({
        "user": {"name": "Ann", "logins": [{"password": "hunter2", "at": 1}]},
        "body": "{\"token\":\"abc\",\"n\":1.0}",
        "twice": "{\"inner\":\"{\\\"api_key\\\":\\\"k\\\"}\"}",
    });
    let shown = own().value(&value);
    assert_eq!(shown["user"]["name"], "Ann");
    assert_eq!(shown["user"]["logins"][0]["password"], HIDDEN);
    assert_eq!(shown["body"], "{\"token\":\"[hidden]\",\"n\":1.0}");
    assert!(!shown["twice"].as_str().unwrap().contains("\\\"k"));
}

#[test]
fn a_header_in_a_list_is_hidden_by_its_name_beside_it() {
    let shown =
        own().value(&json!([{"name": "Authorization", "value": "Basic eA=="}, {"name": "Accept", "value": "*"}]));
    assert_eq!(shown, json!([{"name": "Authorization", "value": "[hidden]"}, {"name": "Accept", "value": "*"}]));
}

#[test]
fn json_text_without_secrets_keeps_its_spelling() {
    let text = "{ \"a\" :  1.50 }";
    assert!(matches!(own().text(text), Cow::Borrowed(same) if same == text));
}

#[test]
fn well_known_shapes_are_hidden_in_plain_text() {
    let cases = [
        ("curl -H 'Authorization: Bearer abcdefgh12345678+/=' x", "curl -H 'Authorization: Bearer [hidden]' x"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [hidden]"),
        ("postgres://app:s3cr3t@db/x", "postgres://app:[hidden]@db/x"),
        ("https://h/p?api_key=abc&page=2", "https://h/p?api_key=[hidden]&page=2"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln", "[hidden]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----[hidden]-----END RSA PRIVATE KEY-----",
        ),
    ];
    for (text, shown) in cases {
        assert_eq!(own().text(text), shown, "{text}");
    }
}

#[test]
fn tokens_of_well_known_services_are_hidden() {
    // Composed here, so that this file itself contains none.
    for (prefix, rest) in
        [("sk-ant-", "api03-abcdefghij0123456789xyz"), ("ghp_", "0123456789abcdefghijABCDEFGHIJ012345")]
    {
        let text = format!("key {prefix}{rest}!");
        assert_eq!(own().text(&text), "key [hidden]!");
    }
}

#[test]
fn ids_hashes_and_prose_stay_readable() {
    for text in [
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "$2b$12$KIXQ4",
        "the bearer of the message",
        "a basic understanding12",
        "sk-1234 is the shelf",
        "sku-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghij",
        "https://h/p?next_page_token=abc&sort=id",
        "mailto:a@b.c, http://host:8080/@user:x",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "its authorization is basic, so it works",
        "the authorization was given",
        "?token=&page=2",
        "https://user:@host/",
    ] {
        assert!(matches!(own().text(text), Cow::Borrowed(shown) if shown == text), "{text}");
    }
}

#[test]
fn a_value_of_any_depth_is_walked_without_overflow() {
    let mut value = json!({"password": "x"});
    for _ in 0..10_000 {
        value = Value::Array(vec![value]);
    }
    let shown = own().value(&value).to_string();
    assert!(shown.contains(HIDDEN) && !shown.contains("password"));
    // A drop of such a value recurses as well: take it apart instead.
    while let Value::Array(mut items) = value {
        value = items.pop().unwrap_or_default();
    }
}

#[test]
fn secret_members_of_json_in_the_middle_of_a_text_are_hidden() {
    let cases = [
        (r#"I send {"password":"abc","id":"x1"} now"#, r#"I send {"password":"[hidden]","id":"x1"} now"#),
        (r#"so: "api_key" : "a\"b" and"#, r#"so: "api_key" : "[hidden]" and"#),
        (r#"x {"text":"{\"client_secret\": \"in\"}"}"#, r#"x {"text":"{\"client_secret\": \"[hidden]\"}"}"#),
        (
            r#"h [{"name":"X-Api-Key","value":"v"},{"name":"n","value":"w"}] x"#,
            r#"h [{"name":"X-Api-Key","value":"[hidden]"},{"name":"n","value":"w"}] x"#,
        ),
        (r#"cut {"password":"abc"#, r#"cut {"password":"[hidden]"#),
        (r#"none {"password":"","id":"abc"} here"#, r#"none {"password":"","id":"abc"} here"#),
        (r#"a "name": "value" and "next_page_token": "p7""#, r#"a "name": "value" and "next_page_token": "p7""#),
        (r#""":"" "":"" ":": ""#, r#""":"" "":"" ":": ""#),
        (r#"the "password": is asked for"#, r#"the "password": is asked for"#),
        (r#"the "password", "user": "ann""#, r#"the "password", "user": "ann""#),
        (r#"x "token":"password":"in" y"#, r#"x "token":"[hidden]":"[hidden]" y"#),
        // JSON in a text that is itself the name of something.
        (r#"x {"name":"{\"password\": \"in\"}"} y"#, r#"x {"name":"{\"password\": \"[hidden]\"}"} y"#),
        // What a value is may be said behind it, in the same object.
        (
            r#"x {"value":"in","o":{"a":[1]},"name":"api_key"} y"#,
            r#"x {"value":"[hidden]","o":{"a":[1]},"name":"api_key"} y"#,
        ),
        (r#"x {"value":"v","o":{"name":"api_key"}} y"#, r#"x {"value":"v","o":{"name":"api_key"}} y"#),
        (r#"x {"value":"v","kind":"api_key"} y"#, r#"x {"value":"v","kind":"api_key"} y"#),
        (r#"x {"o":{"value":12},"name":"api_key"} y"#, r#"x {"o":{"value":12},"name":"api_key"} y"#),
    ];
    for (text, shown) in cases {
        let shown = shown.to_owned();
        assert_eq!(own().text(text), shown, "{text}");
    }
}

#[test]
fn a_long_text_of_quotes_is_looked_through_in_one_go() {
    for piece in [
        "\":",
        "\\\":",
        "\"password\":\"x\",",
        "\"password\":{",
        // Objects and lists in each other, of which none ends, or all do.
        "\"a\":{",
        "\"a\":[\\\"b\\\":[",
        "\"value\":{",
        "\"value\":[\\\"value\\\":[",
        "\"name\":\"",
        "\"name\":\"token\",\"value\":\"",
        "\"password\":\"",
        "\"\":\"\"",
    ] {
        let text = format!("x {}", piece.repeat(10_000));
        assert!(!own().text(&text).is_empty());
    }
    let nested = format!("x {}{}", "\"value\":{".repeat(10_000), "}".repeat(10_000));
    assert_eq!(own().text(&nested), nested);
}

#[test]
fn an_object_in_quotes_that_no_layer_of_json_has_is_hidden_to_the_end_of_the_text() {
    let in_quotes = |quote: &str| format!(r#"{quote}password{quote}: {{{quote}a{quote}: 1}}, and so on"#);
    for layer in [r#"""#, r#"\""#, r#"\\\""#] {
        assert!(own().whole(&in_quotes(layer)).ends_with(", and so on"), "{layer}");
    }
    assert!(!own().whole(&in_quotes(r#"\\""#)).contains("and so on"));
}

#[test]
fn a_long_text_of_marks_and_nothing_else_is_looked_through_once() {
    // Each of these would take many minutes if the rest of the text were scanned at every mark.
    for mark in ["?", "&", "?a=", "?a", "://a:b", "-----BEGIN ", "\"name\":\"", "\\\""] {
        let text = mark.repeat(200_000 / mark.len());
        assert_eq!(own().text(&text), text, "{mark}");
    }
    let key = "-----BEGIN PRIVATE KEY-----";
    assert_eq!(own().text(&key.repeat(8_000)), format!("{key}{HIDDEN}"));
}

#[test]
fn a_secret_in_a_query_is_found_behind_any_marks_and_hidden_to_its_end() {
    let name = "x".repeat(200);
    for (text, shown) in [
        ("a?b?token=s3cr3t?more&c=d", "a?b?token=[hidden]&c=d"),
        ("?&?token=s3cr3t", "?&?token=[hidden]"),
        ("?token=&token=s3cr3t x?token=again", "?token=&token=[hidden] x?token=[hidden]"),
        (&format!("?{name}?token=s3cr3t"), &format!("?{name}?token=[hidden]")),
    ] {
        assert_eq!(own().text(text), shown);
    }
}

#[test]
fn what_stands_behind_a_hidden_word_stays() {
    let text = "Authorization: Basic dXNlcjpwYXNz is what it sent";
    assert_eq!(own().text(text), "Authorization: Basic [hidden] is what it sent");
}

#[test]
fn a_name_in_a_query_is_looked_at_up_to_its_longest_length() {
    let text = |before: &str, length: usize| format!("{before}?{}_token=s3cr3t", "x".repeat(length - 6));
    for before in ["", "https://h/p"] {
        assert!(own().text(&text(before, 128)).ends_with("_token=[hidden]"), "{before}");
        assert_eq!(own().text(&text(before, 129)), text(before, 129));
    }
}

#[test]
fn a_name_of_a_member_is_looked_at_up_to_its_longest_length() {
    let name = |length: usize| format!("{}_token", "x".repeat(length - 6));
    let text = |length: usize| format!(r#"x {{"{}":"s3cr3t"}} y"#, name(length));
    assert_eq!(own().text(&text(128)), text(128).replace("s3cr3t", HIDDEN));
    assert_eq!(own().text(&text(129)), text(129));
    let beside = |length: usize| format!(r#"x {{"name":"{}","value":"s3cr3t"}} y"#, name(length));
    assert_eq!(own().text(&beside(128)), beside(128).replace("s3cr3t", HIDDEN));
    assert_eq!(own().text(&beside(129)), beside(129));
}

#[test]
fn a_key_behind_an_escaped_line_end_or_tab_is_hidden_from_its_first_letter_on() {
    let key = format!("ghp_{}", "bfnrt".repeat(6) + "0123");
    for escape in ["\\n", "\\r", "\\t", "\\f", "\\b", "\\\\n", "\\r\\n", "\\"] {
        for after in ["", escape, "\\\"", " and"] {
            let text = |key: &str| format!("log: \"on{escape}{key}{after}");
            assert_eq!(own().text(&text(&key)), text(HIDDEN), "{}", text("KEY"));
        }
    }
    // Only a backslash makes a letter an escape.
    let text = format!("a \\ n{key}");
    assert_eq!(own().text(&text), text);
}

#[test]
fn json_in_json_is_read_four_layers_deep_and_hidden_below_as_in_any_text() {
    let text = |layers: usize| (1..layers).fold(r#"{"password":1234}"#.to_owned(), |text, _| json!([text]).to_string());
    let innermost = |layers: usize| {
        let shown = own().text(&text(layers)).into_owned();
        (1..layers).fold(shown, |text, _| serde_json::from_str::<[String; 1]>(&text).unwrap()[0].clone())
    };
    // What was read stays JSON.
    for layers in 1..=4 {
        assert_eq!(innermost(layers), r#"{"password":"[hidden]"}"#, "{layers}");
    }
    assert_eq!(innermost(5), r#"{"password":[hidden]}"#);
}

#[test]
fn a_value_is_shown_down_to_the_depth_that_is_walked() {
    let wraps: [fn(Value) -> Value; 2] = [|value| json!([value]), |value| json!({ "a": value })];
    for wrap in wraps {
        let nested = |depth: usize| (0..depth).fold(json!("shown"), |value, _| wrap(value));
        assert_eq!(own().value(&nested(MAX_DEPTH)), nested(MAX_DEPTH));
        assert!(!own().value(&nested(MAX_DEPTH + 1)).to_string().contains("shown"));
    }
}

#[test]
fn a_bracket_behind_an_escaped_quote_ends_no_object() {
    for (text, shown) in [
        (r#"x {"token":{"a":"\"}","b":"s3cr3t"}} y"#, r#"x {"token":[hidden]} y"#),
        (r#"x "{\"token\":{\"a\":\"\\\"}\",\"b\":\"s3cr3t\"}}" y"#, r#"x "{\"token\":[hidden]}" y"#),
    ] {
        assert_eq!(Redaction::default().text(text), shown);
    }
}

#[test]
fn an_object_whose_quotes_are_too_long_is_hidden_with_all_behind_it() {
    let text = |length: usize| {
        let quote = format!("{}\"", "\\".repeat(length - 1));
        (format!("x {{{quote}token{quote}:{{}} y"), format!("x {{{quote}token{quote}:[hidden]"))
    };
    for (length, behind) in [(32, " y"), (63, ""), (64, " y"), (65, ""), (128, "")] {
        let (text, shown) = text(length);
        assert_eq!(Redaction::default().text(&text), format!("{shown}{behind}"), "{length}");
    }
}

#[test]
fn an_object_inside_of_others_ends_where_its_own_bracket_does() {
    for (text, shown) in [
        (
            r#"x {"value":{"value":{"a":["}"]},"name":"token"},"b":[1]} y"#,
            r#"x {"value":{"value":[hidden],"name":"token"},"b":[1]} y"#,
        ),
        (r#"x {"value":[{"value":["s3cr3t"]}],"name":"token"} y"#, r#"x {"value":[hidden],"name":"token"} y"#),
        (
            r#"x {"value":[{"value":1}],"n":1} {"value":[1],"name":"token"} y"#,
            r#"x {"value":[{"value":1}],"n":1} {"value":[hidden],"name":"token"} y"#,
        ),
        // A bracket in a text is none; read by other quotes, it is one.
        (
            r#"x {"value":["{\"token\":[1,2]"],"token":{"a":"]"}} y"#,
            r#"x {"value":["{\"token\":[hidden]"],"token":[hidden]} y"#,
        ),
        (r#"x {"value":{"value":[1 y"#, r#"x {"value":{"value":[1 y"#),
    ] {
        assert_eq!(Redaction::default().text(text), shown);
    }
}
