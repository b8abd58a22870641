//! The workflows that are played: random trees of steps, with all that decides how they go on.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use loopctl::Program;
use loopctl::compile::{Texts, compile};
use loopctl::diagnostic::Source;
use serde_json::{Value, json};

use crate::simulation::chance::Chance;

/// A workflow, as it is written and compiled.
pub struct Made {
    pub document: Value,
    pub program: Arc<Program>,
}

/// What a workflow is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// All kinds of steps.
    All,
    /// No loop goes on after a failure, so that all that failed runs again on request.
    Stops,
    /// One loop that goes on after failures and gathers what its items give, with steps whose input does not depend on
    /// the place of the item.
    Shuffled,
}

/// The workflow of this number; `alone`: the same with `max_concurrency` 1.
pub fn made(number: u64, purpose: Purpose, alone: bool) -> Arc<Made> {
    type Known = HashMap<(u64, Purpose, bool), Arc<Made>>;
    static MADE: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let key = (number, purpose, alone);
    if let Some(known) = MADE.lock().unwrap().get(&key) {
        return Arc::clone(known);
    }
    let (chance, waits) = (Chance::new(number ^ 0x00f1_0000), Chance::new(number ^ 0x0a17_0000));
    let choices = Chance::new(number ^ 0x0c40_0000);
    let mut maker = Maker { chance, waits, choices, purpose, alone, steps: 0, choices_made: 0 };
    let document = maker.document();
    let mut texts = Texts::new(Source::new("workflow.json", document.to_string()));
    texts.actions.push(Source::new("actions/all.json", actions().to_string()));
    let compiled = compile(&texts);
    let program = compiled.program.unwrap_or_else(|| panic!("{document:#}\n{:#?}", compiled.diagnostics));
    let made = Arc::new(Made { document, program });
    MADE.lock().unwrap().insert(key, Arc::clone(&made));
    made
}

fn actions() -> Value {
    let action = |name: &str, method: &str, more: Value| {
        let mut action = json!({ "action_name": name, "kind": "http", "description": "Does it.", "http_method": method,
            "url": "https://x.example/", "parameters": { "type": "object" } });
        for (key, value) in more.as_object().unwrap() {
            action[key] = value.clone();
        }
        action
    };
    let expiring = |name: &str, on_expiry: &str| {
        let approval = json!({ "expires_after_ms": 1_000_000, "on_expiry": on_expiry });
        action(name, "POST", json!({ "requires_approval": true, "approval": approval }))
    };
    json!([
        action("look", "GET", json!({})),
        action("work", "POST", json!({})),
        action("put", "POST", json!({ "idempotent": true })),
        action("send", "POST", json!({ "on_uncertain": "retry" })),
        action("drop", "POST", json!({ "on_uncertain": "fail" })),
        action("pay", "POST", json!({ "requires_approval": true })),
        expiring("claim", "deny"),
        expiring("grant", "escalate"),
    ])
}

struct Maker {
    chance: Chance,
    /// Where steps wait for a time: apart, so that the other steps of a document stay what they were.
    waits: Chance,
    /// Where a case of several runs: apart for the same reason.
    choices: Chance,
    purpose: Purpose,
    alone: bool,
    steps: usize,
    choices_made: usize,
}

/// Paths that lead to a number, in one list of steps. Those of skipped steps lead nowhere.
type Names = Vec<String>;

impl Maker {
    fn document(&mut self) -> Value {
        // The whole input holds the items in their order.
        let mut names: Names = if self.purpose == Purpose::Shuffled { Vec::new() } else { vec!["input".to_owned()] };
        let count = 1 + self.chance.below(6);
        let steps = match self.purpose {
            Purpose::Shuffled => vec![self.foreach("each", 0, &mut names)],
            _ => self.list(count, 0, &mut names),
        };
        let mut definition = json!({ "actions": steps });
        if self.purpose == Purpose::All && self.chance.one_in(4) {
            definition["budget"] = json!({ "tokens": self.chance.pick(&[20, 50, 1_000_000]) });
        }
        json!({ "name": "simulated", "definition": definition })
    }

    fn list(&mut self, count: u64, depth: usize, names: &mut Names) -> Vec<Value> {
        let mut steps: Vec<Value> = (0..count).map(|_| self.step(depth, names)).collect();
        if self.waits.one_in(4) {
            let at = self.waits.below(count + 1);
            let filter = self.waits.one_in(4).then(|| json!({ "condition": { "hasKey": "f0" } }));
            let mut wait = json!({ "type": "wait", "properties": { "for": "10m" } });
            if let Some(filter) = filter {
                wait["filter"] = filter;
            }
            steps.insert(usize::try_from(at).unwrap(), wait);
        }
        if self.purpose != Purpose::Shuffled && self.choices.one_in(4) {
            let at = self.choices.below(count + 1);
            let choice = self.choice();
            steps.insert(usize::try_from(at).unwrap(), choice);
        }
        steps
    }

    /// A choice whose cases call, by the number of the input or by a key that may not be there.
    fn choice(&mut self) -> Value {
        self.choices_made += 1;
        let id = format!("c{}", self.choices_made);
        let mut call = |case: &str| {
            let kind = self.choices.pick(&["look", "put"]);
            let step = json!({ "step": format!("{id}{case}"), "of": "@input.n" });
            json!([{ "type": kind, "properties": step, "outputKey": format!("{id}{case}") }])
        };
        let steps = [call("a"), call("b"), call("c")];
        let number = self.choices.below(9);
        let last = match self.choices.below(4) {
            0 => json!({ "hasKey": "f0" }),
            1 => json!({ "greaterThan": [{ "length": "@input.items" }, number] }),
            _ => json!({ "greaterThan": ["@input.n", number / 2] }),
        };
        let [first, second, otherwise] = steps;
        let cases = json!([{ "when": { "equal": ["@input.n", number] }, "steps": first },
            { "when": last, "steps": second }]);
        let mut choice = json!({ "type": "choose", "id": id, "cases": cases });
        if self.choices.one_in(2) {
            choice["otherwise"] = otherwise;
        }
        choice
    }

    fn step(&mut self, depth: usize, names: &mut Names) -> Value {
        self.steps += 1;
        let id = format!("s{}", self.steps);
        let filter = self.chance.one_in(3).then(|| self.condition(names));
        let before = names.clone();
        let kind = self.chance.below(if depth == 0 { 16 } else { 10 + 4 * u64::from(depth < 3) });
        let mut step = match kind {
            0 => self.approval(&id, names),
            1 if self.purpose != Purpose::Shuffled => self.form(&id, names),
            2 | 3 => self.react(&id, names),
            10.. if self.steps < 24 => self.foreach(&id, depth, names),
            _ => self.call(&id, names),
        };
        if self.chance.one_in(8) || kind >= 10 {
            step["id"] = json!(id);
        }
        if let Some(filter) = filter {
            step["filter"] = json!({ "condition": filter });
            if self.chance.one_in(3) {
                let mut others = before;
                step["onFalse"] = self.step(depth, &mut others);
                names.extend(others);
            }
        }
        step
    }

    fn name(&mut self, names: &Names) -> String {
        // The nearest ones more often.
        let last = names.len() - 1 - self.chance.below(names.len().min(3) as u64) as usize;
        if self.chance.one_in(3) { self.chance.pick(names) } else { names[last].clone() }
    }

    fn value(&mut self, names: &Names) -> String {
        let name = self.name(names);
        if name == "input" { "@input.n".to_owned() } else { format!("@{name}") }
    }

    fn condition(&mut self, names: &Names) -> Value {
        let name = self.name(names);
        let number = self.chance.below(6);
        match self.chance.below(6) {
            0 => json!({ "equal": [format!("@{name}.n"), number] }),
            1 => json!({ "not": { "equal": [format!("@{name}.n"), number] } }),
            2 => json!({ "hasKey": format!("{name}.n") }),
            3 => json!({ "greaterThan": [{ "length": format!("@{name}.list") }, number / 2] }),
            _ => {
                json!({ "and": [{ "hasKey": format!("{name}.n") }, { "greaterThan": [format!("@{name}.n"), number] }] })
            }
        }
    }

    fn call(&mut self, id: &str, names: &mut Names) -> Value {
        let kind = self.chance.pick(&["look", "work", "work", "work", "put", "send", "drop", "pay", "claim", "grant"]);
        let mut properties = json!({ "step": id, "of": self.value(names) });
        if self.purpose != Purpose::Shuffled {
            if self.chance.one_in(4) {
                properties["at"] = json!("@now");
            }
            if self.chance.one_in(4) && names.iter().any(|name| name.starts_with("item")) {
                properties["index"] = json!(["@__index", "{{__count}} items"]);
            }
            if self.chance.one_in(4) {
                properties["number"] = json!("@__step");
            }
        }
        let mut step = json!({ "type": kind, "properties": properties });
        let key = if self.chance.one_in(3) { kind.to_owned() } else { format!("k{}", self.chance.below(5)) };
        if key != kind {
            step["outputKey"] = json!(key);
        }
        if kind == "put" {
            step["retry"] = json!({ "attempts": 3 });
        }
        names.push(key);
        step
    }

    fn approval(&mut self, id: &str, names: &mut Names) -> Value {
        let name = self.name(names);
        let mut properties = json!({ "comment": format!("{id} of {{{{{name}.n}}}}?"),
            "request_payload": { "step": id, "of": format!("@{name}.n") } });
        let rule = if self.purpose == Purpose::Stops { "stop" } else { self.chance.pick(&["stop", "go_on", "go_on"]) };
        properties["on_rejected"] = json!(rule);
        json!({ "type": "PbotApproval", "properties": properties, "outputKey": format!("k{}", self.chance.below(5)) })
    }

    fn form(&mut self, _: &str, names: &mut Names) -> Value {
        let keys: Vec<String> = (0..1 + self.chance.below(2)).map(|key| format!("f{key}")).collect();
        names.extend(keys.iter().cloned());
        let mut properties = json!({ "expected_keys": keys });
        if self.chance.one_in(2) {
            properties["ttl_seconds"] = json!(1000);
        }
        json!({ "type": "PbotForm", "properties": properties })
    }

    fn react(&mut self, id: &str, names: &mut Names) -> Value {
        let key = format!("k{}", self.chance.below(5));
        let objective = format!("{id}: judge {{{{{}.n}}}}.", self.name(names));
        names.push(format!("{key}.answer"));
        json!({ "type": "loop", "properties": { "mode": "react", "objective": objective, "tools": [], "result_key": key } })
    }

    fn foreach(&mut self, id: &str, depth: usize, names: &mut Names) -> Value {
        let is_shuffled = self.purpose == Purpose::Shuffled && depth == 0;
        let own = self.chance.one_in(3) && depth > 0;
        let items = match names.iter().rfind(|name| own || !name.starts_with("item")) {
            Some(name) if name != "input" && self.chance.one_in(2) => format!("@{name}.list"),
            _ if depth > 0 => format!("@item{}.list", depth - 1),
            _ => "@input.items".to_owned(),
        };
        let item = format!("item{depth}");
        let mut inside = names.clone();
        inside.push(item.clone());
        let count = 1 + self.chance.below(4);
        let steps = self.list(count, depth + 1, &mut inside);
        let concurrency = 1 + self.chance.below(7);
        let (on_pause, goes_on) = (self.chance.pick(&["wait", "go_on"]), self.chance.one_in(2));
        let mut properties = json!({ "mode": "foreach", "items_path": items, "item_variable_name": item,
            "actions_to_execute": steps, "max_concurrency": if self.alone { 1 } else { concurrency },
            "on_pause": if self.alone { "wait" } else { on_pause } });
        if is_shuffled || goes_on && self.purpose != Purpose::Stops {
            properties["failure_strategy"] = json!("continue_on_error");
            if self.chance.one_in(3) && self.purpose == Purpose::All {
                properties["max_failures"] = json!(self.chance.below(3));
            }
        }
        if self.chance.one_in(3) {
            // What failed, and runs again, has spent already.
            let most = if self.purpose == Purpose::Stops { 200_000 } else { self.chance.pick(&[10, 10, 20, 200_000]) };
            properties["item_budget"] = json!({ "tokens": most });
        }
        if self.chance.one_in(5) && self.purpose == Purpose::All {
            properties["item_timeout_ms"] = json!(self.chance.pick(&[4, 12, 40]));
        }
        if !self.chance.one_in(4) || is_shuffled {
            properties["collect_results"] = json!(true);
            properties["result_key"] = json!(format!("all{depth}"));
        }
        if self.chance.one_in(3) {
            let from = self.name(&inside);
            properties["collect"] = json!(format!("@{from}.n"));
        }
        if self.chance.one_in(2) {
            properties["summary_key"] = json!(format!("counts{depth}"));
        }
        json!({ "type": "loop", "id": id, "properties": properties })
    }
}
