//! The views beside the runs: what the server can start, with a form for its input, and who executes runs.

use serde_json::{Value, json};

use crate::common::{Place, complete, with};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::page::{DESKTOP, PHONE};

/// A loop `test` with an input of fields of each kind.
fn typed() -> Place {
    let place = place(json!({}), &[]);
    let mut document = crate::common::document(&json!({ "tools": [], "objective": "Pay {{input.amount}}." }));
    document["description"] = json!("Pays <b>one</b> invoice.");
    document["input"] = json!({ "type": "object", "required": ["invoice", "amount"], "additionalProperties": false, "properties": {
        "invoice": { "type": "string", "pattern": "^INV-[0-9]+$", "description": "The invoice, like INV-7" },
        "amount": { "type": "number" },
        "times": { "type": "integer", "default": 2 },
        "currency": { "enum": ["EUR", "USD"] },
        "urgent": { "type": "boolean" },
        "lines": { "type": "array", "items": { "type": "integer" } } } });
    place.json("loop.json", &document);
    scripted(&place, &[complete(json!("done"))], json!({}));
    place
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_loop_is_started_with_a_form_made_of_the_schema_of_its_input() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = typed();
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/", server.address));
    browser.click("Loops");
    browser.shows(&["test", "Pays <b>one</b> invoice.", "Its runs"]);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("loops");
    browser.click("Start test");
    browser.shows(&["Start test", "The invoice, like INV-7", "a whole number"]);
    assert_eq!(browser.violations(), Vec::<String>::new());
    let fields =
        "return [...document.querySelectorAll('#other .input-of > :nth-child(2)')].map((one) => one.localName)";
    assert_eq!(
        browser.run(fields, json!([])),
        json!(["input", "input", "input", "select", "select", "textarea", "input"])
    );
    browser.write("invoice (required)", "INV 7");
    // The digits of a number are sent as they are typed.
    browser.write("amount (required)", "12345678901234567890.10");
    browser.write("lines", "[1, 2");
    browser.run("document.getElementById('input-currency').value = '\"EUR\"'; document.getElementById('input-urgent').value = 'false'", json!([]));
    browser.click("Start");
    browser.shows(&["lines: "]);
    browser.write("lines", "]");
    browser.click("Start");
    // The server judges the input, and says what is wrong with it.
    browser.shows(&["invoice", "must match the pattern"]);
    browser.picture("start-refused");
    assert_eq!(server.get("/agents").json()["agents"], json!([]));
    browser.run("document.getElementById('input-invoice').value = 'INV-7'", json!([]));
    browser.click("Start");
    browser.shows_completed(&["done"]);
    let runs = server.get("/agents?search=inv-7").json();
    assert_eq!(runs["agents"].as_array().map(Vec::len), Some(1), "{runs:#}");
    let input = place.call(&["trace", "last", "--at", "1", "--format", "json"]).stdout;
    assert!(input.contains("12345678901234567890.10"), "{input}");
    browser.run("history.back()", json!([]));
    browser.shows(&["Start test"]);
    browser.go(&format!("http://{}/#/loops/nothing", server.address));
    browser.shows(&["There is no loop nothing."]);
    assert!(browser.complaints().iter().all(|line| line.contains("422")), "{:?}", browser.complaints());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_loop_without_a_schema_takes_an_object_and_two_clicks_start_one_run() {
    let Some(browser) = Browser::open(PHONE, true) else { return };
    let place = place(json!({}), &[complete(json!("done"))]);
    let mut document: Value = crate::common::document(&json!({ "tools": [] }));
    document.as_object_mut().unwrap().remove("input");
    place.json("loop.json", &document);
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/#/loops/test", server.address));
    browser.shows(&["Start test"]);
    assert_eq!(browser.run("return document.documentElement.scrollWidth", json!([])), PHONE.0, "nothing is wider");
    browser.picture("start-phone-dark");
    browser.run(
        "const form = document.querySelector('#other form'); form.requestSubmit(); form.requestSubmit()",
        json!([]),
    );
    browser.shows_completed(&["done"]);
    assert_eq!(server.get("/agents").json()["agents"].as_array().map(Vec::len), Some(1));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_workers_are_listed_over_http_and_in_the_page_and_not_for_one_organisation() {
    let place = place(json!({}), &[complete(json!("done"))]);
    let mut tokens = Vec::new();
    let mut known = Vec::new();
    for (name, more) in [("ops", ["--scope", "metrics"]), ("acme", ["--org", "acme"])] {
        let args = [&["token", name, "--scope", "read"][..], &more].concat();
        let made = place.call(&args);
        let entry = made.stderr.get(made.stderr.find('{').unwrap()..=made.stderr.rfind('}').unwrap()).unwrap();
        known.push(serde_json::from_str::<Value>(entry).unwrap());
        tokens.push(made.stdout.trim().to_owned());
    }
    scripted(&place, &[complete(json!("done"))], json!({ "serve": { "tokens": known } }));
    let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
    let get = |token: &str| {
        let bearer = format!("Bearer {token}");
        server.send("GET", "/workers", &[("authorization", bearer.as_str())], b"")
    };
    let reply = get(&tokens[0]);
    assert_eq!(reply.status, 200, "{reply:?}");
    let listed = reply.json();
    let all = listed["workers"].as_array().unwrap();
    let this: Vec<&Value> = all.iter().filter(|worker| worker["this_server"] == true).collect();
    assert_eq!(this.len(), 1, "{listed:#}");
    assert_eq!(
        (&this[0]["alive"], &this[0]["driven"], &this[0]["version"]),
        (&json!(true), &json!(0), &json!(env!("CARGO_PKG_VERSION")))
    );
    let described = server.get("/openapi.json").json();
    let mut schema = json!({ "$ref": "#/components/schemas/WorkerList" });
    schema["components"] = described["components"].clone();
    assert!(jsonschema::validator_for(&schema).unwrap().is_valid(&listed));
    assert!(!jsonschema::validator_for(&schema).unwrap().is_valid(&with(listed.clone(), json!({ "workers": 1 }))));
    let refused = get(&tokens[1]);
    assert_eq!((refused.status, refused.code().as_str()), (403, "forbidden"));

    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    browser.go(&format!("http://{}/#/workers", server.address));
    browser.write("Token", &tokens[0]);
    browser.click("Go on");
    let name = this[0]["name"].as_str().unwrap();
    browser.shows(&[name, "(this server)", "alive", env!("CARGO_PKG_VERSION")]);
    assert_eq!(browser.violations(), Vec::<String>::new());
    browser.picture("workers");
}
