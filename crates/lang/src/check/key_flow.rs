//! Which keys there are when a step becomes due: those that are certain, those whose step may have been skipped, and
//! those of the items of a loop.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;

use super::Subject;
use super::step_tree::{CaseNode, StepNode, tree, with_failure};
use crate::program::reference::{as_any_path, as_optional_path, as_path, each_text};

/// The most keys that are followed. Of the others nothing is said.
const MAX_KEYS: usize = 1_000;
/// The most facts that are kept of conditions. Where there are more, nothing is said.
pub(super) const MAX_FACTS: usize = 32;

/// A condition that was evaluated before, and whether it held.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fact<'a> {
    pub condition: &'a Value,
    /// Whether it held.
    pub holds: bool,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KeyState<'a> {
    /// A step before wrote it.
    Sure,
    /// It is the item of a loop around the step.
    Item,
    /// One step writes it and may have been skipped.
    Maybe {
        /// The JSON pointer of the step.
        by: &'a str,
        /// It ran if all of these are facts.
        when: Rc<[Fact<'a>]>,
    },
    /// The steps for each item of a loop write it, and none outside of it.
    OfItems {
        /// The JSON pointer of the loop.
        of: &'a str,
    },
    /// Several steps may have written it, or none.
    Unclear,
}

/// The keys at a place.
#[derive(Debug, Clone, Default)]
pub(super) struct KeysAt<'a> {
    states: BTreeMap<String, KeyState<'a>>,
    /// The keys of before the innermost loop around the place that no step of the item has written yet.
    of_before: BTreeSet<String>,
    /// Those that a step of the item writes which may have been skipped, with its JSON pointer: then they have the value of before.
    older: BTreeMap<String, &'a str>,
    /// What the filters around the place say.
    pub facts: Vec<Fact<'a>>,
}

impl<'a> KeysAt<'a> {
    /// What is known of a key.
    pub fn get(&self, key: &str) -> Option<&KeyState<'a>> {
        self.states.get(key)
    }

    /// The step of an item that may have been skipped, so that a key has its value from before the loop.
    pub fn older(&self, key: &str) -> Option<&'a str> {
        self.older.get(key).copied()
    }

    /// A step of an item writes a key, whatever was there before.
    fn overwrite(&mut self, key: &str) {
        self.of_before.remove(key);
        self.older.remove(key);
    }

    /// Notes the keys that one of two ways wrote, and the other one did not.
    fn note_older(&mut self, other: &Self, by: &'a str) {
        let differ = self.of_before.symmetric_difference(&other.of_before);
        let mut older: BTreeMap<String, &'a str> = differ.map(|key| (key.clone(), by)).collect();
        older.extend(other.older.clone());
        older.append(&mut self.older);
        self.older = older;
        self.of_before.extend(other.of_before.iter().cloned());
    }

    /// Whether a key is there as far as the facts tell, which say more than those around the place.
    pub fn is_there(&self, key: &str, facts: &[Fact<'a>]) -> bool {
        let Some(KeyState::Maybe { when, .. }) = self.get(key) else { return true };
        if facts.len() > MAX_FACTS || facts.iter().any(|fact| fact.shows(&[key])) {
            return true;
        }
        // Where another key is there, what its step asked for holds too.
        let mut all = facts.to_vec();
        for fact in facts {
            each_text(fact.condition, &mut String::new(), &mut |_, text| {
                let other = named(text).and_then(|path| path.into_iter().next());
                let Some(other) = other.filter(|other| fact.shows(&[other])) else { return };
                if let Some(KeyState::Maybe { when, .. }) = self.get(&other) {
                    all.extend(when.iter().take(MAX_FACTS));
                }
            });
        }
        all.iter().any(|fact| fact.shows(&[key])) || when.iter().all(|fact| all.contains(fact))
    }

    /// Whether a key is the item of a loop around the place.
    pub fn is_item(&self, key: &str) -> bool {
        match self.get(key) {
            Some(state) => *state == KeyState::Item,
            // It names the item also where the loop gives it another name.
            None => key == "item" && self.states.values().any(|state| *state == KeyState::Item),
        }
    }

    /// Whether a step that writes a key may have been skipped.
    pub fn has_unsure(&self) -> bool {
        self.states.values().any(|state| matches!(state, KeyState::Maybe { .. }))
    }

    fn set(&mut self, key: String, state: KeyState<'a>) {
        if self.states.len() < MAX_KEYS || self.states.contains_key(&key) {
            self.states.insert(key, state);
        }
    }

    /// What is there after a step that ran, or else another one in its place.
    fn join(&mut self, skipped: Self, by: &'a str, filter: &'a Value) {
        self.note_older(&skipped, by);
        let mut other = skipped.states;
        for (key, state) in &mut self.states {
            match (&*state, other.remove(key)) {
                (here, Some(there)) if *here == there => {}
                (KeyState::Sure, None) => *state = KeyState::Maybe { by, when: facts(filter, true).into() },
                (_, None) => {}
                (_, Some(_)) => *state = KeyState::Unclear,
            }
        }
        for (key, state) in other {
            let when = |more: &[Fact<'a>]| facts(filter, false).into_iter().chain(more.iter().copied()).collect();
            let state = match state {
                KeyState::Sure => KeyState::Maybe { by, when: when(&[]) },
                KeyState::Maybe { by, when: more } => KeyState::Maybe { by, when: when(&more) },
                other => other,
            };
            self.set(key, state);
        }
    }
}

/// What is a fact nowhere.
fn never<'a>() -> Rc<[Fact<'a>]> {
    static NOTHING: Value = Value::Null;
    Rc::from([Fact { condition: &NOTHING, holds: true }])
}

impl Fact<'_> {
    /// Whether it shows that the value at a path is there, or the key that is its only name.
    pub fn shows(&self, path: &[&str]) -> bool {
        self.shows_by(path, true)
    }

    /// Whether it shows that the value at a path is there and not null.
    pub fn shows_value(&self, path: &[&str]) -> bool {
        self.shows_by(path, false)
    }

    /// `by_key`: a key that is there shows it, also with null.
    fn shows_by(&self, path: &[&str], by_key: bool) -> bool {
        let Some((operator, operands)) = operator(self.condition) else { return false };
        let parts = || operands.as_array().into_iter().flatten();
        let shown = |holds: bool| parts().all(|condition| Fact { condition, holds }.shows_by(path, by_key));
        let leads =
            |named: Vec<String>| named.len() >= path.len() && path.iter().zip(&named).all(|(one, other)| one == other);
        let is_key = |operand: &Value| operand.as_str().and_then(as_path).is_some_and(leads);
        let is_length = |operand: &Value| operand.get("length").is_some_and(is_key);
        match operator {
            // What is below a value that is there is no part of null.
            "hasKey" => {
                self.holds
                    && operands
                        .as_str()
                        .and_then(named)
                        .is_some_and(|named| leads(named.clone()) && (by_key || named.len() > path.len()))
            }
            "and" => !self.holds && parts().next().is_some() && shown(false),
            "or" => self.holds && parts().next().is_some() && shown(true),
            // Only what is missing or null equals null.
            "equal" | "eq" | "notEqual" => {
                let same = self.holds == (operator != "notEqual");
                let other = |operand: &&Value| !is_key(operand);
                parts().any(is_length)
                    || (parts().any(is_key) && parts().find(other).is_some_and(|other| other.is_null() != same))
            }
            "in" | "matches" => self.holds && parts().next().is_some_and(is_key),
            // The step fails otherwise.
            _ if is_order(operator) => {
                // Without a value, an order on an `@x.y?` does not hold.
                let is_optional = |operand: &Value| operand.as_str().and_then(as_optional_path).is_some_and(leads);
                parts().any(is_key) || parts().any(is_length) || (self.holds && parts().any(is_optional))
            }
            _ => false,
        }
    }
}

/// The facts that follow when a condition holds, or does not.
pub(super) fn facts(condition: &Value, holds: bool) -> Vec<Fact<'_>> {
    let mut found = Vec::new();
    add_facts(condition, holds, &mut found);
    found
}

fn add_facts<'a>(condition: &'a Value, holds: bool, found: &mut Vec<Fact<'a>>) {
    // A document is never deeper than its reader allows: the recursion ends.
    match operator(condition) {
        Some(("not", part)) => add_facts(part, !holds, found),
        Some(("and", Value::Array(parts))) if holds => parts.iter().for_each(|part| add_facts(part, true, found)),
        Some(("or", Value::Array(parts))) if !holds => parts.iter().for_each(|part| add_facts(part, false, found)),
        Some(_) if found.len() <= MAX_FACTS => found.push(Fact { condition, holds }),
        _ => {}
    }
}

/// The operator of a condition, and its value.
pub(super) fn operator(condition: &Value) -> Option<(&str, &Value)> {
    let members = condition.as_object().filter(|members| members.len() == 1)?;
    members.iter().next().map(|(operator, operands)| (operator.as_str(), operands))
}

/// Whether an operator compares the order of two numbers.
pub(super) fn is_order(operator: &str) -> bool {
    ["greaterThan", "lessThan", "greaterOrEqual", "lessOrEqual"].contains(&operator)
}

/// The key that an `@path` begins with.
pub(super) fn key_of(text: &str) -> Option<String> {
    as_path(text)?.into_iter().next()
}

/// The path of a `hasKey`, whose `@` may be left out.
fn named(text: &str) -> Option<Vec<String>> {
    as_any_path(text).or_else(|| as_any_path(&format!("@{text}")))
}

/// What the filters say where each step of a document runs, by the JSON pointer of the step.
pub(super) fn facts_at_steps<'a>(subject: &Subject<'a>) -> BTreeMap<String, Vec<Fact<'a>>> {
    let mut found = BTreeMap::new();
    let of_all = subject.document().value.pointer("/definition/condition");
    follow(subject, &tree(subject), &mut |node, keys| {
        let mut all = keys.facts.clone();
        all.extend(node.step.filter().into_iter().chain(of_all).flat_map(|filter| facts(filter, true)));
        found.insert(node.step.at.to_owned(), all);
    });
    found
}

/// Follows the keys through steps in their order, and calls `visit` with each step and the keys when it becomes due.
/// Returns those after the last one.
pub(super) fn follow<'n, 'a>(
    subject: &Subject<'a>,
    nodes: &'n [StepNode<'a>],
    visit: &mut dyn FnMut(&'n StepNode<'a>, &KeysAt<'a>),
) -> KeysAt<'a> {
    follow_items(subject, nodes, visit, &mut |_, _| {})
}

/// The same; calls `gather` with each loop of mode `foreach` and the keys at the end of an item.
pub(super) fn follow_items<'n, 'a>(
    subject: &Subject<'a>,
    nodes: &'n [StepNode<'a>],
    visit: &mut dyn FnMut(&'n StepNode<'a>, &KeysAt<'a>),
    gather: &mut dyn FnMut(&'n StepNode<'a>, &KeysAt<'a>),
) -> KeysAt<'a> {
    let mut follower = KeyFollower { subject, visit, gather };
    let mut keys = KeysAt::default();
    follower.list(nodes, &mut keys);
    keys
}

struct KeyFollower<'f, 'n, 'a> {
    subject: &'f Subject<'a>,
    visit: &'f mut dyn FnMut(&'n StepNode<'a>, &KeysAt<'a>),
    gather: &'f mut dyn FnMut(&'n StepNode<'a>, &KeysAt<'a>),
}

impl<'n, 'a> KeyFollower<'_, 'n, 'a> {
    fn list(&mut self, nodes: &'n [StepNode<'a>], keys: &mut KeysAt<'a>) {
        let (own, failed) = with_failure(nodes);
        if failed.is_empty() {
            return nodes.iter().for_each(|node| self.step(node, keys));
        }
        let before = keys.clone();
        own.iter().for_each(|node| self.step(node, keys));
        // Nobody knows which steps have run when one has failed.
        let mut failing = keys.clone();
        for (key, state) in &mut failing.states {
            // What items wrote is that of one of them, whichever steps have run.
            if before.states.get(key) != Some(state) && !matches!(state, KeyState::OfItems { .. }) {
                let by = own.iter().find(|node| node.step.writes(self.subject).contains(key)).or(own.first());
                *state = by.map_or(KeyState::Unclear, |node| KeyState::Maybe { by: node.step.at, when: never() });
            }
        }
        for key in before.of_before.difference(&keys.of_before) {
            let by = own.iter().find(|node| node.step.writes(self.subject).contains(key)).or(own.first());
            failing.older.extend(by.map(|node| (key.clone(), node.step.at)));
        }
        failing.facts.clone_from(&before.facts);
        failed.iter().for_each(|node| self.step(node, &mut failing));
    }

    /// A document is never deeper than its reader allows: the recursion ends.
    fn step(&mut self, node: &'n StepNode<'a>, keys: &mut KeysAt<'a>) {
        (self.visit)(node, keys);
        let (around, filter) = (keys.facts.clone(), node.step.filter());
        let skipped = filter.map(|filter| {
            let mut skipped = keys.clone();
            if let Some(other) = &node.otherwise {
                skipped.facts.extend(facts(filter, false));
                self.step(other, &mut skipped);
            }
            skipped
        });
        keys.facts.extend(filter.into_iter().flat_map(|filter| facts(filter, true)));
        if node.step.is_foreach() {
            self.items(node, keys);
        }
        self.cases(node, &node.cases, keys);
        for key in node.step.writes(self.subject) {
            keys.overwrite(&key);
            keys.set(key, KeyState::Sure);
        }
        if let (Some(filter), Some(skipped)) = (filter, skipped) {
            keys.join(skipped, node.step.at, filter);
        }
        keys.facts = around;
    }

    /// The cases of a choice from the first of these on: it runs, or else those behind it are asked. A document is never deeper
    /// than its reader allows: the recursion ends.
    fn cases(&mut self, node: &'n StepNode<'a>, cases: &'n [CaseNode<'a>], keys: &mut KeysAt<'a>) {
        let Some((case, later)) = cases.split_first() else { return };
        let around = keys.facts.clone();
        let Some(when) = case.when.as_ref().map(|when| when.written) else {
            return self.list(&case.steps, keys);
        };
        let mut skipped = keys.clone();
        skipped.facts.extend(facts(when, false));
        self.cases(node, later, &mut skipped);
        keys.facts.extend(facts(when, true));
        self.list(&case.steps, keys);
        keys.join(skipped, node.step.at, when);
        keys.facts = around;
    }

    /// The steps for each item, whose keys the loop leaves behind.
    fn items(&mut self, node: &'n StepNode<'a>, keys: &mut KeysAt<'a>) {
        let mut inside = keys.clone();
        let item = node.step.text("item_variable_name").unwrap_or_default();
        for given in ["item", "__index", "__count"] {
            inside.states.remove(given);
        }
        inside.set(item.to_owned(), KeyState::Item);
        let of_before = inside.states.iter().filter(|(_, state)| **state != KeyState::Item);
        inside.of_before = of_before.map(|(key, _)| key.clone()).collect();
        inside.older = BTreeMap::new();
        self.list(&node.items, &mut inside);
        (self.gather)(node, &inside);
        for (key, state) in inside.states {
            match keys.states.get(&key) {
                _ if state == KeyState::Item => {}
                None => keys.set(key, KeyState::OfItems { of: node.step.at }),
                Some(KeyState::Sure | KeyState::Item | KeyState::OfItems { .. }) => {}
                Some(before) if *before == state => {}
                Some(_) => keys.set(key, KeyState::Unclear),
            }
        }
    }
}
