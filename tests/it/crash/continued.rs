//! R1: kills around a retry and around raised limits: an event that is durable is not asked for again, and one that
//! is not durable can be asked for again.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::sweep::{kill_everywhere, least};
use crate::common::{self, Place, Ran, complete, document, think, web};
use crate::crash::reference::{events_of, timeless};

fn keep(key: &str) -> Value {
    think("__store_memory__", json!({ "key": key, "value": 1 }))
}

/// A run that ends, and what makes it continue.
struct Ended {
    place: Place,
    go_on: &'static [&'static str],
    event: &'static str,
}

impl Ended {
    fn call(&self, args: &[&str], fail: &str) -> Ran {
        let mut args = args.to_vec();
        args.extend(["--script", "script.json", "--output", "json"]);
        common::killed(self.place.command(&args), fail)
    }

    fn new(properties: &Value, replies: &[Value], go_on: &'static [&'static str], event: &'static str) -> Self {
        let place = Place::on_disk();
        place.json("loop.json", &document(properties));
        place.json("script.json", &json!({ "replies": replies }));
        let ended = Self { place, go_on, event };
        assert_eq!(ended.call(&["run", "loop.json", "--run-id", "r"], "").code, 1);
        ended
    }

    fn retried() -> Self {
        let away = json!({ "http": 503 });
        let replies = [keep("a"), away.clone(), away, keep("b"), complete(json!("done"))];
        let retry = json!({ "retry": { "attempts": 2, "base_ms": 0, "max_ms": 0 } });
        Self::new(&retry, &replies, &["retry", "r"], "retried")
    }

    fn raised() -> Self {
        let replies = [keep("a"), keep("b"), complete(json!("done"))];
        Self::new(&json!({ "max_iterations": 1 }), &replies, &["resume", "r", "--max-iterations", "9"], "limits_raised")
    }

    fn count(&self) -> usize {
        events_of(&self.place).iter().filter(|event| !event["what"][self.event].is_null()).count()
    }

    /// As an operator goes on who sees that the run is cut off, or still ended.
    fn finish(&self) -> Value {
        let ran = match self.count() {
            0 => self.call(self.go_on, ""),
            _ => self.call(&["resume", "r"], ""),
        };
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(self.count(), 1, "the event is in the journal once");
        timeless(ran.json())
    }
}

#[test]
fn a_kill_at_every_boundary_of_a_run_that_continues_ends_in_the_same_result() {
    for new in [Ended::retried, Ended::raised] {
        let whole = new();
        let expected = whole.finish();
        let kills = kill_everywhere(|_, at| {
            let ended = new();
            if ended.call(ended.go_on, at).code != -9 {
                return false;
            }
            assert_eq!(ended.finish(), expected, "{at}");
            true
        });
        assert!(kills.iter().sum::<usize>() >= least(9), "{kills:?} kills tested too little");
    }
}

/// A workflow whose step fails at a server, and its correction, which has steps for a failure as well.
struct Corrected {
    place: Place,
    server: Server,
}

impl Corrected {
    fn new() -> Self {
        let server = Server::with(|_, request| {
            let answer = Answer::json(&json!({}));
            if request.path == "/wrong" { answer.status(404) } else { answer }
        });
        let place = Place::on_disk();
        let parameters = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        let get = web("get", &format!("{}/{{{{id}}}}", server.url()), json!({ "parameters": parameters }));
        place.json("actions/all.json", &json!([get]));
        place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        let corrected = Self { place, server };
        corrected.workflow("wrong", json!([]));
        assert_eq!(corrected.call(&["run", "loop.json", "--run-id", "r"], "").code, 1);
        corrected.workflow("right", json!([{ "id": "undo", "type": "get", "properties": { "id": "undo" } }]));
        corrected
    }

    fn workflow(&self, id: &str, on_failure: Value) {
        let go = json!({ "id": "go", "type": "get", "properties": { "id": id } });
        let mut definition = json!({ "actions": [go] });
        if on_failure.as_array().is_some_and(|steps| !steps.is_empty()) {
            definition["on_failure"] = on_failure;
        }
        self.place.json("loop.json", &json!({ "name": "w", "definition": definition }));
    }

    fn call(&self, args: &[&str], fail: &str) -> Ran {
        common::killed(self.place.command(&[args, &["--output", "json"]].concat()), fail)
    }

    fn paths(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }
}

#[test]
fn a_kill_between_a_new_document_and_its_retry_runs_nothing_that_the_document_has_for_a_failure() {
    let again = ["resume", "r", "--retry-failed", "--new-document"];
    let mut number = 0;
    let killed = crate::common::sweep::BOUNDARIES.map(|boundary| {
        (0..9)
            .take_while(|event| {
                number += 1;
                let corrected = Corrected::new();
                let at = format!("journal:{event}:{boundary}");
                if corrected.call(&again, &at).code != -9 {
                    return false;
                }
                let resumed = corrected.call(&["resume", "r"], "");
                if resumed.code != 0 {
                    // Nothing of the decision was stored.
                    assert!(!corrected.paths().contains(&"/right".to_owned()), "{at}: {resumed:#?}");
                    assert_eq!(corrected.call(&again, "").code, 0, "{at}");
                }
                assert!(!corrected.paths().contains(&"/undo".to_owned()), "{at}: {:?}", corrected.paths());
                true
            })
            .count()
    });
    assert!(killed.iter().take(3).all(|kills| *kills >= 3), "{killed:?} of {number}");
}
