//! The settings of a step that is no registered action, and those of a registered matcher.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::settings::{WrittenSettings, matcher, table};
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::program::reference::as_path;
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule { code: codes::STEP_SETTING, check };

/// The names that each step has without another step.
const GIVEN: [&str; 4] = ["input", "now", "__run_id", "__step"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject) {
        let judge = StepJudge { settings: WrittenSettings::of_step(&RULE, subject, &step), step: &step };
        match step.kind {
            "matcher" => matcher(&judge.settings, found),
            "custom-table" => table(&judge.settings, found),
            "PbotForm" => judge.form(found),
            "loop" if judge.settings.text("mode") == Some("foreach") => judge.foreach(found),
            _ => {}
        }
    }
    for used in subject.actions() {
        if let Action::Matcher(_) = used.action {
            matcher(&WrittenSettings::of_action(&RULE, subject, used), found);
        }
    }
}

struct StepJudge<'j, 'a> {
    settings: WrittenSettings<'j, 'a>,
    step: &'j WrittenStep<'a>,
}

impl StepJudge<'_, '_> {
    fn form(&self, found: &mut Vec<Diagnostic>) {
        let keys = self.settings.list("expected_keys");
        if keys.is_some_and(Vec::is_empty) {
            let fault =
                self.settings.at("expected_keys", "`expected_keys` is empty: the form asks for nothing".to_owned());
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
            found.push(self.settings.subject.at(&at).report(&RULE, message).help(help));
        }
        let open = self.settings.get("ttl_seconds").and_then(Value::as_f64);
        if open.is_some_and(|seconds| seconds <= 0.0) {
            let fault = self.settings.at("ttl_seconds", "the form expires when it is made".to_owned());
            found.extend(fault.map(|fault| fault.help("`ttl_seconds` is how long it is open, in seconds")));
        }
        let late =
            |seconds: &Value| open.is_some_and(|open| open > 0.0 && seconds.as_f64().is_some_and(|at| at >= open));
        if self.settings.list("reminder_intervals").into_iter().flatten().any(late) {
            let fault = self.settings.at("reminder_intervals", "a reminder comes when the form has expired".to_owned());
            let fault = fault.map(|fault| fault.help("both are in seconds from the making of the form"));
            found.extend(fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault }));
        }
    }

    fn foreach(&self, found: &mut Vec<Diagnostic>) {
        if let Some(name) = self.settings.text("item_variable_name").filter(|name| GIVEN.contains(name)) {
            let fault = self
                .settings
                .at("item_variable_name", format!("`@{name}` is the run's own: the item could never be read"));
            found.extend(fault.map(|fault| fault.help("name the item for what it is: `invoice`")));
        }
        let collects = self.settings.get("collect_results") == Some(&Value::Bool(true));
        let warn = |fault: Diagnostic| Diagnostic { severity: Severity::Warning, ..fault };
        if collects && self.settings.get("result_key").is_none() && self.step.written.get("outputKey").is_none() {
            let message = "the results are collected, and no `result_key` says under which name they are read";
            let fault = self.settings.at("collect_results", message.to_owned());
            found.extend(fault.map(|fault| warn(fault.help("add `result_key`"))));
        }
        if self.settings.get("result_key").is_some() && !collects && self.settings.get("collect_results").is_some() {
            let message = "nothing is kept under `result_key`: `collect_results` is false";
            let fault = self.settings.at("result_key", message.to_owned());
            found.extend(fault.map(|fault| warn(fault.help("write `\"collect_results\": true`, or take the key out"))));
        }
        let items = self.settings.subject.compiled.steps.known.get(&self.step.property("items_path"));
        let texts_or_lists = JsonTypes::LIST.or(JsonTypes::TEXT);
        if let Some(known) = items.filter(|known| !known.types.meets(texts_or_lists)) {
            let path = self.settings.text("items_path").unwrap_or_default();
            let fault = self.settings.at(
                "items_path",
                format!("`{path}` is {}, and no list whose items could be taken", known.types.called()),
            );
            found.extend(fault.map(|fault| fault.help("name the path of a list")));
        }
    }
}
