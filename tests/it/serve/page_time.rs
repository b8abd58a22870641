//! One iteration of a run, over HTTP and in the page: what the model was sent, the memory, and what came of it.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, look, with};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::page::{DESKTOP, PHONE, id};

/// Markup, text turned round, and what is not seen.
const BOMB: &str =
    "<img src=x onerror=document.title='owned'></pre><h1>owned</h1> \u{202e}live\u{202c} zero\u{200b}width";

/// A loop of three iterations that keeps a colour; its tool says what is hostile, and a secret.
fn three(tools: &Server) -> Place {
    let place = place(json!({}), &[]);
    let keeps = json!({ "type": "action", "name": "look", "remember": { "colour": "/colour" } });
    let mut document = crate::common::document(&json!({ "tools": [keeps] }));
    document["actions"][0]["url"] = json!(format!("{}/look/{{{{at}}}}", tools.url()));
    place.json("loop.json", &document);
    let mut first = look("a");
    first["thought"] = json!(BOMB);
    scripted(&place, &[first, look("b"), complete(json!("done"))], json!({}));
    place
}

fn tools() -> Server {
    Server::with(|number, _| {
        let seen = json!({ "number": number, "note": BOMB, "password": "hunter-2-hunter", "colour": format!("<b>{number}</b>") });
        Answer::json(&seen)
    })
}

#[test]
fn an_iteration_over_http_is_that_of_the_command_line_and_as_described() {
    let tools = tools();
    let place = three(&tools);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = id(&run);
    let described = server.get("/openapi.json").json();
    let mut schema = json!({ "$ref": "#/components/schemas/IterationView" });
    schema["components"] = described["components"].clone();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for at in ["1", "2", "3"] {
        let view = server.get(&format!("/agents/{id}/trace?at={at}"));
        assert_eq!(view.status, 200, "{view:?}");
        let view = view.json();
        let shown = place.call(&["trace", id, "--at", at, "--format", "json"]);
        assert_eq!(view, shown.json());
        assert_eq!(schema.validate(&view).map_err(|why| why.to_string()), Ok(()));
        assert!(!view.to_string().contains("hunter-2"), "{view:#}");
    }
    let without = with(server.get(&format!("/agents/{id}/trace?at=2")).json(), json!({ "messages": 1 }));
    assert!(!schema.is_valid(&without), "the schema says what messages are");
    for (at, said) in [
        ("4", "it has 3 iterations"),
        ("0", "it has 3 iterations"),
        ("look", "is no iteration"),
        ("", "is no iteration"),
    ] {
        let refused = server.get(&format!("/agents/{id}/trace?at={at}"));
        assert_eq!((refused.status, refused.code().as_str()), (404, "no_such_iteration"), "{at}: {refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(said), "{at}: {refused:?}");
    }
}

/// The texts of the messages that are shown, in their order.
fn sent(browser: &Browser) -> Value {
    browser.run("return [...document.querySelectorAll('#time .message pre')].map((one) => one.textContent)", json!([]))
}

fn steps_shown(browser: &Browser) -> Value {
    let script = "return [...document.querySelectorAll('#trace .step')].filter((one) => one.checkVisibility()).length";
    browser.run(script, json!([]))
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_iterations_of_a_run_are_gone_through_in_the_page() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = tools();
    let place = three(&tools);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let id = id(&run);
    let url = format!("http://{}/#{id}", server.address);
    browser.go(&url);
    browser.shows_completed(&["done"]);
    browser.until("return document.querySelectorAll('#trace .step').length === 3");
    browser.click("2");
    let seen = browser.shows(&[
        "All iterations",
        "iteration 2",
        "What the model was sent: 4 messages",
        "Messages 1 to 2",
        "Memory",
    ]);
    assert!(
        seen.contains("[hidden]") && !seen.contains("hunter-2") && !seen.contains(['\u{202e}', '\u{200b}']),
        "{seen}"
    );
    assert!(seen.contains("\"colour\": \"<b>0</b>\""), "the memory after the first call: {seen}");
    assert_eq!(steps_shown(&browser), 1, "what came of it");
    // All messages are there, as text.
    let view = server.get(&format!("/agents/{id}/trace?at=2")).json();
    let texts =
        |view: &Value| view["messages"].as_array().unwrap().iter().map(|one| one["text"].clone()).collect::<Vec<_>>();
    let marked = |text: &Value| {
        let text = text.as_str().unwrap();
        json!(text.replace('\u{202e}', "\\u{202E}").replace('\u{202c}', "\\u{202C}").replace('\u{200b}', "\\u{200B}"))
    };
    assert_eq!(sent(&browser), texts(&view).iter().map(marked).collect::<Value>());
    assert_eq!(browser.run("return document.querySelectorAll('#time img, #time h1, #time b b').length", json!([])), 0);
    assert_eq!(browser.run("return document.title", json!([])), "loopctl");
    browser.picture("time");
    browser.click("Next");
    browser.shows(&["iteration 3", "What the model was sent: 6 messages", "\"colour\": \"<b>1</b>\"", "Previous"]);
    assert_eq!(
        browser.run("return document.querySelectorAll('.beside a').length", json!([])),
        1,
        "there is no next one"
    );
    browser.click("Previous");
    browser.shows(&["iteration 2", "What the model was sent: 4 messages"]);
    browser.click("All iterations");
    browser.until("return document.getElementById('time').hidden");
    assert_eq!(steps_shown(&browser), 3);
    browser.go(&format!("{url}/9"));
    browser.shows(&["iteration 9 of the run can't be shown: it has 3 iterations, and none of the number 9"]);
    assert!(browser.complaints().iter().all(|line| line.contains("404")), "{:?}", browser.complaints());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn an_iteration_that_waits_is_shown_on_a_phone_from_its_address() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let tools = tools();
    let place = three(&tools);
    let ask = json!({ "thought": "t", "action": "__pause_for_human__", "action_input": { "question": "Go on?" } });
    scripted(&place, &[look("a"), ask, complete(json!("done"))], json!({}));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    browser.go(&format!("http://{}/#{}/2", server.address, id(&run)));
    browser.shows(&["Go on?", "iteration 2", "What the model was sent: 4 messages"]);
    browser.until("return document.querySelectorAll('#trace .step.picked').length === 1");
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), PHONE.0, "nothing is wider");
    browser.picture("time-phone-dark");
    // The run goes on, and the iteration stays what it is.
    browser.write("Your answer", "yes");
    browser.click("Send");
    browser.shows_completed(&["What the model was sent: 4 messages", "Next"]);
    assert_eq!(steps_shown(&browser), 1);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
