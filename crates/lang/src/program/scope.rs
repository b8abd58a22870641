//! The names that a field can use, and the values that paths lead to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::diagnostic::nearest;
use crate::policy::json_text;
use crate::program::bind::run_input::{LongList, LongLists, RunInput};
use crate::program::file_value::{FileValues, ListOnPath, key_twice, key_twice_in, reserved_key};

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

/// What it costs to compare a name with another one, in bytes that are read.
const NAME_BYTES: usize = 64;
/// What it costs to find an item of a long list, in bytes that are read.
const LIST_STEP_BYTES: usize = 4_096;

/// What begins and ends a fence.
const FENCE: &str = "```";

/// The values of names while a field is resolved.
pub struct Scope<'a> {
    /// The tool call's input: its names are at the top. `Value::Null` outside a call.
    pub arguments: &'a Value,
    /// More names, the nearest first: those of a workflow's context. `arguments` hides them.
    pub context: &'a [&'a Map<String, Value>],
    /// The run's input: `input`.
    pub input: &'a Value,
    /// The long lists of the input, which has `null` in their places.
    pub lists: Option<&'a LongLists>,
    /// The files of the run; their names are the last of `context`.
    pub files: Option<&'a FileValues>,
    /// The moment of the call, RFC 3339: `now`.
    pub now: &'a str,
    /// The run: `__run_id`.
    pub run_id: &'a str,
    /// Names with texts that only some fields can use (`tools`, `today`, ...).
    pub extra: &'a [(&'a str, &'a str)],
    /// Whether a text is read as the JSON that is in a fence there, as a model writes it, and a block over a text goes through
    /// its JSON; not in runs of older editions.
    pub reads_fences: bool,
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
        self.lookup_counted(path).0
    }

    /// The same, and how many bytes were read on the way: of texts as JSON, and of names that are compared for a hint.
    pub(crate) fn lookup_counted(&self, path: &[String]) -> (Result<Cow<'a, Value>, Unresolved>, usize) {
        let mut read = 0;
        (self.look_up(path, &mut read), read)
    }

    fn look_up(&self, path: &[String], read: &mut usize) -> Result<Cow<'a, Value>, Unresolved> {
        let Some((first, rest)) = path.split_first() else {
            return Err(Unresolved("a path names nothing".to_owned()));
        };
        if let Some(ListOnPath { list, depth }) = self.long_list(path) {
            return in_list(list, path, depth, self.reads_fences, read);
        }
        if first == "input" && rest.is_empty() && self.lists.is_some_and(|lists| !lists.is_empty()) {
            let lists = self.lists.cloned().unwrap_or_default();
            return Ok(Cow::Owned(RunInput { value: self.input.clone(), lists }.into_whole()));
        }
        if rest.is_empty()
            && let Some(whole) = self.files_in_sight(first).and_then(|files| files.whole(first))
        {
            return Ok(whole);
        }
        let Some(value) = self.name(first) else {
            let names = self.arguments.as_object().into_iter().chain(self.context.iter().copied()).map(Map::len);
            *read = read.saturating_add(names.sum::<usize>().saturating_mul(NAME_BYTES));
            return Err(self.not_given(first, !rest.is_empty()));
        };
        walk(value, first.clone(), rest, self.reads_fences, read)
    }

    /// The long list of the input, or of a file, that a path leads into.
    fn long_list(&self, path: &[String]) -> Option<ListOnPath<'a>> {
        match path {
            [input, name, ..] if input == "input" => self.lists?.get(name).map(|list| ListOnPath { list, depth: 2 }),
            [first, ..] => self.files_in_sight(first)?.list_on(path),
            [] => None,
        }
    }

    /// The files, if a name means one of them: a nearer name hides it.
    fn files_in_sight(&self, name: &str) -> Option<&'a FileValues> {
        self.files.filter(|files| files.are_meant(name, self.near()))
    }

    /// The long list of the input, or of a file, at a path.
    pub fn long_list_at(&self, path: &[String]) -> Option<&'a LongList> {
        self.long_list(path).filter(|found| found.depth == path.len()).map(|found| found.list)
    }

    /// The object or list that a text is the JSON of, or has in a fence: one rule for paths, loops, matchers and blocks.
    pub fn json_of(&self, text: &str) -> Option<Value> {
        json_in(text, self.reads_fences).or_else(|| fenced(text).filter(|_| self.reads_fences))
    }

    /// Whether a path leads into a text that begins as JSON does and can't be read: it is cut off, has a key twice, or is none.
    pub fn is_in_broken_json(&self, path: &[String]) -> bool {
        let above = (1..path.len()).rev().find_map(|depth| self.lookup(path.get(..depth)?).ok());
        match above.as_deref() {
            Some(Value::String(text)) => {
                let begins = text.trim_start().starts_with(['{', '[']) || self.reads_fences && text.contains(FENCE);
                begins && self.json_of(text).is_none()
            }
            _ => false,
        }
    }

    /// A step down from a value, as in a path; returns the value if there is no such member.
    pub(crate) fn step_into<'v>(&self, value: Cow<'v, Value>, segment: &str) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
        step_into(value, segment, self.reads_fences)
    }

    pub(super) fn name(&self, name: &str) -> Option<Cow<'a, Value>> {
        let text = |text: &str| Some(Cow::Owned(Value::String(text.to_owned())));
        match name {
            "input" => Some(Cow::Borrowed(self.input)),
            "now" => text(self.now),
            "__run_id" => text(self.run_id),
            _ => match self.extra.iter().find(|(extra, _)| *extra == name) {
                Some((_, value)) => text(value),
                None => self.near().find_map(|names| names.get(name)).map(Cow::Borrowed),
            },
        }
    }

    /// The names of the call and of the context, the nearest first.
    fn near(&self) -> impl Iterator<Item = &'a Map<String, Value>> {
        self.arguments.as_object().into_iter().chain(self.context.iter().copied())
    }

    /// The fault that a name has no value. A text of the engine has no parts, which `has_parts` asks for.
    fn not_given(&self, name: &str, has_parts: bool) -> Unresolved {
        let arguments = self.arguments.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let context = self.context.iter().flat_map(|names| names.keys()).map(String::as_str);
        let extra = self.extra.iter().map(|(name, _)| *name);
        let own = RESERVED.into_iter().filter(|own| !has_parts || *own == "input");
        let extra = extra.filter(|_| !has_parts);
        let hint = match nearest(name, arguments.chain(context).chain(extra).chain(own)) {
            Some(near) => format!("; did you mean `{near}`?"),
            None if self.input.get(name).is_some() => format!("; did you mean `input.{name}`?"),
            None => String::new(),
        };
        Unresolved(format!("`{}` was not given{hint}", shorten(name)))
    }
}

/// The value at a path below a long list; only the items that it leads to are parsed.
fn in_list<'v>(
    list: &LongList,
    path: &[String],
    depth: usize,
    reads_fences: bool,
    read: &mut usize,
) -> Result<Cow<'v, Value>, Unresolved> {
    let (so_far, rest) = path.split_at_checked(depth).unwrap_or((path, &[]));
    let so_far = so_far.join(".");
    let Some((segment, rest)) = rest.split_first() else { return Ok(Cow::Owned(list.items().collect())) };
    let item = index(segment).and_then(|at| list.get(at)).map(Cow::Owned);
    let value = item.or_else(|| length(segment, list.len()));
    let absent =
        || Unresolved(format!("`{}` has no `{}`; it is a list of {}", shorten(&so_far), shorten(segment), list.len()));
    *read = read.saturating_add(LIST_STEP_BYTES);
    walk(value.ok_or_else(absent)?, format!("{so_far}.{segment}"), rest, reads_fences, read)
}

/// The value at a path below a value.
fn walk<'v>(
    mut value: Cow<'v, Value>,
    mut so_far: String,
    path: &[String],
    reads_fences: bool,
    read: &mut usize,
) -> Result<Cow<'v, Value>, Unresolved> {
    for segment in path {
        *read = read.saturating_add(value.as_str().map_or(0, str::len));
        value = step_into(value, segment, reads_fences).map_err(|at| {
            *read = read.saturating_add(absent_bytes(&at));
            absent(&so_far, segment, at.as_ref())
        })?;
        so_far.push('.');
        so_far.push_str(segment);
    }
    Ok(value)
}

/// A step down from a value, also into the JSON in a fence of a text; returns the value if there is no such member.
fn step_into<'v>(value: Cow<'v, Value>, segment: &str, reads_fences: bool) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
    let in_fence = match value.as_ref() {
        Value::String(text) if reads_fences => {
            fenced(text).and_then(|json| descend(Cow::Owned(json), segment, true).ok())
        }
        _ => None,
    };
    in_fence.map_or_else(|| descend(value, segment, reads_fences), Ok)
}

/// A step down from a value; returns the value if there is no such member.
fn descend<'v>(value: Cow<'v, Value>, segment: &str, is_strict: bool) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
    match value {
        Cow::Borrowed(borrowed) => match borrowed {
            Value::Object(members) => members.get(segment).map(Cow::Borrowed).ok_or(value),
            Value::Array(items) => match index(segment) {
                Some(at) => items.get(at).map(Cow::Borrowed).ok_or(value),
                None => length(segment, items.len()).ok_or(value),
            },
            Value::String(text) => into_text(text, segment, is_strict).ok_or(value),
            _ => Err(value),
        },
        Cow::Owned(mut owned) => {
            let found = match &mut owned {
                Value::Object(members) => members.get_mut(segment).map(|member| Cow::Owned(member.take())),
                Value::Array(items) => match index(segment) {
                    Some(at) => items.get_mut(at).map(|item| Cow::Owned(item.take())),
                    None => length(segment, items.len()),
                },
                Value::String(text) => into_text(text, segment, is_strict),
                _ => None,
            };
            found.ok_or(Cow::Owned(owned))
        }
    }
}

/// The object or list that a text is the JSON of: see [`Scope::json_of`]. `is_strict`: none where a key is twice in an
/// object, because one of its two values would be lost.
fn json_in(text: &str, is_strict: bool) -> Option<Value> {
    let text = Some(text.trim_start()).filter(|text| text.starts_with(['{', '[']))?;
    let value = json_text::read::<Value>(text).ok()?;
    (!is_strict || key_twice(text, &value).is_none() && reserved_key(text).is_none()).then_some(value)
}

/// The key that is twice in the JSON of a text, or in that in its fence.
fn twice_in(text: &str) -> Option<String> {
    let inner = match text.contains(FENCE) {
        true => text.split(FENCE).nth(1)?.trim_start_matches(|c: char| c.is_alphabetic()),
        false => text,
    };
    let inner = Some(inner.trim()).filter(|inner| inner.starts_with(['{', '[']))?;
    key_twice_in(inner)
}

/// A step into a text: into its JSON, or to its length in characters.
fn into_text<'v>(text: &str, segment: &str, is_strict: bool) -> Option<Cow<'v, Value>> {
    match json_in(text, is_strict) {
        Some(json) => descend(Cow::Owned(json), segment, is_strict).ok(),
        None => length(segment, text.chars().count()),
    }
}

/// The object or list that is in a fence of a text, with words around it or without; none where several do, because it
/// is not clear then which one is meant.
fn fenced(text: &str) -> Option<Value> {
    let (mut found, mut lines) = (None, text.lines());
    while let Some(line) = lines.next() {
        let Some(language) = line.trim().strip_prefix(FENCE) else { continue };
        let of_fence: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != FENCE).collect();
        let is_json = language.is_empty() || language.trim().eq_ignore_ascii_case("json");
        let inner = Some(of_fence.join("\n")).filter(|inner| is_json && inner.trim_start().starts_with(['{', '[']));
        let Some(json) = inner.and_then(|inner| json_in(&inner, true)) else { continue };
        if found.replace(json).is_some() {
            return None;
        }
    }
    found
}

fn length<'v>(segment: &str, length: usize) -> Option<Cow<'v, Value>> {
    (segment == "length").then(|| Cow::Owned(Value::from(length)))
}

/// An index as JSON pointers write it: digits without a leading zero.
fn index(segment: &str) -> Option<usize> {
    let digits = segment.bytes().all(|byte| byte.is_ascii_digit());
    (digits && (segment == "0" || !segment.starts_with('0'))).then(|| segment.parse().ok())?
}

/// About how many bytes are read to say that a name is absent in this value.
pub(crate) fn absent_bytes(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len().saturating_mul(NAME_BYTES),
        Value::String(text) => text.len(),
        _ => 0,
    }
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
        Value::String(text) => match twice_in(text) {
            Some(key) => format!(
                "`{name}` is a text whose JSON has the key `{}` twice in one object, and has no `{segment}`",
                shorten(&key)
            ),
            None => format!("`{name}` is a text and has no `{segment}`"),
        },
    })
}

/// Shortens a name for a message: a name from a model or tool may be long.
fn shorten(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(60) {
        Some((at, _)) => Cow::Owned(format!("{}...", name.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}
