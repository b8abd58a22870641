//! A form that can't be asked, or a field of it that nothing can be filled into.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::Value;

use super::unsure_operand::has_value;
use crate::check::key_flow::{KeysAt, facts, follow};
use crate::check::settings::is_given;
use crate::check::step_tree::tree;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::form::{FieldType, FormField};
use crate::program::form::{MAX_FIELDS, literal_faults};
use crate::program::reference::{as_any_path, as_optional_path, as_path};
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::FORM_FIELDS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let steps = steps(subject);
    let is_form = |step: &&WrittenStep<'_>| step.kind == "PbotForm";
    let keys = if steps.iter().any(|step| is_form(&step)) { keys_of_forms(subject) } else { BTreeMap::new() };
    for step in steps.iter().filter(is_form) {
        let form = WrittenForm { subject, step, keys: keys.get(step.at) };
        form.parts(found);
        form.fields(found);
    }
}

/// The keys at each form, with what its own filter says.
fn keys_of_forms<'a>(subject: &Subject<'a>) -> BTreeMap<String, KeysAt<'a>> {
    let mut found = BTreeMap::new();
    follow(subject, &tree(subject), &mut |node, keys| {
        if node.step.kind == "PbotForm" {
            let mut keys = keys.clone();
            keys.facts.extend(node.step.filter().into_iter().flat_map(|filter| facts(filter, true)));
            found.insert(node.step.at.to_owned(), keys);
        }
    });
    found
}

const LIST_CHOICES: &str = "list them: \"choices\": [\"damage\", \"delay\"]";

struct WrittenForm<'f, 'a> {
    subject: &'f Subject<'a>,
    step: &'f WrittenStep<'a>,
    keys: Option<&'f KeysAt<'a>>,
}

impl<'a> WrittenForm<'_, 'a> {
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.step.properties.get(name).filter(|value| !value.is_null())
    }

    /// A fault at a pointer below the properties, unless one was reported there.
    fn report(&self, below: &str, message: String, help: &str) -> Option<Diagnostic> {
        let pointer = format!("{}/properties/{below}", self.step.at);
        let fault = || self.subject.at(&pointer).report(&RULE, message).help(help);
        (!self.subject.is_faulty(&pointer)).then(fault)
    }

    /// Either `expected_keys` or `question` and `fields`.
    fn parts(&self, found: &mut Vec<Diagnostic>) {
        const FIELDS: &str = "a form asks a `question` with `fields`: [{\"name\": \"amount\", \"type\": \"number\"}]";
        let (keys, fields) = (self.get("expected_keys").is_some(), self.get("fields").is_some());
        if !keys && !fields && !self.step.is_misread(self.subject) {
            let cursor = self.subject.at(&format!("{}/properties", self.step.at)).key();
            found.push(cursor.report(&RULE, "the form asks for nothing: it has no `fields`".to_owned()).help(FIELDS));
        }
        if keys && fields {
            let message = "the form has `fields` and `expected_keys`, and only one of the two is asked for".to_owned();
            let help = "leave `expected_keys` out, and write each of them as a field: {\"name\": \"reason\", \"type\": \"text\"}";
            found.extend(self.report("expected_keys", message, help));
        }
        if fields && self.get("question").is_none() && !self.step.is_misread(self.subject) {
            let cursor = self.subject.at(&format!("{}/properties", self.step.at)).key();
            let message = "the form has `fields` and no `question`: nobody would know what is asked".to_owned();
            found.push(cursor.report(&RULE, message).help("say what is asked: \"question\": \"How much is paid?\""));
        }
        if fields && self.get("question").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()) {
            let message = "the `question` is blank: nobody would know what is asked".to_owned();
            found.extend(self.report("question", message, "say what is asked: \"question\": \"How much is paid?\""));
        }
        for name in ["question", "show"] {
            if keys && !fields && self.get(name).is_some() {
                let message = format!("`{name}` is not shown with `expected_keys`");
                found.extend(self.report(name, message, FIELDS));
            }
        }
    }

    fn fields(&self, found: &mut Vec<Diagnostic>) {
        let Some(fields) = self.get("fields").and_then(Value::as_array) else { return };
        if fields.is_empty() {
            let help = "name what is asked for: [{\"name\": \"reason\", \"type\": \"text\"}]";
            found.extend(self.report("fields", "`fields` is empty: the form asks for nothing".to_owned(), help));
        }
        if fields.len() > MAX_FIELDS {
            let message = format!("the form has {} fields, and at most {MAX_FIELDS} are asked for", fields.len());
            found.extend(self.report("fields", message, "ask for the rest in a second form"));
        }
        let mut known = BTreeSet::new();
        for (index, field) in fields.iter().enumerate().take(MAX_FIELDS) {
            // What can't be read is reported.
            let Ok(field) = FormField::deserialize(field) else { continue };
            let at = format!("fields/{index}");
            found.extend(self.name(&at, &field, &mut known));
            found.extend(self.choices(&at, &field));
            self.values(&at, &field, found);
        }
    }

    fn name(&self, at: &str, field: &FormField, known: &mut BTreeSet<String>) -> Option<Diagnostic> {
        let name = field.name.as_str();
        let at = format!("{at}/name");
        if is_given(name) {
            let message = format!("`@{name}` is the run's own: what is filled in could never be read");
            return self.report(&at, message, "give it another name");
        }
        if as_path(&format!("@{name}")).is_none_or(|path| path.len() != 1) {
            let message = format!("no path can name the key {}", quoted(name));
            return self.report(
                &at,
                message,
                "letters, digits and `_`, a letter first; what people read is the `label`",
            );
        }
        if self.keys.is_some_and(|keys| keys.is_item(name)) {
            let message = format!("`@{name}` is the item of the loop around the form: what is filled in would hide it");
            return self.report(&at, message, "give the field another name");
        }
        if !known.insert(name.to_owned()) {
            let message = format!("the form asks for `{name}` twice");
            return self.report(&at, message, "take one of them out");
        }
        None
    }

    fn choices(&self, at: &str, field: &FormField) -> Option<Diagnostic> {
        let choices = field.choices.as_deref();
        if field.kind != FieldType::Choice {
            let message = "`choices` has no effect: only a field of type `choice` has some".to_owned();
            let fault = choices.and_then(|_| self.report(&format!("{at}/choices"), message, "\"type\": \"choice\""));
            return fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault });
        }
        let written = self.subject.document().value.pointer(&format!("{}/properties/{at}/choices", self.step.at));
        let Some(choices) = choices else {
            if written.is_some_and(|written| !written.is_null()) {
                return None;
            }
            let message = format!("the field `{}` has no `choices`", field.name);
            return self.report(&format!("{at}/type"), message, LIST_CHOICES);
        };
        let at = format!("{at}/choices");
        if choices.is_empty() {
            return self.report(&at, "`choices` is empty: nothing can be chosen".to_owned(), "list the texts");
        }
        let computed = |text: &&String| as_any_path(text).is_some() || text.contains("{{");
        if let Some((index, text)) = choices.iter().enumerate().find(|(_, text)| computed(text)) {
            let message =
                format!("{} would be a choice as it stands: a choice is no `@path` and no template", quoted(text));
            return self.report(&format!("{at}/{index}"), message, LIST_CHOICES);
        }
        let mut known = BTreeSet::new();
        let (index, wrong) = choices.iter().enumerate().find(|(_, text)| text.is_empty() || !known.insert(*text))?;
        let message = match wrong.is_empty() {
            true => "an empty text can't be chosen".to_owned(),
            false => format!("{} is a choice twice", quoted(wrong)),
        };
        self.report(&format!("{at}/{index}"), message, "take it out")
    }

    /// Bounds and defaults that are written out, and those at paths whose types are known.
    fn values(&self, at: &str, field: &FormField, found: &mut Vec<Diagnostic>) {
        let members = [("default", &field.default), ("min", &field.min), ("max", &field.max)];
        let given = || members.into_iter().filter(|(_, value)| value.is_some());
        for (name, _) in given().filter(|(name, _)| *name != "default" && !field.kind.has_order()) {
            let message = format!("`{name}` has no effect: what is filled in here has no order");
            let help = "`min` and `max` are for the types `integer`, `number`, `date` and `time`";
            let fault = self.report(&format!("{at}/{name}"), message, help);
            found.extend(fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault }));
        }
        let faults = literal_faults(field);
        // One with a path in it is data all the same: no bound is computed.
        let is_data = |name: &str, value: &Option<Value>| {
            let is_bound = name != "default" && field.kind.has_order();
            is_bound && matches!(value, Some(Value::Object(_) | Value::Array(_)))
        };
        for (name, value) in given().filter(|(name, value)| is_data(name, value)) {
            if faults.iter().all(|fault| fault.field != name) {
                let shown = value.as_ref().map(Value::to_string).unwrap_or_default();
                let message = format!("{shown} is no `{name}` of this field: the run would fail when it asks");
                let help =
                    "a bound is a value of the field's type, or its `@path`; let a step before compute another one";
                found.extend(self.report(&format!("{at}/{name}"), message, help));
            }
        }
        for fault in faults {
            let message = fault.message;
            found.extend(self.report(&format!("{at}/{}", fault.field), message, "the run would fail when it asks"));
        }
        let takes = match field.kind {
            FieldType::Integer | FieldType::Number => JsonTypes::NUMBER.or(JsonTypes::TEXT),
            FieldType::YesNo => JsonTypes::BOOLEAN.or(JsonTypes::TEXT),
            _ => JsonTypes::TEXT,
        };
        for (name, value) in given() {
            let Some(path) = value.as_ref().and_then(Value::as_str).filter(|text| text.starts_with('@')) else {
                continue;
            };
            if path == "@now" && !takes_moment(field.kind, name) && (name == "default" || field.kind.has_order()) {
                let message = format!("`@now` is a moment, and no `{name}` of this field");
                let help = "only a field of type `date` takes it, as today";
                found.extend(self.report(&format!("{at}/{name}"), message, help));
                continue;
            }
            let pointer = format!("{}/properties/{at}/{name}", self.step.at);
            let Some(known) = self.subject.compiled.steps.known.get(&pointer) else { continue };
            if !known.types.meets(takes.or(JsonTypes::NULL)) {
                let message = format!("`{path}` is {}, and no `{name}` of this field", known.types.called());
                found.extend(self.report(&format!("{at}/{name}"), message, "name a value of the field's type"));
            } else if name != "default" && field.kind.has_order() && known.types.may_be_null() {
                let facts = self.keys.map(|keys| keys.facts.as_slice()).unwrap_or_default();
                // With a `?`, null is no bound.
                if as_optional_path(path).is_some() || has_value(path, facts) {
                    continue;
                }
                let message = format!("`{path}` may be null, which is no `{name}`: the step fails then");
                let optional = if path.contains('.') {
                    format!("write \"{path}?\" for no bound then, or ")
                } else {
                    String::new()
                };
                let help =
                    format!("{optional}ask for it in the `filter` of this step: {{\"notEqual\": [\"{path}\", null]}}");
                let fault = self.report(&format!("{at}/{name}"), message, &help);
                found.extend(fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault }));
            }
        }
    }
}

/// Whether `@now` is a value of a field's type: as a bound or default.
fn takes_moment(kind: FieldType, name: &str) -> bool {
    match kind {
        FieldType::Date => true,
        FieldType::Text | FieldType::LongText => name == "default",
        _ => false,
    }
}
