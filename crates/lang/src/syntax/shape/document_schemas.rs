//! The schemas of the kinds of documents, built once, and look-ups in them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::form::SchemaForm;
use crate::language::schema::{KINDS, schema};

/// The schema of a kind of document.
#[derive(Debug)]
pub(crate) struct DocumentSchema {
    /// The schema itself.
    pub schema: &'static Value,
    /// The same, prepared for checking values.
    pub(super) form: SchemaForm,
    /// The paths where each field is allowed, the shortest first: `properties.on_stuck`.
    homes: OnceLock<BTreeMap<String, Vec<String>>>,
}

/// The schema of a kind of document, by its name in [`KINDS`]; built on first use.
pub(crate) fn known(kind: &str) -> Option<&'static DocumentSchema> {
    static ALL: [OnceLock<Option<DocumentSchema>>; KINDS.len()] = [const { OnceLock::new() }; KINDS.len()];
    let (_, known) = KINDS.iter().zip(&ALL).find(|(name, _)| **name == kind)?;
    known.get_or_init(|| schema(kind).map(DocumentSchema::new)).as_ref()
}

impl DocumentSchema {
    fn new(schema: Value) -> Self {
        // There is one for each kind, and it lives as long as the process.
        let schema: &'static Value = Box::leak(Box::new(schema));
        Self { schema, form: SchemaForm::new(schema, schema), homes: OnceLock::new() }
    }

    fn homes(&self) -> &BTreeMap<String, Vec<String>> {
        self.homes.get_or_init(|| {
            let mut homes = BTreeMap::new();
            self.gather(self.schema, "", &mut Vec::new(), &mut homes);
            for paths in homes.values_mut() {
                // An entry of a list is further away than an object, and the step in a loop's place than its own parts.
                let depth = |path: &String| path.matches(['.', '[']).count() + usize::from(path.starts_with("onFalse"));
                paths.sort_by_key(|path: &String| (depth(path), path.len()));
                paths.dedup();
            }
            homes
        })
    }

    /// `seen` are the references that led here, so that none is followed twice.
    fn gather<'s>(
        &'s self,
        part: &'s Value,
        path: &str,
        seen: &mut Vec<&'s str>,
        homes: &mut BTreeMap<String, Vec<String>>,
    ) {
        let reference = part.get("$ref").and_then(Value::as_str);
        if reference.is_some_and(|reference| seen.contains(&reference)) {
            return;
        }
        seen.extend(reference);
        let schema = resolve(self.schema, part);
        for branches in ["anyOf", "oneOf"] {
            for branch in schema.get(branches).and_then(Value::as_array).into_iter().flatten() {
                self.gather(branch, path, seen, homes);
            }
        }
        if let Some(items) = schema.get("items") {
            self.gather(items, &format!("{path}[]"), seen, homes);
        }
        for (name, field) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            homes.entry(name.clone()).or_default().push(path.to_owned());
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.gather(field, &below, seen, homes);
        }
        if reference.is_some() {
            seen.pop();
        }
    }

    /// The places where a field of this name is allowed, other than `here` (a JSON pointer), in words.
    pub(super) fn home(&self, name: &str, here: &str) -> Option<String> {
        let here: Vec<&str> = here.split('/').skip(1).collect();
        let others = || self.homes().get(name).into_iter().flatten().filter(|path| !same(path, &here));
        // What is directly in this object is nearer than what has the shortest way.
        let inside = others().find(|path| path.rsplit_once('.').is_some_and(|(around, _)| same(around, &here)));
        let path = inside.or_else(|| others().next())?;
        Some(match path.strip_suffix("[]") {
            _ if path.is_empty() => "at the top of the document".to_owned(),
            Some("") => "in an entry of the document".to_owned(),
            Some(array) => format!("in an entry of `{array}`"),
            None => format!("in `{path}`"),
        })
    }
}

/// The part of a schema that a reference leads to.
pub(super) fn resolve<'a>(root: &'a Value, part: &'a Value) -> &'a Value {
    let mut at = part;
    // A chain of references is short; the limit is for cycles.
    for _ in 0..16 {
        let Some(pointer) = at.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#')) else {
            return at;
        };
        match root.pointer(pointer) {
            Some(next) => at = next,
            None => return at,
        }
    }
    at
}

/// What the description of a part says, as one sentence of a message.
pub(super) fn description(part: &Value) -> Option<String> {
    let text = part.get("description")?.as_str()?;
    // It is a doc comment: its line breaks mean nothing to who reads the message.
    Some(text.replace('\n', " ").trim_end_matches('.').to_owned())
}

/// The names of the JSON types that a part of a schema allows; empty when it allows all.
pub(super) fn types<'a>(root: &'a Value, part: &'a Value) -> Vec<&'a str> {
    let part = resolve(root, part);
    match part.get("type") {
        Some(Value::Array(types)) => return types.iter().filter_map(Value::as_str).collect(),
        Some(one) => return one.as_str().into_iter().collect(),
        None => {}
    }
    let mut all: Vec<&str> = Vec::new();
    for branches in ["anyOf", "oneOf"] {
        for branch in part.get(branches).and_then(Value::as_array).into_iter().flatten() {
            for name in types(root, branch) {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
    }
    all
}

/// Whether `properties.tools[]` and `["properties", "tools", "3"]` are the same path.
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

/// The words of a schema that allows only some words.
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
