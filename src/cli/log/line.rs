//! A line of the log, and its two forms. Each text in it passes the same gate: secrets are hidden by the shapes that traces know,
//! it is bounded, and no character of it ends the line or controls the terminal.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::LogFormat;
use crate::drive::clock;
use crate::engine::timestamp::rfc3339;
use crate::trace::{Redaction, escape};

/// The longest text of a field, in characters.
const MAX_FIELD_CHARS: usize = 2_000;
/// The end of a text that was cut.
const CUT: &str = "…";

/// A line of the log.
#[derive(Debug, Clone)]
pub struct LogLine {
    at_ms: i64,
    pub level: Level,
    target: &'static str,
    /// The place in the program that wrote it.
    pub place: Identifier,
    message: String,
    fields: LogFields,
    /// How many equal lines it replaces.
    equal: u64,
    /// How many lines of the same place it replaces, each about something else.
    like_it: u64,
}

/// The fields of a line, or of what surrounds it.
#[derive(Debug, Clone, Default)]
pub struct LogFields(Vec<(&'static str, Value)>);

/// A field that does not make one line differ from another.
fn is_measure(name: &str) -> bool {
    matches!(name, "request_id" | "ms" | "attempt" | "tries" | "delay_ms" | "wait_ms" | "active_ms" | "failed")
}

impl LogLine {
    /// The line of an event, with the fields of what surrounds it.
    pub fn of(event: &Event<'_>, around: impl Iterator<Item = LogFields>) -> Self {
        let metadata = event.metadata();
        let mut fields = LogFields::default();
        event.record(&mut fields);
        let message = fields.take_message();
        for (name, value) in around.flat_map(|around| around.0) {
            if !fields.has(name) {
                fields.0.push((name, value));
            }
        }
        Self {
            at_ms: clock::wall_ms(),
            level: *metadata.level(),
            target: metadata.target(),
            place: metadata.callsite(),
            message,
            fields,
            equal: 0,
            like_it: 0,
        }
    }

    /// The same, in the place of as many equal lines.
    pub fn with_equal(self, equal: u64) -> Self {
        Self { equal, ..self }
    }

    /// The same, in the place of as many lines like it.
    pub fn with_like_it(self, like_it: u64) -> Self {
        Self { like_it, ..self }
    }

    /// The name of the token that it is about.
    pub fn token(&self) -> Option<&str> {
        let token = self.fields.0.iter().find(|(name, _)| *name == "token");
        token.and_then(|(_, value)| value.as_str())
    }

    /// What makes it differ from another line: all but its time, and the numbers that only measure.
    pub fn sameness(&self) -> String {
        let mut key = format!("{} {} {}", self.level, self.target, self.message);
        for (name, value) in self.fields.0.iter().filter(|(name, _)| !is_measure(name)) {
            let value = match value {
                // The port of a client changes with each connection.
                Value::String(address) if *name == "address" => address.rsplit_once(':').map_or(&**address, |at| at.0),
                Value::String(text) => text,
                other => {
                    let _ = write!(key, " {name}={other}");
                    continue;
                }
            };
            let _ = write!(key, " {name}={value:?}");
        }
        key
    }

    /// The line as it is written, with its end.
    pub fn written(&self, format: LogFormat) -> String {
        match format {
            LogFormat::Text => self.text(),
            LogFormat::Json => self.json(),
        }
    }

    fn text(&self) -> String {
        let Self { level, target, message, .. } = self;
        let message = without_fields(message);
        let mut line = format!("{} {level:>5} {target}: {}", rfc3339(self.at_ms), escape::line(&message));
        for (name, value) in &self.fields.0 {
            let _ = match value {
                Value::String(text) => {
                    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
                    write!(line, " {name}=\"{}\"", escape::line(&quoted))
                }
                other => write!(line, " {name}={other}"),
            };
        }
        if self.equal > 0 {
            let _ = write!(line, " ({} equal lines since the last one)", self.equal);
        }
        if self.like_it > 0 {
            let _ = write!(line, " ({} more lines like this one, which are left out)", self.like_it);
        }
        line.push('\n');
        line
    }

    fn json(&self) -> String {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
        put("timestamp", rfc3339(self.at_ms).into());
        put("level", self.level.as_str().to_ascii_lowercase().into());
        put("target", self.target.into());
        put("message", self.message.as_str().into());
        self.fields.0.iter().for_each(|(name, value)| put(name, value.clone()));
        if self.equal > 0 {
            put("equal_lines", self.equal.into());
        }
        if self.like_it > 0 {
            put("lines_like_it", self.like_it.into());
        }
        let mut line = escape::json(&Value::Object(object).to_string()).into_owned();
        line.push('\n');
        line
    }
}

impl LogFields {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| *known == name)
    }

    fn take_message(&mut self) -> String {
        let at = self.0.iter().position(|(name, _)| *name == "message");
        match at.map(|at| self.0.remove(at).1) {
            Some(Value::String(message)) => message,
            _ => String::new(),
        }
    }

    fn put(&mut self, field: &Field, value: Value) {
        self.0.push((field.name(), value));
    }
}

impl Visit for LogFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, gate(value).into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, gate(&format!("{value:?}")).into());
    }
}

/// A message that can't look as if it had fields: after a word, `=` is written as `\\=`.
fn without_fields(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    // Whether a blank, and then letters of a name alone, come before.
    let (mut after_blank, mut in_name) = (true, false);
    for sign in message.chars() {
        if sign == '=' && in_name {
            text.push('\\');
        }
        in_name = (after_blank || in_name) && (sign.is_ascii_lowercase() || sign == '_');
        after_blank = sign.is_whitespace();
        text.push(sign);
    }
    text
}

/// A text of a document, a provider, a tool or a tenant as the log may hold it: bounded, and with secrets hidden.
fn gate(text: &str) -> String {
    // Before the cut, which could part a secret from what shows that it is one.
    let hidden = Redaction::default();
    let text = hidden.text(text);
    match text.char_indices().nth(MAX_FIELD_CHARS) {
        Some((at, _)) => format!("{}{CUT}", text.get(..at).unwrap_or_default()),
        None => text.into_owned(),
    }
}
