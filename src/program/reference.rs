//! `@paths` and `orgconfig:` secrets: compiles and resolves the references in a written value.

mod left_out;
#[cfg(test)]
mod tests;
mod written_path;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::template::{Template, ValueEscape, ValueUse, Variable, is_template};
use crate::diagnostic::nearest;
use crate::program::fault::LocalFault;
pub use written_path::as_path;
use written_path::written_range;

/// The names that the engine defines; an argument with such a name is hidden.
pub const RESERVED: [&str; 3] = ["input", "now", "__run_id"];

/// Returns the text of a secret by its key. The driver implements it; the text is used at once and stored
/// nowhere.
pub trait Secrets: Sync {
    /// The secret's text, or why there is none.
    ///
    /// # Errors
    /// A sentence that names the key and never the secret.
    fn secret(&self, key: &str) -> Result<String, String>;
}

/// A step on the way to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// To the member, or the item, of this name.
    Name(String),
    /// To each entry, in the body of an `each`.
    Entry,
}

/// A path of names.
pub(crate) fn steps(names: &[String]) -> Vec<PathStep> {
    names.iter().cloned().map(PathStep::Name).collect()
}

/// The values of names while a field is resolved.
pub struct Scope<'a> {
    /// The tool call's input: its names are at the top. `Value::Null` outside a call.
    pub arguments: &'a Value,
    /// More names, the nearest first: those of a workflow's context. `arguments` hides them.
    pub context: &'a [&'a Map<String, Value>],
    /// The run's input: `input`.
    pub input: &'a Value,
    /// The moment of the call, RFC 3339: `now`.
    pub now: &'a str,
    /// The run: `__run_id`.
    pub run_id: &'a str,
    /// Names with texts that only some fields can use (`tools`, `today`, ...).
    pub extra: &'a [(&'a str, &'a str)],
    /// The secrets; `None` where none may be used.
    pub secrets: Option<&'a dyn Secrets>,
}

/// A name without a value, or a secret that is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unresolved(pub String);

impl<'a> Scope<'a> {
    /// The value at a path. The engine's own names take precedence over those of the arguments. A path into a
    /// text that is JSON reads the JSON; `length` is that of a list or text, unless a member has this name.
    ///
    /// # Errors
    /// When there is no value; the message says how far the path leads, and which names are near.
    pub fn lookup(&self, path: &[String]) -> Result<Cow<'a, Value>, Unresolved> {
        let Some((first, rest)) = path.split_first() else {
            return Err(Unresolved("a path names nothing".to_owned()));
        };
        let mut value = self.name(first).ok_or_else(|| self.not_given(first))?;
        let mut so_far = first.clone();
        for segment in rest {
            value = descend(value, segment).map_err(|at| absent(&so_far, segment, at.as_ref()))?;
            so_far.push('.');
            so_far.push_str(segment);
        }
        Ok(value)
    }

    fn name(&self, name: &str) -> Option<Cow<'a, Value>> {
        let text = |text: &str| Some(Cow::Owned(Value::String(text.to_owned())));
        match name {
            "input" => Some(Cow::Borrowed(self.input)),
            "now" => text(self.now),
            "__run_id" => text(self.run_id),
            _ => match self.extra.iter().find(|(extra, _)| *extra == name) {
                Some((_, value)) => text(value),
                None => {
                    let mut near = self.arguments.as_object().into_iter().chain(self.context.iter().copied());
                    near.find_map(|names| names.get(name)).map(Cow::Borrowed)
                }
            },
        }
    }

    fn not_given(&self, name: &str) -> Unresolved {
        let arguments = self.arguments.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let context = self.context.iter().flat_map(|names| names.keys()).map(String::as_str);
        let extra = self.extra.iter().map(|(name, _)| *name);
        let hint = match nearest(name, arguments.chain(context).chain(extra).chain(RESERVED)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if self.input.get(name).is_some() => format!("; did you mean `input.{name}`?"),
            None => String::new(),
        };
        Unresolved(format!("`{}` was not given{hint}", shorten(name)))
    }
}

/// A step down from a value; returns the value if there is no such member.
pub(crate) fn descend<'v>(value: Cow<'v, Value>, segment: &str) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
    match value {
        Cow::Borrowed(borrowed) => match borrowed {
            Value::Object(members) => members.get(segment).map(Cow::Borrowed).ok_or(value),
            Value::Array(items) => match index(segment) {
                Some(at) => items.get(at).map(Cow::Borrowed).ok_or(value),
                None => length(segment, items.len()).ok_or(value),
            },
            Value::String(text) => into_text(text, segment).ok_or(value),
            _ => Err(value),
        },
        Cow::Owned(mut owned) => {
            let found = match &mut owned {
                Value::Object(members) => members.get_mut(segment).map(|member| Cow::Owned(member.take())),
                Value::Array(items) => match index(segment) {
                    Some(at) => items.get_mut(at).map(|item| Cow::Owned(item.take())),
                    None => length(segment, items.len()),
                },
                Value::String(text) => into_text(text, segment),
                _ => None,
            };
            found.ok_or(Cow::Owned(owned))
        }
    }
}

/// A step into a text: into its JSON, or to its length in characters.
fn into_text<'v>(text: &str, segment: &str) -> Option<Cow<'v, Value>> {
    let json = Some(text.trim_start())
        .filter(|text| text.starts_with(['{', '[']))
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .filter(|json| !json.is_string());
    match json {
        Some(json) => descend(Cow::Owned(json), segment).ok(),
        None => length(segment, text.chars().count()),
    }
}

fn length<'v>(segment: &str, length: usize) -> Option<Cow<'v, Value>> {
    (segment == "length").then(|| Cow::Owned(Value::from(length)))
}

/// An index as JSON pointers write it: digits without a leading zero.
fn index(segment: &str) -> Option<usize> {
    let digits = segment.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (segment == "0" || !segment.starts_with('0'))).then(|| segment.parse().ok())?
}

/// The fault that `segment` is not in `value`, which is called `name`.
pub(crate) fn absent(name: &str, segment: &str, value: &Value) -> Unresolved {
    let (name, segment) = (shorten(name), shorten(segment));
    Unresolved(match value {
        Value::Object(members) => {
            let hint = match nearest(&segment, members.keys().map(String::as_str)) {
                Some(near) => format!("; did you mean `{}`?", shorten(near)),
                None if members.is_empty() => "; it is empty".to_owned(),
                None => {
                    let names: Vec<String> = members.keys().take(5).map(|key| format!("`{}`", shorten(key))).collect();
                    let more = if members.len() > 5 { ", ..." } else { "" };
                    format!("; it has {}{more}", names.join(", "))
                }
            };
            format!("`{name}` has no `{segment}`{hint}")
        }
        Value::Array(items) => format!("`{name}` has no `{segment}`; it is a list of {}", items.len()),
        Value::Null => format!("`{name}` is null and has no `{segment}`"),
        Value::Bool(_) => format!("`{name}` is true or false and has no `{segment}`"),
        Value::Number(_) => format!("`{name}` is a number and has no `{segment}`"),
        Value::String(_) => format!("`{name}` is a text and has no `{segment}`"),
    })
}

/// Shortens a name for a message: a name from a model or tool may be long.
fn shorten(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(60) {
        Some((at, _)) => Cow::Owned(format!("{}...", name.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}

/// A written value: a literal, a template, an `@path`, or JSON made of them.
#[derive(Debug)]
pub enum Field {
    /// Taken as written.
    Literal(Value),
    /// A string with `{{ }}` or `orgconfig:` in it.
    Template(Template),
    /// A whole string `@a.b`: keeps the type of its value.
    Path(Vec<String>),
    /// An array of fields.
    Array(Vec<Field>),
    /// An object of fields.
    Object(Vec<(String, Field)>),
}

/// A variable that a field takes from its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldVariable {
    /// The JSON pointer of the string that names it, relative to the field.
    pub pointer: String,
    /// The variable, and its position in that string.
    pub variable: Variable,
}

impl Field {
    /// Compiles a written value.
    ///
    /// # Errors
    /// Every fault of its templates, each at its pointer relative to the value.
    pub fn compile(value: &Value) -> Result<Self, Vec<LocalFault>> {
        match value {
            Value::String(text) => match as_path(text) {
                Some(path) => Ok(Self::Path(path)),
                None if is_template(text) => Template::compile(text, ValueEscape::Plain)
                    .map(Self::Template)
                    .map_err(|fault| vec![LocalFault::template(fault, "")]),
                None => Ok(Self::Literal(value.clone())),
            },
            Value::Array(items) => {
                let parts = items.iter().enumerate().map(|(at, item)| (at.to_string(), item));
                let fields = gather(parts)?.into_iter().map(|(_, field)| field).collect();
                Ok(Self::Array(fields).or_literal(value))
            }
            Value::Object(members) => {
                let parts = members.iter().map(|(key, member)| (key.clone(), member));
                Ok(Self::Object(gather(parts)?).or_literal(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(Self::Literal(value.clone())),
        }
    }

    /// Its value. A path into a text that is JSON reads the JSON. A member that a call leaves out is left out. The values of the scope are data: they are
    /// never read as a template, a path or a secret.
    ///
    /// # Errors
    /// When a name that it needs has no value.
    pub fn resolve(&self, scope: &Scope<'_>) -> Result<Value, Unresolved> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Template(template) => template.render(scope).map(Value::String),
            Self::Path(path) => scope.lookup(path).map(Cow::into_owned),
            Self::Array(items) => {
                items.iter().map(|item| item.resolve(scope)).collect::<Result<_, _>>().map(Value::Array)
            }
            Self::Object(members) => members
                .iter()
                .filter_map(|(key, member)| {
                    Some(member.resolve_member(scope).transpose()?.map(|value| (key.clone(), value)))
                })
                .collect::<Result<Map<_, _>, _>>()
                .map(Value::Object),
        }
    }

    /// The variables that it takes from its scope, in the order of the text.
    pub fn variables(&self) -> Vec<FieldVariable> {
        let mut found = Vec::new();
        self.each_variable(&mut |pointer, variable| {
            found.push(FieldVariable { pointer: pointer.to_owned(), variable: variable.clone() });
        });
        found
    }

    /// Visits these variables, with the JSON pointer of the string that names each.
    pub(crate) fn each_variable(&self, visit: &mut dyn FnMut(&str, &Variable)) {
        self.each_string(&mut String::new(), &mut |pointer, part| match part {
            Self::Path(path) => {
                let range = 0..written_range(path).end;
                visit(pointer, &Variable { path: path.clone(), range, optional: false });
            }
            Self::Template(template) => template.variables().iter().for_each(|variable| visit(pointer, variable)),
            _ => {}
        });
    }

    /// Visits the values that it uses, those in the bodies of blocks too, with the JSON pointer of the string.
    pub(crate) fn each_use(&self, visit: &mut dyn FnMut(&str, &ValueUse)) {
        self.each_string(&mut String::new(), &mut |pointer, part| match part {
            Self::Path(path) => {
                let range = written_range(path);
                visit(pointer, &ValueUse { path: steps(path), range, guarded: 0, is_printed: true });
            }
            Self::Template(template) => template.uses().iter().for_each(|used| visit(pointer, used)),
            _ => {}
        });
    }

    /// Its templates, in the order of the text.
    pub fn templates(&self) -> Vec<&Template> {
        let mut found = Vec::new();
        self.each_string(&mut String::new(), &mut |_, part| {
            if let Self::Template(template) = part {
                found.push(template);
            }
        });
        found
    }

    /// The keys of the secrets that it names.
    pub fn secrets(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        self.each_string(&mut String::new(), &mut |_, part| {
            if let Self::Template(template) = part {
                found.extend(template.secrets().iter().cloned());
            }
        });
        found
    }

    fn each_string<'f>(&'f self, pointer: &mut String, visit: &mut dyn FnMut(&str, &'f Self)) {
        let length = pointer.len();
        match self {
            Self::Literal(_) => {}
            Self::Path(_) | Self::Template(_) => visit(pointer, self),
            Self::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    pointer.push_str(&format!("/{at}"));
                    item.each_string(pointer, visit);
                    pointer.truncate(length);
                }
            }
            Self::Object(members) => {
                for (key, member) in members {
                    pointer.push_str(&format!("/{}", escape_pointer(key)));
                    member.each_string(pointer, visit);
                    pointer.truncate(length);
                }
            }
        }
    }

    /// A list or object with only literal parts is a literal itself.
    fn or_literal(self, value: &Value) -> Self {
        let is_literal = match &self {
            Self::Array(items) => items.iter().all(|item| matches!(item, Self::Literal(_))),
            Self::Object(members) => members.iter().all(|(_, member)| matches!(member, Self::Literal(_))),
            _ => false,
        };
        if is_literal { Self::Literal(value.clone()) } else { self }
    }
}

/// Compiles the parts of a list or object, with all their faults.
fn gather<'v>(parts: impl Iterator<Item = (String, &'v Value)>) -> Result<Vec<(String, Field)>, Vec<LocalFault>> {
    let (mut fields, mut faults) = (Vec::new(), Vec::new());
    for (key, part) in parts {
        match Field::compile(part) {
            Ok(field) => fields.push((key, field)),
            Err(found) => {
                faults.extend(found.into_iter().map(|fault| fault.under(&format!("/{}", escape_pointer(&key)))))
            }
        }
    }
    if faults.is_empty() { Ok(fields) } else { Err(faults) }
}

/// Visits each text in a value, with its JSON pointer; `pointer` is that of the value.
pub(crate) fn each_text<'v>(value: &'v Value, pointer: &mut String, visit: &mut dyn FnMut(&str, &'v str)) {
    let length = pointer.len();
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{at}"));
                each_text(item, pointer, visit);
                pointer.truncate(length);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                pointer.push_str(&format!("/{}", escape_pointer(key)));
                each_text(member, pointer, visit);
                pointer.truncate(length);
            }
        }
        _ => {}
    }
}

/// Escapes a name for a JSON pointer.
pub(crate) fn escape_pointer(name: &str) -> String {
    crate::syntax::token(name)
}
