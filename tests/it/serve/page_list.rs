//! The page that is left open all day: what waits, what failed, what is spent; the list, its search and its filters in the address.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::page::{DESKTOP, PHONE};

/// A loop `test` about an input, whose model asks, fails, and answers, in this order of runs.
fn asks_fails_and_answers() -> Place {
    let place = place(json!({}), &[]);
    let mut document = crate::common::document(&json!({ "objective": "Settle {{input.about}}." }));
    document["input"] = json!({ "type": "object", "properties": { "about": { "type": "string" } } });
    place.json("loop.json", &document);
    let ask = think("__pause_for_human__", json!({ "question": "Which <b>account</b> is it?" }));
    let case = |about: &str, replies: Value| json!({ "when": { "about": about }, "replies": replies });
    let fail = json!({ "http": 400, "headers": {} });
    place.json(
        "script.json",
        &json!({ "replies": [], "cases": [
            case("the refund", json!([ask, complete(json!("done"))])),
            case("the outage", json!([fail])),
            case("the order", json!([complete(json!("done"))])),
        ] }),
    );
    place
}

fn start(server: &Serving, about: &str) -> String {
    let run = server.execute("", json!({ "loop": "test", "input": { "about": about } })).json();
    run["agent_run_id"].as_str().unwrap_or_else(|| panic!("{run:#}")).to_owned()
}

/// The ids in a list, in their order.
fn ids(browser: &Browser, list: &str) -> Vec<String> {
    let ids = browser.run(
        "return [...document.querySelectorAll(`${arguments[0]} li`)].map((one) => one.dataset.run)",
        json!([list]),
    );
    serde_json::from_value(ids).unwrap()
}

fn hash(browser: &Browser) -> Value {
    browser.run("return location.hash", json!([]))
}

fn focused_run(browser: &Browser) -> Value {
    browser.run("return document.activeElement.parentNode.dataset?.run || null", json!([]))
}

/// Waits until the list holds these runs, in this order.
fn lists(browser: &Browser, list: &str, runs: &[&String]) {
    browser.until(&format!(
        "return JSON.stringify([...document.querySelectorAll('{list} li')].map((one) => one.dataset.run)) === JSON.stringify({})",
        json!(runs)
    ));
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn home_shows_what_waits_and_failed_and_no_run_twice() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = asks_fails_and_answers();
    let server = Serving::start(&place, &[]);
    let (asks, fails, done) = (start(&server, "the refund"), start(&server, "the outage"), start(&server, "the order"));
    browser.go(&format!("http://{}/", server.address));
    let seen = browser.shows(&["Waiting for people", "Failed since yesterday", "Cost of today's runs", "Under way"]);
    assert!(!seen.contains("Choose a run"), "{seen}");
    lists(&browser, "#waiting", &[&asks]);
    lists(&browser, "#failed", &[&fails]);
    lists(&browser, "#runs", &[&done]);
    let seen = browser.shows(&["Settle the refund. · Which <b>account</b> is it?", "Settle the order."]);
    assert!(seen.contains("now") || seen.contains("sec. ago") || seen.contains("ago"), "{seen}");
    // The whole time is there for a pointer, in the reader's form and as it was written.
    let whole = "const time = document.querySelector('#runs time'); return time.title === new Date(time.dateTime).toLocaleString()";
    assert_eq!(browser.run(whole, json!([])), true);
    let figures = "return [...document.querySelectorAll('#tiles b')].map((one) => one.textContent)";
    let figures = browser.run(figures, json!([]));
    assert_eq!((&figures[0], &figures[1], &figures[3]), (&json!("1"), &json!("1"), &json!("0")), "{figures}");
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("home");
    // A figure leads to its runs.
    browser.run("document.querySelector('#tiles .failed a').click()", json!([]));
    lists(&browser, "#runs", &[&fails]);
    assert_eq!(hash(&browser), "#/runs?status=failed&ended_since=yesterday");
    assert_eq!(ids(&browser, "#waiting"), Vec::<String>::new(), "who filters sees what was asked for alone");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn search_and_filters_are_in_the_address_and_the_buttons_of_the_browser_work() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = asks_fails_and_answers();
    let server = Serving::start(&place, &[]);
    let (asks, fails, done) = (start(&server, "the refund"), start(&server, "the outage"), start(&server, "the order"));
    browser.go(&format!("http://{}/#/runs", server.address));
    lists(&browser, "#runs", &[&done, &fails, &asks]);
    // The numbers of all runs, and not of those of this status alone.
    browser.until(
        "return ['3', '1', '1'].every((count, n) => document.querySelectorAll('#statuses [data-status=\"\"], \
         #statuses [data-status=completed], #statuses [data-status=failed]')[n].dataset.count === count)",
    );
    browser.click("failed");
    lists(&browser, "#runs", &[&fails]);
    browser.click("all");
    lists(&browser, "#runs", &[&done, &fails, &asks]);
    browser.write("Search", "REFUND");
    lists(&browser, "#runs", &[&asks]);
    assert_eq!(hash(&browser), "#/runs?search=REFUND");
    browser.picture("search");
    browser.click("completed");
    browser.shows(&["There are no such runs."]);
    assert_eq!(hash(&browser), "#/runs?status=completed&search=REFUND");
    browser.run("history.back()", json!([]));
    lists(&browser, "#runs", &[&asks]);
    browser.run("history.back()", json!([]));
    lists(&browser, "#runs", &[&done, &fails, &asks]);
    assert_eq!(browser.run("return document.getElementById('search').value", json!([])), "");
    browser.run("history.back()", json!([]));
    lists(&browser, "#runs", &[&fails]);
    // An address that is opened anew shows the same, and an odd one shows what there is.
    browser.go("about:blank");
    browser.go(&format!("http://{}/#/runs?status=completed&loop=test&since=week", server.address));
    lists(&browser, "#runs", &[&done]);
    let shown = "return [document.getElementById('loop').value, document.getElementById('since').value, \
                 document.querySelector('#statuses [aria-pressed=true]').textContent]";
    assert_eq!(browser.run(shown, json!([])), json!(["test", "week", "completed"]));
    browser.go(&format!("http://{}/#/runs?ended_since=today&ended_until=2999-01-31T12:00:00Z", server.address));
    lists(&browser, "#runs", &[&done, &fails]);
    browser.shows(&["Only these: ended before 2999-01-31T12:00:00Z."]);
    // An address may name several statuses.
    browser.go(&format!("http://{}/#/runs?status=failed,paused", server.address));
    lists(&browser, "#runs", &[&fails, &asks]);
    let pressed =
        "return [...document.querySelectorAll('#statuses [aria-pressed=true]')].map((one) => one.textContent)";
    assert_eq!(browser.run(pressed, json!([])), json!(["waiting", "failed"]));
    browser.go(&format!("http://{}/#/nothing?status=%E0%A4%A&x=<b>", server.address));
    lists(&browser, "#waiting", &[&asks]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_lists_are_worked_with_the_keyboard_alone() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = asks_fails_and_answers();
    let server = Serving::start(&place, &[]);
    let (asks, fails, done) = (start(&server, "the refund"), start(&server, "the outage"), start(&server, "the order"));
    browser.go(&format!("http://{}/", server.address));
    lists(&browser, "#runs", &[&done]);
    // Tab comes to the link over the head first.
    browser.keys("\u{e004}");
    assert_eq!(browser.run("return document.activeElement.className", json!([])), "skip");
    browser.keys("\u{e007}");
    assert_eq!(browser.run("return document.activeElement.id", json!([])), "main");
    // The arrow keys move over all lists.
    browser.run("document.querySelector('#waiting a').focus()", json!([]));
    browser.keys("\u{e015}");
    assert_eq!(focused_run(&browser), json!(fails));
    browser.keys("\u{e015}");
    assert_eq!(focused_run(&browser), json!(done));
    browser.keys("\u{e013}\u{e013}");
    assert_eq!(focused_run(&browser), json!(asks));
    // A run is opened and left, and the focus is where it was.
    browser.keys("\u{e007}");
    browser.shows(&["A question", "Your answer"]);
    assert_eq!(browser.run("return document.activeElement.id", json!([])), "run");
    browser.keys("\u{e00c}");
    browser.until("return document.getElementById('run').hidden");
    assert_eq!((hash(&browser), focused_run(&browser)), (json!(""), json!(asks)));
    // `/` searches; Escape leaves the field and keeps what is written.
    browser.keys("/");
    assert_eq!(browser.run("return document.activeElement.id", json!([])), "search");
    browser.keys("order\u{e007}");
    lists(&browser, "#runs", &[&done]);
    browser.keys("\u{e00c}");
    assert_eq!(
        browser.run("return [document.activeElement === document.body, location.hash]", json!([])),
        json!([true, "#/runs?search=order"])
    );
    // In a field of a run, Escape loses nothing.
    browser.go(&format!("http://{}/#{asks}", server.address));
    browser.write("Your answer", "The first/second one");
    browser.keys("\u{e00c}");
    let kept = "return [document.getElementById('run').hidden, document.querySelector('#pause textarea').value]";
    assert_eq!(browser.run(kept, json!([])), json!([false, "The first/second one"]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_long_list_is_read_page_by_page_on_a_phone() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let place = place(json!({}), &[]);
    scripted(&place, &[complete(json!("done"))], json!({}));
    let server = Serving::start(&place, &[]);
    for _ in 0..53 {
        server.execute("", json!({ "loop": "test" }));
    }
    browser.go(&format!("http://{}/#/runs", server.address));
    browser.until("return document.querySelectorAll('#runs li').length === 50");
    let first = ids(&browser, "#runs");
    browser.click("Older");
    browser.until("return document.querySelectorAll('#runs li').length === 3");
    assert!(ids(&browser, "#runs").iter().all(|id| !first.contains(id)));
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), PHONE.0, "nothing is wider");
    browser.picture("list-older-phone-dark");
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.click("Newest");
    browser.until("return document.querySelectorAll('#runs li').length === 50");
    assert_eq!(ids(&browser, "#runs"), first);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_runs_of_a_list_are_cancelled_together_once_it_is_said_how_many_they_are() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = asks_fails_and_answers();
    let server = Serving::start(&place, &[]);
    let (one, _, two) = (start(&server, "the refund"), start(&server, "the order"), start(&server, "the refund"));
    browser.go(&format!("http://{}/#/runs?status=paused", server.address));
    lists(&browser, "#runs", &[&two, &one]);
    browser.click("Cancel these…");
    browser.shows(&["Cancel 2 runs?", "can't continue"]);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("bulk");
    browser.click("Leave them");
    assert_eq!(server.get(&format!("/agents/{one}/status")).json()["status"], "paused");
    browser.click("Cancel these…");
    // It matches, too, and nobody has confirmed anything of it.
    let later = start(&server, "the refund");
    browser.write("Why (the traces keep it)", "the shop is closed");
    browser.click("Cancel 2 runs");
    browser.shows(&["2 runs cancelled."]);
    for run in [&one, &two] {
        let status = server.get(&format!("/agents/{run}/status")).json();
        assert_eq!(status["status"], "cancelled");
        assert!(status["result"]["error"]["message"].as_str().unwrap().contains("the shop is closed"), "{status:#}");
    }
    assert_eq!(server.get(&format!("/agents/{later}/status")).json()["status"], "paused");
    // What was done is a list of its own, and leads to the runs.
    browser.go(&format!("http://{}/#/audit?action=cancelled", server.address));
    let seen = browser.shows(&["What was done", "cancelled", &one, &two]);
    assert!(!seen.contains("There are no such lines"), "{seen}");
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("audit");
    browser.go(&format!("http://{}/#/audit?run={two}", server.address));
    browser.shows(&[&format!("Only these: run {two}."), "started", "cancelled"]);
    browser.click("Without this filter");
    browser.shows(&[&one]);
    browser.go(&format!("http://{}/#/audit?action=released", server.address));
    browser.shows(&["There are no such lines."]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
