//! What is meant by a value of a type that its field does not take.

use serde_json::{Map, Value, json};

use super::Walker;
use super::form::SchemaForm;
use crate::syntax::foreign_condition::{KnownValues, condition, lone_path, operator};
use crate::syntax::foreign_words;
use crate::syntax::{Node, NodeKind, quoted, token};

/// The longest value that a suggestion repeats, in bytes, and the most entries of a list that it reads.
const MAX_SHOWN_BYTES: usize = 400;
const MAX_ENTRIES: usize = 50;

const A_CONDITION: &str = "a condition compares two values, {\"equal\": [\"@input.kind\", \"refund\"]}, or asks whether there is \
                           one: {\"hasKey\": \"@input.note\"}";
const TWO_OPERANDS: &str = "it compares two operands, in a list: [\"@input.kind\", \"refund\"]";

/// What is meant by a value.
pub(super) struct MeantValue {
    pub help: String,
    /// What is written in its place, when that is known.
    pub instead: Option<String>,
}

fn meant(help: impl Into<String>, instead: Option<String>) -> Option<MeantValue> {
    Some(MeantValue { help: help.into(), instead })
}

/// Whether a form is a condition.
pub(super) fn is_condition(form: &SchemaForm) -> bool {
    form.keyed.iter().any(|(known, _)| *known == "hasKey")
        || form.any_of.iter().any(|branch| branch.keyed.iter().any(|(known, _)| *known == "hasKey"))
}

fn is_filter(form: &SchemaForm) -> bool {
    let holds_condition = |form: &SchemaForm| form.required.as_slice() == ["condition"];
    holds_condition(form) || form.any_of.iter().any(|branch| holds_condition(branch))
}

impl KnownValues for Walker<'_> {
    fn path_of(&self, name: &str) -> String {
        self.named_value(name)
    }

    fn is_of_call(&self) -> bool {
        self.pointer.ends_with("/requires_approval")
    }

    fn is_boolean(&self, path: &str) -> Option<bool> {
        let names: String = path
            .strip_prefix("input.")?
            .split('.')
            .fold(String::new(), |at, name| format!("{at}/properties/{}", token(name)));
        let kind = self.tree.at(&format!("/input{names}/type"))?.as_str()?;
        Some(kind == "boolean")
    }
}

impl Walker<'_> {
    /// What is meant by a value of a wrong type, where other products write it so.
    pub(super) fn meant_value(&self, form: &SchemaForm, types: &[&str], node: &Node) -> Option<MeantValue> {
        let takes = |name: &str| types.contains(&name);
        let last = self.pointer.rsplit('/').next().unwrap_or_default();
        if takes("boolean")
            && let Some(meant) = self.meant_boolean(node)
        {
            return Some(meant);
        }
        if is_condition(form) || is_filter(form) {
            return self.meant_condition(node, is_filter(form), takes("boolean"));
        }
        match last {
            "and" | "or" if takes("array") => return self.meant_parts(node),
            "hasKey" => return self.meant_key(node),
            _ if takes("array") && form.count == (Some(2), Some(2)) => return self.meant_operands(node),
            "input" if self.pointer.ends_with("/trigger/webhook/input") => {
                let help = "it has the names of the workflow's `input`, each with a part of the delivery: {\"order\": \
                            \"@body.order.id\"}";
                return meant(help, None);
            }
            "parameters" | "input" | "answer_schema" | "schema" if takes("object") => return self.meant_schema(node),
            "approvers" if node.items().is_some() => {
                return meant("it is how many different people must approve the call, and not who", None);
            }
            "approval" if matches!(node.kind, NodeKind::Bool(_)) => {
                let help = "`approval` says how an approval is given; that a human is asked is said by \
                            \"requires_approval\": true";
                return meant(help, None);
            }
            "retry" if matches!(node.kind, NodeKind::Number(_)) => {
                let meant_retry = format!("{{\"attempts\": {}}}", self.tree.raw(node.span));
                return meant(format!("the number of attempts is one of its fields: {meant_retry}"), Some(meant_retry));
            }
            "retry" => {
                return meant("it is one object: {\"attempts\": 3, \"base_ms\": 1000, \"max_ms\": 30000}", None);
            }
            "model" => return self.meant_model(node),
            "schedule" if node.as_str().is_some() => {
                let help = "it is an object, with an interval as `every` and a time of the day as `at`: {\"every\": \"1d\", \
                            \"at\": \"09:00\"}";
                return meant(help, None);
            }
            "definition" if node.items().is_some() => {
                let steps = self.tree.raw(node.span);
                let instead = (steps.len() <= MAX_SHOWN_BYTES).then(|| format!("{{\"actions\": {steps}}}"));
                return meant("the steps are the list `actions` in it: {\"actions\": [...]}", instead);
            }
            "actions" | "actions_to_execute" if node.members().is_some() => {
                let help = "the steps are a list, in their order; the name of a step is its `id`: [{\"id\": \"first\", \
                            \"type\": \"...\"}]";
                return meant(help, None);
            }
            "tools" if node.members().is_some() => {
                return meant("it is a list: [{\"type\": \"action\", \"name\": \"lookup\"}]", None);
            }
            "headers" | "query" if takes("object") && !takes("string") => {
                return meant("it has the names as its fields: {\"Name\": \"{{name}}\"}", None);
            }
            "onFalse" => return self.meant_step(node),
            _ if last.bytes().all(|byte| byte.is_ascii_digit()) && self.pointer.contains("/expected_keys/") => {
                let name = node.get("name").or_else(|| node.get("key")).and_then(Node::as_str);
                return meant("it is the name of a field alone: \"reason\"", name.map(quoted));
            }
            _ => {}
        }
        None
    }

    /// A model with its provider, which the project file has.
    fn meant_model(&self, node: &Node) -> Option<MeantValue> {
        let is_name = |key: &str| matches!(key, "model" | "name" | "id");
        // A provider or an address that is written here must not be lost.
        let is_lone = node.members()?.iter().all(|member| is_name(&member.key));
        let name = ["model", "name", "id"].iter().find_map(|name| node.get(name)?.as_str()).filter(|_| is_lone);
        let help = "it is the name of a model of the project; its provider, address and key are in the `models` of loopctl.json";
        meant(help, name.map(quoted))
    }

    /// The step that runs in place of another one.
    fn meant_step(&self, node: &Node) -> Option<MeantValue> {
        const HELP: &str = "it is one step: {\"type\": \"...\", \"properties\": {...}}";
        let lone = node.items().and_then(|items| items.first().filter(|_| items.len() == 1));
        let raw = lone.map(|step| self.tree.raw(step.span)).filter(|raw| raw.len() <= MAX_SHOWN_BYTES);
        meant(HELP, raw.map(str::to_owned))
    }

    fn meant_boolean(&self, node: &Node) -> Option<MeantValue> {
        let word = match &node.kind {
            NodeKind::String(text) => foreign_words::boolean(text),
            NodeKind::Number(_) => foreign_words::boolean(self.tree.raw(node.span)),
            _ => None,
        }?;
        meant(format!("write `{word}`, without quotes"), Some(word.to_string()))
    }

    /// A condition that is a text, a list, or true.
    fn meant_condition(&self, node: &Node, is_filter: bool, is_approval: bool) -> Option<MeantValue> {
        let in_filter = |condition: String| match is_filter {
            true => format!("{{\"condition\": {condition}}}"),
            false => condition,
        };
        let found = self.as_condition(node).filter(|_| node.members().is_none());
        if let Some(condition) = found.map(in_filter) {
            let shown: Vec<&str> = condition.split_whitespace().collect();
            return meant(format!("a condition is an object: {}", shown.join(" ")), Some(condition));
        }
        let is_whole = is_filter || self.pointer.ends_with("/filter/condition");
        match &node.kind {
            NodeKind::Bool(true) if is_whole => {
                meant("a step without a `filter` always runs: leave the `filter` out", None)
            }
            NodeKind::Bool(false) if is_whole => meant("a step that never runs is left out of the list", None),
            NodeKind::Bool(true) if self.pointer == "/definition/condition" => {
                meant("a workflow without a `condition` always runs: leave it out", None)
            }
            NodeKind::String(text) if let Some(path) = lone_path(text, self) => {
                let [holds, is_there] =
                    [format!("{{\"equal\": [\"@{path}\", true]}}"), format!("{{\"hasKey\": \"@{path}\"}}")]
                        .map(in_filter);
                meant(format!("that the value is true is {holds}, and that there is one {is_there}"), None)
            }
            _ if is_approval => meant(
                "it is true, or a condition on the input of the call: {\"greaterThan\": [\"@input.amount\", 500]}",
                None,
            ),
            NodeKind::Array(_) if self.pointer.ends_with("/not") => meant(
                "it takes one condition, and several are put together in it: {\"not\": {\"or\": [{...}, {...}]}}",
                None,
            ),
            NodeKind::Null => None,
            _ if is_filter => meant(
                "a step runs only when its `filter` holds: {\"condition\": {\"equal\": [\"@input.kind\", \"refund\"]}}",
                None,
            ),
            _ => meant(A_CONDITION, None),
        }
    }

    /// The parts of an `and` or `or` that are no list.
    fn meant_parts(&self, node: &Node) -> Option<MeantValue> {
        const HELP: &str = "it takes a list of conditions, each an object of its own";
        let parts: Option<Vec<String>> = match &node.kind {
            NodeKind::Object(members) => members
                .iter()
                .map(|member| {
                    let ours = operator(&member.key).unwrap_or(&*member.key);
                    Some(format!("{{{}: {}}}", quoted(ours), self.tree.raw(member.value.span)))
                })
                .collect(),
            NodeKind::String(text) => condition(text, self).map(|part| vec![part]),
            _ => None,
        };
        let instead = parts.map(|parts| format!("[{}]", parts.join(", "))).filter(|text| text.len() <= MAX_SHOWN_BYTES);
        let shown = "[{\"equal\": [\"@input.kind\", \"refund\"]}, {\"hasKey\": \"@input.note\"}]";
        meant(format!("{HELP}: {}", instead.as_deref().unwrap_or(shown)), instead)
    }

    /// The operands of a comparison that are no list.
    fn meant_operands(&self, node: &Node) -> Option<MeantValue> {
        let instead = match &node.kind {
            NodeKind::Object(members) => match members.as_slice() {
                [one, other] => {
                    let is_left = |key: &str| super::step_condition::LEFT.contains(&key);
                    let is_right = |key: &str| super::step_condition::RIGHT.contains(&key);
                    let [first, second] = [one, other].map(|member| self.tree.raw(member.value.span));
                    match (is_left(&one.key) && is_right(&other.key), is_left(&other.key) && is_right(&one.key)) {
                        (true, _) => Some(format!("[{first}, {second}]")),
                        (_, true) => Some(format!("[{second}, {first}]")),
                        _ => None,
                    }
                }
                [lone] => {
                    lone_path(&lone.key, self).map(|path| format!("[\"@{path}\", {}]", self.tree.raw(lone.value.span)))
                }
                _ => None,
            },
            NodeKind::String(text) => lone_path(text, self)
                .filter(|path| self.is_boolean(path) == Some(true))
                .map(|path| format!("[\"@{path}\", true]")),
            _ => None,
        };
        let instead = instead.filter(|text| text.len() <= MAX_SHOWN_BYTES);
        meant(
            instead
                .as_ref()
                .map_or(TWO_OPERANDS.to_owned(), |list| format!("it compares two operands, in a list: {list}")),
            instead,
        )
    }

    fn meant_key(&self, node: &Node) -> Option<MeantValue> {
        const HELP: &str =
            "it takes one `@path`: {\"hasKey\": \"@input.note\"}; several are parts of an `and`, or of an `or`";
        let lone = match &node.kind {
            NodeKind::Object(members) => members.first().filter(|_| members.len() == 1).map(|member| &member.value),
            NodeKind::Array(items) => items.first().filter(|_| items.len() == 1),
            _ => return None,
        };
        meant(HELP, lone.and_then(Node::as_str).filter(|text| text.starts_with('@')).map(quoted))
    }

    /// A list of parameters in place of their schema, as `[{"name": "x", "type": "string"}]` or `["x"]`.
    fn meant_schema(&self, node: &Node) -> Option<MeantValue> {
        const HELP: &str = "it is a JSON Schema, which says what each name holds";
        let shown =
            "{\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}, \"required\": [\"name\"]}";
        let items = match &node.kind {
            NodeKind::Array(items) if items.len() <= MAX_ENTRIES => items,
            NodeKind::Null => return None,
            _ => return meant(format!("{HELP}: {shown}"), None),
        };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for item in items {
            let Some(entry) = ListedParameter::of(item).filter(|entry| !properties.contains_key(&entry.name)) else {
                return meant(format!("{HELP}: {shown}"), None);
            };
            if entry.is_required {
                required.push(Value::from(entry.name.clone()));
            }
            properties.insert(entry.name, entry.schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if let Some(members) = schema.as_object_mut().filter(|_| !required.is_empty()) {
            members.insert("required".to_owned(), Value::Array(required));
        }
        let schema = schema.to_string();
        match items.is_empty() || schema.len() > 4 * MAX_SHOWN_BYTES {
            true => meant(format!("{HELP}: {shown}"), None),
            false => meant(format!("{HELP}: {schema}"), Some(schema)),
        }
    }
}

/// An entry of a list of parameters.
struct ListedParameter {
    name: String,
    schema: Value,
    is_required: bool,
}

impl ListedParameter {
    fn of(item: &Node) -> Option<Self> {
        if let Some(name) = item.as_str() {
            return Some(Self { name: name.to_owned(), schema: json!({ "type": "string" }), is_required: true });
        }
        let members = item.members()?;
        let text = |names: &[&str]| names.iter().find_map(|name| item.get(name)?.as_str());
        let name = text(&["name", "key", "id", "param"])?;
        let mut schema = Map::new();
        // OpenAPI's say where they are, and need be there only when they say so.
        let mut is_required = item.get("in").is_none() && item.get("default").is_none();
        for member in members {
            match &*member.key {
                "name" | "key" | "id" | "param" | "in" | "label" | "displayName" => {}
                "required" | "optional" => {
                    let NodeKind::Bool(given) = member.value.kind else { return None };
                    is_required = given == (&*member.key == "required");
                }
                "schema" => {
                    for inner in member.value.members()? {
                        schema.insert(inner.key.to_string(), inner.value.value());
                    }
                }
                "type" => {
                    let word = member.value.as_str()?;
                    let word = match word.to_ascii_lowercase().as_str() {
                        "str" | "text" => "string".to_owned(),
                        "int" => "integer".to_owned(),
                        "bool" => "boolean".to_owned(),
                        "float" => "number".to_owned(),
                        "list" => "array".to_owned(),
                        "dict" | "json" => "object".to_owned(),
                        other => other.to_owned(),
                    };
                    schema.insert("type".to_owned(), Value::from(word));
                }
                key => {
                    schema.insert(key.to_owned(), member.value.value());
                }
            }
        }
        Some(Self { name: name.to_owned(), schema: Value::Object(schema), is_required })
    }
}
