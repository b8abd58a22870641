//! The typed fields of a form as HTML: each with its label, what it takes, and what is wrong with what was sent.

use std::fmt::Write as _;

use super::html::markup;
use super::{AskedDecision, RefusedInput};
use crate::language::form::FieldType;
use crate::program::form::{AskedField, FieldFault};
use crate::trace::escape::html as escaped;

/// The input of a field, by its number.
pub(super) fn name_of(number: usize) -> String {
    format!("key.{number}")
}

/// All fields, with what was sent of them before.
pub(super) fn inputs(asked: &AskedDecision, sent: Option<&RefusedInput<'_>>) -> String {
    asked.fields.iter().enumerate().map(|(number, field)| input(field, &name_of(number), sent)).collect()
}

fn input(field: &AskedField, name: &str, sent: Option<&RefusedInput<'_>>) -> String {
    let typed = sent.map(|sent| sent.form.text(name)).unwrap_or_default();
    let is_field = |fault: &&FieldFault| fault.field == field.name;
    let fault = sent.and_then(|sent| sent.faults.iter().find(is_field));
    let required = if field.required { " required" } else { "" };
    let wrong = if fault.is_some() { " aria-invalid=\"true\"" } else { "" };
    let common = format!("id=\"{name}\" name=\"{name}\" aria-describedby=\"{name}.help\"{wrong}{required}");
    let mut html = String::new();
    let mark = if field.required { " (required)" } else { "" };
    let _ = writeln!(html, "<label for=\"{name}\">{}{mark}</label>", escaped(field.title()));
    let value = markup(typed);
    let _ = match field.kind {
        FieldType::LongText => writeln!(html, "<textarea {common} rows=\"4\">\n{value}</textarea>"),
        FieldType::Text => writeln!(html, "<input {common} type=\"text\" value=\"{value}\">"),
        // An input of type `number` would drop what is no number without a word.
        FieldType::Integer | FieldType::Number => {
            writeln!(html, "<input {common} type=\"text\" inputmode=\"decimal\" value=\"{value}\">")
        }
        FieldType::Date => writeln!(html, "<input {common} type=\"date\" value=\"{value}\">"),
        FieldType::Time => writeln!(html, "<input {common} type=\"time\" step=\"1\" value=\"{value}\">"),
        FieldType::Choice => writeln!(html, "{}", select(&common, typed, field.choices.iter().map(String::as_str))),
        FieldType::YesNo => writeln!(html, "{}", select(&common, typed, ["yes", "no"].into_iter())),
    };
    if let Some(fault) = fault {
        let _ = writeln!(html, "<p class=\"fault field\" role=\"alert\">{}</p>", escaped(&fault.message));
    }
    let _ = writeln!(html, "<p class=\"meta\" id=\"{name}.help\">{}</p>", escaped(&field.note()));
    html
}

fn select<'c>(common: &str, chosen: &str, values: impl Iterator<Item = &'c str>) -> String {
    let mut html = format!("<select {common}><option value=\"\">choose</option>");
    for value in values {
        let selected = if value == chosen { " selected" } else { "" };
        let _ = write!(html, "<option value=\"{}\"{selected}>{}</option>", markup(value), escaped(value));
    }
    html + "</select>"
}
