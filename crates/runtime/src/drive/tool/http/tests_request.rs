//! How a request is put together: no value leaves its place.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::query_pairs::{FormPairs, encode};
use super::request::{build, header_map, parse_url};
use super::*;
use crate::drive::tool::call::ToolCall;
use loopctl_engine::event::{Allowance, CallId};
use loopctl_lang::language::action::HttpAction;
use loopctl_lang::language::action::ValueStyle;
use loopctl_lang::program::Body;
use loopctl_lang::program::HttpTool;
use loopctl_lang::program::json_texts::JsonRule;
use loopctl_lang::program::reference::Field;
use loopctl_lang::program::reference::Scope;
use loopctl_lang::program::template::{Template, ValueEscape};

fn tool(action: &Value) -> HttpTool {
    let mut whole = json!({"action_name": "t"});
    whole.as_object_mut().unwrap().extend(action.as_object().unwrap().clone());
    let action: HttpAction = serde_json::from_str(&whole.to_string()).unwrap();
    let literal = |value: &Value| Field::Literal(value.clone());
    HttpTool {
        url: Template::compile(&action.url, ValueEscape::Url).unwrap(),
        headers: action.headers.iter().map(|(name, text)| (name.clone(), literal(&json!(text)))).collect(),
        query: action.query.iter().map(|(name, value)| (name.clone(), literal(value))).collect(),
        body: action.body.as_ref().map(|value| Body::Json(literal(value))),
        used: Vec::new(),
        bare: None,
        action,
    }
}

fn built(tool: &HttpTool, input: &Value) -> Result<HttpRequest, ToolFault> {
    let call = ToolCall {
        id: CallId { iteration: 2, index: 1 },
        at: None,
        request: 0,
        input: &Arc::new(input.clone()),
        run_input: &Value::Null,
        lists: None,
        run_id: "run/7",
        loop_name: "test",
        json: JsonRule::PRESENT,
        now: "2026-01-01T00:00:00Z",
        model: "m",
        deadline: Duration::from_secs(1),
        left: Allowance::default(),
        trace: None,
        answered: &[],
        listener: None,
        wait: None,
    };
    let scope = Scope {
        arguments: input,
        now: call.now,
        run_id: call.run_id,
        ..Scope::of_input(&Value::Null, JsonRule::Plain.into())
    };
    build(tool, &call, &scope)
}

fn header(request: &HttpRequest, name: &str) -> String {
    request.headers.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

#[test]
fn a_secret_beside_a_value_is_refused_at_the_call_too() {
    // No document compiles to this, but the driver does not rely on that.
    let with = |url: &str, header: &str| {
        let mut tool = tool(&json!({"url": url, "http_method": "GET", "headers": {}}));
        tool.headers.push(("X-Key".to_owned(), Field::compile(&json!(header)).unwrap()));
        built(&tool, &json!({"x": "a.example", "key": "v"})).map_err(|fault| fault.class)
    };
    for (url, header) in [
        ("https://{{x}}/", "orgconfig:k"),
        ("https://{{input.host}}/x", "orgconfig:k"),
        ("https://{{#if x}}a.example/{{/if}}{{input.host}}/", "orgconfig:k"),
        ("https://a.example/", "{{x}} orgconfig:k"),
        ("https://a.example/", "{{input.x}} orgconfig:k"),
        ("https://{{input.host}}/?k=orgconfig:k", "plain"),
    ] {
        assert_eq!(with(url, header).unwrap_err(), "secret not sent", "{url} {header}");
    }
    assert!(with("https://{{x}}/", "{{key}}").is_ok(), "a twin without a secret");
    // A secret alone passes, up to the place where it is resolved.
    assert_eq!(with("https://a.example/{{x}}", "orgconfig:k").unwrap_err(), "a value is missing or can't be used");
}

#[test]
fn input_that_nothing_uses_is_the_body_of_a_post() {
    let mut tool = tool(&json!({"url": "https://a.example/x", "http_method": "POST"}));
    tool.used = vec!["id".to_owned()];
    let input: Value = serde_json::from_str(r#"{"id":"7","n":12345678901234567890123,"t":"a\"b"}"#).unwrap();
    let request = built(&tool, &input).unwrap();
    assert_eq!(request.body.as_deref(), Some(br#"{"n":12345678901234567890123,"t":"a\"b"}"#.as_slice()));
    assert_eq!(header(&request, "content-type"), "application/json");
    assert_eq!(header(&request, "idempotency-key"), "run%2F7-2-1");
    assert_eq!(request.url.as_str(), "https://a.example/x");
}

#[test]
fn input_that_nothing_uses_is_the_query_of_a_get() {
    let mut tool =
        tool(&json!({"url": "https://a.example/x?k=1", "http_method": "GET", "query": {"q": "a&b", "none": null}}));
    tool.used = vec!["id".to_owned()];
    let input =
        json!({"id": 1, "tags": ["a b", "c=d"], "o": {"x": 1}, "yes": true, "gone": null, "q": "other", "é": "#"});
    let request = built(&tool, &input).unwrap();
    assert_eq!(
        request.url.query().unwrap(),
        "k=1&q=a%26b&tags=a%20b&tags=c%3Dd&o=%7B%22x%22%3A1%7D&yes=true&%C3%A9=%23"
    );
    assert_eq!(request.body, None);
    assert_eq!(header(&request, "content-type"), "");
}

#[test]
fn a_written_body_is_the_whole_body() {
    let tool = tool(&json!({"url": "https://a.example/", "http_method": "DELETE", "body": {"a": [1.50]}}));
    let request = built(&tool, &json!({"unused": 1})).unwrap();
    assert_eq!(request.body.as_deref(), Some(br#"{"a":[1.5]}"#.as_slice()));
    assert_eq!(request.url.query(), None);
}

#[test]
fn a_form_is_encoded_as_one() {
    let none = std::collections::BTreeMap::new();
    let form = |value: Value| encode(&value, "application/x-www-form-urlencoded; charset=utf-8", &none).unwrap();
    let body = form(json!({"a": "x & y=z", "b": [1, 2], "c": null}));
    assert_eq!(String::from_utf8(body).unwrap(), "a=x%20%26%20y%3Dz&b=1&b=2");
    assert_eq!(encode(&json!("plain"), "text/plain", &none).unwrap(), b"plain");
    assert_eq!(encode(&json!("plain"), "application/json", &none).unwrap(), b"\"plain\"");
    let styles = [("m".to_owned(), ValueStyle::Brackets)].into();
    let body = encode(&json!({"m": {"k": "v", "n": null}}), "application/x-www-form-urlencoded", &styles).unwrap();
    assert_eq!(String::from_utf8(body).unwrap(), "m%5Bk%5D=v");
}

#[test]
fn each_style_has_its_form_and_what_has_none_is_refused() {
    let written = |value: Value, style: ValueStyle| {
        let (mut pairs, mut url) = (FormPairs::default(), parse_url("https://a.example/").unwrap());
        pairs.add("a", &value, style).map_err(|fault| fault.detail)?;
        pairs.add_to(&mut url);
        Ok::<_, String>(url.query().unwrap_or_default().to_owned())
    };
    use ValueStyle::{Brackets, Comma, Pipe, Repeat, Space};
    for (value, style, expected) in [
        (json!([1, "b c"]), Repeat, "a=1&a=b%20c"),
        (json!([1, null]), Repeat, "a=1&a=null"),
        (json!([1, "b,c"]), Comma, "a=1,b%2Cc"),
        (json!([1, "b c"]), Space, "a=1%20b%20c"),
        (json!(["x", "y"]), Pipe, "a=x%7Cy"),
        (json!("x,y"), Comma, "a=x%2Cy"),
        (json!([]), Comma, ""),
        (json!(null), Brackets, ""),
        (json!({"x": 1, "y": {"z": "&"}, "n": null}), Brackets, "a%5Bx%5D=1&a%5By%5D%5Bz%5D=%26"),
        (json!(["p", "q"]), Brackets, "a%5B%5D=p&a%5B%5D=q"),
        (json!({"x": 1}), Repeat, "a=%7B%22x%22%3A1%7D"),
    ] {
        assert_eq!(written(value.clone(), style).as_deref(), Ok(expected), "{value} {style:?}");
    }
    for (value, style) in [
        (json!({"x": 1}), Comma),
        (json!([[1]]), Pipe),
        (json!([{"x": 1}]), Brackets),
        (json!({"x": [{"y": 1}]}), Brackets),
    ] {
        assert!(written(value.clone(), style).unwrap_err().contains("`a"), "{value} {style:?}");
    }
}

#[test]
fn a_body_is_of_the_type_that_is_sent() {
    let post = |headers: Value| tool(&json!({"url": "http://x/", "http_method": "POST", "headers": headers}));
    let form =
        built(&post(json!({"content-type": "application/x-www-form-urlencoded"})), &json!({"v": "x y&z"})).unwrap();
    assert_eq!(form.body.as_deref(), Some(&b"v=x%20y%26z"[..]));
    for several in ["multipart/form-data", "Multipart/Mixed; boundary=x"] {
        let refused = built(&post(json!({"Content-Type": several})), &json!({"v": 1})).unwrap_err();
        assert!(refused.detail.contains("without its parts"), "{refused:?}");
    }
    let mut text = post(json!({"Content-Type": "multipart/mixed; boundary=x"}));
    text.body = Some(Body::Json(Field::Literal(json!("--x\r\n\r\na\r\n--x--"))));
    assert_eq!(built(&text, &json!({})).unwrap().body.as_deref(), Some(&b"--x\r\n\r\na\r\n--x--"[..]));
}

#[test]
fn the_authors_headers_win() {
    let action = json!({
        "url": "https://a.example/", "http_method": "PUT",
        "headers": {"Idempotency-Key": "mine", "Accept": "text/csv", "Content-Type": "text/x", "User-Agent": "me"}
    });
    let request = built(&tool(&action), &json!({})).unwrap();
    for (name, value) in
        [("idempotency-key", "mine"), ("accept", "text/csv"), ("content-type", "text/x"), ("user-agent", "me")]
    {
        assert_eq!(header(&request, name), value);
        assert_eq!(request.headers.get_all(name).iter().count(), 1);
    }
}

#[test]
fn control_characters_never_reach_a_header() {
    let bad = (0..0x20_u8).chain([0x7f]).map(char::from);
    for c in bad {
        for value in [format!("a{c}b"), format!("{c}"), format!("a\r\n{c}x: y")] {
            let fault = header_map(&[("x-a".to_owned(), value.clone())], "k", None).unwrap_err();
            assert_eq!(fault.class, "header not allowed", "{value:?}");
            assert!(!fault.detail.contains(c), "the fault repeats it: {fault:?}");
        }
    }
    let fine = header_map(&[("x-a".to_owned(), "é: ok ; \"x\" \u{85}".to_owned())], "k", None).unwrap();
    assert_eq!(fine.get("x-a").unwrap().as_bytes(), "é: ok ; \"x\" \u{85}".as_bytes());
}

#[test]
fn header_names_are_the_declarations_and_not_ours() {
    for name in
        ["x y", "x\r\ny", "x:", "", "é", "Host", "Content-Length", "Transfer-Encoding", "connection", "TE", "Upgrade"]
    {
        let fault = header_map(&[(name.to_owned(), "v".to_owned())], "k", None).unwrap_err();
        assert_eq!(fault.class, "header not allowed", "{name:?}");
    }
}

#[test]
fn a_strange_run_id_makes_one_harmless_key() {
    let headers = header_map(&[], "a\r\nx-evil: 1\té", None).unwrap();
    assert_eq!(headers.get("idempotency-key").unwrap(), "a%0D%0Ax-evil%3A%201%09%C3%A9");
    assert!(headers.get("x-evil").is_none());
}

#[test]
fn addresses_that_a_parser_would_fold_are_refused() {
    for text in [
        "https://a.example/x/../y",
        "https://a.example/x/..",
        "https://a.example/..%2f",
        "https://a.example/%2e%2E/y",
        "https://a.example/.%2e/y",
        "https://a.example/./y",
        "https://a.example/x\\..\\y",
        "https://a.example/a\r\nx: y",
        "https://a.example/a\tb",
        "https://a.example/a b",
        " https://a.example/",
        "https://a.example/\0",
        // The next part would be the host.
        "http:///a.example/x",
        "http:////a.example",
        "http://\\a.example/x",
        "http://?a.example",
        "http:/a.example/x",
        "http:a.example",
        "/relative",
        "a.example/x",
        "https://",
        "",
    ] {
        let refused = parse_url(text).map_err(|fault| fault.class);
        if text.ends_with("..%2f") {
            // One segment of the path is named `..%2f`: it is sent unchanged.
            assert_eq!(refused.unwrap().path(), "/..%2f");
            continue;
        }
        assert_eq!(refused.unwrap_err(), "address not valid", "{text:?}");
    }
    assert_eq!(parse_url("https://a.example/x..y/.z/...?q=../..").unwrap().path(), "/x..y/.z/...");
}

#[test]
fn queries_are_added_to_what_is_there() {
    let mut url = parse_url("https://a.example/?x=1").unwrap();
    let mut pairs = FormPairs::default();
    pairs.add("n", &serde_json::from_str("1.10").unwrap(), ValueStyle::Repeat).unwrap();
    pairs.add("a&b=", &json!("é+ #"), ValueStyle::Repeat).unwrap();
    pairs.add_to(&mut url);
    assert_eq!(url.query().unwrap(), "x=1&n=1.10&a%26b%3D=%C3%A9%2B%20%23");
    let mut empty = parse_url("https://a.example/?").unwrap();
    FormPairs::default().add_to(&mut empty);
    assert_eq!(empty.query(), Some(""));
    pairs.add_to(&mut empty);
    assert_eq!(empty.query().unwrap(), "n=1.10&a%26b%3D=%C3%A9%2B%20%23");
}

#[test]
fn no_header_is_in_the_debug_output_of_the_client_and_answers_are_not_compressed() {
    let headers = header_map(&[("x-key".to_owned(), "k1-s3cret".to_owned())], "k", Some("text/plain")).unwrap();
    assert!(!format!("{headers:?}").contains("k1-s3cret"), "{headers:?}");
    let names = ["accept", "accept-encoding", "content-type", "idempotency-key", "x-key"];
    assert!(names.iter().all(|name| headers.contains_key(*name)) && headers.len() == names.len(), "{headers:?}");
    assert_eq!(headers.get("accept-encoding").unwrap(), "identity");
    assert_eq!(headers.get("accept").unwrap(), "application/json");
}
