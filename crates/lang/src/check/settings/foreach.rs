//! The settings of a loop of mode `foreach`.

use serde_json::Value;

use super::{WrittenSettings, text_of_list};
use crate::check::key_flow::{KeyState, KeysAt};
use crate::check::step_tree::StepNode;
use crate::check::steps::WrittenStep;
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity};
use crate::policy::redact::Redaction;
use crate::program::reference::{Field, FieldVariable, as_path};
use crate::syntax::quoted;

/// The names that each step has without another step.
const GIVEN: [&str; 2] = ["input", "now"];

/// Whether a name is one that the run gives to its steps.
pub(in crate::check) fn is_given(name: &str) -> bool {
    GIVEN.contains(&name) || name.starts_with("__")
}

/// What a loop can't use, and what has no effect.
pub(in crate::check) fn foreach(
    settings: &WrittenSettings<'_, '_>,
    step: &WrittenStep<'_>,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(name) = settings.text("item_variable_name").filter(|name| is_given(name)) {
        let message = format!("`@{name}` is the run's own: the item could never be read");
        let fault = settings.at("item_variable_name", message);
        found.extend(fault.map(|fault| fault.help("name the item for what it is: `invoice`")));
    }
    let items = settings.known("items_path");
    found.extend(text_of_list(settings, "items_path"));
    if let Some(known) = items.filter(|known| !known.types.meets(JsonTypes::LIST) && !known.may_be_json()) {
        let path = settings.text("items_path").unwrap_or_default();
        let message = format!("`{path}` is {}, and no list whose items could be taken", known.types.called());
        let fault = settings.at("items_path", message);
        let inner = known.list.as_ref().map(|inner| format!("{path}.{inner}"));
        found.extend(fault.map(|fault| match inner {
            Some(inner) => fault.help(format!("its list is `{inner}`")).suggest(quoted(&inner)),
            None => fault.help("name the path of a list"),
        }));
    }
    label(settings, found);
    results(settings, step, found);
    failures(settings, step, found);
}

/// A label that is the same for each item, or that shows what is hidden as a secret.
fn label(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let Some(text) = settings.text("item_label") else { return };
    let Ok(field) = Field::compile(&Value::from(text)) else { return };
    let name = settings.text("item_variable_name").unwrap_or("item");
    let variables = field.variables();
    let first = |used: &FieldVariable| used.variable.path.first().cloned().unwrap_or_default();
    // A path without its `@` is reported as such.
    let is_bare = variables.is_empty() && text.contains('.') && as_path(&format!("@{text}")).is_some();
    if !is_bare && !variables.iter().any(|used| ["item", "__index", name].contains(&first(used).as_str())) {
        let message = format!("{} is the same for each item: it names nothing of the item", quoted(text));
        let help = format!("name a part of the item: \"{{{{{name}.id}}}}\"");
        found.extend(warning(settings.at("item_label", message), &help));
    }
    let redact = Redaction::new(settings.subject.project().map_or(&[][..], |project| project.redact.as_slice()));
    let is_hidden = |member: &&String| redact.hides(member, &Value::from("a"));
    if let Some(hidden) = variables.iter().find_map(|used| used.variable.path.iter().find(is_hidden)) {
        let message = format!("`{hidden}` is hidden as a secret, and a label is shown");
        let fault = settings.at("item_label", message);
        found.extend(fault.map(|fault| fault.help("name another part of the item, or its number: `{{__index}}`")));
    }
}

fn warning(fault: Option<Diagnostic>, help: &str) -> Option<Diagnostic> {
    fault.map(|fault| Diagnostic { severity: Severity::Warning, ..fault.help(help) })
}

/// What is gathered and never read, or read and never gathered.
fn results(settings: &WrittenSettings<'_, '_>, step: &WrittenStep<'_>, found: &mut Vec<Diagnostic>) {
    // A document that is the loop answers with what it gathers.
    let is_document = step.at.is_empty();
    let (collects, key) = (settings.get("collect_results"), settings.text("result_key"));
    if collects == Some(&Value::Bool(true)) {
        if key.is_none() && step.written.get("outputKey").is_none() && !is_document {
            let message = "the results are collected, and no `result_key` says under which name they are read";
            found.extend(warning(settings.at("collect_results", message.to_owned()), "add `result_key`"));
        }
    } else if collects.is_none_or(|collects| collects == false) {
        let help = "write `\"collect_results\": true`, or take the key out";
        let why = if collects.is_some() { "`collect_results` is false" } else { "nothing says `collect_results`" };
        found.extend(warning(settings.at("result_key", format!("nothing is kept under `result_key`: {why}")), help));
        let help = "write `\"collect_results\": true`, or take it out";
        found.extend(warning(settings.at("collect", format!("`collect` gathers nothing: {why}")), help));
    }
    if let Some(key) = key.filter(|key| settings.text("summary_key") == Some(key)) {
        let message = format!("`result_key` is `{key}` too: the counts replace the results");
        let fault = settings.at("summary_key", message);
        found.extend(fault.map(|fault| fault.help("give the counts a key of their own")));
    }
}

/// Failures of items that nobody would learn of, and a bound that has no effect.
fn failures(settings: &WrittenSettings<'_, '_>, step: &WrittenStep<'_>, found: &mut Vec<Diagnostic>) {
    let goes_on = settings.text("failure_strategy") == Some("continue_on_error");
    let is_true = |name: &str| settings.get(name) == Some(&Value::Bool(true));
    let reported = is_true("collect_results")
        || ["summary_key", "max_failures"].iter().any(|name| settings.get(name).is_some())
        || step.written.get("outputKey").is_some();
    if goes_on && !reported && !step.at.is_empty() {
        let message = "nobody would learn which items failed: their failures are noted nowhere";
        let help = "add `summary_key`, or `collect_results` with a `result_key`, or `max_failures`";
        found.extend(warning(settings.at("failure_strategy", message.to_owned()), help));
    }
    if settings.text("failure_strategy").is_none_or(|word| word == "stop_on_error") {
        let message = "`max_failures` has no effect: the loop stops at the first item that fails";
        let help = "write `\"failure_strategy\": \"continue_on_error\"`, or take it out";
        found.extend(warning(settings.at("max_failures", message.to_owned()), help));
    }
}

/// What depends on the other steps: the name of the item, and what is gathered of each.
pub(in crate::check) fn foreach_names<'a>(
    settings: &WrittenSettings<'_, 'a>,
    node: &StepNode<'a>,
    keys: &KeysAt<'a>,
    found: &mut Vec<Diagnostic>,
) {
    if let Some(name) = settings.text("item_variable_name") {
        let what = match keys.get(name) {
            Some(KeyState::Item) => Some("the item of the loop around this one"),
            Some(KeyState::Sure | KeyState::Maybe { .. }) => Some("what a step before wrote"),
            _ => None,
        };
        if let Some(what) = what {
            let message = format!("`@{name}` is {what}: it could not be read in this loop");
            let fault = settings.at("item_variable_name", message);
            found.extend(fault.map(|fault| fault.help("give the item another name")));
        }
    }
    if settings.get("collect_results") == Some(&Value::Bool(true))
        && let Some(written) = settings.get("collect")
        && let Ok(field) = Field::compile(written)
        && let variables = field.variables()
        && let Some(key) = variables.first().and_then(|used| used.variable.path.first())
        && !variables.iter().any(|used| used.variable.path.first().is_some_and(|key| is_of_item(settings, node, key)))
    {
        let message = match written {
            Value::String(path) => {
                format!("`{path}` is the same for each item: no step of the loop writes `{key}`")
            }
            _ => "what is gathered is the same for each item: no step of the loop writes any of it".to_owned(),
        };
        let fault = settings.at("collect", message);
        let help = "name a key that a step of `actions_to_execute` writes, or take it out: the default is what the last step gives";
        found.extend(fault.map(|fault| fault.help(help)));
    }
}

/// Whether a key may have another value for each item.
fn is_of_item<'a>(settings: &WrittenSettings<'_, 'a>, node: &StepNode<'a>, key: &str) -> bool {
    if ["item", "__index"].contains(&key) || settings.text("item_variable_name") == Some(key) {
        return true;
    }
    let mut is_written = false;
    node.each_inside(&mut |inner| {
        is_written |= inner.step.writes(settings.subject).iter().any(|written| written == key);
    });
    is_written
}
