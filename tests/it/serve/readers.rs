//! Many readers of one run's events, readers that stop reading, and readers that come again: the run waits for
//! none of them, and nobody gets events of a run that is not theirs.

use std::io::Read as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::common::{complete, think};
use crate::serve::client::{Serving, ask_for_events, parse, place, read_until_closed, stream, until};

fn asks() -> Value {
    think("__pause_for_human__", json!({ "question": "Go on?" }))
}

fn says(text: &str) -> Value {
    think("__log_progress__", json!({ "message": text }))
}

fn id(run: &Value) -> &str {
    run["agent_run_id"].as_str().unwrap()
}

/// Begins to read a run's events by a connection that holds little of what is not read.
fn small_reader(server: &Serving, id: &str) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let connected = async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        socket.connect(server.address).await.unwrap().into_std().unwrap()
    };
    let mut stream = runtime.block_on(connected);
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    ask_for_events(&mut stream, server.address, id);
    stream
}

/// So many readers from the pause on; each gets the whole stream, the same.
fn read_by(readers: usize) -> usize {
    let place = place(json!({}), &[asks(), says("half"), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    drop(until(&mut server.reader(id(&run)), "\"paused\""));
    let before = server.memory();
    let mut open: Vec<(TcpStream, String)> = (0..readers)
        .map(|_| {
            let mut stream = server.reader(id(&run));
            let seen = until(&mut stream, "\"paused\"");
            (stream, seen)
        })
        .collect();
    let each = server.memory().saturating_sub(before) / readers;
    eprintln!("{readers} readers: {each} KB each");
    let done = server.post(&format!("/agents/{}/resume", id(&run)), &json!({ "answer": "yes" }));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    let expected = server.events(id(&run), &[]);
    for (stream_of, seen) in &mut open {
        stream_of.read_to_string(seen).unwrap();
        let reply = parse(seen.as_bytes()).unwrap();
        assert_eq!(stream(&String::from_utf8(reply.body).unwrap()), expected);
    }
    each
}

#[test]
fn a_hundred_readers_of_one_run_each_get_every_event() {
    read_by(100);
}

#[test]
#[ignore = "nightly: 1,000 streams at once"]
fn a_thousand_readers_of_one_run_each_get_every_event() {
    let each = read_by(1_000);
    assert!(each < 200, "{each} KB a reader");
}

/// How many connections of the server have more to send than the other side takes.
fn stalled(server: &Serving) -> usize {
    let own = format!(":{:04X}", server.address.port());
    let lines = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let waits = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields[1].ends_with(&own) && fields[3] == "01" && !fields[4].starts_with("00000000:")
    };
    lines.lines().skip(1).filter(waits).count()
}

/// A run with far more events than connections hold, and this many readers that read none of them.
fn unread(readers: usize, pieces: usize) -> (Serving, String, Vec<(TcpStream, String)>) {
    let text = "x".repeat(20_000);
    let mut replies = vec![asks()];
    replies.extend((0..pieces).map(|n| says(&format!("{n} {text}"))));
    replies.push(complete(json!("ok")));
    let place = place(json!({ "max_iterations": 500 }), &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let mut open: Vec<(TcpStream, String)> =
        (0..readers).map(|_| (small_reader(&server, id(&run)), String::new())).collect();
    for (stream, seen) in &mut open {
        *seen = until(stream, "\"paused\"");
    }
    let before = server.memory();
    let resume = format!("/agents/{}/resume", id(&run));
    let done = server.post(&resume, &json!({ "answer": "yes" })).json();
    assert_eq!(done["status"], "completed", "the run did not wait for them");
    // Meanwhile another reader gets all of them.
    let all = server.events(id(&run), &[]);
    assert_eq!(all.iter().filter(|(_, data)| data["event"] == "progress").count(), pieces);
    // The twin: they are behind, as soon as the server has sent them what their connections hold.
    let behind = (0..20_000).any(|_| {
        crate::common::wait_poll_interval();
        stalled(&server) == readers
    });
    assert!(behind, "{} of {readers} are behind", stalled(&server));
    let more = server.memory().saturating_sub(before);
    eprintln!("{readers} readers that took nothing: the server has {more} KB more");
    (server, id(&run).to_owned(), open)
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_does_not_wait_for_readers_that_stop_reading_and_they_may_go_on_later() {
    let (server, id, mut open) = unread(2, 40);
    let expected = server.events(&id, &[]);
    let (stream_of, seen) = &mut open[0];
    stream_of.read_to_string(seen).unwrap();
    assert_eq!(stream(&String::from_utf8(parse(seen.as_bytes()).unwrap().body).unwrap()), expected);
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "nightly: waits for a deadline of 30 seconds"]
fn readers_that_stop_reading_are_dropped_and_their_memory_is_given_back() {
    let (server, _, open) = unread(20, 40);
    while stalled(&server) > 0 {
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(server.get("/healthz").status, 200);
    }
    eprintln!("20 readers were dropped: {} KB of memory", server.memory());
    drop(open);
}

/// A run that waits for a human, and the store that it is in.
fn waiting() -> (crate::common::Place, Serving, String) {
    let place = place(json!({}), &[asks(), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = id(&run).to_owned();
    (place, server, id)
}

#[test]
fn a_stream_that_can_t_go_on_says_why_and_its_connection_is_cut() {
    let (place, server, id) = waiting();
    let mut reader = server.reader(&id);
    let mut seen = until(&mut reader, "\"paused\"").into_bytes();
    let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).unwrap();
    let added = "INSERT INTO events SELECT run, max(seq) + 1, 7, event FROM events";
    assert_eq!(store.execute(added, []).unwrap(), 1, "an event that nobody wrote");
    seen.extend(read_until_closed(&mut reader));
    let reply = parse(&seen).unwrap();
    let events = stream(&String::from_utf8(reply.body).unwrap());
    let (place, last) = events.last().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&json!("stream_failed"), &json!("store_corrupt")), "{last}");
    assert_eq!(*place, events[events.len() - 2].0, "it has no place of its own");
    assert!(!reply.whole, "no reader takes this for the end of the run");
}

#[test]
fn a_stream_that_ends_because_its_server_does_is_cut_and_the_next_server_goes_on_with_it() {
    let (place, server, id) = waiting();
    let mut reader = server.reader(&id);
    let mut seen = until(&mut reader, "\"paused\"").into_bytes();
    crate::serve::restart::terminate(&server);
    seen.extend(read_until_closed(&mut reader));
    assert_eq!(server.ended(), Some(0));
    let reply = parse(&seen).unwrap();
    assert!(!reply.whole, "no reader takes this for the end of the run");
    let events = stream(&String::from_utf8(reply.body).unwrap());
    let next = Serving::start(&place, &[]);
    let done = next.post(&format!("/agents/{id}/resume"), &json!({ "answer": "yes" }));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    let rest = next.events(&id, &[("last-event-id", &events.last().unwrap().0)]);
    assert_eq!([events, rest].concat(), next.events(&id, &[]), "the twin: this one came to its end");
}

/// A connection whose reads are interrupted by signals before each piece.
struct Interrupted(Vec<&'static [u8]>, bool);

impl std::io::Read for Interrupted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let piece = if self.0.is_empty() { &b""[..] } else { self.0.remove(0) };
        into[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn a_signal_to_the_reader_is_no_end_of_what_it_reads() {
    let pieces: Vec<&[u8]> =
        vec![b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n", b"ab\r\n0", b"\r\n\r\n"];
    let reply = parse(&read_until_closed(&mut Interrupted(pieces.clone(), false))).unwrap();
    assert_eq!((reply.body.as_slice(), reply.whole), (&b"ab"[..], true));
    let reply = parse(&read_until_closed(&mut Interrupted(pieces[..1].to_vec(), false))).unwrap();
    assert!(!reply.whole, "the twin: what is cut is not whole");
}

/// A run with a few events, in its end.
fn ended(server: &Serving) -> String {
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "completed", "{run:#}");
    id(&run).to_owned()
}

#[test]
fn a_reader_who_comes_again_with_the_id_of_another_run_gets_the_events_of_this_one() {
    let replies = [says("one"), says("two"), says("three"), json!("unreadable"), complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let server = Serving::start(&place, &[]);
    let (long, other) = (ended(&server), ended(&server));
    let all = server.events(&long, &[]);
    let theirs = server.events(&other, &[]);
    assert_eq!(all.len(), theirs.len());
    assert!(all.len() > 10, "{}", all.len());
    // A place is one of the run that is asked for: that of another one is a place of this one, or none.
    for (at, (place, _)) in theirs.iter().enumerate().take(theirs.len() - 1) {
        let rest = server.events(&long, &[("last-event-id", place)]);
        assert_eq!(rest, all[at + 1..], "after {place}");
        let text = Value::from(rest.iter().map(|(_, data)| data.clone()).collect::<Vec<_>>()).to_string();
        assert!(!text.contains(&other), "nothing of the other run");
    }
    let target = format!("/agents/{long}/events");
    let far = format!("{}.0", all.len() + 100);
    for wrong in [far.as_str(), "0", ".", "0.", ".0", "0.x", "+1.0", " 1. 0", "1,0", "1.0,2.0", "\u{e9}", "0x1.0"] {
        let reply = server.send("GET", &target, &[("last-event-id", wrong)], b"");
        assert_eq!((reply.status, reply.code()), (400, "bad_event_id".to_owned()), "{wrong:?}");
    }
    let none = server.send("GET", "/agents/agent-none/events", &[("last-event-id", "0.0")], b"");
    assert_eq!(none.code(), "no_such_run");
}
