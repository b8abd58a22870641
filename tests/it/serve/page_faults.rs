//! The page where things are not as usual: numbers that JavaScript would round, answers that are lost, filters and tokens that the
//! server refuses, and waits that are much longer than the work.

use serde_json::{Value, json};

use crate::common::{Place, complete, document, with};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::page::{DESKTOP, PHONE};

/// A loop `test` with this input, whose model answers at once.
fn taking(input: Value) -> Place {
    let place = place(json!({}), &[]);
    place.json("loop.json", &with(document(&json!({ "tools": [], "objective": "Pay." })), json!({ "input": input })));
    scripted(&place, &[complete(json!("done"))], json!({}));
    place
}

/// What a module of the page gives: an expression of the module `it` and of that of the texts, `text`.
fn of_module(browser: &Browser, module: &str, expression: &str) -> Value {
    let script = format!(
        "return Promise.all([import('/{module}.js'), import('/text.js')]).then(async ([it, text]) => {expression})"
    );
    browser.run(&script, json!([]))
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn costs_that_are_written_with_a_point_are_added_up() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = taking(json!({ "type": "object" }));
    let server = Serving::start(&place, &[]);
    for _ in 0..3 {
        server.execute("", json!({ "loop": "test", "input": {} }));
    }
    // Each run of a list has this cost, with these digits.
    browser.before(
        "const real = window.fetch; window.fetch = async (target, ...more) => { \
           const answer = await real(target, ...more); \
           if (String(target).startsWith('usage?')) { \
             const text = (await answer.text()).replace(/\"cost_usd\":[^,}]*/g, '\"cost_usd\":6.0'); \
             return new Response(text, { status: answer.status, headers: answer.headers }); \
           } \
           if (!String(target).startsWith('agents?')) return answer; \
           const text = (await answer.text()).replace(/\"cost_usd\":[^,}]*,?/g, '').replace(/\"agent_run_id\"/g, '\"cost_usd\":2.0,\"agent_run_id\"'); \
           return new Response(text, { status: answer.status, headers: answer.headers }); }",
    );
    browser.go(&format!("http://{}/", server.address));
    browser.shows(&["Cost of today's runs", "$6.00", "3 runs started today", "$2.00"]);
    let costs = of_module(
        &browser,
        "units",
        "['2.0', '0.0', '6e-5', '0.5'].map((number) => it.dollars(text.parse(`[${number}]`)[0]))",
    );
    assert_eq!(costs, json!(["$2.00", "$0.00", "under $0.0001", "$0.500"]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn numbers_of_a_schema_are_shown_and_sent_as_they_are_written() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = taking(json!({ "type": "object", "required": ["level"], "properties": {
        "level": { "enum": [1.0, 2.5] },
        "rate": { "type": "number", "default": 7.0 },
        "sizes": { "type": "array", "default": [1.0, { "of": 1e-7 }] } } }));
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/#/loops/test", server.address));
    browser.shows(&["Start test"]);
    let fields = "return [...document.querySelectorAll('#input-level option')].map((one) => `${one.textContent}=${one.value}`) \
                  .concat(['rate', 'sizes'].map((name) => document.getElementById(`input-${name}`).value))";
    assert_eq!(browser.run(fields, json!([])), json!(["choose=", "1.0=1.0", "2.5=2.5", "7.0", r#"[1.0,{"of":1e-7}]"#]));
    browser.run("document.getElementById('input-level').value = '1.0'", json!([]));
    browser.click("Start");
    browser.shows_completed(&["done"]);
    let raised = of_module(
        &browser,
        "text",
        "it.continuation(it.parse('{\"limits\":{\"cost_usd\":7.0},\"at\":\"2026-01-31T12:00:00Z\"}')).innerText",
    );
    assert!(raised.as_str().unwrap().starts_with(r#"limits raised {"cost_usd":7.0} "#), "{raised}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_start_whose_answer_is_lost_starts_one_run() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = taking(json!({ "type": "object" }));
    let server = Serving::start(&place, &[]);
    browser.before(
        "const real = window.fetch; let lost = 0; window.fetch = async (target, ...more) => { \
           const answer = await real(target, ...more); \
           if (String(target).startsWith('agents/execute') && !lost) { lost += 1; throw new TypeError('lost'); } \
           return answer; }",
    );
    browser.go(&format!("http://{}/#/loops/test", server.address));
    browser.click("Start");
    browser.shows(&["The server can't be reached"]);
    browser.click("Start");
    browser.shows_completed(&["done"]);
    assert_eq!(server.get("/agents").json()["agents"].as_array().map(Vec::len), Some(1));
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_filter_that_is_refused_leaves_no_rows_and_one_without_a_field_is_named() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = taking(json!({ "type": "object" }));
    let server = Serving::start(&place, &[]);
    for session in ["ada", "bob"] {
        server.execute("", json!({ "loop": "test", "input": {}, "session": session }));
    }
    let rows = "return document.querySelectorAll('#runs li').length";
    browser.go(&format!("http://{}/#/runs?session=ada&until=2100-01-01T00:00:00Z", server.address));
    browser.shows(&["Only these: session ada, started before 2100-01-01T00:00:00Z."]);
    browser.until(&format!("{rows} === 1"));
    browser.click("Without this filter");
    browser.until(&format!("{rows} === 2"));
    browser.until("return document.getElementById('only').hidden");
    browser.run("location.hash = '#/runs?status=lost'", json!([]));
    browser.shows(&["`status` \"lost\" is none of"]);
    assert_eq!(browser.run(rows, json!([])), 0, "no row of another filter");
    // The other views do not ask for the list.
    browser.click("Loops");
    browser.shows(&["Start test"]);
    browser.until("return document.getElementById('said').textContent === ''");
    browser.click("Runs");
    browser.until(&format!("{rows} === 2"));
    assert!(browser.complaints().iter().all(|line| line.contains("400")), "{:?}", browser.complaints());
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_token_that_may_not_read_can_be_forgotten_and_one_that_has_expired_says_so() {
    let place = taking(json!({ "type": "object" }));
    let token = |name: &str, scope: &str, more: Value| {
        let made = place.call(&["token", name, "--scope", scope]);
        let entry = made.stderr.get(made.stderr.find('{').unwrap()..=made.stderr.rfind('}').unwrap()).unwrap();
        (made.stdout.trim().to_owned(), with(serde_json::from_str::<Value>(entry).unwrap(), more))
    };
    let decides = token("decides", "decide", json!({}));
    let old = token("old", "read", json!({ "expires_at": "2020-01-31T12:00:00Z" }));
    let reads = token("reads", "read", json!({}));
    let entries = json!([decides.1, old.1, reads.1]);
    scripted(&place, &[complete(json!("done"))], json!({ "serve": { "tokens": entries } }));
    let Some(browser) = Browser::open(PHONE, false) else { return };
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/", server.address));
    browser.write("Token", &decides.0);
    browser.click("Go on");
    browser.shows(&["`read`", "Forget the token"]);
    // The message has a line of its own on a phone.
    let wide = "return document.getElementById('said').getBoundingClientRect().width";
    assert!(browser.run(wide, json!([])).as_f64().unwrap() > 300.0);
    browser.click("Forget the token");
    browser.write("Token", &old.0);
    browser.click("Go on");
    browser.shows(&["the token `old` has expired at 2020-01-31T12:00:00"]);
    browser.write("Token", &reads.0);
    browser.click("Go on");
    browser.shows(&["There are no such runs."]);
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn a_message_outlives_a_look_a_lost_picture_is_asked_for_again_and_long_waits_and_empty_lists_are_shown() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let place = taking(json!({ "type": "object" }));
    let server = Serving::start(&place, &[]);
    browser.go(&format!("http://{}/#/loops", server.address));
    browser.shows(&["Start test"]);
    let said = "[(it.say('taken'), it.note(''), it.said()), (it.note('away'), it.said()), (it.note(''), it.said())]";
    assert_eq!(of_module(&browser, "said", said), json!(["taken", "away", ""]));
    let lost = "{ const real = window.fetch; const run = { id: 'r', at: '' }; const part = document.createElement('div'); \
                window.fetch = async () => { throw new TypeError('lost'); }; \
                await it.graph(run, part, { steps: [{ at: 'a', status: 'completed' }, { at: 'b', status: 'pending' }] }, String); \
                window.fetch = real; return [run.outline, part.hidden]; }";
    assert_eq!(of_module(&browser, "graph", lost), json!([null, true]));
    // An hour between two seconds of work: the axis is cut there, and each bar is on it.
    let hour = "{ const part = document.getElementById('waterfall'); const row = (kind, from, to) => ({ kind, name: kind, href: '#', from, to }); \
                it.waterfall(part, [row('tool', 0, 1000), row('people', 1000, 3601000), row('tool', 3601000, 3602000)]); \
                const look = [...part.querySelectorAll('.lane')].map((lane) => getComputedStyle(lane, '::after').backgroundImage); \
                const says = part.querySelector('.cuts').textContent; \
                it.waterfall(part, [row('people', 0, 1000), row('people', 1000, 3601000)]); \
                return [look.every((one) => one.startsWith('linear-gradient')), says, part.querySelector('.cuts') === null]; }";
    assert_eq!(
        of_module(&browser, "waterfall", hour),
        json!([true, "‖ marks where a wait is drawn shorter: 1 h in all.", true])
    );
    let empty = "{ const part = document.createElement('div'); \
                 const asks = (at, input) => ({ kind: 'approval', hash: 'h', action: 'PbotApproval', at, question: 'Pay?', action_input: input }); \
                 it.table(part, [asks('a', { to: 'Ada', exceptions: [], more: {} }), asks('b', {}), asks('c', { to: 'Bob', exceptions: [], more: {} })], null, String); \
                 return [...part.querySelectorAll('tbody tr')].map((row) => [...row.querySelectorAll('.short')].map((cell) => cell.textContent).join(' ')); }";
    assert_eq!(of_module(&browser, "approvals", empty), json!(["Ada [] {}", "  ", "Bob [] {}"]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
