//! Workflows that failed: what is said of it, corrected documents, failed items of runs that completed, and the attempts at
//! the calls of steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, Ran, web};
use crate::run::workflows::{answer, definition, foreach, steps};

/// A workflow whose action `get` asks a server at `PATH/{{id}}`.
struct Asking {
    place: Place,
    server: Server,
}

impl Asking {
    fn new(path: &str, more: Value, handler: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        let server = Server::with(move |number, request| handler(number, &request.path));
        let place = Place::new();
        let asking = Self { place, server };
        asking.action(path, more);
        asking.place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
        asking
    }

    fn action(&self, path: &str, more: Value) {
        let parameters = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        let url = format!("{}/{path}/{{{{id}}}}", self.server.url());
        let action = web("get", &url, crate::common::with(json!({ "parameters": parameters }), more));
        self.place.json("actions/all.json", &json!([action]));
    }

    fn run(&self, input: Value, more: &[&str]) -> Ran {
        self.place.json("input.json", &input);
        let mut args = vec!["run", "loop.json", "--run-id", "r", "--input-file", "input.json"];
        args.extend(if more.is_empty() { &["--output", "json"] } else { more });
        self.place.call(&args)
    }

    fn call(&self, args: &[&str]) -> Ran {
        self.place.call(args)
    }

    fn paths(&self) -> Vec<String> {
        self.server.requests().into_iter().map(|request| request.path).collect()
    }
}

fn get(id: &str) -> Value {
    json!({ "id": "go", "type": "get", "properties": { "id": id } })
}

/// The same without an id.
fn plain(id: &str) -> Value {
    json!({ "type": "get", "properties": { "id": id } })
}

fn right_only(_: usize, path: &str) -> Answer {
    let answer = Answer::json(&json!({ "path": path }));
    if path.starts_with("/right") { answer } else { answer.status(404) }
}

const AGAIN: [&str; 6] = ["resume", "r", "--retry-failed", "--new-document", "--output", "json"];

#[test]
fn a_run_continues_with_a_corrected_action_and_repeats_nothing() {
    for how in [&AGAIN[..], &["retry", "r", "--new-document", "--output", "json"]] {
        let asking = Asking::new("wrong", json!({}), right_only);
        let first = json!({ "id": "first", "type": "get", "properties": { "id": "x" } });
        asking.action("right", json!({}));
        let parameters = json!({ "type": "object", "properties": { "id": { "type": "string" } }, "required": ["id"] });
        let other = |path: &str| {
            let url = format!("{}/{path}/{{{{id}}}}", asking.server.url());
            json!([
                web("get", &format!("{}/right/{{{{id}}}}", asking.server.url()), json!({ "parameters": parameters })),
                web("put", &url, json!({ "parameters": parameters }))
            ])
        };
        asking.place.json("actions/all.json", &other("wrong"));
        steps(&asking.place, json!([first, { "id": "go", "type": "put", "properties": { "id": "1" } }]));
        assert_eq!(asking.run(json!({}), &[]).code, 1);
        asking.place.json("actions/all.json", &other("right"));
        let refused = asking.call(&["resume", "r", "--retry-failed"]);
        assert_eq!(refused.code, 2, "{refused:#?}");
        assert!(refused.stderr.contains("--new-document"), "{refused:#?}");
        let ran = asking.call(how);
        assert_eq!((ran.code, &ran.json()["status"]), (0, &json!("completed")), "{ran:#?}");
        assert_eq!(asking.paths(), ["/right/x", "/wrong/1", "/right/1"]);
        let again = asking.call(&["trace", "r", "--format", "json"]);
        assert_eq!(again.json()["status"], "completed", "{again:#?}");
    }
}

#[test]
fn a_corrected_action_serves_the_items_of_a_loop() {
    let asking = Asking::new("wrong", json!({}), right_only);
    let settings = json!({ "collect_results": true, "result_key": "all", "max_concurrency": 2 });
    steps(&asking.place, json!([foreach("@input.l", settings, json!([get("{{one}}")]))]));
    assert_eq!(asking.run(json!({ "l": ["1", "2", "3"] }), &[]).code, 1);
    asking.action("right", json!({}));
    let ran = asking.call(&AGAIN);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let mut paths = asking.paths();
    paths.retain(|path| path.starts_with("/right"));
    paths.sort();
    assert_eq!(paths, ["/right/1", "/right/2", "/right/3"]);
}

#[test]
fn a_step_that_failed_before_its_call_runs_with_the_corrected_workflow() {
    for retry in [&AGAIN[..], &["resume", "r", "--new-document", "--output", "json"]] {
        let asking = Asking::new("right", json!({ "http_method": "POST" }), right_only);
        let first = |id: &str| json!([{ "id": "first", "type": "get", "properties": { "id": "x" } }, get(id)]);
        steps(&asking.place, first("@input.nmae"));
        let ran = asking.run(json!({ "name": "n" }), &[]);
        assert_eq!((ran.code, asking.paths().len()), (1, 1), "{ran:#?}");
        steps(&asking.place, first("@input.name"));
        let ran = asking.call(retry);
        assert_eq!((ran.code, &ran.json()["status"]), (0, &json!("completed")), "{ran:#?}");
        assert_eq!(asking.paths(), ["/right/x", "/right/n"]);
        let shown = asking.call(&["trace", "r", "--format", "json"]);
        assert_eq!(shown.json()["continuations"].as_array().map(Vec::len), Some(1), "{shown:#?}");
    }
}

#[test]
fn a_refused_document_says_what_leaves_a_made_step_out() {
    let asking = Asking::new("right", json!({}), |_, path| {
        Answer::json(&json!({})).status(if path.ends_with("bad") { 422 } else { 200 })
    });
    steps(&asking.place, json!([plain("a"), plain("bad")]));
    assert_eq!(asking.run(json!({}), &[]).code, 1);
    let no = json!({ "condition": { "equal": [1, 2] } });
    let filtered = crate::common::with(plain("a"), json!({ "filter": no }));
    for (document, expected) in [
        (
            json!([filtered, plain("c")]),
            "the step `0` (`get`) was made, and by the new document it does not begin: its `filter`",
        ),
        (json!([plain("a")]), "the step `1` (`get`) was made, and the new document has no step there"),
    ] {
        steps(&asking.place, document);
        let refused = asking.call(&AGAIN);
        assert!(refused.code == 2 && refused.stderr.contains(expected), "{expected}: {refused:#?}");
        assert!(!refused.stderr.contains("inserted, removed or moved"), "{refused:#?}");
    }
    assert_eq!(asking.paths().len(), 2);
}

#[test]
fn a_step_of_another_type_is_refused_and_writes_nothing() {
    let asking = Asking::new("wrong", json!({}), right_only);
    steps(&asking.place, json!([get("1")]));
    assert_eq!(asking.run(json!({}), &[]).code, 1);
    let events = || asking.call(&["trace", "r", "--format", "json"]).stdout;
    let before = events();
    steps(&asking.place, json!([{ "id": "go", "type": "put", "properties": { "id": "1" } }]));
    let parameters = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
    let put = web("put", &format!("{}/right/{{{{id}}}}", asking.server.url()), json!({ "parameters": parameters }));
    asking.place.json("actions/put.json", &json!([put]));
    let ran = asking.call(&AGAIN);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("`go` was `get`"), "{ran:#?}");
    assert_eq!(events(), before);
    // Without a retry the document alone does not make it continue.
    steps(&asking.place, json!([get("2")]));
    let ran = asking.call(&["resume", "r", "--new-document"]);
    assert_eq!((ran.code, ran.stderr.contains("retried")), (2, true), "{ran:#?}");
    assert_eq!(events(), before);
}

#[test]
fn a_loop_that_a_limit_ended_continues_with_a_new_document() {
    let place = Place::new();
    let look =
        |n: u32| json!({ "thought": format!("t{n}"), "action": "act", "action_input": { "what": format!("{n}") } });
    place.looped(&json!({ "max_iterations": 2 })).script(&[
        look(1),
        look(2),
        look(3),
        crate::common::complete(json!("x")),
    ]);
    let (ran, result) = place.run(&["--run-id", "r"]);
    assert_eq!((ran.code, &result["termination"]), (1, &json!("max_iterations")), "{ran:#?}");
    let base = ["resume", "r", "--script", "script.json", "--output", "json", "--new-document"];
    place.looped(&json!({ "max_iterations": 2, "system_prompt": "Be brief." }));
    let few = place.call(&[&base[..], &["--max-iterations", "2"]].concat());
    assert_eq!(few.code, 2, "{few:#?}");
    let ran = place.call(&[&base[..], &["--max-iterations", "9"]].concat());
    assert_eq!((ran.code, &ran.json()["status"]), (0, &json!("completed")), "{ran:#?}");
}

#[test]
fn a_failed_workflow_names_the_command_that_continues_it() {
    let asking = Asking::new("wrong", json!({}), right_only);
    steps(&asking.place, json!([get("1")]));
    let ran = asking.run(json!({}), &["--output", "human"]);
    let command = "resume r --retry-failed";
    assert!(ran.stderr.contains(command) && ran.stderr.contains("--retry-failed --new-document"), "{ran:#?}");
    for shown in [&["explain", "r"][..], &["trace", "r"]] {
        let ran = asking.call(shown);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(command), "{ran:#?}");
    }
    let explained = asking.call(&["explain", "r", "--output", "json"]).json();
    assert!(explained["next"][0].as_str().is_some_and(|next| next.contains(command)), "{explained:#}");
    asking.action("right", json!({}));
    let ran = asking.call(&["resume", "r", "--retry-failed", "--new-document"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert!(!ran.stderr.contains("--retry-failed"), "{ran:#?}");
    assert!(!asking.call(&["explain", "r"]).stdout.contains("--retry-failed"));
}

/// A server that answers each path but those of `down` at once, and each of these after a number of refusals.
fn after(down: &'static [&'static str], refusals: usize, status: u16) -> impl Fn(usize, &str) -> Answer + Send + Sync {
    let counts: Arc<Vec<AtomicUsize>> = Arc::new(down.iter().map(|_| AtomicUsize::new(0)).collect());
    move |_, path| {
        let answer = Answer::json(&json!({ "path": path }));
        let at = down.iter().position(|one| path.ends_with(one));
        let is_down = at.is_some_and(|at| counts[at].fetch_add(1, Ordering::SeqCst) < refusals);
        if is_down { answer.status(status) } else { answer }
    }
}

#[test]
fn failed_items_of_a_run_that_completed_run_again_and_nothing_else_does() {
    let asking = Asking::new("i", json!({}), after(&["/2", "/4"], 1, 500));
    let settings = json!({ "failure_strategy": "continue_on_error", "summary_key": "s", "collect_results": true,
        "result_key": "all", "max_concurrency": 2 });
    let last = json!({ "id": "last", "type": "get", "properties": { "id": "end" } });
    definition(
        &asking.place,
        json!({ "actions": [foreach("@input.l", settings, json!([get("{{one}}")])), last],
            "output": { "s": "@s", "all": "@all", "last": "@get.path" } }),
    );
    let ran = asking.run(json!({ "l": ["1", "2", "3", "4"] }), &[]);
    assert_eq!((ran.code, &answer(&ran.json())["s"]["failed"]), (0, &json!(2)), "{ran:#?}");
    let ran = asking.call(&["resume", "r", "--retry-failed", "--output", "json"]);
    let result = ran.json();
    assert_eq!((ran.code, &result["status"]), (0, &json!("completed")), "{ran:#?}");
    let given = answer(&result);
    assert_eq!((&given["s"]["completed"], &given["s"]["failed"]), (&json!(4), &json!(0)), "{given:#}");
    assert_eq!(given["all"][1]["output"]["path"], "/i/2");
    assert_eq!(given["last"], "/i/end", "what ended behind the loop stays");
    assert_eq!(result["steps"].as_array().map(Vec::len), Some(2), "{result:#}");
    let of = |path: &str| asking.paths().iter().filter(|known| *known == path).count();
    assert_eq!((of("/i/1"), of("/i/2"), of("/i/3"), of("/i/4"), of("/i/end")), (1, 2, 1, 2, 1));
    let ran = asking.call(&["resume", "r", "--retry-failed"]);
    assert_eq!((ran.code, ran.stderr.contains("nothing to retry")), (2, true), "{ran:#?}");
}

#[test]
fn failed_items_of_loops_in_items_run_again_too() {
    let asking = Asking::new("i", json!({}), after(&["/b"], 1, 500));
    let settings =
        json!({ "failure_strategy": "continue_on_error", "summary_key": "inner", "item_variable_name": "x" });
    let inner = foreach("@one", settings, json!([plain("{{x}}")]));
    let inner = crate::common::with(inner, json!({ "id": "inner" }));
    let outer = json!({ "collect_results": true, "result_key": "all", "collect": "@inner.failed" });
    definition(
        &asking.place,
        json!({ "actions": [foreach("@input.l", outer, json!([get("{{__index}}"), inner]))], "output": "@all" }),
    );
    let ran = asking.run(json!({ "l": [["a", "b"], ["c"]] }), &[]);
    let failed =
        |ran: &Ran| answer(&ran.json()).as_array().unwrap().iter().map(|one| one["output"].clone()).collect::<Vec<_>>();
    assert_eq!((ran.code, failed(&ran)), (0, vec![json!(1), json!(0)]), "{ran:#?}");
    let ran = asking.call(&["retry", "r", "--output", "json"]);
    assert_eq!((ran.code, failed(&ran)), (0, vec![json!(0), json!(0)]), "{ran:#?}");
    let mut paths = asking.paths();
    paths.sort();
    assert_eq!(paths, ["/i/0", "/i/1", "/i/a", "/i/b", "/i/b", "/i/c"]);
}

#[test]
fn attempts_at_the_calls_of_steps_and_items_are_shown_and_counted() {
    let retry = json!({ "retry": { "attempts": 3, "base_ms": 1, "max_ms": 2 } });
    let asking = Asking::new("i", retry, after(&["/x", "/y"], 2, 429));
    steps(&asking.place, json!([get("x"), foreach("@input.l", json!({}), json!([plain("{{one}}")]))]));
    let ran = asking.run(json!({ "l": ["y"] }), &["--output", "ndjson"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let retried: Vec<_> = lines.iter().filter(|line| line["event"] == "tool_retried").collect();
    let heard: Vec<_> =
        retried.iter().map(|line| (line["at"].as_str().unwrap(), line["attempt"].as_u64().unwrap())).collect();
    assert_eq!(heard, [("go", 1), ("go", 2), ("each.0.0", 1), ("each.0.0", 2)]);
    assert_eq!((&retried[0]["error"]["class"], &retried[0]["action"]), (&json!("http 429"), &json!("get")));
    let result = asking.call(&["trace", "r", "--format", "json"]).json();
    assert_eq!(result["metadata"]["tool_retries"], 4, "{result:#}");
    let attempts = result["steps"][0]["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[1]["error"]["class"]), (2, &json!("http 429")));
    assert!(attempts[0]["delay_ms"].is_u64());
    let item = asking.call(&["trace", "r", "--at", "each.0.0", "--format", "json"]).json();
    assert_eq!(item["steps"][0]["attempts"].as_array().map(Vec::len), Some(2), "{item:#}");
    for format in ["text", "html"] {
        let shown = asking.call(&["trace", "r", "--format", format]).stdout;
        assert!(shown.contains("attempt 2: http 429"), "{shown}");
        let shown = asking.call(&["trace", "r", "--at", "each.0.0", "--format", format]).stdout;
        assert!(shown.contains("attempt 1: http 429"), "{shown}");
    }
}

#[test]
fn the_answer_to_a_failed_call_of_a_step_is_shown_without_its_secrets() {
    let asking = Asking::new("c", json!({}), |_, _| {
        Answer::json(&json!({ "errors": ["field 7 is empty"], "password": "hunter-2-hunter" })).status(422)
    });
    let settings = json!({ "failure_strategy": "continue_on_error", "max_failures": 5 });
    steps(&asking.place, json!([foreach("@input.l", settings, json!([plain("{{one}}")])), get("1")]));
    let ran = asking.run(json!({ "l": ["7"] }), &["--output", "human"]);
    assert_eq!((ran.code, ran.stderr.contains("field 7 is empty")), (1, true), "{ran:#?}");
    let mut shown = vec![ran.stderr];
    for at in ["go", "each.0.0"] {
        for format in ["text", "json", "html"] {
            let page = asking.call(&["trace", "r", "--at", at, "--format", format]).stdout;
            assert!(page.contains("field 7 is empty"), "{at} {format}: {page}");
            shown.push(page);
        }
    }
    shown.push(asking.call(&["trace", "r", "--format", "json"]).stdout);
    assert!(shown.iter().all(|page| !page.contains("hunter-2")), "{shown:#?}");
    assert!(shown.last().is_some_and(|page| page.contains("field 7 is empty")));
}

#[test]
fn a_failure_that_may_pass_is_retryable() {
    for (status, retryable) in
        [(503, true), (429, true), (408, true), (500, true), (400, false), (404, false), (422, false)]
    {
        let asking = Asking::new("c", json!({}), move |_, _| Answer::json(&json!({})).status(status));
        steps(&asking.place, json!([get("1")]));
        let result = asking.run(json!({}), &[]).json();
        assert_eq!(
            (&result["termination"], &result["error"]["retryable"]),
            (&json!("step_failed"), &json!(retryable)),
            "{status}"
        );
        steps(&asking.place, json!([foreach("@input.l", json!({}), json!([get("{{one}}")]))]));
        asking.place.json("input.json", &json!({ "l": ["1"] }));
        let ran = asking.call(&["run", "loop.json", "--run-id", "q", "--input-file", "input.json", "--output", "json"]);
        assert_eq!(ran.json()["error"]["retryable"], retryable, "{status}: {ran:#?}");
    }
    let gone = Asking::new("c", json!({}), right_only);
    steps(&gone.place, json!([get("1")]));
    let url = "http://127.0.0.1:1/{{id}}";
    gone.place.json(
        "actions/all.json",
        &json!([web("get", url, json!({ "parameters": { "type": "object", "properties": { "id": {} } } }))]),
    );
    assert_eq!(gone.run(json!({}), &[]).json()["error"]["retryable"], true);
    // What is missing stays missing.
    steps(&gone.place, json!([get("@input.none")]));
    let ran = gone.call(&["run", "loop.json", "--run-id", "q", "--output", "json"]);
    assert_eq!(ran.json()["error"]["retryable"], false, "{ran:#?}");
}

#[test]
fn a_refused_decision_says_what_decides_and_shows_its_reasons_on_lines_of_their_own() {
    let place = crate::run::workflows::place();
    steps(&place, json!([{ "id": "f", "type": "PbotForm", "properties": { "expected_keys": ["why", "who"] } }]));
    assert_eq!(crate::run::workflows::run(&place, json!({})).0.code, 3);
    let ran = place.call(&["resume", "r", "--approve"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(ran.stderr.contains("`f` is a form") && ran.stderr.contains("resume r --answer"), "{ran:#?}");
    let action = json!([web(
        "note",
        "http://127.0.0.1:1/",
        json!({ "requires_approval": true, "http_method": "POST",
        "parameters": { "type": "object", "properties": { "t": { "type": "string" } }, "required": ["t"] } })
    )]);
    let place = Place::new();
    place.json("actions/all.json", &action);
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    steps(&place, json!([{ "id": "go", "type": "note", "properties": { "t": "a" } }]));
    assert_eq!(place.call(&["run", "loop.json", "--run-id", "r"]).code, 3);
    let ran = place.call(&["resume", "r", "--edit", "{\"t\": 5}"]);
    assert_eq!(ran.code, 2, "{ran:#?}");
    assert!(!ran.stderr.contains("\\n") && ran.stderr.contains("\n  - at /t"), "{ran:#?}");
}
