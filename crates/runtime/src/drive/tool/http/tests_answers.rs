//! What a redirect changes, and what the model and the operator read of an answer that is no success.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::query_pairs::FormPairs;
use super::request::{header_map, parse_url};
use super::*;
use crate::drive::tool::output::MAX_DETAIL;
use crate::drive::tool::test_server::{TestServer, answer};
use loopctl_lang::language::project::Allow;

fn progress() -> HttpProgress {
    HttpProgress::within(Duration::from_secs(30))
}

fn http() -> HttpRunner {
    let allow = Allow { private_addresses: true, ..Allow::default() };
    HttpRunner::new(Egress::new(&allow), &Arc::new(Vault::new(BTreeMap::new(), Path::new("/"))))
}

/// A request with a JSON body.
fn request(method: Method, url: &str) -> HttpRequest {
    let headers = header_map(&[], "key", Some("application/json")).unwrap();
    HttpRequest { method, url: parse_url(url).unwrap(), headers, body: Some(b"{\"a\":1}".to_vec()) }
}

async fn get(url: &str, policy: AnswerPolicy<'_>) -> RawFault {
    http().perform(request(Method::GET, url), policy, &progress()).await.unwrap_err()
}

/// Sends every request but one for `/end` to another place.
fn redirecting(status: u16, to: &str) -> TestServer {
    let to = to.to_owned();
    TestServer::new(move |request, stream| {
        let text = match request.contains(" /end ") {
            true => answer(200, "", ""),
            false => answer(status, &format!("location: {to}\r\n"), ""),
        };
        let _ = stream.write_all(text.as_bytes());
    })
}

#[tokio::test]
async fn a_redirect_makes_a_get_of_a_post_and_of_nothing_that_keeps_its_meaning() {
    for (status, method, second) in [
        (301, Method::PUT, "PUT"),
        (302, Method::PUT, "PUT"),
        (302, Method::DELETE, "DELETE"),
        (303, Method::PUT, "GET"),
        (303, Method::DELETE, "GET"),
        (303, Method::HEAD, "HEAD"),
        (307, Method::PUT, "PUT"),
        (308, Method::DELETE, "DELETE"),
    ] {
        let server = redirecting(status, "/end");
        http().perform(request(method.clone(), &server.url("/")), AnswerPolicy::default(), &progress()).await.unwrap();
        let sent = server.requests().remove(1);
        assert!(sent.starts_with(&format!("{second} /end ")), "{status} {method}: {sent}");
        assert_eq!(sent.contains("content-type"), second != "GET", "{status} {method}: {sent}");
    }
}

#[tokio::test]
async fn a_status_that_redirects_nobody_is_a_failure_whatever_place_it_names() {
    for status in [300, 304, 305, 306] {
        let server = redirecting(status, "/end");
        assert_eq!(get(&server.url("/"), AnswerPolicy::default()).await.fault.class, format!("http {status}"));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_with_a_name_or_a_password_is_not_followed() {
    for credentials in ["u@", ":p@", "u:p@"] {
        let server = TestServer::new(move |request, stream| {
            let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
            let to = format!("location: http://{credentials}{host}/end\r\n");
            let _ = stream.write_all(answer(302, &to, "").as_bytes());
        });
        let class = get(&server.url("/"), AnswerPolicy::default()).await.fault.class;
        assert_eq!(class, format!("redirected to http://{}, not followed", server.address), "{credentials}");
        assert_eq!(server.requests().len(), 1, "{credentials}");
    }
}

#[tokio::test]
async fn of_the_place_of_a_redirect_scheme_host_and_port_are_shown_and_no_more() {
    let long = "h".repeat(300);
    for (to, shown) in [
        ("https://evil.test/path?token=1".to_owned(), "https://evil.test".to_owned()),
        ("https://evil.test:8443/path".to_owned(), "https://evil.test:8443".to_owned()),
        ("file:///etc/passwd".to_owned(), "file://nowhere".to_owned()),
        (format!("http://{long}/"), format!("http://{}", &long[..100])),
    ] {
        let class = get(&redirecting(302, &to).url("/"), AnswerPolicy::default()).await.fault.class;
        assert_eq!(class, format!("redirected to {shown}, not followed"));
    }
}

#[tokio::test]
async fn the_model_reads_short_json_that_says_what_is_wrong_with_its_request() {
    let whole = AnswerPolicy { error_body: true, ..AnswerPolicy::default() };
    let long = format!("{{\"why\":\"{}\"}}", "x".repeat(MAX_DETAIL));
    let exact = format!("\"{}\"", "x".repeat(MAX_DETAIL - 2));
    let why = r#"{"why":"n is negative"}"#;
    // The answer for the model: that of an action without `error_body`, and with it.
    for (status, body, plain, with_body) in [
        (400, why, true, true),
        (499, why, true, true),
        (500, why, false, true),
        (399, why, false, true),
        (400, exact.as_str(), true, true),
        (400, long.as_str(), false, true),
        (400, "no JSON", false, true),
        (400, " \n", false, false),
    ] {
        let server = TestServer::saying(answer(status, "content-type: application/json\r\n", body));
        for (policy, is_read) in [(AnswerPolicy::default(), plain), (whole, with_body)] {
            let RawFault { fault, answer, transient, .. } = get(&server.url("/"), policy).await;
            assert_eq!(fault.class, format!("http {status}"));
            assert_eq!(transient, Some(Transient { status: Some(status), after: None }));
            let read = answer.map(|answer| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned));
            let text = body.trim_matches('"').to_owned();
            assert_eq!(read, is_read.then_some(text), "{status} {body:.40} {policy:?}");
            // What the model reads is not said twice.
            assert_eq!(fault.detail, if is_read { "" } else { body }, "{status} {body:.40} {policy:?}");
        }
    }
}

#[tokio::test]
async fn a_long_or_compressed_failure_is_read_to_a_bound_or_not_at_all() {
    let whole = AnswerPolicy { error_body: true, ..AnswerPolicy::default() };
    let body = format!("[{}]", "1,".repeat(40_000));
    let server = TestServer::saying(answer(400, "content-type: application/json\r\n", &body));
    let RawFault { answer: read, .. } = get(&server.url("/"), whole).await;
    // It is no JSON any more where it is cut.
    assert_eq!(read.as_deref(), Some(&Value::from(&body[..64 * 1024])));
    let gzip = TestServer::saying(answer(503, "content-encoding: gzip\r\nretry-after: 7\r\n", "{}"));
    let RawFault { fault, answer: read, transient, .. } = get(&gzip.url("/"), whole).await;
    assert_eq!((fault.detail.as_str(), read), ("retry-after: 7\ncontent-encoding: gzip", None));
    assert_eq!(transient, Some(Transient { status: Some(503), after: Some(Duration::from_secs(7)) }));
    let limit = "x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 6m0s\r\n";
    for (status, after) in [(429, Some(Duration::from_secs(360))), (500, None)] {
        let limited = TestServer::saying(answer(status, limit, "{}"));
        let RawFault { transient, .. } = get(&limited.url("/"), whole).await;
        assert_eq!(transient, Some(Transient { status: Some(status), after }));
    }
    let plain = TestServer::saying(answer(200, "content-encoding: Identity\r\n", "{\"a\":1}"));
    let value = http().perform(request(Method::GET, &plain.url("/")), AnswerPolicy::default(), &progress()).await;
    assert_eq!(value.unwrap(), json!({ "a": 1 }));
}

#[test]
fn a_query_is_added_to_an_empty_one_without_a_separator() {
    let mut pairs = FormPairs::default();
    pairs.add("n", &json!(1), loopctl_lang::language::action::ValueStyle::Repeat).unwrap();
    for (before, after) in [
        ("https://a.example/", "https://a.example/?n=1"),
        ("https://a.example/?", "https://a.example/?n=1"),
        ("https://a.example/?x", "https://a.example/?x&n=1"),
    ] {
        let mut url = parse_url(before).unwrap();
        pairs.add_to(&mut url);
        assert_eq!(url.as_str(), after);
        let mut same = parse_url(before).unwrap();
        FormPairs::default().add_to(&mut same);
        assert_eq!(same.as_str(), before);
    }
}
