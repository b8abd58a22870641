//! The settings of a matcher.

mod fields;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{WrittenSettings, text_of_list};
use crate::compile::steps::JsonTypes;
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::reference::{as_optional_path, as_path};
use crate::syntax::quoted;

/// What a matcher can't use.
pub(in crate::check) fn matcher(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let needed = "`left` and `right` are two lists, by their `@paths`; `matchOn` names the fields that must be equal";
    found.extend(settings.missing(&["left", "right", "matchOn"], needed));
    for name in ["left", "right", "matchOn"] {
        if settings.get(name).is_none() && !settings.is_step() && !settings.may_come(name) {
            let message = format!("the action has no `{name}`, and its `parameters` let no call give it");
            let fault = settings.key("parameters", message);
            found.extend(fault.map(|fault| fault.help(format!("add `{name}` to the action, or to its `parameters`"))));
        }
    }
    for side in ["left", "right"] {
        found.extend(settings.get(side).and_then(|value| side_fault(settings, side, value)));
    }
    if settings.list("matchOn").is_some_and(Vec::is_empty) {
        let fault = settings.at("matchOn", "`matchOn` is empty: nothing says which entries belong together".to_owned());
        found.extend(fault.map(|fault| fault.help("name the fields that must be equal: [\"invoice_id\"]")));
    }
    named_fields(settings, found);
    for name in ["tolerance", "dateWindowDays"] {
        if settings.get(name).and_then(Value::as_f64).is_some_and(|number| number < 0.0) {
            let fault = settings.at(name, format!("`{name}` is below 0: nothing is ever so near"));
            found.extend(fault.map(|fault| fault.help("0 asks for the same value")));
        }
    }
    if settings.list("rules").is_some_and(|rules| !rules.is_empty()) {
        let fault = settings.at("rules", "`rules` can't be used here: nothing says what they mean".to_owned());
        found.extend(
            fault.map(|fault| fault.help("take it out; `matchOn`, `tolerance` and the others say what matches")),
        );
    }
    likeness(settings, found);
    fields::absent_fields(settings, found);
    fields::unequal_fields(settings, found);
    let mut keys = BTreeSet::new();
    for (name, default) in [
        ("outputMatched", "matched"),
        ("outputUnmatchedLeft", "unmatchedLeft"),
        ("outputUnmatchedRight", "unmatchedRight"),
    ] {
        let key = settings.text(name).unwrap_or(default);
        if !keys.insert(key) {
            let fault =
                settings.at(name, format!("two lists of the matcher have the key `{key}`: one replaces the other"));
            found.extend(fault.map(|fault| fault.help("give each list a key of its own")));
        }
    }
}

/// The fields that a registered matcher compares, held against the lists of a step that calls it.
pub(in crate::check) fn called_matcher(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    fields::absent_fields(settings, found);
    fields::unequal_fields(settings, found);
}

/// How near amounts and texts must be: settings that need another one.
fn likeness(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let warn = |fault: Diagnostic| Diagnostic { severity: Severity::Warning, ..fault };
    match (settings.get("tolerance"), settings.get("tolerance_mode")) {
        // The calls of an action may give the tolerance.
        (None, Some(_)) if settings.is_step() => {
            let fault = settings.at("tolerance_mode", "`tolerance_mode` means nothing without `tolerance`".to_owned());
            found.extend(fault.map(|fault| fault.help("add `tolerance`: how far the amounts may be apart")));
        }
        // A mode that can't be read is reported as such.
        (Some(number), None)
            if number.as_f64().is_some_and(|number| number > 0.0)
                && !settings.cursor("tolerance_mode").is_written() =>
        {
            let message = format!("a `tolerance` of {number} without `tolerance_mode` is an amount, and no share");
            let fault = settings.at("tolerance", message);
            found
                .extend(fault.map(|fault| warn(fault.help("write `\"tolerance_mode\": \"absolute\"`, or `relative`"))));
        }
        _ => {}
    }
    if settings.get("descriptionKey").is_some()
        && settings.get("fuzzyThreshold").is_none()
        && !settings.may_come("fuzzyThreshold")
    {
        let message = "`descriptionKey` compares nothing without `fuzzyThreshold`";
        let fault = settings.at("descriptionKey", message.to_owned());
        found
            .extend(fault.map(|fault| warn(fault.help("add `fuzzyThreshold`: how alike the texts must be, 0 to 100"))));
    }
    if settings.get("fuzzyThreshold").is_some()
        && settings.get("descriptionKey").is_none()
        && !settings.may_come("descriptionKey")
    {
        let message = "`fuzzyThreshold` compares the texts of a field, and `descriptionKey` does not name it";
        let fault = settings.at("fuzzyThreshold", message.to_owned());
        found.extend(fault.map(|fault| fault.help("add `descriptionKey`: the field whose texts are compared")));
    }
}

/// Values in place of the names of fields: the names are written out, and neither paths nor templates are read there.
fn named_fields(settings: &WrittenSettings<'_, '_>, found: &mut Vec<Diagnostic>) {
    let compared = settings.list("matchOn").into_iter().flatten().enumerate();
    let compared =
        compared.map(|(index, field)| ("matchOn", settings.cursor("matchOn").below(&format!("/{index}")), field));
    let text = settings.get("descriptionKey").map(|field| ("descriptionKey", settings.cursor("descriptionKey"), field));
    for (setting, cursor, field) in compared.chain(text) {
        let Some(field) = field.as_str() else { continue };
        let kind = match field {
            field if field.starts_with('@') => "path",
            field if field.contains("{{") => "template",
            _ => continue,
        };
        if settings.subject.has_error_in(&cursor.place()) {
            continue;
        }
        let message = format!("`{setting}` names fields of the entries; `{field}` is a {kind}");
        let report = cursor.report(settings.rule, message);
        let path = field.strip_prefix('@').map(|path| path.trim_end_matches('?'));
        found.push(match path.map(|path| path.rsplit('.').next().unwrap_or(path)) {
            Some(last) => report.help(format!("write the field's name: `{last}`")).suggest(quoted(last)),
            None => report.help("write the field's name, which is the same in each run"),
        });
    }
}

/// A side of a matcher that is no list.
fn side_fault(settings: &WrittenSettings<'_, '_>, side: &str, value: &Value) -> Option<Diagnostic> {
    let text = match value {
        Value::Array(_) => return None,
        Value::String(text) => text,
        other => {
            let fault = settings.at(side, format!("`{side}` is a list or its `@path`; {other} was given"))?;
            return Some(fault.help("name the list: \"@input.invoices\""));
        }
    };
    if as_optional_path(text).is_some() {
        let fault = settings.at(side, format!("`{side}` is needed, and {} may be left out", quoted(text)))?;
        let meant = text.trim_end_matches('?');
        return Some(fault.help("a list that is matched has no `?`").suggest(quoted(meant)));
    }
    if as_path(text).is_some() {
        let known = settings.known(side)?;
        if known.types.meets(JsonTypes::LIST) {
            return None;
        }
        if known.may_be_json() {
            return text_of_list(settings, side);
        }
        let fault = settings.at(side, format!("`{side}` is a list, and `{text}` is {}", known.types.called()))?;
        return Some(fault.help("name the path of a list"));
    }
    if text.starts_with("doc:") && settings.is_step() {
        return None;
    }
    let of_document = settings.subject.project().filter(|_| settings.is_step());
    let of_document = of_document.and_then(|project| crate::compile::document_meant(text, project));
    if let Some(meant) = of_document {
        let message = format!("`{side}` is a list or its `@path`; the text {} was given", quoted(text));
        let fault = settings.at(side, message)?;
        return Some(fault.help(format!("a document is written `{meant}`")).suggest(quoted(&meant)));
    }
    if text.starts_with('@') {
        return None;
    }
    let fault = settings.at(side, format!("`{side}` is a list or its `@path`; the text {} was given", quoted(text)))?;
    let meant = format!("@{}", text.trim_start_matches(['{', '$', ' ']).trim_end_matches(['}', ' ']));
    Some(match as_path(&meant) {
        Some(_) => fault.help("a path begins with `@`").suggest(quoted(&meant)),
        None => fault.help("name the list: \"@input.invoices\""),
    })
}
