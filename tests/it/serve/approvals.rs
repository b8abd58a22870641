//! Approvals over HTTP: two approvers, scopes, and expiry while nobody asks.

use serde_json::{Value, json};

use crate::common::{Place, complete, think};
use crate::serve::client::{Reply, Serving, place, scripted};

const AN_HOUR: i64 = 3_600_000;

/// A server with tokens of these scopes, by name, and a loop `test` whose call waits with these settings.
struct Guarded {
    place: Place,
    server: Serving,
    tokens: Vec<(String, String)>,
}

impl Guarded {
    fn start(settings: Value, scopes: &[&str], store: &[&str]) -> Self {
        let place = place(json!({}), &[]);
        let (mut tokens, mut entries) = (Vec::new(), Vec::new());
        for (name, scope) in [("all-1", "decide"), ("all-2", "decide"), ("start", "run"), ("eye", "read")]
            .into_iter()
            .chain(scopes.iter().map(|scope| (*scope, *scope)))
        {
            let made = place.call(&["token", name, "--scope", scope]);
            assert_eq!(made.code, 0, "{made:?}");
            let entry: Value = serde_json::from_str(made.stderr.lines().nth(1).expect("an entry")).expect("JSON");
            entries.push(entry);
            tokens.push((name.to_owned(), made.stdout.trim().to_owned()));
        }
        let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": settings });
        place.json("loop.json", &crate::common::document(&json!({ "tools": [tool] })));
        let replies = [think("act", json!({ "what": "pay" })), complete(json!("ok"))];
        scripted(&place, &replies, json!({ "serve": { "tokens": entries } }));
        place.file("clock", "0");
        let clock = place.path().join("clock").to_str().expect("a path").to_owned();
        let server = Serving::start_with(&place, store, &[("LOOPCTL_CLOCK", &clock)]);
        Self { place, server, tokens }
    }

    fn send(&self, who: &str, method: &str, target: &str, body: &Value) -> Reply {
        let token = &self.tokens.iter().find(|(name, _)| name == who).expect("a token").1;
        let body = if method == "GET" { String::new() } else { body.to_string() };
        self.server.send(method, target, &[("authorization", &format!("Bearer {token}"))], body.as_bytes())
    }

    /// A run that waits.
    fn run(&self) -> String {
        let reply = self.send("start", "POST", "/agents/execute", &json!({ "loop": "test" }));
        assert_eq!(reply.json()["status"], "paused", "{reply:?}");
        reply.json()["agent_run_id"].as_str().expect("an id").to_owned()
    }

    fn decide(&self, who: &str, run: &str, body: Value) -> Reply {
        self.send(who, "POST", &format!("/agents/{run}/resume"), &body)
    }

    fn status(&self, run: &str) -> Value {
        self.send("eye", "GET", &format!("/agents/{run}/status"), &Value::Null).json()
    }

    /// A decision that is refused in a sentence, and changes nothing.
    fn refuses(&self, who: &str, run: &str, body: Value, (status, why): (u16, &str)) {
        let before = self.status(run);
        let reply = self.decide(who, run, body);
        assert_eq!(reply.status, status, "{reply:?}");
        let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(why), "{detail}");
        assert_eq!(self.status(run), before);
    }

    /// The status of a run once this holds for it: the server looks at it by itself.
    fn until(&self, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let status = self.status(run);
            if holds(&status) {
                return status;
            }
            crate::common::wait_poll_interval();
        }
    }
}

const STORES: [&[&str]; 2] = [&["--store", "sqlite:runs.db"], &["--store", "memory"]];

#[test]
fn two_tokens_approve_and_the_same_one_twice_is_refused() {
    for store in STORES {
        let there = Guarded::start(json!({ "approvers": 2 }), &[], store);
        let run = there.run();
        let first = there.decide("all-1", &run, json!({ "approve": true, "comment": "fine" }));
        assert_eq!((first.status, &first.json()["status"]), (200, &json!("paused")), "{first:?}");
        there.refuses("all-1", &run, json!({ "approve": true }), (409, "another person must approve it too"));
        let second = there.decide("all-2", &run, json!({ "approve": true }));
        assert_eq!((second.status, &second.json()["status"]), (200, &json!("completed")), "{second:?}");
        let decisions = second.json()["result"]["decisions"].clone();
        for (at, by) in [(0, "all-1"), (1, "all-2")] {
            let one = &decisions[at];
            assert_eq!(
                (&one["by"], &one["approvals"]),
                (&json!(by), &json!({ "given": at + 1, "needed": 2 })),
                "{decisions:#}"
            );
        }
    }
}

#[test]
fn a_denial_by_one_is_final() {
    let there = Guarded::start(json!({ "approvers": 2 }), &[], &[]);
    let run = there.run();
    assert_eq!(there.decide("all-1", &run, json!({ "approve": true })).status, 200);
    let denied = there.decide("all-2", &run, json!({ "deny": true }));
    assert_eq!(denied.json()["status"], "completed", "{denied:?}");
    there.refuses("all-2", &run, json!({ "approve": true }), (409, "the run has ended"));
}

#[test]
fn where_nobody_knows_who_decides_there_are_no_two_approvers() {
    let place = place(json!({}), &[]);
    let tool = json!({ "type": "action", "name": "act", "requires_approval": true, "approval": { "approvers": 2 } });
    place.json("loop.json", &crate::common::document(&json!({ "tools": [tool] })));
    scripted(&place, &[think("act", json!({ "what": "pay" })), complete(json!("ok"))], json!({}));
    let server = Serving::start(&place, &[]);
    let run = server.execute("", json!({ "loop": "test" })).json();
    let resume = format!("/agents/{}/resume", run["agent_run_id"].as_str().expect("an id"));
    let refused = server.post(&resume, &json!({ "approve": true }));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.json()["detail"].as_str().is_some_and(|text| text.contains("nobody knows who decides here")));
    assert_eq!(server.post(&resume, &json!({ "deny": true })).json()["status"], "completed");
}

#[test]
fn a_token_for_one_loop_decides_for_its_runs_only() {
    let there = Guarded::start(json!({}), &["decide:test", "decide:other"], &[]);
    let run = there.run();
    there.refuses("decide:other", &run, json!({ "approve": true }), (403, "lacks the scope `decide` or `decide:test`"));
    there.refuses("eye", &run, json!({ "approve": true }), (403, "lacks the scope `decide`"));
    let unknown = there.decide("decide:other", "no-such-run", json!({ "approve": true }));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    assert_eq!(there.send("decide:test", "GET", &format!("/agents/{run}/status"), &Value::Null).status, 403);
    let taken = there.decide("decide:test", &run, json!({ "approve": true }));
    assert_eq!(taken.json()["result"]["decisions"][0]["by"], "decide:test", "{taken:?}");
}

#[test]
fn the_server_looks_by_itself_when_an_approval_expires() {
    for store in STORES {
        for (on_expiry, status) in [("deny", "completed"), ("fail", "failed")] {
            let there = Guarded::start(json!({ "expires_after_ms": AN_HOUR, "on_expiry": on_expiry }), &[], store);
            let run = there.run();
            there.place.file("clock", (2 * AN_HOUR).to_string());
            let ended = there.until(&run, |now| now["status"] == status);
            let decision = &ended["result"]["decisions"][0];
            assert_eq!((&decision["decision"], &decision["on_expiry"]), (&json!("expired"), &json!(on_expiry)));
            there.refuses("all-1", &run, json!({ "approve": true }), (409, "the run has ended"));
        }
    }
}

#[test]
fn what_is_escalated_is_decided_by_holders_of_that_scope_only() {
    for store in STORES {
        let settings = json!({ "expires_after_ms": AN_HOUR, "on_expiry": "escalate" });
        let there = Guarded::start(settings, &["decide:escalated"], store);
        let run = there.run();
        there.refuses(
            "decide:escalated",
            &run,
            json!({ "approve": true }),
            (409, "decides about escalated approvals only"),
        );
        there.place.file("clock", (2 * AN_HOUR).to_string());
        let waiting = there.until(&run, |now| now["pause"] == 2);
        assert_eq!(waiting["result"]["pause"]["call"]["approval"], json!({ "escalated": true }), "{waiting:#}");
        there.refuses("all-1", &run, json!({ "approve": true }), (409, "needs the scope `decide:escalated`"));
        there.refuses("all-1", &run, json!({ "deny": true }), (409, "needs the scope `decide:escalated`"));
        let taken = there.decide("decide:escalated", &run, json!({ "approve": true }));
        assert_eq!(taken.json()["status"], "completed", "{taken:?}");
    }
}

#[test]
fn an_approval_that_expired_while_no_server_lived_is_found_by_the_next_one() {
    let there = Guarded::start(json!({ "expires_after_ms": AN_HOUR }), &[], &["--store", "sqlite:runs.db"]);
    let run = there.run();
    let Guarded { place, server, tokens } = there;
    drop(server);
    place.file("clock", (2 * AN_HOUR).to_string());
    let clock = place.path().join("clock").to_str().expect("a path").to_owned();
    let server = Serving::start_with(&place, &["--store", "sqlite:runs.db"], &[("LOOPCTL_CLOCK", &clock)]);
    let there = Guarded { place, server, tokens };
    there.until(&run, |now| now["status"] == "completed");
}
