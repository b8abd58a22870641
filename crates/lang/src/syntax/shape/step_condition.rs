//! The condition of a step: it is in the `filter` of the step, and has many other places and names elsewhere.

use super::Walker;
use super::form::SchemaForm;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::{Member, Node, Span, foreign_syntax, token};

/// The longest condition that a suggestion repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

impl<'a> Walker<'a> {
    /// Reports the condition of a step that is written at the step itself, as `if`, `when` or `condition`. Returns whether it
    /// is one.
    pub(super) fn condition_of_step(&mut self, form: &SchemaForm, node: &Node, member: &Member) -> bool {
        let is_step = form.fields.has("onFalse") && form.fields.has("filter");
        let is_word = matches!(&*member.key, "condition" | "if" | "when");
        if !is_step || !is_word || node.get("filter").is_some() {
            return false;
        }
        let name = &*member.key;
        let pointer = format!("{}/{}", self.pointer, token(name));
        let message = format!("the field `{name}` is not known in {}", self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(member.key_span));
        let fault = fault.help("a step runs only when its `filter` holds: \"filter\": {\"condition\": {...}}");
        let is_filter = member.value.get("condition").is_some();
        let condition = self.as_condition(&member.value);
        self.report(match condition {
            _ if is_filter => fault.suggest("\"filter\""),
            Some(condition) => fault.suggest_at(
                format!("\"filter\": {{\"condition\": {condition}}}"),
                member.key_span.start,
                member.value.span.end,
            ),
            None => fault,
        });
        true
    }

    /// Reports a filter whose operators are not in a `condition`. Returns whether it is one.
    pub(super) fn bare_filter(&mut self, form: &'a SchemaForm, node: &Node, members: &[Member]) -> bool {
        let is_filter = self.pointer.ends_with("/filter") && form.required.contains(&"condition");
        let Some(of) = form.fields.get("condition").filter(|_| is_filter && node.get("condition").is_none()) else {
            return false;
        };
        let is_operator = |name: &str| {
            let ours = foreign_syntax::operator(name).unwrap_or(name);
            of.keyed.iter().any(|(known, _)| *known == ours)
        };
        let Some(first) = members.first().filter(|_| members.iter().all(|member| is_operator(&member.key))) else {
            return false;
        };
        let pointer = format!("{}/{}", self.pointer, token(&first.key));
        let message = format!("the field `{}` is not known in {}", first.key, self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(first.key_span));
        let fault = fault.help("a filter has its operator in a `condition`: \"filter\": {\"condition\": {...}}");
        self.report(match self.as_condition(node) {
            Some(condition) => {
                let Span { start, end } = node.span;
                fault.suggest_at(format!("{{\"condition\": {condition}}}"), start, end)
            }
            None => fault,
        });
        true
    }

    /// Reports a condition that is in a field of its own where a condition is expected: `{"condition": {...}}`. Returns whether
    /// it is one.
    pub(super) fn wrapped_condition(&mut self, form: &SchemaForm, node: &Node) -> bool {
        let Some([member]) = node.members() else { return false };
        let is_operator = |name: &str| {
            let ours = foreign_syntax::operator(name).unwrap_or(name);
            form.keyed.iter().any(|(known, _)| *known == ours)
        };
        let of_conditions = form.keyed.iter().any(|(known, _)| *known == "hasKey");
        let is_word = matches!(&*member.key, "condition" | "if" | "when" | "filter");
        let inner = member.value.members().filter(|_| of_conditions && is_word);
        if !inner.is_some_and(|inner| inner.len() == 1 && inner.iter().all(|inner| is_operator(&inner.key))) {
            return false;
        }
        let (name, pointer) = (&*member.key, format!("{}/{}", self.pointer, token(&member.key)));
        let message = format!("the field `{name}` is not known in {}", self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(member.key_span));
        let fault = fault.help(format!("the operator is written here itself, without `{name}` around it"));
        self.report(match self.as_condition(&member.value) {
            Some(condition) => fault.suggest_at(condition, node.span.start, node.span.end),
            None => fault,
        });
        true
    }

    /// Reports a condition whose operator is a value, as other products write it: `{"left": ..., "operator": "equal", "right": ...}`.
    /// Returns whether it is one.
    pub(super) fn spelled_out_condition(&mut self, form: &SchemaForm, node: &Node) -> bool {
        let member = |names: &[&str]| node.members()?.iter().find(|member| names.contains(&&*member.key));
        let of_conditions = form.keyed.iter().any(|(known, _)| *known == "hasKey");
        let Some(operator) = member(&["operator", "op", "operation", "comparison"]).filter(|_| of_conditions) else {
            return false;
        };
        let left = member(&["left", "leftValue", "field", "variable", "path", "key", "value1"]);
        let right = member(&["right", "rightValue", "value", "value2"]);
        let (Some(left), Some(right)) = (left, right) else { return false };
        let pointer = format!("{}/{}", self.pointer, token(&operator.key));
        let message = format!("the field `{}` is not known in {}", operator.key, self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(operator.key_span));
        let fault =
            fault.help("a condition has its operator as its only field: {\"equal\": [\"@input.kind\", \"refund\"]}");
        let word = operator.value.as_str();
        let ours = word.and_then(|word| foreign_syntax::operator(word).or(Some(word)));
        let ours = ours.filter(|ours| !matches!(*ours, "and" | "or" | "not" | "hasKey"));
        let ours = ours.filter(|ours| form.keyed.iter().any(|(known, _)| known == ours));
        let [one, other] = [left, right].map(|member| self.tree.raw(member.value.span));
        self.report(match ours.filter(|_| one.len() + other.len() <= MAX_SHOWN_BYTES) {
            Some(ours) => {
                let Span { start, end } = node.span;
                fault.suggest_at(format!("{{\"{ours}\": [{one}, {other}]}}"), start, end)
            }
            None => fault,
        });
        true
    }

    /// A value as a condition, when it is one or a text that compares two values.
    fn as_condition(&self, node: &Node) -> Option<String> {
        let raw = self.tree.raw(node.span);
        let compared = node.as_str().and_then(|text| foreign_syntax::comparison(text, &|path| self.named_value(path)));
        let is_object = node.members().is_some_and(|members| members.len() == 1);
        compared.or_else(|| (is_object && raw.len() <= MAX_SHOWN_BYTES).then(|| raw.to_owned()))
    }
}
