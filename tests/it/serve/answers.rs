//! A pause is posted to the callback, and each decision is taken by its token: once, and about its own call.

use ring::hmac;
use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, complete, think, with};
use crate::serve::client::{Reply, Serving, place, scripted};

const STORES: [&str; 2] = ["sqlite:runs.db", "memory"];
const AN_HOUR: i64 = 3_600_000;
const A_WEEK: i64 = 7 * 24 * AN_HOUR;

/// A server whose runs post to a hook, and whose tool `act` is a server that counts.
pub struct Hooked {
    pub place: Place,
    pub server: Option<Serving>,
    pub hook: Server,
    tools: Server,
    store: &'static str,
}

impl Hooked {
    /// `act`: what the declaration of `act` says, `serve`: more of the project's `serve`.
    pub fn start(store: &'static str, replies: &[Value], act: Value, serve: Value) -> Self {
        Self::start_with(store, replies, [act, serve], Server::with(|_, _| Answer::json("{}")))
    }

    fn start_with(store: &'static str, replies: &[Value], [act, serve]: [Value; 2], hook: Server) -> Self {
        let tools = Server::with(|_, _| Answer::json(&json!({ "did": 1 })));
        let place = place(json!({}), &[]);
        let tool = with(json!({ "type": "action", "name": "act" }), act);
        let mut document = crate::common::document(&json!({ "tools": [tool], "dialect": "tool_calls" }));
        document["actions"][1]["url"] = json!(format!("{}/act", tools.url()));
        place.json("loop.json", &document);
        place.file("hook.key", "s3cret-of-the-hook\n");
        place.file("clock", "0");
        let serve = with(json!({ "callback_secret": "file:hook.key" }), serve);
        scripted(&place, replies, json!({ "serve": serve }));
        let mut hooked = Self { place, server: None, hook, tools, store };
        hooked.restart();
        hooked
    }

    pub fn restart(&mut self) {
        self.server = None;
        let clock = self.place.path().join("clock").to_str().unwrap().to_owned();
        self.server = Some(Serving::start_with(&self.place, &["--store", self.store], &[("LOOPCTL_CLOCK", &clock)]));
    }

    pub fn server(&self) -> &Serving {
        self.server.as_ref().unwrap()
    }

    /// A run that waits; its id.
    pub fn run(&self) -> String {
        let run = self.server().execute("", json!({ "loop": "test", "callback_url": self.hook.url() })).json();
        assert_eq!(run["status"], "paused", "{run:#}");
        run["agent_run_id"].as_str().unwrap().to_owned()
    }

    /// The post of this number, from 1.
    pub fn post(&self, number: usize) -> Request {
        self.hook.wait_for(number);
        self.hook.requests()[number - 1].clone()
    }

    /// What is posted of a pause.
    fn pause(&self, number: usize) -> Value {
        let envelope = self.post(number).json();
        assert_eq!(envelope["event"], "agent_run_paused", "{envelope:#}");
        envelope["payload"]["pause"].clone()
    }

    pub fn status(&self, run: &str) -> Value {
        self.server().get(&format!("/agents/{run}/status")).json()
    }

    /// Sends a decision with a token.
    pub fn answer(&self, run: &str, token: &Value, decision: Value) -> Reply {
        self.server().post(&format!("/agents/{run}/answer"), &with(decision, json!({ "token": token })))
    }

    /// A decision that is refused, and changes nothing.
    fn refuses(&self, run: &str, token: &Value, decision: Value, expected: (u16, &str)) {
        let before = self.status(run)["result"].clone();
        let reply = self.answer(run, token, decision.clone());
        assert_eq!((reply.status, reply.code().as_str()), expected, "{decision} {reply:?}");
        assert_eq!(self.status(run)["result"], before, "{decision}");
    }

    /// The status of a run once this holds for it.
    pub fn until(&self, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let status = self.status(run);
            if holds(&status) {
                return status;
            }
            crate::common::wait_poll_interval();
        }
    }
}

fn ask() -> Value {
    think("__pause_for_human__", json!({ "question": "Which account?", "options": ["first", "second"] }))
}

fn pay() -> Value {
    think("act", json!({ "what": "pay", "api_key": "k-0123456789" }))
}

fn approved() -> Value {
    json!({ "requires_approval": true })
}

const TAKEN: u16 = 202;

#[test]
fn a_pause_is_posted_with_all_that_is_needed_to_decide_and_its_token_decides() {
    for store in STORES {
        let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], approved(), json!({}));
        let run = hooked.run();
        let post = hooked.post(1);
        assert_eq!(post.header("idempotency-key"), Some(format!("{run}-pause-1").as_str()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"s3cret-of-the-hook");
        let digits = post.header("x-hyphen-signature").unwrap().strip_prefix("sha256=").unwrap();
        let tag: Vec<u8> = (0..32).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap()).collect();
        hmac::verify(&key, &post.body, &tag).unwrap();
        let payload = post.json()["payload"].clone();
        assert_eq!(
            (&payload["agent_run_id"], &payload["status"], &payload["loop"]),
            (&json!(run), &json!("paused"), &json!("test"))
        );
        let call = &payload["pause"]["calls"][0];
        let waiting = hooked.status(&run)["result"]["pause"]["call"].clone();
        for field in ["id", "action", "action_input", "hash"] {
            assert_eq!(call[field], waiting[field], "{field}");
        }
        assert_eq!(call["action_input"]["api_key"], "[hidden]");
        assert_eq!(
            (&payload["pause"]["kind"], &call["choices"]),
            (&json!("approval"), &json!(["approve", "deny", "edit"]))
        );
        let link = &call["answer"];
        assert_eq!(link["url"], format!("/agents/{run}/answer"), "without `public_url` the path alone is known");
        hooked.until(&run, |now| now["callback"]["pause"] == 1);
        let taken = hooked.answer(&run, &link["token"], json!({ "approve": true, "comment": "fine" }));
        assert_eq!((taken.status, &taken.json()["agent_run_id"]), (TAKEN, &json!(run)), "{taken:?}");
        let done = hooked.until(&run, |now| now["status"] == "completed");
        let decision = &done["result"]["decisions"][0];
        assert_eq!((&decision["by"], &decision["comment"]), (&json!("callback"), &json!("fine")));
        assert_eq!(hooked.post(2).json()["event"], "agent_run_completed");
        assert_eq!(hooked.tools.requests().len(), 1);
    }
}

#[test]
fn a_question_is_answered_with_the_token_in_the_header_and_the_next_pause_has_its_own() {
    for store in STORES {
        let hooked = Hooked::start(store, &[ask(), ask(), complete(json!("ok"))], json!({}), json!({}));
        let run = hooked.run();
        let first = hooked.pause(1);
        assert_eq!((&first["choices"], &first["options"]), (&json!(["answer"]), &json!(["first", "second"])));
        let bearer = format!("Bearer {}", first["answer"]["token"].as_str().unwrap());
        let target = format!("/agents/{run}/answer");
        let taken = hooked.server().send("POST", &target, &[("authorization", &bearer)], br#"{"answer": "first"}"#);
        assert_eq!(taken.status, TAKEN, "{taken:?}");
        let second = hooked.pause(2);
        assert_eq!(
            (&second["number"], hooked.post(2).header("idempotency-key")),
            (&json!(2), Some(format!("{run}-pause-2").as_str()))
        );
        hooked.refuses(&run, &first["answer"]["token"], json!({ "answer": "again" }), (410, "answer_is_over"));
        assert_eq!(hooked.answer(&run, &second["answer"]["token"], json!({ "answer": "second" })).status, TAKEN);
        hooked.until(&run, |now| now["status"] == "completed");
        hooked.refuses(&run, &second["answer"]["token"], json!({ "answer": "again" }), (410, "answer_is_over"));
    }
}

#[test]
fn a_token_that_the_run_does_not_have_is_unknown_whether_there_is_a_run_or_not() {
    for store in STORES {
        let hooked = Hooked::start(store, &[ask(), complete(json!("ok"))], json!({}), json!({}));
        let (one, two) = (hooked.run(), hooked.run());
        hooked.hook.wait_for(2);
        let of = |run: &str| {
            let posts = hooked.hook.requests();
            let post = posts.iter().map(Request::json).find(|post| post["payload"]["agent_run_id"] == run).unwrap();
            post["payload"]["pause"]["answer"]["token"].clone()
        };
        let refusals: Vec<Value> = [
            (one.as_str(), of(&two)),
            (one.as_str(), json!("loopctl-answer-unknown")),
            (one.as_str(), json!("")),
            (one.as_str(), json!(null)),
            ("no-such-run", of(&one)),
            ("%ff", of(&one)),
        ]
        .into_iter()
        .map(|(run, token)| {
            let reply = hooked.answer(run, &token, json!({ "answer": "a" }));
            assert_eq!((reply.status, reply.code()), (403, "unknown_token".to_owned()), "{run} {token} {reply:?}");
            reply.json()
        })
        .collect();
        assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:#?}");
        for bearer in ["Bearer nothing", "Basic abc", "Bearer"] {
            let target = format!("/agents/{one}/answer");
            let reply = hooked.server().send("POST", &target, &[("authorization", bearer)], br#"{"answer": "a"}"#);
            assert_eq!((reply.status, reply.json()), (403, refusals[0].clone()), "{bearer}");
        }
        for run in [&one, &two] {
            assert_eq!(hooked.answer(run, &of(run), json!({ "answer": "a" })).status, TAKEN, "nothing was burned");
        }
    }
}

#[test]
fn a_decision_that_does_not_fit_is_refused_and_the_token_stays_good() {
    let both = json!({ "thought": "both", "calls": [
        { "action": "act", "action_input": { "what": "a" } }, { "action": "act", "action_input": { "what": "b" } }] });
    for store in STORES {
        let hooked = Hooked::start(store, &[both.clone(), complete(json!("ok"))], approved(), json!({}));
        let run = hooked.run();
        let calls = hooked.pause(1)["calls"].clone();
        let (first, second) = (&calls[0], &calls[1]);
        let token = &first["answer"]["token"];
        for (decision, expected) in [
            (json!({ "answer": "a" }), (409, "refused")),
            (json!({ "retry": true }), (409, "refused")),
            (json!({ "edit": { "what": 7 } }), (409, "refused")),
            (json!({ "approve": true, "call": second["id"] }), (409, "refused")),
            (json!({ "approve": true, "hash": second["hash"] }), (409, "refused")),
            (json!({ "approve": true, "pause": 2 }), (409, "refused")),
            (json!({}), (400, "bad_request")),
            (json!({ "approve": true, "deny": true }), (400, "bad_request")),
            (json!({ "approve": true, "reason": "a" }), (400, "bad_request")),
            (json!({ "max_iterations": 99 }), (400, "bad_request")),
            (json!({ "resume": true }), (400, "bad_request")),
            (json!({ "approve": true, "new_document": true }), (400, "bad_request")),
        ] {
            hooked.refuses(&run, token, decision, expected);
        }
        let exactly = json!({ "deny": true, "reason": "no", "call": first["id"], "hash": first["hash"], "pause": 1 });
        assert_eq!(hooked.answer(&run, token, exactly).status, TAKEN);
        hooked.until(&run, |now| now["result"]["decisions"].as_array().is_some_and(|all| all.len() == 1));
        assert!(hooked.tools.requests().is_empty(), "the other call is not decided");
        hooked.refuses(&run, token, json!({ "approve": true }), (410, "answer_is_over"));
        assert_eq!(hooked.answer(&run, &second["answer"]["token"], json!({ "approve": true })).status, TAKEN);
        hooked.until(&run, |now| now["status"] == "completed");
        let made: Vec<Value> = hooked.tools.requests().iter().map(|call| call.json()["what"].clone()).collect();
        assert_eq!(made, ["b"]);
        assert_eq!(hooked.post(2).json()["event"], "agent_run_completed", "one pause is one post");
    }
}

#[test]
fn of_many_answers_with_one_token_at_once_one_is_taken() {
    for store in STORES {
        let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], approved(), json!({}));
        let run = hooked.run();
        let token = hooked.pause(1)["calls"][0]["answer"]["token"].clone();
        let taken: Vec<u16> = std::thread::scope(|scope| {
            let answer = || hooked.answer(&run, &token, json!({ "approve": true })).status;
            let asked: Vec<_> = (0..12).map(|_| scope.spawn(answer)).collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        assert_eq!(taken.iter().filter(|status| **status == TAKEN).count(), 1, "{taken:?}");
        assert!(taken.iter().all(|status| matches!(status, 202 | 409 | 410)), "{taken:?}");
        let done = hooked.until(&run, |now| now["status"] == "completed");
        assert_eq!(done["result"]["decisions"].as_array().unwrap().len(), 1);
        assert_eq!(hooked.tools.requests().len(), 1);
    }
}

#[test]
fn a_token_expires_with_its_approval_and_after_a_week() {
    for store in STORES {
        let patient = with(approved(), json!({ "approval": { "expires_after_ms": AN_HOUR, "on_expiry": "deny" } }));
        for (act, life) in [(patient, AN_HOUR), (approved(), A_WEEK)] {
            let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], act, json!({}));
            let run = hooked.run();
            let token = hooked.pause(1)["calls"][0]["answer"]["token"].clone();
            hooked.place.file("clock", (life - 60_000).to_string());
            hooked.refuses(&run, &token, json!({ "answer": "a" }), (409, "refused"));
            hooked.place.file("clock", (life + 60_000).to_string());
            let late = hooked.answer(&run, &token, json!({ "approve": true }));
            assert_eq!((late.status, late.code()), (410, "answer_is_over".to_owned()), "{late:?}");
            assert!(hooked.tools.requests().is_empty());
        }
    }
}

#[test]
fn a_token_of_a_call_that_was_decided_elsewhere_is_over() {
    for store in STORES {
        let hooked = Hooked::start(store, &[pay(), complete(json!("ok"))], approved(), json!({}));
        let run = hooked.run();
        let token = hooked.pause(1)["calls"][0]["answer"]["token"].clone();
        let denied = hooked.server().post(&format!("/agents/{run}/resume"), &json!({ "deny": true }));
        assert_eq!(denied.json()["status"], "completed", "{denied:?}");
        hooked.refuses(&run, &token, json!({ "approve": true }), (410, "answer_is_over"));
    }
}

#[test]
fn a_pause_that_was_not_accepted_is_posted_by_the_next_server_and_the_holder_is_one_approver() {
    let two = with(approved(), json!({ "approval": { "approvers": 2 } }));
    let hook = Server::with(|number, _| Answer::json("{}").status(if number == 0 { 500 } else { 200 }));
    let replies = [pay(), complete(json!("ok"))];
    let mut hooked = Hooked::start_with("sqlite:runs.db", &replies, [two, json!({})], hook);
    let run = hooked.run();
    hooked.hook.wait_for(1);
    // The server is killed while the post is to be tried again.
    hooked.restart();
    hooked.hook.wait_for(2);
    hooked.until(&run, |now| now["callback"]["pause"] == 1);
    let posts = hooked.hook.requests();
    for post in &posts {
        assert_eq!(post.header("idempotency-key"), Some(format!("{run}-pause-1").as_str()));
    }
    let tokens: Vec<Value> =
        posts.iter().map(|post| post.json()["payload"]["pause"]["calls"][0]["answer"]["token"].clone()).collect();
    let (first, last) = (tokens.first().unwrap(), tokens.last().unwrap());
    assert_ne!(first, last, "the store has no token that it could post again");
    assert_eq!(hooked.answer(&run, first, json!({ "approve": true })).status, TAKEN, "the earlier one stays valid");
    let waiting = hooked.until(&run, |now| now["result"]["decisions"].is_array());
    assert_eq!(waiting["result"]["pause"]["call"]["approval"]["approved_by"], json!(["callback"]));
    hooked.refuses(&run, last, json!({ "approve": true }), (409, "refused"));
    assert!(hooked.tools.requests().is_empty());
    let count = hooked.hook.requests().len();
    hooked.restart();
    // The post of another run comes after whatever this server would post at its start.
    let other = hooked.run();
    hooked.until(&other, |now| now["callback"]["pause"] == 1);
    assert_eq!(hooked.hook.requests().len(), count + 1, "it was accepted, and is not posted again");
    assert_eq!(hooked.answer(&run, last, json!({ "deny": true })).status, TAKEN, "the refusal did not burn it");
    hooked.until(&run, |now| now["status"] == "completed");
}

#[test]
fn the_address_of_an_answer_is_below_the_public_one_and_its_host_is_known() {
    let serve = json!({ "public_url": "https://loops.example.com/" });
    let hooked = Hooked::start("memory", &[ask(), complete(json!("ok"))], json!({}), serve);
    let run = hooked.run();
    let link = hooked.pause(1)["answer"].clone();
    assert_eq!(link["url"], format!("https://loops.example.com/agents/{run}/answer"));
    let body = json!({ "answer": "first", "token": link["token"] }).to_string();
    let target = format!("/agents/{run}/answer");
    let from = |host: &str| hooked.server().send("POST", &target, &[("host", host)], body.as_bytes());
    assert_eq!(from("other.example.com").status, 421);
    assert_eq!(from("loops.example.com").status, TAKEN);
}

#[test]
fn a_token_is_nowhere_but_in_the_post() {
    let hooked = Hooked::start("sqlite:runs.db", &[pay(), complete(json!("ok"))], approved(), json!({}));
    let run = hooked.run();
    let token = hooked.pause(1)["calls"][0]["answer"]["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("loopctl-answer-") && token.len() > 50, "{token}");
    assert_eq!(hooked.answer(&run, &json!(token), json!({ "approve": true })).status, TAKEN);
    hooked.until(&run, |now| now["status"] == "completed");
    let has = |bytes: &[u8]| bytes.windows(token.len()).any(|part| part == token.as_bytes());
    for route in ["status?include_trace=true", "trace", "events"] {
        assert!(!has(&hooked.server().get(&format!("/agents/{run}/{route}")).body), "{route}");
    }
    for (file, bytes) in hooked.place.files() {
        assert!(!has(&bytes), "{}", file.display());
    }
}

#[test]
fn an_answer_is_a_json_body_of_bounded_size_without_a_query() {
    let hooked = Hooked::start("memory", &[ask(), complete(json!("ok"))], json!({}), json!({}));
    let run = hooked.run();
    let token = hooked.pause(1)["answer"]["token"].clone();
    let target = format!("/agents/{run}/answer");
    let send = |target: &str, headers: &[(&str, &str)], body: &str| {
        let reply = hooked.server().send("POST", target, headers, body.as_bytes());
        (reply.status, reply.code())
    };
    let refused = |status: u16, code: &str| (status, code.to_owned());
    assert_eq!(send(&format!("{target}?token=x"), &[], "{}"), refused(400, "bad_request"));
    assert_eq!(send(&target, &[("content-type", "text/plain")], "{}"), refused(415, "not_json"));
    assert_eq!(send(&target, &[], "{"), refused(400, "bad_request"));
    let long = json!({ "token": token, "answer": "x".repeat(70_000) }).to_string();
    assert_eq!(send(&target, &[], &long), refused(413, "body_too_large"), "nobody has shown a token yet");
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let long = json!({ "answer": "x".repeat(70_000) }).to_string();
    let taken = hooked.server().send("POST", &target, &[("authorization", &bearer)], long.as_bytes());
    assert_eq!(taken.status, TAKEN, "{taken:?}");
}

#[test]
fn without_tokens_nobody_knows_who_answers_and_that_one_never_counts_beside_another() {
    let two = || with(approved(), json!({ "approval": { "approvers": 2 } }));
    let user = |hooked: &Hooked, run: &str| {
        hooked.place.call(&["resume", run, "--approve", "--store", hooked.store, "--script", "script.json"])
    };
    // The posted token first, then the user of the machine, who may be the same person.
    let mut hooked = Hooked::start("sqlite:runs.db", &[pay(), complete(json!("ok"))], two(), json!({}));
    let run = hooked.run();
    let token = hooked.pause(1)["calls"][0]["answer"]["token"].clone();
    assert_eq!(hooked.answer(&run, &token, json!({ "approve": true })).status, TAKEN);
    hooked.until(&run, |now| now["result"]["decisions"].is_array() && now["status"] == "paused");
    hooked.server = None;
    let ran = user(&hooked, &run);
    assert_eq!(ran.code, 3, "it still waits: {ran:#?}");
    hooked.restart();
    let approved_by = hooked.status(&run)["result"]["pause"]["call"]["approval"]["approved_by"].clone();
    assert_eq!(approved_by.as_array().map(Vec::len), Some(1), "{approved_by}");
    assert_ne!(approved_by[0], "callback");
    assert!(hooked.tools.requests().is_empty());
    // And in the other order.
    let run = hooked.run();
    let posts = hooked.hook.requests();
    let own = posts.iter().map(Request::json).find(|post| post["payload"]["agent_run_id"] == json!(run));
    let token = own.map_or_else(
        || {
            hooked.until(&run, |now| now["callback"]["pause"] == 1);
            let posts = hooked.hook.requests();
            let own = posts.iter().map(Request::json).find(|post| post["payload"]["agent_run_id"] == json!(run));
            own.unwrap()["payload"]["pause"]["calls"][0]["answer"]["token"].clone()
        },
        |post| post["payload"]["pause"]["calls"][0]["answer"]["token"].clone(),
    );
    hooked.server = None;
    assert_eq!(user(&hooked, &run).code, 3);
    hooked.restart();
    hooked.refuses(&run, &token, json!({ "approve": true }), (409, "refused"));
    assert!(hooked.tools.requests().is_empty());
}
