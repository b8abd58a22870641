//! `@paths` and `orgconfig:` secrets: what a written value refers to, and what it is resolved from.

use serde_json::Value;

use super::template::Template;

/// Gives the text of a secret by its key. The driver implements it; the text is used at once and
/// kept nowhere.
pub trait Secrets {
    /// The secret's text, or why there is none.
    ///
    /// # Errors
    /// A sentence that names the key and never the secret.
    fn secret(&self, key: &str) -> Result<String, String>;
}

/// What names stand for while a field is resolved.
pub struct Scope<'a> {
    /// The tool call's input: its names stand at the top. `Value::Null` outside a call.
    pub arguments: &'a Value,
    /// The run's input: `input`.
    pub input: &'a Value,
    /// The moment of the call, RFC 3339: `now`.
    pub now: &'a str,
    /// The run: `__run_id`.
    pub run_id: &'a str,
    /// Names with texts that only some fields know (`tools`, `today`, ...).
    pub extra: &'a [(&'a str, &'a str)],
    /// The secrets; `None` where none may be used.
    pub secrets: Option<&'a dyn Secrets>,
}

/// A name that nothing gave, or a secret that is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(pub String);

/// A written value: a literal, a template, an `@path`, or JSON made of them.
#[derive(Debug)]
pub enum Field {
    /// Taken as it stands.
    Literal(Value),
    /// A string with `{{ }}` or `orgconfig:` in it.
    Template(Template),
    /// A whole string `@a.b`: keeps the type of what it names.
    Path(Vec<String>),
    /// An array of fields.
    Array(Vec<Field>),
    /// An object of fields.
    Object(Vec<(String, Field)>),
}

impl Field {
    /// What it stands for. A path that leads into a text which is JSON reads the JSON.
    ///
    /// # Errors
    /// When a name that it needs was not given.
    pub fn resolve(&self, _scope: &Scope<'_>) -> Result<Value, Unresolved> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            _ => Err(Unresolved("not written yet".to_owned())),
        }
    }
}
