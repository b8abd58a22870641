//! The condition of a step: it is in the `filter` of the step, and has many other places and names elsewhere.

use super::Walker;
use super::form::SchemaForm;
use crate::diagnostic::{Diagnostic, codes};
use crate::syntax::foreign_condition::{self, condition, lone_path};
use crate::syntax::{Member, Node, NodeKind, Span, token};

/// The longest condition that a suggestion repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// What other products call the two operands of a comparison.
pub(super) const LEFT: [&str; 10] =
    ["left", "leftValue", "field", "variable", "path", "key", "value1", "lhs", "a", "property"];
pub(super) const RIGHT: [&str; 7] = ["right", "rightValue", "value", "value2", "rhs", "b", "values"];

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
        let fault = fault.help(match &member.value.kind {
            NodeKind::Bool(true) => "a step always runs that has no `filter`: take it out".to_owned(),
            NodeKind::String(text) if let Some(path) = lone_path(text, self) => format!(
                "a step runs only when its `filter` holds: \"filter\": {{\"condition\": {{\"equal\": [\"@{path}\", true]}}}}"
            ),
            _ => "a step runs only when its `filter` holds: \"filter\": {\"condition\": {...}}".to_owned(),
        });
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
            let ours = foreign_condition::operator(name).unwrap_or(name);
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
            let ours = foreign_condition::operator(name).unwrap_or(name);
            form.keyed.iter().any(|(known, _)| *known == ours)
        };
        let of_conditions = form.keyed.iter().any(|(known, _)| *known == "hasKey");
        let is_word = matches!(&*member.key, "condition" | "if" | "when" | "filter");
        let takes_true = self.pointer.ends_with("/requires_approval");
        let is_true = matches!(member.value.kind, NodeKind::Bool(_))
            && (is_word || matches!(&*member.key, "enabled" | "required" | "always" | "value"));
        let is_inner = match member.value.members() {
            Some(inner) => inner.len() == 1 && inner.iter().all(|inner| is_operator(&inner.key)),
            None => self.as_condition(&member.value).is_some(),
        };
        if !of_conditions || !(is_word && is_inner || is_true && takes_true) {
            return false;
        }
        let (name, pointer) = (&*member.key, format!("{}/{}", self.pointer, token(&member.key)));
        let message = format!("the field `{name}` is not known in {}", self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(member.key_span));
        let what = if is_true { "true or false" } else { "the operator" };
        let fault = fault.help(format!("{what} is written here itself, without `{name}` around it"));
        let written =
            self.as_condition(&member.value).or_else(|| is_true.then(|| self.tree.raw(member.value.span).to_owned()));
        self.report(match written {
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
        let (left, right) = (member(&LEFT), member(&RIGHT));
        let (Some(left), Some(right)) = (left, right) else { return false };
        let pointer = format!("{}/{}", self.pointer, token(&operator.key));
        let message = format!("the field `{}` is not known in {}", operator.key, self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(operator.key_span));
        let fault =
            fault.help("a condition has its operator as its only field: {\"equal\": [\"@input.kind\", \"refund\"]}");
        let word = operator.value.as_str();
        let ours = word.and_then(|word| foreign_condition::operator(word).or(Some(word)));
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

    /// Reports a condition that has what it is about in one field and its operator as another one: `{"field": "amount", "gt": 5}`,
    /// `{"Variable": "$.amount", "NumericGreaterThan": 5}`. Returns whether it is one.
    pub(super) fn condition_of_two(&mut self, form: &SchemaForm, node: &Node) -> bool {
        let Some([one, other]) = node.members() else { return false };
        let is_left = |member: &Member| LEFT.contains(&&*member.key) || &*member.key == "Variable";
        let (left, operator) = if is_left(one) { (one, other) } else { (other, one) };
        let ours = foreign_condition::operator(&operator.key).unwrap_or(&*operator.key);
        let is_pair =
            form.keyed.iter().any(|(known, _)| *known == ours) && !matches!(ours, "and" | "or" | "not" | "hasKey");
        let of_conditions = form.keyed.iter().any(|(known, _)| *known == "hasKey");
        let path = left.value.as_str().and_then(|text| {
            let known = self.named_value(text);
            lone_path(text, self).or_else(|| known.starts_with("input.").then_some(known))
        });
        let Some(path) = path.filter(|_| of_conditions && is_left(left) && is_pair) else { return false };
        let meant = format!("{{\"{ours}\": [\"@{path}\", {}]}}", self.tree.raw(operator.value.span));
        if meant.len() > MAX_SHOWN_BYTES {
            return false;
        }
        let pointer = format!("{}/{}", self.pointer, token(&left.key));
        let message = format!("the field `{}` is not known in {}", left.key, self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(left.key_span));
        let fault = fault.help(format!("a condition has its operator as its only field: {meant}"));
        self.report(fault.suggest_at(meant, node.span.start, node.span.end));
        true
    }

    /// Reports a condition whose only field is what it is about: `{"@input.amount": {"greaterThan": 5}}`, `{"amount": {"$gt": 5}}`,
    /// `{"@input.urgent": true}`. Returns whether it is one.
    pub(super) fn condition_of_path(&mut self, form: &SchemaForm, node: &Node) -> bool {
        let Some([member]) = node.members() else { return false };
        let is_operator = |name: &str| {
            let ours = foreign_condition::operator(name).unwrap_or(name);
            form.keyed.iter().any(|(known, _)| *known == ours)
        };
        let of_conditions = form.keyed.iter().any(|(known, _)| *known == "hasKey");
        let is_word = is_operator(&member.key) || foreign_condition::condition_word(&member.key).is_some();
        if !of_conditions || is_word {
            return false;
        }
        let named = lone_path(&member.key, self).or_else(|| {
            let path = self.named_value(&member.key);
            path.starts_with("input.").then_some(path)
        });
        let compared = named.and_then(|path| match &member.value.kind {
            NodeKind::Object(inner) => {
                let part = |inner: &Member| {
                    let ours = foreign_condition::operator(&inner.key).unwrap_or(&*inner.key);
                    let is_pair = is_operator(&inner.key) && !matches!(ours, "and" | "or" | "not" | "hasKey");
                    is_pair.then(|| format!("{{\"{ours}\": [\"@{path}\", {}]}}", self.tree.raw(inner.value.span)))
                };
                let parts: Option<Vec<String>> = inner.iter().map(part).collect();
                match parts?.as_slice() {
                    [] => None,
                    [lone] => Some(lone.clone()),
                    parts => Some(format!("{{\"and\": [{}]}}", parts.join(", "))),
                }
            }
            NodeKind::Array(_) | NodeKind::Fault => None,
            _ => Some(format!("{{\"equal\": [\"@{path}\", {}]}}", self.tree.raw(member.value.span))),
        });
        let Some(compared) = compared.filter(|compared| compared.len() <= MAX_SHOWN_BYTES) else { return false };
        let pointer = format!("{}/{}", self.pointer, token(&member.key));
        let message = format!("the field `{}` is not known in {}", member.key, self.label());
        let fault = Diagnostic::error(codes::UNKNOWN_FIELD, message, pointer, self.place(member.key_span));
        let fault = fault.help(format!("a condition has its operator as its only field: {compared}"));
        self.report(fault.suggest_at(compared, node.span.start, node.span.end));
        true
    }

    /// A value as a condition: one that is an object, a text that means one, or a list of conditions or of the parts of one.
    pub(super) fn as_condition(&self, node: &Node) -> Option<String> {
        let raw = |node: &Node| self.tree.raw(node.span).to_owned();
        let is_object = |node: &Node| node.members().is_some_and(|members| members.len() == 1);
        let found = match &node.kind {
            NodeKind::String(text) => condition(text, self)?,
            NodeKind::Object(_) if is_object(node) => raw(node),
            NodeKind::Array(items) => match items.as_slice() {
                [lone] if is_object(lone) => raw(lone),
                // Of a list of approvals, any one may be meant; all of them would ask less often.
                [_, _, ..]
                    if items.iter().all(is_object)
                        && !self.pointer.ends_with("/not")
                        && !self.pointer.ends_with("/requires_approval") =>
                {
                    format!("{{\"and\": [{}]}}", items.iter().map(raw).collect::<Vec<_>>().join(", "))
                }
                [one, two, three] => {
                    let sign = |node: &Node| node.as_str().and_then(foreign_condition::operator);
                    // The sign between its operands, or before them.
                    let parts = sign(two).map(|ours| [ours.to_owned(), raw(one), raw(three)]);
                    let parts = parts.or_else(|| sign(one).map(|ours| [ours.to_owned(), raw(two), raw(three)]));
                    let [ours, one, other] = parts.filter(|[ours, ..]| !matches!(&**ours, "and" | "or"))?;
                    format!("{{\"{ours}\": [{one}, {other}]}}")
                }
                _ => return None,
            },
            _ => return None,
        };
        (found.len() <= MAX_SHOWN_BYTES).then_some(found)
    }
}
