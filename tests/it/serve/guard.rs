//! What a request may be: its host, its origin, its size and its form.

use serde_json::json;

use crate::common::complete;
use crate::serve::client::{Serving, parse, place};

const BODY: &[u8] = br#"{"loop":"test"}"#;

#[test]
fn another_host_s_name_is_refused_even_on_this_machine() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &["--host", "agents.example.com"]);
    let port = server.address.port();
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "evil.example:80",
        "localhost.",
    ] {
        let status = server.send("GET", "/healthz", &[("host", host)], b"").status;
        let known = host == "localhost.";
        assert_eq!(status, if known { 200 } else { 421 }, "{host}");
        let started = server.send("POST", "/agents/execute", &[("host", host)], BODY).status;
        assert_eq!(started, if known { 200 } else { 421 }, "{host}");
    }
    for host in ["localhost", "LOCALHOST:1", "[::1]", "agents.example.com", &format!("127.0.0.1:{port}")] {
        assert_eq!(server.send("GET", "/healthz", &[("host", host)], b"").status, 200, "{host}");
    }
    for host in ["", "a b", "a@localhost", "localhost, evil.example"] {
        assert_eq!(server.send("GET", "/healthz", &[("host", host)], b"").status, 400, "{host:?}");
    }
    let twice = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(parse(&server.raw(twice)).unwrap().status, 400);
    let none = b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n";
    assert_eq!(parse(&server.raw(none)).unwrap().status, 400);
    let absolute = b"GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(parse(&server.raw(absolute)).unwrap().status, 400);
}

#[test]
fn a_page_of_another_site_changes_nothing() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let own = format!("http://{}", server.address);
    for (header, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        for (method, target) in [("POST", "/agents/execute"), ("POST", "/agents/a/resume"), ("DELETE", "/agents/a")] {
            let reply = server.send(method, target, &[(header, value)], BODY);
            assert_eq!((reply.status, reply.code()), (403, "foreign_origin".to_owned()), "{method} {value}");
        }
    }
    assert_eq!(
        server.send("POST", "/agents/execute", &[("origin", &own), ("sec-fetch-site", "same-origin")], BODY).status,
        200
    );
    for kind in
        ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", ""]
    {
        let reply = server.send("POST", "/agents/execute", &[("content-type", kind)], BODY);
        assert_eq!((reply.status, reply.code()), (415, "not_json".to_owned()), "{kind}");
    }
    let asked = [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
    let preflight = server.send("OPTIONS", "/agents/execute", &asked, b"");
    assert_eq!(preflight.status, 405);
    for reply in [preflight, server.send("GET", "/loops", &asked, b"")] {
        assert!(!reply.headers.iter().any(|(name, _)| name.starts_with("access-control")), "{reply:?}");
        assert!(reply.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn what_is_too_much_is_refused_whichever_way_it_comes() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &["--max-body-bytes", "1000"]);
    let full = |size: usize| {
        let body = format!(r#"{{"loop":"test","input":{{"x":"{}"}}}}"#, "x".repeat(size));
        let fill = 1000 - body.len().min(1000);
        (body, fill)
    };
    let (body, fill) = full(0);
    let exact = full(fill).0;
    assert_eq!((body.len() + fill, exact.len()), (1000, 1000));
    assert_eq!(server.send("POST", "/agents/execute", &[], exact.as_bytes()).status, 200);
    let over = full(fill + 1).0;
    let reply = server.send("POST", "/agents/execute", &[], over.as_bytes());
    assert_eq!((reply.status, reply.code()), (413, "body_too_large".to_owned()));
    let head =
        format!("POST /agents/execute HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", server.address);
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n3e9\r\n{over}\r\n0\r\n\r\n");
    assert_eq!(parse(&server.raw(chunked.as_bytes())).unwrap().status, 413);
    let promised = format!("{head}content-length: 1000000000\r\nconnection: close\r\n\r\n");
    assert_eq!(parse(&server.raw(promised.as_bytes())).unwrap().status, 413);
    for encoding in ["gzip", "br", "identity, gzip"] {
        let reply = server.send("POST", "/agents/execute", &[("content-encoding", encoding)], BODY);
        assert_eq!((reply.status, reply.code()), (415, "encoded_body".to_owned()));
    }
    let headers: Vec<(String, String)> = (0..101).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(server.send("GET", "/healthz", &headers, b"").status, 431);
    assert_eq!(server.send("GET", "/healthz", &[("x", &"x".repeat(64 * 1024))], b"").status, 431);
    assert_eq!(server.get(&format!("/healthz?{}", "x".repeat(9_000))).status, 414);
    let long = server.raw(format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(1 << 20)).as_bytes());
    // The other side may be gone before all was sent: then there is no answer to read.
    assert!(parse(&long).is_none_or(|reply| matches!(reply.status, 414 | 431)));
}

#[test]
fn one_request_is_never_read_as_two() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let at = server.address;
    let inner = format!("GET /loops HTTP/1.1\r\nhost: {at}\r\n\r\n");
    let head = format!("POST /check HTTP/1.1\r\nhost: {at}\r\ncontent-type: application/json\r\n");
    let length = inner.len() + 7;
    let cases = [
        format!("{head}content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}transfer-encoding: chunked\r\ncontent-length: {length}\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}content-length: 2\r\ncontent-length: {length}\r\n\r\n{{}}{inner}"),
        format!("{head}content-length: 2, {length}\r\n\r\n{{}}{inner}"),
        format!("{head}transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}transfer-encoding : chunked\r\n\r\n0\r\n\r\n{inner}"),
        format!("{head}content-length : {length}\r\n\r\n{{}}{inner}"),
        format!("{head}x: a\r\n content-length: {length}\r\n\r\n{inner}"),
        format!("{head}content-length: +2\r\n\r\n{{}}{inner}"),
        format!("{head}content-length: 0x2\r\n\r\n{{}}{inner}"),
        format!("{head}x: a\rcontent-length: 2\r\n\r\n{inner}"),
    ];
    for case in cases {
        let answer = String::from_utf8_lossy(&server.raw(case.as_bytes())).into_owned();
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{case:?} gave {answers}: {answer}");
        assert!(!answer.contains("\"loops\""), "{case:?}: {answer}");
        // What is refused is refused plainly; the two safe readings end the connection.
        assert!(
            answer.starts_with("HTTP/1.1 4") || answer.contains("connection: close") || answer.is_empty(),
            "{answer}"
        );
    }
    // The twin: two requests that are two are answered as two.
    let two =
        format!("{head}content-length: 2\r\n\r\n{{}}GET /loops HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n");
    let answer = String::from_utf8_lossy(&server.raw(two.as_bytes())).into_owned();
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
    assert!(answer.contains("\"loops\""));
}

#[test]
fn an_answer_carries_the_request_s_id() {
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &[]);
    assert_eq!(server.send("GET", "/healthz", &[("x-request-id", "job-7")], b"").header("x-request-id"), Some("job-7"));
    let made = server.get("/healthz").header("x-request-id").unwrap().to_owned();
    assert_ne!(made, server.get("/healthz").header("x-request-id").unwrap());
    let forged = server.send("GET", "/healthz", &[("x-request-id", "a b\u{9}c")], b"");
    assert!(!forged.header("x-request-id").unwrap().contains("a b"));
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &["--body-timeout-ms", "100"]);
    let head = format!("POST /check HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n", server.address);
    for half in [
        format!("{head}content-length: 100\r\n\r\n{{\"a\":"),
        format!("{head}transfer-encoding: chunked\r\n\r\n5\r\n{{"),
    ] {
        let reply = parse(&server.raw(half.as_bytes())).expect("an answer, and the end of the connection");
        assert_eq!((reply.status, reply.code()), (408, "body_too_late".to_owned()));
    }
}
