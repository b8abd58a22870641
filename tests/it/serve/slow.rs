//! Connections that are slow on purpose: each is closed in its time, and nobody else is kept waiting.
//! Looked at on the sockets, not at a setting.

#![allow(clippy::disallowed_methods, reason = "deadlines are measured here")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::serve::client::{Serving, place};

/// What a slow one sends: at first, and again and again.
struct Slow {
    name: &'static str,
    first: Vec<u8>,
    then: &'static [u8],
    closed_within: u64,
}

/// Whether the other side has closed.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[test]
#[ignore = "nightly: waits for deadlines of 10 and 30 seconds"]
fn slow_connections_are_closed_in_their_time_and_honest_ones_are_answered() {
    const EACH: usize = 250;
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &["--body-timeout-ms", "20000"]);
    let host = format!("host: {}\r\n", server.address);
    let body = format!("POST /check HTTP/1.1\r\n{host}content-type: application/json\r\ncontent-length: 1000\r\n\r\n");
    let slow = [
        Slow { name: "head", first: b"GET / HTTP/1.1\r\n".to_vec(), then: b"x", closed_within: 15 },
        Slow { name: "nothing", first: Vec::new(), then: b"", closed_within: 60 },
        Slow {
            name: "idle",
            first: format!("GET /healthz HTTP/1.1\r\n{host}\r\n").into_bytes(),
            then: b"",
            closed_within: 60,
        },
        Slow { name: "body", first: body.into_bytes(), then: b" ", closed_within: 23 },
    ];
    let began = Instant::now();
    let mut open: Vec<(usize, Instant, TcpStream)> = Vec::new();
    assert_eq!(server.get("/openapi.json").status, 200);
    let before = server.memory();
    for (kind, slow) in slow.iter().enumerate() {
        for _ in 0..EACH {
            let mut stream = server.connect();
            stream.write_all(&slow.first).unwrap();
            open.push((kind, Instant::now(), stream));
        }
    }
    // The twin: all are open, and the server knows of them.
    assert_eq!(open.len(), 4 * EACH);
    let each = server.memory().saturating_sub(before) / open.len();
    println!("{} slow connections: {each} KB each", open.len());
    assert!(each < 20, "{each} KB a connection");
    let mut last = [Duration::ZERO; 4];
    let mut waits = Vec::new();
    while !open.is_empty() {
        let asked = Instant::now();
        assert_eq!(server.get("/healthz").status, 200);
        waits.push(asked.elapsed());
        open.retain_mut(|(kind, since, stream)| {
            if is_closed(stream) {
                last[*kind] = last[*kind].max(since.elapsed());
                return false;
            }
            stream.set_nonblocking(false).unwrap();
            // One that was closed in this moment is seen in the next round.
            let _ = stream.write_all(slow[*kind].then);
            true
        });
        std::thread::sleep(Duration::from_millis(500));
        assert!(began.elapsed() < Duration::from_secs(70), "{} are still open", open.len());
    }
    for (slow, last) in slow.iter().zip(last) {
        println!("{}: the last was closed after {last:?}", slow.name);
        assert!(last < Duration::from_secs(slow.closed_within), "{}: {last:?}", slow.name);
    }
    waits.sort();
    println!("honest requests: {} answered, the slowest in {:?}", waits.len(), waits.last().unwrap());
}

#[test]
#[ignore = "nightly: waits for a deadline of 30 seconds"]
fn an_answer_that_is_not_read_is_given_up() {
    let place = place(json!({}), &[]);
    let server = Serving::start(&place, &[]);
    let request = format!("GET /openapi.json HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    let mut stream = server.connect();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    // As many as the other side takes before it waits for us to read.
    while stream.write_all(request.repeat(100).as_bytes()).is_ok() {}
    let began = Instant::now();
    // The connection is reset: what was sent and not read is lost with it.
    while stream.write_all(b"x").is_ok() || began.elapsed() < Duration::from_secs(1) {
        assert!(began.elapsed() < Duration::from_secs(45), "it is still open");
    }
    loop {
        match stream.write_all(b"x") {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
            Ok(()) => {}
        }
        assert!(began.elapsed() < Duration::from_secs(45), "it is still open");
    }
    println!("given up after {:?}", began.elapsed());
}
