//! Conditions of steps, one operator after the other.

use serde_json::Value;

use super::Subject;
use crate::compile::steps::{JsonTypes, KnownValue};
use crate::program::reference::as_path;
use crate::program::template::is_template;
use crate::syntax::document::Document;

/// An operator with its operands.
pub(super) struct WrittenOperator<'a> {
    /// The operator.
    pub operator: &'a str,
    /// The JSON pointer of what stands under the operator.
    pub at: String,
    /// What stands there.
    pub written: &'a Value,
    /// The operands of an operator that compares two; empty for `and`, `or`, `not` and `hasKey`.
    pub operands: Vec<Operand<'a>>,
}

/// An operand.
pub(super) struct Operand<'a> {
    /// Its JSON pointer.
    pub at: String,
    /// What is written.
    pub written: &'a Value,
    /// What kind of operand it is.
    pub form: OperandForm,
    /// What is known of its value.
    pub known: KnownValue,
}

/// The kinds of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperandForm {
    /// The value itself.
    Literal,
    /// An `@path`.
    Path,
    /// `{"length": ...}`.
    Length,
    /// A template, which gives a text.
    Template,
}

/// Visits each operator of the document's conditions. What could not be read is passed over.
pub(super) fn each_operator<'a>(subject: &Subject<'a>, visit: &mut dyn FnMut(&WrittenOperator<'a>)) {
    if subject.is_step() {
        return;
    }
    let document = subject.document();
    for pointer in &subject.compiled.steps.conditions {
        if let Some(condition) = document.value.pointer(pointer) {
            of_condition(subject, document, pointer, condition, visit);
        }
    }
}

fn of_condition<'a>(
    subject: &Subject<'a>,
    document: &'a Document,
    at: &str,
    condition: &'a Value,
    visit: &mut dyn FnMut(&WrittenOperator<'a>),
) {
    // A document is never deeper than its reader allows: the recursion ends.
    let Some((operator, written)) = condition.as_object().and_then(|members| members.iter().next()) else { return };
    let at = format!("{at}/{operator}");
    if document.unknown.holds(&at) || !document.unknown.below(&at).is_empty() {
        return;
    }
    let mut operands = Vec::new();
    match (operator.as_str(), written) {
        ("and" | "or", Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                of_condition(subject, document, &format!("{at}/{index}"), part, visit);
            }
        }
        ("not", part) => of_condition(subject, document, &at, part, visit),
        ("hasKey", _) => {}
        (_, Value::Array(two)) => {
            let operand = |(index, written)| Operand::of(subject, format!("{at}/{index}"), written);
            operands = two.iter().enumerate().map(operand).collect();
        }
        _ => return,
    }
    visit(&WrittenOperator { operator, at, written, operands });
}

impl<'a> Operand<'a> {
    fn of(subject: &Subject<'a>, at: String, written: &'a Value) -> Self {
        let length = written.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("length"));
        let (form, known) = match written {
            _ if length.is_some() => (OperandForm::Length, KnownValue::of_types(JsonTypes::NUMBER)),
            Value::String(text) if as_path(text).is_some() => {
                let known = subject.compiled.steps.known.get(&at).cloned();
                (OperandForm::Path, known.unwrap_or(KnownValue::of_types(JsonTypes::ANY)))
            }
            Value::String(text) if is_template(text) => (OperandForm::Template, KnownValue::of_types(JsonTypes::TEXT)),
            literal => {
                let types = JsonTypes::of(literal);
                (OperandForm::Literal, KnownValue { types, words: Some(vec![literal.clone()]) })
            }
        };
        Self { at, written, form, known }
    }

    /// The operand in a sentence.
    pub fn called(&self) -> String {
        match self.form {
            OperandForm::Literal => format!("`{}`", self.written),
            OperandForm::Path => format!("`{}`", self.written.as_str().unwrap_or_default()),
            OperandForm::Length => "a length".to_owned(),
            OperandForm::Template => format!("the template {}", self.written),
        }
    }
}
