//! Failed calls and replies over HTTP, in both stores: the attempts of a tool's `retry`, what the body of a failed
//! answer says to the model, and replies that could not be read.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, document, observed, think, web};
use crate::serve::client::{Serving, scripted};

const STORES: [&[&str]; 2] = [&[], &["--store", "memory"]];

/// The loop `test` with the one action `read`.
fn reading(action: Value) -> Place {
    let place = Place::new();
    let mut looped = document(&json!({ "tools": [{ "type": "action", "name": "read" }] }));
    looped["actions"] = json!([action]);
    place.json("loop.json", &looped);
    scripted(&place, &[think("read", json!({})), complete(json!("ok"))], json!({}));
    place
}

/// The trace that the server keeps of a run.
fn trace(server: &Serving, run: &Value) -> Value {
    server.get(&format!("/agents/{}/trace", id(run))).json()["trace"].clone()
}

fn id(run: &Value) -> &str {
    run["agent_run_id"].as_str().unwrap()
}

#[test]
fn each_attempt_of_a_tool_is_in_the_trace_the_events_and_the_metrics() {
    for store in STORES {
        let api = Server::with(|number, _| match number {
            0 => Answer::new("text/plain", "BUSY-0").status(503),
            1 => Answer::new("text/plain", "BUSY-1").status(429),
            _ => Answer::json(&json!({ "read": number })),
        });
        let retry = json!({ "retry": { "attempts": 4, "base_ms": 0, "max_ms": 0 } });
        let place = reading(web("read", &api.url(), retry));
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        let result = &run["result"];
        assert_eq!((&run["status"], &result["metadata"]["tool_retries"]), (&json!("completed"), &json!(2)), "{run:#}");
        assert_eq!(result["metadata"]["tool_calls_made"], 1, "{run:#}");
        let entry = &trace(&server, &run)[0];
        let classes: Vec<&Value> =
            entry["attempts"].as_array().unwrap().iter().map(|one| &one["error"]["class"]).collect();
        assert_eq!(classes, ["http 503", "http 429"], "{run:#}");
        assert_eq!(entry["observation"], json!({ "read": 2 }), "{run:#}");
        let keys: Vec<_> =
            api.requests().iter().map(|request| request.header("idempotency-key").map(str::to_owned)).collect();
        assert_eq!(keys, vec![Some(format!("{}-1-0", id(&run))); 3], "all attempts have one key");
        let events = server.events(id(&run), &[]);
        let of = |kind: &str| events.iter().filter(|(_, event)| event["event"] == kind).collect::<Vec<_>>();
        assert_eq!((of("tool_retried").len(), of("tool_called").len()), (2, 1), "{events:#?}");
        assert_eq!(of("tool_retried")[1].1["error"], json!({ "class": "http 429", "detail": "BUSY-1" }));
        let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
        assert!(metrics.contains("loopctl_tool_retries_total{tool=\"read\"} 2\n"), "{metrics}");
    }
}

#[test]
fn the_model_reads_the_body_of_a_failed_answer_that_is_json_or_that_the_action_lets_through() {
    let (refused, broken) = (r#"{"error":"no such order"}"#, "the shelf is <b>empty</b>");
    let quoted = r#""the shelf is <b>empty</b>""#;
    for store in STORES {
        for (status, body, more, read) in [
            (404, refused, json!({}), Some(refused)),
            (500, refused, json!({}), None),
            (404, broken, json!({}), None),
            (500, broken, json!({ "error_body": true }), Some(quoted)),
        ] {
            let api = Server::with(move |_, _| Answer::new("application/json", body).status(status));
            let place = reading(web("read", &api.url(), more.clone()));
            let server = Serving::start(&place, store);
            let run = server.execute("", json!({ "loop": "test" })).json();
            let entry = &trace(&server, &run)[0];
            let expected = match read {
                Some(body) => format!("Error: http {status}\nThe server answered: {body}"),
                None => format!("Error: http {status}"),
            };
            assert_eq!(observed(entry), expected, "{more}: {run:#}");
            assert_eq!(entry["error"]["answer"], json!(read), "{more}: {run:#}");
            let events = server.events(id(&run), &[]);
            let heard = events.iter().find(|(_, event)| event["event"] == "observed").unwrap();
            assert_eq!(observed(&heard.1), expected, "{heard:#?}");
        }
    }
}

#[test]
fn the_text_of_each_refused_reply_is_in_the_trace_and_the_events_once() {
    let mut replies = Vec::new();
    for number in 0..20 {
        replies.push(json!(format!("MARK-{number:02}. I would <b>look</b> first")));
        // Three in a row would end the run.
        if number % 2 == 1 {
            replies.push(think("__store_memory__", json!({ "key": format!("k{number}"), "value": number })));
        }
    }
    replies.push(complete(json!("ok")));
    for store in STORES {
        let place = Place::new();
        place.json("loop.json", &document(&json!({ "max_iterations": 60 })));
        scripted(&place, &replies, json!({}));
        let server = Serving::start(&place, store);
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!((&run["status"], &run["result"]["metadata"]["invalid_replies"]), (&json!("completed"), &json!(20)));
        let events: Vec<String> = server.events(id(&run), &[]).iter().map(|(_, event)| event.to_string()).collect();
        for number in 0..20 {
            let mark = format!("MARK-{number:02}.");
            let trace = trace(&server, &run);
            let entries = trace.as_array().unwrap().iter();
            let refused =
                entries.filter(|entry| entry["error"]["detail"].as_str().is_some_and(|text| text.contains(&mark)));
            assert_eq!(refused.count(), 1, "{mark}: {trace:#}");
            let heard = events.iter().filter(|event| event.contains("\"observed\"") && event.contains(&mark));
            assert_eq!(heard.count(), 1, "{mark}: {events:#?}");
        }
    }
}
