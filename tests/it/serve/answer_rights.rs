//! Who may decide by a posted token: what the one who started the run may decide, and no more. What is posted, and what
//! is not.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::answers::Hooked;
use crate::serve::client::{Serving, place, scripted};
use crate::serve::restart::terminate;

const AN_HOUR: i64 = 3_600_000;

/// A server with a token of each of these scopes, and a loop whose call waits.
struct Passed {
    place: Place,
    server: Serving,
    hook: Server,
    tokens: Vec<String>,
    entries: Vec<Value>,
}

fn configure(place: &Place, entries: &[Value]) {
    let replies = [think("act", json!({ "what": "pay" })), complete(json!("ok"))];
    scripted(place, &replies, json!({ "serve": { "tokens": entries, "callback_secret": "file:hook.key" } }));
}

fn serve(place: &Place) -> Serving {
    let clock = place.path().join("clock").to_str().unwrap().to_owned();
    Serving::start_with(place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)])
}

impl Passed {
    fn start(scopes: &[&[&str]], settings: Value) -> Self {
        let options = scopes.iter().map(|scopes| scopes.iter().flat_map(|scope| ["--scope", scope]).collect());
        Self::start_with(&options.collect::<Vec<_>>(), settings)
    }

    /// The same, with a token of each of these options.
    fn start_with(options: &[Vec<&str>], settings: Value) -> Self {
        let place = place(json!({}), &[]);
        let (mut tokens, mut entries) = (Vec::new(), Vec::new());
        for (number, options) in options.iter().enumerate() {
            let name = format!("t{number}");
            let args = [&["token", &name], options.as_slice()].concat();
            let made = place.call(&args);
            entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).unwrap()).unwrap());
            tokens.push(made.stdout.trim().to_owned());
        }
        let settings_of_step = settings.clone();
        let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": settings });
        place.json("loop.json", &crate::common::document(&json!({ "tools": [tool] })));
        place.file("hook.key", "s3cret-of-the-hook\n");
        let act = json!({ "action_name": "pay", "kind": "http", "description": "Pays.", "http_method": "POST",
            "url": "https://e.example/pay", "requires_approval": true, "approval": settings_of_step });
        place.json("actions/pay.json", &act);
        let step = json!({ "id": "go", "type": "pay", "properties": {} });
        place.json("workflows/steps.json", &json!({ "name": "steps", "definition": { "actions": [step] } }));
        place.file("clock", "0");
        configure(&place, &entries);
        let server = serve(&place);
        let hook = Server::with(|_, _| Answer::json("{}"));
        Self { place, server, hook, tokens, entries }
    }

    /// The same store with these tokens only.
    fn restart_with(mut self, holders: &[usize]) -> Self {
        terminate(&self.server);
        let entries: Vec<Value> = holders.iter().map(|holder| self.entries[*holder].clone()).collect();
        configure(&self.place, &entries);
        self.server = serve(&self.place);
        self
    }

    /// Starts a run as the holder of this token; its id.
    fn run(&self, holder: usize) -> String {
        self.run_of("test", holder)
    }

    /// The same with the workflow or loop of this name.
    fn run_of(&self, name: &str, holder: usize) -> String {
        let bearer = format!("Bearer {}", self.tokens[holder]);
        let body = json!({ "loop": name, "callback_url": self.hook.url() }).to_string();
        let reply = self.server.send("POST", "/agents/execute", &[("authorization", &bearer)], body.as_bytes());
        assert_eq!(reply.json()["status"], "paused", "{reply:?}");
        reply.json()["agent_run_id"].as_str().unwrap().to_owned()
    }

    /// The call in the post of this number, from 1.
    fn call(&self, number: usize) -> Value {
        self.hook.wait_for(number);
        self.hook.requests()[number - 1].json()["payload"]["pause"]["calls"][0].clone()
    }

    fn approve(&self, run: &str, call: &Value) -> u16 {
        let body = json!({ "approve": true, "token": call["answer"]["token"] });
        self.server.post(&format!("/agents/{run}/answer"), &body).status
    }
}

#[test]
fn who_may_not_decide_gets_no_token_that_does() {
    let there =
        Passed::start(&[&["run"], &["run", "decide"], &["run", "decide:test"], &["run", "decide:other"]], json!({}));
    let mut posts = 0;
    for (holder, decides) in [(0, false), (1, true), (2, true), (3, false)] {
        let run = there.run(holder);
        posts += 1;
        let call = there.call(posts);
        assert_eq!(call["action"], "act", "the pause is posted all the same");
        assert_eq!(call.get("answer").is_some(), decides, "{holder}: {call:#}");
        assert_eq!(there.approve(&run, &call), if decides { 202 } else { 403 }, "{holder}");
        if decides {
            // The end is posted too.
            posts += 1;
            there.hook.wait_for(posts);
        }
    }
}

#[test]
fn what_was_posted_decides_no_longer_than_the_token_that_started_the_run() {
    let mut there = Passed::start(&[&["run", "decide"], &["decide", "read"]], json!({}));
    let run = there.run(0);
    let call = there.call(1);
    there = there.restart_with(&[1]);
    let answer = format!("/agents/{run}/answer");
    let body = json!({ "approve": true, "token": call["answer"]["token"] });
    let refused = there.server.post(&answer, &body);
    assert_eq!((refused.status, refused.code()), (410, "starter_is_gone".to_owned()));
    let page = there.server.get(&format!("{answer}?token={}", call["answer"]["token"].as_str().unwrap()));
    let text = String::from_utf8(page.body).unwrap();
    assert!(page.status == 410 && text.contains("This link decides nothing any more"), "{text}");
    let own = format!("Bearer {}", there.tokens[1]);
    let status = there.server.send("GET", &format!("/agents/{run}/status"), &[("authorization", &own)], b"");
    assert_eq!(status.json()["status"], "paused", "{status:?}");
    // A token of the same name is the same person.
    there = there.restart_with(&[0, 1]);
    assert_eq!(there.approve(&run, &call), 202);
}

#[test]
fn a_posted_link_says_that_it_ends_with_the_token_that_started_the_run() {
    let options = [vec!["--scope", "run", "--scope", "decide", "--expires-in", "1h"], vec!["--scope", "read"]];
    let there = Passed::start_with(&options, json!({ "expires_after_ms": 24 * AN_HOUR }));
    let run = there.run(0);
    let call = there.call(1);
    let ends = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(ends(&call["answer"]["expires_at"]), ends(&there.entries[0]["expires_at"]), "{call:#}");
    there.place.file("clock", (2 * AN_HOUR).to_string());
    assert_eq!(there.approve(&run, &call), 410);
}

#[test]
fn an_escalated_approval_is_decided_by_those_who_may_decide_about_it() {
    let settings = json!({ "expires_after_ms": AN_HOUR, "on_expiry": "escalate" });
    for (scopes, [before, after]) in [
        (&["run", "decide"][..], [true, false]),
        (&["run", "decide:escalated"], [false, true]),
        (&["run", "decide", "decide:escalated"], [true, true]),
    ] {
        let there = Passed::start(&[scopes], settings.clone());
        let run = there.run(0);
        let first = there.call(1);
        assert_eq!(first.get("answer").is_some(), before, "{scopes:?} {first:#}");
        there.place.file("clock", (2 * AN_HOUR).to_string());
        let second = there.call(2);
        assert_eq!(second["approval"]["escalated"], true, "{second:#}");
        assert_eq!(second.get("answer").is_some(), after, "{scopes:?} {second:#}");
        if before {
            assert_eq!(there.approve(&run, &first), 410, "it has expired");
        }
        assert_eq!(there.approve(&run, &second), if after { 202 } else { 403 }, "{scopes:?}");
    }
}

#[test]
fn what_a_starter_may_not_decide_about_is_posted_with_the_reason_also_of_a_step_that_is_escalated() {
    let settings = json!({ "expires_after_ms": AN_HOUR, "on_expiry": "escalate" });
    for (scopes, lacking) in [
        (&["run", "decide"][..], [None, Some("no scope `decide:escalated`")]),
        (&["run", "decide:escalated"], [Some("and not `decide`"), None]),
        (&["run", "decide", "decide:escalated"], [None, None]),
    ] {
        let there = Passed::start(&[scopes], settings.clone());
        let run = there.run_of("steps", 0);
        for (number, lacking) in lacking.into_iter().enumerate() {
            there.hook.wait_for(number + 1);
            let post = there.hook.requests()[number].json();
            let payload = &post["payload"];
            assert_eq!((&post["event"], &payload["pause"]["number"]), (&json!("agent_run_paused"), &json!(number + 1)));
            let step = &payload["pause"]["steps"][0];
            let text = step["question"].as_str().unwrap_or_else(|| panic!("{step:#}"));
            assert_eq!(text.contains("Nobody approved pay in time: it was escalated."), number == 1, "{text}");
            assert_eq!(step.get("answer").is_some(), lacking.is_none(), "{scopes:?}: {post:#}");
            let why = payload["without_answer"].as_str().unwrap_or_default();
            assert!(
                why.contains(lacking.unwrap_or_default()) && why.is_empty() == lacking.is_none(),
                "{scopes:?}: {why}"
            );
            there.place.file("clock", (2 * AN_HOUR).to_string());
        }
        let answer = there.hook.requests()[1].json()["payload"]["pause"]["steps"][0]["answer"]["token"].clone();
        let denied = there.server.post(&format!("/agents/{run}/answer"), &json!({ "deny": true, "token": answer }));
        assert_eq!(denied.status, if lacking[1].is_none() { 202 } else { 403 }, "{denied:?}");
    }
}

#[test]
fn a_model_that_can_not_be_reached_is_no_pause_for_a_human() {
    let away = Server::with(|_, _| Answer::json("{}").status(503));
    let hooked = Hooked::start("memory", &[], json!({}), json!({}));
    let place = &hooked.place;
    place.json("loop.json", &crate::common::document(&json!({ "on_model_outage": "pause" })));
    place.json(
        "loopctl.json",
        &json!({ "model": "m", "models": { "m": { "provider": "openai", "base_url": away.url() } },
            "allow": { "private_addresses": true }, "serve": { "callback_secret": "file:hook.key" } }),
    );
    let server = Serving::start(place, &["--store", "memory"]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hooked.hook.url() })).json();
    assert_eq!((&run["status"], &run["result"]["pause"]["kind"]), (&json!("paused"), &json!("model_error")), "{run:#}");
    let agent = format!("/agents/{}", run["agent_run_id"].as_str().unwrap());
    // It may just be asking its model again: then its driver ends it.
    assert!(matches!(server.send("DELETE", &agent, &[], b"").status, 200 | 202));
    hooked.hook.wait_for(1);
    assert_eq!(hooked.hook.requests()[0].json()["event"], "agent_run_cancelled", "the end is the first post");
}

#[test]
fn the_question_of_a_called_run_is_posted_and_answered_by_its_caller() {
    let hook = Server::with(|_, _| Answer::json("{}"));
    let place = Place::new();
    let call = json!({ "type": "loop", "name": "helper" });
    let properties = json!({ "mode": "react", "objective": "Get it done.", "tools": [call] });
    place.json("loop.json", &json!({ "type": "loop", "name": "test", "properties": properties }));
    let properties = json!({ "mode": "react", "objective": "Help.", "tools": [] });
    place.json(
        "loops/helper.json",
        &json!({ "type": "loop", "name": "helper", "description": "Helps.", "properties": properties }),
    );
    place.file("hook.key", "s3cret-of-the-hook\n");
    scripted(&place, &[], json!({ "serve": { "callback_secret": "file:hook.key" } }));
    let helper = [think("__pause_for_human__", json!({ "question": "Which one?" })), complete(json!("helped"))];
    let replies = [think("helper", json!({})), complete(json!("all done"))];
    place.json("script.json", &json!({ "replies": replies, "loops": { "helper": helper } }));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test", "callback_url": hook.url() })).json();
    let id = run["agent_run_id"].as_str().unwrap();
    hook.wait_for(1);
    let pause = hook.requests()[0].json()["payload"]["pause"].clone();
    assert_eq!((&pause["question"], &pause["run_id"]), (&json!("Which one?"), &json!(format!("{id}.1.0"))));
    let body = json!({ "answer": "this", "token": pause["answer"]["token"] });
    assert_eq!(server.post(&format!("/agents/{id}.1.0/answer"), &body).status, 403, "it is the caller's token");
    assert_eq!(server.post(&format!("/agents/{id}/answer"), &body).status, 202);
    hook.wait_for(2);
    let end = hook.requests()[1].json();
    assert_eq!((&end["event"], &end["payload"]["final_answer"]), (&json!("agent_run_completed"), &json!("all done")));
}

#[test]
fn what_is_no_public_address_is_refused_when_the_server_starts() {
    let place = place(json!({}), &[]);
    scripted(&place, &[], json!({ "serve": { "public_url": "loops.example.com" } }));
    let ran = place.call(&["serve", ".", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("public_url"), "{ran:?}");
}
