//! An order, or a text of a step, that reads a key whose step may have been skipped: the step fails where the key is
//! missing.

use std::collections::HashMap;

use serde_json::Value;

use super::bad_operand::RULE;
use super::no_member::{may_be_left_out, takes_optional};
use super::null_input;
use crate::check::Subject;
use crate::check::key_flow::{Fact, KeyState, KeysAt, MAX_FACTS, facts, follow, is_order, key_of, operator};
use crate::check::step_tree::{CaseCondition, StepNode, tree};
use crate::compile::steps::{DeclaredText, JsonTypes, KnownValue, TypedText};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::reference::{Field, PathStep, as_any_path, each_text};

/// The condition of a workflow as a whole.
const OF_ALL: &str = "/definition/condition";

/// Reports those of the conditions of a document.
pub(super) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let of_all = subject.document().value.pointer(OF_ALL);
    let typed = subject.compiled.steps.typed.iter().filter(|_| !subject.is_step());
    let typed: HashMap<&str, &TypedText> = typed.map(|text| (text.at.as_str(), text)).collect();
    let typed = &typed;
    if let Some(written) = of_all.filter(|_| !subject.is_faulty(OF_ALL)) {
        let keys = KeysAt::default();
        OrderReader { subject, typed, keys: &keys, facts: Vec::new(), found: &mut *found }.condition(OF_ALL, written);
    }
    follow(subject, &tree(subject), &mut |node, keys| {
        let mut known = keys.facts.clone();
        known.extend(of_all.into_iter().flat_map(|condition| facts(condition, true)));
        for CaseCondition { at, written } in node.conditions() {
            if !subject.is_faulty(&at) {
                let mut reader = OrderReader { subject, typed, keys, facts: known.clone(), found: &mut *found };
                reader.condition(&at, written);
            }
            // A case is asked where none before it holds.
            known.extend(facts(written, false));
        }
        let mut known = keys.facts.clone();
        known.extend(of_all.into_iter().flat_map(|condition| facts(condition, true)));
        known.extend(node.step.filter().into_iter().flat_map(|filter| facts(filter, true)));
        null_input::check(subject, &node.step, &known, found);
        if keys.has_unsure() {
            texts(subject, node, keys, &known, found);
        }
    });
}

/// The texts of a step that need a key whose step may have been skipped.
fn texts(
    subject: &Subject<'_>,
    node: &StepNode<'_>,
    keys: &KeysAt<'_>,
    known: &[Fact<'_>],
    found: &mut Vec<Diagnostic>,
) {
    let mut reader = |name: &str, value: &Value| {
        each_text(value, &mut node.step.property(name), &mut |at, text| {
            if text.starts_with('@') || text.contains("{{") {
                needed(
                    subject,
                    at,
                    text,
                    &|key| match keys.get(key)? {
                        KeyState::Maybe { by, .. } if !keys.is_there(key, known) => Some(*by),
                        _ => None,
                    },
                    found,
                );
            }
        });
    };
    let taken: Option<&[&str]> = match node.step.kind {
        _ if node.step.is_named() => None,
        "loop" if node.step.is_foreach() => Some(&["items_path"]),
        "loop" => Some(&["objective", "system_prompt"]),
        _ => None,
    };
    let properties = node.step.properties.iter();
    let properties = properties.filter(|(name, _)| taken.is_none_or(|taken| taken.contains(&name.as_str())));
    properties.for_each(|(name, value)| reader(name, value));
}

/// Reports the keys that a text needs and that may be missing. `writer` names the step that may have been skipped.
fn needed<'w>(
    subject: &Subject<'_>,
    at: &str,
    text: &str,
    writer: &dyn Fn(&str) -> Option<&'w str>,
    found: &mut Vec<Diagnostic>,
) {
    let Ok(field) = Field::compile(&Value::from(text)) else { return };
    let mut reported: Vec<String> = Vec::new();
    field.each_use(&mut |_, used| {
        let Some(PathStep::Name(key)) = used.path.first() else { return };
        let Some(by) = writer(key).filter(|_| used.guarded == 0 && !reported.contains(key)) else { return };
        let cursor = subject.at(at).inside(used.range.clone());
        if subject.is_reported(&cursor.place()) {
            return;
        }
        reported.push(key.clone());
        let message = format!("`{key}` is missing when the step that writes it was skipped: this step fails then");
        let otherwise = match text.strip_prefix('@') {
            Some(path) if path.contains('.') && takes_optional(subject, at) => {
                format!(", or write \"{text}?\" to leave the value out with it")
            }
            Some(_) => String::new(),
            None => format!(", or write {{{{#if {key}}}}}...{{{{/if}}}} around it"),
        };
        let help = format!("ask for it in the `filter` of this step with {{\"hasKey\": \"@{key}\"}}{otherwise}");
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        let writer = subject.at(&format!("{by}/type")).place();
        found.push(fault.help(help).related(&writer, "this step, or the one in its place, may be skipped"));
    });
}

struct OrderReader<'r, 'a> {
    subject: &'r Subject<'a>,
    /// The texts that take parts of values whose schemas are known, by their JSON pointers.
    typed: &'r HashMap<&'r str, &'r TypedText>,
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
            ("matches", Value::Array(operands)) => {
                if let Some(path) = operands.first().and_then(Value::as_str) {
                    self.nullable(&format!("{at}/0"), path, "matches no pattern");
                }
            }
            (operator, Value::Array(operands)) if is_order(operator) => {
                for (index, operand) in operands.iter().enumerate() {
                    if let Some(path) = operand.as_str() {
                        self.operand(&format!("{at}/{index}"), path);
                    } else if let Some(path) = operand.get("time").and_then(Value::as_str) {
                        self.operand(&format!("{at}/{index}/time"), path);
                    }
                }
            }
            _ => {}
        }
    }

    fn operand(&mut self, at: &str, path: &str) {
        let before = self.found.len();
        self.nullable(at, path, "has no order");
        self.missing_key(at, path);
        if self.found.len() == before {
            self.optional(at, path);
        }
    }

    /// An operand whose key the step did not write that was skipped.
    fn missing_key(&mut self, at: &str, path: &str) {
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

    /// An operand that its schema lets be left out.
    fn optional(&mut self, at: &str, path: &str) {
        let cursor = self.subject.at(at);
        let Some(text) = self.typed.get(at).filter(|_| self.facts.len() <= MAX_FACTS) else { return };
        // A value that has no order is reported as such.
        let has_order = |known: &KnownValue| {
            known.types.meets(JsonTypes::NUMBER)
                || known.types.meets(JsonTypes::TEXT) && known.text != DeclaredText::Plain
        };
        if self.subject.compiled.steps.known.get(at).is_some_and(|known| !has_order(known)) {
            return;
        }
        let Some(name) = may_be_left_out(self.subject, text, &self.facts) else { return };
        if self.subject.is_reported(&cursor.place()) {
            return;
        }
        let message = format!("`{name}` may be left out, and what is missing has no order: {}", self.outcome(at));
        let help = format!("ask for it first: {{\"and\": [{{\"hasKey\": \"@{name}\"}}, ...]}}");
        let help = match at.ends_with("/time") {
            true => help,
            false => format!("{help}; with \"{path}?\" the order does not hold without a value"),
        };
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        self.found.push(fault.help(help));
    }

    fn outcome(&self, at: &str) -> &'static str {
        if at.starts_with(OF_ALL) { "the run fails" } else { "this step fails" }
    }

    /// An operand that may be null, which its operator can't work with.
    fn nullable(&mut self, at: &str, path: &str, what: &str) {
        let cursor = self.subject.at(at);
        let Some(known) = self.subject.compiled.steps.known.get(at) else { return };
        if !known.types.may_be_null() || has_value(path, &self.facts) || self.subject.is_reported(&cursor.place()) {
            return;
        }
        let message = format!("`{path}` may be null, and {what} then: {}", self.outcome(at));
        let help = format!("ask for it first: {{\"and\": [{{\"notEqual\": [\"{path}\", null]}}, ...]}}");
        let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
        self.found.push(fault.help(help));
    }
}

/// Whether facts show that the value at an `@path` is not null.
pub(super) fn has_value(path: &str, facts: &[Fact<'_>]) -> bool {
    let Some(names) = as_any_path(path) else { return true };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    facts.len() > MAX_FACTS || facts.iter().any(|fact| fact.shows_value(&names))
}
