//! The page when its server goes away and comes again, and when a stream is cut: nothing is lost or shown twice.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::common::server::{Answer, Gate, Server};
use crate::common::{complete, look, think};
use crate::serve::browser::Browser;
use crate::serve::client::Serving;
use crate::serve::page::{DESKTOP, id, with_tools};

/// What the trace holds, card by card.
const TRACE: &str =
    "return [...document.querySelectorAll('#trace .thought, #trace .call')].map((one) => one.innerText)";

/// Whether a page that is loaded now shows the same trace.
fn is_as_if_read_anew(browser: &Browser, url: &str) {
    let seen = browser.run(TRACE, json!([]));
    browser.go("about:blank");
    browser.go(url);
    browser.shows_completed(&["tokens in"]);
    assert_eq!(browser.run(TRACE, json!([])), seen);
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn calls_of_unknown_outcome_are_decided_in_the_page_that_outlived_two_servers() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| match number {
        0 | 1 => Answer::json(&json!({ "never": "read" })).behind(&held),
        _ => Answer::json(&json!({ "receipt": 9 })),
    });
    let act = |what: &str| think("act", json!({ "what": what }));
    let replies = [look("before"), act("pay Ada"), act("pay Bob"), complete(json!("Both are paid."))];
    // The number of the look is none of those that are held back.
    let looks = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let place = with_tools(&tools, &replies);
    let mut document = crate::common::document(&json!({}));
    document["actions"][0]["url"] = json!(format!("{}/look", looks.url()));
    document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
    place.json("loop.json", &document);
    let server = Serving::start(&place, &[]);
    let address = server.address.to_string();
    let run = server.execute("?async=true", json!({ "loop": "test" })).json();
    let url = format!("http://{address}/#{}", id(&run));
    browser.go(&url);
    browser.shows(&["pay Ada", "under way"]);
    tools.wait_for(1);
    drop(server);
    browser.shows(&["The server can't be reached; retrying."]);
    let server = Serving::start_at(&address, &place, &[]);
    browser.shows(&["Did it happen?", "It happened, and gave this (JSON)", "call 2.0"]);
    browser.picture("uncertain");
    browser.write("It happened, and gave this (JSON)", "receipt 7");
    browser.click("It happened");
    browser.shows(&["This is no JSON"]);
    browser
        .run("document.querySelector('.decision textarea').value = '{\"receipt\": 70000000000000000001}'", json!([]));
    browser.click("It happened");
    browser.shows(&["70000000000000000001", "pay Bob", "under way"]);
    tools.wait_for(2);
    drop(server);
    browser.shows(&["The server can't be reached; retrying."]);
    let server = Serving::start_at(&address, &place, &[]);
    browser.shows(&["Did it happen?", "call 3.0"]);
    browser.click("It did not happen: retry");
    browser.shows_completed(&["Both are paid.", "\"receipt\": 9"]);
    browser.picture("uncertain-decided");
    let seen = browser.shows(&["Both are paid."]);
    assert!(!seen.contains("under way"), "{seen}");
    assert_eq!(browser.run("return document.querySelectorAll('.call').length", json!([])), 4);
    assert_eq!(tools.requests().len(), 3, "the first was not made again, the second was");
    is_as_if_read_anew(&browser, &url);
    drop(server);
    gate.open();
}

/// A proxy between the page and its server: it answers 502 to streams of events at first, then cuts each after
/// so many bytes. Returns its address, and the number of streams.
fn cutting(server: SocketAddr, bytes: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, streams) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&streams);
    std::thread::spawn(move || {
        for page in listener.incoming() {
            let count = Arc::clone(&count);
            std::thread::spawn(move || pass(page.unwrap(), server, bytes, &count));
        }
    });
    (address, streams)
}

/// Passes one request on, and its answer back.
fn pass(mut page: TcpStream, server: SocketAddr, bytes: usize, count: &AtomicUsize) {
    let mut request = Vec::new();
    let mut piece = [0; 512];
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        match page.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&piece[..read]),
        }
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let is_stream = head.lines().next().unwrap().contains("/events?");
    if is_stream && count.fetch_add(1, Ordering::SeqCst) == 0 {
        let _ = page.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        return;
    }
    let mut far = TcpStream::connect(server).unwrap();
    let request = head.replacen("\r\n", "\r\nconnection: close\r\n", 1).replace("Connection: keep-alive\r\n", "");
    far.write_all(request.as_bytes()).unwrap();
    let mut left = if is_stream { bytes } else { usize::MAX };
    let mut piece = [0; 256];
    while left > 0 {
        match far.read(&mut piece) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(read) => {
                let some = read.min(left);
                left -= some;
                if page.write_all(&piece[..some]).is_err() {
                    break;
                }
            }
        }
    }
    let _ = page.shutdown(Shutdown::Both);
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_stream_that_is_cut_again_and_again_is_shown_once_and_whole() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": "as it is" })));
    let replies = [look("a"), look("b"), look("c"), complete(json!("All is seen."))];
    let place = with_tools(&tools, &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "completed");
    let (address, streams) = cutting(server.address, 1_900);
    browser.go(&format!("http://{address}/#{}", id(&run)));
    browser.shows_completed(&["All is seen.", "tokens in"]);
    let had = streams.load(Ordering::SeqCst);
    assert!(had >= 3, "it was refused once, and cut at least once: {had}");
    assert_eq!(browser.run("return document.querySelectorAll('.call').length", json!([])), 4);
    is_as_if_read_anew(&browser, &format!("http://{}/#{}", server.address, id(&run)));
}
