//! A key of the items of a loop that is read after the loop: each item overwrites it.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use crate::check::key_flow::{KeyState, KeysAt, follow_items};
use crate::check::step_tree::{StepNode, tree};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::program::reference::{Field, each_text};

pub const RULE: Rule = Rule { code: codes::ITEM_KEY, check };

/// The texts of a loop of mode `react` that read keys.
const OF_REACT: [&str; 2] = ["objective", "system_prompt"];
/// What helps where items are taken back after a failure.
const TAKE_BACK: &str = "gather what each item did (`\"collect_results\": true` and a `result_key` in that loop), and take it \
     back in a loop over the gathered list. The list is there once the loop has ended, also with failed items where its \
     `failure_strategy` is `continue_on_error`; the loop's own `on_failure` runs for the item that fails";
const COLLECT: &str = "collect";
const OUTPUT: &str = "/definition/output";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nodes = tree(subject);
    let (mut read, mut gathered) = (Vec::new(), Vec::new());
    let mut of_failure = HashSet::new();
    each_for_failure(&nodes, &mut of_failure);
    let last = follow_items(
        subject,
        &nodes,
        &mut |node, keys| {
            let time = if of_failure.contains(node.step.at) { ReadTime::Failed } else { ReadTime::Due };
            let mut reader = KeyReader { subject, keys, time, found: &mut read };
            for condition in node.conditions() {
                reader.value(&condition.at, Some(condition.written));
            }
            for (name, value) in node.step.properties {
                if reads(node, name) {
                    reader.value(&node.step.property(name), Some(value));
                }
            }
            few_of_many(&mut read);
        },
        &mut |node, keys| {
            let mut reader = KeyReader { subject, keys, time: ReadTime::Gathered, found: &mut gathered };
            reader.value(&node.step.property(COLLECT), node.step.properties.get(COLLECT));
            few_of_many(&mut gathered);
        },
    );
    found.append(&mut read);
    found.append(&mut gathered);
    if !nodes.is_empty() {
        let mut reader = KeyReader { subject, keys: &last, time: ReadTime::Due, found };
        reader.value(OUTPUT, subject.document().value.pointer(OUTPUT));
    }
}

/// The steps that run when a list has failed, and those in them.
fn each_for_failure<'a>(nodes: &[StepNode<'a>], found: &mut HashSet<&'a str>) {
    for node in nodes {
        node.each(&mut Vec::new(), &mut |node, _| {
            if node.is_for_failure {
                node.each(&mut Vec::new(), &mut |inner, _| {
                    found.insert(inner.step.at);
                });
            }
        });
    }
}

/// Whether a property of a step reads keys when the step becomes due. What a loop does with its items comes later.
fn reads(node: &StepNode<'_>, property: &str) -> bool {
    match node.step.kind {
        _ if node.step.is_named() => true,
        "loop" if node.step.is_foreach() => property == "items_path",
        "loop" => OF_REACT.contains(&property),
        _ => true,
    }
}

/// When a text is read.
#[derive(Clone, Copy, PartialEq)]
enum ReadTime {
    /// When a step becomes due, or the run has ended.
    Due,
    /// When a list of steps has failed.
    Failed,
    /// When an item has ended, also without some of its steps.
    Gathered,
}

struct KeyReader<'r, 'a> {
    subject: &'r Subject<'a>,
    keys: &'r KeysAt<'a>,
    time: ReadTime,
    found: &'r mut Vec<Diagnostic>,
}

impl KeyReader<'_, '_> {
    fn value(&mut self, at: &str, value: Option<&Value>) {
        let Some(value) = value else { return };
        each_text(value, &mut at.to_owned(), &mut |at, text| {
            // Whether any item wrote it is a fair question.
            if (text.starts_with('@') || text.contains("{{")) && !at.ends_with("/hasKey") {
                self.text(at, text);
            }
        });
    }

    /// A key that has its value from before the loop, where its step of the item has not run.
    fn of_before(&self, at: &str, range: Range<usize>, key: &str, by: &str) -> Diagnostic {
        let message = format!(
            "`{key}` is written before the loop, too: an item whose own step of it has not run has the value from there"
        );
        let fault = self.subject.at(at).inside(range).report(&RULE, message);
        let help = "give the step in the loop an `outputKey` of its own: then there is no value without it";
        let step = self.subject.at(&format!("{by}/type"));
        fault.help(help).related(&step.place(), "this step may not have run")
    }

    fn text(&mut self, at: &str, text: &str) {
        let Ok(field) = Field::compile(&Value::from(text)) else { return };
        let begin = usize::from(matches!(field, Field::Path(_) | Field::Optional(_)));
        for used in field.variables() {
            let variable = used.variable;
            let Some(key) = variable.path.first() else { continue };
            let range = variable.range.start + begin..variable.range.end.max(begin);
            if let Some(by) = self.keys.older(key).filter(|_| self.time != ReadTime::Due) {
                self.found.push(self.of_before(at, range, key, by));
                continue;
            }
            let Some(KeyState::OfItems { of }) = self.keys.get(key) else { continue };
            let fault = self.subject.at(at).inside(range).report(
                &RULE,
                format!("each item of the loop before overwrites `{key}`: this is what the last one wrote"),
            );
            let help = match self.time {
                ReadTime::Failed => TAKE_BACK,
                _ => "read what the loop gathers: write `\"collect_results\": true` and a `result_key` there",
            };
            let own = self.subject.at(&format!("{of}/properties/items_path"));
            self.found.push(fault.help(help).related(&own.place(), "the loop is here"));
        }
    }
}
