//! What a workflow means, said a second time and as plainly as possible: one item after the other, no events, no pauses,
//! no crashes. Each item is worked on alone, so that it says what every item gives, also in a loop that stops.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::calls::RUN_TOKENS;
use super::outside::Outside;
use super::world::Played;

/// The meaning of a workflow.
pub struct Model<'m> {
    pub outside: Outside,
    pub input: &'m Value,
    /// The addresses of calls whose outcome was lost, where that fails the step.
    pub lost: &'m BTreeSet<String>,
    /// The steps that did not begin because the time of their item was over.
    pub late: &'m BTreeSet<String>,
    /// The tokens of the runs so far.
    pub spent: u64,
    /// All steps that fail, by their addresses, with the reason: one of them is the run's.
    pub faults: BTreeMap<String, String>,
    /// The entries of all items, by the address of the item.
    pub entries: BTreeMap<String, Value>,
    /// How many cases of choices ran.
    pub cases: usize,
}

/// The case of a choice: its part of the addresses, and its steps.
struct Case<'s> {
    name: String,
    steps: &'s [Value],
}

/// A list of steps that ended.
#[derive(Default)]
pub struct Listed {
    pub keys: Map<String, Value>,
    pub last: Value,
    pub ran: bool,
    pub failed: bool,
}

/// The names that a step can read, the nearest first.
type Names<'n> = [&'n Map<String, Value>];
/// The output of a step and the keys that it writes; none when it failed.
type Given = Option<(Value, Vec<(String, Value)>)>;

impl<'m> Model<'m> {
    pub fn new(outside: Outside, input: &'m Value, played: &'m Played) -> Self {
        Self {
            outside,
            input,
            lost: &played.lost,
            late: &played.late,
            spent: 0,
            faults: BTreeMap::new(),
            entries: BTreeMap::new(),
            cases: 0,
        }
    }

    /// `most`: the tokens in all after which no further step begins.
    pub fn list(&mut self, steps: &[Value], prefix: &str, around: &Names<'_>, most: u64) -> Listed {
        let mut listed = Listed::default();
        for (number, first) in steps.iter().enumerate() {
            let own = Map::from_iter([("__step".to_owned(), json!(number))]);
            let (mut step, mut name) = (first, id_of(first, number.to_string()));
            loop {
                let names: Vec<_> = [&own, &listed.keys].into_iter().chain(around.iter().copied()).collect();
                let at = format!("{prefix}{name}");
                let holds = step.get("filter").map_or(Some(true), |filter| self.holds(&filter["condition"], &names));
                match (holds, step.get("onFalse")) {
                    (Some(false), Some(other)) => (step, name) = (other, id_of(other, format!("{name}f"))),
                    (Some(false), None) => break,
                    (Some(true), _) if kind_of(step) == "choose" && !self.late.contains(&at) => {
                        let Some(case) = self.case(step, &at, &names) else {
                            (listed.ran, listed.failed) = (true, true);
                            return listed;
                        };
                        let Some(Case { name, steps }) = case else { break };
                        self.cases += 1;
                        let inner = self.list(steps, &format!("{at}.{name}."), &names, most);
                        listed.ran = true;
                        if inner.failed {
                            listed.failed = true;
                            return listed;
                        }
                        listed.keys.extend(inner.keys);
                        listed.last = inner.last;
                        break;
                    }
                    (holds, _) => {
                        listed.ran = true;
                        let is_spent = self.spent >= most;
                        let given = match holds {
                            Some(_) if self.late.contains(&at) => self.fails(&at, "timeout"),
                            Some(_) if is_spent => self.fails(&at, "budget"),
                            Some(_) => self.perform(step, &at, &names),
                            None => self.fails(&at, "bad_condition"),
                        };
                        let Some((output, keys)) = given else {
                            listed.failed = true;
                            return listed;
                        };
                        listed.keys.extend(keys);
                        if kind_of(step) != "wait" {
                            listed.last = output;
                        }
                        break;
                    }
                }
            }
        }
        listed
    }

    /// The first case of a choice that holds, if there is one; none when a condition can't be judged.
    fn case<'s>(&mut self, step: &'s Value, at: &str, names: &Names<'_>) -> Option<Option<Case<'s>>> {
        for (number, case) in step["cases"].as_array().unwrap().iter().enumerate() {
            match self.holds(&case["when"], names) {
                Some(true) => return Some(Some(Case { name: number.to_string(), steps: case["steps"].as_array()? })),
                Some(false) => {}
                None => {
                    self.fails(at, "bad_condition");
                    return None;
                }
            }
        }
        let otherwise = step.get("otherwise").and_then(Value::as_array);
        Some(otherwise.map(|steps| Case { name: "otherwise".to_owned(), steps }))
    }

    fn fails(&mut self, at: &str, code: &str) -> Given {
        self.faults.insert(at.to_owned(), code.to_owned());
        None
    }

    fn perform(&mut self, step: &Value, at: &str, names: &Names<'_>) -> Given {
        let properties = &step["properties"];
        let kind = step["type"].as_str().unwrap();
        let key = step.get("outputKey").and_then(Value::as_str);
        match (kind, properties["mode"].as_str()) {
            ("loop", Some("foreach")) => self.foreach(step, at, names),
            ("loop", _) => {
                let objective = properties["objective"].as_str().unwrap();
                let path = objective.split("{{").nth(1).unwrap().split("}}").next().unwrap();
                let name = path.split('.').next().unwrap();
                let input = match (self.lookup(path, names), self.lookup(name, names)) {
                    (Some(_), Some(_)) if name == "input" => json!({ "input": { "n": self.input["n"] } }),
                    (Some(_), Some(value)) => json!({ name: value }),
                    _ => return self.fails(at, "missing_value"),
                };
                self.spent += RUN_TOKENS;
                let Some(answer) = self.outside.call(kind, &input) else { return self.fails(at, "run_failed") };
                let output = json!({ "answer": answer, "confidence": 1 });
                Some((output.clone(), vec![(properties["result_key"].as_str().unwrap().to_owned(), output)]))
            }
            ("PbotApproval", _) => {
                let asks = properties["comment"].as_str().unwrap();
                let path = asks.split("{{").nth(1).unwrap().split("}}").next().unwrap();
                let payload = self.resolve(&properties["request_payload"], names);
                let (Some(_), Some(payload)) = (self.lookup(path, names), payload) else {
                    return self.fails(at, "missing_value");
                };
                let stops = properties["on_rejected"] == "stop";
                let approved = self.outside.approves(&payload, stops);
                if !approved && stops {
                    return self.fails(at, "rejected");
                }
                let output = json!({ "approved": approved, "comment": null, "data": payload });
                let keys =
                    [("__approved", &output["approved"]), ("__comment", &Value::Null), ("__approval_data", &payload)];
                let mut keys: Vec<_> = keys.into_iter().map(|(key, value)| (key.to_owned(), value.clone())).collect();
                keys.push((key.unwrap().to_owned(), output.clone()));
                Some((output, keys))
            }
            ("wait", _) => Some((Value::Null, Vec::new())),
            ("PbotForm", _) => {
                let expected = properties["expected_keys"].as_array().unwrap();
                match self.outside.fills(at, expected, properties.get("ttl_seconds").is_some()) {
                    Some(filled) => Some((filled.clone().into(), filled.into_iter().collect())),
                    None => self.fails(at, "form_expired"),
                }
            }
            _ => {
                let Some(mut input) = self.resolve(properties, names) else { return self.fails(at, "missing_value") };
                if kind == "claim" && self.outside.lets_expire(&input) {
                    return self.fails(at, "rejected");
                }
                let is_approved = ["pay", "claim", "grant"].contains(&kind);
                if is_approved && !self.outside.approves(&input, true) {
                    return self.fails(at, "rejected");
                }
                if let Some(edited) = self.outside.edits(&input).filter(|_| is_approved) {
                    input = edited;
                }
                if self.lost.contains(at) {
                    return self.fails(at, "uncertain");
                }
                let Some(output) = self.outside.call(kind, &input) else { return self.fails(at, "call_failed") };
                Some((output.clone(), vec![(key.unwrap_or(kind).to_owned(), output)]))
            }
        }
    }

    fn foreach(&mut self, step: &Value, at: &str, names: &Names<'_>) -> Given {
        let properties = &step["properties"];
        let list = self.lookup(properties["items_path"].as_str().unwrap().trim_start_matches('@'), names);
        let items = match list {
            None => return self.fails(at, "missing_value"),
            Some(Value::Array(items)) => items,
            Some(_) => return self.fails(at, "not_a_list"),
        };
        let (mut entries, mut keys, mut counts) = (Vec::new(), Map::new(), [0_u64; 3]);
        let mut failed_indexes = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let name = properties["item_variable_name"].as_str().unwrap();
            let given = json!({ name: item, "item": item, "__index": index, "__count": items.len() });
            let given = given.as_object().unwrap();
            let around: Vec<_> = std::iter::once(given).chain(names.iter().copied()).collect();
            let steps = properties["actions_to_execute"].as_array().unwrap();
            let most = properties["item_budget"]["tokens"].as_u64().map_or(u64::MAX, |most| self.spent + most);
            let listed = self.list(steps, &format!("{at}.{index}."), &around, most);
            let (status, count) = match (listed.failed, listed.ran) {
                (true, _) => ("failed", 1),
                (false, true) => ("completed", 0),
                (false, false) => ("skipped", 2),
            };
            counts[count] += 1;
            let mut entry = json!({ "index": index, "status": status });
            if status == "failed" {
                failed_indexes.push(index);
            } else if status == "completed" {
                let around: Vec<_> = std::iter::once(&listed.keys).chain(around.iter().copied()).collect();
                entry["output"] = match properties.get("collect").and_then(Value::as_str) {
                    Some(path) => self.lookup(path.trim_start_matches('@'), &around).unwrap_or_default(),
                    None => listed.last.clone(),
                };
            }
            self.entries.insert(format!("{at}.{index}"), entry.clone());
            entries.push(entry);
            keys.extend(listed.keys);
        }
        let most = match properties["failure_strategy"].as_str() {
            Some("continue_on_error") => properties["max_failures"].as_u64().unwrap_or(u64::MAX),
            _ => 0,
        };
        if counts[1] > most {
            return None;
        }
        let [completed, failed, skipped] = counts;
        let counts = json!({ "total": items.len(), "completed": completed, "failed": failed, "skipped": skipped,
            "cancelled": 0, "failed_indexes": failed_indexes });
        let collects = properties["collect_results"] == true;
        let text = |key: &str| properties.get(key).and_then(Value::as_str).map(str::to_owned);
        keys.extend(text("result_key").filter(|_| collects).map(|key| (key, json!(entries))));
        keys.extend(text("summary_key").map(|key| (key, counts.clone())));
        Some((if collects { json!(entries) } else { counts }, keys.into_iter().collect()))
    }

    fn lookup(&self, path: &str, names: &Names<'_>) -> Option<Value> {
        let mut parts = path.split('.');
        let first = parts.next()?;
        let found = if first == "input" { Some(self.input) } else { names.iter().find_map(|names| names.get(first)) };
        parts.try_fold(found?.clone(), |value, part| value.get(part).cloned())
    }

    fn resolve(&self, value: &Value, names: &Names<'_>) -> Option<Value> {
        match value {
            Value::String(text) if text == "@now" => Some(json!("now")),
            Value::String(text) if text == "{{__count}} items" => {
                Some(json!(format!("{} items", self.lookup("__count", names)?)))
            }
            Value::String(text) if text.starts_with('@') => self.lookup(&text[1..], names),
            Value::Array(items) => items.iter().map(|item| self.resolve(item, names)).collect(),
            Value::Object(members) => {
                let member = |(key, value): (&String, &Value)| Some((key.clone(), self.resolve(value, names)?));
                members.iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
            }
            other => Some(other.clone()),
        }
    }

    /// Whether a condition holds; none when it can't be judged.
    fn holds(&self, condition: &Value, names: &Names<'_>) -> Option<bool> {
        let (operator, operands) = condition.as_object()?.iter().next()?;
        let operand = |value: &Value| match value {
            Value::Object(length) => {
                let found = self.lookup(&length["length"].as_str()?[1..], names);
                Some(json!(found.map_or(0, |list| list.as_array().map_or(0, Vec::len))))
            }
            other => self.resolve(other, names),
        };
        match operator.as_str() {
            "not" => self.holds(operands, names).map(|holds| !holds),
            "and" => operands.as_array()?.iter().try_fold(true, |all, part| Some(all && self.holds(part, names)?)),
            "hasKey" => Some(self.lookup(operands.as_str()?, names).is_some()),
            "equal" => Some(operand(&operands[0]) == operand(&operands[1])),
            "greaterThan" => Some(operand(&operands[0])?.as_u64()? > operand(&operands[1])?.as_u64()?),
            other => panic!("the model does not know {other}"),
        }
    }
}

fn kind_of(step: &Value) -> &str {
    step["type"].as_str().unwrap()
}

fn id_of(step: &Value, otherwise: String) -> String {
    step.get("id").and_then(Value::as_str).map_or(otherwise, str::to_owned)
}
