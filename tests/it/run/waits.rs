//! Steps that wait for a time, on the command line. The tests play the clock.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran};

const AN_HOUR: i64 = 3_600_000;

/// A workflow `r` whose steps may post to a server.
struct Waiting {
    place: Place,
    server: Server,
}

impl Waiting {
    fn of(steps: Value) -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({ "ok": true })));
        let place = Place::new();
        let post = json!({ "action_name": "post", "kind": "http", "description": "Posts.", "http_method": "POST",
            "url": format!("{}/{{{{of}}}}", server.url()),
            "parameters": { "type": "object", "properties": { "of": { "type": "string" } } } });
        place.json("actions/all.json", &json!([post]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        place.json("loop.json", &json!({ "name": "w", "definition": { "actions": steps } }));
        place.file("clock", "0");
        Self { place, server }
    }

    fn call(&self, args: &[&str]) -> Ran {
        self.place.call_with(args, &[("LOOPCTL_CLOCK", "clock")])
    }

    fn run(&self, input: &Value) -> Ran {
        let input = input.to_string();
        self.call(&["run", "loop.json", "--run-id", "r", "--output", "json", "--input", &input])
    }

    fn resume(&self, how: &[&str]) -> Ran {
        self.call(&[&["resume", "r", "--output", "json"], how].concat())
    }

    /// The clock is so much ahead from now on.
    fn passes(&self, ms: i64) {
        self.place.file("clock", ms.to_string());
    }

    fn posted(&self) -> Vec<String> {
        self.server.requests().iter().map(|request| request.path.clone()).collect()
    }
}

fn post(of: &str) -> Value {
    json!({ "type": "post", "properties": { "of": of } })
}

/// The addresses of the steps that wait, each with the kind of what it waits for.
fn waits(ran: &Ran) -> Vec<String> {
    let steps = ran.json()["pause"]["steps"].clone();
    let shown = |step: &Value| format!("{} {}", step["at"].as_str().unwrap(), step["kind"].as_str().unwrap());
    steps.as_array().unwrap().iter().map(shown).collect()
}

#[test]
fn a_run_waits_until_its_time_and_repeats_nothing() {
    let wait =
        json!({ "id": "pause", "type": "wait", "properties": { "for": "{{input.long}}" }, "outputKey": "waited" });
    let run = Waiting::of(json!([post("before"), wait, post("after")]));
    let ran = run.run(&json!({ "long": "2h" }));
    let result = ran.json();
    assert_eq!((ran.code, &result["status"], &result["termination"]), (3, &json!("paused"), &json!("waiting")));
    assert_eq!(waits(&ran), ["pause waiting"]);
    assert!(result["pause"]["steps"][0]["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{result:#}");
    run.passes(AN_HOUR);
    assert_eq!(run.resume(&[]).code, 3, "it still waits");
    for (how, why) in [(["--answer", "now"], "approve ends the wait"), (["--at", "other"], "")] {
        let ran = run.resume(&how);
        assert!(ran.code == 2 && ran.stderr.contains(why), "{how:?}: {ran:#?}");
    }
    let text = run.call(&["trace", "r"]).stdout;
    assert!(text.contains("The step pause waits until "), "{text}");
    let listed = run.call(&["runs", "--output", "json"]).json();
    assert_eq!((&listed[0]["termination"], &listed[0]["waiting"]), (&json!("waiting"), &Value::Null), "{listed:#}");
    assert_eq!(run.posted(), ["/before"]);
    run.passes(2 * AN_HOUR + 60_000);
    let ran = run.resume(&[]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(run.posted(), ["/before", "/after"]);
    let answer = &ran.json()["result"]["answer"]["waited"];
    assert!(answer["early"] == false && answer["until"].is_string(), "{answer:#}");
    assert_eq!(ran.json()["decisions"], Value::Null, "nobody decided");
}

#[test]
fn an_until_that_is_a_year_away_is_found_by_check_as_the_run_refuses_it() {
    let wait = |until: &str| json!([{ "type": "wait", "properties": { "until": until } }, post("after")]);
    let far = Waiting::of(wait("9999-12-31"));
    let checked = far.call(&["check", "loop.json"]);
    let said = "`until` is \"9999-12-31\", and a step waits for at most 366 days";
    assert!(checked.code == 1 && checked.stderr.contains("L225") && checked.stderr.contains(said), "{checked:#?}");
    let ran = far.run(&json!({}));
    assert!(ran.code == 1 && ran.json()["error"]["message"].as_str().unwrap().contains(said), "{ran:#?}");
    // What is near, or past, is no fault.
    for until in [rfc3339_in(86_400).as_str(), "2020-01-01"] {
        let checked = Waiting::of(wait(until)).call(&["check", "loop.json"]);
        assert_eq!(checked.code, 0, "{until}: {checked:#?}");
    }
}

#[test]
fn who_ends_a_wait_early_is_in_the_record() {
    let wait = json!({ "type": "wait", "properties": { "until": "@input.due" }, "outputKey": "waited" });
    let run = Waiting::of(json!([wait, post("after")]));
    let due =
        run.call(&["run", "loop.json", "--run-id", "x", "--output", "json", "--input", r#"{"due":"2999-01-01"}"#]);
    let error = due.json()["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(due.code == 1 && message.contains("`until` is \"2999-01-01\"") && message.contains("366 days"), "{due:#?}");
    // The clock of the test counts from today: half a day ahead of it is no year away.
    let soon = rfc3339_in(43_200);
    assert_eq!(run.run(&json!({ "due": soon })).code, 3);
    let told = run.call(&["run", "loop.json", "--run-id", "y", "--input", &json!({ "due": soon }).to_string()]);
    assert!(told.stderr.contains("resume y --at 0 --approve"), "the command that ends the wait: {}", told.stderr);
    let ran = run.resume(&["--at", "0", "--approve"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["result"]["answer"]["waited"]["early"]), (0, &json!(true)), "{ran:#?}");
    let decision = &result["decisions"][0];
    assert_eq!((&decision["decision"], &decision["step"]), (&json!("approve"), &json!("0")), "{result:#}");
    assert!(decision["by"].is_string(), "{decision:#}");
    assert_eq!(run.posted(), ["/after"]);
}

/// The time that is `seconds` from now.
fn rfc3339_in(seconds: i64) -> String {
    (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[test]
fn what_is_past_is_not_waited_for_and_a_value_that_is_no_time_is_named() {
    let run = Waiting::of(json!([{ "type": "wait", "properties": { "until": "@input.due" } }, post("after")]));
    let ran = run.run(&json!({ "due": "2020-02-29T23:59:59.5+05:30" }));
    assert_eq!((ran.code, run.posted()), (0, vec!["/after".to_owned()]), "{ran:#?}");
    for (number, wrong) in
        [json!("31.12.2026"), json!("2026-12-31T09:30:00"), json!(1_798_709_400), json!(null)].iter().enumerate()
    {
        let input = json!({ "due": wrong }).to_string();
        let id = format!("w{number}");
        let ran = run.call(&["run", "loop.json", "--run-id", &id, "--output", "json", "--input", &input]);
        let message = ran.json()["error"]["message"].to_string();
        assert!(ran.code == 1 && message.contains("no time"), "{wrong}: {message}");
        let shown = wrong.to_string().replace('"', "\\\"");
        assert!(message.contains(&format!("`until` is {shown}")), "{wrong}: {message}");
    }
    assert_eq!(run.posted().len(), 1, "no step after it ran");
}

#[test]
fn items_that_wait_keep_their_places_or_give_them_away() {
    for (on_pause, first) in [("wait", 1), ("go_on", 3)] {
        let steps = json!([{ "type": "wait", "properties": { "for": "1h" } }, post("{{one}}")]);
        let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
            "item_variable_name": "one", "on_pause": on_pause, "actions_to_execute": steps } });
        let run = Waiting::of(json!([each]));
        let mut ran = run.run(&json!({ "items": ["a", "b", "c"] }));
        assert_eq!((ran.code, waits(&ran).len()), (3, first), "{ran:#?}");
        for round in 1..=3 {
            run.passes(round * (AN_HOUR + 1_000));
            ran = run.resume(&[]);
            if ran.code == 0 {
                break;
            }
        }
        let mut posted = run.posted();
        posted.sort();
        assert_eq!((ran.code, posted), (0, ["/a", "/b", "/c"].map(str::to_owned).to_vec()), "{on_pause}: {ran:#?}");
    }
}

#[test]
fn a_decision_without_an_address_is_about_what_asks_a_human() {
    let ask = json!({ "type": "PbotApproval", "filter": { "condition": { "equal": ["@one", "b"] } },
        "properties": { "comment": "Go on with {{one}}?" } });
    let wait =
        json!({ "type": "wait", "filter": { "condition": { "equal": ["@one", "a"] } }, "properties": { "for": "1h" } });
    let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
        "item_variable_name": "one", "max_concurrency": 2, "actions_to_execute": [wait, ask, post("{{one}}")] } });
    let run = Waiting::of(json!([each]));
    let ran = run.run(&json!({ "items": ["a", "b"] }));
    let result = ran.json();
    assert_eq!((ran.code, &result["termination"]), (3, &json!("approval")), "a human is asked: {ran:#?}");
    assert_eq!(waits(&ran), ["each.0.0 waiting", "each.1.1 approval"]);
    let ran = run.resume(&["--approve"]);
    assert_eq!((ran.code, waits(&ran)), (3, vec!["each.0.0 waiting".to_owned()]), "{ran:#?}");
    assert_eq!(run.posted(), ["/b"]);
    run.passes(AN_HOUR + 1_000);
    assert_eq!((run.resume(&[]).code, run.posted().len()), (0, 2));
}

#[test]
fn a_short_wait_is_waited_for_by_the_command() {
    let run = Waiting::of(json!([{ "type": "wait", "properties": { "for": "1s" } }, post("after")]));
    let ran = run.run(&json!({}));
    assert_eq!((ran.code, run.posted().len()), (0, 1), "{ran:#?}");
    assert!(ran.stderr.contains("waiting until "), "{}", ran.stderr);
}

#[test]
fn an_action_of_the_name_keeps_its_meaning() {
    let run = Waiting::of(json!([{ "type": "wait", "properties": { "seconds": 5 } }]));
    let wait = json!([{ "action_name": "wait", "kind": "http", "description": "Waits.", "http_method": "POST",
        "url": format!("{}/lift", run.server.url()), "parameters": { "type": "object" } }]);
    run.place.json("actions/wait.json", &wait);
    let ran = run.run(&json!({}));
    assert_eq!((ran.code, run.posted()), (0, vec!["/lift".to_owned()]), "{ran:#?}");
}

#[test]
fn a_scenario_passes_the_time_and_can_end_the_wait() {
    let run = Waiting::of(json!([
        { "id": "pause", "type": "wait", "properties": { "for": "30d" }, "outputKey": "waited" }, post("after")
    ]));
    let played = json!({ "post": [{ "result": { "ok": true } }] });
    let scenario = |name: &str, decisions: Value, early: bool| {
        json!({ "name": name, "input": {}, "tools": played, "decisions": decisions,
            "expect": { "status": "completed", "pauses": [{ "kind": "waiting" }],
                "answer": { "waited": { "early": early } } } })
    };
    let all =
        [scenario("waits", json!([]), false), scenario("ends", json!([{ "at": "pause", "approve": true }]), true)];
    run.place.json("loop.scenarios.json", &json!({ "document": "loop.json", "scenarios": all }));
    let ran = run.call(&["test", "loop.scenarios.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(run.posted().is_empty());
}

#[test]
fn a_scenario_gives_the_data_of_an_event_or_lets_it_not_come() {
    let wait = json!({ "id": "paid", "type": "wait_for_event", "outputKey": "payment",
        "properties": { "event": "payment.received", "match": { "order": "@input.order" }, "ttl_seconds": 86_400 } });
    let run = Waiting::of(json!([wait, post("{{payment.by}}")]));
    let played = json!({ "post": [{ "result": { "ok": true } }] });
    let scenario = |name: &str, decisions: Value, expect: Value| json!({ "name": name, "input": { "order": 7 }, "tools": played, "decisions": decisions, "expect": expect });
    let all = [
        scenario(
            "it comes",
            json!([{ "answer": { "order": 7.0, "by": "card" } }]),
            json!({ "status": "completed", "pauses": [{ "kind": "waiting_event" }], "answer": { "payment": { "by": "card" } } }),
        ),
        scenario(
            "somebody gives it",
            json!([{ "answer": { "by": "hand" }, "by": "ann" }]),
            json!({ "status": "completed", "answer": { "payment": { "by": "hand" } } }),
        ),
        scenario("it does not", json!([]), json!({ "status": "failed", "termination": "step_failed" })),
    ];
    run.place.json("loop.scenarios.json", &json!({ "document": "loop.json", "scenarios": all }));
    let ran = run.call(&["test", "loop.scenarios.json", "--crash"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let other = [scenario("that of another order", json!([{ "answer": { "order": 8 } }]), json!({}))];
    run.place.json("loop.scenarios.json", &json!({ "document": "loop.json", "scenarios": other }));
    let ran = run.call(&["test", "loop.scenarios.json"]);
    assert!(ran.code == 1 && ran.stderr.contains("whose `match` is {\"order\":7}"), "{ran:#?}");
}

#[test]
fn an_event_that_a_waiting_run_is_about_to_take_is_taken_by_no_run_that_begins_then() {
    let wait = json!({ "id": "paid", "type": "wait_for_event", "outputKey": "payment",
        "properties": { "event": "payment.received", "match": { "order": 7 } } });
    let run = Waiting::of(json!([wait]));
    let call = |args: &[&str]| run.call(&[args, &["--output", "json", "--store", "sqlite:runs.db"]].concat());
    assert_eq!(call(&["run", "loop.json", "--run-id", "waits"]).code, 3);
    let event = ["event", "payment.received", "--id", "e", "--data", r#"{"order":7}"#, "--store", "sqlite:runs.db"];
    let sent = run.call(&event);
    assert!(sent.code == 0 && sent.stderr.contains("1 run gets it"), "{sent:#?}");
    // Nobody drives the run that waits.
    let begins = call(&["run", "loop.json", "--run-id", "begins"]);
    assert_eq!((begins.code, waits(&begins)), (3, vec!["paid waiting_event".to_owned()]), "{begins:#?}");
    let waits = call(&["resume", "waits"]);
    assert_eq!((waits.code, &waits.json()["result"]["answer"]["payment"]["order"]), (0, &json!(7)), "{waits:#?}");
    assert_eq!(call(&["resume", "begins"]).code, 3, "the event is given once");
}

#[test]
fn two_events_that_came_before_the_resume_are_both_taken_by_it() {
    let wait =
        |key: &str| json!({ "id": key, "type": "wait_for_event", "outputKey": key, "properties": { "event": "paid" } });
    let waiting = Waiting::of(json!([wait("one"), wait("two"), post("{{two.n}}")]));
    assert_eq!(waiting.run(&json!({})).code, 3);
    for n in ["1", "2"] {
        let data = format!("{{\"n\":\"{n}\"}}");
        let ran = waiting.call(&["event", "paid", "--id", n, "--data", &data]);
        assert_eq!(ran.code, 0, "{ran:#?}");
    }
    let ran = waiting.resume(&[]);
    assert_eq!((ran.code, waiting.posted()), (0, vec!["/2".to_owned()]), "{ran:#?}");
}
