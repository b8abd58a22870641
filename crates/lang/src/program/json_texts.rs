//! Texts that are JSON: what paths, loops, matchers, blocks and conditions read of them.

mod before;
mod fences;

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use before::without_marks;
use fences::{begins_json, fences};

use super::scope::shorten;
use super::template_work::{TemplateWork, WorkBound};
use crate::policy::json_text;
use crate::program::file_value::{key_twice, key_twice_in, reserved_key};

pub use fences::whole_fence;

/// What begins and ends a fence.
const FENCE: &str = "```";
/// The most levels of a JSON text that are read.
const MAX_DEPTH: usize = 127;
/// A shorter text is parsed each time, in bytes.
const MIN_KEPT_BYTES: usize = 256;
/// The most texts that are kept parsed, and the most bytes of them.
const MAX_KEPT_TEXTS: usize = 64;
const MAX_KEPT_BYTES: usize = 16 << 20;

/// What a run reads of a text that should be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonRule {
    /// A text that is JSON, and of a key that is twice the last value.
    Plain,
    /// The same, or what is in its only fence, as a model writes it; nothing of a text that has a key twice.
    Fenced,
    /// The same, and a text that begins as JSON does and can't be read has no missing values: what asks for one fails.
    Whole,
    /// The same; fences of all forms are read, half of a surrogate pair is U+FFFD, and a condition that needs a part of a text which
    /// is no JSON fails.
    AnyFence,
    /// The same of what is behind a byte order mark, and behind the block in which a model thinks.
    BehindMarks,
}

/// Reads texts as JSON by a rule, the long ones that its scope holds once.
#[derive(Debug)]
pub struct JsonTexts {
    rule: JsonRule,
    kept: RefCell<Vec<KeptText>>,
    work: Rc<TemplateWork>,
}

/// A text that was parsed. It outlives its reader: its address means no other text.
#[derive(Debug)]
struct KeptText {
    at: usize,
    bytes: usize,
    json: Rc<TextJson>,
}

/// The objects or lists that a text is the JSON of, or has in its fence.
#[derive(Debug, Default)]
pub(super) struct TextJson {
    pub fenced: Option<Value>,
    pub plain: Option<Value>,
}

impl From<JsonRule> for JsonTexts {
    fn from(rule: JsonRule) -> Self {
        Self::within(rule, TemplateWork::new(WorkBound::ONE))
    }
}

impl JsonTexts {
    /// Those of a scope whose work has this bound.
    pub fn within(rule: JsonRule, work: TemplateWork) -> Self {
        Self { rule, kept: RefCell::default(), work: Rc::new(work) }
    }

    /// Those of another scope whose work counts together with that of this one.
    pub fn beside(&self) -> Self {
        Self { rule: self.rule, kept: RefCell::default(), work: Rc::clone(&self.work) }
    }

    /// The work of the scope.
    pub(super) fn work(&self) -> &TemplateWork {
        &self.work
    }

    /// Whether that is bounded as a whole. Runs of older editions bound the parts of each template, and nothing else.
    pub(super) fn bounds_work(&self) -> bool {
        self.rule.is_whole()
    }

    /// The rule.
    pub fn rule(&self) -> JsonRule {
        self.rule
    }

    /// What a text holds.
    pub(super) fn of(&self, text: &str) -> TextJson {
        TextJson { fenced: self.fenced(text), plain: self.plain(text) }
    }

    /// The object or list that is in the only fence of a text that has one.
    pub(super) fn fenced(&self, text: &str) -> Option<Value> {
        if self.rule.reads_fences() { fenced(self.bare(text), self.rule) } else { None }
    }

    /// The object or list that a text is the JSON of.
    pub(super) fn plain(&self, text: &str) -> Option<Value> {
        json_in(self.bare(text), self.rule)
    }

    /// The part of a text that may be JSON.
    pub(super) fn bare<'t>(&self, text: &'t str) -> &'t str {
        if self.rule == JsonRule::BehindMarks { without_marks(text) } else { text }
    }

    /// The same of a text that lives as long as the scope of this reader does.
    pub(super) fn of_kept(&self, text: &str) -> Rc<TextJson> {
        self.of_known(text).0
    }

    /// The same, and whether it was parsed before.
    pub(super) fn of_known(&self, text: &str) -> (Rc<TextJson>, bool) {
        let (at, bytes) = (text.as_ptr().addr(), text.len());
        let known = |kept: &[KeptText]| {
            let same = kept.iter().find(|kept| kept.at == at && kept.bytes == bytes);
            same.map(|same| Rc::clone(&same.json))
        };
        if let Some(json) = known(&self.kept.borrow()) {
            return (json, true);
        }
        let json = Rc::new(self.of(text));
        let mut kept = self.kept.borrow_mut();
        let before: usize = kept.iter().map(|kept| kept.bytes).sum();
        if bytes >= MIN_KEPT_BYTES && kept.len() < MAX_KEPT_TEXTS && before.saturating_add(bytes) <= MAX_KEPT_BYTES {
            kept.push(KeptText { at, bytes, json: Rc::clone(&json) });
        }
        (json, false)
    }

    /// Why a text that begins as JSON does, or has a fence that does, can't be read; none of a text that is no JSON, and of one that
    /// can be read.
    pub(super) fn why_broken(&self, text: &str) -> Option<String> {
        let text = self.bare(text);
        let begins = begins_json(text);
        let fences = if self.rule.reads_fences() { json_fences(text, self.rule) } else { Vec::new() };
        let is_meant = match self.rule {
            JsonRule::Plain => begins,
            JsonRule::Fenced => begins || text.contains(FENCE),
            JsonRule::Whole | JsonRule::AnyFence | JsonRule::BehindMarks => begins || !fences.is_empty(),
        };
        if !is_meant && self.rule.reads_any_fence() {
            return marked_otherwise(text);
        }
        if !is_meant || self.of(text).value().is_some() {
            return None;
        }
        if let Some(key) = twice_in(text) {
            return Some(format!("it has the key `{}` twice in one object", shorten(&key)));
        }
        Some(match fences.as_slice() {
            [] => why_unread(text),
            [fence] => format!("in its fence, {}", why_unread(fence)),
            _ => "it has several fences with JSON".to_owned(),
        })
    }
}

impl JsonRule {
    /// That of a new run.
    pub const PRESENT: Self = Self::BehindMarks;

    /// Whether the JSON in a fence of a text is read, and one with a key twice is not.
    pub fn reads_fences(self) -> bool {
        self != Self::Plain
    }

    /// Whether JSON that can't be read is a fault wherever a part of it is asked for.
    pub fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::AnyFence | Self::BehindMarks)
    }

    /// Whether fences of all forms are read, and a condition needs the parts of a text that it names.
    pub fn reads_any_fence(self) -> bool {
        matches!(self, Self::AnyFence | Self::BehindMarks)
    }
}

impl TextJson {
    /// The text as a whole comes first.
    pub fn into_value(self) -> Option<Value> {
        self.plain.or(self.fenced)
    }

    /// The same value, where it stays.
    pub fn value(&self) -> Option<&Value> {
        self.plain.as_ref().or(self.fenced.as_ref())
    }
}

/// The object or list that a text is the JSON of; none where a key is twice in an object, because one of its two values would be
/// lost, unless the rule is the oldest.
fn json_in(text: &str, rule: JsonRule) -> Option<Value> {
    let mut text = Cow::Borrowed(Some(text.trim_start()).filter(|text| begins_json(text))?);
    let mut value = json_text::read::<Value>(&text);
    if value.is_err()
        && rule.reads_any_fence()
        && let Some(repaired) = json_text::repaired(&text)
    {
        text = Cow::Owned(repaired);
        value = json_text::read::<Value>(&text);
    }
    let value = value.ok()?;
    let is_strict = rule.reads_fences();
    (!is_strict || key_twice(&text, &value).is_none() && reserved_key(&text).is_none()).then_some(value)
}

/// Why a text that begins as JSON does can't be read.
fn why_unread(text: &str) -> String {
    let text = text.trim_start();
    match json_text::read::<Value>(text).err().map(|why| why.to_string()) {
        Some(why) if why.starts_with("recursion limit") => format!("it is nested deeper than {MAX_DEPTH} levels"),
        Some(why)
            if (why.contains("surrogate") || why.contains("hex escape")) && json_text::repaired(text).is_some() =>
        {
            format!("it has half of a surrogate pair: {why}")
        }
        Some(why) => why,
        None if let Some(key) = key_twice_in(text) => format!("it has the key `{}` twice in one object", shorten(&key)),
        None if let Some(key) = reserved_key(text) => {
            format!("it has the key `{}`, which no value may have", shorten(&key))
        }
        None => "it is no object and no list".to_owned(),
    }
}

/// Why JSON in a fence of another language is not read.
fn marked_otherwise(text: &str) -> Option<String> {
    let is_json = |inner: &str| json_in(inner, JsonRule::AnyFence).is_some();
    let fence = fences(text).into_iter().find(|fence| fence.may_be_meant_as_json() && is_json(fence.inner))?;
    Some(format!("its fence is marked `{}`, and JSON is read of one that is marked `json`", shorten(fence.language)))
}

/// The key that is twice in the JSON of a text, or in that in its fence.
pub(super) fn twice_in(text: &str) -> Option<String> {
    let inner = match text.contains(FENCE) {
        true => text.split(FENCE).nth(1)?.trim_start_matches(|c: char| c.is_alphabetic()),
        false => text,
    };
    let inner = Some(inner.trim()).filter(|inner| begins_json(inner))?;
    key_twice_in(inner)
}

/// The object or list that is in a fence of a text, with words around it or without; none where several do, because it
/// is not clear then which one is meant.
fn fenced(text: &str, rule: JsonRule) -> Option<Value> {
    let mut found = json_fences(text, rule).into_iter().filter_map(|inner| json_in(&inner, rule));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

/// What is in the fences of a text that begin as JSON does.
fn json_fences(text: &str, rule: JsonRule) -> Vec<String> {
    if rule.reads_any_fence() {
        let json = fences(text).into_iter().filter(|fence| fence.may_be_json() && begins_json(fence.inner));
        return json.map(|fence| fence.inner.trim().to_owned()).collect();
    }
    let mut found = Vec::new();
    if !text.contains(FENCE) {
        return found;
    }
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim().strip_prefix(FENCE) else { continue };
        let of_fence: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != FENCE).collect();
        let is_json = language.is_empty() || language.trim().eq_ignore_ascii_case("json");
        found.extend(Some(of_fence.join("\n")).filter(|inner| is_json && begins_json(inner)));
    }
    found
}

#[cfg(test)]
mod tests;
