//! The real process is killed at every boundary of the journal of a workflow whose items run beside each other, and
//! resumed: no call that has an outcome is made again, none is lost, and the results are those of an undisturbed run.
//!
//! The fail points are compiled into debug builds only, so these tests are too.
#![cfg(all(unix, debug_assertions))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, dead_code, missing_docs)]
#![allow(clippy::needless_pass_by_value)]

mod common;

use std::collections::BTreeMap;

use common::server::{Answer, Server};
use common::{Place, Ran, complete};
use serde_json::{Value, json};

const BOUNDARIES: [&str; 4] = ["before-write", "after-write", "after-sync", "before-effect"];
const ITEMS: usize = 5;

/// A loop over items, two at a time: a call that may be repeated, a run of its own, an approval of one item, and a call
/// that may not be repeated.
struct Workflow {
    place: Place,
    server: Server,
}

impl Workflow {
    fn new() -> Self {
        let server = Server::with(|_, request| Answer::json(&json!({ "did": request.header("idempotency-key") })));
        let place = Place::new();
        let action = |name: &str, method: &str| {
            json!({ "action_name": name, "kind": "http", "description": "Does.", "http_method": method,
                "url": format!("{}/{name}", server.url()), "parameters": { "type": "object" } })
        };
        place.json("actions/all.json", &json!([action("look", "GET"), action("post", "POST")]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let judge = json!({ "id": "judge", "type": "loop", "properties": { "mode": "react", "tools": [],
            "objective": "Judge {{one}}.", "result_key": "finding" } });
        let approval = json!({ "id": "ask", "type": "PbotApproval", "filter": { "condition": { "equal": ["@one", 3] } },
            "properties": { "comment": "Go on with {{one}}?" } });
        let each = json!({ "id": "each", "type": "loop", "properties": { "mode": "foreach", "items_path": "@input.items",
            "item_variable_name": "one", "max_concurrency": 2, "collect_results": true, "result_key": "all",
            "actions_to_execute": [{ "type": "look", "properties": { "q": "@one" } }, judge, approval,
                { "id": "post", "type": "post", "properties": { "one": "@one", "found": "@finding.answer" } }] } });
        let last = json!({ "id": "last", "type": "post", "properties": { "count": "@all.length" } });
        place.json("loop.json", &json!({ "name": "w", "definition": { "actions": [each, last] } }));
        place.json("script.json", &json!({ "replies": [complete(json!("fine"))] }));
        place.json("input.json", &json!({ "items": (0..ITEMS).collect::<Vec<_>>() }));
        Self { place, server }
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
        common::killed(self.place.command(&args), fail)
    }

    fn resume(&self, how: &[&str], fail: &str) -> Ran {
        let mut args = vec!["resume", "r", "--script", "script.json", "--output", "json"];
        args.extend(how);
        common::killed(self.place.command(&args), fail)
    }

    /// How often each call that may not be repeated came to the server, by its key.
    fn posted(&self) -> BTreeMap<String, usize> {
        let mut posted = BTreeMap::new();
        for request in self.server.requests() {
            if request.method == "POST" {
                *posted.entry(request.header("idempotency-key").unwrap().to_owned()).or_default() += 1;
            }
        }
        posted
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
                match self.posted().get(&key) {
                    Some(_) => self.resume(&["--at", at, "--happened", &json!({ "did": key }).to_string()], ""),
                    None => self.resume(&["--at", at, "--retry"], ""),
                }
            } else {
                self.resume(&["--at", at, "--approve"], "")
            };
        }
        panic!("it does not end: {ran:#?}");
    }

    fn holds(&self, ran: Ran, at: &str) -> usize {
        let (result, uncertain) = self.finish(ran);
        assert_eq!(result["status"], "completed", "{at}: {result}");
        let all = result["result"]["answer"]["all"].as_array().unwrap();
        let outputs: Vec<&Value> = all.iter().map(|item| &item["output"]["did"]).collect();
        let expected: Vec<Value> = (0..ITEMS).map(|item| json!(format!("r-each.{item}.post"))).collect();
        assert_eq!(outputs, expected.iter().collect::<Vec<_>>(), "{at}");
        let posted = self.posted();
        assert_eq!(posted.len(), ITEMS + 1, "{at}: {posted:?}");
        assert!(posted.values().all(|times| *times == 1), "{at}: {posted:?}");
        uncertain
    }
}

#[test]
fn an_undisturbed_run_makes_each_call_once() {
    let workflow = Workflow::new();
    let ran = workflow.start("");
    assert_eq!(workflow.holds(ran, "undisturbed"), 0);
}

#[test]
fn a_kill_at_every_boundary_of_a_workflow_loses_and_repeats_no_call() {
    // The start, and the events of four of five items and their runs, until one waits.
    const EVENTS: usize = 25;
    for boundary in BOUNDARIES {
        let mut kills = 0;
        for event in 0..=EVENTS {
            let workflow = Workflow::new();
            let at = format!("journal:{event}:{boundary}");
            let ran = workflow.start(&at);
            kills += usize::from(ran.code == -9);
            // At most the items that ran beside each other are of unknown outcome.
            let uncertain = workflow.holds(ran, &at);
            assert!(uncertain <= 2, "{at}: {uncertain}");
        }
        // Not every event has an effect that follows it.
        let expected = if boundary == "before-effect" { kills > 5 } else { kills == EVENTS };
        assert!(expected, "{boundary}: {kills}");
    }
}
