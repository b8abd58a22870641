//! What models, tools, callers and documents write is text in the page: a browser counts the elements.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::hostile::{TEXTS, harmless};
use crate::common::server::{Answer, Server};
use crate::common::{complete, think};
use crate::serve::browser::Browser;
use crate::serve::client::{Serving, scripted};
use crate::serve::page::{DESKTOP, id, with_tools};

/// Markup in the places where a page could take it for its own.
const MARKUP: [&str; 12] = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=document.title='owned'>",
    "</p></li></ol></article><h1>owned</h1>",
    "\"><svg onload=document.title='owned'>",
    "' autofocus onfocus=document.title='owned' x='",
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe>",
    "<style>*{display:none}</style><link rel=stylesheet href=//e.example>",
    "<template><b>x</b></template><math><mi//xlink:href=\"data:x,<script>\">",
    "javascript:document.title='owned'",
    "<a href=\"javascript:document.title='owned'\">x</a>",
    "<form action=//e.example><input name=q><button>Approve</button></form>",
    "<!--<p>--><![CDATA[<b>x</b>]]><?php echo 1 ?>&lt;b&gt;&#60;b&#62;",
];

/// How many elements the page has, by name, class and attributes: without the marks that we put where
/// something can't be seen, and the elements that an argument names.
const ELEMENTS: &str = "const count = {}; for (const one of document.querySelectorAll('*:not(.hid)')) { \
    if (one.matches(arguments[0])) continue; \
    const names = one.getAttributeNames().sort().join(); \
    const key = `${one.localName} ${names} ${one.className}`; count[key] = (count[key] || 0) + 1; } return count";

/// Starts a run that says this wherever something can be said, and shows it at its question, its approval
/// and its end; the elements of each.
fn counted(browser: &Browser, texts: &[&str]) -> Vec<BTreeMap<String, Value>> {
    let said = texts.join("\n");
    let answer = json!({ "said": texts, "key": { said.as_str(): said } });
    let seen = answer.clone();
    let tools = Server::with(move |_, _| Answer::json(&seen));
    let mut input = json!({ "what": said });
    input[said.as_str()] = json!(texts);
    let with_thought = |action: &str, input: Value| {
        let mut reply = think(action, input);
        reply["thought"] = json!(said);
        reply
    };
    let replies = [
        with_thought("look", json!({ "at": "a" })),
        with_thought("__log_progress__", json!({ "message": said, "milestone": said })),
        with_thought("no such tool", json!({ "x": said })),
        json!(format!("no reply: {said}")),
        think("__pause_for_human__", json!({ "question": said, "context": said, "options": [said, "Yes, it is"] })),
        with_thought("act", input),
        complete(answer),
    ];
    let place = with_tools(&tools, &replies);
    let mut document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    document["properties"]["objective"] = json!("About {{{input.about}}}.");
    document["input"] = json!({ "type": "object", "properties": { "about": { "type": "string" } } });
    place.json("loop.json", &document);
    scripted(&place, &replies, json!({}));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "input": { "about": said } })).json();
    assert_eq!(run["status"], "paused", "{run:#}");
    browser.go(&format!("http://{}/#{}", server.address, id(&run)));
    let mut all = Vec::new();
    let mut count = |ready: &str, iterations: usize| {
        browser.shows(&[ready, "iteration"]);
        // What waits may be shown before all that led to it.
        browser.until(&format!("return document.querySelectorAll('#trace .step').length === {iterations}"));
        // The list beside it comes by itself: only at the end it is known what it shows.
        let ended = ready == "tokens in";
        if ended {
            browser.until("return document.querySelectorAll('#runs .completed').length === 1 && !document.querySelector('#waiting li')");
        }
        // So does the head of the run. Times of one second are written once.
        if ended {
            browser.until("return document.querySelector('#about .state')?.innerText.startsWith('completed') && !!document.querySelector('#about .acts button')");
        }
        let elements =
            browser.run(ELEMENTS, json!([if ended { "time" } else { "#lists *, #about *, #waterfall *, time" }]));
        all.push(serde_json::from_value(elements).unwrap());
        assert_ne!(browser.run("return document.title", json!([])), "owned");
    };
    count("A question", 5);
    browser.click("Yes, it is");
    count("Wants your approval", 6);
    browser.click("Approve");
    count("tokens in", 7);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    // A page whose server has gone would complain.
    browser.go("about:blank");
    all
}

#[test]
#[ignore = "for the nightly run: a browser of its own"]
fn the_page_holds_no_element_that_comes_of_a_text() {
    let Some(browser) = Browser::open(DESKTOP, false) else { return };
    let hostile: Vec<&str> = MARKUP.into_iter().chain(TEXTS).collect();
    let plain: Vec<String> = hostile.iter().map(|text| harmless(text)).collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let (shown, expected) = (counted(&browser, &hostile), counted(&browser, &plain));
    for (shown, expected) in shown.iter().zip(&expected) {
        let differ = |name: &&String| shown.get(*name) != expected.get(*name);
        let names: Vec<&String> = shown.keys().chain(expected.keys()).filter(differ).collect();
        assert!(names.is_empty(), "{names:?}");
    }
    // The twin: the same texts as markup would be seen in the count.
    browser.go("about:blank");
    let before = browser.run(ELEMENTS, json!(["none"]));
    browser.run("document.body.innerHTML = arguments[0]", json!([hostile.join("\n")]));
    assert_ne!(browser.run(ELEMENTS, json!(["none"])), before);
}
