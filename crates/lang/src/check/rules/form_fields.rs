//! A form that can't be asked, or a field of it that nothing can be filled into.

use std::collections::BTreeSet;

use serde::Deserialize as _;
use serde_json::Value;

use crate::check::settings::is_given;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::form::{FieldType, FormField};
use crate::program::form::{MAX_FIELDS, literal_faults};
use crate::program::reference::as_path;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::FORM_FIELDS, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject).iter().filter(|step| step.kind == "PbotForm") {
        let form = WrittenForm { subject, step };
        form.parts(found);
        form.fields(found);
    }
}

struct WrittenForm<'f, 'a> {
    subject: &'f Subject<'a>,
    step: &'f WrittenStep<'a>,
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
        let Some(choices) = choices else {
            let message = format!("the field `{}` has no `choices`", field.name);
            return self.report(&format!("{at}/type"), message, "list them: \"choices\": [\"damage\", \"delay\"]");
        };
        let at = format!("{at}/choices");
        if choices.is_empty() {
            return self.report(&at, "`choices` is empty: nothing can be chosen".to_owned(), "list the texts");
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
        for fault in literal_faults(field) {
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
            let pointer = format!("{}/properties/{at}/{name}", self.step.at);
            let Some(known) = self.subject.compiled.steps.known.get(&pointer) else { continue };
            if !known.types.meets(takes.or(JsonTypes::NULL)) {
                let message = format!("`{path}` is {}, and no `{name}` of this field", known.types.called());
                found.extend(self.report(&format!("{at}/{name}"), message, "name a value of the field's type"));
            }
        }
    }
}
