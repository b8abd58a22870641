//! The page when a run repeats itself, and when several calls of one turn wait.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::page::{DESKTOP, PHONE, id};

/// Nothing of the page is wider than the window.
fn is_as_wide_as(browser: &Browser, width: u32) {
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), width);
}

/// The loop `test` whose tools a server answers, with these properties.
fn served(tools: &Server, properties: &Value, replies: &[Value]) -> Place {
    let place = place(json!({}), replies);
    let mut document = crate::common::document(properties);
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
    place.json("loop.json", &document);
    scripted(&place, replies, json!({}));
    place
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_run_that_repeats_itself_can_be_given_a_hint() {
    let Some(browser) = Browser::open(PHONE, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let replies = [look("a"), look("a"), look("a"), look("b"), complete(json!("Found in b."))];
    let circles = json!({ "on_stuck": { "iterations": 3, "action": "escalate" } });
    let place = served(&tools, &circles, &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["result"]["pause"]["kind"], "stuck");
    browser.go(&format!("http://{}/", server.address));
    browser.shows(&["Waits for a human", "paused"]);
    is_as_wide_as(&browser, PHONE.0);
    browser.picture("list-phone");
    browser.until("const row = document.querySelector('#waiting a'); row?.click(); return !!row");
    let seen = browser.shows(&["The run repeats itself", "What should it do instead?", "Send"]);
    assert!(!seen.contains("Approve"), "{seen}");
    browser.picture("stuck-phone");
    browser.click("Send");
    browser.shows(&["Write an answer first."]);
    browser.write("What should it do instead?", "Look at b.");
    browser.click("Send");
    browser.shows_completed(&["Found in b."]);
    is_as_wide_as(&browser, PHONE.0);
    browser.picture("trace-phone");
    assert_eq!(tools.requests().last().unwrap().path, "/look/b");
    assert_eq!(server.get(&format!("/agents/{}/status", id(&run))).json()["status"], "completed");
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn of_several_calls_that_wait_each_is_decided_alone_and_what_is_written_at_the_others_stays() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "did": true })));
    let act = |what: &str| json!({ "action": "act", "action_input": { "what": what } });
    let replies =
        [json!({ "thought": "All three.", "calls": [act("a"), act("b"), act("c")] }), complete(json!("done"))];
    let approved = json!({ "dialect": "tool_calls",
        "tools": [{ "type": "action", "name": "act", "requires_approval": true }] });
    let place = served(&tools, &approved, &replies);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["result"]["pause"]["calls"].as_array().map(Vec::len), Some(3), "{run:#}");
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    browser.shows(&["Wants your approval", "call 1.0", "call 1.1", "call 1.2"]);
    browser.picture("three-calls");
    let groups = "return document.querySelectorAll('#pause .decision').length";
    assert_eq!(browser.run(groups, json!([])), 3);
    // Somebody writes at the second one while the first is decided, in the page and elsewhere.
    browser.run(
        "const field = document.querySelectorAll('.decision .with input')[1]; field.focus(); field.value = 'Not b.'",
        json!([]),
    );
    let first = run["result"]["pause"]["calls"][0].clone();
    let decided = json!({ "approve": true, "call": "1.0", "hash": first["hash"], "pause": run["pause"] });
    assert_eq!(server.post(&format!("/agents/{}/resume?async=true", id(&run)), &decided).status, 202);
    browser.run("document.querySelectorAll('.decision button.good')[2].click()", json!([]));
    browser.until("return document.querySelectorAll('#pause .decision').length === 1");
    let left = browser.shows(&["call 1.1"]);
    assert!(!left.contains("call 1.0,") && !left.contains("call 1.2,"), "{left}");
    assert_eq!(browser.run("return document.querySelector('.decision .with input').value", json!([])), "Not b.");
    assert_eq!(tools.requests().len(), 0, "nothing is made before the whole turn is decided");
    browser.picture("one-call-left");
    browser.click("Deny");
    browser.shows_completed(&["Not b."]);
    let mut made: Vec<Value> = tools.requests().iter().map(|request| request.json()["what"].clone()).collect();
    made.sort_by_key(Value::to_string);
    assert_eq!(made, [json!("a"), json!("c")]);
    // Each call has one card, in the order of the turn.
    let cards =
        "return [...document.querySelectorAll('.call .in')].map((one) => JSON.parse(one.textContent).what).join(' ')";
    assert_eq!(browser.run(cards, json!([])), "a b c ");
    browser.picture("three-calls-decided");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
