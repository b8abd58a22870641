//! Finds values in a tree by their JSON pointers, and their positions in the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;

use super::{Node, NodeKind, Span, Tree, text};
use crate::diagnostic::Place;

impl Tree {
    /// The value at a JSON pointer (RFC 6901).
    pub fn at(&self, pointer: &str) -> Option<&Node> {
        self.find(pointer).map(|found| found.node)
    }

    /// The place of the value at a JSON pointer; if there is none, the place of the nearest value around it.
    pub fn place(&self, pointer: &str) -> Place {
        let span = self.around(pointer).node.span;
        self.source.place(span.start, span.end)
    }

    /// The place of the key at a JSON pointer; of the value, if it has none.
    pub fn key_place(&self, pointer: &str) -> Place {
        let found = self.around(pointer);
        let span = found.key.unwrap_or(found.node.span);
        self.source.place(span.start, span.end)
    }

    /// The place of a part of a string: `inside` counts bytes of the string with its escapes resolved. For a
    /// value that is no string: the place of the value.
    pub fn place_inside(&self, pointer: &str, inside: &Range<usize>) -> Place {
        match self.at(pointer) {
            Some(Node { span, kind: NodeKind::String(_) }) => {
                let start = self.raw_offset(*span, inside.start);
                let end = self.raw_offset(*span, inside.end);
                self.source.place(start, end.max(start))
            }
            _ => self.place(pointer),
        }
    }

    /// The text to cut to remove an item of an array: the item with one comma beside it.
    pub fn removal(&self, pointer: &str) -> Option<Span> {
        let (array, index) = pointer.rsplit_once('/')?;
        let (items, index) = (self.at(array)?.items()?, index.parse::<usize>().ok()?);
        let item = items.get(index)?.span;
        let before = index.checked_sub(1).and_then(|before| items.get(before));
        Some(match (items.get(index + 1), before) {
            (Some(next), _) => Span::new(item.start, next.span.start),
            (None, Some(before)) => Span::new(before.span.end, item.end),
            (None, None) => item,
        })
    }

    /// The text of a span, as written.
    pub fn raw(&self, span: Span) -> &str {
        self.source.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Renames the members with a misspelt key of the object at a JSON pointer, so that they are found by the
    /// right name. Their positions stay.
    pub(crate) fn rename(&mut self, object: &str, key: &str, name: &str) {
        self.lookup = PointerIndex::default();
        let mut node = &mut self.root;
        for token in tokens(object) {
            let inner = match &mut node.kind {
                NodeKind::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
                NodeKind::Object(members) => {
                    members.iter_mut().rev().find(|member| *member.key == *token).map(|member| &mut member.value)
                }
                _ => None,
            };
            let Some(inner) = inner else { return };
            node = inner;
        }
        if let NodeKind::Object(members) = &mut node.kind {
            members.iter_mut().filter(|member| &*member.key == key).for_each(|member| member.key = name.into());
        }
    }

    fn find(&self, pointer: &str) -> Option<Resolved<'_>> {
        let mut found = Resolved { node: &self.root, key: None };
        for token in tokens(pointer) {
            found = self.step(found, &token)?;
        }
        Some(found)
    }

    fn around(&self, pointer: &str) -> Resolved<'_> {
        let mut found = Resolved { node: &self.root, key: None };
        for token in tokens(pointer) {
            match self.step(found, &token) {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }

    fn step<'a>(&'a self, at: Resolved<'a>, token: &str) -> Option<Resolved<'a>> {
        match &at.node.kind {
            NodeKind::Array(items) => Some(Resolved { node: items.get(token.parse::<usize>().ok()?)?, key: None }),
            NodeKind::Object(members) => {
                let member = if members.len() <= MAX_COMPARED_MEMBERS {
                    at.node.member(token)?
                } else {
                    let keys = self.lookup.members.get_or_init(|| wide(&self.root)).get(&at.node.span.start)?;
                    members.get(*keys.get(token)?)?
                };
                Some(Resolved { node: &member.value, key: Some(member.key_span) })
            }
            _ => None,
        }
    }

    /// The byte of the text at which the byte `offset` of a string is written.
    fn raw_offset(&self, span: Span, offset: usize) -> usize {
        let raw = self.raw(span);
        let mut last = self.lookup.last.lock().unwrap_or_else(PoisonError::into_inner);
        // The positions inside a string are requested in order: each search continues where the one before
        // ended.
        let from = last.filter(|(start, at)| *start == span.start && at.meant <= offset).map(|(_, at)| at);
        let found = text::raw_offset(raw, offset, from.unwrap_or_default());
        *last = Some((span.start, found));
        span.start + found.raw
    }
}

/// Caches for finding values by their pointers.
#[derive(Debug, Clone, Default)]
pub(super) struct PointerIndex {
    /// The members of wide objects, by the start of the object and by their key. Built on first use.
    members: Arc<OnceLock<HashMap<usize, MemberIndex>>>,
    /// The end of the last search in a string, with the start of that string.
    last: Arc<Mutex<Option<(usize, text::Offset)>>>,
}

/// The index of each key among the members; of duplicate keys the last, which counts.
type MemberIndex = HashMap<Box<str>, usize>;

/// In an object with at most this number of members, comparing keys is faster than hashing them.
const MAX_COMPARED_MEMBERS: usize = 16;

fn wide(root: &Node) -> HashMap<usize, MemberIndex> {
    let mut found = HashMap::new();
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        match &node.kind {
            NodeKind::Array(items) => left.extend(items),
            NodeKind::Object(members) => {
                if members.len() > MAX_COMPARED_MEMBERS {
                    let keys = members.iter().enumerate().map(|(at, member)| (member.key.clone(), at)).collect();
                    found.insert(node.span.start, keys);
                }
                left.extend(members.iter().map(|member| &member.value));
            }
            _ => {}
        }
    }
    found
}

#[derive(Clone, Copy)]
struct Resolved<'a> {
    node: &'a Node,
    key: Option<Span>,
}

/// The value at a JSON pointer. Unlike `Value::pointer` it makes no copies of names, and members are no indexes.
pub fn value_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v Value> {
    tokens(pointer).try_fold(value, |value, token| match value {
        Value::Object(members) => members.get(&*token),
        Value::Array(items) => items.get(token.parse::<usize>().ok()?),
        _ => None,
    })
}

fn tokens(pointer: &str) -> impl Iterator<Item = Cow<'_, str>> {
    pointer.split('/').skip(1).map(unescaped)
}

/// The name that a token of a JSON pointer means.
pub fn unescaped(token: &str) -> Cow<'_, str> {
    match token.contains('~') {
        true => Cow::Owned(token.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(token),
    }
}
