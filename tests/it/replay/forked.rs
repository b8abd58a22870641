//! A run that begins with the first steps of another one: nothing that was called there is called again, wherever the fork
//! is killed.

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, complete, document, killed, look, think};
use crate::replay::{done, golden};

/// A loop whose tools are a server, which counts, and a run `r` of it: it looks, acts, looks, and answers.
struct Counted {
    place: Place,
    server: Server,
}

fn acts(what: &str) -> Value {
    think("act", json!({ "what": what }))
}

impl Counted {
    fn new() -> Self {
        Self::with(json!({}))
    }

    fn with(properties: Value) -> Self {
        let server = Server::with(|_, _| Answer::json(&json!({ "ok": true })));
        let this = Self { place: Place::new(), server };
        this.place.json("loop.json", &this.document(properties));
        this.place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        this.script(&[look("a"), acts("x"), look("b"), done()]);
        let ran = crate::replay::run(&this.place, "r", &[]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        assert_eq!(this.paths(), ["/look/a", "/act", "/look/b"]);
        this
    }

    fn document(&self, properties: Value) -> Value {
        let mut document = document(&properties);
        for action in document["actions"].as_array_mut().unwrap() {
            let path = if action["action_name"] == "look" { "look/{{at}}" } else { "act" };
            action["url"] = json!(format!("{}/{path}", self.server.url()));
        }
        document
    }

    fn script(&self, replies: &[Value]) {
        self.place.json("script.json", &json!({ "replies": replies }));
    }

    /// What was called, in its order.
    fn paths(&self) -> Vec<String> {
        self.server.requests().iter().map(|request| request.path.clone()).collect()
    }

    fn fork(&self, more: &[&str]) -> Ran {
        let args = ["fork", "r", "--script", "script.json", "--run-id", "f", "--output", "json"];
        self.place.call(&[args.as_slice(), more].concat())
    }
}

#[test]
fn a_fork_has_the_steps_before_it_and_makes_none_of_their_calls_again() {
    let counted = Counted::new();
    counted.script(&[look("-"), acts("-"), look("c"), complete(json!("otherwise"))]);
    let fork = counted.fork(&["--at", "3"]);
    assert_eq!(fork.code, 0, "{fork:#?}");
    assert_eq!(counted.paths()[3..], ["/look/c"], "only the call of the fork itself");
    let (result, origin) = (fork.json(), counted.place.call(&["trace", "r", "--format", "json"]).json());
    assert_eq!(result["fork_of"], json!({ "run_id": "r", "iteration": 3 }));
    assert_eq!(result["result"]["answer"], "otherwise");
    let copied = |run: &Value| run["trace"].as_array().unwrap()[..2].to_vec();
    assert_eq!(copied(&result), copied(&origin), "the copied steps are those of the origin");
    assert_eq!(result["trace"][2]["action_input"], json!({ "at": "c" }));
    assert_eq!((&result["iterations"], &result["metadata"]["tool_calls_made"]), (&json!(4), &json!(3)));
    // Its tokens are those of the copied steps too.
    assert!(result["usage"]["input_tokens"].as_u64() > Some(2000), "{result:#}");
    let trace = counted.place.call(&["trace", "f"]).stdout;
    assert!(trace.contains("fork of r at iteration 3"), "{trace}");
    let page = counted.place.call(&["trace", "f", "--format", "html"]).stdout;
    assert!(page.contains("fork of r at iteration 3"), "{page}");
    assert_eq!(counted.place.call(&["replay", "f"]).code, 0, "it is folded again as any run");
    // The same id returns the run.
    assert_eq!(counted.fork(&["--at", "3"]).json()["result"], result["result"]);
    assert_eq!(counted.paths().len(), 4);
}

#[test]
fn a_reply_or_an_observation_takes_the_place_of_what_was() {
    let counted = Counted::new();
    let fork = counted.fork(&["--at", "3", "--observation", r#"{"changed": 1}"#]).json();
    assert_eq!(fork["trace"][2]["observation"], json!({ "changed": 1 }), "{fork:#}");
    assert_eq!(counted.paths().len(), 3, "the call was made in the origin");
    let failed = counted.fork(&["--at", "3", "--run-id", "g", "--observation", r#"{"error": "http 503"}"#]);
    assert_eq!(failed.code, 2, "an option twice: {failed:#?}");
    let reply = r#"{"thought": "Other.", "action": "look", "action_input": {"at": "z"}}"#;
    let args =
        ["fork", "r", "--script", "script.json", "--run-id", "h", "--output", "json", "--at", "2", "--reply", reply];
    let fork = counted.place.call(&args).json();
    assert_eq!(fork["trace"][1]["action_input"], json!({ "at": "z" }), "{fork:#}");
    assert_eq!(counted.paths()[3..], ["/look/z", "/look/b"]);
}

#[test]
fn the_budget_of_a_fork_counts_the_copied_steps() {
    let counted = Counted::with(json!({ "max_iterations": 4 }));
    counted.script(&[look("-"), acts("-"), look("-"), look("d"), look("e")]);
    let fork = counted.fork(&["--at", "4"]);
    assert_eq!((fork.code, &fork.json()["termination"]), (1, &json!("max_iterations")), "{fork:#?}");
    counted.place.json("less.json", &counted.document(json!({ "max_iterations": 4, "budget": { "tokens": 500 } })));
    let refused = counted.fork(&["--at", "4", "--run-id", "less", "--document", "less.json"]);
    assert_eq!(refused.code, 2, "{refused:#?}");
}

#[test]
fn a_fork_of_a_fork_has_the_steps_of_both() {
    let counted = Counted::new();
    counted.script(&[look("-"), acts("-"), look("c"), done()]);
    assert_eq!(counted.fork(&["--at", "3"]).code, 0);
    let args = ["fork", "f", "--at", "4", "--script", "script.json", "--output", "json"];
    let again = counted.place.call(&args);
    let result = again.json();
    assert_eq!((again.code, result["fork_of"]["run_id"].as_str()), (0, Some("f")), "{again:#?}");
    assert_eq!(result["trace"][2]["action_input"], json!({ "at": "c" }));
    assert_eq!(counted.paths().len(), 4);
}

#[test]
fn what_can_not_be_forked_is_refused_in_a_sentence() {
    let counted = Counted::new();
    counted.place.json("edited.json", &counted.document(json!({ "tools": [{ "type": "action", "name": "look" }] })));
    let mut text = String::new();
    for args in [
        ["--at", "6"].as_slice(),
        &["--at", "5"],
        &["--at", "0"],
        &["--at", "4", "--observation", "1"],
        &["--at", "2", "--reply", "{"],
        &["--at", "3", "--document", "edited.json"],
    ] {
        let refused = counted.place.call(&[["fork", "r"].as_slice(), args].concat());
        assert_eq!(refused.code, 2, "{args:?}: {refused:#?}");
        text.push_str(&format!("## {}\n{}\n", args.join(" "), refused.stderr));
    }
    golden("fork-refused.txt", &text);
    assert_eq!(counted.paths().len(), 3);
    let runs = counted.place.call(&["runs", "--output", "json"]).json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "nothing is left behind");
}

#[cfg(all(unix, debug_assertions))]
#[test]
fn a_fork_that_is_killed_at_any_boundary_repeats_no_call_of_its_origin_and_none_of_its_own() {
    let counted = Counted::new();
    counted.script(&[look("-"), acts("-"), look("c"), done()]);
    let kills = crate::common::sweep::kill_everywhere(|_, fail| {
        let before = counted.paths().len();
        let id = fail.replace(':', "-");
        let args = ["fork", "r", "--at", "3", "--script", "script.json", "--run-id", &id, "--output", "json"];
        if killed(counted.place.command(&args), fail).code != -9 {
            return false;
        }
        // The same command again: starts the fork, or takes it up.
        let ended = counted.place.call(&args);
        assert_eq!(ended.code, 0, "{fail}: {ended:#?}");
        let result = ended.json();
        assert_eq!((&result["iterations"], &result["fork_of"]["iteration"]), (&json!(4), &json!(3)), "{fail}");
        // `look` is idempotent: at most the one that was under way is made again.
        let own = &counted.paths()[before..];
        assert!(own.iter().all(|path| path == "/look/c") && (1..=2).contains(&own.len()), "{fail}: {own:?}");
        true
    });
    assert!(kills.iter().sum::<usize>() >= crate::common::sweep::least(12), "{kills:?} kills tested too little");
}
