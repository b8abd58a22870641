//! The schemas, made once, and what is asked of them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::compile::parse::{Kind, Node};
use crate::language::schema::{KINDS, schema};

/// The schema of a kind of document.
#[derive(Debug)]
pub(crate) struct Known {
    /// The schema itself.
    pub schema: Value,
    /// Where each field may stand, the shortest way first: `properties.on_stuck`.
    homes: BTreeMap<String, Vec<String>>,
}

/// The schema of a kind of document, by its name in [`KINDS`].
pub(crate) fn known(kind: &str) -> Option<&'static Known> {
    static ALL: LazyLock<BTreeMap<&'static str, Known>> = LazyLock::new(|| {
        KINDS.into_iter().filter_map(|kind| schema(kind).map(|schema| (kind, Known::new(schema)))).collect()
    });
    ALL.get(kind)
}

impl Known {
    fn new(schema: Value) -> Self {
        let mut known = Self { schema, homes: BTreeMap::new() };
        let mut homes = BTreeMap::new();
        known.gather(&known.schema, "", &mut homes);
        for paths in homes.values_mut() {
            paths.sort_by_key(|path: &String| (path.matches('.').count(), path.len()));
            paths.dedup();
        }
        known.homes = homes;
        known
    }

    fn gather(&self, schema: &Value, path: &str, homes: &mut BTreeMap<String, Vec<String>>) {
        // Our types do not contain themselves; the bound is for one that some day does.
        if path.matches('.').count() > 6 {
            return;
        }
        let schema = self.resolve(schema);
        for branches in ["anyOf", "oneOf"] {
            for branch in schema.get(branches).and_then(Value::as_array).into_iter().flatten() {
                self.gather(branch, path, homes);
            }
        }
        if let Some(items) = schema.get("items") {
            self.gather(items, &format!("{path}[]"), homes);
        }
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            homes.entry(name.clone()).or_default().push(path.to_owned());
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.gather(field, &below, homes);
        }
    }

    /// Where a field of this name may stand, other than at `here` (a JSON pointer), in words.
    pub(super) fn home(&self, name: &str, here: &str) -> Option<String> {
        let here: Vec<&str> = here.split('/').skip(1).collect();
        let path = self.homes.get(name)?.iter().find(|path| !same(path, &here))?;
        Some(match path.strip_suffix("[]") {
            _ if path.is_empty() => "at the top of the document".to_owned(),
            Some("") => "in an entry of the document".to_owned(),
            Some(array) => format!("in an entry of `{array}`"),
            None => format!("in `{path}`"),
        })
    }

    /// The schema that a reference leads to.
    pub(super) fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let mut at = schema;
        // A chain of references is short; the bound is for one that bites its tail.
        for _ in 0..16 {
            let Some(pointer) = at.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#')) else {
                return at;
            };
            match self.schema.pointer(pointer) {
                Some(next) => at = next,
                None => return at,
            }
        }
        at
    }

    /// Whether a value has a type that the schema takes; what is inside is not looked at.
    pub(super) fn takes(&self, schema: &Value, node: &Node) -> bool {
        let types = self.types(schema);
        types.is_empty() || types.iter().any(|expected| is_of(node, expected))
    }

    /// The names of the JSON types that a schema takes; empty when it takes all.
    pub(super) fn types(&self, schema: &Value) -> Vec<String> {
        let schema = self.resolve(schema);
        let named = |value: &Value| value.as_str().map(str::to_owned);
        match schema.get("type") {
            Some(Value::Array(types)) => return types.iter().filter_map(named).collect(),
            Some(one) => return named(one).into_iter().collect(),
            None => {}
        }
        let mut types: Vec<String> = Vec::new();
        for branches in ["anyOf", "oneOf"] {
            for branch in schema.get(branches).and_then(Value::as_array).into_iter().flatten() {
                for name in self.types(branch) {
                    if !types.contains(&name) {
                        types.push(name);
                    }
                }
            }
        }
        types
    }
}

/// `properties.tools[]` and `["properties", "tools", "3"]` are the same.
fn same(path: &str, pointer: &[&str]) -> bool {
    let mut tokens = pointer.iter();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let name = part.trim_end_matches("[]");
        if !name.is_empty() && tokens.next() != Some(&name) {
            return false;
        }
        if part.ends_with("[]") && tokens.next().is_none_or(|index| index.parse::<usize>().is_err()) {
            return false;
        }
    }
    tokens.next().is_none()
}

/// Whether a value is of a JSON Schema type. A number without a fraction is an integer, however it
/// is spelled.
pub(super) fn is_of(node: &Node, expected: &str) -> bool {
    match &node.kind {
        Kind::Null => expected == "null",
        Kind::Bool(_) => expected == "boolean",
        Kind::String(_) => expected == "string",
        Kind::Array(_) => expected == "array",
        Kind::Object(_) => expected == "object",
        Kind::Number(digits) => expected == "number" || (expected == "integer" && super::scalar::is_whole(digits)),
        Kind::Fault => true,
    }
}

/// The words of a schema that takes nothing but some words.
pub(super) fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(word) = schema.get("const") {
        return word.as_str().map(|word| vec![word]);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::as_str).collect();
    }
    let branches = schema.get("oneOf").and_then(Value::as_array)?;
    let mut all = Vec::new();
    for branch in branches {
        all.extend(words(branch)?);
    }
    Some(all)
}
