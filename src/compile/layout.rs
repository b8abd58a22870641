//! Where the parts of a loop stand in its document: a loop document and an agent request differ in
//! nothing else.

use serde_json::{Map, Value, json};

use super::document::{Document, DocumentKind};
use crate::language::{Action, ReactProperties};

/// Where the parts of a loop stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// What stands around `objective` and `tools`.
    head: &'static str,
    /// What stands around all other properties.
    rest: &'static str,
}

impl Layout {
    /// The layout of a document; nothing when it holds no loop of mode `react`.
    pub(crate) fn of(document: &Document) -> Option<Self> {
        match document.kind? {
            DocumentKind::Loop => Some(Self { head: "/properties", rest: "/properties" }),
            DocumentKind::AgentRequest => Some(Self { head: "", rest: "/config" }),
            _ => None,
        }
    }

    /// The JSON pointer of a property.
    pub(crate) fn pointer(self, property: &str) -> String {
        let around = if matches!(property, "objective" | "tools") { self.head } else { self.rest };
        format!("{around}/{property}")
    }

    /// The value of a property.
    pub(crate) fn get<'a>(self, document: &'a Document, property: &str) -> Option<&'a Value> {
        document.value.pointer(&self.pointer(property))
    }

    /// All properties in one object, as [`ReactProperties`] reads them.
    pub(crate) fn properties(self, document: &Document) -> Value {
        let mut properties: Map<String, Value> =
            document.value.pointer(self.rest).and_then(Value::as_object).cloned().unwrap_or_default();
        properties.shift_remove("mode");
        for property in ["objective", "tools"] {
            if let Some(value) = self.get(document, property) {
                properties.insert(property.to_owned(), value.clone());
            }
        }
        Value::Object(properties)
    }
}

/// Properties as far as they can be read: where one is wrong, the defaults, so that the tools can
/// be judged all the same.
pub(crate) fn readable(properties: &Value) -> Option<ReactProperties> {
    serde_json::from_value(properties.clone())
        .or_else(|_| serde_json::from_value(json!({ "objective": "", "tools": [] })))
        .ok()
}

/// A registered action. Its kind is looked at here and not by serde, which would spell the numbers
/// of a body anew while it looks for the kind.
///
/// # Errors
/// When it does not have the shape of its kind.
pub(crate) fn action(value: &Value) -> Result<Action, serde_json::Error> {
    let mut fields = value.as_object().cloned().unwrap_or_default();
    let kind = fields.shift_remove("kind");
    let fields = Value::Object(fields);
    match kind.as_ref().and_then(Value::as_str) {
        Some("http") => serde_json::from_value(fields).map(Action::Http),
        Some("llm") => serde_json::from_value(fields).map(Action::Llm),
        Some("db") => serde_json::from_value(fields).map(Action::Db),
        Some("command") => serde_json::from_value(fields).map(Action::Command),
        // What is recognised only, and what is not known: no numbers to keep.
        _ => serde_json::from_value(value.clone()),
    }
}
