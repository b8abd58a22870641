//! The settings of a step that is no registered action, and those of a registered matcher.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::key_flow::follow;
use crate::check::settings::{WrittenSettings, approvals, foreach, foreach_names, is_given, matcher, table};
use crate::check::step_tree::tree;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::program::reference::as_path;
use crate::syntax::quoted;

/// The rule.
pub const RULE: Rule = Rule { code: codes::STEP_SETTING, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject) {
        let judge = StepJudge { settings: WrittenSettings::of_step(&RULE, subject, &step), step: &step };
        match step.kind {
            "matcher" => matcher(&judge.settings, found),
            "custom-table" => table(&judge.settings, found),
            "PbotForm" => judge.form(found),
            "loop" if step.is_foreach() => foreach(&judge.settings, &step, found),
            _ => {}
        }
    }
    let nodes = tree(subject);
    follow(subject, &nodes, &mut |node, keys| {
        if node.step.is_foreach() {
            foreach_names(&WrittenSettings::of_step(&RULE, subject, &node.step), node, keys, found);
        }
    });
    approvals(&RULE, subject, &nodes, found);
    for used in subject.actions() {
        if let Action::Matcher(_) = &*used.action {
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
            let (message, help) = if is_given(bare) {
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
}
