//! A key of the items of a loop that is read after the loop: each item overwrites it.

use serde_json::Value;

use crate::check::key_flow::{KeyState, KeysAt, follow};
use crate::check::step_tree::{StepNode, tree};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, codes, few_of_many};
use crate::program::reference::{Field, each_text};

pub const RULE: Rule = Rule { code: codes::ITEM_KEY, check };

/// The texts of a loop of mode `react` that read keys.
const OF_REACT: [&str; 2] = ["objective", "system_prompt"];
const OUTPUT: &str = "/definition/output";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let nodes = tree(subject);
    let last = follow(subject, &nodes, &mut |node, keys| {
        let mut reader = KeyReader { subject, keys, found };
        for condition in node.conditions() {
            reader.value(&condition.at, Some(condition.written));
        }
        for (name, value) in node.step.properties {
            if reads(node, name) {
                reader.value(&node.step.property(name), Some(value));
            }
        }
        few_of_many(found);
    });
    if !nodes.is_empty() {
        KeyReader { subject, keys: &last, found }.value(OUTPUT, subject.document().value.pointer(OUTPUT));
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

struct KeyReader<'r, 'a> {
    subject: &'r Subject<'a>,
    keys: &'r KeysAt<'a>,
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

    fn text(&mut self, at: &str, text: &str) {
        let Ok(field) = Field::compile(&Value::from(text)) else { return };
        let begin = usize::from(matches!(field, Field::Path(_) | Field::Optional(_)));
        for used in field.variables() {
            let variable = used.variable;
            let Some(key) = variable.path.first() else { continue };
            let Some(KeyState::OfItems { of }) = self.keys.get(key) else { continue };
            let range = variable.range.start + begin..variable.range.end.max(begin);
            let fault = self.subject.at(at).inside(range).report(
                &RULE,
                format!("each item of the loop before overwrites `{key}`: this is what the last one wrote"),
            );
            let help = "read what the loop gathers: write `\"collect_results\": true` and a `result_key` there";
            let own = self.subject.at(&format!("{of}/properties/items_path"));
            self.found.push(fault.help(help).related(&own.place(), "the loop is here"));
        }
    }
}
