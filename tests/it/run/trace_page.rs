//! The HTML page of a run, stepped through: what the model was sent for each reply, each message once.

use serde_json::{Value, json};

use crate::common::{Place, complete, look};

/// The text of a piece of the page, as a browser shows it.
fn plain(markup: &str) -> String {
    let mut text = markup.to_owned();
    for (mark, sign) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")] {
        text = text.replace(mark, sign);
    }
    text
}

/// The prompts of the page: of each message who says it, and its texts.
fn on_page(page: &str) -> Vec<Vec<Value>> {
    let mut known: Vec<Value> = Vec::new();
    let mut prompts = Vec::new();
    for asked in page.split("<h3>What the model was sent: ").skip(1) {
        let asked = asked.split("<h3>").next().unwrap();
        let mut prompt = Vec::new();
        for part in asked.split("<p class=\"meta\">").skip(1) {
            let (head, body) = part.split_once("</p>").unwrap();
            if let Some((number, role)) = head.strip_prefix("<b>").and_then(|head| head.split_once("</b> ")) {
                assert_eq!(number, (known.len() + 1).to_string());
                let boxes = body.split("</pre>").filter_map(|before| before.rsplit_once("<pre")?.1.split_once('>'));
                known.push(json!([plain(role), boxes.map(|(_, text)| plain(text)).collect::<Vec<_>>()]));
                prompt.extend(known.last().cloned());
            } else {
                let words = head.split(|c: char| !c.is_ascii_digit());
                let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
                let last = *numbers.last().unwrap();
                prompt.extend(known[numbers[0] - 1..last].iter().cloned());
            }
        }
        prompts.push(prompt);
    }
    prompts
}

/// The prompt of an iteration in the same form, from its JSON.
fn in_json(place: &Place, iteration: usize) -> Vec<Value> {
    let shown = place.call(&["trace", "r", "--at", &iteration.to_string(), "--format", "json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let message = |message: &Value| {
        let of = message["call_id"].as_str().map_or_else(String::new, |id| format!(" of the call {id}"));
        let text = message["text"].as_str().unwrap().trim_end_matches('\n');
        let mut texts: Vec<String> = (!text.is_empty()).then(|| text.to_owned()).into_iter().collect();
        for call in message["calls"].as_array().into_iter().flatten() {
            texts.push(format!("→ {} {}", call["name"].as_str().unwrap(), call["arguments"].as_str().unwrap()));
        }
        json!([format!("{}{of}", message["role"].as_str().unwrap()), texts])
    };
    shown.json()["messages"].as_array().unwrap().iter().map(message).collect()
}

/// The page of a run of these replies, and where it was made.
fn paged(properties: Value, replies: &[Value], tools: Value) -> (Place, String) {
    let place = Place::new();
    place.looped(&properties);
    place.json("script.json", &json!({ "replies": replies, "tools": tools }));
    let (ran, _) = place.run(&["--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let page = place.call(&["trace", "r", "--format", "html"]);
    assert_eq!(page.code, 0, "{page:?}");
    (place, page.stdout)
}

#[test]
fn the_prompt_of_each_iteration_is_that_which_was_sent_in_each_dialect() {
    for dialect in crate::common::dialects::DIALECTS {
        let replies = [look("a"), look("b"), complete(json!("done"))];
        let seen = json!([{ "seen": "<b>one</b> & 'two'" }, { "seen": "line\nline" }]);
        let (place, page) = paged(json!({ "dialect": dialect }), &replies, json!({ "look": seen }));
        let prompts = on_page(&page);
        assert_eq!(prompts.len(), 3, "{dialect}");
        for (at, prompt) in prompts.iter().enumerate() {
            assert_eq!(*prompt, in_json(&place, at + 1), "{dialect}, iteration {}", at + 1);
        }
    }
}

#[test]
fn a_history_that_was_trimmed_is_shown_as_it_was_sent() {
    let replies: Vec<Value> = (0..9).map(|n| look(&n.to_string())).chain([complete(json!("done"))]).collect();
    let tools = json!({ "look": (0..9).map(|n| json!({ "seen": n })).collect::<Vec<_>>() });
    let history = json!({ "max_iterations": 10, "history": { "max_messages": 8, "keep_last": 4 } });
    let (place, page) = paged(history, &replies, tools);
    let prompts = on_page(&page);
    let lengths: Vec<usize> = prompts.iter().map(Vec::len).collect();
    assert!(lengths.windows(2).any(|pair| pair[1] < pair[0]), "it was trimmed: {lengths:?}");
    for (at, prompt) in prompts.iter().enumerate() {
        assert_eq!(*prompt, in_json(&place, at + 1), "iteration {}", at + 1);
    }
}

#[test]
fn each_message_stands_once_so_that_the_page_grows_with_the_run_and_not_with_its_square() {
    let page_of = |most: usize| {
        let replies: Vec<Value> =
            (0..most).map(|n| look(&format!("mark-{n}-"))).chain([complete(json!("done"))]).collect();
        let tools = json!({ "look": (0..most).map(|n| json!({ "seen": format!("seen-{n}-") })).collect::<Vec<_>>() });
        paged(json!({ "max_iterations": most + 1 }), &replies, tools).1
    };
    let (short, long) = (page_of(10), page_of(40));
    for n in 0..40 {
        // In the message, and in the card of the call.
        assert_eq!(long.matches(&format!("seen-{n}-")).count(), 2, "{n}");
    }
    assert!(long.len() < short.len() * 4, "{} {}", short.len(), long.len());
}

#[test]
fn the_page_shows_the_memory_when_it_changes_and_hides_what_the_trace_hides() {
    let tool = json!({ "type": "action", "name": "look", "remember": { "colour": "/colour" } });
    let tools = json!({ "look": [{ "password": "hunter-2-hunter" }, { "colour": "blue" }, { "colour": "blue" }] });
    let replies = [look("a"), look("b"), look("c"), complete(json!("done"))];
    let (_, page) = paged(json!({ "tools": [tool, "act"] }), &replies, tools);
    assert_eq!(page.matches("<h3>Memory</h3>").count(), 1, "it changes once");
    assert!(plain(&page).contains("\"password\":\"[hidden]\""), "it is a message: {page}");
    assert!(!page.contains("hunter-2"), "{page}");
}

#[test]
fn a_prompt_that_got_no_reply_is_shown_too() {
    let place = Place::new();
    place.looped(&json!({}));
    place.script(&[look("a")]);
    let (ran, _) = place.run(&["--run-id", "r"]);
    assert_ne!(ran.code, 0, "the script has no second reply: {ran:?}");
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    assert_eq!(on_page(&page).len(), 2);
    assert!(page.contains("Iteration 2 of 2") && page.contains("no reply yet"), "{page}");
}
