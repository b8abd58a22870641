//! Replies that could not be read: each of them is shown once, and the advice fits the cause.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, look, think};

const RUN: [&str; 6] = ["run", "loop.json", "--script", "script.json", "--run-id", "r"];

/// A run of these replies, as the terminal shows it.
fn live(properties: Value, replies: &[Value]) -> (Place, Ran) {
    let place = Place::new();
    place.looped(&properties).script(replies);
    let ran = place.call(&RUN);
    (place, ran)
}

/// The page without what the model was sent, which repeats what the iterations show.
fn page_of(place: &Place) -> String {
    let page = place.call(&["trace", "r", "--format", "html"]).stdout;
    let mut parts = page.split("<div class=\"asked\">");
    let first = parts.next().expect("a page").to_owned();
    let rest = parts.map(|part| part.split_once("What came of it</h3>\n</div>").expect("the end of a prompt").1);
    std::iter::once(first.as_str()).chain(rest).collect()
}

/// A refused reply with a mark of its own, of four kinds.
fn refused(number: usize) -> Value {
    let mark = format!("MARK-{number:02}.");
    match number % 4 {
        0 => json!(format!("{mark} I would \u{1b}[2J look <b>first</b>")),
        1 => json!({ "text": format!("{{\"thought\": \"{mark}"), "finish": "length" }),
        2 => json!(format!("{mark} {}", "y".repeat(3_000))),
        _ => json!(format!("{{\"thought\":\"no action\",\"note\":\"{mark}\"}}")),
    }
}

#[test]
fn twenty_refused_replies_are_shown_once_each_and_so_is_what_the_model_reads_of_them() {
    let mut replies = Vec::new();
    for number in 0..20 {
        replies.push(refused(number));
        // Three in a row would end the run.
        if number % 2 == 1 {
            replies.push(look(&format!("place-{number}")));
        }
    }
    replies.push(complete(json!("ok")));
    let (place, ran) = live(json!({ "max_iterations": 60 }), &replies);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let text = place.call(&["trace", "r"]).stdout;
    let page = page_of(&place);
    let trace = place.call(&["trace", "r", "--format", "json"]).json();
    let entries = trace["trace"].as_array().expect("a trace").iter().filter(|entry| entry["action"].is_null());
    let details: Vec<&str> = entries.map(|entry| entry["error"]["detail"].as_str().expect("its text")).collect();
    assert_eq!((details.len(), &trace["metadata"]["invalid_replies"]), (20, &json!(20)));
    for (number, detail) in details.iter().enumerate() {
        let mark = format!("MARK-{number:02}.");
        assert!(detail.contains(&mark) && detail.chars().count() < 2_100, "{number}: {detail}");
        for shown in [&text, &ran.stderr] {
            assert_eq!(shown.matches(&mark).count(), 1, "{mark} in {shown}");
        }
        // A long text is folded there: its beginning is the line that unfolds it.
        let folded = usize::from(number % 4 == 2);
        assert_eq!(page.matches(&mark).count(), 1 + folded, "{mark} in {page}");
    }
    for shown in [&text, &page, &ran.stderr] {
        assert!(!shown.contains('\u{1b}') && !shown.contains(&"y".repeat(2_500)), "{shown}");
        // In full once, and then by its first sentence.
        let in_one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(in_one_line.matches("no JSON object. Nothing was called.").count(), 1, "{shown}");
        assert!(shown.contains("(as in iteration 1)"), "{shown}");
    }
    assert!(page.contains("&lt;b&gt;first"), "{page}");
}

#[test]
fn the_hints_of_an_agent_in_circles_are_in_every_form_of_the_trace() {
    let on_stuck = json!({ "iterations": 2, "action": "retry_with_hint", "hint": "Try the \u{1b}[2J cellar." });
    let replies = vec![look("attic"); 6];
    let (place, ran) = live(json!({ "on_stuck": on_stuck, "max_iterations": 20 }), &replies);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let trace = place.call(&["trace", "r", "--format", "json"]).json();
    let hints: Vec<&Value> = trace["trace"].as_array().expect("a trace").iter().map(|entry| &entry["hint"]).collect();
    let (hint, none) = (json!("Hint: Try the \u{1b}[2J cellar."), Value::Null);
    assert_eq!(hints, [&none, &hint, &none, &hint, &none, &none], "{trace:#}");
    let text = place.call(&["trace", "r"]).stdout;
    let page = page_of(&place);
    for shown in [text, page, ran.stderr] {
        assert!(shown.matches("cellar.").count() == 2 && !shown.contains('\u{1b}'), "{shown}");
    }
    let mut args = RUN.to_vec();
    args[5] = "s";
    args.extend(["--output", "ndjson"]);
    let lines = place.call(&args).stdout;
    let observed = lines.lines().filter(|line| line.contains("\"observed\"") && line.contains("\"hint\":\"Hint: Try"));
    assert_eq!(observed.count(), 2, "{lines}");
}

#[test]
fn what_may_help_fits_why_the_replies_could_not_be_read() {
    let cut = json!({ "text": "{\"thought\": \"half", "finish": "length" });
    let thinking = json!({ "text": "<think>First I", "finish": "length" });
    let silent = json!({ "text": "", "finish": "length" });
    let prose = json!("I would look.");
    for (replies, message, advice) in [
        ([&prose, &prose, &prose], "could not be read\n", "may help  another `dialect`, or a larger model\n"),
        ([&cut, &cut, &cut], "read: max_tokens cut them off\n", "may help  more `max_tokens`\n"),
        ([&silent, &silent, &silent], "read: max_tokens cut them off\n", "may help  more `max_tokens`\n"),
        ([&thinking, &cut, &thinking], "still thinking\n", "more `max_tokens`, or less reasoning (`reasoning_effort`"),
        ([&cut, &prose, &prose], "could not be read\n", "may help  another `dialect`, or a larger model\n"),
    ] {
        let replies: Vec<Value> = replies.into_iter().cloned().collect();
        let (_, ran) = live(json!({}), &replies);
        assert_eq!(ran.code, 1, "{ran:#?}");
        assert!(ran.stderr.contains(message) && ran.stderr.contains(advice), "{replies:?}: {}", ran.stderr);
    }
    let wrong = complete(json!("seven"));
    let (_, ran) = live(json!({ "answer_schema": { "type": "integer" } }), &vec![wrong; 3]);
    assert!(ran.stderr.contains("may help  an `answer_schema` with fewer demands"), "{}", ran.stderr);
}

#[test]
fn reasoning_that_a_server_only_counts_is_why_an_empty_reply_was_cut_off() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 4096, "completion_tokens_details": { "reasoning_tokens": 4096 } });
    let empty = json!({ "choices": [{ "message": { "content": "" }, "finish_reason": "length" }], "usage": usage });
    let server = Server::with(move |_, _| Answer::json(&empty));
    let place = Place::new();
    place.looped(&json!({}));
    let args = ["run", "loop.json", "--model", "m", "--run-id", "r"];
    let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())]);
    assert!(ran.stderr.contains("cut off while you were still thinking"), "{}", ran.stderr);
    assert!(ran.stderr.contains("or less reasoning"), "{}", ran.stderr);
    let trace = place.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(trace["trace"][0]["error"]["class"], "reply cut off while thinking", "{trace:#}");
}

#[test]
fn a_last_reply_that_is_no_answer_is_shown_too() {
    let replies = [look("a"), think("look", json!({ "at": "MARK-last" }))];
    let (place, ran) = live(json!({ "max_iterations": 1, "on_limit": "answer" }), &replies);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let text = place.call(&["trace", "r"]).stdout;
    assert!(text.contains("gave no answer") && text.contains("MARK-last"), "{text}");
}

#[test]
fn a_last_word_that_was_refused_is_in_the_error_with_the_words_of_the_provider() {
    for (finish, message) in [
        ("content_filter", json!({ "role": "assistant", "content": "x" })),
        ("stop", json!({ "role": "assistant", "content": null, "refusal": "I can't help with that." })),
    ] {
        let server = Server::with(move |number, _| match number {
            0 => Answer::openai(&look("a").to_string()),
            _ => Answer::json(&json!({ "choices": [{ "finish_reason": finish, "message": message }] })),
        });
        let place = crate::common::answering(&json!({ "max_iterations": 1, "on_limit": "answer" }), "found");
        let path = place.path().join("loopctl.json");
        let mut project: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        project["models"] =
            json!({ "m": { "provider": "openai", "model": "small", "base_url": format!("{}/v1", server.url()) } });
        project["model"] = json!("m");
        place.json("loopctl.json", &project);
        let ran = place.call_with(&["run", "loop.json", "--output", "json"], &[("OPENAI_API_KEY", "k")]);
        let error = ran.json()["error"].clone();
        let said = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == "max_iterations" && said.contains("refused the last reply"), "{ran:#?}");
        assert!(finish != "stop" || said.contains("can't help"), "{said}");
    }
}
