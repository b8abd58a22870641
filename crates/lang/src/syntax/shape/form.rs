//! A part of a schema, prepared for checking values: references resolved, types as bits, fields by name. Built
//! once for each process, each part on first use, because steps contain steps. Messages use the words of the
//! schema itself.

use std::ops::Deref;
use std::sync::OnceLock;

use serde_json::Value;

use super::document_schemas::{resolve, types, words};
use crate::language::schema::{largest, least};
use crate::syntax::{Node, NodeKind};

/// A part of a schema.
#[derive(Debug)]
pub(super) struct SchemaForm {
    /// The part, with its reference resolved.
    pub schema: &'static Value,
    /// Branches that are selected by the type of the value.
    pub any_of: Vec<LazyForm>,
    /// The allowed words, if only words are allowed.
    pub words: Option<Vec<&'static str>>,
    /// Branches that are selected by a word in the value, with that word.
    pub one_of: Vec<(Option<&'static str>, LazyForm)>,
    /// The field of that word.
    pub tag: Option<&'static str>,
    /// The branch for all other words of that field.
    pub rest: Option<LazyForm>,
    /// Branches that are objects with one field each, by that field.
    pub keyed: Vec<(&'static str, LazyForm)>,
    /// The names of the allowed JSON types; empty when all are allowed.
    pub types: Vec<&'static str>,
    /// The same as bits.
    bits: u8,
    /// The form of the items of an array.
    pub items: Option<LazyForm>,
    /// The fewest and the most entries.
    pub count: (Option<usize>, Option<usize>),
    /// The fields of an object.
    pub fields: FormFields,
    /// The other fields of an object.
    pub others: Others,
    /// The required fields.
    pub required: Vec<&'static str>,
    /// The least and the greatest number, as digits.
    pub bounds: (Option<String>, Option<String>),
    /// The fewest and the most characters.
    pub length: (Option<usize>, Option<usize>),
}

/// The fields of an object by name. There are few: a look at all of them costs less than a search by order.
#[derive(Debug)]
pub(super) struct FormFields(Vec<(&'static str, LazyForm)>);

impl FormFields {
    /// The field of a name.
    pub(super) fn get(&self, name: &str) -> Option<&LazyForm> {
        self.0.iter().find(|(field, _)| *field == name).map(|(_, form)| form)
    }

    /// The place of a field of a name among all.
    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(field, _)| *field == name)
    }

    /// Whether there is a field of a name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The names of the fields.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(field, _)| *field)
    }

    /// The first field and its name.
    pub(super) fn first(&self) -> Option<(&'static str, &LazyForm)> {
        self.0.first().map(|(name, form)| (*name, form))
    }
}

/// The other fields that an object may have.
#[derive(Debug)]
pub(super) enum Others {
    /// Anything.
    Any,
    /// Nothing.
    None,
    /// Values of a form.
    Of(LazyForm),
}

/// A part of a schema that is prepared on first use.
#[derive(Debug)]
pub(super) struct LazyForm {
    root: &'static Value,
    part: &'static Value,
    form: OnceLock<Box<SchemaForm>>,
}

impl LazyForm {
    fn new(root: &'static Value, part: &'static Value) -> Self {
        Self { root, part, form: OnceLock::new() }
    }
}

impl Deref for LazyForm {
    type Target = SchemaForm;

    fn deref(&self) -> &SchemaForm {
        self.form.get_or_init(|| Box::new(SchemaForm::new(self.root, self.part)))
    }
}

/// The most levels of a value that replaces a missing one.
const MAX_STAND_IN_DEPTH: usize = 8;

const BITS: [(&str, u8); 7] =
    [("null", 1), ("boolean", 2), ("string", 4), ("array", 8), ("object", 16), ("number", 32), ("integer", 64)];

impl SchemaForm {
    /// The form of a part of `root`.
    pub(super) fn new(root: &'static Value, part: &'static Value) -> Self {
        let schema = resolve(root, part);
        let list = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let part = |part| LazyForm::new(root, part);
        let tag = tag_of(list("oneOf"));
        let word = |branch| tag.and_then(|tag| tag_word(branch, tag));
        let (of_words, mut others): (Vec<_>, Vec<_>) = list("oneOf")
            .iter()
            .map(|branch| (word(branch), branch))
            .partition(|(word, _)| tag.is_none() || word.is_some());
        let keyed: Option<Vec<_>> =
            list("oneOf").iter().map(|branch| Some((lone_key(branch)?, part(branch)))).collect();
        let types = types(root, schema);
        let bits = types.iter().filter_map(|name| BITS.iter().find(|(known, _)| known == name)).map(|(_, bit)| bit);
        let bound = |key: &str| schema.get(key).map(plain);
        let format = schema.get("format");
        let lowest = || format.and_then(least).map(|least| least.to_string());
        let widest = || format.and_then(largest).map(|largest| largest.to_string());
        let length = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            schema,
            any_of: list("anyOf").iter().map(part).collect(),
            words: words(schema),
            one_of: of_words.into_iter().map(|(word, branch)| (word, part(branch))).collect(),
            tag,
            rest: others.pop().map(|(_, branch)| part(branch)),
            keyed: keyed.unwrap_or_default(),
            bits: bits.fold(0, |all, bit| all | bit),
            types,
            items: schema.get("items").map(part),
            count: (length("minItems"), length("maxItems")),
            fields: FormFields(fields.map(|(name, field)| (name.as_str(), part(field))).collect()),
            others: match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => Others::None,
                Some(others @ Value::Object(_)) => Others::Of(part(others)),
                _ => Others::Any,
            },
            required: list("required").iter().filter_map(Value::as_str).collect(),
            bounds: (bound("minimum").or_else(lowest), bound("maximum").or_else(widest)),
            length: (length("minLength"), length("maxLength")),
        }
    }

    /// A valid value that replaces one that could not be read.
    pub(super) fn stand_in(&self) -> Value {
        self.stand_in_to(MAX_STAND_IN_DEPTH)
    }

    fn stand_in_to(&self, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return Value::Null };
        let branch = self.any_of.first().or_else(|| self.one_of.first().map(|(_, branch)| branch));
        if let Some(word) = self.words.as_ref().and_then(|words| words.first()) {
            return Value::from(*word);
        }
        if let Some(branch) = branch {
            return branch.stand_in_to(depth);
        }
        match self.types.first().copied() {
            Some("string") => Value::from(""),
            Some("boolean") => Value::from(false),
            Some("integer" | "number") => {
                let least = self.bounds.0.as_ref().and_then(|least| least.parse().ok());
                least.map_or(Value::from(0), Value::Number)
            }
            Some("array") => {
                let count = self.count.0.unwrap_or_default();
                let item = self.items.as_ref().map_or(Value::Null, |item| item.stand_in_to(depth));
                Value::Array(vec![item; count])
            }
            Some("object") => {
                let needed = self.required.iter().filter_map(|name| Some((name, self.fields.get(name)?)));
                Value::Object(needed.map(|(name, field)| ((*name).to_owned(), field.stand_in_to(depth))).collect())
            }
            _ => Value::Null,
        }
    }

    /// The branch of `any_of` that a value is one of: its JSON type decides. The branch for numbers takes a number, the one
    /// for whole numbers a whole one. Of several for objects, the one is right whose required fields are there; else the
    /// first that allows the type, because each type has at most one branch.
    pub(super) fn any_branch(&self, node: &Node) -> Option<&LazyForm> {
        let taking = || self.any_of.iter().filter(|branch| branch.takes(node));
        let whole = taking().find(|branch| branch.required.iter().all(|name| node.get(name).is_some()));
        whole.or_else(|| taking().next())
    }

    /// The branch of a word. A branch may need a field that the branch for all other words does not know: it is right only
    /// where that field is there, so that `{"type": "workflow"}` without a `name` may be an action of that name.
    pub(super) fn branch_of(&self, word: &str, node: &Node) -> Option<&LazyForm> {
        let of_word = || self.one_of.iter().filter(|(of, _)| *of == Some(word)).map(|(_, branch)| branch);
        let marked = of_word().find(|branch| self.mark_of(branch).is_some_and(|mark| node.get(mark).is_some()));
        marked.or_else(|| of_word().find(|branch| self.mark_of(branch).is_none()))
    }

    /// The field that distinguishes a branch from others of the same word.
    fn mark_of(&self, branch: &Self) -> Option<&'static str> {
        let rest = self.rest.as_ref()?;
        branch.required.iter().copied().find(|name| !rest.fields.has(name))
    }

    /// Whether an entry of it may be of the value's type, when it is a list.
    pub(super) fn takes_item(&self, node: &Node) -> bool {
        self.items.as_ref().is_none_or(|of| of.takes(node))
    }

    /// Whether the type of a value is allowed; its content is not checked. A number without a fraction is an
    /// integer, however it is spelled.
    pub(super) fn takes(&self, node: &Node) -> bool {
        let bit = match &node.kind {
            _ if self.bits == 0 => return true,
            NodeKind::Fault => return true,
            NodeKind::Null => 1,
            NodeKind::Bool(_) => 2,
            NodeKind::String(_) => 4,
            NodeKind::Array(_) => 8,
            NodeKind::Object(_) => 16,
            NodeKind::Number(digits) if self.bits & 64 != 0 && super::scalar::is_whole(digits) => 32 | 64,
            NodeKind::Number(_) => 32,
        };
        self.bits & bit != 0
    }
}

/// The field that selects the branch: a property with one word in each branch, except one branch that allows
/// all other words.
fn tag_of(branches: &'static [Value]) -> Option<&'static str> {
    let properties = branches.first()?.get("properties")?.as_object()?;
    properties.keys().map(String::as_str).find(|name| {
        let rest = branches.iter().filter(|branch| tag_word(branch, name).is_none());
        let rest: Vec<bool> = rest.map(|branch| takes_others(branch, name).is_some()).collect();
        rest.len() < branches.len() && matches!(rest.as_slice(), [] | [true])
    })
}

/// Whether a branch allows all but some words.
fn takes_others(branch: &Value, tag: &str) -> Option<()> {
    branch.get("properties")?.get(tag)?.get("not").map(drop)
}

/// The single field of a branch, which is required.
fn lone_key(branch: &'static Value) -> Option<&'static str> {
    let fields = branch.get("properties")?.as_object()?;
    let closed = branch.get("additionalProperties") == Some(&Value::Bool(false));
    let [required] = branch.get("required")?.as_array()?.as_slice() else { return None };
    let mut names = fields.keys().map(String::as_str);
    match (names.next(), names.next()) {
        (Some(name), None) if closed && required.as_str() == Some(name) && fields.get(name)?.get("const").is_none() => {
            Some(name)
        }
        _ => None,
    }
}

fn tag_word(branch: &'static Value, tag: &str) -> Option<&'static str> {
    branch.get("properties")?.get(tag)?.get("const")?.as_str()
}

/// A bound without a zero fraction.
fn plain(bound: &Value) -> String {
    let text = bound.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
