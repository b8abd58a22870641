//! The pairs of a query and of a form: how lists and objects are written.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use crate::drive::tool::output::fault;
use loopctl_engine::event::ToolFault;
use loopctl_lang::language::action::ValueStyle;

/// All but RFC 3986's unreserved characters.
pub(super) const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

const FORM: &str = "application/x-www-form-urlencoded";
/// The most objects in each other that are written with brackets.
const MAX_DEPTH: usize = 32;

/// The pairs of a query or a form.
#[derive(Debug, Default)]
pub(super) struct FormPairs {
    names: Vec<String>,
    /// As they are sent.
    written: Vec<String>,
}

impl FormPairs {
    /// Adds the pairs of a value; none for `null`.
    ///
    /// # Errors
    /// When the style has no form for it.
    pub(super) fn add(&mut self, name: &str, value: &Value, style: ValueStyle) -> Result<(), ToolFault> {
        let sign = match style {
            ValueStyle::Brackets => return self.add_parts(name, value, 0),
            ValueStyle::Repeat => {
                match value {
                    Value::Array(items) => items.iter().for_each(|item| self.push(name, &encoded(&plain(item)))),
                    value => self.pair(name, value),
                }
                return Ok(());
            }
            ValueStyle::Comma => ",",
            ValueStyle::Space => "%20",
            ValueStyle::Pipe => "%7C",
        };
        let has_parts = |value: &Value| value.is_array() || value.is_object();
        match value {
            Value::Array(items) if items.is_empty() => {}
            Value::Array(items) if !items.iter().any(has_parts) => {
                let texts: Vec<String> = items.iter().map(|item| encoded(&plain(item))).collect();
                self.push(name, &texts.join(sign));
            }
            Value::Array(_) | Value::Object(_) => return Err(unwritable(name)),
            value => self.pair(name, value),
        }
        Ok(())
    }

    /// Adds a pair for each member and each entry, with its name in brackets.
    fn add_parts(&mut self, name: &str, value: &Value, depth: usize) -> Result<(), ToolFault> {
        if depth > MAX_DEPTH {
            return Err(unwritable(name));
        }
        match value {
            Value::Object(members) => members
                .iter()
                .try_for_each(|(key, value)| self.add_parts(&format!("{name}[{key}]"), value, depth.saturating_add(1))),
            // Servers read the entries of a list of objects in different ways.
            Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
                Err(unwritable(name))
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.push(&format!("{name}[]"), &encoded(&plain(item))));
                Ok(())
            }
            value => {
                self.pair(name, value);
                Ok(())
            }
        }
    }

    fn pair(&mut self, name: &str, value: &Value) {
        if !value.is_null() {
            self.push(name, &encoded(&plain(value)));
        }
    }

    fn push(&mut self, name: &str, written: &str) {
        self.names.push(name.to_owned());
        self.written.push(format!("{}={written}", encoded(name)));
    }

    /// Their names.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    /// Adds them to the query of an address.
    pub(super) fn add_to(&self, url: &mut Url) {
        if self.written.is_empty() {
            return;
        }
        let added = self.text();
        let query = match url.query() {
            Some(old) if !old.is_empty() => format!("{old}&{added}"),
            _ => added,
        };
        url.set_query(Some(&query));
    }

    fn text(&self) -> String {
        self.written.join("&")
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

fn unwritable(name: &str) -> ToolFault {
    let why = format!("`{name}` has lists or objects in it that its style has no form for");
    fault("a value is missing or can't be used", why)
}

/// A value as one line of text: a string unchanged, a number as written, the rest as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The type without its parameters.
pub(super) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A body of this content type: form fields, or else JSON. A string is sent unchanged when the content type is
/// not JSON.
///
/// # Errors
/// When a style has no form for a value.
pub(super) fn encode(
    value: &Value,
    content_type: &str,
    styles: &BTreeMap<String, ValueStyle>,
) -> Result<Vec<u8>, ToolFault> {
    let kind = media_type(content_type);
    Ok(match value {
        Value::Object(fields) if kind == FORM => {
            let mut pairs = FormPairs::default();
            for (name, value) in fields {
                pairs.add(name, value, styles.get(name).copied().unwrap_or_default())?;
            }
            pairs.text().into_bytes()
        }
        Value::String(text) if !kind.ends_with("json") => text.clone().into_bytes(),
        value => value.to_string().into_bytes(),
    })
}
