//! The settings of a step that is no registered action, and those of a registered matcher.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::check::key_flow::follow;
use crate::check::settings::{
    WrittenSettings, approvals, called_matcher, foreach, foreach_names, is_given, matcher, table,
};
use crate::check::step_tree::tree;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, Subject, Used};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::language::Action;
use crate::language::wait::{WAIT, WORDS};
use crate::program::reference::{as_any_path, as_path};
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::STEP_SETTING, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject) {
        idle(subject, &step, found);
        let judge = StepJudge { settings: WrittenSettings::of_step(&RULE, subject, &step), step: &step };
        match step.kind {
            "matcher" => matcher(&judge.settings, found),
            "custom-table" => table(&judge.settings, found),
            "PbotForm" => judge.form(found),
            "PbotApproval" => {
                judge.question(found);
                judge.reminders(None, found);
            }
            "loop" if step.is_foreach() => foreach(&judge.settings, &step, found),
            WAIT if subject.action(WAIT).is_none() => judge.wait(found),
            name => {
                let is_matcher = |used: &&Used<'_>| matches!(&*used.action, Action::Matcher(_));
                if let Some(used) = subject.action(name).filter(is_matcher).filter(|_| !step.is_named()) {
                    called_matcher(&WrittenSettings::of_call(&RULE, subject, &step, used), found);
                }
            }
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

/// Types of steps that make no call whose time and retries a step could set.
const UNCALLED: [&str; 5] = ["loop", "matcher", "custom-table", "PbotApproval", "PbotForm"];

/// Fields of a step that have no effect on it.
fn idle(subject: &Subject<'_>, step: &WrittenStep<'_>, found: &mut Vec<Diagnostic>) {
    let mut report = |field: &str, message: String, help: &str| {
        let cursor = subject.at(&format!("{}/{field}", step.at)).key();
        let fault = cursor.report(&RULE, message).help(help);
        found.push(Diagnostic { severity: Severity::Warning, ..fault });
    };
    let is_written = |field: &str| step.written.get(field).is_some_and(|value| !value.is_null());
    // Under one of its other names it is reported as such.
    let is_named = |fault: &Diagnostic| {
        let name = fault.path.strip_prefix(step.at).and_then(|rest| rest.strip_prefix('/'));
        fault.code == codes::UNKNOWN_FIELD && matches!(name, Some("condition" | "if" | "when"))
    };
    let has_filter = is_written("filter") || subject.document().faults.iter().any(is_named);
    if is_written("onFalse") && !has_filter {
        let message = "the step has no `filter`: it always runs, and `onFalse` never does".to_owned();
        report("onFalse", message, "give the step a `filter`, or write the other step behind it in the list");
    }
    for field in ["timeout_ms", "retry"] {
        let is_wait = WORDS.contains(&step.kind) && subject.action(step.kind).is_none();
        let is_uncalled = is_wait || UNCALLED.contains(&step.kind) && !step.is_named();
        if is_uncalled && is_written(field) {
            let message = format!("`{field}` has no effect: a step of type `{}` calls no action", step.kind);
            report(
                field,
                message,
                match (step.kind, field) {
                    ("loop", _) => "a loop has its own among its `properties`",
                    ("PbotForm", "timeout_ms") => "how long a form is open says its `ttl_seconds`",
                    _ => "take it out",
                },
            );
        }
    }
}

struct StepJudge<'j, 'a> {
    settings: WrittenSettings<'j, 'a>,
    step: &'j WrittenStep<'a>,
}

impl StepJudge<'_, '_> {
    /// A question that is a path: a human would read the path.
    fn question(&self, found: &mut Vec<Diagnostic>) {
        let text = self.settings.text("comment").filter(|text| as_any_path(text).is_some());
        let Some(text) = text.filter(|text| text.starts_with('@')) else { return };
        let path = text.trim_matches(['@', '?']);
        let meant = match text.ends_with('?') {
            true => format!("{{{{#if {path}}}}}{{{{{path}}}}}{{{{/if}}}}"),
            false => format!("{{{{{path}}}}}"),
        };
        let fault =
            self.settings.at("comment", format!("`comment` is a text: a human would read `{text}` as it stands"));
        let warn = |fault: Diagnostic| Diagnostic { severity: Severity::Warning, ..fault };
        found.extend(
            fault.map(|fault| {
                warn(fault.help(format!("a value in a text is written `{meant}`")).suggest(quoted(&meant)))
            }),
        );
    }

    /// A time that is no text.
    fn wait(&self, found: &mut Vec<Diagnostic>) {
        for (name, help) in [
            ("for", "the text says the unit, too: \"{{input.days}}d\""),
            ("until", "a date, or a time with its offset, is a text: `2026-12-31`, `2026-12-31T09:30:00Z`"),
        ] {
            let Some(known) = self.settings.known(name).filter(|known| !known.types.meets(JsonTypes::TEXT)) else {
                continue;
            };
            let path = self.settings.text(name).unwrap_or_default();
            let fault = self.settings.at(name, format!("`{name}` is a text, and `{path}` is {}", known.types.called()));
            found.extend(fault.map(|fault| fault.help(help)));
        }
    }

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
        self.reminders(open, found);
    }

    /// Judges the times of reminders; `open`: how long the form is open, in seconds.
    fn reminders(&self, open: Option<f64>, found: &mut Vec<Diagnostic>) {
        const MAX_REMINDERS: usize = 20;
        const NAME: &str = "reminder_intervals";
        let Some(times) = self.settings.list(NAME) else { return };
        let times: Vec<f64> = times.iter().filter_map(Value::as_f64).collect();
        let mut report = |message: String, help: &str, severity: Severity| {
            let fault = self.settings.at(NAME, message).map(|fault| fault.help(help));
            found.extend(fault.map(|fault| Diagnostic { severity, ..fault }));
        };
        let help = "each is in seconds from the question: [3600, 86400] reminds after an hour and after a day";
        if times.iter().any(|seconds| *seconds <= 0.0) {
            report("a reminder comes no later than the question".to_owned(), help, Severity::Error);
        }
        if times.len() > MAX_REMINDERS {
            report(
                format!("{} reminders of one question are more than {MAX_REMINDERS}", times.len()),
                help,
                Severity::Error,
            );
        }
        if times.iter().zip(times.iter().skip(1)).any(|(one, next)| next <= one) {
            let message = "a reminder comes no later than the one before it".to_owned();
            report(message, help, Severity::Warning);
        }
        if open.is_some_and(|open| open > 0.0 && times.iter().any(|at| *at >= open)) {
            let message = "a reminder comes when the form has expired".to_owned();
            report(message, "both are in seconds from the making of the form", Severity::Warning);
        }
    }
}
