//! What is too much costs the server less memory than the longest body: each case with what it had before
//! and after.

use std::io::Write as _;

use serde_json::json;

use crate::common::complete;
use crate::serve::client::{Serving, parse, place, read_until_closed};

/// The longest body of these servers, in bytes.
const LIMIT: usize = 2 * 1024 * 1024;

/// What the case of many requests is called.
const MANY: &str = "many requests in one go";

/// Sends bytes without waiting for answers, and reads until the other side closes.
fn flood(server: &Serving, bytes: &[u8]) -> Vec<u8> {
    let stream = server.connect();
    let mut reader = stream.try_clone().unwrap();
    std::thread::scope(|scope| {
        // The other side may close before it has read all.
        scope.spawn(|| drop((&stream).write_all(bytes)));
        read_until_closed(&mut reader)
    })
}

/// A body in chunks, which is not ended.
fn in_chunks(post: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{post}transfer-encoding: chunked\r\n\r\n").into_bytes();
    for piece in body.chunks(60_000) {
        bytes.extend(format!("{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()).chain(*b"\r\n"));
    }
    bytes
}

/// The ten cases: what they are called, what is sent, and the answers that are right. The last one sends so
/// many requests in one go.
fn cases(server: &Serving, many: usize) -> Vec<(&'static str, Vec<u8>, &'static [u16])> {
    let host = format!("host: {}\r\n", server.address);
    let post = format!("POST /check HTTP/1.1\r\n{host}content-type: application/json\r\n");
    let over = vec![b' '; LIMIT + 1];
    let sized = format!("{post}content-length: {}\r\n\r\n", over.len());
    let chunked = in_chunks(&post, &over);
    let promised = format!("{post}content-length: 1000000000000\r\n\r\n");
    let headers: String = (0..101).map(|n| format!("x-{n}: 1\r\n")).collect();
    let mut gzip = format!("{post}content-encoding: gzip\r\ncontent-length: 500000\r\n\r\n").into_bytes();
    gzip.extend_from_slice(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03");
    gzip.resize(gzip.len() + 499_990, 0);
    let one = format!("GET /healthz HTTP/1.1\r\n{host}\r\n");
    let last = format!("GET /healthz HTTP/1.1\r\n{host}connection: close\r\n\r\n");
    let get = |target: String, more: String| format!("GET {target} HTTP/1.1\r\n{host}{more}\r\n").into_bytes();
    vec![
        ("a body of limit + 1 with its length", [sized.as_bytes(), &over].concat(), &[413]),
        ("a body of limit + 1 in chunks", chunked, &[413]),
        ("a body without a length", [post.as_bytes(), b"\r\n", &over].concat(), &[200, 400]),
        ("a length of 1 TB", promised.into_bytes(), &[413]),
        ("101 headers", get("/healthz".to_owned(), headers), &[431]),
        ("a head of 64 KB", get("/healthz".to_owned(), format!("x: {}\r\n", "x".repeat(65_536))), &[431]),
        ("a head of 40 KB", get("/healthz".to_owned(), format!("x: {}\r\n", "x".repeat(40_000))), &[431]),
        ("an address of 1 MB", get(format!("/{}", "x".repeat(1 << 20)), String::new()), &[414, 431]),
        ("a body in gzip", gzip, &[415]),
        (MANY, format!("{}{last}", one.repeat(many - 1)).into_bytes(), &[200]),
    ]
}

fn cost(many: usize) {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    // What is made once: the description, the routes, the first answers of each kind.
    assert_eq!(server.get("/openapi.json").status, 200);
    assert_eq!(server.send("POST", "/check", &[], &vec![b' '; LIMIT]).status, 200);
    let post = format!(
        "POST /check HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n",
        server.address
    );
    let whole = [in_chunks(&post, &vec![b' '; LIMIT]).as_slice(), b"0\r\n\r\n"].concat();
    assert_eq!(parse(&flood(&server, &whole)).map(|reply| reply.status), Some(200));
    assert_eq!(flood(&server, b"GET / HTTP/1.0\r\n\r\n").first(), Some(&b'H'));
    for (name, bytes, right) in cases(&server, many) {
        let before = server.memory();
        let answer = flood(&server, &bytes);
        let grown = server.memory().saturating_sub(before);
        eprintln!("{name}: {grown} KB more, of {before} KB");
        assert!(grown < LIMIT / 1024, "{name}: {grown} KB");
        let text = String::from_utf8_lossy(&answer);
        let answers = text.matches("HTTP/1.1 ").count();
        // The other side may be gone before all was sent: then there is no answer to read.
        let Some(reply) = parse(&answer) else { continue };
        assert!(right.contains(&reply.status), "{name}: {reply:?}");
        assert!(text.contains("connection: close"), "{name}: the connection ends: {reply:?}");
        assert_eq!(answers, if name == MANY { many } else { answers.min(2) }, "{name}");
    }
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn what_is_too_much_costs_less_memory_than_the_longest_body() {
    cost(1_000);
}

#[test]
#[ignore = "nightly: 10,000 requests on one connection"]
fn ten_thousand_requests_in_one_go_cost_less_memory_than_the_longest_body() {
    cost(10_000);
}
