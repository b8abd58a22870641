//! Each number of `loopctl stats` and of `GET /usage` is a fold of the store's journals: of runs that completed, failed, wait,
//! were cancelled, called others, went in circles, and asked a model that failed at first.

use std::collections::BTreeMap;
use std::sync::Arc;

use loopctl::drive::fold;
use loopctl::engine::event::Event;
use loopctl::engine::outcome::{Status, Termination};
use loopctl::engine::state::{Phase, State};
use loopctl::engine::step::step;
use loopctl::journal::{Journal, RunFilter, RunSummary};
use loopctl::program::Program;
use serde_json::{Value, json};

use crate::common::server::{Answer, Server};
use crate::common::{Place, complete, think};
use crate::serve::client::Serving;

const STORE: &str = "sqlite:runs.db";
/// The loops: what one of each does.
const LOOPS: [&str; 6] = ["quick", "asks", "fails", "calls", "circles", "flow"];

/// A model that does what the objective says. Each fifth request fails, and is made again.
pub(super) fn model() -> Server {
    Server::reading(|number, request| {
        let text = request.text();
        if text.contains("FAIL") {
            return Answer::json(&json!({ "error": { "message": "no" } })).status(400);
        }
        if number % 5 == 4 {
            return Answer::json(&json!({ "error": { "message": "busy" } })).status(503);
        }
        let is_first = request.json()["messages"].as_array().unwrap().len() <= 2;
        let reply = if text.contains("CIRCLE") {
            think("quick", json!({}))
        } else if is_first && text.contains("PAUSE") {
            think("__pause_for_human__", json!({ "question": "Go on?" }))
        } else if is_first && text.contains("CALL") {
            think("quick", json!({}))
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

pub(super) fn place(model: &Server) -> Place {
    let place = Place::new();
    let of = |name: &str, price: &Value| {
        let base_url = format!("{}/v1", model.url());
        let known = json!({ "provider": "openai", "base_url": base_url, "model": name });
        crate::common::with(known, price.clone())
    };
    let price = json!({ "price": { "input": 2.0, "cached_input": 0.5, "output": 8.0 } });
    // The price of the second model is not known.
    place.json(
        "loopctl.json",
        &json!({ "allow": { "private_addresses": true }, "model": "main",
            "models": { "main": of("fake-1", &price), "small": of("fake-2", &json!({})) } }),
    );
    let react = |name: &str, word: &str, tools: Value| {
        let properties = json!({ "mode": "react", "objective": format!("{word} it."), "tools": tools, "dialect": "json",
            "retry": { "attempts": 3, "base_ms": 1 }, "on_stuck": { "iterations": 3, "action": "fail" } });
        place.json(
            &format!("loops/{name}.json"),
            &json!({ "type": "loop", "name": name, "description": "Does it.", "properties": properties }),
        );
    };
    let quick = json!([{ "type": "loop", "name": "quick" }]);
    react("quick", "END", json!([]));
    react("asks", "PAUSE", json!([]));
    react("fails", "FAIL", json!([]));
    react("calls", "CALL", quick.clone());
    react("circles", "CIRCLE", quick);
    let ask = json!({ "action_name": "ask", "kind": "llm", "model": "small", "description": "Asks.", "template": "JUST ANSWER",
        "retry": { "attempts": 3, "base_ms": 1 } });
    place.json("actions/ask.json", &ask);
    let steps = json!([{ "id": "one", "type": "ask", "properties": {} }]);
    place.json("workflows/flow.json", &json!({ "name": "flow", "definition": { "actions": steps } }));
    place
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

/// Awaits a future on a runtime of its own.
fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A run of the store, folded.
struct Folded {
    row: RunSummary,
    state: State,
    /// When it waited for a human, and no longer does: in milliseconds.
    waits: Vec<i64>,
}

fn folded(journal: &dyn Journal, row: RunSummary) -> Folded {
    let events = wait(journal.read(&row.run_id)).unwrap();
    let texts = wait(journal.texts(&row.run_id)).unwrap();
    let events: Vec<Event> = fold::events(&row.run_id, &events, &texts).unwrap();
    let program: Arc<Program> = fold::recorded(&fold::texts(&row.run_id, &events, None).unwrap()).unwrap();
    let (mut state, mut waits, mut since) = (State::new(&program), Vec::new(), None);
    for event in events {
        step(&program, &mut state, event).unwrap();
        let asks = |pause: &loopctl::engine::outcome::Pause| pause.question.kind != Termination::ModelError;
        let waits_now = matches!(&state.phase, Phase::Paused { pause, .. } if asks(pause));
        match (waits_now, since) {
            (true, None) => since = Some(state.now.wall_ms),
            (false, Some(from)) => {
                waits.push(state.now.wall_ms - from);
                since = None;
            }
            _ => {}
        }
    }
    Folded { row, state, waits }
}

/// The least value that this many of a hundred do not exceed, by counting.
fn percentile(times: &[i64], hundredths: usize) -> Value {
    let within = |most: i64| times.iter().filter(|time| **time <= most).count() * 100 >= times.len() * hundredths;
    times.iter().copied().filter(|time| within(*time)).min().map_or(Value::Null, Value::from)
}

/// What the runs come to, by their folds: the figures of the report.
fn figures(roots: &[&Folded], all: &[Folded]) -> BTreeMap<&'static str, Value> {
    let below = |root: &Folded| -> Vec<&Folded> {
        let prefix = format!("{}.", root.row.run_id);
        all.iter().filter(|run| run.row.run_id.starts_with(&prefix) || run.row.run_id == root.row.run_id).collect()
    };
    let family: Vec<&Folded> = roots.iter().flat_map(|root| below(root)).collect();
    let status = |status: Status| json!(roots.iter().filter(|run| run.state.status() == status).count());
    let ended: Vec<i64> = roots
        .iter()
        .filter_map(|run| match &run.state.phase {
            Phase::Ended(ending) => Some(ending.at_ms - run.state.header.at_ms),
            _ => None,
        })
        .collect();
    let tokens = |run: &&Folded| run.state.counters.tokens.input + run.state.counters.tokens.output;
    let cost: f64 = roots.iter().filter_map(|run| run.state.cost_usd()).sum();
    let unpriced = roots.iter().filter(|run| tokens(run) > 0 && run.state.cost_usd().is_none()).count();
    let stuck = family.iter().filter(|run| matches!(&run.state.phase, Phase::Ended(ending) if ending.stuck.is_some()));
    let waits: Vec<i64> = roots.iter().flat_map(|run| run.waits.clone()).collect();
    let retries = |run: &&Folded| u64::from(run.state.counters.model_retries);
    let tool_retries =
        |run: &&Folded| run.state.counters.tool_retries.values().map(|times| u64::from(*times)).sum::<u64>();
    BTreeMap::from([
        ("runs", json!(roots.len())),
        ("completed", status(Status::Completed)),
        ("failed", status(Status::Failed)),
        ("cancelled", status(Status::Cancelled)),
        ("paused", status(Status::Paused)),
        ("open", json!(0)),
        ("p50_ms", percentile(&ended, 50)),
        ("p95_ms", percentile(&ended, 95)),
        ("iterations", json!(roots.iter().map(|run| run.state.counters.iterations).sum::<u32>())),
        ("tokens", json!(roots.iter().map(tokens).sum::<u64>())),
        ("cost_usd", json!(cost)),
        ("unpriced_runs", json!(unpriced)),
        ("unknown_runs", json!(0)),
        ("journals", json!(roots.len())),
        ("model_retries", json!(family.iter().map(retries).sum::<u64>())),
        ("tool_retries", json!(family.iter().map(tool_retries).sum::<u64>())),
        ("stuck", json!(stuck.count())),
        ("human_waits", json!(waits.len())),
        ("human_wait_ms", json!(waits.iter().sum::<i64>())),
    ])
}

/// The figures of the report, with the sum of its stuck patterns.
fn is_same(reported: &Value, expected: &BTreeMap<&'static str, Value>, what: &str) {
    for (name, value) in expected {
        let said = match (*name, &reported[*name]) {
            ("stuck", by_pattern) => {
                json!(by_pattern.as_object().into_iter().flatten().filter_map(|(_, n)| n.as_u64()).sum::<u64>())
            }
            ("cost_usd", cost) => {
                let off = (cost.as_f64().unwrap() - value.as_f64().unwrap()).abs();
                assert!(off < 1e-8, "{what}: {name} is {cost} and not {value}");
                continue;
            }
            (_, said) => said.clone(),
        };
        assert_eq!(&said, value, "{what}: {name}\n{reported:#}");
    }
}

#[test]
fn each_number_of_a_report_is_the_fold_of_the_journals() {
    for seed in 0..crate::common::cases(1) {
        let model = model();
        let place = place(&model);
        let server = Serving::start(&place, &["--store", STORE]);
        play(&server, &mut fastrand::Rng::with_seed(u64::from(seed)));
        let usage = server.get("/usage").json();
        drop(server);
        let report = place.call(&["stats", "--store", STORE, "--output", "json"]).json();
        assert_eq!(usage, report, "over HTTP and in a terminal");
        let journal = loopctl::journal::open(STORE, place.path()).unwrap();
        let filter = RunFilter { called: true, ..RunFilter::default() };
        let rows = wait(journal.list(filter)).unwrap();
        let all: Vec<Folded> = rows.into_iter().map(|row| folded(&*journal, row)).collect();
        let roots: Vec<&Folded> = all.iter().filter(|run| run.row.parent_run_id.is_none()).collect();
        is_same(&report["total"], &figures(&roots, &all), "all");
        assert_eq!(report["left_out"], json!({ "older_runs": false, "journals": 0, "unreadable": 0 }));
        for name in LOOPS {
            let of_loop: Vec<&Folded> = roots.iter().copied().filter(|run| run.row.loop_name == name).collect();
            let groups = report["loops"].as_array().unwrap();
            match groups.iter().find(|group| group["key"] == name) {
                Some(group) => is_same(group, &figures(&of_loop, &all), name),
                None => assert!(of_loop.is_empty(), "{name} is missing"),
            }
        }
        let by_day = report["days"].as_array().unwrap().iter().map(|day| day["runs"].as_u64().unwrap()).sum::<u64>();
        assert_eq!((by_day, report["orgs"][0]["key"].as_str()), (u64::try_from(roots.len()).unwrap(), Some("")));
        // What models spent themselves is what the runs spent, with those below.
        let of_models = |field: &str| -> u64 {
            report["models"].as_array().unwrap().iter().filter_map(|model| model[field].as_u64()).sum()
        };
        assert_eq!(of_models("input_tokens") + of_models("output_tokens"), report["total"]["tokens"].as_u64().unwrap());
        assert_eq!(of_models("retries"), report["total"]["model_retries"].as_u64().unwrap());
        let replies: u32 = all.iter().map(|run| run.state.counters.iterations).sum();
        assert_eq!(of_models("replies"), u64::from(replies));
        let calls = |name: &str| {
            all.iter().filter_map(|run| run.state.counters.calls.get(name)).map(|n| u64::from(*n)).sum::<u64>()
        };
        let tools = report["tools"].as_array().unwrap();
        let reported = |name: &str| {
            tools.iter().find(|tool| tool["key"] == name).map_or(0, |tool| tool["calls"].as_u64().unwrap())
        };
        assert_eq!(reported("quick"), calls("quick"), "{tools:#?}");
    }
}

#[test]
fn a_report_is_bounded_by_what_is_asked_and_says_what_it_lacks() {
    let model = model();
    let place = place(&model);
    let server = Serving::start(&place, &["--store", STORE]);
    for name in ["quick", "quick", "asks"] {
        server.post("/agents/execute", &json!({ "loop": name }));
    }
    let usage = |query: &str| server.get(&format!("/usage{query}")).json();
    let less = usage("?journals=1");
    assert_eq!((&less["total"]["runs"], &less["total"]["journals"]), (&json!(3), &json!(1)));
    assert_eq!(less["left_out"]["journals"], 2);
    let only = usage("?by=loop&loop=quick");
    assert_eq!((&only["by"], &only["loops"][0]["runs"], &only["models"]), (&json!("loop"), &json!(2), &Value::Null));
    assert_eq!(usage("?until=2001-01-01T00:00:00Z")["total"]["runs"], 0);
    assert_eq!(usage("?zone=Pacific/Kiritimati")["zone"], "Pacific/Kiritimati");
    for wrong in ["?by=hour", "?zone=Nowhere", "?journals=1001", "?since=today", "?x=1"] {
        assert_eq!(server.get(&format!("/usage{wrong}")).code(), "bad_request", "{wrong}");
    }
    let stats = |more: &[&str]| place.call(&[&["stats", "--store", STORE], more].concat());
    let text = stats(&["--journals", "1"]).stdout;
    for part in
        ["3 runs", "2 completed, 1 paused", "the journals of 2 were not read", "LOOP ", "MODEL", "days are of UTC"]
    {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let page = stats(&["--output", "html"]).stdout;
    assert!(page.contains("<svg") && page.contains("default-src 'none'") && !page.contains("<script"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "it fetches nothing");
    assert_eq!(stats(&["--zone", "Nowhere"]).code, 2);
}
