//! Redaction: hides values in traces, events and logs that are secret by the name of their field or by their
//! shape. Secrets that the engine resolved itself are removed earlier, wherever they occur; this is for secrets
//! that the engine never knew: those that models, tools and users write.

mod members;
mod shapes;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_growing;

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::policy::json_text;
use crate::policy::secret_names as names;

/// The text that replaces a hidden value.
pub const HIDDEN: &str = "[hidden]";

/// A value deeper than this is hidden as a whole: parsed values are never so deep.
const MAX_DEPTH: usize = 200;

/// The layers of JSON inside strings of JSON that are searched.
const MAX_JSON_LAYERS: usize = 4;

/// Which fields are hidden.
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    /// The project's own names, folded.
    names: HashSet<String>,
}

impl Redaction {
    /// Our own list, and `names`. Case, `_`, `-`, `.` and spaces do not matter; a name of the project hides
    /// every kind of value.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.iter().map(|name| names::fold(name)).collect() }
    }

    /// The value with the secrets hidden, at any depth, also in strings that contain JSON.
    pub fn value(&self, value: &Value) -> Value {
        self.walk(value, 0, 0)
    }

    /// The text with the secrets hidden: those in fields, if the text is JSON, and those of a well-known shape
    /// anywhere.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.string(text, 0)
    }

    /// The settled part of a text that grows, with its secrets hidden: one that is cut at the end of the text is not
    /// in it. [`Redaction::whole`] of the whole text begins with it.
    pub fn settled(&self, text: &str) -> String {
        shapes::settled(text, self)
    }

    /// A text whose beginnings were given to [`Redaction::settled`], and that is whole now.
    pub fn whole<'a>(&self, text: &'a str) -> Cow<'a, str> {
        shapes::hide(text, self)
    }

    fn hides_text(&self, name: &str) -> bool {
        self.hides(name, &Value::String(String::new()))
    }

    /// Whether a field of this name is hidden when it holds this value.
    pub fn hides(&self, name: &str, value: &Value) -> bool {
        if value.is_null() {
            return false;
        }
        if !self.names.is_empty() && self.names.contains(&names::fold(name)) {
            return true;
        }
        match names::secrecy(name) {
            names::Secrecy::None => false,
            // A count or a switch is no token, but a number may be a password.
            names::Secrecy::Texts => !matches!(value, Value::Bool(_) | Value::Number(_)),
            names::Secrecy::All => !value.is_boolean(),
        }
    }

    fn walk(&self, value: &Value, depth: usize, layer: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::String(HIDDEN.to_owned());
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
            Value::String(text) => Value::String(self.string(text, layer).into_owned()),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.walk(item, depth + 1, layer)).collect()),
            Value::Object(fields) => Value::Object(self.object(fields, depth, layer)),
        }
    }

    fn object(&self, fields: &Map<String, Value>, depth: usize, layer: usize) -> Map<String, Value> {
        // `{"name": "Authorization", "value": "..."}`: headers and settings in lists; the fields of forms have a `default`.
        let is_named = |value: &Value| {
            let mut names = ["name", "key", "header"].into_iter().filter_map(|field| fields.get(field)?.as_str());
            names.any(|name| self.hides(name, value))
        };
        fields
            .iter()
            .map(|(name, value)| {
                let hide = self.hides(name, value) || (matches!(name.as_str(), "value" | "default") && is_named(value));
                let value = if hide { Value::String(HIDDEN.to_owned()) } else { self.walk(value, depth + 1, layer) };
                (name.clone(), value)
            })
            .collect()
    }

    fn string<'a>(&self, text: &'a str, layer: usize) -> Cow<'a, str> {
        if layer < MAX_JSON_LAYERS
            && text.trim_start().starts_with(['{', '[', '"'])
            && let Ok(inner) = json_text::unchecked(text)
        {
            let shown = self.walk(&inner, 0, layer + 1);
            // A text without secrets keeps its spelling.
            return if shown == inner { Cow::Borrowed(text) } else { Cow::Owned(shown.to_string()) };
        }
        shapes::hide(text, self)
    }
}
