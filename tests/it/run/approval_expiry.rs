//! Approvals that expire, and those that several people must give, on the command line.

use serde_json::{Value, json};

use crate::common::{Place, Ran, complete, document, think, with};

const AN_HOUR: i64 = 3_600_000;

/// A run `r` whose call waits for an approval with these settings. The test plays the clock.
struct Waiting {
    place: Place,
}

impl Waiting {
    fn of(settings: Value) -> Self {
        let place = Place::new();
        let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": settings });
        place
            .looped(&json!({ "tools": [tool] }))
            .script(&[think("act", json!({ "what": "pay" })), complete(json!("done"))]);
        place.file("clock", "0");
        let waiting = Self { place };
        let ran = waiting.call(&["run", "loop.json", "--run-id", "r", "--script", "script.json", "--output", "json"]);
        assert_eq!(ran.code, 3, "{ran:#?}");
        waiting
    }

    fn call(&self, args: &[&str]) -> Ran {
        self.place.call_with(args, &[("LOOPCTL_CLOCK", "clock")])
    }

    fn resume(&self, how: &[&str]) -> Ran {
        self.call(&[&["resume", "r", "--script", "script.json", "--output", "json"], how].concat())
    }

    /// The clock is so much ahead from now on.
    fn passes(&self, ms: i64) {
        self.place.file("clock", ms.to_string());
    }

    fn trace(&self) -> Value {
        self.call(&["trace", "r", "--format", "json"]).json()
    }

    /// A decision that is refused with this sentence, and changes nothing.
    fn refuses(&self, how: &[&str], why: &str) {
        let before = self.trace();
        let ran = self.resume(how);
        assert_eq!(ran.code, 2, "{how:?}: {ran:#?}");
        assert!(ran.stderr.contains(why), "{how:?}: {}", ran.stderr);
        assert_eq!(self.trace(), before, "{how:?}");
    }
}

#[test]
fn an_approval_in_time_is_taken_and_the_pause_says_until_when() {
    let run = Waiting::of(json!({ "expires_after_ms": 2 * AN_HOUR }));
    let call = run.trace()["pause"]["call"].clone();
    assert_eq!(call["approval"]["on_expiry"], "deny", "{call:#}");
    assert!(call["approval"]["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{call:#}");
    assert!(run.call(&["trace", "r"]).stdout.contains("without a decision until"), "the text says it too");
    run.passes(AN_HOUR);
    assert_eq!(run.resume(&[]).code, 3, "it still waits");
    assert_eq!(run.resume(&["--approve"]).code, 0);
}

#[test]
fn after_the_time_the_model_reads_that_nobody_approved() {
    let run = Waiting::of(json!({ "expires_after_ms": AN_HOUR }));
    run.passes(2 * AN_HOUR);
    for how in [&["--approve"][..], &["--deny"], &["--edit", "{\"what\":\"less\"}"]] {
        run.refuses(how, "nobody approved the call of act in time");
    }
    let ran = run.resume(&[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["trace"][0]["success"]), (0, &json!(false)), "{ran:#?}");
    assert_eq!(result["trace"][0]["observation"], "Error: not called: nobody approved this call in time");
    let decision = &result["decisions"][0];
    assert_eq!((&decision["decision"], &decision["on_expiry"]), (&json!("expired"), &json!("deny")), "{decision:#}");
    assert!(decision["by"].is_null() && decision["hash"].is_string(), "{decision:#}");
    assert!(run.call(&["trace", "r"]).stdout.contains("not approved in time, and so denied"));
    run.refuses(&["--approve"], "the run has ended");
}

#[test]
fn after_the_time_the_run_fails_where_that_is_asked_for() {
    let run = Waiting::of(json!({ "expires_after_ms": AN_HOUR, "on_expiry": "fail" }));
    run.passes(2 * AN_HOUR);
    let ran = run.resume(&[]);
    let result = ran.json();
    assert_eq!((ran.code, &result["error"]["code"]), (1, &json!("approval_expired")), "{ran:#?}");
    assert_eq!(result["error"]["message"], "nobody approved the call of act in time");
    assert_eq!(result["trace"][0]["action"], "act", "the call that was not made is in the trace");
}

#[test]
fn after_the_time_the_question_is_sent_again_to_whoever_may_decide_then() {
    let run = Waiting::of(json!({ "expires_after_ms": AN_HOUR, "on_expiry": "escalate" }));
    run.passes(2 * AN_HOUR);
    run.refuses(&["--approve"], "the question is escalated when the run is resumed");
    let ran = run.resume(&[]);
    let pause = ran.json()["pause"].clone();
    assert_eq!((ran.code, &pause["call"]["approval"]), (3, &json!({ "escalated": true })), "{ran:#?}");
    assert!(pause["question"].as_str().is_some_and(|text| text.contains("it was escalated")), "{pause:#}");
    run.refuses(&["--approve", "--pause", "1"], "pause 1 is over");
    run.passes(1000 * AN_HOUR);
    assert_eq!(run.resume(&[]).code, 3, "it waits without end");
    let ran = run.resume(&["--approve"]);
    let decisions = ran.json()["decisions"].clone();
    assert_eq!(ran.code, 0, "the user of the machine may do everything: {ran:#?}");
    assert_eq!((&decisions[0]["on_expiry"], &decisions[1]["decision"]), (&json!("escalate"), &json!("approve")));
}

#[test]
fn one_user_of_the_machine_is_one_approver() {
    let run = Waiting::of(json!({ "approvers": 2 }));
    let ran = run.resume(&["--approve", "--comment", "as agreed"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["trace"]), (3, &json!([])), "nothing was called: {ran:#?}");
    let decision = &result["decisions"][0];
    assert_eq!(decision["approvals"], json!({ "given": 1, "needed": 2 }), "{decision:#}");
    assert_eq!(result["pause"]["call"]["approval"]["approved_by"], json!([decision["by"]]));
    assert!(run.call(&["trace", "r"]).stdout.contains("2 different people must approve it; so far:"));
    run.refuses(&["--approve"], "another person must approve it too");
    // A variable names nobody.
    let env = [("USER", "somebody-else"), ("LOGNAME", "somebody-else"), ("LOOPCTL_CLOCK", "clock")];
    let ran = run.place.call_with(&["resume", "r", "--approve", "--script", "script.json"], &env);
    assert_eq!(ran.code, 2, "{ran:#?}");
    let ran = run.resume(&["--deny", "--reason", "not now"]);
    let text = ran.json()["trace"][0]["observation"].clone();
    assert_eq!((ran.code, text), (0, json!("Error: a human did not allow this call: not now")), "a denial is final");
}

#[test]
fn an_edited_call_is_approved_anew() {
    let run = Waiting::of(json!({ "approvers": 2 }));
    assert_eq!(run.resume(&["--approve"]).code, 3);
    let before = run.trace()["pause"]["call"].clone();
    let ran = run.resume(&["--edit", "{\"what\":\"less\"}"]);
    let call = ran.json()["pause"]["call"].clone();
    assert_eq!((ran.code, &call["action_input"]), (3, &json!({ "what": "less" })), "{ran:#?}");
    assert_ne!(call["hash"], before["hash"]);
    assert_eq!(call["approval"]["approved_by"].as_array().map(Vec::len), Some(1), "{call:#}");
    let old = before["hash"].as_str().expect("a hash");
    run.refuses(&["--approve", "--if", old], "is not the one that was shown");
    run.refuses(&["--approve"], "another person must approve it too");
}

#[test]
fn the_settings_of_an_action_are_a_floor() {
    let place = Place::new();
    let mut loop_json = document(&json!({ "tools": [{ "type": "action", "name": "act",
        "approval": { "expires_after_ms": 10 * AN_HOUR, "on_expiry": "escalate", "approvers": 1 } }] }));
    let act = loop_json["actions"].as_array_mut().expect("actions").iter_mut();
    for action in act.filter(|action| action["action_name"] == "act") {
        action["requires_approval"] = json!(true);
        action["approval"] = json!({ "expires_after_ms": AN_HOUR, "on_expiry": "fail", "approvers": 2 });
    }
    place.json("loop.json", &loop_json);
    place.script(&[think("act", json!({ "what": "pay" }))]);
    let checked = place.call(&["check", "loop.json"]);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert_eq!(said.matches("[L130]").count(), 3, "{said}");
    let (ran, result) = place.run(&["--run-id", "r"]);
    let approval = &result["pause"]["call"]["approval"];
    assert_eq!((ran.code, &approval["approvers"], &approval["on_expiry"]), (3, &json!(2), &json!("fail")), "{ran:#?}");
}

#[test]
fn the_approvals_of_a_called_loop_expire_and_count_as_its_own() {
    let place = Place::new();
    let child = |settings: Value| {
        let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": settings });
        with(document(&json!({ "tools": [tool] }))["properties"].clone(), json!({}))
    };
    for (settings, outcome) in [
        (json!({ "expires_after_ms": AN_HOUR }), "Error: not called"),
        (json!({ "expires_after_ms": AN_HOUR, "on_expiry": "fail" }), "the loop `child` ended: approval"),
    ] {
        let mut document = document(&json!({}));
        document["name"] = json!("child");
        document["description"] = json!("Acts.");
        document["properties"] = child(settings);
        place.json("loops/child.json", &document);
        place.json(
            "loop.json",
            &json!({ "type": "loop", "name": "test", "properties": { "mode": "react", "objective": "x",
                "tools": [{ "type": "loop", "name": "child" }] } }),
        );
        place.json(
            "script.json",
            &json!({ "replies": [think("child", json!({})), complete(json!("done"))],
                "loops": { "child": [think("act", json!({ "what": "pay" })), complete(json!("child done"))] } }),
        );
        place.file("clock", "0");
        let id = format!("r-{}", outcome.len());
        let clock = [("LOOPCTL_CLOCK", "clock")];
        let args = ["run", "loop.json", "--run-id", &id, "--script", "script.json", "--output", "json"];
        let ran = place.call_with(&args, &clock);
        assert_eq!(ran.code, 3, "{ran:#?}");
        place.file("clock", (2 * AN_HOUR).to_string());
        let resume = ["resume", &id, "--script", "script.json", "--output", "json"];
        let late = place.call_with(&[&resume[..], &["--approve"]].concat(), &clock);
        assert!(late.code == 2 && late.stderr.contains("in time"), "{late:#?}");
        let ran = place.call_with(&resume, &clock);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let own = place.call(&["trace", &format!("{id}.1.0"), "--format", "json"]).json();
        let said = format!("{}{}", own["trace"], ran.json()["trace"]);
        assert!(said.contains(outcome), "{said}");
        assert_eq!(own["decisions"][0]["decision"], "expired", "{own:#}");
    }
}
