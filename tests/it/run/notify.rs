//! Steps of type `notify`: what is sent, how it is retried, and what is refused.

use serde_json::{Value, json};

use crate::common::Place;
use crate::common::server::{Answer, Server};
use crate::run::workflows::{definition, place};

const ADDRESS: &str = "a-secret-path-0123456789";

fn notice() -> Value {
    let send = json!({ "id": "tell", "type": "notify", "outputKey": "sent",
        "properties": { "to": "ops", "text": "{{input.id}} was paid: <!channel>" } });
    json!({ "actions": [send], "output": "@sent" })
}

/// A place with a target of this kind whose address is a secret.
fn with_target(kind: &str, server: &Server, allow: Value) -> Place {
    let place = place();
    definition(&place, notice());
    place.json(
        "loopctl.json",
        &json!({
        "allow": allow, "orgconfig": { "hook": "file:hook.txt" },
        "notify": { "ops": { "kind": kind, "url": "orgconfig:hook" } } }),
    );
    place.file("hook.txt", format!("{}/{ADDRESS}", server.url()));
    place
}

fn run(place: &Place) -> crate::common::Ran {
    place.run(&["--run-id", "r", "--input", "id=C-7"]).0
}

#[test]
fn a_notice_is_retried_under_one_key_in_the_form_of_its_target() {
    for kind in ["slack", "webhook", "teams"] {
        let server = Server::with(|number, _| match number {
            0 => Answer::new("text/plain", "busy").status(503),
            _ => Answer::new("text/html", "ok"),
        });
        let place = with_target(kind, &server, json!({ "private_addresses": true }));
        let ran = run(&place);
        assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!("ok")), "{ran:#?}");
        // A folder whose project has no such target shows the run all the same.
        let store = format!("sqlite:{}", place.path().join(".loopctl/runs.db").display());
        let shown = Place::new().call(&["trace", "r", "--store", &store]);
        assert!(shown.code == 0 && shown.stdout.contains("tell: notify"), "{shown:#?}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{requests:?}");
        for request in &requests {
            assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", format!("/{ADDRESS}").as_str()));
            assert_eq!(request.header("idempotency-key"), Some("r-tell"));
            let body = request.json();
            match kind {
                "slack" => assert_eq!(body, json!({ "text": "C-7 was paid: &lt;!channel&gt;" })),
                "webhook" => {
                    assert_eq!(body, json!({ "id": "r-tell", "to": "ops", "text": "C-7 was paid: <!channel>" }))
                }
                _ => {
                    let card = &body["attachments"][0]["content"];
                    assert_eq!(card["body"][0]["inlines"][0]["text"], "C-7 was paid: <!channel>", "{body}");
                }
            }
        }
    }
}

#[test]
fn a_notice_that_may_not_be_sent_fails_its_step_and_shows_no_address() {
    let server = Server::with(|_, _| Answer::new("text/html", "ok"));
    for allow in [json!({}), json!({ "hosts": ["hooks.example.com"], "private_addresses": true })] {
        let place = with_target("webhook", &server, allow);
        let ran = run(&place);
        assert_eq!((ran.code, &ran.json()["error"]["step"]), (1, &json!("tell")), "{ran:#?}");
        assert!(!ran.stdout.contains(ADDRESS), "{ran:#?}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_notice_is_posted_or_fails_where_its_target_redirects_it() {
    for status in [301, 302, 303, 307, 308] {
        let server = Server::with(move |number, _| match number {
            0 => Answer::new("text/plain", "").status(status).header("location", "/moved"),
            _ => Answer::new("text/html", "ok"),
        });
        let ran = run(&with_target("webhook", &server, json!({ "private_addresses": true })));
        let sent: Vec<String> =
            server.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect();
        let first = format!("POST /{ADDRESS}");
        if status >= 307 {
            assert_eq!((ran.code, sent), (0, vec![first, "POST /moved".to_owned()]), "{status}: {ran:#?}");
            assert_eq!(server.requests()[1].json()["text"], "C-7 was paid: <!channel>");
        } else {
            assert_eq!((ran.code, sent), (1, vec![first]), "{status}: {ran:#?}");
            let why = ran.json()["error"]["message"].to_string();
            assert!(why.contains("redirected to ") && why.contains("not followed"), "{status}: {why}");
        }
    }
}

#[test]
fn a_notice_is_delivered_whatever_its_target_answers() {
    for answer in [vec![0, 159, 146, 150], vec![b'x'; 9_000], vec![b'x'; 3_000_000]] {
        let server = Server::with(move |_, _| Answer::new("text/plain", answer.clone()));
        let ran = run(&with_target("webhook", &server, json!({ "private_addresses": true })));
        assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!(null)), "{}", ran.stderr);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn what_a_server_repeats_of_its_address_is_hidden() {
    for (status, code) in [(404, 1), (200, 0)] {
        let server = Server::with(move |_, request| {
            let (path, last) = (&request.path, request.path.rsplit('/').next().unwrap_or_default());
            Answer::new("text/html", format!("Cannot POST {path}, no {last}")).status(status)
        });
        let place = with_target("slack", &server, json!({ "private_addresses": true }));
        place.file("hook.txt", format!("{}/services/T0TEAM7/B0ROOM8/zXcVbNm1qwErTy2", server.url()));
        let ran = run(&place);
        assert_eq!(ran.code, code, "{ran:#?}");
        let trace = place.call(&["trace", "r", "--format", "json"]);
        assert!(trace.stdout.contains("Cannot POST"), "{trace:#?}");
        for text in [ran.stdout, ran.stderr, trace.stdout, place.call(&["trace", "r"]).stdout] {
            for secret in ["T0TEAM7", "B0ROOM8", "zXcVbNm1qwErTy2"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
}

#[test]
fn an_action_of_this_name_keeps_its_meaning() {
    let server = Server::with(|_, _| Answer::json(&json!({ "did": 1 })));
    let place = place();
    let action = json!({ "action_name": "notify", "kind": "http", "description": "Does.", "http_method": "POST",
        "url": format!("{}/own", server.url()), "parameters": { "type": "object" } });
    place.json("actions/notify.json", &json!([action]));
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let own = json!({ "type": "notify", "properties": { "to": ["a"], "n": 1 } });
    definition(&place, json!({ "actions": [own], "output": "@notify.did" }));
    let ran = run(&place);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!(1)), "{ran:#?}");
    assert_eq!(server.requests()[0].json(), json!({ "to": ["a"], "n": 1 }));
}

#[test]
fn a_scenario_needs_no_network_and_sees_what_was_sent() {
    let server = Server::with(|_, _| Answer::new("text/html", "ok"));
    let place = with_target("slack", &server, json!({ "private_addresses": true }));
    let scenario = |text: &str| {
        let call = json!({ "action": "notify", "input": { "to": "ops", "text": text } });
        json!({ "document": "loop.json", "scenarios": [{ "name": "paid", "input": { "id": "C-7" }, "expect": { "calls": [call] } }] })
    };
    place.json("paid.test.json", &scenario("C-7 was paid: <!channel>"));
    let ran = place.call(&["test", "paid.test.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    place.json("paid.test.json", &scenario("C-8 was paid"));
    let ran = place.call(&["test", "paid.test.json"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_target_that_no_document_names_is_found_in_a_whole_folder() {
    let server = Server::with(|_, _| Answer::new("text/html", "ok"));
    let place = with_target("slack", &server, json!({}));
    let target = |name: &str| {
        json!({ "orgconfig": { "hook": "file:hook.txt" },
        "notify": { "ops": { "kind": "slack", "url": "orgconfig:hook" }, name: { "kind": "slack", "url": "orgconfig:hook" } } })
    };
    place.json("loopctl.json", &target("night"));
    std::fs::remove_file(place.path().join("script.json")).unwrap();
    let ran = place.call(&["check", "."]);
    assert!(ran.stderr.contains("no document names the `notify` target `night`"), "{ran:#?}");
    assert!(!ran.stderr.contains("target `ops`"), "{ran:#?}");
    let ran = place.call(&["check", "loop.json"]);
    assert!(!ran.stderr.contains("night"), "{ran:#?}");
}
