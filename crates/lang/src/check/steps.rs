//! The steps of a document, for rules.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::Subject;
use crate::compile::steps::{is_choice, named_document};
use crate::diagnostic::codes;
use crate::language::wait::WORDS;
use crate::program::flow::APPROVAL_KEYS;

/// A step of a document.
pub(super) struct WrittenStep<'a> {
    /// Its JSON pointer.
    pub at: &'a str,
    /// Its type.
    pub kind: &'a str,
    /// What it is given.
    pub properties: &'a Map<String, Value>,
    /// The step as it is written.
    pub written: &'a Value,
}

impl<'a> WrittenStep<'a> {
    /// The JSON pointer of a property.
    pub fn property(&self, name: &str) -> String {
        format!("{}/properties/{}", self.at, crate::syntax::token(name))
    }

    /// Whether an error of its text or shape is in its properties: what seems to be missing may be there.
    pub fn is_misread(&self, subject: &Subject<'_>) -> bool {
        let properties = format!("{}/properties", self.at);
        let mut errors = subject.document().faults.iter().filter(|fault| fault.is_error());
        // A field of the step that is not known may be one of them.
        let is_strange = |path: &str| path.rsplit_once('/').is_some_and(|(around, _)| around == self.at);
        !subject.is_whole()
            || errors.any(|fault| {
                fault.path.starts_with(&properties) || (fault.code == codes::UNKNOWN_FIELD && is_strange(&fault.path))
            })
    }

    /// Whether it runs a document by its name: its properties are the input of that.
    pub fn is_named(&self) -> bool {
        named_document(self.written).is_some()
    }

    /// Whether it is a loop of mode `foreach`.
    pub fn is_foreach(&self) -> bool {
        self.kind == "loop" && !self.is_named() && self.properties.get("mode").is_some_and(|mode| mode == "foreach")
    }

    /// The condition of its filter.
    pub fn filter(&self) -> Option<&'a Value> {
        self.written.get("filter")?.get("condition")
    }

    /// A property that is a text.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.properties.get(name)?.as_str()
    }

    /// How many items of the loop are worked on at a time.
    pub fn concurrency(&self) -> u64 {
        self.properties.get("max_concurrency").and_then(Value::as_u64).unwrap_or(1)
    }

    /// All keys that it writes when it runs, those of its action too.
    pub fn writes(&self, subject: &Subject<'a>) -> Vec<String> {
        let own = self.written.get("outputKey").and_then(Value::as_str);
        let mut keys: Vec<&str> = own.into_iter().collect();
        if is_choice(self.written) {
            return Vec::new();
        }
        if self.is_named() {
            let of_document = || subject.compiled.steps.named.get(self.at).map(|named| named.key.as_str());
            let key = own.or_else(of_document);
            return key.map(|key| key.trim_start_matches('@').to_owned()).into_iter().collect();
        }
        let is_true = |name: &str| self.properties.get(name) == Some(&Value::Bool(true));
        match self.kind {
            "matcher" => {
                let lists = [
                    ("outputMatched", "matched"),
                    ("outputUnmatchedLeft", "unmatchedLeft"),
                    ("outputUnmatchedRight", "unmatchedRight"),
                ];
                keys.extend(lists.map(|(name, default)| self.text(name).unwrap_or(default)));
            }
            "PbotApproval" => keys.extend(APPROVAL_KEYS),
            "PbotForm" => {
                let list = |name: &str| self.properties.get(name).and_then(Value::as_array).into_iter().flatten();
                keys.extend(list("expected_keys").filter_map(Value::as_str));
                keys.extend(list("fields").filter_map(|field| field.get("name")?.as_str()));
            }
            "loop" if self.is_foreach() => {
                keys.extend(self.text("result_key").filter(|_| is_true("collect_results")));
                keys.extend(self.text("summary_key"));
            }
            "loop" => keys.extend(self.text("result_key")),
            "custom-table" => {}
            word if WORDS.contains(&word) && subject.action(word).is_none() => {}
            tool if let Some(provided) = subject.compiled.steps.provided.get(tool) => {
                keys.extend(provided.key.as_deref().filter(|_| own.is_none()));
            }
            action if own.is_none() => {
                let used = subject.action(action);
                let of_action = used.and_then(|used| used.written().get("outputKey")?.as_str());
                keys.push(of_action.unwrap_or(self.kind));
            }
            _ => {}
        }
        keys.into_iter().map(|key| key.trim_start_matches('@').to_owned()).collect()
    }

    /// The keys that it writes, beside those of its action, each with its JSON pointer. Those of a loop of mode `react`
    /// are judged with the loop.
    pub fn keys(&self) -> Vec<(String, &str)> {
        let names: &[&str] = match self.kind {
            "matcher" => &["outputMatched", "outputUnmatchedLeft", "outputUnmatchedRight"],
            "loop" if self.is_foreach() => &["result_key", "summary_key"],
            _ => &[],
        };
        let inner = names.iter().filter_map(|name| Some((self.property(name), self.properties.get(*name)?.as_str()?)));
        let own = self.written.get("outputKey").and_then(Value::as_str);
        inner.chain(own.map(|key| (format!("{}/outputKey", self.at), key))).collect()
    }

    /// The name of the document that it runs, where the output has it as its key, and its place.
    pub fn name_as_key(&self, subject: &Subject<'a>) -> Option<(String, &'a str)> {
        let name = self.written.get("name")?.as_str()?;
        let named = subject.compiled.steps.named.get(self.at)?;
        let is_key = named.key == name && self.written.get("outputKey").is_none();
        is_key.then(|| (format!("{}/name", self.at), name))
    }
}

/// The steps of a document, in their order. Those of which a part could not be read are among them.
pub(super) fn steps<'a>(subject: &Subject<'a>) -> Vec<WrittenStep<'a>> {
    let places = if subject.is_step() { &[][..] } else { subject.compiled.steps.places.as_slice() };
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    let value = &subject.document().value;
    let step = |at: &'a String| {
        let written = value.pointer(at)?;
        let kind = written.get("type")?.as_str()?;
        let properties = match written.get("properties") {
            None if named_document(written).is_some() || is_choice(written) => &NONE,
            properties => properties?.as_object()?,
        };
        Some(WrittenStep { at, kind, properties, written })
    };
    places.iter().filter_map(step).collect()
}
