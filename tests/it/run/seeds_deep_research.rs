//! The DeepResearch loop: its tags, its limits, and that there is always something to read at the end.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, document, look};
use crate::run::events::lines;

/// The result of a loop of its tags that plays these replies.
fn ended(properties: &Value, replies: &[Value]) -> (i32, Value) {
    let place = Place::new();
    let (ran, result) = place.looped(properties).script(replies).run(&["--store", "memory"]);
    (ran.code, result)
}

/// A reply after which so many tokens were read.
fn reading(tokens: u64) -> Value {
    json!({ "text": look("b").to_string(), "usage": { "input": tokens, "output": 10 } })
}

#[test]
fn deep_research_cuts_off_a_response_that_leaks_into_the_reply() {
    let leaked = "<think>I look.</think>\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"a\"}}\n</tool_call>\n\
         <tool_response>\nall is well\n</tool_response>\n<answer>invented</answer>";
    let replies = [json!(leaked), json!("<think>Seen.</think>\n<answer>It is the cable.</answer>")];
    let (code, result) = ended(&json!({ "dialect": "tags", "max_iterations": 100 }), &replies);
    assert_eq!((code, &result["result"]["answer"]), (0, &json!("It is the cable.")), "{result:#}");
    assert_eq!(result["trace"][0]["thought"], "I look.", "{result:#}");
    assert_eq!(result["trace"][0]["observation"], json!({ "seen": 1 }), "what the tool gave, not what was invented");
    assert!(!result["trace"].to_string().contains("all is well"), "{result:#}");
}

#[test]
fn deep_research_ends_when_its_time_is_over() {
    let slow = json!({ "delay_ms": 600_000, "text": "<answer>too late</answer>" });
    let limits = |timeout_ms: u64| json!({ "dialect": "tags", "max_iterations": 100, "timeout_ms": timeout_ms });
    let (code, result) = ended(&limits(200), &[slow]);
    assert_eq!((code, &result["termination"], &result["error"]["code"]), (1, &json!("timeout"), &json!("timeout")));
    let (code, result) = ended(&limits(9_000_000), &[json!("<answer>in time</answer>")]);
    assert_eq!((code, &result["result"]["answer"]), (0, &json!("in time")), "{result:#}");
}

#[test]
fn deep_research_over_110_thousand_tokens_is_forced_to_answer_and_below_it_is_not() {
    let limits = json!({ "max_iterations": 100, "on_limit": "answer", "history": { "context_tokens": 110_000 } });
    let replies = |tokens: u64| [look("a"), reading(tokens), complete(json!("the best that is known"))];
    let (code, result) = ended(&limits, &replies(111_000));
    assert_eq!((code, &result["termination"]), (0, &json!("forced_answer")), "{result:#}");
    assert_eq!((&result["limit"], &result["result"]["answer"]), (&json!("context"), &json!("the best that is known")));
    let (code, result) = ended(&limits, &replies(50_000));
    assert_eq!((code, &result["termination"], &result["limit"]), (0, &json!("complete"), &Value::Null));
}

#[test]
fn deep_research_has_todays_date_in_its_system_prompt() {
    let today = || Timestamp::now().to_string().chars().take(10).collect::<String>();
    let place = Place::new();
    place.looped(&json!({ "system_prompt": "You research. Current date: {{today}}\n\n{{dialect_instructions}}" }));
    place.script(&[complete(json!("done"))]);
    // Midnight may pass while it is asked.
    let before = today();
    let ran = place.call(&["prompt", "loop.json", "--script", "script.json", "--output", "json"]);
    let dates = [before, today()].map(|date| format!("Current date: {date}"));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(dates.iter().any(|date| ran.stdout.contains(date)), "{dates:?}: {ran:#?}");
}

#[test]
fn deep_research_always_has_some_output_and_says_why_it_ended() {
    let slow = json!({ "delay_ms": 600_000, "text": "too late" });
    let window = json!({ "history": { "context_tokens": 110_000 }, "on_limit": "answer" });
    let rows = [
        (json!({}), vec![look("a"), complete(json!("found"))], 0, "complete"),
        (json!({ "max_iterations": 2 }), vec![look("a"), look("b")], 1, "max_iterations"),
        (window, vec![look("a"), reading(111_000), complete(json!("so far"))], 0, "forced_answer"),
        (json!({ "timeout_ms": 2_000 }), vec![look("a"), slow], 1, "timeout"),
    ];
    for (properties, replies, code, termination) in rows {
        let (ended, result) = ended(&properties, &replies);
        assert_eq!((ended, &result["termination"]), (code, &json!(termination)), "{result:#}");
        assert_eq!(result["trace"][0]["observation"], json!({ "seen": 1 }), "what was found is there: {result:#}");
        let outcome = if code == 0 { &result["result"]["answer"] } else { &result["error"]["message"] };
        assert!(outcome.as_str().is_some_and(|text| !text.is_empty()), "{result:#}");
        assert_eq!(result["last_thought"].is_string(), code != 0, "{result:#}");
    }
}

#[test]
fn deep_research_reports_rounds_and_tokens_in_its_events() {
    let place = Place::new();
    let last = json!({ "text": complete(json!("done")).to_string(), "usage": { "input": 70, "output": 7 } });
    place.looped(&json!({})).script(&[reading(50), last]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--store", "memory"];
    let lines = lines(&place.call(&args).stdout);
    let rounds: Vec<(&Value, &Value)> = lines
        .iter()
        .filter(|line| line["event"] == "model_replied")
        .map(|line| (&line["iteration"], &line["usage"]))
        .collect();
    let tokens = |input: u64, output: u64| json!({ "input_tokens": input, "output_tokens": output });
    assert_eq!(rounds, [(&json!(1), &tokens(50, 10)), (&json!(2), &tokens(70, 7))]);
    let result = lines.last().expect("a result");
    assert_eq!((&result["metadata"]["rounds"], &result["usage"]["input_tokens"]), (&json!(2), &json!(120)));
}

#[test]
fn deep_research_asks_again_when_a_reply_is_empty_or_failed() {
    let server = Server::new(vec![
        Answer::openai(""),
        Answer::json("{}").status(500),
        Answer::openai(&complete(json!("found")).to_string()),
    ]);
    let place = Place::new();
    place.json("loop.json", &document(&json!({ "retry": { "attempts": 4, "base_ms": 1, "max_ms": 2 } })));
    let args = ["run", "loop.json", "--output", "json", "--store", "memory", "--model", "m"];
    let ran = place.call_with(&args, &[("OPENAI_BASE_URL", &server.url())]);
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("found")), "{ran:#?}");
    let reasons: Vec<String> =
        result["attempts"].as_array().expect("attempts").iter().map(|attempt| attempt["reason"].to_string()).collect();
    assert!(reasons[0].contains("is empty") && reasons[1].contains("http 500"), "{reasons:?}");
    assert_eq!((server.requests().len(), &result["iterations"]), (3, &json!(1)), "a retry is no round");
}
