//! An order that reads a key whose step may have been skipped: the step fails where the key is missing.

use serde_json::Value;

use super::bad_operand::RULE;
use crate::check::Subject;
use crate::check::key_flow::{Fact, KeyState, KeysAt, facts, follow, is_order, key_of, operator};
use crate::check::step_tree::tree;
use crate::diagnostic::{Diagnostic, Severity};

/// Reports those of the filters of a document.
pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    follow(subject, &tree(subject), &mut |node, keys| {
        let at = format!("{}/filter/condition", node.step.at);
        if let Some(filter) = node.step.filter().filter(|_| !subject.is_faulty(&at)) {
            let mut reader = OrderReader { subject, keys, facts: keys.facts.clone(), found };
            reader.condition(&at, filter);
        }
    });
}

struct OrderReader<'r, 'a> {
    subject: &'r Subject<'a>,
    keys: &'r KeysAt<'a>,
    /// What holds where the condition is evaluated.
    facts: Vec<Fact<'a>>,
    found: &'r mut Vec<Diagnostic>,
}

impl<'a> OrderReader<'_, 'a> {
    /// A document is never deeper than its reader allows: the recursion ends.
    fn condition(&mut self, at: &str, condition: &'a Value) {
        let Some((operator, operands)) = operator(condition) else { return };
        let at = format!("{at}/{operator}");
        match (operator, operands) {
            ("not", part) => self.condition(&at, part),
            ("and" | "or", Value::Array(parts)) => {
                let before = self.facts.len();
                for (index, part) in parts.iter().enumerate() {
                    self.condition(&format!("{at}/{index}"), part);
                    // The next part is looked at when this one did not decide.
                    self.facts.extend(facts(part, operator == "and"));
                }
                self.facts.truncate(before);
            }
            (operator, Value::Array(operands)) if is_order(operator) => {
                for (index, operand) in operands.iter().enumerate() {
                    if let Some(path) = operand.as_str() {
                        self.operand(&format!("{at}/{index}"), path);
                    }
                }
            }
            _ => {}
        }
    }

    fn operand(&mut self, at: &str, path: &str) {
        let Some(key) = key_of(path) else { return };
        let Some(KeyState::Maybe { by, .. }) = self.keys.get(&key) else { return };
        let cursor = self.subject.at(at);
        if self.keys.is_there(&key, &self.facts) || self.subject.is_reported(&cursor.place()) {
            return;
        }
        let message =
            format!("`{path}` is missing when the step that writes `{key}` was skipped: this step fails then");
        let help = format!("ask for it first: {{\"and\": [{{\"hasKey\": \"@{key}\"}}, ...]}}");
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        let writer = self.subject.at(&format!("{by}/type")).place();
        self.found.push(fault.help(help).related(&writer, "this step, or the one in its place, may be skipped"));
    }
}
