//! Another organisation's run and none are the same to a caller: in what is answered, and in what it costs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::json;

use crate::common::complete;
use crate::serve::client::{Reply, parse, place};
use crate::serve::counting::{Counting, listening};

/// A request of an organisation.
struct Asked<'a> {
    method: &'a str,
    target: String,
    body: &'a str,
    org: &'a str,
}

fn ask(address: SocketAddr, asked: &Asked<'_>) -> Reply {
    let Asked { method, target, body, org } = asked;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: {address}\r\nx-org-id: {org}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    parse(&answer).expect("an answer")
}

/// What a caller can distinguish a reply by: all but its time and the request's own id.
fn seen(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let own = |name: &str| name == "x-request-id" || name == "date";
    let headers = reply.headers.iter().filter(|(name, _)| !own(name)).cloned().collect();
    (reply.status, headers, String::from_utf8(reply.body.clone()).unwrap())
}

#[test]
fn another_organisation_s_run_and_none_are_answered_alike_and_cost_the_store_alike() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let started =
        Asked { method: "POST", target: "/agents/execute".to_owned(), body: r#"{"loop":"test"}"#, org: "acme" };
    let run = ask(address, &started).json();
    let theirs = run["agent_run_id"].as_str().unwrap().to_owned();
    // As long as an id is, and nobody's.
    let none: String = theirs.chars().rev().collect();
    let asks = |id: &str, org: &'static str| {
        let earlier = json!({ "loop": "test", "previous_run_id": id }).to_string();
        let routes = [
            ("GET", format!("/agents/{id}/status"), String::new()),
            ("GET", format!("/agents/{id}/trace"), String::new()),
            ("GET", format!("/agents/{id}/trace?at=1"), String::new()),
            ("GET", format!("/agents/{id}/events"), String::new()),
            ("POST", format!("/agents/{id}/resume"), r#"{"answer":"yes"}"#.to_owned()),
            ("POST", format!("/agents/{id}/retry"), "{}".to_owned()),
            ("POST", format!("/agents/{id}/rerun"), "{}".to_owned()),
            ("GET", format!("/agents?cursor={id}"), String::new()),
            ("POST", "/agents/execute".to_owned(), earlier),
            ("DELETE", format!("/agents/{id}"), String::new()),
        ];
        routes.map(|(method, target, body)| {
            counting.asked();
            let reply = ask(address, &Asked { method, target, body: &body, org });
            // The server asks for its queue by itself, several times a second.
            let asked =
                counting.asked().into_iter().filter(|asked| !matches!(*asked, "queue" | "claim" | "claim_callbacks"));
            (method, seen(&reply), asked.collect::<Vec<_>>())
        })
    };
    let (foreign, missing, own) = (asks(&theirs, "other"), asks(&none, "other"), asks(&theirs, "acme"));
    for ((foreign, missing), own) in foreign.into_iter().zip(missing).zip(own) {
        let (method, (status, headers, body), work) = foreign;
        assert!(matches!(status, 400 | 404), "{method}: {status} {body}");
        // A sentence may name the id that was asked for.
        let body = body.replace(&theirs, &none);
        assert_eq!((status, headers, body), missing.1, "{method}");
        assert_eq!(work, missing.2, "{method}: the store is asked the same");
        assert!(work.contains(&"find_of") && !work.contains(&"find"), "{method}: {work:?}");
        // The twin: a previous run of the same owner is accepted, and read.
        assert!(own.1.0 != status || own.2.len() > work.len(), "{method}: {own:?}");
    }
}
