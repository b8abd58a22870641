//! What readers of events, and lists, cost the store: served in this process, over a store that counts what it reads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::journal::Journal;
use loopctl::serve::authorizer::Caller;
use loopctl::serve::feed::{Feed, WantedEvents};
use serde_json::{Value, json};

use crate::common::{complete, think};
use crate::serve::client::{ask_for_events, parse, place, served, stream};
use crate::serve::counting::{Counting, listening};
use crate::serve::workflows::{place as workflow, tools};

/// Asks; all that is answered.
fn ask(address: SocketAddr, method: &str, target: &str, body: &Value) -> Vec<u8> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let mut answer = Vec::new();
    let mut asking = TcpStream::connect(address).unwrap();
    write!(
        asking,
        "{method} {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    asking.read_to_end(&mut answer).unwrap();
    answer
}

#[test]
fn each_of_many_readers_reads_an_event_once_however_often_it_is_woken() {
    const STEPS: usize = 40;
    const READERS: usize = 3;
    let mut replies = vec![think("__pause_for_human__", json!({ "question": "Go on?" }))];
    replies.extend((0..STEPS).map(|step| think("__log_progress__", json!({ "message": format!("step {step}") }))));
    replies.push(complete(json!("ok")));
    let place = place(json!({ "max_iterations": 100 }), &replies);
    let counting = Arc::new(Counting::default());
    let (runtime, address) = listening(&place, &counting);

    let run = parse(&ask(address, "POST", "/agents/execute", &json!({ "loop": "test" }))).unwrap().json();
    assert_eq!(run["status"], "paused", "{run}");
    let id = run["agent_run_id"].as_str().unwrap();
    let events = || runtime.block_on(counting.inner.read(id)).unwrap().len();
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let mut reader = TcpStream::connect(address).unwrap();
        ask_for_events(&mut reader, address, id);
        let mut received = vec![0; 1];
        // It has read what there is.
        reader.read_exact(&mut received).unwrap();
        readers.push((reader, received));
    }
    let whole = counting.whole.load(Ordering::SeqCst);
    assert_eq!(whole, 0, "a run that was driven here is answered from its state");
    let answer = ask(address, "POST", &format!("/agents/{id}/resume"), &json!({ "answer": "yes" }));
    for (mut reader, mut received) in readers {
        reader.read_to_end(&mut received).unwrap();
        let seen = stream(&String::from_utf8(parse(&received).unwrap().body).unwrap());
        assert_eq!(seen.iter().filter(|(_, data)| data["event"] == "progress").count(), STEPS);
        assert_eq!(seen.last().unwrap().1["result"]["answer"], "ok");
    }
    // The first event twice: for the document, and for the stream.
    assert_eq!(counting.from.load(Ordering::SeqCst), (events() + 1) * READERS);
    // The driver that goes on reads it whole, once for the decision and the answer; readers do not.
    let whole = counting.whole.load(Ordering::SeqCst) - whole;
    assert_eq!(whole, 1);
    // What the driver left is what the journal folds to.
    let read = ask(address, "GET", &format!("/agents/{id}/status"), &json!({}));
    assert_eq!(parse(&answer).unwrap().json(), parse(&read).unwrap().json());
}

#[test]
fn of_a_long_run_no_more_is_read_ahead_of_a_reader_than_a_piece_and_he_gets_all_in_order() {
    const STEPS: usize = 30;
    // As many events of this length make more than a piece.
    const AHEAD: usize = 4;
    let text = "x".repeat(20_000);
    let message = |step: usize| format!("step {step} {text}");
    let mut replies: Vec<Value> =
        (0..STEPS).map(|step| think("__log_progress__", json!({ "message": message(step) }))).collect();
    replies.push(complete(json!("ok")));
    let place = place(json!({ "max_iterations": 100 }), &replies);
    let counting = Arc::new(Counting::default());
    let served = served(&place, Arc::clone(&counting) as Arc<dyn Journal>);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let received = runtime.block_on(async {
        let folder = served.folder();
        let offered = &folder.loops["test"];
        let engine = served.runs.engine(&offered.root).unwrap();
        let finished = engine.run(&offered.program, Start::default(), Watch::default()).await.unwrap();
        let mut caller = Caller::new("");
        caller.name = None;
        let wanted = WantedEvents { caller, seen: None, deltas: false, steps: None };
        let opened = Feed::new(Arc::clone(&served), finished.run_id(), wanted).await;
        let mut feed = opened.unwrap_or_else(|_| panic!("it can be read")).expect("the run has events");
        let mut received = String::new();
        while let Some(Ok(piece)) = feed.next().await {
            received.push_str(&piece);
            let event: usize = piece["id: ".len()..].split('.').next().unwrap().parse().unwrap();
            // He may stop reading here. The first event was read twice.
            let read = counting.from.load(Ordering::SeqCst) - 1;
            assert!(read - event <= AHEAD, "{read} events were read when number {event} was sent");
        }
        received
    });
    let events = stream(&received);
    let steps: Vec<&str> = events
        .iter()
        .filter(|(_, data)| data["event"] == "progress")
        .filter_map(|(_, data)| data["message"].as_str())
        .collect();
    assert_eq!(steps, (0..STEPS).map(message).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().1["result"]["answer"], "ok");
    assert_eq!(counting.whole.load(Ordering::SeqCst), 0, "no journal was read whole");
}

#[test]
fn a_decision_is_one_read_of_the_journal_also_when_it_is_queued() {
    let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["why"] } });
    let place = workflow(&tools(), json!({ "output": { "why": "@why" }, "actions": [form] }));
    let counting = Arc::new(Counting::default());
    let (runtime, address) = listening(&place, &counting);
    let post = |target: &str, body: Value| parse(&ask(address, "POST", target, &body)).expect("an answer");
    let begin = || {
        let run = post("/workflows/pay/execute", json!({ "input": {} })).json();
        run["run_id"].as_str().expect("an id").to_owned()
    };
    let read = || (counting.whole.swap(0, Ordering::SeqCst), counting.from.swap(0, Ordering::SeqCst));
    for is_form in [true, false] {
        let send = |id: &str| match is_form {
            // The form is looked at before it is filled in.
            true => post(&format!("/forms/{id}/fill/submit"), json!({ "why": "so" })),
            false => post(&format!("/agents/{id}/resume"), json!({ "answer": r#"{"why":"so"}"#, "at": "fill" })),
        };
        let id = begin();
        read();
        let taken = send(&id);
        assert_eq!((taken.status, &taken.json()["status"]), (200, &json!("completed")), "{taken:?}");
        assert_eq!(read(), (1, 0), "by a form: {is_form}");
        // A process that does not look at the queue drives it.
        let id = begin();
        runtime.block_on(counting.inner.lease(&id)).unwrap();
        read();
        let queued = send(&id);
        assert_eq!((queued.status, &queued.json()["status"]), (202, &json!("paused")), "{queued:?}");
        assert_eq!(runtime.block_on(counting.inner.queued_decisions(&id)).unwrap().len(), 1);
        assert_eq!(read(), (1, 0), "queued, by a form: {is_form}");
    }
}

#[test]
fn a_run_that_is_cancelled_is_leased_and_read_once() {
    let place = place(json!({}), &[think("__pause_for_human__", json!({ "question": "Go on?" }))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let send = |request: &str, body: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        let headers = format!("host: {address}\r\nconnection: close\r\ncontent-type: application/json");
        write!(stream, "{request} HTTP/1.1\r\n{headers}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        parse(&answer).expect("an answer").json()
    };
    let run = send("POST /agents/execute", r#"{"loop":"test"}"#);
    assert_eq!(run["status"], "paused");
    counting.asked();
    let cancelled = send(&format!("DELETE /agents/{}?reason=no", run["agent_run_id"].as_str().unwrap()), "");
    assert_eq!(cancelled["status"], "cancelled");
    let asked: Vec<&str> = counting.asked().into_iter().filter(|asked| !asked.starts_with("find")).collect();
    assert_eq!(asked, ["lease", "read", "texts", "append", "release"]);
}

#[test]
fn a_cancel_is_answered_as_such_though_the_driver_ends_the_run_before_its_request_is_answered() {
    let place = place(json!({}), &[json!({ "delay_ms": 600_000, "text": "too late" })]);
    let counting = Arc::new(Counting::default());
    counting.answers_cancels_late.store(true, Ordering::SeqCst);
    let (_runtime, address) = listening(&place, &counting);
    let run = parse(&ask(address, "POST", "/agents/execute?async=true", &json!({ "loop": "test" }))).unwrap().json();
    let mut events = TcpStream::connect(address).unwrap();
    let id = run["agent_run_id"].as_str().unwrap();
    ask_for_events(&mut events, address, id);
    let mut first = [0; 1];
    // The run is driven.
    events.read_exact(&mut first).unwrap();
    let cancelled = parse(&ask(address, "DELETE", &format!("/agents/{id}"), &Value::Null)).unwrap();
    assert_eq!((cancelled.status, &cancelled.json()["status"]), (202, &json!("cancelled")), "{cancelled:?}");
}

#[test]
fn a_run_that_ends_here_is_answered_without_a_look_up_and_as_its_status_says() {
    let place = place(json!({}), &[complete(json!("ok"))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let answer = ask(address, "POST", "/agents/execute", &json!({ "loop": "test", "session": "s" }));
    let answer = parse(&answer).unwrap().json();
    assert_eq!((&answer["status"], &answer["session"]), (&json!("completed"), &json!("s")));
    let asked = counting.asked();
    assert!(!asked.iter().any(|asked| matches!(*asked, "find" | "find_of" | "read" | "read_from")), "{asked:?}");
    let status = format!("/agents/{}/status", answer["agent_run_id"].as_str().unwrap());
    assert_eq!(parse(&ask(address, "GET", &status, &Value::Null)).unwrap().json(), answer);
}

#[test]
fn a_list_shows_costs_errors_and_questions_and_reads_no_journal() {
    let ask_human = think(
        "__pause_for_human__",
        json!({ "question": "Refund 40 EUR\nwith sk-proj-secret17secret17secret17secret17secret17?" }),
    );
    let place =
        place(json!({ "max_iterations": 2, "on_stuck": { "iterations": 9 } }), &[ask_human, complete(json!("ok"))]);
    let counting = Arc::new(Counting::default());
    let (_runtime, address) = listening(&place, &counting);
    let start = |order: &str| {
        let body = json!({ "loop": "test", "session": order });
        parse(&ask(address, "POST", "/agents/execute", &body)).unwrap().json()["agent_run_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let (first, second) = (start("s1"), start("s2"));
    ask(address, "POST", &format!("/agents/{first}/resume"), &json!({ "answer": "yes" }));
    counting.asked();
    counting.whole.store(0, Ordering::SeqCst);
    counting.from.store(0, Ordering::SeqCst);
    let list = |query: &str| parse(&ask(address, "GET", &format!("/agents{query}"), &Value::Null)).unwrap().json();
    let page = list("?limit=10");
    let row =
        |id: &str| page["agents"].as_array().unwrap().iter().find(|run| run["agent_run_id"] == id).unwrap().clone();
    let (ended, waits) = (row(&first), row(&second));
    assert_eq!((&ended["status"], &ended["iterations"]), (&json!("completed"), &json!(2)), "{page}");
    assert!(ended["tokens"].as_u64() > waits["tokens"].as_u64() && waits["tokens"].as_u64() > Some(0), "{page}");
    let question = waits["question"].as_str().unwrap();
    assert!(question.starts_with("Refund 40 EUR with ") && !question.contains("secret17"), "{page}");
    assert!(ended.get("question").is_none() && ended.get("error").is_none(), "{page}");
    assert_eq!(list("?search=no%20such%20text")["agents"], json!([]));
    assert_eq!(list("?status=paused")["agents"].as_array().unwrap().len(), 1);
    ask(address, "GET", "/metrics", &Value::Null);
    let asked = counting.asked();
    assert!(!asked.iter().any(|asked| asked.starts_with("read") || *asked == "texts"), "{asked:?}");
    assert_eq!((counting.whole.load(Ordering::SeqCst), counting.from.load(Ordering::SeqCst)), (0, 0));
}
