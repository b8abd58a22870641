//! The real process is killed at every boundary of the journal of a workflow whose items run beside each other, and
//! resumed: no call that has an outcome is made again, none is lost, and the results are those of an undisturbed run.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]

use std::collections::BTreeMap;

use crate::common::server::{Answer, Server};
use crate::common::sweep::{BOUNDARIES, is_played, kills_of, least};
use crate::common::{Place, Ran, complete};
use serde_json::{Value, json};

/// A loop over items, two at a time: a call that may be repeated, a run of its own, an approval of one item, a POST with
/// a key that may be repeated, one that may not, and a filter; then a form, and a last call.
struct Workflow {
    place: Place,
    server: Server,
    items: usize,
}

impl Workflow {
    fn new(items: usize) -> Self {
        let server = Server::with(|_, request| Answer::json(&json!({ "did": request.header("idempotency-key") })));
        let place = Place::on_disk();
        let action = |name: &str, method: &str, idempotent: bool| {
            json!({ "action_name": name, "kind": "http", "description": "Does.", "http_method": method,
                "idempotent": idempotent, "url": format!("{}/{name}", server.url()), "parameters": { "type": "object" } })
        };
        let actions = [action("look", "GET", true), action("put", "POST", true), action("post", "POST", false)];
        place.json("actions/all.json", &json!(actions));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
            "objective": "Judge {{one}}.", "result_key": "finding" } });
        let approval = json!({ "id": "ask", "type": "PbotApproval", "filter": { "condition": { "equal": ["@one", items.min(8) - 1] } },
            "properties": { "comment": "Go on with {{one}}?" } });
        let put = json!({ "id": "put", "type": "put", "filter": { "condition": { "notEqual": ["@one", 2] } },
            "properties": { "one": "@one" } });
        let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
            "item_variable_name": "one", "max_concurrency": 2, "collect_results": true, "result_key": "all",
            "actions_to_execute": [{ "type": "look", "properties": { "q": "@one" } }, judge, approval, put,
                { "id": "post", "type": "post", "properties": { "one": "@one", "found": "@finding.answer" } }] } });
        let form = json!({ "id": "form", "type": "PbotForm", "properties": { "expected_keys": ["who"] } });
        let last = json!({ "id": "last", "type": "post", "properties": { "count": "@all.length", "who": "@who" } });
        place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [each, form, last] } }));
        place.json("script.json", &json!({ "replies": [complete(json!("fine"))] }));
        place.json("input.json", &json!({ "items": (0..items).collect::<Vec<_>>() }));
        Self { place, server, items }
    }

    fn start(&self, fail: &str) -> Ran {
        let args = [
            "run",
            "loop.json",
            "--run-id",
            "r",
            "--script",
            "script.json",
            "--output",
            "json",
            "--input-file",
            "input.json",
        ];
        crate::common::killed(self.place.command(&args), fail)
    }

    fn resume(&self, how: &[&str], fail: &str) -> Ran {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
        args.extend(how);
        crate::common::killed(self.place.command(&args), fail)
    }

    /// How often each call of an action came to the server, by its key.
    fn posted(&self, action: &str) -> BTreeMap<String, usize> {
        let mut posted = BTreeMap::new();
        for request in self.server.requests() {
            if request.path == format!("/{action}") {
                *posted.entry(request.header("idempotency-key").unwrap().to_owned()).or_default() += 1;
            }
        }
        posted
    }

    /// Decides about the step that waits: the approval or the form.
    fn decide(&self, at: &str, fail: &str) -> Ran {
        let how: &[&str] = if at == "form" { &["--answer", r#"{"who":"us"}"#] } else { &["--approve"] };
        self.resume(&[&["--at", at], how].concat(), fail)
    }

    /// Brings the run to its end as an operator would, who knows what the server saw. How often a call was of unknown
    /// outcome.
    fn finish(&self, mut ran: Ran) -> (Value, usize) {
        let mut uncertain = 0;
        for _ in 0..100 {
            // Also after a kill before the start was stored.
            if ran.code == -9 || ran.code == 130 || (ran.code == 2 && ran.stderr.contains("no run")) {
                ran = self.start("");
                continue;
            }
            if ran.code != 3 {
                return (ran.json(), uncertain);
            }
            let waiting = ran.json()["pause"]["steps"].clone();
            let step = &waiting[0];
            let at = step["at"].as_str().unwrap();
            ran = if step["kind"] == "uncertain" {
                uncertain += 1;
                let key = format!("r-{at}");
                match self.posted("post").get(&key) {
                    Some(_) => self.resume(&["--at", at, "--happened", &json!({ "did": key }).to_string()], ""),
                    None => self.resume(&["--at", at, "--retry"], ""),
                }
            } else {
                self.decide(at, "")
            };
        }
        panic!("it does not end: {ran:#?}");
    }

    fn holds(&self, ran: Ran, at: &str) -> usize {
        let (result, uncertain) = self.finish(ran);
        assert_eq!(result["status"], "completed", "{at}: {result}");
        let all = result["result"]["answer"]["all"].as_array().unwrap();
        let outputs: Vec<&Value> = all.iter().map(|item| &item["output"]["did"]).collect();
        let expected: Vec<Value> = (0..self.items).map(|item| json!(format!("r-each.{item}.post"))).collect();
        assert_eq!(outputs, expected.iter().collect::<Vec<_>>(), "{at}");
        let (posted, put) = (self.posted("post"), self.posted("put"));
        assert_eq!((posted.len(), put.len()), (self.items + 1, self.items - 1), "{at}: {posted:?}, {put:?}");
        assert!(posted.values().all(|times| *times == 1), "{at}: {posted:?}");
        assert!(put.values().all(|times| *times <= 2), "{at}: {put:?}");
        uncertain
    }
}

#[test]
fn an_undisturbed_run_makes_each_call_once() {
    let workflow = Workflow::new(5);
    let ran = workflow.start("");
    assert_eq!(workflow.holds(ran, "undisturbed"), 0);
}

/// How many kills are tried beside each other: most of their time is that of the syncs.
const TOGETHER: usize = 4;

/// Kills at so many events of each boundary; how many kills each brought about.
fn kills(events: std::ops::Range<usize>, new: fn() -> Workflow, strike: fn(&Workflow, &str) -> Ran) -> [usize; 4] {
    let mut end = events.end;
    let mut number = 0;
    BOUNDARIES.map(|boundary| {
        let played: Vec<usize> = (events.start..end).filter(|event| is_played(*event, number)).collect();
        number += 1;
        let is_killed = |event: usize| {
            let workflow = new();
            let at = format!("journal:{event}:{boundary}");
            let ran = strike(&workflow, &at);
            let is_killed = ran.code == -9;
            // At most the items that ran beside each other are of unknown outcome.
            let uncertain = workflow.holds(ran, &at);
            assert!(uncertain <= 2, "{at}: {uncertain}");
            is_killed
        };
        let mut kills = 0;
        for together in played.chunks(TOGETHER) {
            let killed: Vec<bool> = std::thread::scope(|scope| {
                let struck: Vec<_> = together.iter().map(|event| scope.spawn(|| is_killed(*event))).collect();
                struck.into_iter().map(|struck| struck.join().unwrap()).collect()
            });
            kills += killed.iter().filter(|killed| **killed).count();
            // Behind the last event there is none to kill at. Not every event has an effect that follows it.
            let over = killed.iter().zip(together).find(|(killed, event)| !**killed && **event > 0);
            if let Some((_, event)) = over.filter(|_| boundary != "before-effect") {
                end = *event;
                break;
            }
        }
        kills
    })
}

#[test]
fn a_kill_at_every_boundary_of_a_workflow_loses_and_repeats_no_call() {
    // The start, and the events of four of five items and their runs, until one waits.
    let kills = kills(0..26, || Workflow::new(5), Workflow::start);
    assert_eq!(kills[..3], kills_of(26), "{kills:?}");
    assert!(kills[3] >= least(14), "{kills:?}");
}

#[test]
#[ignore = "nightly: some 700 kills of twenty items"]
fn a_kill_at_every_boundary_of_twenty_items_loses_and_repeats_no_call() {
    let started = kills(0..1000, || Workflow::new(20), Workflow::start);
    let decided = kills(
        0..100,
        || {
            let workflow = Workflow::new(20);
            assert_eq!(workflow.start("").code, 3);
            workflow
        },
        |workflow, at| workflow.decide("each.7.ask", at),
    );
    println!("{started:?} before the approval, {decided:?} after it");
    // A call, a run of two events, two calls: for each item but the one that waits, and the one that the filter leaves out.
    assert!(
        started[..3].iter().all(|kills| *kills > 90) && decided[..3].iter().all(|kills| *kills > 2),
        "{started:?}, {decided:?}"
    );
}
