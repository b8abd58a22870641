//! Workflows that `check` passes never end with an error that the document alone shows, and where an order fails because
//! a step was skipped, `check` warned of it.

use std::cell::Cell;
use std::path::PathBuf;

use loopctl::compile::Texts;
use loopctl::diagnostic::{Diagnostic, Source};
use loopctl::drive::engine::Watch;
use loopctl::drive::start::Start;
use loopctl::engine::state::Phase;
use loopctl::{Engine, load_texts};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

use super::choices::{Choices, tapes};
use super::config;

const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
/// Names that steps may write, and one that nobody writes.
const PATHS: [&str; 8] = ["@k0", "@k1", "@k2", "@a", "@one.id", "@__index", "@nobody", "@matched"];
const ORDERS: [&str; 4] = ["greaterThan", "lessThan", "greaterOrEqual", "lessOrEqual"];

/// Makes documents most of whose names some step before writes.
struct FlowMaker {
    choices: Choices,
    /// The names that steps wrote so far, each with a member of its value that is a number.
    written: Vec<(&'static str, &'static str)>,
}

impl FlowMaker {
    fn path(&mut self) -> Value {
        if self.choices.once_in(40) {
            return json!(PATHS[self.choices.below(PATHS.len())]);
        }
        match self.choices.below(self.written.len() + 2) {
            0 => json!(self.choices.of(&["@input.n", "@input.n", "@input.word", "@input.items"])),
            1 => json!("@input.items.length"),
            at => {
                let (name, member) = self.written[at - 2];
                json!(if self.choices.once_in(8) { format!("@{name}") } else { format!("@{name}.{member}") })
            }
        }
    }

    fn template(&mut self) -> String {
        format!("{{{{{}}}}}", self.path().as_str().unwrap().trim_start_matches('@'))
    }

    fn number(&mut self) -> Value {
        json!(self.choices.below(4))
    }

    fn key(&mut self) -> &'static str {
        KEYS[self.choices.below(4)]
    }

    fn condition(&mut self, depth: usize) -> Value {
        match self.choices.below(if depth > 0 { 10 } else { 7 }) {
            0 => json!({ "equal": [self.path(), self.choices.of(&["x", "word"])] }),
            1 => json!({ "hasKey": self.path() }),
            2 => json!({ "notEqual": [self.path(), null] }),
            3 => json!({ "in": [self.path(), [1, "x"]] }),
            4 => json!({ "greaterThan": [{ "length": "@input.items" }, 1 + self.choices.below(3)] }),
            5 | 6 => json!({ self.choices.of(&ORDERS): [self.path(), self.number()] }),
            7 => json!({ "not": self.condition(depth - 1) }),
            other => {
                let parts: Vec<Value> = (0..1 + self.choices.below(3)).map(|_| self.condition(depth - 1)).collect();
                json!({ if other == 8 { "and" } else { "or" }: parts })
            }
        }
    }

    /// A step; some settings of it may be mistakes.
    fn step(&mut self, depth: usize) -> Value {
        let filter = self.choices.once_in(2).then(|| self.condition(2));
        let before = self.written.clone();
        let mut step = match self.choices.below(12) {
            0 | 11 if depth > 0 => self.foreach(depth),
            1 => {
                let objective = format!("Judge {}.", self.template());
                let key = self.key();
                self.written.push((key, "answer.n"));
                json!({ "type": "loop", "properties": { "mode": "react", "tools": [], "objective": objective, "result_key": key } })
            }
            2 => {
                json!({ "type": "matcher", "properties": { "left": "@input.items", "right": "@input.items", "matchOn": ["id"] } })
            }
            3 => {
                let x = if self.choices.once_in(20) { json!("word") } else { json!(1) };
                json!({ "type": "strict", "properties": { "x": x }, "outputKey": "k0" })
            }
            4 if self.choices.once_in(20) => json!({ "type": "nobody", "properties": {} }),
            5 if self.choices.once_in(6) => json!({ "type": "PbotApproval", "properties": { "comment": "Go on?" } }),
            _ => self.call(),
        };
        if let Some(filter) = filter {
            step["filter"] = json!({ "condition": filter });
            if depth > 0 && self.choices.once_in(3) {
                let after = std::mem::replace(&mut self.written, before);
                step["onFalse"] = self.step(depth - 1);
                self.written.extend(after);
            }
        }
        step
    }

    fn call(&mut self) -> Value {
        let count = usize::from(self.choices.once_in(4));
        let values = (0..count).map(|_| match self.choices.below(3) {
            0 => ("text".to_owned(), json!(self.template())),
            _ => ("value".to_owned(), self.path()),
        });
        let values: Map<String, Value> = values.collect();
        let name = ["a", "b"][self.choices.below(2)];
        let key = (self.choices.below(4) > 0).then(|| self.key());
        self.written.push((key.unwrap_or(name), "n"));
        let mut step = json!({ "type": name, "properties": values });
        if let Some(key) = key {
            step["outputKey"] = json!(key);
        }
        step
    }

    fn foreach(&mut self, depth: usize) -> Value {
        let items = if self.choices.once_in(12) { self.path() } else { json!("@input.items") };
        let name = if self.choices.once_in(20) { self.key() } else { "one" };
        self.written.extend([("one", "id"), ("item", "id")]);
        let steps: Vec<Value> = (0..1 + self.choices.below(3)).map(|_| self.step(depth - 1)).collect();
        let mut properties = json!({ "mode": "foreach", "items_path": items, "item_variable_name": name,
            "max_concurrency": 1 + self.choices.below(3), "actions_to_execute": steps });
        let mut gathered = Vec::new();
        if self.choices.once_in(2) {
            let key = self.key();
            properties["collect_results"] = json!(true);
            properties["result_key"] = json!(key);
            gathered.push((key, "1.index"));
            if self.choices.once_in(6) {
                properties["collect"] = self.path();
            }
        }
        self.written.retain(|(name, _)| !["one", "item"].contains(name));
        if self.choices.once_in(4) {
            let key = self.key();
            properties["summary_key"] = json!(key);
            gathered.push((key, "completed"));
        }
        self.written.extend(gathered);
        json!({ "type": "loop", "properties": properties })
    }

    fn document(&mut self) -> Value {
        let steps: Vec<Value> = (0..2 + self.choices.below(6)).map(|_| self.step(2)).collect();
        let mut definition = json!({ "actions": steps });
        if self.choices.once_in(4) {
            definition["output"] = json!({ "of": self.path() });
        }
        if self.choices.once_in(6) {
            definition["condition"] = json!({ self.choices.of(&ORDERS): ["@input.n", self.number()] });
        }
        json!({ "name": "w", "definition": definition, "input": { "type": "object", "required": ["n", "word", "items"],
            "properties": { "n": { "type": "number" }, "word": { "type": "string" }, "items": { "type": "array",
                "items": { "type": "object", "properties": { "id": { "type": "number" } }, "required": ["id"] } } } } })
    }
}

fn texts(document: &Value) -> Texts {
    let action = |name: &str, parameters: Value| {
        json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": "POST",
            "url": format!("https://api.example.com/{name}"), "parameters": parameters })
    };
    let any = json!({ "type": "object" });
    let strict = json!({ "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] });
    let actions = json!([action("a", any.clone()), action("b", any), action("strict", strict)]);
    let mut texts = Texts::new(Source::new("workflow.json", format!("{document:#}")));
    texts.actions.push(Source::new("actions/all.json", actions.to_string()));
    texts
}

/// A run of a sound document that ended, or waits.
struct FlowEnd {
    /// Why it failed.
    error: Option<String>,
    /// What `check` warned of.
    warnings: Vec<Diagnostic>,
}

/// Runs a document; none when it is not sound. An error is one of the machine, which no document may bring about.
fn run(texts: &Texts) -> Option<Result<FlowEnd, String>> {
    let loaded = load_texts(texts, PathBuf::from(".")).ok()?;
    let complete = json!({ "thought": "t", "action": "__complete__", "action_input": { "answer": { "n": 2 } } });
    let result = json!([{ "n": 1, "word": "x" }]);
    let script = json!({ "replies": [complete], "tools": { "a": result, "b": result, "strict": result } });
    let script = serde_json::from_value(script).unwrap();
    let engine = Engine::builder(loaded.program.project.clone(), &loaded.root).script(script).build();
    let input = json!({ "n": 7, "word": "x", "items": [{ "id": 1 }, { "id": 2 }] });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let start = Start { input, ..Start::default() };
    Some(match runtime.block_on(engine.run(&loaded.program, start, Watch::default())) {
        Err(fault) => Err(fault.to_string()),
        Ok(finished) => match finished.state.phase.clone() {
            Phase::Ended(ending) => {
                Ok(FlowEnd { error: ending.error.map(|error| error.message), warnings: loaded.warnings })
            }
            Phase::Paused { .. } => Ok(FlowEnd { error: None, warnings: loaded.warnings }),
            other => Err(format!("it did not end: {other:?}")),
        },
    })
}

/// How many steps write a key, and whether one of them is in a loop.
fn writers(value: &Value, key: &str, in_loop: bool) -> (usize, bool) {
    let mut found = (0, false);
    let mut add = |(count, inside): (usize, bool)| found = (found.0 + count, found.1 | inside);
    match value {
        Value::Array(items) => items.iter().for_each(|item| add(writers(item, key, in_loop))),
        Value::Object(members) => {
            for (name, member) in members {
                if ["outputKey", "result_key", "summary_key"].contains(&name.as_str()) && member == key {
                    add((1, in_loop));
                }
                add(writers(member, key, in_loop || name == "actions_to_execute"));
            }
            let is_named = members.get("type").is_some_and(|kind| kind == key) && !members.contains_key("outputKey");
            add((usize::from(is_named), in_loop));
            let lists = key == "matched" && members.get("type").is_some_and(|kind| kind == "matcher");
            add((usize::from(lists), in_loop));
        }
        _ => {}
    }
    found
}

/// Why a failure is one that `check` should have reported.
fn is_untold(message: &str, document: &Value, warnings: &[Diagnostic]) -> Option<&'static str> {
    if message.contains("can't be judged") && message.contains("is missing") {
        let begin = message.find("can't be judged: ").unwrap() + "can't be judged: ".len();
        let key = message[begin..].trim_start_matches(['`', '"', '@']).split(['.', ' ', '`', '"']).next().unwrap();
        let (count, in_loop) = writers(document, key, false);
        let warned = warnings.iter().any(|fault| fault.code == "L141" && fault.message.contains(&format!("`{key}`")));
        return match count {
            0 if key.starts_with('k') => Some("no step writes the operand"),
            1 if !in_loop && !warned => Some("the step of the operand may be skipped, and nothing was said"),
            _ => None,
        };
    }
    if let Some((before, _)) = message.split_once("` was not given") {
        let key = before.rsplit('`').next().unwrap();
        return (writers(document, key, false).0 == 0).then_some("no step writes the value");
    }
    if message.contains("a value is missing") || message.contains("can't be made") {
        // A part of a value that a tool gave.
        return None;
    }
    let of_input = ["`@input.n`", "`@input.items`", "@input.n is", "@input.items is"];
    let known = ["is no list", "compares two numbers or two times"].iter().any(|why| message.contains(why));
    if known && of_input.iter().any(|path| message.contains(path)) {
        return Some("the schema of the input gives the type");
    }
    let other = known || message.contains("looks into a text") || message.contains("does not fit the action `matcher`");
    (!other).then_some("nothing else should fail")
}

#[test]
fn a_workflow_without_errors_never_fails_for_what_its_document_shows() {
    let (sound, failed) = (Cell::new(0), Cell::new(0));
    let agreed = TestRunner::new(config(400, 9)).run(&tapes(120), |tape| {
        let document = FlowMaker { choices: Choices::new(tape), written: Vec::new() }.document();
        match run(&texts(&document)) {
            None => {}
            Some(Err(fault)) => prop_assert!(false, "{fault}\n{document:#}"),
            Some(Ok(FlowEnd { error, warnings })) => {
                sound.set(sound.get() + 1);
                if let Some(message) = error {
                    failed.set(failed.get() + 1);
                    let untold = is_untold(&message, &document, &warnings);
                    prop_assert!(untold.is_none(), "{untold:?}: {message}\n{warnings:#?}\n{document:#}");
                }
            }
        }
        Ok(())
    });
    agreed.unwrap();
    assert!(sound.get() > 50 && failed.get() > 5, "{} sound, {} failed", sound.get(), failed.get());
}
