//! Each number of `/metrics` that is a fact of the store is the fold of the store: of the runs that the server created, drove and
//! ended, whatever they did.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::Serving;

/// The prices of a million tokens: read from the cache, another part of the input, written.
const PRICE: [f64; 3] = [0.5, 2.0, 8.0];
/// The loops: what one of each does.
const LOOPS: [&str; 5] = ["quick", "asks", "fails", "calls", "flow"];

/// A model that does what the objective says, and counts tokens by the length of what it read.
fn model() -> Server {
    Server::reading(|number, request| {
        let text = request.text();
        // The instructions and the objective, or the question of an action.
        let is_first = request.json()["messages"].as_array().unwrap().len() <= 2;
        let does = |word: &str| is_first && text.contains(word);
        let reply = if does("PAUSE") {
            think("__pause_for_human__", json!({ "question": "Go on?" }))
        } else if does("CALL") {
            think("quick", json!({}))
        } else if text.contains("FAIL") {
            return Answer::json(&json!({ "error": { "message": "no" } })).status(400);
        } else if text.contains("JUST ANSWER") {
            json!("yes")
        } else {
            complete(json!("ok"))
        };
        let content = reply.as_str().map_or_else(|| reply.to_string(), str::to_owned);
        Answer::json(&json!({
            "choices": [{ "message": { "role": "assistant", "content": content }, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": text.len(), "completion_tokens": 7 + number % 5,
                "prompt_tokens_details": { "cached_tokens": text.len() / 3 } },
        }))
    })
}

fn place(model: &Server) -> Place {
    let place = Place::new();
    let price = json!({ "input": PRICE[1], "cached_input": PRICE[0], "output": PRICE[2] });
    let of = |name: &str| json!({ "provider": "openai", "base_url": format!("{}/v1", model.url()), "model": name, "price": price });
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "main",
            "models": { "main": of("fake-1"), "small": of("fake-2") } }),
    );
    let react = |name: &str, word: &str, tools: Value| {
        let properties =
            json!({ "mode": "react", "objective": format!("{word} it."), "tools": tools, "dialect": "json" });
        place.json(
            &format!("loops/{name}.json"),
            &json!({ "type": "loop", "name": name, "description": "Does it.", "properties": properties }),
        );
    };
    react("quick", "END", json!([]));
    react("asks", "PAUSE", json!([]));
    react("fails", "FAIL", json!([]));
    react("calls", "CALL", json!([{ "type": "loop", "name": "quick" }]));
    let ask = json!({ "action_name": "ask", "kind": "llm", "model": "small", "description": "Asks.", "template": "JUST ANSWER" });
    place.json("actions/ask.json", &ask);
    let step = json!({ "mode": "react", "objective": "END it.", "tools": [], "dialect": "json" });
    let steps =
        json!([{ "id": "one", "type": "ask", "properties": {} }, { "id": "two", "type": "loop", "properties": step }]);
    place.json("workflows/flow.json", &json!({ "name": "flow", "definition": { "actions": steps } }));
    place
}

/// The series of a name: the labels, sorted and written, and the value.
fn series(text: &str, name: &str) -> BTreeMap<Vec<String>, f64> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let read = |line: &str| {
        let (labels, value) = line.rsplit_once("} ").unwrap();
        let mut labels: Vec<String> = labels.split(',').map(str::to_owned).collect();
        labels.sort();
        (labels, value.parse().unwrap())
    };
    lines.map(read).collect()
}

/// The sum of the series with these labels.
fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let wanted: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    let all = series(text, name);
    all.iter().filter(|(labels, _)| wanted.iter().all(|label| labels.contains(label))).map(|(_, value)| value).sum()
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}

/// What a run and those below it spent: input, cached input, output, dollars.
fn spent(place: &Place, row: &Value) -> [f64; 4] {
    let run = row["run_id"].as_str().unwrap();
    let trace = place.call(&["trace", run, "--store", "sqlite:runs.db", "--format", "json"]).json();
    let usage = &trace["usage"];
    let of = |field: &str| usage[field].as_f64().unwrap_or_default();
    [of("input_tokens"), of("cached_input_tokens"), of("output_tokens"), row["cost_usd"].as_f64().unwrap_or_default()]
}

/// Starts and continues runs as the seed says.
fn play(server: &Serving, chance: &mut fastrand::Rng) {
    let mut waiting = Vec::new();
    for _ in 0..14 {
        let name = LOOPS[chance.usize(..LOOPS.len())];
        let run = server.post("/agents/execute", &json!({ "loop": name })).json();
        if run["status"] == "paused" {
            waiting.push(run["agent_run_id"].as_str().unwrap().to_owned());
        }
        if chance.u8(..3) == 0
            && let Some(run) = waiting.pop()
        {
            let agent = format!("/agents/{run}");
            match chance.u8(..2) {
                0 => assert_eq!(server.send("DELETE", &agent, &[], b"").status, 200),
                _ => assert_eq!(server.post(&format!("{agent}/resume"), &json!({ "answer": "yes" })).status, 200),
            }
        }
    }
}

#[test]
fn each_number_that_is_a_fact_of_the_store_is_its_fold() {
    for seed in 0..crate::common::cases(1) {
        let model = model();
        let place = place(&model);
        let server = Serving::start(&place, &["--store", "sqlite:runs.db"]);
        let mut chance = fastrand::Rng::with_seed(u64::from(seed));
        play(&server, &mut chance);
        let text = String::from_utf8(server.get("/metrics").body).unwrap();
        let rows =
            place.call(&["runs", "--store", "sqlite:runs.db", "--called", "--limit", "0", "--output", "json"]).json();
        let rows = rows.as_array().unwrap();
        let mut own: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
        let all: BTreeMap<&str, [f64; 4]> =
            rows.iter().map(|row| (row["run_id"].as_str().unwrap(), spent(&place, row))).collect();
        for row in rows {
            let below = rows.iter().filter(|other| other["called_by"] == row["run_id"]);
            let below: Vec<[f64; 4]> = below.map(|other| all[other["run_id"].as_str().unwrap()]).collect();
            let of_run = all[row["run_id"].as_str().unwrap()];
            let of_loop = own.entry(row["loop_name"].as_str().unwrap()).or_default();
            for (at, spent) in of_loop.iter_mut().enumerate() {
                *spent += of_run[at] - below.iter().map(|below| below[at]).sum::<f64>();
            }
        }
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9 * (1.0 + other.abs());
        for name in LOOPS {
            let of_loop: Vec<&Value> = rows.iter().filter(|row| row["loop_name"] == name).collect();
            for (prefix, is_called) in [("loopctl_runs", false), ("loopctl_sub_runs", true)] {
                let of_kind: Vec<&&Value> =
                    of_loop.iter().filter(|row| row.get("called_by").is_some() == is_called).collect();
                let count = |holds: &dyn Fn(&Value) -> bool| number(of_kind.iter().filter(|row| holds(row)).count());
                assert_eq!(
                    sum(&text, &format!("{prefix}_started_total"), &[("loop", name)]),
                    count(&|_| true),
                    "{name}\n{text}"
                );
                for (status, termination) in
                    [("completed", "complete"), ("failed", "model_error"), ("cancelled", "cancelled")]
                {
                    let labels = [("loop", name), ("status", status), ("termination", termination)];
                    let ended = count(&|row| row["status"] == status && row["termination"] == termination);
                    assert_eq!(sum(&text, &format!("{prefix}_ended_total"), &labels), ended, "{name} {status}\n{text}");
                }
            }
            let waits = number(of_loop.iter().filter(|row| row["status"] == "paused").count());
            assert_eq!(sum(&text, "loopctl_runs_waiting", &[("loop", name)]), waits, "{name}\n{text}");
            let spent = own.get(name).copied().unwrap_or_default();
            for (at, direction) in ["input", "cached_input", "output"].into_iter().enumerate() {
                let counted = sum(&text, "loopctl_tokens_total", &[("loop", name), ("direction", direction)]);
                assert_eq!(counted, spent[at], "{name} {direction}\n{text}");
            }
            let counted = sum(&text, "loopctl_cost_usd_total", &[("loop", name)]);
            assert!(is_near(counted, spent[3]), "{name}: {counted} and {}\n{text}", spent[3]);
        }
        let replies: f64 = rows.iter().map(|row| row["iterations"].as_f64().unwrap()).sum();
        assert_eq!(sum(&text, "loopctl_iterations_total", &[]), replies, "{text}");
        // The action of the workflow names a model of its own.
        let flows = rows.iter().filter(|row| row["loop_name"] == "flow").count();
        assert_eq!(sum(&text, "loopctl_tokens_total", &[("model", "small")]) > 0.0, flows > 0, "{text}");
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::to_owned);
        let zero = Some("0".to_owned());
        assert_eq!((value("loopctl_runs_queued"), value("loopctl_runs_quarantined")), (zero.clone(), zero), "{text}");
    }
}
