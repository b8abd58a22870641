//! Humans over HTTP: what waits is decided once, and runs are ended.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{complete, look, think};
use crate::serve::client::{Serving, place, scripted};

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Which account?" }))
}

#[test]
fn an_answer_goes_to_the_run_and_a_second_one_is_refused() {
    let place = place(json!({}), &[ask(), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let resume = format!("/agents/{}/resume", run["agent_run_id"].as_str().unwrap());
    for wrong in [
        json!({}),
        json!({ "answer": "a", "approve": true }),
        json!({ "answer": 1 }),
        json!({ "said": 1 }),
        json!({ "answer": "a", "reason": "b" }),
        json!({ "answer": "a", "call": "x" }),
    ] {
        assert_eq!(server.post(&resume, &wrong).code(), "bad_request", "{wrong}");
    }
    for (wrong, words) in [
        (json!([]), "invalid type: array, expected an object"),
        (json!({ "answer": "a", "call": 2.0 }), "`call` is a text, like \"2.0\", and not 2.0"),
        (json!({ "budget": { "tokens": "9" } }), "expected a whole number"),
        (json!({ "budget": { "cost_usd": "9" } }), "expected a number"),
    ] {
        let detail = server.post(&resume, &wrong).json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(words), "{wrong}: {detail}");
    }
    for unfit in [json!({ "approve": true }), json!({ "answer": "a", "pause": 2 }), json!({ "happened": null })] {
        let reply = server.post(&resume, &unfit);
        assert_eq!((reply.status, reply.code()), (409, "refused".to_owned()), "{unfit} {reply:?}");
    }
    let done = server.post(&resume, &json!({ "answer": "The second", "pause": 1 }));
    assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
    let again = server.post(&resume, &json!({ "answer": "The first" }));
    assert_eq!((again.status, again.code()), (409, "refused".to_owned()), "{again:?}");
}

#[test]
fn of_many_answers_at_once_one_is_taken() {
    let place = place(json!({}), &[ask(), complete(json!("ok"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let resume = format!("/agents/{}/resume?async=true", run["agent_run_id"].as_str().unwrap());
    let taken: Vec<u16> = std::thread::scope(|scope| {
        let ask = |n: usize| server.post(&resume, &json!({ "answer": n.to_string(), "pause": 1 })).status;
        let asked: Vec<_> = (0..16).map(|n| scope.spawn(move || ask(n))).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(taken.iter().filter(|status| **status == 202).count(), 1, "{taken:?}");
    assert!(taken.iter().all(|status| matches!(status, 202 | 409)), "{taken:?}");
}

#[test]
fn a_call_is_made_when_it_is_approved_and_as_it_was_edited() {
    let tools = Server::with(|_, _| Answer::json(&json!({ "did": 1 })));
    let replies = [think("act", json!({ "what": "pay 1" })), complete(json!("ok"))];
    let place = place(json!({}), &replies);
    let mut document = crate::common::document(&json!({
        "tools": [{ "type": "action", "name": "act", "requires_approval": true }] }));
    document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    for (decision, made) in [
        (json!({ "approve": true }), Some("pay 1")),
        (json!({ "edit": { "what": "pay 2" } }), Some("pay 2")),
        (json!({ "deny": true, "reason": "too much" }), None),
    ] {
        let before = tools.requests().len();
        let run = server.execute("", json!({ "loop": "test" })).json();
        assert_eq!(run["result"]["pause"]["call"]["action_input"], json!({ "what": "pay 1" }));
        let resume = format!("/agents/{}/resume", run["agent_run_id"].as_str().unwrap());
        // What a decision names must be what waits.
        for (other, why) in [
            (json!({ "at": "act" }), "no step waits at `act`; what waits: 1.0"),
            (json!({ "call": "9.9" }), "call 9.9 does not wait; what waits: 1.0"),
            (json!({ "edit": { "what": 7 } }), "the edited input is not accepted:\n- at /what: "),
        ] {
            let other = crate::common::with(decision.clone(), other);
            let reply = server.post(&resume, &other);
            let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
            let is_second = decision.get("edit").is_none() && other.get("edit").is_some();
            assert_eq!(reply.status, if is_second { 400 } else { 409 }, "{other} {reply:?}");
            assert!(is_second || detail.starts_with(why), "{detail:?}");
        }
        assert_eq!(tools.requests().len(), before);
        let done = server.post(&resume, &decision);
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{done:?}");
        let calls = tools.requests();
        assert_eq!(calls.len() - before, usize::from(made.is_some()), "{decision}");
        if let Some(made) = made {
            assert_eq!(calls.last().unwrap().json()["what"], made);
        }
    }
}

#[test]
fn a_run_is_ended_whether_it_waits_or_is_under_way() {
    let slow = json!({ "delay_ms": 600_000, "text": look("a") });
    let place = place(json!({}), &[ask(), slow]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let agent = format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    let ended = server.send("DELETE", &format!("{agent}?reason=closed"), &[], b"");
    assert_eq!((ended.status, &ended.json()["status"]), (200, &json!("cancelled")), "{ended:?}");
    assert_eq!(ended.json()["result"]["error"]["message"], "closed");
    assert_eq!(server.send("DELETE", &agent, &[], b"").status, 409);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let agent = format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    assert_eq!(server.post(&format!("{agent}/resume?async=true"), &json!({ "answer": "a" })).status, 202);
    assert_eq!(server.send("DELETE", &agent, &[], b"").status, 202);
    let last = server.events(agent.strip_prefix("/agents/").unwrap(), &[]);
    assert_eq!(last.last().unwrap().1["status"], "cancelled", "{last:?}");
}
