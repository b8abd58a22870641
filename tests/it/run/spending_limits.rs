//! Spending limits over runs: what is reserved and settled, and what becomes of a run at a limit.

use serde_json::{Value, json};

use crate::common::server::{Answer, Gate, Server};
use crate::common::sweep::{BOUNDARIES, is_played};
use crate::common::{Place, Ran, complete, killed, look};

const DAY_MS: u128 = 24 * 3_600_000;

/// By how many milliseconds a clock is ahead that shows noon.
fn noon_ms() -> u128 {
    let now_ms = u128::try_from(loopctl::drive::clock::wall_ms()).unwrap();
    DAY_MS + DAY_MS / 2 - now_ms % DAY_MS
}

/// A reply that used this number of tokens.
fn used(reply: &Value, tokens: u64) -> Value {
    json!({ "text": reply.to_string(), "usage": { "input": tokens - 10, "output": 10 } })
}

/// A loop whose runs ask a played model twice, for 300 tokens each.
fn place(limits: Value) -> Place {
    let place = Place::new();
    place.looped(&json!({ "model": "main", "max_tokens": 100 }));
    place.script(&[used(&look("a"), 300), used(&complete(json!("done")), 300)]);
    limited(&place, limits);
    place.file("clock", noon_ms().to_string());
    place
}

fn limited(place: &Place, limits: Value) {
    let main = json!({ "provider": "openai", "price": { "input": 1_000, "output": 1_000 } });
    place.json("loopctl.json", &json!({ "models": { "main": main }, "limits": limits }));
}

fn call(place: &Place, args: &[&str]) -> Ran {
    place.call_with(args, &[("LOOPCTL_CLOCK", "clock")])
}

fn start(place: &Place, run_id: &str) -> Ran {
    call(place, &["run", "loop.json", "--script", "script.json", "--run-id", run_id, "--output", "json"])
}

fn again(place: &Place, command: &str, run_id: &str) -> Ran {
    call(place, &[command, run_id, "--script", "script.json", "--output", "json"])
}

/// What the accounts hold: their names, what is settled, and what is reserved.
fn accounts(place: &Place) -> Vec<(Value, i64, i64)> {
    let store = rusqlite::Connection::open(place.path().join(".loopctl/runs.db")).unwrap();
    let mut rows = store.prepare("SELECT account, settled_tokens, reserved_tokens FROM ledger ORDER BY 1").unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        let name: String = row.get(0)?;
        Ok((serde_json::from_str(&name).unwrap(), row.get(1)?, row.get(2)?))
    };
    rows.query_map((), row).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_run_that_needs_more_than_is_left_fails_with_the_limit_and_continues_when_there_is_more() {
    let limit = |tokens: u64| json!([{ "per": "loop", "every": "day", "tokens": tokens }]);
    let place = place(limit(2_000));
    assert_eq!(start(&place, "first").json()["status"], "completed");
    assert_eq!(accounts(&place), [(json!({ "every": "day", "per": "loop", "of": "test" }), 600, 0)]);
    let report = call(&place, &["stats", "--output", "json", "--journals", "1"]).json();
    assert_eq!(report["limits"][0]["of"], "the loop `test`", "{report}");
    assert_eq!((&report["limits"][0]["tokens"], &report["limits"][0]["most_tokens"]), (&json!(600), &json!(2_000)));
    let shown = call(&place, &["stats"]).stdout;
    assert!(shown.contains("LIMIT OF") && shown.contains("30 %") && shown.contains("600 of 2,000"), "{shown}");
    limited(&place, limit(1_250));
    let ran = start(&place, "second");
    let failed = ran.json();
    assert_eq!((ran.code, &failed["status"], &failed["termination"]), (1, &json!("failed"), &json!("spending_limit")));
    let error = &failed["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("spending_limit"), &json!(true)), "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("the spending limit of 1250 tokens a day for the loop `test` is reached until 20"),
        "{message}"
    );
    assert!(
        message.contains("T00:00:00") && message.contains("900 tokens are spent, and this call may spend "),
        "{message}"
    );
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (900, 0), "the first request was made");
    limited(&place, limit(2_000));
    let done = again(&place, "retry", "second").json();
    assert_eq!((&done["status"], &done["iterations"]), (&json!("completed"), &json!(2)), "{done}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (1_200, 0));
}

#[test]
fn a_run_that_waits_is_paused_until_the_day_is_over_and_then_continues() {
    let place = place(json!([{ "every": "day", "tokens": 900, "on_limit": "wait" }]));
    assert_eq!(start(&place, "first").json()["status"], "completed");
    let ran = start(&place, "second");
    let paused = ran.json();
    assert_eq!((ran.code, &paused["status"], &paused["termination"]), (3, &json!("paused"), &json!("spending_limit")));
    let listed = call(&place, &["runs", "--output", "json"]).json();
    let due = listed.as_array().unwrap().iter().find(|run| run["run_id"] == "second").unwrap()["due_at"].clone();
    assert!(due.as_str().unwrap().ends_with("T00:00:00.000Z"), "{listed}");
    // Nothing has changed yet.
    assert_eq!(again(&place, "resume", "second").json()["termination"], "spending_limit");
    place.file("clock", (noon_ms() + DAY_MS).to_string());
    let done = again(&place, "resume", "second").json();
    assert_eq!((&done["status"], &done["iterations"]), (&json!("completed"), &json!(2)), "{done}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (600, 0), "of the next day");
}

#[test]
fn money_is_counted_by_the_price_and_the_last_hours_part_by_part() {
    // 300 tokens cost $0.30, and 600 are spent by a run.
    let place = place(json!([{ "every": { "hours": 1 }, "cost_usd": 1.25, "per": "model" }]));
    assert_eq!(start(&place, "first").json()["status"], "completed");
    let failed = start(&place, "second").json();
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the spending limit of $1.25 in 1 hour for the model `main` is reached until 20"),
        "{message}"
    );
    place.file("clock", (noon_ms() + 3 * 3_600_000).to_string());
    assert_eq!(again(&place, "retry", "second").json()["status"], "completed");
    // A model that `check` did not see.
    let other = ["run", "loop.json", "--script", "script.json", "--model", "other", "--output", "json"];
    let failed = call(&place, &other).json();
    let error = &failed["error"];
    assert_eq!((&failed["termination"], &error["retryable"]), (&json!("spending_limit"), &json!(false)), "{failed}");
    assert!(error["message"].as_str().unwrap().contains("the model `other` has no price"), "{failed}");
}

#[test]
fn the_items_of_a_workflow_wait_for_room_and_its_steps_say_until_when() {
    let place = place(json!([{ "every": "day", "tokens": 1_200, "on_limit": "wait" }]));
    let think = json!({ "id": "think", "type": "loop", "properties": { "mode": "react", "objective": "Think about {{one}}.",
        "tools": [], "model": "main", "max_tokens": 100 } });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "actions_to_execute": [think] } });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [each] } }));
    place.json("script.json", &json!({ "replies": [], "loops": { "think": [used(&complete(json!("a")), 500)] } }));
    let items = ["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json", "--input"];
    let paused = call(&place, &[&items[..], &[r#"{"items":[1,2,3]}"#]].concat());
    let shown = paused.json();
    assert_eq!((paused.code, &shown["termination"]), (3, &json!("spending_limit")), "{paused:#?}");
    let text = call(&place, &["trace", "r"]).stdout;
    assert!(text.contains("The step each.2.think waits until 20") && text.contains("T00:00:00"), "{text}");
    for command in ["resume", "retry"] {
        let paused = again(&place, command, "r");
        assert_eq!((paused.code, &paused.json()["status"]), (3, &json!("paused")), "nothing has changed: {paused:?}");
    }
    place.file("clock", (noon_ms() + DAY_MS).to_string());
    let done = again(&place, "resume", "r").json();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (500, 0), "of the next day");
}

#[test]
fn a_warning_is_given_once_when_the_share_is_spent() {
    let place = place(json!([{ "every": "day", "tokens": 4_000, "warn_at": 0.25 }]));
    let warnings = |run_id: &str| {
        let args = ["run", "loop.json", "--script", "script.json", "--run-id", run_id];
        let ran = place.call_with(&args, &[("LOOPCTL_CLOCK", "clock"), ("LOOPCTL_LOG", "warn")]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        ran.stderr.matches("a spending limit is nearly reached: 4000 tokens a day for all runs").count()
    };
    // At 600, 1,200 and 1,800 tokens.
    assert_eq!(["first", "second", "third"].map(warnings), [0, 1, 0]);
}

#[test]
fn a_request_that_may_spend_more_than_the_whole_limit_fails_until_the_limit_is_raised() {
    let place = place(json!([{ "every": "month", "tokens": 90, "on_limit": "wait" }]));
    let failed = start(&place, "first").json();
    let error = &failed["error"];
    assert_eq!((&failed["termination"], &error["retryable"]), (&json!("spending_limit"), &json!(false)), "{failed}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("is less than this one call may spend") && message.contains("`max_tokens`"), "{message}");
    assert_eq!(again(&place, "retry", "first").json()["termination"], "spending_limit", "nothing has changed");
    limited(&place, json!([{ "every": "month", "tokens": 9_000 }]));
    assert_eq!(again(&place, "retry", "first").json()["status"], "completed");
}

#[test]
fn a_clock_that_was_ahead_once_leaves_the_days_after_it_as_they_are() {
    let place = place(json!([{ "every": "day", "tokens": 1_100 }]));
    let run = |run_id: &str, day: u128| {
        place.file("clock", (noon_ms() + day * DAY_MS).to_string());
        start(&place, run_id).json()["status"].clone()
    };
    assert_eq!(["ahead", "today"].map(|run_id| run(run_id, if run_id == "ahead" { 400 } else { 0 })), ["completed"; 2]);
    assert_eq!((run("over", 0), run("tomorrow", 1)), (json!("failed"), json!("completed")));
    let report = call(&place, &["stats", "--output", "json", "--journals", "1"]).json();
    assert_eq!(report["limits"][0]["tokens"], 600, "{report}");
}

/// A reply of a server that used 300 tokens.
fn answered() -> Answer {
    let message = json!({ "role": "assistant", "content": complete(json!("done")).to_string() });
    let usage = json!({ "prompt_tokens": 200, "completion_tokens": 100 });
    Answer::json(&json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": usage }))
}

/// A loop that asks these models, which retries at once.
fn asking(models: &Value, limits: &Value, fallbacks: &[&str], attempts: u32) -> Place {
    let place = Place::new();
    let retry = json!({ "attempts": attempts, "base_ms": 1, "max_ms": 1 });
    place.looped(
        &json!({ "model": "main", "max_tokens": 400, "tools": [], "fallback_models": fallbacks, "retry": retry }),
    );
    place.json("loopctl.json", &json!({ "models": models, "limits": limits }));
    place
}

#[test]
fn a_request_of_which_nobody_knows_what_it_used_counts_the_most() {
    let event = |text: &str| json!({ "choices": [{ "delta": { "content": text } }] }).to_string();
    let broken = Answer::events([event("{\"thought\""), event(": \"t")]).cut();
    let answers = vec![answered().status(503), answered(), Answer::closed(), answered().cut(), broken, answered()];
    let model = Server::new(answers);
    let main = json!({ "provider": "openai", "base_url": model.url(), "api_key": "env:PATH" });
    let place = asking(&json!({ "main": main }), &json!([{ "every": { "hours": 8784 }, "tokens": 100_000 }]), &[], 5);
    let run = |run_id: &str| place.call(&["run", "loop.json", "--run-id", run_id, "--output", "json"]);
    assert_eq!(run("refused").json()["status"], "completed");
    let held = || (accounts(&place)[0].1, accounts(&place)[0].2);
    assert_eq!(held(), (300, 0), "a refusal is not paid for");
    let ran = run("left");
    assert_eq!((&ran.json()["status"], model.requests().len()), (&json!("completed"), 6), "{ran:#?}");
    let (settled, reserved) = held();
    let left = settled - 600;
    assert!(reserved == 0 && left % 3 == 0 && (401..8_000).contains(&(left / 3)), "{settled} {reserved}");
    let usage = &ran.json()["usage"];
    let counted = usage["input_tokens"].as_i64().unwrap() + usage["output_tokens"].as_i64().unwrap();
    let lost = left / 3 * 2;
    assert_eq!(
        (counted, &usage["at_most"]),
        (lost + 300, &json!(true)),
        "a connection that broke counts in the limits alone"
    );
}

#[test]
fn a_model_at_its_limit_leaves_the_request_to_the_next_one_and_an_outage_stays_one() {
    let second = json!({ "provider": "script", "script": "second.json" });
    let limit =
        |model: &str, tokens: u64| json!([{ "model": model, "every": "day", "tokens": tokens, "on_limit": "wait" }]);
    let model = Server::new(vec![]);
    let main = json!({ "provider": "openai", "base_url": model.url(), "api_key": "env:PATH" });
    let models = json!({ "main": main, "second": second });
    let place = asking(&models, &limit("main", 1), &["second"], 1);
    place.json("second.json", &json!({ "replies": [used(&complete(json!("done")), 300)] }));
    let run = |run_id: &str| place.call(&["run", "loop.json", "--run-id", run_id, "--output", "json"]);
    let done = run("moved");
    assert_eq!((&done.json()["status"], model.requests().len()), (&json!("completed"), 0), "{done:#?}");
    let text = place.call(&["trace", "moved"]).stdout;
    assert!(text.contains("the spending limit of 1 tokens a day for the model `main`"), "{text}");
    // Nobody knows when the main model is back, and that it is away is not a matter of limits.
    place.json("loopctl.json", &json!({ "models": models, "limits": limit("second", 1) }));
    let failed = run("away").json();
    let error = &failed["error"];
    assert_eq!((&failed["termination"], &error["retryable"]), (&json!("model_error"), &json!(true)), "{failed}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("http 500") && message.contains("; after that, the spending limit of 1 tokens"),
        "{message}"
    );
    let both = json!([{ "per": "model", "every": "day", "tokens": 1 }]);
    place.json("loopctl.json", &json!({ "models": models, "limits": both }));
    let failed = run("neither").json();
    let message = failed["error"]["message"].as_str().unwrap();
    assert_eq!(failed["termination"], "spending_limit", "{failed}");
    assert!(
        message.contains("the model `second`") && message.contains("; before that, ") && message.contains("`main`"),
        "{message}"
    );
}

#[test]
fn what_a_limit_does_not_name_does_not_count_and_without_limits_there_is_no_account() {
    let place = place(json!([
        { "every": "day", "tokens": 1, "loop": "another" },
        { "every": "day", "tokens": 1, "model": "another" },
        { "every": "day", "tokens": 1, "org": "acme" },
    ]));
    assert_eq!(start(&place, "first").json()["status"], "completed");
    limited(&place, json!([]));
    assert_eq!(start(&place, "second").json()["status"], "completed");
    assert_eq!(accounts(&place), []);
}

#[test]
fn a_scenario_plays_a_limit_and_its_day_is_over_at_once() {
    let place = place(json!([{ "every": "day", "tokens": 700, "on_limit": "wait" }]));
    let replies = json!([used(&look("a"), 300), used(&complete(json!("done")), 300)]);
    let expect = json!({ "status": "completed", "pauses": [{ "kind": "spending_limit" }] });
    place.json(
        "loop.test.json",
        &json!({ "document": "loop.json", "tools": { "look": [{ "seen": 1 }] },
            "scenarios": [{ "name": "waits for the next day", "replies": replies, "expect": expect }] }),
    );
    let ran = place.call(&["test"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
}

#[test]
fn a_called_loop_that_waits_has_its_caller_wait_until_the_same_time() {
    let place = place(json!([{ "every": "day", "loop": "below", "tokens": 700, "on_limit": "wait" }]));
    let mut below = crate::common::document(&json!({ "model": "main", "max_tokens": 100 }));
    below["name"] = json!("below");
    below["description"] = json!("Looks.");
    place.json("loops/below.json", &below);
    place.looped(&json!({ "model": "main", "max_tokens": 100, "tools": [{ "type": "loop", "name": "below" }] }));
    let call = json!({ "thought": "t", "action": "below", "action_input": {} });
    let of_below = [used(&look("a"), 300), used(&complete(json!("seen")), 300)];
    place.json(
        "script.json",
        &json!({ "replies": [used(&call, 300), used(&complete(json!("done")), 300)], "loops": { "below": of_below },
            "tools": { "look": [{ "seen": 1 }] } }),
    );
    let paused = start(&place, "r");
    let shown = paused.json();
    assert_eq!((paused.code, &shown["termination"]), (3, &json!("spending_limit")), "{paused:#?}");
    assert!(
        shown["pause"]["question"].as_str().unwrap().contains("for the loop `below` is reached until 20"),
        "{shown}"
    );
    let listed = self::call(&place, &["runs", "--output", "json"]).json();
    let run = listed.as_array().unwrap().iter().find(|run| run["run_id"] == "r").unwrap();
    assert!(run["due_at"].as_str().unwrap().ends_with("T00:00:00.000Z"), "{run}");
    place.file("clock", (noon_ms() + DAY_MS).to_string());
    let done = again(&place, "resume", "r").json();
    assert_eq!((&done["status"], &done["result"]["answer"]), (&json!("completed"), &json!("done")), "{done}");
}

/// A workflow of two steps that ask a model, for 300 tokens each.
fn judged(place: &Place) {
    let judge = json!({ "action_name": "judge", "kind": "llm", "description": "Judges.", "template": "Is it covered?",
        "parameters": { "type": "object" }, "max_tokens": 100 });
    place.json("actions/all.json", &json!([judge]));
    let step = || json!({ "type": "judge", "properties": {} });
    place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [step(), step()] } }));
    place.json("script.json", &json!({ "replies": [used(&json!("Yes."), 300), used(&json!("Yes."), 300)] }));
    place.file("clock", noon_ms().to_string());
}

#[test]
fn the_requests_of_llm_actions_count_and_fail_at_a_limit() {
    let place = Place::new();
    judged(&place);
    let model = json!({ "provider": "script", "script": "script.json" });
    let limits = |tokens: u64| {
        let limits = json!([{ "per": "loop", "every": "day", "tokens": tokens }]);
        place.json("loopctl.json", &json!({ "models": { "m": model }, "model": "m", "limits": limits }));
    };
    limits(350);
    let failed = call(&place, &["run", "loop.json", "--output", "json", "--run-id", "r"]).json();
    assert_eq!((&failed["termination"], &failed["error"]["step"]), (&json!("step_failed"), &json!("1")), "{failed}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("a spending limit of the project is reached"), "{message}");
    assert!(message.contains("350 tokens a day for the loop `w` is reached until 20"), "{message}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (300, 0));
    limits(1_000);
    let done = call(&place, &["resume", "r", "--retry-failed", "--output", "json"]).json();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (600, 0));
}

#[test]
fn a_step_that_asks_a_model_waits_for_room_as_a_loop_does() {
    let place = Place::new();
    judged(&place);
    let model = json!({ "provider": "script", "script": "script.json" });
    let limits = |tokens: u64| {
        let limits = json!([{ "every": "day", "tokens": tokens, "on_limit": "wait" }]);
        place.json("loopctl.json", &json!({ "models": { "m": model }, "model": "m", "limits": limits }));
    };
    let run = |run_id: &str| call(&place, &["run", "loop.json", "--output", "json", "--run-id", run_id]);
    let again = |words: &[&str]| call(&place, &[words, &["--output", "json"]].concat());
    limits(350);
    let ran = run("r");
    let paused = ran.json();
    assert_eq!((ran.code, &paused["status"], &paused["termination"]), (3, &json!("paused"), &json!("spending_limit")));
    let step = &paused["pause"]["steps"][0];
    let question = step["question"].as_str().unwrap();
    assert!(question.starts_with("the spending limit of 350 tokens a day for all runs is reached until 20"), "{step}");
    assert_eq!((&step["at"], &step["kind"]), (&json!("1"), &json!("spending_limit")), "{paused:#}");
    let text = call(&place, &["trace", "r"]).stdout;
    assert!(text.contains("The step 1 waits until 20") && text.contains("350 tokens a day"), "{text}");
    // Nothing has changed.
    for words in [&["resume", "r"][..], &["retry", "r"], &["resume", "r", "--at", "1", "--retry"]] {
        let ran = again(words);
        assert_eq!((ran.code, &ran.json()["termination"]), (3, &json!("spending_limit")), "{words:?}: {ran:?}");
    }
    assert_eq!(accounts(&place)[0].1, 300, "no further request was made");
    limits(5_000);
    let done = again(&["retry", "r"]).json();
    assert_eq!(done["status"], "completed", "{done:#}");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (600, 0));
    // By the time alone.
    limits(950);
    assert_eq!(run("later").json()["termination"], "spending_limit");
    place.file("clock", (noon_ms() + DAY_MS).to_string());
    assert_eq!(again(&["resume", "later"]).json()["status"], "completed");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (300, 0), "of the next day");
    let report = call(&place, &["stats", "--output", "json"]).json();
    assert_eq!(report["total"]["human_waits"], 0, "no human was waited for: {report:#}");
}

#[test]
#[cfg(unix)]
fn what_a_process_reserved_that_was_killed_is_given_back_when_the_room_is_needed() {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Server::with(move |_, _| answered().behind(&held));
    let place = Place::new();
    place.looped(&json!({ "model": "main", "max_tokens": 400 }));
    let main = json!({ "provider": "openai", "base_url": model.url(), "api_key": "env:PATH" });
    let limits = json!([{ "every": { "hours": 8784 }, "tokens": 2_500 }]);
    place.json("loopctl.json", &json!({ "models": { "main": main }, "limits": limits }));
    let mut child = place.start(&["run", "loop.json", "--run-id", "dies", "--output", "json"], &[]);
    model.wait_for(1);
    let reserved = accounts(&place)[0].2;
    assert!((401..2_000).contains(&reserved), "{reserved}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (0, reserved), "nobody has looked");
    gate.open();
    for number in 0..3 {
        let ran = place.call(&["run", "loop.json", "--run-id", &format!("lives-{number}"), "--output", "json"]);
        assert_eq!(ran.json()["status"], "completed", "{ran:#?}");
    }
    // There is room for the next request when nothing is reserved for the one that died.
    assert_eq!(place.call(&["resume", "dies", "--output", "json"]).json()["status"], "completed");
    assert_eq!((accounts(&place)[0].1, accounts(&place)[0].2), (1_200, 0));
}

#[test]
#[cfg(all(unix, debug_assertions))]
fn a_run_that_is_killed_anywhere_ends_within_the_limit_and_leaves_nothing_reserved() {
    for event in 0..4 {
        for (boundary, name) in BOUNDARIES.iter().enumerate() {
            if !is_played(event, boundary) {
                continue;
            }
            let place = place(json!([{ "every": "day", "tokens": 1_250 }]));
            let mut command =
                place.command(&["run", "loop.json", "--script", "script.json", "--run-id", "r", "--output", "json"]);
            command.env("LOOPCTL_CLOCK", "clock");
            let died = killed(command, &format!("journal:{event}:{name}"));
            let known = again(&place, "resume", "r");
            let done = if known.code == 2 { start(&place, "r") } else { known };
            assert_eq!(done.json()["status"], "completed", "{event} {name}: {died:#?} {done:#?}");
            let (_, settled, reserved) = accounts(&place).remove(0);
            // The request is made again whose reply is not in the journal, and it was paid for twice.
            assert!(reserved == 0 && [600, 900].contains(&settled), "{event} {name}: {settled} {reserved}");
        }
    }
}
