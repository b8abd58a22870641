//! The head of a run in the page: its figures, where its time went, and what can be done with it.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::{complete, look, think};
use crate::serve::browser::Browser;
use crate::serve::client::Serving;
use crate::serve::page::{DESKTOP, PHONE, id, with_tools};

fn text(browser: &Browser, selector: &str) -> String {
    let text = browser.run("return document.querySelector(arguments[0])?.innerText ?? ''", json!([selector]));
    text.as_str().unwrap().to_owned()
}

/// The names of the rows of the waterfall.
fn rows(browser: &Browser) -> Value {
    browser.run("return [...document.querySelectorAll('#waterfall li a')].map((one) => one.textContent)", json!([]))
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_head_of_a_run_says_what_it_cost_and_where_its_time_went() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let place = with_tools(&tools, &[look("a"), think("act", json!({ "what": "pay" })), complete(json!("done"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "session": "friday" })).json();
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    browser.until("return document.querySelectorAll('#about dd').length >= 5");
    let about = text(&browser, "#about");
    for part in ["test", "paused", "approval", "Started", "For", "Tokens", "Iterations", "2 of ", "Session", "friday"] {
        assert!(about.contains(part), "{part}: {about}");
    }
    browser.until("return document.querySelectorAll('#waterfall li').length === 2");
    assert_eq!(rows(&browser), json!(["1 reply", "1 look"]));
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.click("Approve");
    browser.shows_completed(&["done", "Run again"]);
    browser.until("return document.querySelectorAll('#waterfall li').length === 6");
    assert_eq!(rows(&browser), json!(["1 reply", "1 look", "2 reply", "2 decision", "2 act", "3 reply"]));
    let summary = text(&browser, "#waterfall summary");
    assert!(
        summary.starts_with("Time: model ") && summary.contains(", tools ") && summary.contains(", people "),
        "{summary}"
    );
    // Each bar is on the axis.
    let inside = "const lane = document.querySelector('.lane').getBoundingClientRect(); return [...document.querySelectorAll('.bar-of')] \
                  .map((bar) => bar.getBoundingClientRect()).every((bar) => bar.left >= lane.left - 1 && bar.right <= lane.right + 4 && bar.width > 0)";
    assert_eq!(browser.run(inside, json!([])), true);
    // Times that are equal are written once, and the call that ended the run has no box of nothing.
    let times = "return [...document.querySelectorAll('#trace .call .head')].map((head) => [...head.querySelectorAll('time')] \
                 .map((time) => time.textContent)).every((times) => times.length > 0 && new Set(times).size === times.length)";
    assert_eq!(browser.run(times, json!([])), true);
    assert_eq!(browser.run("return document.querySelectorAll('#trace .call:last-child .out').length", json!([])), 2);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("run-head");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_run_is_cancelled_when_it_is_confirmed_and_started_again_once() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| match number {
        0 => Answer::json(&json!({ "never": "read" })).behind(&held),
        _ => Answer::json(&json!({ "seen": 1 })),
    });
    let place = with_tools(&tools, &[look("a"), complete(json!("done"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("?async=true", json!({ "loop": "test" })).json();
    let first = id(&run).to_owned();
    tools.wait_for(1);
    browser.go(&format!("http://{}/#{first}", server.address));
    browser.click("Cancel");
    let seen = browser.shows(&[&format!("Cancel the run {first}?"), "can't continue", "its trace stays"]);
    assert!(seen.contains("Leave it running"), "{seen}");
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("cancel-phone-dark");
    // Escape closes the question alone, and nothing is cancelled.
    browser.keys("\u{e00c}");
    browser.until("return !document.querySelector('dialog')");
    assert_eq!(browser.run("return document.getElementById('run').hidden", json!([])), false);
    assert_eq!(server.get(&format!("/agents/{first}/status")).json()["status"], "running");
    browser.click("Cancel");
    browser.write("Why (the trace keeps it)", "the order is void");
    browser.click("Cancel this run");
    browser.shows(&["cancelled", "the order is void", "Run again"]);
    gate.open();
    assert_eq!(server.settled(&first)["status"], "cancelled");
    browser.click("Run again");
    browser.shows(&[&format!("A new run starts with the input of {first}")]);
    browser.click("Start a new run");
    browser.shows_completed(&["done", "Rerun of"]);
    let all = server.get("/agents").json();
    let all: Vec<&Value> = all["agents"].as_array().unwrap().iter().map(|run| &run["status"]).collect();
    assert_eq!(all, [&json!("completed"), &json!("cancelled")]);
    // The link leads to the earlier run.
    browser.click(&first);
    browser.shows(&["the order is void"]);
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), PHONE.0, "nothing is wider");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_run_whose_document_has_changed_is_started_again_with_the_present_one_if_one_says_so() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let place = with_tools(&tools, &[complete(json!("first"))]);
    let made = place.call(&["token", "ops", "--scope", "run", "--scope", "read"]);
    let known: Value = serde_json::from_str(
        made.stderr.get(made.stderr.find('{').unwrap()..=made.stderr.rfind('}').unwrap()).unwrap(),
    )
    .unwrap();
    crate::serve::client::scripted(&place, &[complete(json!("first"))], json!({ "serve": { "tokens": [known] } }));
    let bearer = format!("Bearer {}", made.stdout.trim());
    let headers = [("authorization", bearer.as_str())];
    let server = Serving::start(&place, &[]);
    let run = server.send("POST", "/agents/execute", &headers, br#"{"loop":"test"}"#).json();
    let first = id(&run).to_owned();
    drop(server);
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["properties"]["objective"] = json!("Another objective.");
    place.json("loop.json", &document);
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/#{first}", server.address));
    browser.write("Token", made.stdout.trim());
    browser.click("Go on");
    browser.shows(&["Started by", "ops"]);
    browser.click("Run again");
    browser.click("Start a new run");
    browser.shows(&["the loop has changed since this run started"]);
    browser.click("What has changed");
    let changed = "return ['del', 'ins'].map((name) => [...document.querySelectorAll(`dialog .diff ${name}`)].map((one) => one.textContent).join(''))";
    browser.until("return document.querySelector('dialog .diff ins')");
    let changed = browser.run(changed, json!([]));
    assert!(
        changed[1].as_str().unwrap().contains("+ ") && changed[1].as_str().unwrap().contains("Another objective."),
        "{changed}"
    );
    assert!(!changed[0].as_str().unwrap().contains("Another objective."), "{changed}");
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("changed-document");
    let texts = server.send("GET", &format!("/agents/{first}/document"), &headers, b"").json();
    assert_eq!(
        (&texts["changed"], &texts["gone"], texts["files"].as_array().unwrap().len()),
        (&json!(true), &json!(false), 1)
    );
    assert_eq!(texts["files"][0]["file"], "loop.json", "{texts:#}");
    browser.click("Start it with the present document");
    browser.shows_completed(&["Another objective.", "Rerun of", "first"]);
    assert!(
        browser.complaints().iter().all(|line| line.contains("409") || line.contains("401")),
        "{:?}",
        browser.complaints()
    );
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_run_that_failed_is_retried_from_its_head() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "seen": 1 })));
    let away = json!({ "http": 503, "body": "overloaded" });
    let place = with_tools(&tools, &[away.clone(), away, complete(json!("done at last"))]);
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    assert_eq!(run["status"], "failed", "{run:#}");
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    browser.shows(&["failed", "Run again"]);
    browser.click("Retry");
    browser.shows(&["It continues where it failed."]);
    browser.click("Retry this run");
    browser.shows_completed(&["done at last", "retried"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
