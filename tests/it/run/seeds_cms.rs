//! The CMS orchestrator: steps that are kept as they are made, working memory, and humans who decide.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, look, think, with};
use crate::run::events::lines;

/// A loop of its: at most 15 steps, the mark that ends it, the last ten messages.
fn place(properties: Value, replies: &[Value]) -> Place {
    let place = Place::new();
    let own =
        json!({ "dialect": "final_answer", "max_iterations": 15, "history": { "max_messages": 20, "keep_last": 10 } });
    place.looped(&with(own, properties)).script(replies);
    place
}

fn remembering() -> Value {
    let look = json!({ "type": "action", "name": "look", "remember": { "entity": "/seen" } });
    json!({ "tools": [look, { "type": "action", "name": "act" }] })
}

fn approval() -> Value {
    json!({ "tools": [{ "type": "action", "name": "act", "requires_approval": true }] })
}

fn act() -> Value {
    think("act", json!({ "what": "publish" }))
}

fn resume(place: &Place, how: &[&str], output: &str) -> Ran {
    let args = ["resume", "r", "--script", "script.json", "--output", output];
    place.call(&[&args, how].concat())
}

#[test]
fn cms_orchestrator_ends_by_its_mark_and_by_no_other_text() {
    let replies = [json!("I begin."), look("a"), json!("All is there.\nFINAL_ANSWER: published")];
    let (ran, result) = place(json!({}), &replies).run(&["--store", "memory"]);
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("published")), "{ran:#?}");
    assert_eq!((&result["iterations"], &result["termination"]), (&json!(3), &json!("complete")));
}

#[test]
#[cfg(all(unix, debug_assertions))]
fn cms_orchestrator_killed_after_a_step_goes_on_with_its_working_memory() {
    let recall = think("__retrieve_memory__", json!({ "key": "entity" }));
    let place = place(remembering(), &[look("a"), look("b"), recall, json!("FINAL_ANSWER: done")]);
    let start = ["run", "loop.json", "--script", "script.json", "--run-id", "r"];
    // Event 0 began the run; then a reply and what came of its call, by turns: two steps are done.
    let killed = place.command(&start).env("LOOPCTL_FAIL", "journal:4:after-sync").output().expect("it starts");
    assert_eq!(killed.status.code(), None, "{killed:?}");
    let ran = resume(&place, &[], "json");
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("done")), "{ran:#?}");
    assert_eq!(result["trace"][2]["observation"], 1, "kept before the crash: {result:#}");
    assert_eq!((&result["iterations"], &result["metadata"]["tool_calls_made"]), (&json!(4), &json!(2)), "none twice");
}

#[test]
fn cms_orchestrator_takes_entities_into_memory_and_reports_each_step_with_its_usage() {
    let used =
        |reply: Value, input: u64| json!({ "text": reply.to_string(), "usage": { "input": input, "output": 5 } });
    let recall = think("__retrieve_memory__", json!({ "key": "entity" }));
    let properties = with(remembering(), json!({ "dialect": "json" }));
    let place = place(properties, &[used(look("a"), 30), used(recall, 40), used(complete(json!("done")), 50)]);
    let args = ["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--store", "memory"];
    let lines = lines(&place.call(&args).stdout);
    let steps: Vec<&Value> = lines.iter().filter(|line| line["event"] == "observed").collect();
    let usage: Vec<(&Value, &Value)> =
        steps.iter().map(|step| (&step["iteration"], &step["usage"]["input_tokens"])).collect();
    assert_eq!(usage, [(&json!(1), &json!(30)), (&json!(2), &json!(40)), (&json!(3), &json!(50))]);
    assert_eq!(steps[1]["observation"], 1, "{steps:#?}");
}

#[test]
fn cms_orchestrator_retries_with_backoff_what_may_pass_and_nothing_else() {
    let retry = json!({ "retry": { "attempts": 4, "base_ms": 4, "max_ms": 30_000 } });
    let busy = || json!({ "http": 503 });
    let (ran, result) = place(retry.clone(), &[busy(), json!({ "http": 429 }), busy(), json!("FINAL_ANSWER: done")])
        .run(&["--store", "memory"]);
    assert_eq!((ran.code, &result["metadata"]["model_retries"]), (0, &json!(3)), "{ran:#?}");
    let attempts = result["attempts"].as_array().expect("attempts");
    for (attempt, most) in attempts.iter().zip([4, 8, 16]) {
        assert!(attempt["delay_ms"].as_u64().is_some_and(|delay| delay <= most), "at most {most}: {attempt}");
    }
    let (ran, result) =
        place(retry, &[json!({ "http": 401 }), json!("FINAL_ANSWER: done")]).run(&["--store", "memory"]);
    assert_eq!((ran.code, &result["metadata"]["model_retries"]), (1, &json!(0)), "{ran:#?}");
    assert_eq!((&result["error"]["code"], &result["error"]["retryable"]), (&json!("model_refused"), &json!(true)));
}

#[test]
fn cms_orchestrator_has_an_entry_that_waits_for_the_end_and_one_that_streams_and_asks() {
    let (ran, result) = place(json!({}), &[act(), json!("FINAL_ANSWER: done")]).run(&["--store", "memory"]);
    assert_eq!((ran.code, ran.stdout.lines().count(), &result["status"]), (0, 1, &json!("completed")), "{ran:#?}");
    let place = place(approval(), &[act(), json!("FINAL_ANSWER: done")]);
    let ran = place.call(&["run", "loop.json", "--script", "script.json", "--output", "ndjson", "--run-id", "r"]);
    let first = lines(&ran.stdout);
    let asked = first.iter().find(|line| line["event"] == "paused").expect("it asks");
    assert_eq!((ran.code, &asked["kind"]), (3, &json!("approval")));
    assert_eq!(asked["calls"][0]["action_input"], json!({ "what": "publish" }));
    let hash = asked["calls"][0]["hash"].as_str().expect("a hash");
    let ran = resume(&place, &["--approve", "--if", hash], "ndjson");
    let second = lines(&ran.stdout);
    assert_eq!((ran.code, &second[0]["event"]), (0, &json!("run_resumed")), "{ran:#?}");
    let seen = second.iter().find(|line| line["event"] == "observed").expect("it was made");
    assert_eq!((&seen["observation"], &seen["success"]), (&json!({ "done": true }), &json!(true)));
}

#[test]
fn cms_orchestrator_takes_a_denied_call_as_a_cancelled_one_and_goes_on() {
    let place = place(approval(), &[act(), json!("FINAL_ANSWER: left as a draft")]);
    assert_eq!(place.run(&["--run-id", "r"]).0.code, 3);
    let ran = resume(&place, &["--deny", "--reason", "not today"], "json");
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]), (0, &json!("left as a draft")), "{ran:#?}");
    assert_eq!((&result["trace"][0]["success"], &result["metadata"]["tool_calls_made"]), (&json!(false), &json!(0)));
    assert!(result["trace"][0]["observation"].to_string().contains("not today"), "{result:#}");
}
