//! The positions of the parts of a loop in its document: a loop document, a step of a workflow and an agent
//! request differ only in these.

use std::borrow::Cow;

use serde_json::Value;

use crate::diagnostic::{Diagnostic, codes};
use crate::language::ReactProperties;
use crate::language::fields::read_fields;
use crate::syntax::document::{Document, DocumentKind};
use crate::syntax::value_at;

/// The places of the parts of a loop.
#[derive(Debug, Clone)]
pub struct LoopLayout {
    /// The pointer of the object with `objective` and `tools`.
    head: Cow<'static, str>,
    /// The pointer of the object with all other properties.
    rest: Cow<'static, str>,
}

impl LoopLayout {
    /// The layout of a document; none when it is no loop.
    pub fn of(document: &Document) -> Option<Self> {
        match document.kind? {
            DocumentKind::Loop => Some(Self { head: "/properties".into(), rest: "/properties".into() }),
            DocumentKind::AgentRequest => Some(Self { head: "".into(), rest: "/config".into() }),
            _ => None,
        }
    }

    /// The layout of a loop that is a step, at the JSON pointer of its properties.
    pub fn of_step(properties: String) -> Self {
        Self { head: properties.clone().into(), rest: properties.into() }
    }

    /// The JSON pointer of a property.
    pub fn pointer(&self, property: &str) -> String {
        format!("{}/{property}", self.around(property))
    }

    /// The JSON pointer of the object that a property is in.
    pub(crate) fn around(&self, property: &str) -> &str {
        if matches!(property, "objective" | "tools") { &self.head } else { &self.rest }
    }

    pub(crate) fn get<'a>(&self, document: &'a Document, property: &str) -> Option<&'a Value> {
        value_at(&document.value, &self.pointer(property))
    }

    /// All properties by name, from both objects.
    pub(crate) fn properties<'a>(&'a self, document: &'a Document) -> impl Iterator<Item = (&'a str, &'a Value)> {
        const HEAD: [&str; 2] = ["objective", "tools"];
        let rest = value_at(&document.value, &self.rest).and_then(Value::as_object).into_iter().flatten();
        let rest = rest.map(|(name, value)| (name.as_str(), value));
        let rest = rest.filter(|(name, _)| *name != "mode" && !HEAD.contains(name));
        rest.chain(HEAD.into_iter().filter_map(move |name| Some((name, self.get(document, name)?))))
    }

    /// All properties as their type.
    ///
    /// # Errors
    /// When they do not have their shape.
    pub(super) fn read(&self, document: &Document) -> Result<ReactProperties, serde_json::Error> {
        read_fields(self.properties(document))
    }
}

/// Properties with the defaults only: used to check the tools when the document's properties can't be read.
pub(crate) fn defaults() -> Option<ReactProperties> {
    let (text, none) = (Value::from(""), Value::Array(Vec::new()));
    read_fields([("objective", &text), ("tools", &none)].into_iter()).ok()
}

/// Reading can only fail after the shape was right if a schema disagrees with its type; that is reported, and
/// nothing is run.
pub(super) fn unreadable(document: &Document, error: &serde_json::Error) -> Diagnostic {
    let message = format!("the document can't be read: {error}");
    Diagnostic::error(codes::UNREADABLE, message, "", document.tree.source.whole())
}
