//! The page of a run of a workflow: its steps, the items of a loop however many there are, and what each step asks.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::with;
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, scripted};
use crate::serve::page::{DESKTOP, PHONE};
use crate::serve::reloads::{hangup, until};
use crate::serve::workflows::{act, asks, each, place};

/// Markup, text turned round, and what is not seen.
const BOMB: &str = "<img src=x onerror=document.title='owned'> \u{202e}live\u{202c} zero\u{200b}width مرحبا";

fn begin(server: &Serving, query: &str, input: Value) -> String {
    let reply = server.post(&format!("/workflows/pay/execute{query}"), &json!({ "input": input }));
    assert!([200, 202].contains(&reply.status), "{reply:?}");
    reply.json()["run_id"].as_str().expect("an id").to_owned()
}

fn is_as_wide_as(browser: &Browser, width: u32) {
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), width, "nothing is wider");
}

fn count(browser: &Browser, selector: &str) -> u64 {
    let count = browser.run("return document.querySelectorAll(arguments[0]).length", json!([selector]));
    count.as_u64().expect("a number")
}

/// Items above 9,980 are sent to a server that refuses every third one.
fn many_items(tools: &Server) -> crate::common::Place {
    let above = json!({ "greaterThan": ["@one", 9980] });
    let settings = json!({ "failure_strategy": "continue_on_error", "max_concurrency": 7, "summary_key": "counts" });
    let steps = json!([with(act("@one", Some(above)), json!({ "id": "send_it_to_the_server_of_a_long_name" }))]);
    let last = json!({ "id": "after", "type": "act", "properties": { "id": "@counts.failed" } });
    place(tools, json!({ "output": { "failed": "@counts.failed" }, "actions": [each(settings, steps), last] }))
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn ten_thousand_items_are_a_page_of_cells_and_each_shows_its_steps() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::reading(|_, request| match request.json()["id"].as_u64() {
        Some(id) if id > 9980 && id % 3 == 0 => Answer::new("text/plain", "no").status(500),
        id => Answer::json(&json!({ "sent": id, "said": BOMB, "api_key": "k-123456789" })),
    });
    let place = many_items(&tools);
    let server = Serving::start(&place, &[]);
    let items: Vec<u32> = (0..10_000).collect();
    let id = begin(&server, "", json!({ "items": items }));
    browser.go(&format!("http://{}/#{id}", server.address));
    browser.shows_completed(&["each", "10000 items: 12 completed, 7 failed, 9981 skipped", "after", "\"failed\": 7"]);
    assert!(count(&browser, "*") < 400, "not a node for each item");
    browser.picture("flow");
    browser.click("each");
    browser.shows(&["All steps", "all 10000", "7 failed", "12 completed", "9981 skipped", "items 0 to 199 of 10000"]);
    assert_eq!(count(&browser, ".grid a"), 200);
    browser.picture("flow-grid");
    browser.click("Next");
    browser.shows(&["items 200 to 399 of 10000"]);
    browser.click("Previous");
    browser.shows(&["items 0 to 199 of 10000"]);
    browser.click("7 failed");
    browser.until("return document.querySelectorAll('.grid a').length === 7");
    browser.picture("flow-grid-failed");
    // The arrow keys move, and Tab reaches one cell.
    assert_eq!(count(&browser, ".grid a[tabindex='0']"), 1);
    browser.run("document.querySelector('.grid a').focus()", json!([]));
    browser.keys("\u{e014}\u{e014}");
    assert_eq!(browser.run("return document.activeElement.firstChild.textContent", json!([])), "9987");
    browser.keys("\u{e007}");
    let seen = browser.shows(&["item 9987", "This item is", "failed", "send_it_to_the_server_of_a_long_name", "500"]);
    assert!(seen.contains("Input"), "{seen}");
    browser.picture("flow-item-failed");
    browser.click("each");
    browser.write("Item", "9982");
    browser.click("Show");
    browser.shows(&["This item is", "item 9982"]);
    browser.click("Output");
    let seen = browser.shows(&["\"sent\": 9982", "[hidden]", r"\u202elive\u202c", r"zero\u200bwidth"]);
    assert!(!seen.contains("k-123456789") && !seen.contains('\u{202e}'), "{seen}");
    assert_eq!(count(&browser, "#run img"), 0);
    browser.picture("flow-item");
    browser.go(&format!("http://{}/#{id}/each.12000", server.address));
    browser.shows(&["the loop `each` has no item `12000`; it has 10000 items: 0 to 9999"]);
    browser.go(&format!("http://{}/#{id}/eech", server.address));
    browser.shows(&["the workflow has no step `eech`; its steps are `each`, `after`; did you mean `each`?"]);
    assert_eq!(browser.run("return document.title", json!([])), "loopctl");
    // The two addresses that lead nowhere, and nothing else.
    assert!(browser.complaints().iter().all(|line| line.contains("404")), "{:?}", browser.complaints());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_questions_of_steps_are_answered_each_in_its_own_form_on_a_phone() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
    let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "expected_keys": ["amount", "why_it_is_paid_late"] } });
    let payload =
        json!({ "request_payload": { "to": "@one", "why": "@why_it_is_paid_late", "password": "@input.password" } });
    let steps = json!([
        with(asks(json!({ "comment": "Pay {{one}}?" })), json!({})),
        act("@one", Some(json!({ "equal": ["@__approved", true] })))
    ]);
    let mut steps = steps;
    steps[0]["properties"] = with(steps[0]["properties"].clone(), payload);
    let settings = json!({ "max_concurrency": 3, "collect": "@__approval_data" });
    let place =
        place(&tools, json!({ "output": "@all", "actions": [form, each(settings, steps), act("@amount", None)] }));
    let server = Serving::start(&place, &[]);
    let id = begin(
        &server,
        "",
        json!({ "items": ["Ada \u{202e}adA", "Bob", "acct_0042_of_a_customer_with_a_long_name@example.com"], "password": "hunter2" }),
    );
    browser.go(&format!("http://{}/#{id}", server.address));
    browser.shows(&["Waits for a human", "fill", "a form", "amount", "why_it_is_paid_late"]);
    is_as_wide_as(&browser, PHONE.0);
    browser.picture("flow-form-phone-dark");
    // What is typed is a text until it is JSON of another kind.
    browser.write("amount", "12.50");
    browser.write("why_it_is_paid_late", "\"so\"");
    let kinds = "return [...document.querySelectorAll('.key select')].map((kind) => kind.value)";
    assert_eq!(browser.run(kinds, json!([])), json!(["json", "text"]));
    browser.click("Send");
    let seen = browser.shows(&["3 steps wait", "each.0.ask", "each.1.ask", "each.2.ask", "Pay Bob?", "[hidden]"]);
    assert!(seen.contains(r"Ada \u202eadA") && !seen.contains("hunter2") && !seen.contains('\u{202e}'), "{seen}");
    is_as_wide_as(&browser, PHONE.0);
    browser.picture("flow-approvals-phone-dark");
    // What is written at one step stays while another one is decided.
    browser.run(
        "const field = document.querySelectorAll('.question-of input')[1]; field.focus(); field.value = 'Not Bob.'",
        json!([]),
    );
    browser.run("document.querySelectorAll('.question-of button.good')[2].click()", json!([]));
    browser.until("return document.querySelectorAll('.question-of').length === 2");
    assert_eq!(browser.run("return document.querySelectorAll('.question-of input')[1].value", json!([])), "Not Bob.");
    browser.run("document.querySelectorAll('.question-of button.bad')[1].click()", json!([]));
    browser.until("return document.querySelectorAll('.question-of').length === 1");
    browser.run("document.querySelector('.question-of a').click()", json!([]));
    browser.shows(&["item 0", "waiting", "Pay Ada"]);
    browser.picture("flow-item-waits-phone-dark");
    browser.click("Approve");
    browser.shows_completed(&["each.1.ask", "Not Bob."]);
    is_as_wide_as(&browser, PHONE.0);
    browser.picture("flow-decided-phone-dark");
    let status = server.get(&format!("/runs/{id}/status")).json();
    assert_eq!(status["context"]["amount"].to_string(), "12.50");
    assert_eq!(status["context"]["why_it_is_paid_late"], "\"so\"");
    let comments: Vec<&Value> =
        status["result"]["decisions"].as_array().unwrap().iter().map(|one| &one["decision"]).collect();
    assert_eq!(comments, ["answer", "approve", "deny", "approve"]);
    assert_eq!(tools.requests().len(), 3);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_forms_of_steps_stay_when_their_questions_are_posted() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
    let hook = Server::with(|_, _| Answer::json(&json!({})));
    let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": "Pay?", "ask": ["ops"] } });
    let fields = json!([{ "name": "amount", "type": "integer" }]);
    let form = json!({ "id": "fill", "type": "PbotForm",
        "properties": { "question": "How much?", "fields": fields, "ask": ["ops"] } });
    let place = place(&tools, json!({ "output": "@amount", "actions": [ask, form] }));
    let target = json!({ "kind": "webhook", "url": format!("{}/hook", hook.url()) });
    scripted(&place, &[], json!({ "notify": { "ops": target } }));
    let server = Serving::start(&place, &[]);
    let id = begin(&server, "", json!({}));
    browser.go(&format!("http://{}/#{id}", server.address));
    browser.shows(&["Waits for a human", "Pay?", "ok: asked ops"]);
    assert_eq!(count(&browser, ".question-of"), 1);
    browser.click("Approve");
    browser.shows(&["How much?", "fill: asked ops"]);
    browser.write("amount", "12");
    browser.click("Send");
    browser.shows_completed(&["12"]);
    assert_eq!(hook.requests().len(), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_workflow_is_followed_live_and_what_a_killed_server_left_is_decided_in_the_page() {
    let Some(browser) = Browser::open((1400, 900), false) else { return };
    let gate = Gate::default();
    let held = gate.clone();
    let tools = Server::with(move |number, _| match number {
        2 => Answer::json(&json!({ "never": "read" })).behind(&held),
        _ => Answer::json(&json!({ "sent": number })),
    });
    let place = place(
        &tools,
        json!({ "output": "@all", "actions": [each(json!({ "max_concurrency": 1 }), json!([act("@one", None)])),
        { "id": "not_yet", "type": "act", "properties": { "id": "@all" } }] }),
    );
    let more = json!({ "http_method": "POST", "parameters": { "type": "object", "properties": { "id": {} } } });
    place.json("actions/act.json", &json!([crate::common::web("act", &format!("{}/act", tools.url()), more)]));
    let server = Serving::start(&place, &[]);
    let address = server.address.to_string();
    let id = begin(&server, "?async=true", json!({ "items": ["a", "b", "c", "d", "e"] }));
    browser.go(&format!("http://{address}/#{id}"));
    browser.shows(&["5 items: 2 completed", "running", "not_yet", "not started"]);
    browser.picture("flow-live");
    browser.click("each");
    browser.shows(&["2 completed", "1 running", "2 not started"]);
    drop(server);
    browser.shows(&["The server can't be reached; retrying."]);
    let server = Serving::start_at(&address, &place, &[]);
    browser.shows(&["Did it happen?", "each.2.0", "1 uncertain"]);
    browser.picture("flow-uncertain");
    browser.click("It did not happen: retry");
    browser.shows_completed(&["5 completed"]);
    assert_eq!(count(&browser, ".grid a.completed"), 5);
    browser.click("All steps");
    browser.shows(&["5 items: 5 completed", "not_yet"]);
    assert_eq!(tools.requests().len(), 7);
    browser.picture("flow-1400");
    drop(server);
    gate.open();
}

/// A workflow that asks about each invoice, and pays those that are approved, or writes a note about the others.
fn invoices(tools: &Server) -> crate::common::Place {
    let ask = with(
        asks(json!({ "comment": "Pay {{one.invoice}}?" })),
        json!({ "filter": { "condition": { "greaterThan": ["@one.amount", 100] } } }),
    );
    let ask = with(
        ask.clone(),
        json!({ "properties": with(ask["properties"].clone(),
        json!({ "request_payload": { "invoice": "@one", "password": "@input.password" } })) }),
    );
    let pay = with(
        act("@one", Some(json!({ "equal": ["@__approved", true] }))),
        json!({ "id": "pay", "onFalse": { "id": "note", "type": "act", "properties": { "id": "@one.invoice" } } }),
    );
    let settings = json!({ "max_concurrency": 9, "on_pause": "go_on", "collect": "@__approved" });
    place(
        tools,
        json!({ "output": "@all", "actions": [each(settings, json!([ask, pay])),
        { "id": "after", "type": "act", "properties": { "id": "@all" } }] }),
    )
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn approvals_are_a_table_that_is_ticked_and_decided_together_beside_a_picture_and_labelled_items() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let tools = Server::with(|_, _| Answer::json(&json!({ "done": true })));
    let place = invoices(&tools);
    let server = Serving::start(&place, &[]);
    let item = |n: u32| json!({ "invoice": format!("INV-{n} \u{202e}\u{200b}<b>"), "supplier": "Ada", "amount": n * 60, "lines": [1, 2] });
    let items: Vec<Value> = (1..=6).map(item).collect();
    let id = begin(&server, "", json!({ "items": items, "password": "hunter2" }));
    browser.go(&format!("http://{}/#{id}", server.address));
    let seen =
        browser.shows(&["5 steps wait", "each.1.ask", "each.5.ask", "120", "360", "[hidden]", "Approve the ticked"]);
    assert!(
        seen.contains(r"INV-2 \u202e\u200b<b>") && !seen.contains("hunter2") && !seen.contains('\u{202e}'),
        "{seen}"
    );
    // The picture has the loop, its branches, and what comes after.
    browser.until("return document.querySelectorAll('.graph .box').length >= 5");
    let picture = browser.run("return document.querySelector('.picture').innerText.replace(/\\s+/g, ' ')", json!([]));
    for part in ["each", "for each of|6 items: 1 completed", "ask", "if", "pay", "else", "note", "after", "not started"]
    {
        assert!(part.split('|').any(|part| picture.as_str().unwrap().contains(part)), "{part}: {picture}");
    }
    // The steps come before what they ask.
    let order =
        "return document.querySelector('.rows').compareDocumentPosition(document.querySelector('.approvals')) & 4";
    assert_eq!(browser.run(order, json!([])), 4);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("flow-table");
    browser.click("Approve the ticked");
    browser.shows(&["Tick the rows first."]);
    assert_eq!(tools.requests().len(), 1, "nothing is decided by itself; the item that asks nothing has its note");
    browser.run(
        "const ticks = document.querySelectorAll('.approvals tbody input'); ticks[0].click(); ticks[2].click()",
        json!([]),
    );
    browser.write("Comment (for all that are ticked)", "Both are right.");
    browser.click("Approve the ticked");
    browser.until("return document.querySelectorAll('.approvals tbody tr').length === 3");
    browser.shows(&["3 steps wait", "2 decisions taken"]);
    browser.run("document.querySelector('.approvals thead input').click()", json!([]));
    // A deployment: it must be said which text counts.
    let text = std::fs::read_to_string(place.path().join("workflows/pay.json")).unwrap();
    place.file("workflows/pay.json", text.replace("Pay {{one", "Really pay {{one").replace("Pays.", "Pays now."));
    hangup(&server);
    until(|| server.get("/loops").json().to_string().contains("Pays now."));
    browser.click("Deny the ticked");
    browser.shows(&["3 refused: the rows say why", "has changed since the run started", "With the new text"]);
    browser.picture("flow-table-changed");
    browser.click("With the recorded text");
    browser.shows_completed(&["6 items: 6 completed"]);
    let decisions = server.get(&format!("/runs/{id}/status")).json()["result"]["decisions"].clone();
    let taken: Vec<(&str, &str)> = decisions
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["step"].as_str().unwrap(), one["decision"].as_str().unwrap()))
        .collect();
    assert_eq!(
        taken,
        [
            ("each.1.ask", "approve"),
            ("each.3.ask", "approve"),
            ("each.2.ask", "deny"),
            ("each.4.ask", "deny"),
            ("each.5.ask", "deny")
        ]
    );
    assert_eq!((&decisions[0]["comment"], &decisions[2]["comment"]), (&json!("Both are right."), &Value::Null));
    // Each item has its label, its number and its verdict, and leads to its steps.
    browser.go(&format!("http://{}/#{id}/each", server.address));
    let seen = browser.shows(&["Ada", "amount 120", "true", "false", "6 completed"]);
    assert!(seen.contains("INV-2") && !seen.contains(['\u{202e}', '\u{200b}']), "{seen}");
    assert_eq!(count(&browser, ".labelled b b, #run img"), 0);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("flow-items");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
