//! A reply in the page while it arrives: in a browser, as text, until the recorded reply takes its place.

use serde_json::json;

use crate::common::server::{Answer, Gate, Server};
use crate::common::streams::streamed;
use crate::common::{Place, complete};
use crate::serve::browser::Browser;
use crate::serve::client::Serving;
use crate::serve::page::{DESKTOP, id};

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_reply_grows_in_the_page_and_the_recorded_one_takes_its_place() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let whole = json!({ "thought": "Look <b>first</b> at the cable \u{202e}and then on", "action": "__log_progress__",
        "action_input": { "message": "half", "password": "hunter2" } })
    .to_string();
    let at = whole.find("and then").unwrap();
    let gates = [Gate::default(), Gate::default()];
    let stream = |pieces: &[&str]| Answer::events(streamed("openai", pieces));
    let mut wrong = streamed("openai", &["It is all wrong. "]);
    wrong.truncate(1);
    let first = Answer::events(wrong).cut();
    let second = stream(&[&whole[..at], &whole[at..]]).behind(&gates[0]).held_at(1, &gates[1]);
    let third = stream(&[&complete(json!("Done.")).to_string()]);
    let model = Server::new(vec![first, second, third]);
    let place = Place::new();
    let properties =
        json!({ "mode": "react", "objective": "Answer.", "tools": [], "max_iterations": 5, "retry": { "base_ms": 0 } });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let models = json!({ "m": { "provider": "openai", "base_url": model.url(), "model": "test" } });
    place.json("loopctl.json", &json!({ "model": "m", "models": models }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("?async=true&deltas=true", json!({ "loop": "test" })).json();
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    // The first attempt was cut: nothing of it stays.
    browser.shows(&["about 0 tokens so far"]);
    gates[0].open();
    let seen = browser.shows(&["Look <b>first</b> at the cable", "tokens so far, the first after "]);
    assert!(!seen.contains("It is all wrong"), "{seen}");
    let live = browser.run("return document.querySelectorAll('.thought.live').length", json!([]));
    assert_eq!(live, 1);
    browser.picture("reply-arrives");
    gates[1].open();
    let seen = browser.shows_completed(&["Done."]);
    assert!(!seen.contains("so far") && !seen.contains("\"action\"") && !seen.contains("hunter2"), "{seen}");
    assert_eq!(browser.run("return document.querySelectorAll('.live').length", json!([])), 0);
}
