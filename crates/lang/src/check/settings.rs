//! The settings of a step or of a registered action, as they are written.

mod approval;
mod foreach;
mod matcher;
mod table;

use serde_json::{Map, Value};

use super::steps::WrittenStep;
use super::{Cursor, Rule, Subject, Used};
use crate::compile::steps::{DeclaredText, KnownValue};
use crate::diagnostic::{Diagnostic, Severity};

pub(super) use approval::approvals;
pub(super) use foreach::{foreach, foreach_names, is_given};
pub(super) use matcher::{called_matcher, matcher};
pub(super) use table::table;

/// The settings of a step or of a registered action.
pub(super) struct WrittenSettings<'j, 'a> {
    pub rule: &'static Rule,
    pub subject: &'j Subject<'a>,
    properties: Option<&'j Map<String, Value>>,
    owner: SettingsOwner<'j, 'a>,
    /// The action that a step calls: it has the settings that the step does not give.
    action: Option<&'j Used<'a>>,
}

/// What the settings belong to.
#[derive(Clone, Copy)]
enum SettingsOwner<'j, 'a> {
    Step(&'j WrittenStep<'a>),
    Action(&'j Used<'a>),
}

impl<'j, 'a> WrittenSettings<'j, 'a> {
    pub fn of_step(rule: &'static Rule, subject: &'j Subject<'a>, step: &'j WrittenStep<'a>) -> Self {
        Self { rule, subject, properties: Some(step.properties), owner: SettingsOwner::Step(step), action: None }
    }

    pub fn of_action(rule: &'static Rule, subject: &'j Subject<'a>, used: &'j Used<'a>) -> Self {
        Self { rule, subject, properties: used.written().as_object(), owner: SettingsOwner::Action(used), action: None }
    }

    /// Those of a step that calls a registered action, where the step does not give them those of the action.
    pub fn of_call(
        rule: &'static Rule,
        subject: &'j Subject<'a>,
        step: &'j WrittenStep<'a>,
        used: &'j Used<'a>,
    ) -> Self {
        Self { action: Some(used), ..Self::of_step(rule, subject, step) }
    }

    /// Where a setting is written.
    fn owner_of(&self, name: &str) -> SettingsOwner<'j, 'a> {
        match self.action.filter(|_| self.given(name).is_none()) {
            Some(used) => SettingsOwner::Action(used),
            None => self.owner,
        }
    }

    fn given(&self, name: &str) -> Option<&'j Value> {
        self.properties?.get(name).filter(|value| !value.is_null())
    }

    /// Whether they are those of a step: a call of an action may give what is missing.
    pub fn is_step(&self) -> bool {
        matches!(self.owner, SettingsOwner::Step(_))
    }

    pub fn get(&self, name: &str) -> Option<&'j Value> {
        let of_action = || self.action?.written().get(name).filter(|value| !value.is_null());
        self.given(name).or_else(of_action)
    }

    pub fn text(&self, name: &str) -> Option<&'j str> {
        self.get(name)?.as_str()
    }

    pub fn list(&self, name: &str) -> Option<&'j Vec<Value>> {
        self.get(name)?.as_array()
    }

    /// The place of a setting.
    pub fn cursor(&self, name: &str) -> Cursor<'a> {
        match self.owner_of(name) {
            SettingsOwner::Step(step) => self.subject.at(&step.property(name)),
            SettingsOwner::Action(used) => used.at(&format!("/{}", crate::syntax::token(name))),
        }
    }

    /// A fault at a setting, unless one was reported there.
    pub fn at(&self, name: &str, message: String) -> Option<Diagnostic> {
        let cursor = self.cursor(name);
        let is_faulty = match self.owner_of(name) {
            SettingsOwner::Step(step) => self.subject.is_faulty(&step.property(name)),
            SettingsOwner::Action(used) => {
                !used.knows(&[&format!("/{name}")]) || self.subject.has_error_in(&cursor.place())
            }
        };
        (cursor.is_written() && !is_faulty).then(|| cursor.report(self.rule, message))
    }

    /// The same at the name of the setting.
    pub fn key(&self, name: &str, message: String) -> Option<Diagnostic> {
        let place = self.cursor(name).key().place();
        self.at(name, message).map(|fault| Diagnostic { place, ..fault })
    }

    /// What is known of the value at the path that a setting of a step is.
    pub fn known(&self, name: &str) -> Option<&'j KnownValue> {
        match self.owner {
            SettingsOwner::Step(step) => {
                self.subject.compiled.steps.known.get(&step.property(name)).map(|known| &**known)
            }
            SettingsOwner::Action(_) => None,
        }
    }

    /// The schemas of the entries of the two lists of a step that is a matcher.
    pub fn entries(&self) -> Option<[&'j Value; 2]> {
        let SettingsOwner::Step(step) = self.owner else { return None };
        let lists = self.subject.compiled.steps.matchers.get(step.at)?;
        Some(lists.each_ref())
    }

    /// Whether a call of an action may give a setting.
    pub fn may_come(&self, name: &str) -> bool {
        let SettingsOwner::Action(used) = self.owner else { return false };
        match used.written().get("parameters").and_then(|parameters| parameters.get("properties")) {
            Some(Value::Object(listed)) => listed.contains_key(name),
            _ => true,
        }
    }

    /// Settings that a step can't do without.
    pub fn missing(&self, names: &[&str], help: &str) -> Option<Diagnostic> {
        let SettingsOwner::Step(step) = self.owner else { return None };
        let missing: Vec<String> =
            names.iter().filter(|name| !step.properties.contains_key(**name)).map(|name| format!("`{name}`")).collect();
        if missing.is_empty() || step.is_misread(self.subject) {
            return None;
        }
        let cursor = self.subject.at(&format!("{}/properties", step.at)).key();
        let message = format!("a step of type `{}` needs {}", step.kind, missing.join(" and "));
        Some(cursor.report(self.rule, message).help(help))
    }
}

/// Warns of a list that is declared as a text: it may be one that is JSON. Nothing where the schema declares that.
fn text_of_list(settings: &WrittenSettings<'_, '_>, name: &str) -> Option<Diagnostic> {
    let known = settings.known(name).filter(|known| known.may_be_json() && !known.is_json)?;
    let path = settings.text(name).unwrap_or_default();
    let message = format!("`{path}` is {}: only the JSON of a list is taken as one", known.types.called());
    let fault = Diagnostic { severity: Severity::Warning, ..settings.at(name, message)? };
    if known.text == DeclaredText::Reply {
        return Some(fault.help("give the action of the model an `answer_schema` that describes the list"));
    }
    Some(fault.help(
        "with another text the step fails; declare it as `\"type\": \"array\"` if it is a list, or say that it is JSON with \
         `\"contentMediaType\": \"application/json\"`",
    ))
}
