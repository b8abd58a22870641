//! What a webhook reads of a delivery, and the input that it makes of it.

use serde_json::{Map, Value};

use super::bad_webhook::{AT, written};
use super::step_input::{GivenValue, of_value};
use crate::check::{Rule, Subject};
use crate::diagnostic::{Diagnostic, Severity, codes, nearest};
use crate::program::Program;
use crate::program::reference::{as_any_path, as_optional_path, each_text};
use crate::program::schema::Schema;
use crate::program::template::{Template, ValueEscape, is_template};
use crate::program::webhook::CREDENTIAL_HEADERS;
use crate::syntax::{quoted, token};

pub const RULE: Rule = Rule { code: codes::WEBHOOK_INPUT, check };

/// The most names of an input that are reported.
const MAX_STRANGE: usize = 50;
/// What takes the input, in a sentence.
const CALLED: &str = "the workflow";
const HELP: &str = "the `input` of the workflow says what it takes";

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(webhook) = written(subject) else { return };
    for part in ["input", "when"] {
        let Some(value) = webhook.get(part) else { continue };
        each_text(value, &mut format!("{AT}/{part}"), &mut |at, text| found.extend(of_text(subject, at, text)));
    }
    let none = Map::new();
    let given = match webhook.get("input") {
        Some(Value::Object(given)) => given,
        Some(_) => return,
        None => &none,
    };
    match subject.input_schema() {
        Some(source) => {
            let Ok(schema) = Schema::compile(source.clone()) else { return };
            missing(subject, given, &schema.required(), "the workflow's `input` needs", found);
            strange(subject, given, &schema, found);
            for (name, value) in given {
                left_out(subject, name, value, &schema, found);
                if let Some(part) = source.get("properties").and_then(|properties| properties.get(name)) {
                    let around = format!("{AT}/input");
                    let taken = &schema;
                    let given = GivenValue { around: &around, called: CALLED, name, value, part, taken, help: HELP };
                    of_value(subject, &RULE, &given, found);
                }
            }
        }
        None => {
            let flow = subject.program().and_then(Program::as_flow);
            let required = flow.map(|flow| flow.inputs.required()).unwrap_or_default();
            missing(subject, given, &required, "the steps of the workflow read", found);
        }
    }
}

/// A text that reads what a delivery has not, or has a secret in it: what is in the input is kept.
fn of_text(subject: &Subject<'_>, at: &str, text: &str) -> Option<Diagnostic> {
    let cursor = subject.at(at);
    let template = is_template(text).then(|| Template::compile(text, ValueEscape::Plain).ok()).flatten();
    if let Some(key) = template.as_ref().and_then(|template| template.secrets().first()) {
        let message =
            format!("the secret `orgconfig:{key}` would be in the input of the run, which is kept in the journal");
        return Some(
            cursor
                .report(&RULE, message)
                .help("take it out, and use the secret in a header, an address or a body of an action"),
        );
    }
    let is_key = at.ends_with("/hasKey");
    let whole = as_any_path(text).or_else(|| as_any_path(&format!("@{text}")).filter(|_| is_key));
    let in_template = template.iter().flat_map(Template::variables).map(|variable| variable.path.clone());
    let paths: Vec<Vec<String>> = whole.into_iter().chain(in_template).collect();
    if let Some(fault) = paths.iter().find_map(|path| of_header(path)) {
        let (message, help) = fault;
        return Some(cursor.report(&RULE, message).help(help));
    }
    let mut names = paths.into_iter().filter_map(|path| path.into_iter().next());
    let name = names.find(|name| !OF_DELIVERY.contains(&name.as_str()))?;
    let message = match OF_RUN.contains(&name.as_str()) {
        true => format!("`{name}` is of a run, and there is none before the webhook starts it"),
        false => format!("a delivery has no `{name}`"),
    };
    let fault = cursor.report(&RULE, message);
    Some(match nearest(&name, OF_DELIVERY) {
        Some(near) => fault.help(format!("the nearest name is `{near}`")),
        None => fault.help("a webhook reads the delivery: `@body.id`, `@headers.x-event`, and `@now`"),
    })
}

/// What is wrong with the name of a header: the message and the help.
fn of_header(path: &[String]) -> Option<(String, String)> {
    let [first, name, ..] = path else { return None };
    if first != "headers" {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if CREDENTIAL_HEADERS.contains(&lower.as_str()) {
        let message = format!("no workflow reads the header `{name}` of a delivery");
        return Some((message, "the signature is verified before anything is read: take it out".to_owned()));
    }
    let message = format!("a delivery has no header `{name}`: their names are in lower case");
    (lower != *name).then(|| (message, format!("write `headers.{lower}`")))
}

/// What a webhook reads.
pub(super) const OF_DELIVERY: [&str; 3] = ["body", "headers", "now"];
/// The names of a run that a delivery has not.
const OF_RUN: [&str; 3] = ["input", "__run_id", "__step"];

/// Names that an input needs and that no delivery gives it.
fn missing(
    subject: &Subject<'_>,
    given: &Map<String, Value>,
    required: &[&str],
    who: &str,
    found: &mut Vec<Diagnostic>,
) {
    let at = format!("{AT}/input");
    let absent: Vec<&str> = required.iter().copied().filter(|name| !given.contains_key(*name)).collect();
    let Some(first) = absent.first().filter(|_| !subject.is_faulty(&at) && subject.is_whole()) else { return };
    let cursor = if subject.document().tree.at(&at).is_some() { subject.at(&at) } else { subject.at(AT) };
    let names: Vec<String> = absent.iter().take(MAX_STRANGE).map(|name| format!("`{name}`")).collect();
    let message = format!("every run of the webhook would be refused: {who} {}, which is not given", names.join(", "));
    let message = if who.starts_with("the steps") { message.replace("be refused", "fail") } else { message };
    let help = format!("say where in the delivery it is: \"input\": {{{}: \"@body.{first}\"}}", quoted(first));
    found.push(cursor.key().report(&RULE, message).help(help));
}

/// Names that the `input` of the workflow does not have.
fn strange(subject: &Subject<'_>, given: &Map<String, Value>, schema: &Schema, found: &mut Vec<Diagnostic>) {
    let known = schema.properties();
    let is_named = !known.is_empty() && !schema.is_open();
    let names = given.keys().filter(|name| (is_named || schema.is_closed()) && !known.contains(&name.as_str()));
    for name in names.take(MAX_STRANGE) {
        let cursor = subject.at(&format!("{AT}/input/{}", token(name))).key();
        let free = known.iter().copied().filter(|known| !given.contains_key(*known));
        let near = nearest(name, free);
        let severity = if schema.is_closed() || near.is_some() { Severity::Error } else { Severity::Warning };
        let fault = cursor.report(&RULE, format!("the workflow's `input` has no `{name}`"));
        let fault = Diagnostic { severity, ..fault };
        found.push(match near {
            Some(near) => fault.help(format!("the nearest one is `{near}`")).suggest(quoted(near)),
            None => fault.help("take it out, or describe it in the `input` of the workflow"),
        });
    }
}

/// A value that the workflow needs, and that a delivery may lack.
fn left_out(subject: &Subject<'_>, name: &str, value: &Value, schema: &Schema, found: &mut Vec<Diagnostic>) {
    let text = value.as_str().filter(|text| as_optional_path(text).is_some());
    let Some(text) = text.filter(|_| schema.required().contains(&name)) else { return };
    let message = format!("the workflow needs the input `{name}`, and `{text}` may leave it out");
    let fault = subject.at(&format!("{AT}/input/{}", token(name))).report(&RULE, message);
    let help = format!(
        "without the value the delivery is refused; take `{name}` out of the `required` of the workflow's `input`"
    );
    found.push(Diagnostic { severity: Severity::Warning, ..fault }.help(help));
}
