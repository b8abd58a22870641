//! R1: one kill at each boundary of the journal, and a process that dies after every event.

use serde_json::{Value, json};

use crate::common::sweep::{BOUNDARIES, is_played, kill_everywhere, kills_of, least};
use crate::crash::reference::{Reference, assert_same, timeless, untouched};

#[test]
fn a_kill_at_every_boundary_before_the_pause_ends_in_the_same_result() {
    let expected = untouched();
    let mut uncertain = Vec::new();
    let kills = kill_everywhere(|_, at| {
        let reference = Reference::new();
        if reference.start(at).code != -9 {
            return false;
        }
        let (result, asked) = reference.finish();
        assert_same(result, &expected, at);
        reference.holds(at);
        if asked > 0 {
            uncertain.push(at.to_owned());
        }
        true
    });
    // Started; read, its result; put, its result; post, its result; memory; the question.
    assert_eq!(kills[..3], kills_of(9), "{kills:?}");
    assert!(kills[3] >= kills_of(8)[0], "{kills:?}");
    // The intent of the POST without a key is event 5, its outcome event 6.
    let open = [6, 6, 5, 5].into_iter().zip(BOUNDARIES).enumerate();
    let open = open.filter(|(boundary, (event, _))| is_played(*event, *boundary));
    let expected: Vec<String> = open.map(|(_, (event, boundary))| format!("journal:{event}:{boundary}")).collect();
    assert!(!expected.is_empty());
    assert_eq!(uncertain, expected);
}

#[test]
fn a_kill_at_every_boundary_after_the_pause_ends_in_the_same_result() {
    let expected = untouched();
    let kills = kill_everywhere(|_, at| {
        let reference = Reference::new();
        assert_eq!(reference.start("").code, 3);
        if reference.resume(&["--answer", "yes"], at).code != -9 {
            return false;
        }
        assert_same(reference.finish().0, &expected, at);
        reference.holds(at);
        true
    });
    assert!(kills.iter().sum::<usize>() >= least(11), "{kills:?} kills tested too little");
}

#[test]
fn a_process_that_dies_after_every_event_still_ends_the_same() {
    let expected = untouched();
    let reference = Reference::new();
    let mut ran = reference.start("journal:1:after-sync");
    let mut lives = 1;
    while ran.code == -9 {
        lives += 1;
        assert!(lives < 60, "the run makes no way");
        ran = reference.start("journal:1:after-sync");
        if ran.code == 3 {
            ran = match ran.json()["termination"].as_str() {
                Some("human") => reference.resume(&["--answer", "yes"], "journal:1:after-sync"),
                _ if reference.calls_of("post").is_empty() => reference.resume(&["--retry"], "journal:1:after-sync"),
                _ => reference.resume(&["--happened", r#"{"did":"post"}"#], "journal:1:after-sync"),
            };
        }
    }
    assert!(lives > 6, "{lives} lives tested too little");
    assert_same(reference.finish().0, &expected, "");
    reference.holds("always");
    let whole = Reference::new();
    whole.finish();
    assert_eq!(happened(&reference), happened(&whole), "the journal of the run in pieces");
}

#[test]
fn on_uncertain_retry_calls_again_and_fail_reports_to_the_model() {
    for (rule, calls, words) in [("retry", 2, "did"), ("fail", 1, "not known")] {
        let reference = Reference::new();
        let path = reference.place.path().join("loop.json");
        let mut document: Value = serde_json::from_slice(&std::fs::read(&path).expect("it is there")).expect("JSON");
        document["actions"][2]["on_uncertain"] = json!(rule);
        reference.place.json("loop.json", &document);
        assert_eq!(reference.start("journal:6:before-write").code, -9);
        let (result, asked) = reference.finish();
        assert_eq!((asked, reference.calls_of("post").len()), (0, calls), "{rule}");
        let observation = result["trace"][2]["observation"].to_string();
        assert!(observation.contains(words), "{rule}: {observation}");
    }
}

/// What the journal holds, without times, and without what the resumed processes and the operator added.
fn happened(reference: &Reference) -> Vec<Value> {
    let added = |what: &Value| *what == json!("resumed") || what["human"]["decision"] == json!("retry");
    let whats = reference.events().into_iter().map(|mut event| event["what"].take());
    // The address of the server is in the document, and differs from place to place: so do the digest of the text
    // and that of all documents, which the fold compares with the texts.
    let place = reference.server.url();
    let neutral = |what: Value| what.to_string().replace(&place, "http://server");
    let whats = whats.filter(|what| !added(what)).map(|what| serde_json::from_str(&neutral(what)).expect("JSON"));
    let whats = whats.map(|mut what: Value| {
        let documents = what.pointer_mut("/started/documents").and_then(Value::as_array_mut);
        documents.into_iter().flatten().for_each(|document| document["text"] = Value::Null);
        if let Some(sha256) = what.pointer_mut("/started/documents_sha256") {
            assert_eq!(sha256.as_str().map(str::len), Some(64), "{sha256}");
            *sha256 = Value::Null;
        }
        what
    });
    whats.map(timeless).collect()
}
