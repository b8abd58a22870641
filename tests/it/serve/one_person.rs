//! Two approvers are two people: the token of a posted pause counts as the person whose token started the run.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think, web, with};
use crate::serve::client::{Reply, Serving, scripted};

const STORES: [&[&str]; 2] = [&["--store", "sqlite:runs.db"], &["--store", "memory"]];

/// A server where `ann` may start and decide, and `bea` and `callback of ann` decide. Two must approve the call of a loop,
/// of a loop that a loop calls, of an agent of a workflow, and of a step.
struct TwoApprovers {
    place: Place,
    server: Serving,
    hook: Server,
    tools: Server,
    tokens: Vec<(&'static str, String)>,
}

impl TwoApprovers {
    fn start(store: &[&str]) -> Self {
        Self::started_by("ann", store)
    }

    /// The same, where somebody else has the scopes of `ann`.
    fn started_by(ann: &'static str, store: &[&str]) -> Self {
        let place = Place::new();
        let (mut tokens, mut entries) = (Vec::new(), Vec::new());
        for (name, scopes) in [(ann, &["run", "read", "decide"][..]), ("bea", &["read", "decide"])] {
            let mut args = vec!["token", name];
            args.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
            let made = place.call(&args);
            entries.push(serde_json::from_str::<Value>(made.stderr.lines().nth(1).unwrap()).unwrap());
            tokens.push((name, made.stdout.trim().to_owned()));
        }
        let tools = Server::with(|_, _| Answer::json(&json!({ "paid": true })));
        let more = json!({ "http_method": "POST", "parameters": { "type": "object", "properties": { "id": {} } } });
        let pay = |name: &str| web(name, &format!("{}/{name}", tools.url()), more.clone());
        place.json(
            "actions/all.json",
            &json!([
                pay("act"),
                with(
                    pay("careful"),
                    json!({
            "requires_approval": true, "approval": { "approvers": 2 } })
                )
            ]),
        );
        let two = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": { "approvers": 2 } });
        let properties = json!({ "mode": "react", "objective": "Pay.", "tools": [two] });
        place.json(
            "loops/test.json",
            &json!({ "type": "loop", "name": "test", "description": "Pays.",
            "properties": properties }),
        );
        let calls = json!({ "mode": "react", "objective": "Pay.", "model": "c",
            "tools": [{ "type": "loop", "name": "test" }] });
        place.json("loops/calls.json", &json!({ "type": "loop", "name": "calls", "properties": calls }));
        let agent = with(properties, json!({ "result_key": "paid" }));
        let agent = json!({ "id": "judge", "type": "loop", "properties": agent });
        place.json("workflows/agent.json", &json!({ "name": "agent", "definition": { "actions": [agent] } }));
        let step = json!({ "id": "careful", "type": "careful", "properties": { "id": 1 } });
        place.json("workflows/step.json", &json!({ "name": "step", "definition": { "actions": [step] } }));
        place.file("hook.key", "s3cret-of-the-hook\n");
        let scripts = json!({ "m": { "provider": "script", "script": "script.json" },
            "c": { "provider": "script", "script": "calls.json" } });
        let serve = json!({ "tokens": entries, "callback_secret": "file:hook.key" });
        scripted(&place, &[], json!({ "models": scripts, "serve": serve }));
        let paid = json!([think("act", json!({ "id": 1 })), complete(json!("paid"))]);
        let called = json!([think("test", json!({})), complete(json!("called"))]);
        let loops = json!({ "test": paid, "judge": paid });
        place.json("script.json", &json!({ "replies": paid, "loops": loops }));
        place.json("calls.json", &json!({ "replies": called, "loops": loops }));
        let server = Serving::start(&place, store);
        Self { place, server, hook: Server::with(|_, _| Answer::json("{}")), tools, tokens }
    }

    fn send(&self, who: &str, target: &str, body: Value) -> Reply {
        let token = &self.tokens.iter().find(|(name, _)| *name == who).unwrap().1;
        let header = ("authorization", format!("Bearer {token}"));
        self.server.send("POST", target, &[(header.0, &header.1)], body.to_string().as_bytes())
    }

    /// A run of ann that waits; its id, and the answer token that was posted.
    fn run(&self, what: &str) -> (String, Value) {
        let body = json!({ "input": {}, "callback_url": self.hook.url() });
        let run = match what {
            "agent" | "step" => self.send("ann", &format!("/workflows/{what}/execute"), body).json(),
            _ => self.send("ann", "/agents/execute", with(body, json!({ "loop": what }))).json(),
        };
        assert_eq!(run["status"], "paused", "{run:#}");
        let id = run["agent_run_id"].as_str().unwrap().to_owned();
        let pause = loop {
            let posts: Vec<Value> = self.hook.requests().iter().map(|post| post.json()).collect();
            let own = |post: &&Value| post["event"] == "agent_run_paused" && post["payload"]["agent_run_id"] == id;
            if let Some(post) = posts.iter().find(own) {
                break post["payload"]["pause"].clone();
            }
            crate::common::wait_poll_interval();
        };
        let answers =
            [&pause["calls"][0], &pause["steps"][0], &pause["steps"][0]["calls"][0]].map(|one| &one["answer"]);
        let token = answers.into_iter().find(|answer| answer.is_object()).unwrap_or_else(|| panic!("{pause:#}"));
        (id, token["token"].clone())
    }

    /// The status of an approval by this one: `posted` is the token of the post.
    fn approve(&self, who: &str, run: &str, token: &Value) -> (u16, String) {
        let reply = match who {
            "posted" => {
                let body = json!({ "token": token, "approve": true }).to_string();
                self.server.send("POST", &format!("/agents/{run}/answer"), &[], body.as_bytes())
            }
            "ann at the step" => self.send("ann", &format!("/approvals/{run}/careful"), json!({ "approved": true })),
            _ => self.send(who, &format!("/agents/{run}/resume"), json!({ "approve": true })),
        };
        (reply.status, reply.json()["detail"].as_str().unwrap_or_default().to_owned())
    }

    fn status(&self, run: &str) -> Value {
        let token = format!("Bearer {}", self.tokens[1].1);
        self.server.send("GET", &format!("/agents/{run}/status"), &[("authorization", &token)], b"").json()
    }

    /// The status of a run once nobody drives it, and this number of people have decided.
    fn decided(&self, run: &str, times: usize) -> Value {
        loop {
            let status = self.status(run);
            let is_under_way = status["status"] == "running" || status["status"] == "queued";
            if !is_under_way && status["result"]["decisions"].as_array().map_or(0, Vec::len) == times {
                return status;
            }
            crate::common::wait_poll_interval();
        }
    }
}

#[test]
fn a_token_and_a_user_of_the_system_of_one_name_are_one_person() {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).unwrap().unwrap().name;
    let user: &'static str = Box::leak(user.into_boxed_str());
    for (name, pays) in [(user, 0), ("ann", 1)] {
        let all = TwoApprovers::started_by(name, STORES[0]);
        let run = all.send(name, "/agents/execute", json!({ "loop": "test", "input": {} })).json();
        let run = run["agent_run_id"].as_str().unwrap();
        assert_eq!(all.approve(name, run, &Value::Null).0, 200);
        let ran = all.place.call(&["resume", run, "--approve", "--store", "sqlite:runs.db"]);
        assert_eq!(all.tools.requests().len(), pays, "{name}: {ran:#?}");
        assert_eq!(ran.stderr.contains("another person must approve it too"), pays == 0, "{name}: {ran:#?}");
    }
}

#[test]
fn who_started_a_run_and_the_token_of_its_post_are_one_person_in_either_order() {
    for store in STORES {
        let there = TwoApprovers::start(store);
        for what in ["test", "calls", "agent", "step"] {
            let own: &[&str] = if what == "step" { &["ann", "ann at the step"] } else { &["ann"] };
            for own in own {
                for [first, second] in [["posted", own], [own, "posted"]] {
                    let (run, token) = there.run(what);
                    let calls = there.tools.requests().len();
                    assert!(there.approve(first, &run, &token).0 < 300, "{what} {first}");
                    let waits = there.decided(&run, 1);
                    assert_eq!(waits["status"], "paused", "{what} {first} {waits:#}");
                    let (status, why) = there.approve(second, &run, &token);
                    assert!(matches!(status, 409 | 410), "{what} {second} {status} {why}");
                    assert!(status == 410 || why.contains("is the same person"), "{why}");
                    assert_eq!(there.tools.requests().len(), calls, "{what} {first} {second}");
                    assert_eq!(there.approve("bea", &run, &token).0, 200, "another person may");
                    let done = there.decided(&run, 2);
                    assert_eq!((&done["status"], there.tools.requests().len()), (&json!("completed"), calls + 1));
                    let first = if first == "posted" { "callback of ann" } else { "ann" };
                    assert_eq!(done["result"]["decisions"][0]["by"], first, "{done:#}");
                }
            }
        }
    }
}

#[test]
fn a_posted_token_and_another_person_are_two() {
    let there = TwoApprovers::start(STORES[1]);
    for [first, second] in [["posted", "bea"], ["bea", "posted"]] {
        let (run, token) = there.run("test");
        assert!(there.approve(first, &run, &token).0 < 300);
        assert_eq!(there.decided(&run, 1)["status"], "paused");
        let (status, why) = there.approve(second, &run, &token);
        assert!(status < 300, "{second} {status} {why}");
        assert_eq!(there.decided(&run, 2)["status"], "completed");
    }
}

/// The sum of an event in a store.
fn sum(run_id: &str, seq: i64, event: &str) -> i64 {
    let bytes = run_id.bytes().chain([0]).chain(seq.to_le_bytes()).chain(event.bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    sum.cast_signed()
}

#[test]
fn an_approval_that_an_older_version_recorded_as_callback_is_the_starters_too() {
    let mut there = TwoApprovers::start(STORES[0]);
    let (run, token) = there.run("test");
    assert_eq!(there.approve("posted", &run, &token).0, 202);
    assert_eq!(there.decided(&run, 1)["status"], "paused");
    {
        let store = rusqlite::Connection::open(there.place.path().join("runs.db")).unwrap();
        let sql = "SELECT events.rowid, seq, event FROM events JOIN runs ON runs.id = run WHERE event LIKE '%callback of ann%'";
        let (row, seq, event): (i64, i64, String) =
            store.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        let mut event: Value = serde_json::from_str(&event).unwrap();
        event["what"]["human"]["by"] = json!("callback");
        event["what"]["human"].as_object_mut().unwrap().remove("also").expect("the other names");
        let event = event.to_string();
        let update = "UPDATE events SET event = ?1, sum = ?2 WHERE rowid = ?3";
        store.execute(update, (&event, sum(&run, seq, &event), row)).unwrap();
    }
    there.server = Serving::start(&there.place, STORES[0]);
    let waits = there.status(&run);
    assert_eq!(waits["result"]["pause"]["call"]["approval"]["approved_by"], json!(["callback"]), "{waits:#}");
    let (status, why) = there.approve("ann", &run, &token);
    assert_eq!(status, 409, "{why}");
    assert!(why.contains("callback has approved") && why.contains("ann is the same person"), "{why}");
    assert!(there.tools.requests().is_empty());
    assert_eq!(there.approve("bea", &run, &token).0, 200);
    assert_eq!(there.decided(&run, 2)["status"], "completed");
}
