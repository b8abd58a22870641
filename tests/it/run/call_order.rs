//! The order of the calls of one turn: which are under way together, and which wait for which.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::server::{Answer, Request, Server};
use crate::common::{Place, Ran, web, with};

/// What the server saw: the calls that it has received and not answered, and lines like `+a` and `-a`.
#[derive(Default)]
struct Log {
    open: Vec<String>,
    lines: Vec<String>,
}

/// A server of tools. A call of `a/1` is answered when `a` and all calls beside it have come, whose names are in `together`.
struct Tools {
    server: Server,
    log: Arc<(Mutex<Log>, Condvar)>,
}

impl Tools {
    fn new(together: &'static [&'static [&'static str]]) -> Self {
        let log: Arc<(Mutex<Log>, Condvar)> = Arc::default();
        let here = Arc::clone(&log);
        let server = Server::with(move |_, request| {
            let name = name_of(request);
            let (log, came) = (&here.0, &here.1);
            let mut log = log.lock().unwrap();
            log.open.push(name.clone());
            log.lines.push(format!("+{name}"));
            came.notify_all();
            let beside = together.iter().find(|names| names.contains(&name.as_str())).copied().unwrap_or_default();
            // The bound is for a run that is wrong.
            let waits = |log: &mut Log| !beside.iter().all(|name| log.lines.contains(&format!("+{name}")));
            let (mut log, _) = came.wait_timeout_while(log, Duration::from_secs(10), waits).unwrap();
            log.open.retain(|open| *open != name);
            log.lines.push(format!("-{name}"));
            Answer::json(&json!({ "did": name }))
        });
        Self { server, log }
    }

    fn lines(&self) -> Vec<String> {
        self.log.0.lock().unwrap().lines.clone()
    }

    /// The names in the order in which their calls came, those that were under way together in one entry.
    fn groups(&self) -> Vec<Vec<String>> {
        let (mut groups, mut open): (Vec<Vec<String>>, usize) = (Vec::new(), 0);
        for line in self.lines() {
            let name = line.trim_start_matches(['+', '-']).to_owned();
            match (line.starts_with('+'), open) {
                (true, 0) => groups.push(vec![name]),
                (true, _) => groups.last_mut().unwrap().push(name),
                _ => {}
            }
            open = if line.starts_with('+') { open + 1 } else { open - 1 };
        }
        groups.iter_mut().for_each(|group| group.sort());
        groups
    }
}

fn name_of(request: &Request) -> String {
    let path = request.path.split('?').next().unwrap_or_default();
    path.trim_start_matches('/').to_owned()
}

fn actions(url: &str) -> Vec<Value> {
    let action = |name: &str, more: Value| {
        let parameters = json!({ "parameters": { "type": "object", "properties": { "n": { "type": "string" } } } });
        web(name, &format!("{url}/{name}{{{{n}}}}"), with(parameters, more))
    };
    vec![
        action(
            "read",
            json!({ "parameters": { "type": "object", "properties": { "n": { "type": "string" } }, "required": ["n"] } }),
        ),
        action("write", json!({ "http_method": "POST", "body": {} })),
        action("put", json!({ "http_method": "PUT", "body": {} })),
    ]
}

/// A loop in the dialect `tags` whose model makes these calls in one turn.
fn place(tools: &Tools, properties: Value, calls: &[(&str, &str)]) -> Place {
    let place = Place::new();
    let declared = |name: &str| json!({ "type": "action", "name": name });
    let properties = with(
        json!({ "mode": "react", "objective": "Do it.", "dialect": "tags",
            "tools": [declared("read"), declared("write"), declared("put")] }),
        properties,
    );
    place.json(
        "loop.json",
        &json!({ "type": "loop", "name": "ordered", "actions": actions(&tools.server.url()), "properties": properties }),
    );
    place.json("loopctl.json", &json!({ "allow": { "private_addresses": true } }));
    let calls: Vec<Value> =
        calls.iter().map(|(tool, n)| json!({ "action": tool, "action_input": { "n": n } })).collect();
    let replies = json!([{ "thought": "All of it.", "calls": calls }, { "thought": "Done.", "answer": "done" }]);
    place.json("script.json", &json!({ "replies": replies }));
    place
}

fn run(place: &Place) -> Ran {
    place.call(&["run", "loop.json", "--script", "script.json", "--output", "json", "--run-id", "r"])
}

/// What the calls returned, in the order of the trace.
fn observed(ran: &Ran) -> Vec<String> {
    let result = ran.json();
    let entries = result["trace"].as_array().unwrap().iter();
    entries.filter_map(|entry| entry["observation"]["did"].as_str().map(str::to_owned)).collect()
}

const MIXED: [(&str, &str); 6] =
    [("read", "1"), ("read", "2"), ("write", "3"), ("put", "4"), ("read", "5"), ("read", "6")];
const IN_ORDER: [&str; 6] = ["read1", "read2", "write3", "put4", "read5", "read6"];

#[test]
fn by_default_reads_that_stand_beside_each_other_are_made_together_and_the_rest_in_the_models_order() {
    let tools = Tools::new(&[&["read1", "read2"], &["read5", "read6"]]);
    let ran = run(&place(&tools, json!({}), &MIXED));
    assert_eq!(ran.code, 0, "{ran:#?}");
    let groups = tools.groups();
    assert_eq!(groups, [vec!["read1", "read2"], vec!["write3"], vec!["put4"], vec!["read5", "read6"]]);
    assert_eq!(observed(&ran), IN_ORDER);
}

#[test]
fn as_written_makes_one_call_after_the_other() {
    let tools = Tools::new(&[]);
    let ran = run(&place(&tools, json!({ "order": "as_written" }), &MIXED));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(tools.groups(), IN_ORDER.map(|name| vec![name.to_owned()]));
    assert_eq!(observed(&ran), IN_ORDER);
}

#[test]
fn together_makes_all_calls_at_once_and_reports_them_in_the_models_order() {
    let tools = Tools::new(&[&IN_ORDER]);
    let ran = run(&place(&tools, json!({ "order": "together" }), &MIXED));
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(tools.groups(), [["put4", "read1", "read2", "read5", "read6", "write3"]]);
    assert_eq!(observed(&ran), IN_ORDER);
}

#[test]
fn a_call_that_waits_for_approval_holds_back_those_behind_it() {
    let tools = Tools::new(&[]);
    let place = place(&tools, json!({}), &MIXED);
    let document: Value = serde_json::from_slice(&std::fs::read(place.path().join("loop.json")).unwrap()).unwrap();
    let mut document = document;
    document["properties"]["tools"][1]["requires_approval"] = json!(true);
    place.json("loop.json", &document);
    let ran = run(&place);
    assert_eq!((ran.code, &ran.json()["termination"]), (3, &json!("approval")), "{ran:#?}");
    let began = |lines: &[String]| lines.iter().filter(|line| line.starts_with('+')).cloned().collect::<Vec<_>>();
    let mut before = began(&tools.lines());
    before.sort();
    assert_eq!(before, ["+read1", "+read2"], "what stands before it was made, and nothing behind it");
    let ran = place.call(&["resume", "r", "--approve", "--script", "script.json", "--output", "json"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(began(&tools.lines())[2..4], ["+write3", "+put4"]);
    assert_eq!(observed(&ran), IN_ORDER);
}

#[test]
fn a_failed_call_does_not_keep_those_behind_it_from_being_made() {
    let tools = Tools::new(&[]);
    let place = place(&tools, json!({}), &[("write", "1"), ("nothing", "2"), ("put", "3")]);
    let ran = run(&place);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(tools.groups(), [["write1"], ["put3"]]);
    assert_eq!(ran.json()["trace"][1]["success"], false);
}

/// Two calls of a loop in one turn; each run makes one call of `tool`.
fn sub_runs(tools: &Tools, tool: &str) -> Ran {
    let place = place(tools, json!({ "tools": [{ "type": "loop", "name": "helper" }] }), &[]);
    let input = json!({ "type": "object", "properties": { "n": { "type": "string" } }, "required": ["n"] });
    let properties = json!({ "mode": "react", "objective": "Do {{input.n}}.", "model": "m",
        "tools": [{ "type": "action", "name": tool }] });
    place.json(
        "loops/helper.json",
        &json!({ "type": "loop", "name": "helper", "description": "Helps.", "input": input,
            "actions": actions(&tools.server.url()), "properties": properties }),
    );
    let model = Server::reading(|_, request| {
        let text = request.text();
        let n = if text.contains("Do 1.") { "1" } else { "2" };
        let turn = if text.contains("Observation:") {
            json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": { "did": n } } })
        } else {
            let tool = if text.contains("- write:") { "write" } else { "read" };
            json!({ "thought": "t", "action": tool, "action_input": { "n": n } })
        };
        Answer::openai(&turn.to_string())
    });
    let both: Vec<Value> = ["1", "2"].map(|n| json!({ "name": "helper", "arguments": { "n": n } })).to_vec();
    let calls: String = both.iter().map(|call| format!("<tool_call>{call}</tool_call>")).collect();
    place.json("boss.json", &json!({ "replies": [calls, "<answer>done</answer>"] }));
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "boss", "models": {
            "boss": { "provider": "script", "script": "boss.json" },
            "m": { "provider": "openai", "base_url": format!("{}/v1", model.url()) } } }),
    );
    let ran = place.call(&["run", "loop.json", "--output", "json", "--run-id", "r"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    assert_eq!(observed(&ran), ["1", "2"], "{ran:#?}");
    ran
}

#[test]
fn sub_runs_of_a_loop_that_only_reads_are_made_together_and_those_of_another_one_in_their_order() {
    let tools = Tools::new(&[&["read1", "read2"]]);
    sub_runs(&tools, "read");
    assert_eq!(tools.groups(), [["read1", "read2"]]);
    let tools = Tools::new(&[]);
    sub_runs(&tools, "write");
    assert_eq!(tools.groups(), [["write1"], ["write2"]]);
}
