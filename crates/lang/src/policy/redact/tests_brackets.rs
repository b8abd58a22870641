//! Where the objects and lists of cut JSON end.

use super::Redaction;

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
