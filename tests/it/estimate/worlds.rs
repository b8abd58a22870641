//! Runs in nasty worlds, driven by the real driver on a simulated clock: no figure of a run exceeds its estimate. A token is a
//! byte there, a reply is as long as it may be, tools answer late and with long texts, models fail, lose replies that are paid for, say
//! nothing, are silent until nobody waits any longer, and go in circles. A run that waits for its model is resumed as a server does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::Source;
use loopctl::drive::clock::simulated;
use loopctl::drive::engine::{Resume, Watch};
use loopctl::drive::start::Start;
use loopctl::engine::budget::cost_usd;
use loopctl::engine::estimate::{Estimate, EstimatedRun, estimate};
use loopctl::engine::event::{Finish, Tokens};
use loopctl::language::project::Price;
use loopctl::{
    BoxFuture, DynTool, EmbeddedModel, Engine, ModelError, ModelReply, ModelRequest, Status, ToolCall, ToolFault,
};
use serde_json::{Value, json};

use crate::simulation::chance::Chance;

const PRICES: [(&str, Price); 2] = [
    ("cheap", Price { input: 1.0, output: 5.0, cached_input: None, cache_write: None }),
    ("dear", Price { input: 3.0, output: 15.0, cached_input: None, cache_write: None }),
];

/// What was really used.
#[derive(Debug, Default, Clone, Copy)]
struct Used {
    model_calls: u64,
    tool_calls: u64,
    input: u64,
    output: u64,
    cost: f64,
}

type Shared = Arc<Mutex<(Chance, Used)>>;

/// A model that does what makes a run dear.
struct NastyModel {
    price: Price,
    world: Shared,
}

/// The actions that a model may call, by what is in its prompt.
const TOOLS: [&str; 5] = ["look", "ask", "help", "__store_memory__", "nothing"];

impl NastyModel {
    fn text(chance: &mut Chance, request: &ModelRequest<'_>) -> String {
        let all = request.messages();
        let prompt = &all[0].text;
        let offered: Vec<&str> = TOOLS.into_iter().filter(|name| prompt.contains(&format!("- {name}:"))).collect();
        let is_last = all.last().is_some_and(|last| last.text.contains("last turn"));
        if prompt.contains("Be busy.") {
            let input = json!({ "n": chance.below(1_000_000) });
            return json!({ "thought": "", "action": "look", "action_input": input }).to_string();
        }
        let thought = "t".repeat(size(chance, 200));
        let arguments = json!({ "text": "a".repeat(size(chance, 300)), "n": chance.below(1_000) });
        let call = |action: &str, input: &Value| json!({ "thought": thought, "action": action, "action_input": input });
        match chance.below(if is_last { 3 } else { 16 }) {
            0 => String::new(),
            1 => "no JSON at all ".repeat(1 + size(chance, 200)),
            2 if is_last || chance.one_in(4) => call("__complete__", &json!({ "answer": "done" })).to_string(),
            _ if offered.is_empty() => call("__complete__", &json!({ "answer": "done" })).to_string(),
            3 => call("__store_memory__", &json!({ "key": "k", "value": arguments })).to_string(),
            _ => call(chance.pick::<&str>(&offered), &arguments).to_string(),
        }
    }
}

impl EmbeddedModel for NastyModel {
    async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let (reply, is_silent) = {
            let mut world = self.world.lock().unwrap();
            let (chance, used) = &mut *world;
            let is_busy = request.messages()[0].text.contains("Be busy.");
            if !is_busy && chance.one_in(9) {
                return Err(ModelError::transient("away").unpaid());
            }
            let reply = self.reply(&request, chance, used);
            // It is paid for, and nobody reads it.
            if !is_busy && chance.one_in(9) {
                return Err(ModelError::transient("the stream broke"));
            }
            (reply, !is_busy && chance.one_in(12))
        };
        if is_silent {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Ok(reply)
    }
}

impl NastyModel {
    /// A reply, which is paid for from now on.
    fn reply(&self, request: &ModelRequest<'_>, chance: &mut Chance, used: &mut Used) -> ModelReply {
        let most = request.max_tokens() as usize;
        let mut text = Self::text(chance, request);
        let mut finish = Finish::Stop;
        if text.len() > most {
            text.truncate(most);
            finish = Finish::Length;
        }
        // A token is a byte, and a provider adds some to each message.
        let input = request.messages().iter().map(|message| message.size() as u64 + 4).sum::<u64>() + 20;
        let output = if chance.one_in(2) || finish == Finish::Length { most as u64 } else { text.len() as u64 };
        used.model_calls += 1;
        if chance.one_in(10) {
            // The engine estimates what is not counted: by no more than the bytes.
            return ModelReply { text, finish, usage: None, ..ModelReply::default() };
        }
        let usage = Tokens { input, output, ..Tokens::default() };
        used.input += input;
        used.output += output;
        used.cost += cost_usd(usage, self.price);
        ModelReply { text, finish, usage: Some(usage), ..ModelReply::default() }
    }
}

/// A tool that gives long texts.
struct Look(Shared);

impl DynTool for Look {
    fn name(&self) -> &str {
        "look"
    }

    fn description(&self) -> &str {
        "Looks."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "text": { "type": "string" }, "n": { "type": "integer" } } })
    }

    fn call<'a>(&'a self, _: &'a ToolCall<'a>) -> BoxFuture<'a, Result<Value, ToolFault>> {
        Box::pin(async move {
            let late_ms = {
                let (chance, used) = &mut *self.0.lock().unwrap();
                used.tool_calls += 1;
                if chance.one_in(4) { chance.below(40_000) } else { 0 }
            };
            tokio::time::sleep(Duration::from_millis(late_ms)).await;
            let mut world = self.0.lock().unwrap();
            let (chance, _) = &mut *world;
            let letter = chance.pick(&["x", "<", "é", "漢", "\u{1F600}", "\"", "\n"]);
            match chance.below(5) {
                0 => Err(ToolFault::new("away", letter.repeat(500))),
                1 => Ok(json!({ "list": vec![letter; 200] })),
                _ => Ok(Value::from(letter.repeat(size(chance, 4_000)))),
            }
        })
    }
}

/// A size below a bound.
fn size(chance: &mut Chance, bound: u64) -> usize {
    usize::try_from(chance.below(bound)).unwrap()
}

/// A count, for a share of it.
fn number(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The properties of a loop.
fn properties(chance: &mut Chance, tools: &Value) -> Value {
    let mut properties = json!({
        "mode": "react", "objective": "Do it.", "tools": tools,
        "max_iterations": 1 + chance.below(8), "max_tokens": chance.pick(&[60, 300, 1_500]),
        "timeout_ms": chance.pick(&[100_000_000_u64, 100_000_000, 90_000]), "dialect": "json",
        "reply_timeout_ms": chance.pick(&[1_000, 600_000]), "last_call_timeout_ms": 50_000,
        "on_model_outage": chance.pick(&["fail", "pause"]),
        "max_observation_chars": chance.pick(&[12, 300, 3_000]),
        "on_limit": chance.pick(&["fail", "answer"]),
        "on_stuck": { "iterations": 2 + chance.below(6), "action": chance.pick(&["fail", "retry_with_hint"]) },
    });
    if chance.one_in(2) {
        properties["retry"] = json!({ "attempts": 1 + chance.below(5), "base_ms": 1, "max_ms": 1 });
    }
    if chance.one_in(3) {
        properties["fallback_models"] = json!(["dear"]);
    }
    if chance.one_in(4) {
        properties["model"] = json!(chance.pick(&["cheap", "dear"]));
    }
    if chance.one_in(3) {
        properties["budget"] = chance.pick(&[
            json!({ "tokens": 500 }),
            json!({ "tokens": 6_000 }),
            json!({ "tokens": 40_000 }),
            json!({ "cost_usd": 0.01 }),
            json!({ "cost_usd": 0.05, "tokens": 20_000 }),
        ]);
    }
    if chance.one_in(3) {
        properties["history"] = chance.pick(&[
            json!({ "max_messages": 4, "keep_last": 2 }),
            json!({ "max_messages": 4, "keep_last": 3, "summarize": true }),
            json!({ "max_messages": 4, "keep_last": 9, "summarize": false }),
            json!({ "context_tokens": 3_000 }),
            json!({ "context_tokens": 3_000, "summarize": false }),
        ]);
    }
    properties
}

fn ask(chance: &mut Chance) -> Value {
    let mut action = json!({ "action_name": "ask", "kind": "llm", "description": "Asks.",
        "template": "Say {{text}} and {{n}}.", "max_tokens": chance.pick(&[50, 400]),
        "parameters": { "type": "object", "properties": { "text": { "type": "string" }, "n": { "type": "integer" } },
            "required": ["text", "n"] } });
    if chance.one_in(2) {
        action["answer_schema"] =
            json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
    }
    if chance.one_in(2) {
        action["retry"] = json!({ "attempts": 1 + chance.below(3), "base_ms": 1, "max_ms": 1 });
    }
    action
}

fn tools(chance: &mut Chance, names: &[(&str, &str)]) -> Value {
    let mut tools = Vec::new();
    for (kind, name) in names {
        if chance.one_in(5) {
            continue;
        }
        let mut tool = json!({ "type": kind, "name": name });
        if chance.one_in(3) {
            tool["max_calls"] = json!(1 + chance.below(3));
        }
        tools.push(tool);
    }
    Value::Array(tools)
}

/// A loop that calls a loop and asks a model, or a workflow with such a loop for each item.
fn texts(chance: &mut Chance) -> Texts {
    if chance.one_in(6) {
        return with_project(&busy(chance), None);
    }
    let below = tools(chance, &[("action", "look"), ("action", "ask")]);
    let mut helping = properties(chance, &below);
    helping["objective"] = json!("Help with {{input.text}}.");
    let help = json!({ "type": "loop", "name": "help", "description": "Helps.",
        "input": { "type": "object", "properties": { "text": { "type": "string" }, "n": { "type": "integer" } },
            "required": ["text"] }, "properties": helping });
    let of_loop = tools(chance, &[("action", "look"), ("action", "ask"), ("loop", "help")]);
    let main = if chance.one_in(3) { workflow(chance, &of_loop) } else { document(chance, &of_loop) };
    let window = chance.one_in(3).then(|| 200 + chance.below(4_000));
    let mut texts = with_project(&main, window);
    texts.loops.push(Source::new("loops/help.json", help.to_string()));
    texts.actions.push(Source::new("actions/ask.json", json!([ask(chance)]).to_string()));
    texts
}

/// A loop whose model does nothing but to call a tool until a limit ends it: it uses what it may.
fn busy(chance: &mut Chance) -> Value {
    let mut properties = properties(chance, &json!([{ "type": "action", "name": "look" }]));
    properties["objective"] = json!("Be busy.");
    properties["retry"] = json!({ "attempts": 1 });
    properties["history"] = json!({ "summarize": false });
    properties["on_stuck"] = json!({ "iterations": 1000 });
    document_of(properties)
}

/// `window`: of one model, which its server does not know of.
fn with_project(main: &Value, window: Option<u64>) -> Texts {
    let name = if main.get("definition").is_some() { "workflow.json" } else { "loop.json" };
    let mut texts = Texts::new(Source::new(name, main.to_string()));
    let model = |name: &str, price: Price| (name.to_owned(), json!({ "provider": "openai", "price": price }));
    let models: serde_json::Map<String, Value> = PRICES.into_iter().map(|(name, price)| model(name, price)).collect();
    let mut project = json!({ "model": "cheap", "models": models });
    if let Some(window) = window {
        let name = if window % 2 == 0 { "cheap" } else { "dear" };
        project["models"][name]["context_tokens"] = json!(window);
    }
    texts.project = Some(Source::new("loopctl.json", project.to_string()));
    texts.embedded = vec![Look(Arc::new(Mutex::new((Chance::new(0), Used::default())))).signature()];
    texts
}

fn document(chance: &mut Chance, tools: &Value) -> Value {
    document_of(properties(chance, tools))
}

fn document_of(properties: Value) -> Value {
    json!({ "type": "loop", "name": "nasty", "properties": properties })
}

fn workflow(chance: &mut Chance, tools: &Value) -> Value {
    let inner = properties(chance, tools);
    let each = json!({ "type": "loop", "id": "each", "properties": { "mode": "foreach", "items_path": "@input.items", "item_variable_name": "item",
        "max_concurrency": 1 + chance.below(3), "failure_strategy": "continue_on_error",
        "actions_to_execute": [{ "type": "loop", "id": "inner", "properties": inner }] } });
    let mut each = each;
    if chance.one_in(3) {
        each["properties"]["item_budget"] = json!({ "tokens": chance.pick(&[300, 5_000]) });
    }
    let last = json!({ "type": "loop", "id": "last", "properties": properties(chance, tools) });
    let mut definition = json!({ "actions": [each, last] });
    if chance.one_in(3) {
        definition["timeout_ms"] = json!(20_000);
    }
    if chance.one_in(3) {
        definition["budget"] = json!({ "tokens": chance.pick(&[1_000, 30_000]) });
    }
    json!({ "name": "nasty", "definition": definition })
}

/// A world, played.
struct PlayedWorld {
    estimate: Estimate,
    used: Used,
    counted: Tokens,
    counted_cost: f64,
    active_ms: u64,
    status: Status,
}

fn play(seed: u64) -> PlayedWorld {
    let mut chance = Chance::new(seed ^ 0x0e57_0000);
    let world: Shared = Arc::new(Mutex::new((Chance::new(seed), Used::default())));
    let texts = texts(&mut chance);
    let compiled = compile(&texts);
    let program = compiled.program.unwrap_or_else(|| panic!("{}\n{:#?}", texts.main.text, compiled.diagnostics));
    let input = if program.is_flow() {
        json!({ "items": vec![json!({ "n": 1 }); 1 + size(&mut chance, 4)] })
    } else {
        json!({})
    };
    let mut builder =
        Engine::builder(Arc::clone(&program.project), std::path::Path::new(".")).tool(Look(Arc::clone(&world)));
    for (name, price) in PRICES {
        builder = builder.model(name, NastyModel { price, world: Arc::clone(&world) });
    }
    let engine = builder.build();
    let estimate = estimate(&program, EstimatedRun { model: None, input: Some(&input) });
    let start = Start { input, ..Start::default() };
    let finished = simulated::run(1_769_941_800_000, async {
        let mut finished = engine.run(&program, start, Watch::default()).await?;
        // As long as it waits for its model, a server resumes it.
        for _ in 0..50 {
            if finished.status() != Status::Paused {
                break;
            }
            tokio::time::sleep(Duration::from_secs(30)).await;
            let run_id = finished.state.header.run_id.clone();
            finished = engine.resume(&program, &run_id, Resume::default(), Watch::default()).await?;
        }
        Ok::<_, loopctl::Fault>(finished)
    })
    .expect("a runtime")
    .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    let active_ms = finished.state.now.active_ms;
    let counters = &finished.state.counters;
    let used = world.lock().unwrap().1;
    PlayedWorld {
        estimate,
        used,
        counted: counters.tokens,
        counted_cost: counters.cost_usd,
        active_ms,
        status: finished.status(),
    }
}

/// Plays worlds. Gives the largest share of the estimate that one of them used: of the calls to models, and of the tokens.
fn all_within(seeds: std::ops::Range<u64>) -> (f64, f64) {
    let mut largest = (0.0_f64, 0.0_f64);
    for seed in seeds {
        let PlayedWorld { estimate, used, counted, counted_cost, active_ms, status } = play(seed);
        let most = &estimate.most;
        let said = || format!("seed {seed} ({status:?}): {used:?}, {counted:?}, ${counted_cost} of {estimate:#?}");
        assert!(most.model_calls.is_some_and(|most| used.model_calls <= most), "model calls, {}", said());
        // A timer ends in the millisecond after its time.
        assert!(estimate.active_ms.is_some_and(|most| active_ms <= most + 10), "{active_ms} ms, {}", said());
        assert!(most.tool_calls.is_some_and(|most| used.tool_calls <= most), "tool calls, {}", said());
        let (input, output) = (used.input.max(counted.input), used.output.max(counted.output));
        assert!(most.input_tokens.is_some_and(|most| input <= most), "input, {}", said());
        assert!(most.output_tokens.is_some_and(|most| output <= most), "output, {}", said());
        assert!(most.tokens.is_some_and(|most| input + output <= most), "tokens, {}", said());
        assert!(most.cost_usd.is_some_and(|most| used.cost.max(counted_cost) <= most + 1e-9), "cost, {}", said());
        let share = |part: u64, all: Option<u64>| number(part) / number(all.unwrap().max(1));
        largest.0 = largest.0.max(share(used.model_calls, most.model_calls));
        largest.1 = largest.1.max(share(input + output, most.tokens));
    }
    largest
}

/// That the worlds come close enough to their estimates for the comparison to mean something.
fn comes_close(largest: (f64, f64)) {
    let (calls, tokens) = largest;
    assert!(
        calls > 0.5 && tokens > 0.2,
        "no world used much of its estimate: {calls} of the calls, {tokens} of the tokens"
    );
}

#[test]
fn no_run_exceeds_its_estimate() {
    comes_close(all_within(0..300));
}

#[test]
#[ignore = "nightly: 100,000 worlds"]
fn no_run_of_a_hundred_thousand_exceeds_its_estimate() {
    comes_close(all_within(0..100_000));
}
