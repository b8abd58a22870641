//! An operand of a condition that its operator can't work with: the step would fail, or the text itself be compared.

use serde_json::json;

use super::bad_order;
use super::bad_webhook::AT as WEBHOOK;
use super::webhook_input::OF_DELIVERY;

use crate::check::condition::{Operand, OperandForm, WrittenCondition, WrittenOperator, each_operator};
use crate::check::{Rule, Subject};
use crate::compile::steps::{DeclaredText, JsonTypes};
use crate::diagnostic::{Diagnostic, Severity, codes, nearest};
use crate::program::condition::{is_moment, moment_fault, pattern_help, pattern_of_ending, slashed};
use crate::program::fault::LocalFault;
use crate::program::file_value::PREFIX;
use crate::program::reference::as_any_path;
use crate::program::schema::Schema;
use crate::program::template::{Template, ValueEscape};
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::BAD_OPERAND, check };

/// What an operator needs of an operand.
struct Need {
    types: JsonTypes,
    /// In a sentence.
    called: &'static str,
}

const LIST: Need = Need { types: JsonTypes::LIST, called: "looks into a list, its second operand" };
const TEXT: Need = Need { types: JsonTypes::TEXT, called: "looks into a text, its first operand" };
const PATTERN: Need = Need { types: JsonTypes::TEXT, called: "takes a regular expression as its second operand" };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    super::unsure_operand::check(subject, found);
    super::idle_operand::check(&RULE, subject, found);
    each_operator(subject, &mut |whole, condition| {
        let before = found.len();
        let literals = condition.operands.iter().filter(|operand| operand.form == OperandForm::Literal).count();
        for operand in &condition.operands {
            let lone = literals == condition.operands.len();
            let moment = || bad_moment(whole, condition, operand);
            let braces = || braces(subject, whole, condition, operand);
            let fault = bare_path(whole, operand, lone).or_else(|| bad_length(whole, operand));
            found.extend(fault.or_else(moment).or_else(braces));
            braced_entries(subject, whole, operand, found);
        }
        // What is written in a wrong way has another type than it is meant to have.
        if found.len() == before {
            wrong_types(whole, condition, found);
        }
        // The compiler reports what it can't give a meaning before a call.
        if whole.is_of_call() {
            let mut at = 0;
            found.retain(|fault| {
                at += 1;
                at <= before || !subject.is_reported(&fault.place)
            });
        }
    });
}

/// A path without its `@`. A word alone is one only where nothing else in the comparison is a path.
fn bare_path(whole: &WrittenCondition<'_>, operand: &Operand<'_>, lone: bool) -> Option<Diagnostic> {
    let (at, inner) = match operand.written.get("length") {
        Some(inner) if operand.form == OperandForm::Length => (format!("{}/length", operand.at), inner),
        _ => (operand.at.clone(), operand.written),
    };
    let text = inner.as_str()?;
    let meant = whole.bare_path(&at, text)?;
    if operand.form == OperandForm::Literal && !meant.contains('.') && !lone && !text.starts_with(['$', '{']) {
        return None;
    }
    let message = match operand.form {
        OperandForm::Template => return Some(path_in_braces(whole, &at, text, &meant)),
        _ => format!("{} is a text here, and not the value that it names", quoted(text)),
    };
    let fault = whole.cursor(&at).report(&RULE, message);
    let how = if text.starts_with('@') { "an index stands between dots" } else { "a path begins with `@`" };
    Some(fault.help(format!("{how}: `{meant}`")).suggest(quoted(&meant)))
}

/// A text that is the path of a value in braces.
fn path_in_braces(whole: &WrittenCondition<'_>, at: &str, text: &str, meant: &str) -> Diagnostic {
    let message = format!("{} is no operand: a condition takes values by their `@path`", quoted(text));
    let how = if meant.starts_with('@') { "a path begins with `@`" } else { "a document has no braces here" };
    whole.cursor(at).report(&RULE, message).help(format!("{how}: `{meant}`")).suggest(quoted(meant))
}

/// A text with the name of a value in braces, which nothing renders in a condition.
fn text_with_braces(subject: &Subject<'_>, whole: &WrittenCondition<'_>, at: &str, text: &str) -> Option<Diagnostic> {
    let template = Template::compile(text, ValueEscape::Plain).ok()?;
    let cursor = whole.cursor(at);
    let path = &template.variables().first()?.path;
    // What a delivery does not have is reported as such.
    let is_strange =
        at.starts_with(WEBHOOK) && !path.first().is_some_and(|first| OF_DELIVERY.contains(&first.as_str()));
    if is_strange || subject.has_error_in(&cursor.place()) {
        return None;
    }
    let path = path.join(".");
    let message = format!("a condition renders no template: {} is compared as it is written", quoted(text));
    let fault = Diagnostic { severity: Severity::Warning, ..cursor.report(&RULE, message) };
    let named = if path.starts_with(PREFIX) { path } else { format!("@{path}") };
    Some(fault.help(format!("compare the value itself: `{named}`")))
}

fn braces(
    subject: &Subject<'_>,
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    operand: &Operand<'_>,
) -> Option<Diagnostic> {
    // A pattern may look for braces. The compiler reports those of a condition on a call.
    let is_pattern = condition.operator == "matches" && operand.at.ends_with("/1");
    if operand.form != OperandForm::Template || is_pattern || whole.is_of_call() {
        return None;
    }
    text_with_braces(subject, whole, &operand.at, operand.written.as_str()?)
}

/// The same among the entries of a list that is written out.
fn braced_entries(
    subject: &Subject<'_>,
    whole: &WrittenCondition<'_>,
    operand: &Operand<'_>,
    found: &mut Vec<Diagnostic>,
) {
    for (index, entry) in operand.written.as_array().into_iter().flatten().enumerate() {
        let Some(text) = entry.as_str().filter(|text| text.contains("{{") && !whole.is_of_call()) else { continue };
        let at = format!("{}/{index}", operand.at);
        found.extend(match whole.bare_path(&at, text) {
            Some(meant) => Some(path_in_braces(whole, &at, text, &meant)),
            None => text_with_braces(subject, whole, &at, text),
        });
    }
}

/// A length that is misspelt, or of what has none.
fn bad_length(whole: &WrittenCondition<'_>, operand: &Operand<'_>) -> Option<Diagnostic> {
    // The compiler reports a moment that it can't compute.
    let members = operand.written.as_object().filter(|members| members.len() == 1 && !is_moment(operand.written))?;
    let (name, inner) = members.iter().next()?;
    let at = format!("{}/{name}", operand.at);
    if name != "length" {
        let path = inner.as_str().filter(|text| as_any_path(text).is_some())?;
        let counts = nearest(name, ["length"]).is_some() || ["len", "size", "count"].contains(&name.as_str());
        let fault = whole.cursor(&operand.at).report(&RULE, format!("`{name}` is no operand of a condition"));
        let meant = if counts { json!({ "length": path }) } else { json!(path) };
        let fault = fault.help(format!("an operand is a value, an `@path` or {{\"length\": \"@path\"}}: {meant}"));
        return Some(fault.suggest(meant.to_string()));
    }
    let sized = JsonTypes::LIST.or(JsonTypes::TEXT).or(JsonTypes::OBJECT);
    let known = inner.as_str().and_then(|path| whole.known(&at, path));
    let message = match inner.as_str().filter(|text| as_any_path(text).is_some()) {
        None => format!("`length` takes an `@path`; {inner} was given"),
        Some(path) => match known.filter(|known| !known.types.meets(sized)) {
            Some(known) => format!("`{path}` is {}, and has no length", known.types.called()),
            None => return None,
        },
    };
    let help = "only a list, a text and an object have a length: {\"length\": \"@input.items\"}";
    Some(whole.cursor(&at).report(&RULE, message).help(help))
}

/// A moment that can't be computed.
fn bad_moment(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    operand: &Operand<'_>,
) -> Option<Diagnostic> {
    let LocalFault { pointer, message, help, replacement, .. } = moment_fault(condition.operator, operand.written)?;
    let fault = whole.cursor(&format!("{}{pointer}", operand.at)).report(&RULE, message);
    let fault = match help {
        Some(help) => fault.help(help),
        None => fault,
    };
    Some(match replacement {
        Some(meant) => fault.suggest(meant),
        None => fault,
    })
}

fn wrong_types(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>, found: &mut Vec<Diagnostic>) {
    let needs: [&Need; 2] = match condition.operator {
        "greaterThan" | "lessThan" | "greaterOrEqual" | "lessOrEqual" => {
            return bad_order::operands(&RULE, whole, condition, found);
        }
        "matches" => [&TEXT, &PATTERN],
        "in" => {
            let of_type = condition.operands.get(1).and_then(|operand| wrong_type(whole, condition, operand, &LIST));
            found.extend(of_type.or_else(|| swapped(whole, condition)));
            return;
        }
        _ => return,
    };
    for (operand, need) in condition.operands.iter().zip(needs) {
        found.extend(wrong_type(whole, condition, operand, need));
    }
    let pattern = condition.operands.get(1).filter(|operand| operand.form == OperandForm::Literal);
    if let (Some(operand), "matches") = (pattern, condition.operator) {
        found.extend(bad_pattern(whole, operand));
    }
}

/// A list that is written out before `in`, and a value of which nothing is known behind it.
fn swapped(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>) -> Option<Diagnostic> {
    let [one, other] = condition.operands.as_slice() else { return None };
    let is_list = one.form == OperandForm::Literal && one.written.as_array().is_some_and(|list| !list.is_empty());
    if !is_list || other.form != OperandForm::Path || other.known.types == JsonTypes::LIST {
        return None;
    }
    let message = format!("`in` looks for the list {} among the entries of {}", one.written, other.called());
    let fault = Diagnostic { severity: Severity::Warning, ..whole.cursor(&one.at).report(&RULE, message) };
    let meant = json!([other.written, one.written]);
    Some(fault.help(format!("the value comes first, then the list: {meant}")))
}

fn wrong_type(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    operand: &Operand<'_>,
    need: &Need,
) -> Option<Diagnostic> {
    if operand.known.types.meets(need.types) {
        return None;
    }
    let operator = condition.operator;
    let message = format!("`{operator}` {}; {} is {}", need.called, operand.called(), operand.known.types.called());
    let fault = whole.cursor(&operand.at).report(&RULE, message);
    let others = condition.operands.iter().filter(|other| other.at != operand.at);
    let list = others.into_iter().find(|other| need.types == JsonTypes::LIST && other.known.types == JsonTypes::LIST);
    if let Some(list) = list {
        let meant = json!([operand.written, list.written]);
        return Some(fault.help(format!("the value comes first, then the list: {meant}")));
    }
    // The list may be in the text, alone or in a fence.
    if need.types == JsonTypes::LIST && operand.known.text == DeclaredText::Reply {
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        return Some(fault.help("give the action of the model an `answer_schema` that describes the list"));
    }
    // A text that is the JSON of a list is read as one.
    if need.types == JsonTypes::LIST && operand.form == OperandForm::Path && operand.known.may_be_json() {
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        let is = "only the JSON of a list is taken as one: declare it as `\"type\": \"array\"` if it is a list, or say that it is \
            JSON with `\"contentMediaType\": \"application/json\"`";
        return (!operand.known.is_json).then(|| fault.help(is));
    }
    let otherwise =
        if whole.is_of_call() { "each call would ask for approval" } else { "the step would fail each time" };
    Some(match need.types {
        JsonTypes::LIST if operand.written.is_string() && operand.form == OperandForm::Literal => {
            let text = operand.written.as_str().unwrap_or_default();
            let list = json!(text.split(',').map(str::trim).collect::<Vec<_>>());
            fault.help(format!("write the list: {list}")).suggest(list.to_string())
        }
        _ => fault.help(format!("{otherwise}: compare another value, or use another operator")),
    })
}

fn bad_pattern(whole: &WrittenCondition<'_>, operand: &Operand<'_>) -> Option<Diagnostic> {
    let text = operand.written.as_str()?;
    if Schema::compile(json!({ "pattern": text })).is_err() {
        let message = format!("{} is no regular expression that can be read", quoted(text));
        let fault = whole.cursor(&operand.at).report(&RULE, message);
        let meant = pattern_of_ending(text);
        let fault = fault.help(pattern_help(text, meant.as_deref()));
        return Some(match meant {
            Some(meant) => fault.suggest(meant),
            None => fault,
        });
    }
    let meant = slashed(text)?.meant();
    let message = format!("the pattern {} looks for the slashes too", quoted(text));
    let fault = Diagnostic { severity: Severity::Warning, ..whole.cursor(&operand.at).report(&RULE, message) };
    Some(
        fault
            .help(format!("a pattern is written without slashes and flags: {}", quoted(&meant)))
            .suggest(quoted(&meant)),
    )
}
