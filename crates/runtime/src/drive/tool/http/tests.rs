//! What is sent over the network, and what is made of the answers.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::http::header::HeaderMap;
use serde_json::json;

use super::request::{header_map, parse_url};
use super::*;

fn vault() -> Arc<Vault> {
    Arc::new(Vault::new(std::collections::BTreeMap::new(), std::path::Path::new("/")))
}
use crate::drive::egress::NameLookup;
use crate::drive::tool::test_server::{TestServer, answer};
use loopctl_lang::language::project::Allow;

fn allow(private_addresses: bool) -> Allow {
    Allow { private_addresses, ..Allow::default() }
}

fn http(private_addresses: bool) -> HttpRunner {
    HttpRunner::new(Egress::new(&allow(private_addresses)), &vault())
}

fn request(method: Method, url: &str) -> HttpRequest {
    HttpRequest { method, url: parse_url(url).unwrap(), headers: header_map(&[], "run-1-0", None).unwrap(), body: None }
}

fn success(statuses: &[u16]) -> AnswerPolicy<'_> {
    AnswerPolicy { ok_status: Some(statuses), ..AnswerPolicy::default() }
}

fn progress() -> HttpProgress {
    HttpProgress::within(Duration::from_secs(30))
}

async fn get(url: &str) -> Result<Value, ToolFault> {
    http(true).perform(request(Method::GET, url), AnswerPolicy::default(), &progress()).await.map_err(|raw| raw.fault)
}

#[tokio::test]
async fn json_keeps_its_digits_and_its_order() {
    let body = r#"{"z":12345678901234567890123,"a":1.10,"m":[1E400,-0]}"#;
    let server = TestServer::json(body);
    assert_eq!(get(&server.url("/")).await.unwrap().to_string(), body.replace("1E400", "1e+400"));
}

#[tokio::test]
async fn the_server_sees_our_headers_and_nothing_of_a_browser() {
    let server = TestServer::json("{}");
    get(&server.url("/a?b=1#fragment")).await.unwrap();
    let sent = server.requests().remove(0).to_lowercase();
    assert!(sent.starts_with("get /a?b=1 http/1.1\r\n"), "{sent}");
    for header in [
        concat!("user-agent: loopctl/", env!("CARGO_PKG_VERSION"), "\r\n"),
        "accept: application/json\r\n",
        "accept-encoding: identity\r\n",
        "idempotency-key: run-1-0\r\n",
    ] {
        assert!(sent.contains(header), "{header} in {sent}");
    }
    assert!(!sent.contains("cookie") && !sent.contains("referer"), "{sent}");
}

#[tokio::test]
async fn a_part_of_an_answer_is_no_success_unless_the_document_names_its_status() {
    let headers = "content-type: application/json\r\ncontent-range: items 0-1/50\r\n";
    let part = || TestServer::saying(answer(206, headers, "[1,2]"));
    let fault = get(&part().url("/")).await.unwrap_err();
    assert!(fault.class.starts_with("http 206"), "{fault:?}");
    let named = http(true).perform(request(Method::GET, &part().url("/")), success(&[206]), &progress()).await;
    assert_eq!(named.map_err(|raw| raw.fault), Ok(json!([1, 2])));
    let with_range = |range: &str| {
        let headers = format!("content-type: application/json\r\ncontent-range: {range}\r\n");
        TestServer::saying(answer(200, &headers, "[1,2]"))
    };
    for range in ["items 0-1/50", "0-1/3", "bytes 10-14/15"] {
        let fault = get(&with_range(range).url("/")).await.unwrap_err();
        assert!(fault.class.starts_with("http 200: a part") && fault.detail.contains(range), "{range}: {fault:?}");
    }
    let url = with_range("0-1/3").url("/");
    let named = http(true).perform(request(Method::GET, &url), success(&[200]), &progress()).await;
    assert_eq!(named.map_err(|raw| raw.fault), Ok(json!([1, 2])));
    for whole in ["0-1/*", "bytes 0-4/5", "*/50", "items", "1-0/5"] {
        assert_eq!(get(&with_range(whole).url("/")).await, Ok(json!([1, 2])), "{whole}");
    }
}

#[tokio::test]
async fn a_body_is_json_text_or_a_failure() {
    let json_type = "content-type: application/problem+json; charset=utf-8\r\n";
    let cases = [
        ("content-type: text/plain\r\n", "[1,2]", json!([1, 2])),
        ("content-type: text/plain\r\n", "  {\"a\":1} ", json!({"a": 1})),
        ("content-type: text/plain\r\n", "{not json", json!("{not json")),
        ("content-type: text/plain\r\n", "12", json!("12")),
        (json_type, "12", json!(12)),
        (json_type, "broken", json!("broken")),
        ("", "\u{feff}{\"a\":1}", json!({"a": 1})),
        ("", "", json!({"status": 200})),
        ("", r#"{"a":"cut \ud83d","b":"\ud83d\ude00"}"#, json!({"a": "cut \u{fffd}", "b": "\u{1f600}"})),
        (json_type, r#""\udc00""#, json!("\u{fffd}")),
        ("", r#"{"a":"\ud83d","#, json!(r#"{"a":"\ud83d","#)),
    ];
    for (headers, body, expected) in cases {
        let server = TestServer::saying(answer(200, headers, body));
        assert_eq!(get(&server.url("/")).await.unwrap(), expected, "{body}");
    }
    let server = TestServer::saying(answer(200, "content-type: image/png\x01<b>\r\n", "\u{0}\u{1}"));
    let server_2 = TestServer::saying(answer(200, "content-type: image/png; x=y\r\n", "a\0b"));
    assert!(get(&server.url("/")).await.is_err());
    assert_eq!(get(&server_2.url("/")).await.unwrap_err().class, "binary answer of 3 bytes, type image/png");
}

#[tokio::test]
async fn json_deeper_than_the_parser_goes_stays_text() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let server = TestServer::json(&deep);
    assert_eq!(get(&server.url("/")).await.unwrap(), Value::String(deep));
}

#[tokio::test]
async fn head_gives_status_and_some_headers() {
    let server = TestServer::saying(answer(200, "etag: \"x\"\r\nset-cookie: a=b\r\ncontent-type: text/css\r\n", ""));
    let value = http(true)
        .perform(request(Method::HEAD, &server.url("/")), AnswerPolicy::default(), &progress())
        .await
        .unwrap();
    assert_eq!(
        value,
        json!({"status": 200, "headers": {"content-length": "0", "content-type": "text/css", "etag": "\"x\""}})
    );
}

#[tokio::test]
async fn a_failure_shows_the_model_its_status_and_the_operator_its_text() {
    let server = TestServer::saying(answer(503, "retry-after: 7\r\n", &"no ".repeat(1000)));
    let fault = get(&server.url("/")).await.unwrap_err();
    assert_eq!(fault.class, "http 503");
    assert!(fault.detail.starts_with("retry-after: 7\nno no "), "{}", fault.detail);
    let detail = crate::drive::tool::output::shortened(fault.detail);
    assert!(detail.ends_with("no [1015 more bytes]"), "{detail}");
}

#[tokio::test]
async fn the_action_says_which_statuses_are_good() {
    let server = TestServer::saying(answer(404, "", "[]"));
    let url = server.url("/");
    assert_eq!(
        http(true).perform(request(Method::GET, &url), success(&[200, 404]), &progress()).await.unwrap(),
        json!([])
    );
    assert_eq!(
        http(true).perform(request(Method::GET, &url), success(&[200]), &progress()).await.unwrap_err().fault.class,
        "http 404"
    );
}

#[tokio::test]
async fn an_endless_body_is_cut_at_the_limit() {
    let server = TestServer::new(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        let chunk = [b"10000\r\n".as_slice(), &vec![b'x'; 0x10000], b"\r\n"].concat();
        // Ends when the other side hangs up.
        while stream.write_all(&chunk).is_ok() {}
    });
    assert_eq!(get(&server.url("/")).await.unwrap_err().class, "response too large");
}

#[tokio::test]
async fn the_largest_allowed_body_passes_and_a_byte_more_does_not() {
    let server = TestServer::saying(answer(200, "", &"x".repeat(crate::drive::tool::output::MAX_BODY)));
    assert!(get(&server.url("/")).await.is_ok());
    let server = TestServer::saying(answer(200, "", &"x".repeat(crate::drive::tool::output::MAX_BODY + 1)));
    assert_eq!(get(&server.url("/")).await.unwrap_err().class, "response too large");
}

#[tokio::test]
async fn faults_of_the_network_have_their_classes() {
    let compressed = TestServer::saying(answer(200, "content-encoding: gzip\r\n", "xx"));
    assert_eq!(get(&compressed.url("/")).await.unwrap_err().class, "compressed answer, not asked for");
    let short = TestServer::saying("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    assert_eq!(get(&short.url("/")).await.unwrap_err().class, "response cut off");
    let silent = TestServer::new(|_, _| {});
    let class = get(&silent.url("/")).await.unwrap_err().class;
    assert!(["no valid http answer", "connection reset", "response cut off"].contains(&class.as_str()), "{class}");
    let nonsense = TestServer::saying("SSH-2.0-x\r\n\r\n");
    assert_eq!(get(&nonsense.url("/")).await.unwrap_err().class, "no valid http answer");
    let head = TestServer::saying(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(10_000_000)));
    assert_eq!(get(&head.url("/")).await.unwrap_err().class, "no valid http answer");

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(get(&format!("http://{free}/")).await.unwrap_err().class, format!("connection refused by {free}"));
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap();
    std::thread::spawn(move || plain.accept().and_then(|(mut stream, _)| stream.write_all(b"plain text, no tls")));
    let tls = get(&format!("https://{address}/")).await.unwrap_err();
    assert_eq!(tls.class, "tls failed", "{}", tls.detail);
    assert!(tls.detail.starts_with(&format!("{address}: ")), "{}", tls.detail);
}

/// The test's listener in every spelling of its address.
fn spellings(server: &TestServer) -> Vec<String> {
    let port = server.address.port();
    ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "localhost", "a.localhost"]
        .iter()
        .map(|host| format!("http://{host}:{port}/"))
        .collect()
}

#[tokio::test]
async fn no_spelling_of_loopback_reaches_the_listener() {
    let server = TestServer::json("{}");
    for url in spellings(&server) {
        assert_eq!(
            http(false)
                .perform(request(Method::GET, &url), AnswerPolicy::default(), &progress())
                .await
                .unwrap_err()
                .fault
                .class,
            "address not allowed"
        );
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn with_private_addresses_they_do() {
    let server = TestServer::json("{}");
    let reached = spellings(&server);
    for url in reached.iter().filter(|url| !url.contains("a.localhost")) {
        assert!(get(url).await.is_ok(), "{url}");
    }
    assert_eq!(server.requests().len(), reached.len() - 1);
}

fn resolving(address: IpAddr, private: bool) -> (HttpRunner, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let calls = Arc::clone(&count);
    let lookup: NameLookup = Arc::new(move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { Ok(vec![address]) })
    });
    (HttpRunner::new(Egress::with_lookup(&allow(private), lookup), &vault()), count)
}

#[tokio::test]
async fn a_public_name_at_a_private_address_is_not_dialled() {
    let server = TestServer::json("{}");
    let url = format!("http://rebound.example:{}/", server.address.port());
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let (guarded, _) = resolving(loopback, false);
    let RawFault { fault, transient, .. } =
        guarded.perform(request(Method::GET, &url), AnswerPolicy::default(), &progress()).await.unwrap_err();
    assert_eq!(
        (fault.class.as_str(), transient),
        ("address not allowed", None),
        "another attempt would be refused too"
    );
    assert!(fault.detail.contains("rebound.example"), "{}", fault.detail);
    assert_eq!(server.requests().len(), 0);

    // The twin: the same with the guard open. The address that was looked up, once, is the one that was
    // dialled.
    let (open, lookups) = resolving(loopback, true);
    open.perform(request(Method::GET, &url), AnswerPolicy::default(), &progress()).await.unwrap();
    assert_eq!((server.requests().len(), lookups.load(Ordering::SeqCst)), (1, 1));
}

#[tokio::test]
async fn an_unknown_host_is_reported_as_such() {
    let lookup: NameLookup = Arc::new(|_| Box::pin(async { Err(io::Error::other("no such name")) }));
    let http = HttpRunner::new(Egress::with_lookup(&allow(false), lookup), &vault());
    let RawFault { fault, transient, .. } = http
        .perform(request(Method::GET, "http://nowhere.example/"), AnswerPolicy::default(), &progress())
        .await
        .unwrap_err();
    assert_eq!((fault.class.as_str(), transient), ("name not found", Some(Transient::default())));
}

fn redirecting(status: u16, to: &str) -> TestServer {
    let to = to.to_owned();
    TestServer::new(move |request, stream| {
        let text = if request.contains(" /end ") {
            answer(200, "", "{\"end\":true}")
        } else {
            answer(status, &format!("location: {to}\r\n"), "")
        };
        let _ = stream.write_all(text.as_bytes());
    })
}

fn post(url: &str) -> HttpRequest {
    let headers = header_map(&[], "key", Some("application/json")).unwrap();
    HttpRequest { method: Method::POST, url: parse_url(url).unwrap(), headers, body: Some(b"{\"a\":1}".to_vec()) }
}

#[tokio::test]
async fn redirects_inside_the_origin_are_followed() {
    for (status, method, has_body) in
        [(301, "GET", false), (302, "GET", false), (303, "GET", false), (307, "POST", true), (308, "POST", true)]
    {
        let server = redirecting(status, "/end");
        assert_eq!(
            http(true).perform(post(&server.url("/")), AnswerPolicy::default(), &progress()).await.unwrap(),
            json!({"end": true})
        );
        let second = server.requests().remove(1);
        assert!(second.starts_with(&format!("{method} /end ")), "{status}: {second}");
        assert_eq!(second.contains("{\"a\":1}"), has_body, "{status}");
        assert_eq!(second.contains("content-type"), has_body, "{status}");
    }
}

#[tokio::test]
async fn redirects_to_another_host_are_reported_and_not_followed() {
    let other = TestServer::json("{}");
    for to in [
        other.url("/secret-path?token=hunter22"),
        "http://169.254.169.254/latest".to_owned(),
        "https://127.0.0.1/".to_owned(),
        "//evil.test/x".to_owned(),
        "file:///etc/passwd".to_owned(),
        "http://user:word@evil.test/".to_owned(),
    ] {
        let server = redirecting(302, &to);
        let fault = get(&server.url("/")).await.unwrap_err();
        assert!(
            fault.class.starts_with("redirected to ") && fault.class.ends_with(", not followed"),
            "{}",
            fault.class
        );
        assert!(!format!("{fault:?}").contains("hunter22") && !format!("{fault:?}").contains("word"), "{fault:?}");
        assert_eq!(server.requests().len(), 1);
    }
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn credentials_in_a_redirect_are_refused_on_the_same_host_too() {
    let server = TestServer::new(|request, stream| {
        let host = request.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let _ = stream.write_all(answer(302, &format!("location: http://u:p@{host}/\r\n"), "").as_bytes());
    });
    assert!(get(&server.url("/")).await.unwrap_err().class.starts_with("redirected to "));
}

#[tokio::test]
async fn a_circle_of_redirects_ends_after_five() {
    let server = redirecting(307, "/again");
    assert_eq!(get(&server.url("/")).await.unwrap_err().class, "too many redirects");
    assert_eq!(server.requests().len(), 6);
}

#[tokio::test]
async fn a_redirect_without_a_place_is_its_status() {
    let server = TestServer::saying(answer(302, "", ""));
    assert_eq!(get(&server.url("/")).await.unwrap_err().class, "http 302");
}

#[test]
fn debug_of_a_request_shows_no_header_values() {
    let headers: HeaderMap =
        header_map(&[("authorization".to_owned(), "Bearer hunter22".to_owned())], "k", None).unwrap();
    assert!(!format!("{headers:?}").contains("hunter22"));
}
