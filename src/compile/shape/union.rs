//! Values that may be one of several things: the tag decides, or the JSON type, and the fault is
//! told by the right one.

use serde_json::Value;

use super::{Walker, listed};
use crate::compile::parse::{Kind, Node, Span};
use crate::diagnostic::{Diagnostic, codes, nearest};

impl<'a> Walker<'a> {
    /// Branches of different JSON types: the value's type decides.
    pub(super) fn any_of(&mut self, branches: &'a [Value], node: &Node, key: Option<Span>) -> Value {
        if node.is_fault() {
            return Value::Null;
        }
        // A number is told by the branch for numbers, a whole one by that for whole ones: the first
        // that takes the type is the right one, for our types have one branch a type.
        match branches.iter().find(|branch| self.known.takes(branch, node)) {
            Some(branch) => self.walk(branch, node, key),
            None => {
                let types: Vec<String> = branches.iter().flat_map(|branch| self.known.types(branch)).collect();
                self.wrong_types(&types, node);
                node.value()
            }
        }
    }

    /// Branches that are words, or objects with a field that says which branch it is.
    pub(super) fn one_of(&mut self, branches: &'a [Value], node: &Node, key: Option<Span>) -> Value {
        let words: Option<Vec<&str>> =
            branches.iter().map(super::known::words).collect::<Option<Vec<_>>>().map(|w| w.concat());
        if let Some(words) = words {
            return self.word(&words, node);
        }
        let Some(tag) = tag_of(branches) else { return self.any_of(branches, node, key) };
        let Kind::Object(_) = &node.kind else {
            if !node.is_fault() {
                self.wrong_types(&["object".to_owned()], node);
            }
            return node.value();
        };
        let written = node.get(tag);
        let word = written.and_then(Node::as_str);
        let right = |word: &str| branches.iter().find(|branch| tag_word(branch, tag) == Some(word));
        if let Some(branch) = word.and_then(right) {
            return self.walk(branch, node, key);
        }
        let words: Vec<&str> = branches.iter().filter_map(|branch| tag_word(branch, tag)).collect();
        let alike = most_alike(branches, node);
        match written {
            Some(written) => {
                self.inside(tag, |walker| walker.word(&words, written));
            }
            None => self.no_tag((tag, alike.and_then(|branch| tag_word(branch, tag))), &words, node, key),
        }
        let meant = match word {
            Some(word) => nearest(word, words.iter().copied()).and_then(right),
            None => alike,
        };
        match meant {
            // The tag's own fault is told: the branch would only tell it again.
            Some(branch) => {
                let before = self.faults.len();
                self.told = Some(tag.to_owned());
                let value = self.walk(branch, node, key);
                let pointer = format!("{}/{tag}", self.pointer);
                let mut kept = 0;
                self.faults.retain(|fault| {
                    kept += 1;
                    kept <= before || fault.path != pointer
                });
                value
            }
            None => node.value(),
        }
    }

    /// Tells that the field is missing that says which branch is meant, and which word is the likely one.
    fn no_tag(&mut self, (tag, likely): (&str, Option<&str>), words: &[&str], node: &Node, key: Option<Span>) {
        if !self.whole || self.misplaced.iter().any(|misplaced| misplaced == tag) {
            return;
        }
        let place = self.place(key.unwrap_or(Span::new(node.span.start, node.span.start + 1)));
        let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!("`{tag}` is missing in {}: it is {}", self.label(), listed(&quoted));
        let fault = Diagnostic::error(codes::MISSING_FIELD, message, self.pointer.as_str(), place);
        let example = likely.or(words.first().copied()).unwrap_or_default();
        self.tell(fault.help(format!("add `\"{tag}\": \"{example}\"`, or the one that is meant")));
    }
}

/// The field that tells the branches apart: a property with one word in each of them.
fn tag_of(branches: &[Value]) -> Option<&str> {
    let properties = branches.first()?.get("properties")?.as_object()?;
    properties.keys().map(String::as_str).find(|name| branches.iter().all(|branch| tag_word(branch, name).is_some()))
}

fn tag_word<'a>(branch: &'a Value, tag: &str) -> Option<&'a str> {
    branch.get("properties")?.get(tag)?.get("const")?.as_str()
}

/// The branch whose fields the object has most of, when it is one alone.
fn most_alike<'a>(branches: &'a [Value], node: &Node) -> Option<&'a Value> {
    let has = |branch: &Value| {
        let required = branch.get("required").and_then(Value::as_array)?;
        let found = required.iter().filter_map(Value::as_str).filter(|name| node.get(name).is_some()).count();
        Some(found)
    };
    let counts: Vec<usize> = branches.iter().map(|branch| has(branch).unwrap_or(0)).collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let mut best = branches.iter().zip(&counts).filter(|(_, count)| **count == most);
    match (best.next(), best.next()) {
        (Some((branch, _)), None) => Some(branch),
        _ => None,
    }
}
