//! The steps of a document, for rules.

use serde_json::Value;

use super::Subject;

/// A step of a document.
pub(super) struct WrittenStep<'a> {
    /// Its JSON pointer.
    pub at: &'a str,
    /// Its type.
    pub kind: &'a str,
    /// What it is given.
    pub properties: &'a serde_json::Map<String, Value>,
    /// The step as it is written.
    pub written: &'a Value,
}

impl WrittenStep<'_> {
    /// The JSON pointer of a property.
    pub fn property(&self, name: &str) -> String {
        format!("{}/properties/{}", self.at, crate::syntax::token(name))
    }

    /// Whether an error of its text or shape is in its properties: what seems to be missing may be there.
    pub fn is_misread(&self, subject: &Subject<'_>) -> bool {
        let properties = format!("{}/properties", self.at);
        let mut errors = subject.document().faults.iter().filter(|fault| fault.is_error());
        !subject.is_whole() || errors.any(|fault| fault.path.starts_with(&properties))
    }

    /// The keys that it writes, beside those of its action, each with its JSON pointer. Those of a loop of mode `react`
    /// are judged with the loop.
    pub fn keys(&self) -> Vec<(String, &str)> {
        let names: &[&str] = match self.kind {
            "matcher" => &["outputMatched", "outputUnmatchedLeft", "outputUnmatchedRight"],
            "loop" if self.properties.get("mode").is_some_and(|mode| mode == "foreach") => &["result_key"],
            _ => &[],
        };
        let inner = names.iter().filter_map(|name| Some((self.property(name), self.properties.get(*name)?.as_str()?)));
        let own = self.written.get("outputKey").and_then(Value::as_str);
        inner.chain(own.map(|key| (format!("{}/outputKey", self.at), key))).collect()
    }
}

/// The steps of a document, in their order. Those of which a part could not be read are among them.
pub(super) fn steps<'a>(subject: &Subject<'a>) -> Vec<WrittenStep<'a>> {
    let places = if subject.is_step() { &[][..] } else { subject.compiled.steps.places.as_slice() };
    let value = &subject.document().value;
    let step = |at: &'a String| {
        let written = value.pointer(at)?;
        let kind = written.get("type")?.as_str()?;
        Some(WrittenStep { at, kind, properties: written.get("properties")?.as_object()?, written })
    };
    places.iter().filter_map(step).collect()
}
