//! Questions that are posted to targets of `ask`: by steps, by actions, in items, cases and named runs; retried, and posted
//! once.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, document, think};
use crate::run::workflows::{definition, foreach, place};

/// A place whose target `ops` is this server, by a secret address.
fn asking(server: &Server) -> Place {
    let place = place();
    place.file("hook.txt", format!("{}/{SECRET}", server.url()));
    project(&place, "webhook");
    place
}

const SECRET: &str = "a-secret-path-0123456789";

fn project(place: &Place, kind: &str) {
    let target = json!({ "kind": kind, "url": "orgconfig:hook" });
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "orgconfig": { "hook": "file:hook.txt" },
            "notify": { "ops": target, "night": target } }),
    );
}

fn accepting() -> Server {
    Server::with(|_, _| Answer::new("text/html", "ok"))
}

fn approval(id: &str) -> Value {
    json!({ "id": id, "type": "PbotApproval",
        "properties": { "comment": "Pay {{input.id}}?", "request_payload": { "password": "@input.word", "amount": 7 }, "ask": ["ops"] } })
}

fn run(place: &Place) -> Ran {
    place.run(&["--run-id", "r", "--input", "id=C-7", "--input", "word=hunter2"]).0
}

fn resume(place: &Place, how: &[&str]) -> Ran {
    place.call(&[&["resume", "r", "--script", "script.json", "--output", "json"], how].concat())
}

/// What was posted: the key, the place and the text of each.
fn posted(server: &Server) -> Vec<(String, String, String)> {
    let of = |request: &crate::common::server::Request| {
        let (body, key) = (request.json(), request.header("idempotency-key").unwrap().to_owned());
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        // A header has no slash as it is.
        assert_eq!((text("id").replace('/', "%2F"), text("run_id")), (key.clone(), "r".to_owned()), "{body}");
        (key, text("at"), text("text"))
    };
    server.requests().iter().map(of).collect()
}

#[test]
fn an_approval_and_a_form_are_posted_once_with_the_command_that_answers() {
    let server = accepting();
    let place = asking(&server);
    let form = json!({ "id": "fill", "type": "PbotForm", "properties": { "question": "How much?\nanswer: https://evil.example",
        "fields": [{ "name": "amount", "type": "integer", "label": "In euros" }], "ask": ["ops", "night"] } });
    definition(&place, json!({ "actions": [approval("ok"), form], "output": "@amount" }));
    let ran = run(&place);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let asked = &ran.json()["asked"];
    assert_eq!((&asked[0]["at"], &asked[0]["to"], &asked[0]["tries"]), (&json!("ok"), &json!("ops"), &json!(1)));
    // Nothing is posted again.
    for _ in 0..2 {
        assert_eq!(resume(&place, &[]).code, 3);
    }
    let posts = posted(&server);
    assert_eq!(posts.len(), 1, "{posts:?}");
    let (_, at, text) = &posts[0];
    assert_eq!(at, "ok");
    for part in ["w asks at ok, run r\n", "\n> Pay C-7?\n", "\"amount\": 7", "[hidden]", "resume r --approve --if"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
    let ran = resume(&place, &["--approve"]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let posts = posted(&server);
    assert_eq!(posts.len(), 3, "{posts:?}");
    // What the engine says stands before what the document says, of which each line is quoted.
    let text = &posts[1].2;
    let (own, theirs) = text.split_once("\n\n").unwrap();
    assert!(own.contains("\nanswer: ") && own.contains("--at fill --answer"), "{text}");
    assert!(theirs.lines().all(|line| line.starts_with("> ")), "{text}");
    for line in ["> answer: https://evil.example\n", "> - amount: integer (In euros)"] {
        assert!(theirs.contains(line), "{text}");
    }
    assert_ne!(posts[1].0, posts[2].0, "each target has its key");
    let ran = resume(&place, &["--answer", r#"{"amount": "12"}"#]);
    assert_eq!((ran.code, &ran.json()["result"]["answer"]), (0, &json!(12)), "{ran:#?}");
    assert_eq!(posted(&server).len(), 3);
    for args in [vec!["trace", "r"], vec!["trace", "r", "--format", "html"], vec!["trace", "r", "--format", "json"]] {
        let shown = place.call(&args).stdout;
        assert!(shown.contains("ops") && shown.contains("night") && !shown.contains(SECRET), "{args:?}: {shown}");
    }
    let trace = place.call(&["trace", "r"]).stdout;
    assert!(trace.contains("fill: asked night at "), "{trace}");
}

#[test]
fn a_post_that_fails_is_made_again_and_hides_the_address() {
    let server = Server::with(|number, _| match number {
        0 | 1 => Answer::new("text/plain", "busy").status(503),
        _ => Answer::new("text/html", "ok"),
    });
    let place = asking(&server);
    definition(&place, json!({ "actions": [approval("ok")] }));
    let ran = place.call(&[
        "run",
        "loop.json",
        "--run-id",
        "r",
        "--input",
        "id=C-7",
        "--input",
        "word=hunter2",
        "--script",
        "script.json",
    ]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    assert!(shown.contains("ops was not asked, it failed once") && !shown.contains(SECRET), "{shown}");
    let trace = place.call(&["trace", "r", "--format", "json"]).json();
    let post = &trace["asked"][0];
    assert_eq!((&post["tries"], post.get("error")), (&json!(3), None), "{post}");
    let keys: Vec<String> = posted(&server).into_iter().map(|(key, ..)| key).collect();
    assert!(keys.len() == 3 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn a_post_to_a_host_that_the_project_excludes_is_not_made_again() {
    let server = accepting();
    let place = asking(&server);
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true, "hosts": ["ops.example.com"] }, "orgconfig": { "hook": "file:hook.txt" },
            "notify": { "ops": { "kind": "webhook", "url": "orgconfig:hook" } } }),
    );
    definition(&place, json!({ "actions": [approval("ok")] }));
    let ran = run(&place);
    let asked = &ran.json()["asked"][0];
    assert_eq!((ran.code, &asked["tries"], &asked["next_try_at"]), (3, &json!(1), &Value::Null), "{ran:#?}");
    assert!(asked["error"].as_str().is_some_and(|why| why.contains("`allow.hosts`")), "{asked:#}");
    assert_eq!(resume(&place, &[]).json()["asked"][0]["tries"], 1);
    assert!(posted(&server).is_empty());
}

#[test]
fn a_post_that_goes_on_failing_is_left_to_the_next_driver_when_it_is_due() {
    let server = Server::with(|_, _| Answer::new("text/plain", "no").status(404));
    let place = asking(&server);
    definition(&place, json!({ "actions": [approval("ok")] }));
    place.file("clock", "0");
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let call = |args: &[&str]| place.call_with(args, &[("LOOPCTL_CLOCK", &clock)]);
    let ran = call(&[
        "run",
        "loop.json",
        "--run-id",
        "r",
        "--input",
        "id=C-7",
        "--input",
        "word=hunter2",
        "--script",
        "script.json",
        "--output",
        "json",
    ]);
    assert_eq!(ran.code, 3, "{ran:#?}");
    let post = ran.json()["asked"][0].clone();
    let before = server.requests().len();
    assert!(post["next_try_at"].is_string() && post["error"].as_str().unwrap().contains("404"), "{post}");
    assert_eq!(post["tries"], before, "{post}");
    assert!(!ran.stdout.contains(SECRET), "{ran:#?}");
    place.file("clock", "3600000");
    let ran = call(&["resume", "r", "--script", "script.json", "--output", "json"]);
    assert!(server.requests().len() > before, "{ran:#?}");
    // Nobody has to hear of it: it is decided all the same.
    assert_eq!(resume(&place, &["--approve"]).code, 0);
}

/// Calls the program with a clock that is this many milliseconds ahead.
fn call_later(place: &Place, args: &[&str], ahead_ms: u64) -> Ran {
    place.file("clock", ahead_ms.to_string());
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let all = [args, &["--script", "script.json", "--output", "json"]].concat();
    place.call_with(&all, &[("LOOPCTL_CLOCK", &clock)])
}

#[test]
fn a_reminder_says_that_it_is_one_and_is_posted_once_when_it_is_due() {
    let server = accepting();
    let place = asking(&server);
    let mut ask = approval("ok");
    ask["properties"]["reminder_intervals"] = json!([3600, 86400, 172_800]);
    definition(&place, json!({ "actions": [ask] }));
    let args = ["run", "loop.json", "--run-id", "r", "--input", "id=C-7", "--input", "word=hunter2"];
    assert_eq!(call_later(&place, &args, 0).code, 3);
    // Of two that are due, the last one is posted.
    for (ahead_ms, posts) in [(0, 1), (3_600_000, 2), (3_700_000, 2), (200_000_000, 3), (400_000_000, 3)] {
        let ran = call_later(&place, &["resume", "r"], ahead_ms);
        assert_eq!((ran.code, server.requests().len()), (3, posts), "{ahead_ms}: {ran:#?}");
    }
    let posts = posted(&server);
    for (number, reminder) in [(1, 1), (2, 3)] {
        let text = &posts[number].2;
        let first = format!("Reminder {reminder}: w asks at ok, run r\nnobody has answered since ");
        assert!(text.starts_with(&first) && text.contains("\n> Pay C-7?\n") && !text.contains("hunter2"), "{text}");
        assert!(text.contains("resume r --approve --if"), "{text}");
        assert_eq!(server.requests()[number].json()["reminder"], reminder);
    }
    assert!(posts[0].2.starts_with("w asks at ok, run r\n") && server.requests()[0].json().get("reminder").is_none());
    let keys: std::collections::BTreeSet<&String> = posts.iter().map(|(key, ..)| key).collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    let ran = call_later(&place, &["resume", "r", "--approve"], 400_000_000);
    let asked = ran.json()["asked"].clone();
    let reminders: Vec<&Value> = asked.as_array().unwrap().iter().map(|post| &post["reminder"]).collect();
    assert_eq!((ran.code, reminders), (0, vec![&Value::Null, &json!(1), &json!(3)]), "{asked}");
    for args in [vec!["trace", "r"], vec!["trace", "r", "--format", "html"]] {
        let shown = place.call(&args).stdout;
        assert!(shown.contains("reminded ops at "), "{args:?}: {shown}");
    }
}

#[test]
fn a_question_that_is_escalated_is_posted_again_and_says_to_whom() {
    let server = accepting();
    let place = asking(&server);
    let action = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/act", "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "requires_approval": true,
        "approval": { "ask": ["ops"], "expires_after_ms": 3_600_000, "on_expiry": "escalate" } });
    place.json("actions/pay.json", &json!([action]));
    let replies = json!([think("pay", json!({ "n": 1 })), crate::common::complete(json!("done"))]);
    place.json("script.json", &json!({ "replies": replies, "tools": { "pay": [{ "ok": true }] } }));
    for (number, run_id) in ["of-loop", "of-step"].into_iter().enumerate() {
        let tool = json!({ "type": "action", "name": "pay" });
        if number == 0 {
            place.json("loop.json", &document(&json!({ "tools": [tool] })));
        } else {
            definition(&place, json!({ "actions": [{ "id": "act", "type": "pay", "properties": { "n": 2 } }] }));
        }
        let before = server.requests().len();
        let ran = call_later(&place, &["run", "loop.json", "--run-id", run_id], 0);
        assert_eq!((ran.code, server.requests().len()), (3, before + 1), "{ran:#?}");
        for _ in 0..2 {
            let ran = call_later(&place, &["resume", run_id], 3_700_000);
            assert_eq!((ran.code, server.requests().len()), (3, before + 2), "{ran:#?}");
        }
        let [first, again] = [before, before + 1].map(|number| server.requests()[number].json());
        assert!(first.get("escalated").is_none() && !first["text"].as_str().unwrap().contains("scalated"), "{first}");
        let text = again["text"].as_str().unwrap();
        assert!(text.starts_with("Escalated: ") && text.contains("the scope `decide:escalated`"), "{text}");
        assert_eq!((&again["escalated"], first["id"] == again["id"]), (&json!(true), false));
        let ran = call_later(&place, &["resume", run_id, "--approve"], 3_700_000);
        assert_eq!((ran.code, &ran.json()["asked"][1]["escalated"]), (0, &json!(true)), "{ran:#?}");
        let trace = place.call(&["trace", run_id]).stdout;
        assert!(trace.contains(", escalated"), "{trace}");
    }
}

#[test]
fn what_an_edit_or_a_new_document_has_changed_is_posted_again_once() {
    let server = accepting();
    let place = asking(&server);
    let action = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/act", "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "requires_approval": true, "approval": { "ask": ["ops"], "approvers": 2 } });
    place.json("actions/pay.json", &json!([action]));
    let replies = json!([think("pay", json!({ "n": 1 })), crate::common::complete(json!("done"))]);
    place.json("script.json", &json!({ "replies": replies, "tools": { "pay": [{ "ok": true }] } }));
    let call = |args: &[&str]| {
        let ran = place.call(&[args, &["--script", "script.json", "--output", "json"]].concat());
        assert_eq!(ran.code, 3, "{args:?}: {ran:#?}");
        ran.json()
    };
    for (number, run_id) in ["of-loop", "of-step"].into_iter().enumerate() {
        if number == 0 {
            place.json("loop.json", &document(&json!({ "tools": [{ "type": "action", "name": "pay" }] })));
        } else {
            definition(&place, json!({ "actions": [{ "id": "act", "type": "pay", "properties": { "n": 1 } }] }));
        }
        let before = server.requests().len();
        call(&["run", "loop.json", "--run-id", run_id]);
        call(&["resume", run_id]);
        assert_eq!(server.requests().len(), before + 1, "{run_id}");
        call(&["resume", run_id, "--edit", r#"{"n": 66}"#]);
        call(&["resume", run_id]);
        assert_eq!(server.requests().len(), before + 2, "{run_id}");
        let [first, again] = [before, before + 1].map(|number| server.requests()[number].json());
        let has = |post: &Value, text: &str| post["text"].as_str().unwrap().contains(text);
        assert!(has(&first, "\"n\": 1"), "{first}");
        assert!(has(&again, "\"n\": 66") && first["id"] != again["id"], "{again}");
        let denied = place.call(&["resume", run_id, "--deny", "--script", "script.json", "--output", "json"]).json();
        // What was posted of the pause before is over.
        assert_eq!(denied["decisions"][1]["pause"], 2, "{denied:#}");
    }
    let asks = |comment: &str| {
        let ask = json!({ "id": "ok", "type": "PbotApproval", "properties": { "comment": comment, "ask": ["ops"] } });
        definition(&place, json!({ "actions": [ask] }));
    };
    asks("Pay OLD?");
    let before = server.requests().len();
    call(&["run", "loop.json", "--run-id", "new"]);
    asks("Pay NEW?");
    call(&["resume", "new", "--new-document"]);
    call(&["resume", "new"]);
    let texts: Vec<String> = server.requests()[before..].iter().map(|post| post.json()["text"].to_string()).collect();
    assert!(texts.len() == 2 && texts[0].contains("Pay OLD?") && texts[1].contains("Pay NEW?"), "{texts:?}");
}

#[test]
fn steps_in_items_cases_and_named_runs_ask_and_are_posted_by_the_run_that_is_answered() {
    let server = accepting();
    let place = asking(&server);
    place.json("workflows/pay.json", &json!({ "name": "pay", "definition": { "actions": [approval("sub")] } }));
    let in_item =
        json!({ "id": "one", "type": "PbotApproval", "properties": { "comment": "{{one}}?", "ask": ["ops"] } });
    let case = json!({ "id": "way", "type": "choose", "cases": [
        { "when": { "equal": ["@input.id", "C-7"] }, "steps": [approval("cased")] }] });
    let named = json!({ "id": "named", "type": "workflow", "name": "pay", "properties": { "id": "@input.id", "word": "@input.word" } });
    let items = foreach("@input.list", json!({ "on_pause": "go_on", "item_label": "item {{one}}" }), json!([in_item]));
    definition(&place, json!({ "actions": [items, case, named] }));
    place.json("input.json", &json!({ "id": "C-7", "word": "hunter2", "list": ["x", "y"] }));
    let ran = place.run(&["--run-id", "r", "--input-file", "input.json"]).0;
    assert_eq!(ran.code, 3, "{ran:#?}");
    let at = |server: &Server| posted(server).into_iter().map(|(_, at, _)| at).collect::<Vec<_>>();
    let mut first = at(&server);
    first.sort();
    assert_eq!(first, ["each.0.one", "each.1.one"]);
    assert!(posted(&server).iter().all(|(_, _, text)| text.contains("(item ")), "{:?}", posted(&server));
    for step in ["each.0.one", "each.1.one"] {
        assert_eq!(resume(&place, &["--at", step, "--approve"]).code, 3);
    }
    assert_eq!(at(&server)[2..], ["way.0.cased"]);
    assert_eq!(resume(&place, &["--approve"]).code, 3);
    assert_eq!(at(&server)[3..], ["named/sub"]);
    let text = posted(&server)[3].2.clone();
    assert!(text.contains("resume r ") && text.contains("Pay C-7?"), "{text}");
    let ran = resume(&place, &["--approve"]);
    assert_eq!((ran.code, at(&server).len()), (0, 4), "{ran:#?}");
}

#[test]
fn the_approval_of_a_call_is_posted_in_a_loop_and_in_a_step() {
    let server = accepting();
    let place = asking(&server);
    let action = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
        "url": "https://tools.example.com/act", "parameters": { "type": "object", "properties": { "n": { "type": "integer" } } },
        "requires_approval": true, "approval": { "ask": ["ops"], "expires_after_ms": 3_600_000 } });
    place.json("actions/pay.json", &json!([action]));
    let tool = json!({ "type": "action", "name": "pay", "approval": { "ask": ["night", "ops"] } });
    place.json("loop.json", &document(&json!({ "tools": [tool] })));
    let replies = json!([think("pay", json!({ "n": 1 })), crate::common::complete(json!("done"))]);
    place.json("script.json", &json!({ "replies": replies, "tools": { "pay": [{ "ok": true }] } }));
    let ran = place.run(&["--run-id", "r"]).0;
    assert_eq!(ran.code, 3, "{ran:#?}");
    assert_eq!(resume(&place, &[]).code, 3);
    let posts = posted(&server);
    assert_eq!(posts.len(), 2, "{posts:?}");
    for (_, at, text) in &posts {
        assert_eq!(at, "1.0");
        assert!(
            text.contains("May the agent call pay?") && text.contains("\"n\": 1") && text.contains("open until"),
            "{text}"
        );
        assert!(text.contains("resume r --approve --if "), "{text}");
    }
    assert_eq!(ran.json()["pause"]["call"]["ask"]["to"], json!(["ops", "night"]), "{ran:#?}");
    assert_eq!(resume(&place, &["--approve"]).code, 0);
    // The same action as a step.
    definition(&place, json!({ "actions": [{ "id": "act", "type": "pay", "properties": { "n": 2 } }] }));
    place.json("script.json", &json!({ "replies": [], "tools": { "pay": [{ "ok": true }] } }));
    let ran = place.call(&["run", "loop.json", "--run-id", "s", "--script", "script.json", "--output", "json"]);
    assert_eq!((ran.code, server.requests().len()), (3, 3), "{ran:#?}");
    assert_eq!(server.requests()[2].json()["at"], "act");
}

#[test]
fn each_kind_of_target_gets_the_link_or_the_command_as_data() {
    let server = accepting();
    let place = asking(&server);
    definition(&place, json!({ "actions": [approval("ok")] }));
    for kind in ["slack", "teams"] {
        project(&place, kind);
        let ran = place.call(&[
            "run",
            "loop.json",
            "--run-id",
            kind,
            "--input",
            "id=<!channel>",
            "--input",
            "word=hunter2",
            "--script",
            "script.json",
        ]);
        assert_eq!(ran.code, 3, "{ran:#?}");
    }
    let [slack, teams] = [0, 1].map(|number| server.requests()[number].json());
    assert!(slack["text"].as_str().unwrap().contains("Pay &lt;!channel&gt;?"), "{slack}");
    assert_eq!(slack["unfurl_links"], false);
    let lines = teams["attachments"][0]["content"]["body"].as_array().unwrap();
    assert!(lines.iter().any(|line| line["inlines"][0]["text"] == "> Pay <!channel>?"), "{teams}");
}

#[test]
fn a_scenario_expects_who_is_asked_without_a_network() {
    let server = accepting();
    let place = asking(&server);
    definition(&place, json!({ "actions": [approval("ok")] }));
    let scenario = |asked: Value| {
        json!({ "document": "loop.json", "scenarios": [{ "name": "asked", "input": { "id": "C-7", "word": "hunter2" },
            "decisions": [{ "at": "ok", "approve": true }], "expect": { "status": "completed", "asked": asked } }] })
    };
    place.json("one.test.json", &scenario(json!({ "ok": ["ops"] })));
    let ran = place.call(&["test", "one.test.json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    for (asked, said) in [
        (json!({}), "`ok` also asks ops"),
        (json!({ "ok": ["night"] }), "`ok` asks ops"),
        (json!({ "ok": ["ops"], "later": ["ops"] }), "`later` asks nobody by a post"),
    ] {
        place.json("one.test.json", &scenario(asked));
        let ran = place.call(&["test", "one.test.json"]);
        assert!(ran.code == 1 && format!("{}{}", ran.stdout, ran.stderr).contains(said), "{said}: {ran:#?}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn the_secret_of_a_target_is_required_at_the_start_and_a_script_that_plays_notify_plays_the_posts() {
    let server = accepting();
    let place = asking(&server);
    definition(&place, json!({ "actions": [approval("pay")] }));
    std::fs::remove_file(place.path().join("hook.txt")).unwrap();
    let checked = place.call(&["check", "--env", "loop.json"]);
    assert_eq!(checked.code, 1, "{checked:#?}");
    assert!(checked.stderr.contains("L133") && checked.stderr.contains("the question to ops needs it"), "{checked:#?}");
    let refused = place.call(&["run", "loop.json", "--input", "id=C-7", "--input", "word=hunter2"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
    assert!(
        refused.stderr.contains("hook.txt") && refused.stderr.contains("the question to ops needs it"),
        "{refused:#?}"
    );
    place.json("script.json", &json!({ "replies": [], "tools": { "notify": [{ "sent": true }] } }));
    let played = place.call(&[
        "run",
        "loop.json",
        "--run-id",
        "r",
        "--script",
        "script.json",
        "--input",
        "id=C-7",
        "--input",
        "word=hunter2",
        "--output",
        "json",
    ]);
    assert_eq!((played.code, played.json()["status"].as_str()), (3, Some("paused")), "{played:#?}");
    assert!(server.requests().is_empty());
}
