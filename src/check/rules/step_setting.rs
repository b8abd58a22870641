//! The settings of a step of the platform: a matcher, a table, a form, a loop of mode `foreach`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::reference::as_path;
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule { code: codes::STEP_SETTING, check };

/// The names that each step has without another step.
const GIVEN: [&str; 4] = ["input", "now", "__run_id", "__step"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject) {
        let judge = StepJudge { subject, step: &step };
        match step.kind {
            "matcher" => judge.matcher(found),
            "custom-table" => judge.table(found),
            "PbotForm" => judge.form(found),
            "loop" if judge.text("mode") == Some("foreach") => judge.foreach(found),
            _ => {}
        }
    }
}

struct StepJudge<'j, 'a> {
    subject: &'j Subject<'a>,
    step: &'j WrittenStep<'a>,
}

impl StepJudge<'_, '_> {
    fn get(&self, name: &str) -> Option<&Value> {
        self.step.properties.get(name).filter(|value| !value.is_null())
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn list(&self, name: &str) -> Option<&Vec<Value>> {
        self.get(name)?.as_array()
    }

    /// A fault at a property, unless one was reported there.
    fn at(&self, name: &str, message: String) -> Option<Diagnostic> {
        let at = self.step.property(name);
        let cursor = self.subject.at(&at);
        (cursor.is_written() && !self.subject.is_faulty(&at)).then(|| cursor.report(&RULE, message))
    }

    /// Properties that the step can't do without.
    fn missing(&self, names: &[&str], help: &str) -> Option<Diagnostic> {
        let missing: Vec<String> = names
            .iter()
            .filter(|name| !self.step.properties.contains_key(**name))
            .map(|name| format!("`{name}`"))
            .collect();
        if missing.is_empty() || self.step.is_misread(self.subject) {
            return None;
        }
        let cursor = self.subject.at(&format!("{}/properties", self.step.at)).key();
        let message = format!("a step of type `{}` needs {}", self.step.kind, missing.join(" and "));
        Some(cursor.report(&RULE, message).help(help))
    }

    fn matcher(&self, found: &mut Vec<Diagnostic>) {
        found.extend(self.missing(&["left", "right"], "they are the two lists that are matched, by their `@paths`"));
        for side in ["left", "right"] {
            found.extend(self.get(side).and_then(|value| self.side(side, value)));
        }
        if self.list("matchOn").is_some_and(Vec::is_empty) {
            let fault = self.at("matchOn", "`matchOn` is empty: nothing says which entries belong together".to_owned());
            found.extend(fault.map(|fault| fault.help("name the fields that must be equal: [\"invoice_id\"]")));
        }
        for (index, field) in self.list("matchOn").into_iter().flatten().enumerate() {
            if let Some(name) = field.as_str().and_then(|field| field.strip_prefix('@')) {
                let at = format!("{}/{index}", self.step.property("matchOn"));
                let last = name.rsplit('.').next().unwrap_or(name);
                let message = format!("`matchOn` names fields of the entries; `@{name}` is a path");
                let cursor = self.subject.at(&at);
                if self.subject.has_error_in(&cursor.place()) {
                    continue;
                }
                let report = cursor.report(&RULE, message);
                found.push(report.help(format!("write the field's name: `{last}`")).suggest(quoted(last)));
            }
        }
        for name in ["tolerance", "dateWindowDays"] {
            if self.get(name).and_then(Value::as_f64).is_some_and(|number| number < 0.0) {
                let fault = self.at(name, format!("`{name}` is below 0: nothing is ever so near"));
                found.extend(fault.map(|fault| fault.help("0 asks for the same value")));
            }
        }
        if self.get("fuzzyThreshold").is_some() && self.get("descriptionKey").is_none() {
            let message = "`fuzzyThreshold` compares the texts of a field, and `descriptionKey` does not name it";
            let fault = self.at("fuzzyThreshold", message.to_owned());
            found.extend(fault.map(|fault| fault.help("add `descriptionKey`: the field whose texts are compared")));
        }
        let mut keys = BTreeSet::new();
        for (name, default) in [
            ("outputMatched", "matched"),
            ("outputUnmatchedLeft", "unmatchedLeft"),
            ("outputUnmatchedRight", "unmatchedRight"),
        ] {
            let key = self.text(name).unwrap_or(default);
            if !keys.insert(key) {
                let fault =
                    self.at(name, format!("two lists of the matcher have the key `{key}`: one replaces the other"));
                found.extend(fault.map(|fault| fault.help("give each list a key of its own")));
            }
        }
    }

    /// A side of a matcher that is no list.
    fn side(&self, side: &str, value: &Value) -> Option<Diagnostic> {
        let text = match value {
            Value::Array(_) => return None,
            Value::String(text) => text,
            other => {
                let fault = self.at(side, format!("`{side}` is a list or its `@path`; {other} was given"))?;
                return Some(fault.help("name the list: \"@input.invoices\""));
            }
        };
        if as_path(text).is_some() {
            let known = self.subject.compiled.steps.known.get(&self.step.property(side))?;
            if known.types.meets(JsonTypes::LIST.or(JsonTypes::TEXT)) {
                return None;
            }
            let fault = self.at(side, format!("`{side}` is a list, and `{text}` is {}", known.types.called()))?;
            return Some(fault.help("name the path of a list"));
        }
        if text.starts_with("doc:") || text.starts_with('@') {
            return None;
        }
        let fault = self.at(side, format!("`{side}` is a list or its `@path`; the text {} was given", quoted(text)))?;
        let meant = format!("@{}", text.trim_start_matches(['{', '$', ' ']).trim_end_matches(['}', ' ']));
        Some(match as_path(&meant) {
            Some(_) => fault.help("a path begins with `@`").suggest(quoted(&meant)),
            None => fault.help("name the list: \"@input.invoices\""),
        })
    }

    fn table(&self, found: &mut Vec<Diagnostic>) {
        if self.get("values").is_some() {
            found.extend(self.missing(&["keys"], "they are the columns that take the `values`, in their order"));
        }
        if let (Some(keys), Some(values)) = (self.list("keys"), self.list("values"))
            && keys.len() != values.len()
        {
            let message = format!("`keys` names {} columns, and `values` has {} values", keys.len(), values.len());
            found.extend(
                self.at("values", message).map(|fault| fault.help("each column takes one value, in their order")),
            );
        }
        let writes = self.text("operation").is_some_and(|operation| operation != "read");
        let is_empty = |name: &str| match self.get(name) {
            None => true,
            Some(value) => value.as_object().is_some_and(serde_json::Map::is_empty),
        };
        if writes && is_empty("fields") && self.get("values").is_none() {
            let operation = self.text("operation").unwrap_or_default();
            let fault =
                self.at("operation", format!("`{operation}` writes nothing: there are neither `fields` nor `values`"));
            found.extend(
                fault.map(|fault| fault.help("give the columns with their values: \"fields\": {\"status\": \"open\"}")),
            );
        }
    }

    fn form(&self, found: &mut Vec<Diagnostic>) {
        let keys = self.list("expected_keys");
        if keys.is_some_and(Vec::is_empty) {
            let fault = self.at("expected_keys", "`expected_keys` is empty: the form asks for nothing".to_owned());
            found.extend(fault.map(|fault| fault.help("name what is asked for: [\"reason\"]")));
        }
        let mut known = BTreeSet::new();
        for (index, key) in keys.into_iter().flatten().enumerate() {
            let Some(key) = key.as_str() else { continue };
            let at = format!("{}/{index}", self.step.property("expected_keys"));
            let bare = key.trim_start_matches('@');
            let (message, help) = if GIVEN.contains(&bare) {
                (
                    format!("`@{bare}` is the run's own: what the form asks for could never be read"),
                    "give it another name",
                )
            } else if as_path(&format!("@{key}")).is_none_or(|path| path.len() != 1) {
                (format!("no path can name the key {}", quoted(key)), "letters, digits and `_`, a letter first")
            } else if !known.insert(key) {
                (format!("the form asks for `{key}` twice"), "take one of them out")
            } else {
                continue;
            };
            found.push(self.subject.at(&at).report(&RULE, message).help(help));
        }
        let open = self.get("ttl_seconds").and_then(Value::as_f64);
        if open.is_some_and(|seconds| seconds <= 0.0) {
            let fault = self.at("ttl_seconds", "the form expires when it is made".to_owned());
            found.extend(fault.map(|fault| fault.help("`ttl_seconds` is how long it is open, in seconds")));
        }
        let late =
            |seconds: &Value| open.is_some_and(|open| open > 0.0 && seconds.as_f64().is_some_and(|at| at >= open));
        if self.list("reminder_intervals").into_iter().flatten().any(late) {
            let fault = self.at("reminder_intervals", "a reminder comes when the form has expired".to_owned());
            let fault = fault.map(|fault| fault.help("both are in seconds from the making of the form"));
            found.extend(fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault }));
        }
    }

    fn foreach(&self, found: &mut Vec<Diagnostic>) {
        if let Some(name) = self.text("item_variable_name").filter(|name| GIVEN.contains(name)) {
            let fault =
                self.at("item_variable_name", format!("`@{name}` is the run's own: the item could never be read"));
            found.extend(fault.map(|fault| fault.help("name the item for what it is: `invoice`")));
        }
        let collects = self.get("collect_results") == Some(&Value::Bool(true));
        let warn = |fault: Diagnostic| Diagnostic { severity: Severity::Warning, ..fault };
        if collects && self.get("result_key").is_none() && self.step.written.get("outputKey").is_none() {
            let message = "the results are collected, and no `result_key` says under which name they are read";
            let fault = self.at("collect_results", message.to_owned());
            found.extend(fault.map(|fault| warn(fault.help("add `result_key`"))));
        }
        if self.get("result_key").is_some() && !collects && self.get("collect_results").is_some() {
            let message = "nothing is kept under `result_key`: `collect_results` is false";
            let fault = self.at("result_key", message.to_owned());
            found.extend(fault.map(|fault| warn(fault.help("write `\"collect_results\": true`, or take the key out"))));
        }
        let items = self.subject.compiled.steps.known.get(&self.step.property("items_path"));
        let texts_or_lists = JsonTypes::LIST.or(JsonTypes::TEXT);
        if let Some(known) = items.filter(|known| !known.types.meets(texts_or_lists)) {
            let path = self.text("items_path").unwrap_or_default();
            let fault = self.at(
                "items_path",
                format!("`{path}` is {}, and no list whose items could be taken", known.types.called()),
            );
            found.extend(fault.map(|fault| fault.help("name the path of a list")));
        }
    }
}
