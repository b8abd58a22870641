//! Which fields the language knows in a value, and in which order they are written.

use std::ops::Deref as _;

use super::form::{LazyForm, Others, SchemaForm};
use super::known;
use crate::syntax::{Member, Node};

/// The most unions that are one in another. There are two: the limit is for a schema that contains itself.
const MAX_UNIONS: usize = 16;

/// What the language knows of a value; nothing of one that may be anything.
#[derive(Debug, Clone, Copy)]
pub(in crate::syntax) struct ValueForm(Option<&'static SchemaForm>);

/// A member of an object, and what the language knows of its value.
#[derive(Debug)]
pub(in crate::syntax) struct KnownMember<'n> {
    pub member: &'n Member,
    pub form: ValueForm,
}

/// The fields of an object that the language knows.
struct KnownFields {
    form: &'static SchemaForm,
    /// The field whose word says which object it is.
    tag: Option<&'static str>,
}

impl ValueForm {
    /// The form of a kind of document, by its name.
    pub(in crate::syntax) fn of_kind(kind: &str) -> Self {
        Self(known(kind).map(|known| &known.form))
    }

    /// The members of an object in the order in which they are written: known fields in the order of the language, and all
    /// others behind them as they are. Where any key is allowed, as in a map or a JSON Schema, all stay as they are.
    pub(in crate::syntax) fn members<'n>(self, node: &Node, members: &'n [Member]) -> Vec<KnownMember<'n>> {
        let object = self.0.and_then(|form| branch(form, node));
        let form = |member: &Member| Self(object.as_ref().and_then(|object| object.value(&member.key)));
        let mut known: Vec<_> = members.iter().map(|member| KnownMember { member, form: form(member) }).collect();
        if let Some(object) = &object {
            known.sort_by_cached_key(|known| object.rank(&known.member.key));
        }
        known
    }

    /// The form of the items of an array.
    pub(in crate::syntax) fn items(self, node: &Node) -> Self {
        let form = self.0.and_then(|form| branch(form, node)).and_then(|known| known.form.items.as_ref());
        Self(form.map(LazyForm::deref))
    }
}

/// The branch that a value is one of, and the field whose word selects it.
fn branch(form: &'static SchemaForm, node: &Node) -> Option<KnownFields> {
    let (mut form, mut tag) = (form, None);
    for _ in 0..MAX_UNIONS {
        if !form.any_of.is_empty() {
            form = form.any_branch(node)?;
        } else if form.one_of.is_empty() || !form.keyed.is_empty() {
            return Some(KnownFields { form, tag });
        } else if let Some(field) = form.tag {
            let word = node.get(field).and_then(Node::as_str)?;
            form = form.branch_of(word, node).or(form.rest.as_ref())?;
            tag = Some(field);
        } else {
            form = form.one_of.iter().find(|(_, branch)| branch.takes(node)).map(|(_, branch)| branch)?;
        }
    }
    None
}

impl KnownFields {
    /// The place of a field among those of the object; the last one of a key that is no field. What names the object and
    /// says what it is comes first.
    fn rank(&self, key: &str) -> usize {
        let Some(at) = self.form.fields.position(key) else { return usize::MAX };
        match key {
            "$schema" => 0,
            "action_name" => 1,
            "id" if self.form.fields.has("onFalse") => 1,
            key if Some(key) == self.tag => 2,
            _ => at + 3,
        }
    }

    fn value(&self, key: &str) -> Option<&'static SchemaForm> {
        let keyed = self.form.keyed.iter().find(|(name, _)| *name == key);
        let field = match keyed {
            Some((_, branch)) => branch.deref().fields.get(key),
            None => self.form.fields.get(key),
        };
        let others = match &self.form.others {
            Others::Of(form) => Some(form),
            Others::Any | Others::None => None,
        };
        field.or(others).map(LazyForm::deref)
    }
}
