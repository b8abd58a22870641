//! What the operations of a page give, for comparisons: no action has it. Each part of a page is read once, however many
//! operations name it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::page_files::{PageFiles, PagePart};
use super::read_schema::{OF_NAMES, OF_ONE, PLAIN};
use crate::program::canonical::spelling;

/// Keywords that hold lists of schemas.
const OF_LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords of OpenAPI's own that say what is given.
const OF_OPENAPI: [&str; 4] = ["nullable", "writeOnly", "exclusiveMinimum", "exclusiveMaximum"];

/// Reads what operations give.
pub(super) struct AnswerReader<'p> {
    files: &'p PageFiles,
    parts: HashMap<String, AnswerPart<'p>>,
}

/// A part that references lead to.
struct AnswerPart<'p> {
    text: Arc<str>,
    /// Where its own references lead.
    named: Vec<(String, PagePart<'p>)>,
}

impl<'p> AnswerReader<'p> {
    pub fn new(files: &'p PageFiles) -> Self {
        Self { files, parts: HashMap::new() }
    }

    /// Texts that are the same where the same is given: of an operation itself, and of each part that it leads to.
    pub fn of(&mut self, operation: PagePart<'p>) -> Vec<Arc<str>> {
        let mut answers: Vec<(&String, PagePart<'p>)> =
            operation.get("responses").into_iter().flat_map(PagePart::members).collect();
        answers.sort_unstable_by_key(|(status, _)| *status);
        let (mut own, mut todo) = (Map::new(), Vec::new());
        for (status, at) in answers.into_iter().filter(|(status, _)| status.starts_with('2') || *status == "default") {
            let Ok(answer) = self.files.follow(at) else { continue };
            for (media, at) in answer.get("content").into_iter().flat_map(PagePart::members) {
                let schema = at.get("schema").map_or_else(|| json!({}), |schema| self.own(schema, &mut todo));
                own.insert(format!("{status} {media}"), schema);
            }
        }
        let mut texts = vec![Arc::from(spelling(&Value::Object(own)))];
        let mut known = BTreeSet::new();
        while let Some((key, part)) = todo.pop() {
            if !known.insert(key.clone()) {
                continue;
            }
            if !self.parts.contains_key(&key) {
                let mut named = Vec::new();
                let text = Arc::from(spelling(&json!([key, self.own(part, &mut named)])));
                self.parts.insert(key.clone(), AnswerPart { text, named });
            }
            todo.extend(self.parts.get(&key).into_iter().flat_map(|part| part.named.iter().cloned()));
        }
        texts.extend(known.iter().filter_map(|key| self.parts.get(key)).map(|part| Arc::clone(&part.text)));
        texts
    }

    /// A schema without what is notation; its references are gathered, and not followed.
    fn own(&self, part: PagePart<'p>, named: &mut Vec<(String, PagePart<'p>)>) -> Value {
        let Some(members) = part.object() else { return part.value.clone() };
        let mut kept = Map::new();
        if let Some(reference) = part.text("$ref") {
            let target = self.files.target(part.file, reference);
            let key = target.as_ref().map_or_else(|_| reference.to_owned(), |target| target.key.clone());
            named.extend(target.map(|target| (target.key, target.part)));
            kept.insert("$ref".to_owned(), key.into());
        }
        for (keyword, value) in members {
            let Some(at) = part.get(keyword) else { continue };
            let value = match keyword.as_str() {
                "default" => continue,
                "required" => super::comparison::sorted(value),
                known if PLAIN.contains(&known) || OF_OPENAPI.contains(&known) => value.clone(),
                known if OF_ONE.contains(&known) => self.own(at, named),
                known if OF_NAMES.contains(&known) => {
                    at.members().map(|(name, at)| (name.clone(), self.own(at, named))).collect()
                }
                known if OF_LISTS.contains(&known) => at.items().map(|at| self.own(at, named)).collect(),
                _ => continue,
            };
            kept.insert(keyword.clone(), value);
        }
        Value::Object(kept)
    }
}
