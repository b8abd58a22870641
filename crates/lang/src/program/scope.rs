//! The names that a field can use, and the values that paths lead to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::diagnostic::nearest;
use crate::policy::json_text;
use crate::program::bind::run_input::{LongList, LongLists, RunInput};
use crate::program::file_value::{FileValues, ListOnPath};
use crate::program::json_texts::{JsonTexts, TextJson, twice_in};
use crate::program::template_work::value_bytes;

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
    /// How texts are read as JSON.
    pub json: JsonTexts,
    /// The secrets; `None` where none may be used.
    pub secrets: Option<&'a dyn Secrets>,
}

impl<'a> Scope<'a> {
    /// The scope of a run's input alone: no call, no run, no secrets.
    pub fn of_input(input: &'a Value, json: JsonTexts) -> Self {
        Self {
            arguments: &Value::Null,
            context: &[],
            input,
            lists: None,
            files: None,
            now: "",
            run_id: "",
            extra: &[],
            json,
            secrets: None,
        }
    }
}

/// Why a text or a path has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Unresolved {
    /// Why, in a sentence without a final stop.
    pub why: String,
    /// What is wrong.
    pub kind: UnresolvedKind,
}

/// What is wrong where a text or a path has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnresolvedKind {
    /// A name has no value, or a secret is missing.
    Missing,
    /// The same: it would be a part of a text that is no JSON.
    BelowText,
    /// The value is in a text that begins as JSON does and can't be read.
    Broken,
    /// The values are there, and the text is not made: it would be too long, or lead elsewhere.
    Refused,
}

impl Unresolved {
    /// A name without a value.
    pub(crate) fn missing(why: impl Into<String>) -> Self {
        Self { why: why.into(), kind: UnresolvedKind::Missing }
    }

    /// A text that is not made.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self { why: why.into(), kind: UnresolvedKind::Refused }
    }

    /// Whether there is no value.
    pub fn is_missing(&self) -> bool {
        matches!(self.kind, UnresolvedKind::Missing | UnresolvedKind::BelowText)
    }

    /// Whether the value may be there, in a text that can't be read.
    pub fn is_broken(&self) -> bool {
        self.kind == UnresolvedKind::Broken
    }
}

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
            return Err(Unresolved::missing("a path names nothing"));
        };
        if let Some(ListOnPath { list, depth }) = self.long_list(path) {
            return self.in_list(list, path, depth, read);
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
        match value {
            Cow::Borrowed(value) => self.walk_kept(value, first, rest, read),
            Cow::Owned(_) => walk(value, first.clone(), rest, &self.json, read),
        }
    }

    /// The value at a path below a value of the scope. A text on the way that is JSON is parsed once.
    fn walk_kept(
        &self,
        mut value: &'a Value,
        first: &str,
        path: &[String],
        read: &mut usize,
    ) -> Result<Cow<'a, Value>, Unresolved> {
        let mut so_far = first.to_owned();
        let mut rest = path;
        while let Some((segment, behind)) = rest.split_first() {
            let below = match value {
                Value::String(text) => return self.walk_text(text, &so_far, rest, read),
                Value::Object(members) => members.get(segment),
                Value::Array(items) => index(segment).and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(below) = below else { return walk(Cow::Borrowed(value), so_far, rest, &self.json, read) };
            (value, rest) = (below, behind);
            so_far.push('.');
            so_far.push_str(segment);
        }
        Ok(Cow::Borrowed(value))
    }

    /// The value at a path into a text of the scope.
    fn walk_text(
        &self,
        text: &'a str,
        so_far: &str,
        path: &[String],
        read: &mut usize,
    ) -> Result<Cow<'a, Value>, Unresolved> {
        let (json, was_parsed) = self.json.of_known(text);
        let Some((segment, rest)) = path.split_first() else { return Err(Unresolved::missing("a path names nothing")) };
        let is_json = json.value().is_some();
        // What is parsed already is not read again. In a text that is no JSON, the characters are counted.
        if !(was_parsed && is_json) {
            *read = read.saturating_add(text.len());
        }
        let step = |value| descend(Cow::Borrowed(value), segment, &self.json).ok();
        let characters = || length(segment, text.chars().count());
        let found = json.fenced.as_ref().and_then(step).or_else(|| match &json.plain {
            Some(plain) => step(plain),
            None => characters(),
        });
        match found {
            // What the path leads to is copied, and nothing else.
            Some(found) => walk(found, format!("{so_far}.{segment}"), rest, &self.json, read)
                .map(|value| Cow::Owned(value.into_owned())),
            None => {
                *read = read.saturating_add(if is_json { NAME_BYTES } else { text.len() });
                Err(absent_in_text(so_far, segment, text, TextReading { json: &self.json, found: &json }))
            }
        }
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
        self.json.of(text).into_value()
    }

    /// The same of what a path of this scope leads to, as far as it is such a text; the value itself where it is none.
    pub(crate) fn with_json<T>(&self, value: Cow<'a, Value>, work: impl FnOnce(&Value) -> T) -> T {
        match value {
            Cow::Borrowed(value) => match value {
                Value::String(text) => work(self.json.of_kept(text).value().unwrap_or(value)),
                _ => work(value),
            },
            Cow::Owned(value) => match &value {
                Value::String(text) => work(self.json.of(text).value().unwrap_or(&value)),
                _ => work(&value),
            },
        }
    }

    /// A copy of the value at a path.
    ///
    /// # Errors
    /// When there is no value, or the scope has read too much.
    pub fn copied(&self, path: &[String]) -> Result<Value, Unresolved> {
        let (value, read) = self.lookup_counted(path);
        if !self.json.bounds_work() {
            return value.map(Cow::into_owned);
        }
        let work = self.json.work();
        work.add_read(read);
        let value = value?.into_owned();
        work.add_read(value_bytes(&value));
        work.is_within().map(|()| value)
    }

    /// The same of a path that may have no value.
    ///
    /// # Errors
    /// When it may be in a text that should be JSON and can't be read, or the scope has read too much.
    pub fn optional_copied(&self, path: &[String]) -> Result<Option<Value>, Unresolved> {
        match self.copied(path) {
            Ok(value) => Ok(Some(value)),
            Err(why) if self.is_fault(&why) => Err(why),
            Err(_) => Ok(None),
        }
    }

    /// The value at a path that may have none.
    ///
    /// # Errors
    /// When it may be in a text that should be JSON and can't be read.
    pub fn optional(&self, path: &[String]) -> Result<Option<Cow<'a, Value>>, Unresolved> {
        match self.lookup(path) {
            Ok(value) => Ok(Some(value)),
            Err(why) if self.is_fault(&why) => Err(why),
            Err(_) => Ok(None),
        }
    }

    /// Whether what has no value is a fault also where a value may be missing.
    pub fn is_fault(&self, unresolved: &Unresolved) -> bool {
        self.json.rule().is_whole() && !unresolved.is_missing()
    }

    /// Why what should be a list is a text that begins as JSON does and can't be read.
    pub fn broken_list(&self, name: &str, value: &Value) -> Option<Unresolved> {
        let text = value.as_str().filter(|_| self.json.rule().is_whole())?;
        self.json.why_broken(text).map(|why| broken(name, &why))
    }

    /// A step down from a value, as in a path; returns the value if there is no such member.
    pub(crate) fn step_into<'v>(&self, value: Cow<'v, Value>, segment: &str) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
        step_into(value, segment, &self.json)
    }

    /// The fault that `segment` is not in `value`, which is called `name`.
    pub(crate) fn absent(&self, name: &str, segment: &str, value: &Value) -> Unresolved {
        absent(name, segment, value, &self.json)
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
        Unresolved::missing(format!("`{}` was not given{hint}", shorten(name)))
    }

    /// The value at a path below a long list; only the items that it leads to are parsed.
    fn in_list<'v>(
        &self,
        list: &LongList,
        path: &[String],
        depth: usize,
        read: &mut usize,
    ) -> Result<Cow<'v, Value>, Unresolved> {
        let (so_far, rest) = path.split_at_checked(depth).unwrap_or((path, &[]));
        let so_far = so_far.join(".");
        let Some((segment, rest)) = rest.split_first() else { return Ok(Cow::Owned(list.items().collect())) };
        let item = index(segment).and_then(|at| list.get(at)).map(Cow::Owned);
        let value = item.or_else(|| length(segment, list.len()));
        let absent = || {
            let (name, segment) = (shorten(&so_far), shorten(segment));
            Unresolved::missing(format!("`{name}` has no `{segment}`; it is a list of {}", list.len()))
        };
        *read = read.saturating_add(LIST_STEP_BYTES);
        walk(value.ok_or_else(absent)?, format!("{so_far}.{segment}"), rest, &self.json, read)
    }
}

/// The value at a path below a value.
fn walk<'v>(
    mut value: Cow<'v, Value>,
    mut so_far: String,
    path: &[String],
    json: &JsonTexts,
    read: &mut usize,
) -> Result<Cow<'v, Value>, Unresolved> {
    for segment in path {
        *read = read.saturating_add(value.as_str().map_or(0, str::len));
        value = step_into(value, segment, json).map_err(|at| {
            *read = read.saturating_add(absent_bytes(&at));
            absent(&so_far, segment, at.as_ref(), json)
        })?;
        so_far.push('.');
        so_far.push_str(segment);
    }
    Ok(value)
}

/// A step down from a value, also into the JSON in a fence of a text; returns the value if there is no such member.
fn step_into<'v>(value: Cow<'v, Value>, segment: &str, json: &JsonTexts) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
    let in_fence = match value.as_ref() {
        Value::String(text) => json.fenced(text).and_then(|fenced| descend(Cow::Owned(fenced), segment, json).ok()),
        _ => None,
    };
    in_fence.map_or_else(|| descend(value, segment, json), Ok)
}

/// A step down from a value; returns the value if there is no such member.
fn descend<'v>(value: Cow<'v, Value>, segment: &str, json: &JsonTexts) -> Result<Cow<'v, Value>, Cow<'v, Value>> {
    match value {
        Cow::Borrowed(borrowed) => match borrowed {
            Value::Object(members) => members.get(segment).map(Cow::Borrowed).ok_or(value),
            Value::Array(items) => match index(segment) {
                Some(at) => items.get(at).map(Cow::Borrowed).ok_or(value),
                None => length(segment, items.len()).ok_or(value),
            },
            Value::String(text) => into_text(text, segment, json).ok_or(value),
            _ => Err(value),
        },
        Cow::Owned(mut owned) => {
            let found = match &mut owned {
                Value::Object(members) => members.get_mut(segment).map(|member| Cow::Owned(member.take())),
                Value::Array(items) => match index(segment) {
                    Some(at) => items.get_mut(at).map(|item| Cow::Owned(item.take())),
                    None => length(segment, items.len()),
                },
                Value::String(text) => into_text(text, segment, json),
                _ => None,
            };
            found.ok_or(Cow::Owned(owned))
        }
    }
}

/// A step into a text: into its JSON, or to its length in characters.
fn into_text<'v>(text: &str, segment: &str, json: &JsonTexts) -> Option<Cow<'v, Value>> {
    match json.plain(text) {
        Some(value) => descend(Cow::Owned(value), segment, json).ok(),
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

/// About how many bytes are read to say that a name is absent in this value.
pub(crate) fn absent_bytes(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.len().saturating_mul(NAME_BYTES),
        Value::String(text) => text.len(),
        _ => 0,
    }
}

/// The fault that `segment` is not in `value`, which is called `name`.
fn absent(name: &str, segment: &str, value: &Value, json: &JsonTexts) -> Unresolved {
    if let Value::String(text) = value {
        return absent_in_text(name, segment, text, TextReading { json, found: &json.of(text) });
    }
    let (name, segment) = (shorten(name), shorten(segment));
    Unresolved::missing(match value {
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

/// What was read of a text, and how.
#[derive(Clone, Copy)]
struct TextReading<'r> {
    json: &'r JsonTexts,
    found: &'r TextJson,
}

/// The same in a text.
fn absent_in_text(name: &str, segment: &str, text: &str, reading: TextReading<'_>) -> Unresolved {
    let TextReading { json, found } = reading;
    let is_read = found.value().is_some();
    let why_broken = if is_read { None } else { json.why_broken(text) };
    if let Some(why) = why_broken.as_ref().filter(|_| json.rule().is_whole()) {
        return broken(name, why);
    }
    let (name, segment) = (shorten(name), shorten(segment));
    let twice = if is_read && json.rule().reads_fences() { None } else { twice_in(json.bare(text)) };
    let why = match twice {
        Some(key) => format!(
            "`{name}` is a text whose JSON has the key `{}` twice in one object, and has no `{segment}`",
            shorten(&key)
        ),
        None => format!("`{name}` is a text and has no `{segment}`"),
    };
    let kind = match why_broken {
        Some(_) => UnresolvedKind::Broken,
        None if !is_read && json.rule().reads_any_fence() && is_no_json(json.bare(text)) => UnresolvedKind::BelowText,
        None => UnresolvedKind::Missing,
    };
    Unresolved { why, kind }
}

/// Whether a text is no JSON at all: `null` and a number are, and have no parts.
fn is_no_json(text: &str) -> bool {
    json_text::read::<serde::de::IgnoredAny>(text.trim()).is_err()
}

/// The fault that a text which should be JSON can't be read.
fn broken(name: &str, why: &str) -> Unresolved {
    let why = format!("`{}` is a text that begins as JSON does and can't be read: {why}", shorten(name));
    Unresolved { why, kind: UnresolvedKind::Broken }
}

/// Shortens a name for a message: a name from a model or tool may be long.
pub(super) fn shorten(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(60) {
        Some((at, _)) => Cow::Owned(format!("{}...", name.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(name),
    }
}
