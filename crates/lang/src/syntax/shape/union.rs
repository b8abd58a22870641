//! Values that may be one of several things: the tag decides, or the JSON type, and the right
//! branch reports the fault.

use serde_json::{Map, Value};

use super::form::SchemaForm;
use super::{Renamed, Walker, insert, listed};
use crate::diagnostic::{Diagnostic, Nearest, Place, codes, is_lone, nearest, nearest_field};
use crate::syntax::{Member, Node, NodeKind, Span, quoted, token};
use crate::syntax::{foreign_condition, foreign_syntax};

/// Whether a name is long enough for its nearest one to mean the same: `neq` is near to `eq`, and its opposite.
fn is_long(name: &str) -> bool {
    name.len() > 3
}

impl<'a> Walker<'a> {
    /// Branches of different JSON types: the value's type decides.
    pub(super) fn any_of(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        match form.any_branch(node) {
            Some(branch) => self.walk(branch, node, key),
            None => {
                let types: Vec<&str> = form.any_of.iter().flat_map(|branch| branch.types.iter().copied()).collect();
                let takes_item = form.any_of.iter().any(|branch| branch.takes_item(node));
                self.wrong_types(form, &types, node, takes_item);
                None
            }
        }
    }

    /// Branches that are objects with a field that says which branch it is.
    pub(super) fn one_of(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        if !form.keyed.is_empty() {
            return self.keyed(form, node, key);
        }
        let Some(tag) = form.tag else { return self.first_of(form, node, key) };
        let NodeKind::Object(_) = &node.kind else {
            self.wrong_types(form, &["object"], node, false);
            return None;
        };
        let written = node.get(tag).or_else(|| self.misspelt(tag, node));
        let word = written.and_then(Node::as_str);
        let right = |word: &str| form.branch_of(word, node).map(|branch| &**branch);
        if let Some(branch) = word.and_then(right) {
            self.union = Some(form);
            return self.walk(branch, node, key);
        }
        if let Some(rest) = &form.rest {
            return self.walk(rest, node, key);
        }
        if let Some(shape) = foreign_syntax::entry(node, tag == "kind").filter(|_| matches!(tag, "type" | "kind")) {
            let place = self.place(key.unwrap_or(Span::new(node.span.start, node.span.start + 1)));
            let message = format!("{} is {}", self.label(), shape.what);
            self.report(
                Diagnostic::error(codes::FOREIGN_SHAPE, message, self.pointer.as_str(), place).help(shape.help),
            );
            return None;
        }
        let words: Vec<&str> = form.one_of.iter().filter_map(|(word, _)| *word).collect();
        let alike = most_alike(form, node);
        match written {
            Some(written) => {
                self.inside(tag, |walker| walker.word(&words, written));
            }
            None => {
                let place = self.place(key.unwrap_or(Span::new(node.span.start, node.span.start + 1)));
                self.no_tag(tag, alike.and_then(|(word, _)| word), &words, place);
            }
        }
        let meant = match word {
            // A word that is near to none of them: the fields may say which branch it is.
            Some(word) => nearest(word, words.iter().copied()).and_then(right).or(alike.map(|(_, branch)| branch)),
            None => alike.map(|(_, branch)| branch),
        };
        match meant {
            // The fault of the tag is reported: the branch would only report it again.
            Some(branch) => {
                let before = self.faults.len();
                self.reported = Some(tag.to_owned());
                let value = self.walk(branch, node, key);
                let pointer = format!("{}/{tag}", self.pointer);
                let mut kept = 0;
                self.faults.retain(|fault| {
                    kept += 1;
                    kept <= before || fault.path != pointer
                });
                value
            }
            // Its kind is not known: nothing reads it.
            None => Some(node.value()),
        }
    }

    /// The value under a misspelt key of the field that selects the branch.
    fn misspelt<'n>(&mut self, tag: &str, node: &'n Node) -> Option<&'n Node> {
        let mut members = node.members()?.iter();
        let is_type = |key: &str| tag == "kind" && key == "type";
        let is_meant = |key: &str, nearest: &mut Nearest| is_type(key) || nearest.of(key, [tag]).is_some();
        members.find(|member| is_meant(&member.key, &mut self.nearest)).map(|member| &member.value)
    }

    /// Branches that are objects with one field each: the field selects the branch.
    fn keyed(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        let NodeKind::Object(members) = &node.kind else {
            self.wrong_types(form, &["object"], node, false);
            return None;
        };
        if !self.full()
            && (self.wrapped_condition(form, node)
                || self.spelled_out_condition(form, node)
                || self.condition_of_path(form, node)
                || self.condition_of_two(form, node))
        {
            return None;
        }
        let known = |name: &str| form.keyed.iter().find(|(of, _)| *of == name).map(|(_, branch)| &**branch);
        let names = || form.keyed.iter().map(|(name, _)| *name);
        let mut map = Map::new();
        // A duplicate key is reported already.
        let first = members.iter().find(|other| known(&other.key).is_some());
        for (at, member) in members.iter().enumerate() {
            let name = &*member.key;
            let ours = || foreign_condition::operator(name).filter(|ours| known(ours).is_some());
            let near = match known(name) {
                Some(_) => None,
                None => ours().or_else(|| self.nearest.of(name, names()).filter(|_| is_long(name))),
            };
            let of = known(near.unwrap_or(name)).and_then(|branch| branch.fields.first());
            if known(name).is_none() {
                if !self.full() {
                    self.unknown_key(form, member);
                }
            } else if first.is_some_and(|first| first.key != member.key) && at > 0 && !self.full() {
                let place = self.place(member.key_span);
                let message = format!("{} has one field, and `{name}` is one more", self.label());
                let pointer = format!("{}/{}", self.pointer, token(name));
                let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, place);
                self.report(match known("and") {
                    Some(_) => fault.help("several operators are put together with `and`: `{\"and\": [{...}, {...}]}`"),
                    None => fault,
                });
            }
            // With the corrected name, where the value gets it, too.
            let inside = near.filter(|_| members.len() == 1).unwrap_or(name);
            let value = match of {
                Some((_, of)) => self.inside(inside, |walker| walker.needed(of, &member.value, Some(member.key_span))),
                None => member.value.value(),
            };
            match near.filter(|_| members.len() == 1) {
                // What is in it is judged as if the key were right.
                Some(field) => {
                    let key = name.to_owned();
                    self.renamed.push(Renamed { object: self.pointer.clone(), key, field: field.to_owned() });
                    insert(&mut map, field, value);
                }
                None => insert(&mut map, name, value),
            }
        }
        if members.is_empty() && self.whole {
            let place = self.place(key.unwrap_or(node.span));
            let all: Vec<String> = names().map(|name| format!("`{name}`")).collect();
            let message = format!("{} is empty: it needs one field", self.label());
            let fault = Diagnostic::error(codes::MISSING_FIELD, message, self.pointer.as_str(), place);
            self.report(fault.help(format!("known here: {}", all.join(", "))));
        }
        // Without a field that is known it can't be read, and would keep all around it from being read.
        map.keys().any(|name| known(name).is_some()).then_some(Value::Object(map))
    }

    fn unknown_key(&mut self, form: &SchemaForm, member: &Member) {
        let name = &*member.key;
        let names: Vec<&str> = form.keyed.iter().map(|(name, _)| *name).collect();
        let pointer = format!("{}/{}", self.pointer, token(name));
        let message = format!("the field `{name}` is not known in {}", self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(member.key_span));
        let other = foreign_condition::condition_word(name).filter(|_| names.contains(&"hasKey"));
        let ours = foreign_condition::operator(name).filter(|ours| names.contains(ours));
        self.report(match nearest_field(name, names.iter().copied()).filter(|_| is_long(name)) {
            _ if let Some(help) = other => fault.help(help),
            _ if let Some(ours) = ours => fault.help(format!("it is written `{ours}`")).suggest(quoted(ours)),
            Some(near) => {
                let fault = fault.help(format!("the nearest name is `{near}`"));
                if is_lone(name, names) { fault.suggest(quoted(near)) } else { fault }
            }
            None => {
                let all: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                fault.help(format!("known here: {}", all.join(", ")))
            }
        });
    }

    /// Branches without a field that selects one: the JSON type decides.
    fn first_of(&mut self, form: &'a SchemaForm, node: &Node, key: Option<Span>) -> Option<Value> {
        match form.one_of.iter().find(|(_, branch)| branch.takes(node)) {
            Some((_, branch)) => self.walk(branch, node, key),
            None => {
                self.wrong_types(form, &form.types, node, true);
                None
            }
        }
    }

    /// Reports that the field that selects the branch is missing, and suggests the likely word.
    fn no_tag(&mut self, tag: &str, likely: Option<&str>, words: &[&str], place: Place) {
        if !self.whole || self.misplaced.iter().any(|misplaced| misplaced == tag) {
            return;
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!("`{tag}` is missing in {}: it is {}", self.label(), listed(&quoted));
        let fault = Diagnostic::error(codes::MISSING_FIELD, message, self.pointer.as_str(), place);
        let example = likely.or(words.first().copied()).unwrap_or_default();
        self.report(fault.help(format!("add `\"{tag}\": \"{example}\"`, or the one that is meant")));
    }
}

/// The branch that has the most fields of the object, if it is the only such one, and its word.
fn most_alike<'a>(form: &'a SchemaForm, node: &Node) -> Option<(Option<&'static str>, &'a SchemaForm)> {
    let has = |branch: &SchemaForm| branch.required.iter().filter(|name| node.get(name).is_some()).count();
    let counts: Vec<usize> = form.one_of.iter().map(|(_, branch)| has(branch)).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let mut best = form.one_of.iter().zip(&counts).filter(|(_, count)| **count == most);
    match (best.next(), best.next()) {
        (Some(((word, branch), _)), None) => Some((*word, branch)),
        _ => None,
    }
}
