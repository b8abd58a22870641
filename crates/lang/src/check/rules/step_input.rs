//! The input of a step, held against what its action takes.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::query_input;
use crate::check::steps::{WrittenStep, steps};
use crate::check::{Rule, SentText, Subject};
use crate::compile::steps::{DeclaredText, JsonTypes, KnownValue, named_document};
use crate::compile::tool::StepInput;
use crate::diagnostic::{Diagnostic, Severity, codes};
use crate::program::null_member;
use crate::program::reference::{as_any_path, as_optional_path, as_path};
use crate::program::schema::{Schema, SchemaFault};
use crate::program::template::is_template;
use crate::program::text_input::{read_part, read_texts};
use crate::syntax::{APPROVAL_OF_STEP, quoted, token};

pub const RULE: Rule = Rule { code: codes::STEP_INPUT, check };

/// The most names of a step that are reported, and the most candidates for the nearest name.
const MAX_STRANGE: usize = 50;
const MAX_COMPARED_NAMES: usize = 1_000;
/// Keywords by which an input is judged by several of its values: one of them alone is not judged by these.
const ABOUT_SEVERAL: [&str; 6] = ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"];
/// How often nulls are left out of a value.
const MAX_ROUNDS: u32 = 32;
/// Names that the platform takes beside those of an action.
const PLATFORM: [&str; 1] = ["__oauth_account__"];

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for step in steps(subject) {
        if let Some((input, called)) = input_of(subject, &step) {
            names(subject, &step, input, &called, found);
            if let Some(used) = subject.action(step.kind) {
                query_input::check(&RULE, subject, &step, used, found);
            }
            for (name, value) in step.properties {
                left_out(subject, &step, input, name, found);
                if let Some(part) = input.schema.source().get("properties").and_then(|properties| properties.get(name))
                {
                    let around = format!("{}/properties", step.at);
                    let provided = subject.compiled.steps.provided.get(step.kind);
                    let help = match provided.map(|provided| provided.is_served) {
                        _ if step.is_named() => "the `input` of the document says what it takes",
                        Some(true) => "`loopctl mcp list` shows what the tool takes, as it was pinned",
                        Some(false) => "the type of the tool's input, in the program, says what it takes",
                        None => "the action's `parameters` say what it takes",
                    };
                    let taken = &input.schema;
                    let given = GivenValue { around: &around, called: &called, name, value, part, taken, help };
                    of_value(subject, &RULE, &given, found);
                }
            }
        }
    }
}

/// What a step takes, and what takes it: an action, or the loop or workflow of that name.
pub(super) fn input_of<'s>(subject: &Subject<'s>, step: &WrittenStep<'_>) -> Option<(&'s StepInput, String)> {
    let steps = &subject.compiled.steps;
    let input = match steps.named.get(step.at) {
        Some(named) => named.input.as_deref()?,
        None => steps.inputs.get(step.kind)?.as_deref()?,
    };
    Some((input, called(subject, step)))
}

fn called(subject: &Subject<'_>, step: &WrittenStep<'_>) -> String {
    match named_document(step.written) {
        Some((kind, name)) => format!("the {kind} `{name}`"),
        None if subject.compiled.steps.provided.contains_key(step.kind) => format!("the tool `{}`", step.kind),
        None => format!("the action `{}`", step.kind),
    }
}

/// The names that are missing, and those that the action does not take. `called`: what takes them, in a sentence.
fn names(subject: &Subject<'_>, step: &WrittenStep<'_>, input: &StepInput, called: &str, found: &mut Vec<Diagnostic>) {
    let known = input.schema.properties();
    let mut missing: Vec<&str> = input.schema.required();
    missing.retain(|name| !step.properties.contains_key(*name));
    let names: HashSet<&str> = known.iter().copied().collect();
    // A document whose `input` lists no names may read any.
    let lists_none = named_document(step.written).is_some() && input.schema.source().get("properties").is_none();
    let strange = step.properties.keys().filter(|name| !names.contains(name.as_str()));
    for name in strange.filter(|name| !PLATFORM.contains(&name.as_str())).take(MAX_STRANGE) {
        let free = known.iter().copied().filter(|known| !step.properties.contains_key(*known));
        let near = subject.compiled.effort.nearest(name, free.take(MAX_COMPARED_NAMES));
        missing.retain(|missing| Some(*missing) != near);
        let cursor = subject.at(&step.property(name)).key();
        let refused = input.schema.is_closed();
        if near.is_none() && !refused && (input.sends_all || lists_none || input.schema.is_open()) {
            let is_meant = step.properties.get(name).is_some_and(|value| is_meant_for_step(name, value));
            if let Some(help) = field_of_step(name).filter(|_| is_meant) {
                let without = if name == "requires_approval" { "nobody is asked" } else { "the step does not heed it" };
                let message = format!("`{name}` is sent to {called} as an input here, and {without}");
                let fault = cursor.report(&RULE, message).help(help);
                found.push(Diagnostic { severity: Severity::Warning, ..fault });
            }
            continue;
        }
        let message = match refused || near.is_some() {
            true => format!("{called} has no input `{name}`"),
            false => format!("{called} never uses `{name}`"),
        };
        let certain = refused || near.is_some_and(|near| input.schema.required().contains(&near));
        let severity = if certain { Severity::Error } else { Severity::Warning };
        let fault = Diagnostic { severity, ..cursor.report(&RULE, message) };
        found.push(match near {
            None if let Some(other) = named_otherwise(subject, step, name) => fault.help(other),
            Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
            None if let Some(help) = field_of_step(name) => fault.help(help),
            None if known.is_empty() => fault.help("it takes no input: leave `properties` empty"),
            None => fault.help(format!("it takes {}", listed(&known))),
        });
    }
    if let Some(first) = missing.first().filter(|_| !step.is_misread(subject)) {
        let cursor = subject.at(&format!("{}/properties", step.at)).key();
        let message = match missing.len() {
            1 => format!("{called} needs the input `{first}`, which is not given"),
            _ => format!("{called} needs the inputs {}, which are not given", listed(&missing)),
        };
        let help = format!("give each a value: {{\"{first}\": \"@input.{first}\"}}, or one that is written out");
        found.push(cursor.report(&RULE, message).help(help));
    }
}

/// How a text of the action takes an input that it names in the syntax of something else.
fn named_otherwise(subject: &Subject<'_>, step: &WrittenStep<'_>, name: &str) -> Option<String> {
    let used = subject.action(step.kind)?;
    let at = subject.actions().iter().position(|other| std::ptr::eq(other, used))?;
    let names = |sent: &&SentText<'_>| {
        let is_path = sent.text.strip_prefix('@').is_some_and(|path| path.trim_end_matches('?') == name);
        is_path || sent.placeholders().iter().any(|placeholder| placeholder.name == name)
    };
    let sent = subject.texts_of_action(at).iter().find(names)?;
    Some(format!("{} takes no value from it: write `{{{{{name}}}}}` there", quoted(sent.text)))
}

/// Whether an input that nothing names is a field of the step by its name and its value: an action may be called to filter.
fn is_meant_for_step(name: &str, value: &Value) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| value.get(name).is_some());
    match name {
        "requires_approval" | "outputKey" | "timeout_ms" => true,
        "filter" => has(&["condition"]),
        "onFalse" => has(&["type"]),
        "retry" => has(&["attempts", "base_ms", "max_ms"]),
        _ => false,
    }
}

/// Where a field of the step belongs that is written among its inputs.
fn field_of_step(name: &str) -> Option<&'static str> {
    Some(match name {
        "requires_approval" | "approval" => APPROVAL_OF_STEP,
        "filter" | "condition" | "if" | "when" => {
            "a step runs only when its `filter` holds, which is written beside `properties` and not in it: \"filter\": \
             {\"condition\": {...}}"
        }
        "onFalse" | "else" => "the step that runs instead is `onFalse`, written beside `properties` and not in it",
        "outputKey" | "output_key" | "save_as" | "result_key" => {
            "the key of what a step gives is `outputKey`, written beside `properties` and not in it"
        }
        "timeout_ms" | "timeout" => "the time of a call is `timeout_ms`, written beside `properties` and not in it",
        "retry" | "retries" => "the retries of a call are `retry`, written beside `properties` and not in it",
        _ => return None,
    })
}

/// A value that the action needs, and that may be left out.
fn left_out(subject: &Subject<'_>, step: &WrittenStep<'_>, input: &StepInput, name: &str, found: &mut Vec<Diagnostic>) {
    let text = step.text(name).filter(|text| as_optional_path(text).is_some());
    let Some(text) = text.filter(|_| input.schema.required().contains(&name)) else { return };
    let message = format!("{} needs the input `{name}`, and `{text}` may leave it out", called(subject, step));
    let fault = subject.at(&step.property(name)).report(&RULE, message);
    let fault = Diagnostic { severity: Severity::Warning, ..fault };
    found.push(
        fault.help(
            match (step.is_named(), subject.compiled.steps.provided.contains_key(step.kind)) {
                (true, _) => {
                    "without the value the step fails; take `{name}` out of the `required` of the document's `input`"
                }
                (_, true) => {
                    "without the value the step fails; give it a `filter`, so that it runs with the value only"
                }
                _ => {
                    "without the value the step fails; take `{name}` out of the `required` of the action's `parameters`"
                }
            }
            .replace("{name}", name),
        ),
    );
}

/// A value that an input is given, and the schema that it must match.
pub(super) struct GivenValue<'g> {
    /// The JSON pointer of the values of the input.
    pub around: &'g str,
    /// What takes the input, in a sentence.
    pub called: &'g str,
    pub name: &'g str,
    pub value: &'g Value,
    pub part: &'g Value,
    /// All that is taken.
    pub taken: &'g Schema,
    /// Where it says what is taken.
    pub help: &'static str,
}

pub(super) fn of_value(subject: &Subject<'_>, rule: &Rule, given: &GivenValue<'_>, found: &mut Vec<Diagnostic>) {
    let GivenValue { around, called, name, .. } = given;
    let at = format!("{around}/{}", token(name));
    if subject.is_faulty(&at) {
        return;
    }
    let path = given.value.as_str().and_then(as_any_path);
    if path.is_none() && is_literal(given.value) {
        // It is left out.
        if given.value.is_null() && !given.taken.required().contains(name) {
            return;
        }
        let part;
        let schema = if ABOUT_SEVERAL.iter().any(|keyword| given.taken.source().get(keyword).is_some()) {
            if refers(given.part) {
                return;
            }
            let Ok(alone) = Schema::compile(json!({ "properties": { *name: given.part } })) else { return };
            part = alone;
            &part
        } else {
            given.taken
        };
        let mut value = Value::Object(std::iter::once(((*name).to_owned(), given.value.clone())).collect());
        if let Err(unread) = read_texts(schema.source(), &mut value) {
            let hidden = subject.project().map_or(&[][..], |project| project.redact.as_slice());
            let fault = subject.at(&format!("{around}{}", unread.path));
            let fault = fault.report(rule, format!("the input of {called}: {}", unread.sentence(hidden)));
            found.push(
                fault.help("a text is read where it is exactly the JSON of what is wanted: no blanks, no separators"),
            );
            return;
        }
        let own = format!("/{}", token(name));
        for fault in faults_below(schema, value, &own) {
            let fault_at = format!("{at}{}", fault.path.strip_prefix(&own).unwrap_or_default());
            let message = format!("the input of {called}: {}", fault.message);
            found.push(subject.at(&fault_at).report(rule, message).help(given.help));
        }
        return;
    }
    let Some(wanted) = KnownValue::of_schema(given.part, &[]) else { return };
    let known = subject.compiled.steps.known.get(&at).map(|known| &**known).filter(|_| path.is_some());
    let (given_types, what) = match (given.value.as_str(), path) {
        (Some(text), Some(_)) => match known {
            Some(known) => (known.types, format!("`{text}` is {}", known.types.called())),
            None => return,
        },
        (Some(_), None) => (JsonTypes::TEXT, "a template gives a text".to_owned()),
        (None, _) => {
            let types = JsonTypes::of(given.value);
            (types, format!("{} is written here", types.called()))
        }
    };
    if given_types.meets(wanted.types) || (given.value.is_string() && may_be_read(given, known)) {
        return;
    }
    let message = format!("`{name}` of {called} is {}, and {what}", wanted.types.called());
    let fault = subject.at(&at).report(rule, message);
    let inner = given.value.as_str().and_then(|text| text.strip_prefix("{{")?.strip_suffix("}}"));
    let meant = inner.map(|inner| format!("@{}", inner.trim())).filter(|path| as_path(path).is_some());
    found.push(match meant {
        Some(meant) => fault.help(format!("a path keeps the type of its value: `{meant}`")).suggest(quoted(&meant)),
        None => fault.help("give a value of that type"),
    });
}

/// What is wrong at a pointer of a value and below it: nothing else is said of the rest, which is not given here. A null of a member
/// that may be missing is left out, as in a run.
fn faults_below(schema: &Schema, mut value: Value, at: &str) -> Vec<SchemaFault> {
    for _ in 0..MAX_ROUNDS {
        let mut faults = schema.faults(&value);
        faults.retain(|fault| fault.path.strip_prefix(at).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        let mut is_changed = false;
        for fault in faults.iter().filter(|fault| fault.path != at) {
            let is_null = value.pointer(&fault.path).is_some_and(Value::is_null);
            is_changed |= is_null && null_member::left_out(&mut value, &fault.path);
        }
        if !is_changed {
            return faults;
        }
    }
    Vec::new()
}

/// Whether a text may be read as what its schema wants; `known`: what is known of it.
fn may_be_read(given: &GivenValue<'_>, known: Option<&KnownValue>) -> bool {
    let reads = |text: &str| {
        let mut value = Value::from(text);
        read_part(given.taken.source(), given.part, &mut value).is_ok() && !value.is_string()
    };
    // The schema reads some text.
    if !["0", "true"].into_iter().any(reads) {
        return false;
    }
    match known {
        None => true,
        Some(known) if !known.types.meets(JsonTypes::TEXT) => false,
        Some(KnownValue { words: Some(words), .. }) => words.iter().filter_map(Value::as_str).any(reads),
        Some(known) => !matches!(known.text, DeclaredText::Formatted(_)),
    }
}

/// Whether a schema refers to another part of its document.
fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, member)| key == "$ref" || refers(member)),
        Value::Array(items) => items.iter().any(refers),
        _ => false,
    }
}

/// Whether a value is written out: no text in it is a path or a template.
fn is_literal(value: &Value) -> bool {
    match value {
        Value::String(text) => !is_template(text) && !text.starts_with('@') && !text.starts_with("doc:"),
        Value::Array(items) => items.iter().all(is_literal),
        Value::Object(members) => members.values().all(is_literal),
        _ => true,
    }
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names.iter().take(12).map(|name| format!("`{name}`")).collect();
    shown.join(", ")
}
