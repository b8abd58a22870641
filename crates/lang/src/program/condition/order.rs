//! The order of two values of a condition: of two numbers, or of two times.

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::{ConditionFault, ConditionOperand, OperandValue, cut};
use crate::policy::json_text;
use crate::policy::redact::Redaction;
use crate::program::exact_text::{decimal_of, time_of};
use crate::program::reference::{Field, Scope};
use crate::program::time_span::TimeSpan;
use crate::program::value_kind::value_kind;
use crate::syntax::decimal::Decimal;

/// How the values of a run are ordered.
#[derive(Debug, Clone, Copy)]
pub struct OrderRules<'r> {
    /// Whether two times have an order, and a text with blanks around is no number: not so in runs of older editions.
    pub is_exact: bool,
    /// Whether `length` and `in` read a text that is the JSON of a list or object, as paths do, and a path into a text that should be
    /// JSON and is none can't be judged: not so in runs of older editions.
    pub reads_json: bool,
    /// The zone in which a date alone begins, and that the days of a span are of; none for UTC.
    pub zone: Option<&'r TimeZone>,
    /// The names whose values are hidden in sentences, beside those that always are.
    pub hidden: &'r [String],
}

impl OrderRules<'static> {
    /// Those of a new run.
    pub const PRESENT: Self = Self { is_exact: true, reads_json: true, zone: None, hidden: &[] };
}

/// A moment that a condition computes.
#[derive(Debug)]
pub(super) struct MomentOperand {
    /// The time that it is counted from; none for that of the step.
    pub from: Option<Field>,
    /// How far it is from there.
    pub plus: TimeSpan,
}

/// A value that has an order.
enum OrderedValue {
    Number(Decimal),
    Time(Timestamp),
}

impl OrderRules<'_> {
    fn zone(&self) -> TimeZone {
        self.zone.cloned().unwrap_or(TimeZone::UTC)
    }

    fn read(&self, value: &Value) -> Option<OrderedValue> {
        match value {
            Value::Number(number) => Decimal::read(&number.to_string()).map(OrderedValue::Number),
            Value::String(text) if json_text::is_number(text) => decimal_of(text).map(OrderedValue::Number),
            Value::String(text) => time_of(text, &self.zone()).map(OrderedValue::Time),
            _ => None,
        }
    }

    /// The order of the values of two operands.
    pub(super) fn compare(
        &self,
        operator: &str,
        operands: [&ConditionOperand; 2],
        scope: &Scope<'_>,
        values: [Value; 2],
    ) -> Result<Ordering, ConditionFault> {
        if !self.is_exact {
            let [one, other] = operands;
            let [left, right] = values;
            return Ok(older_number(one, operator, &left)?.compare(&older_number(other, operator, &right)?));
        }
        let mut ordered = Vec::with_capacity(values.len());
        for (operand, value) in operands.iter().zip(&values) {
            ordered.push(match &operand.takes {
                OperandValue::Moment(moment) => Some(OrderedValue::Time(self.moment(operand, moment, scope, value)?)),
                _ => self.read(value),
            });
        }
        match ordered.as_slice() {
            [Some(OrderedValue::Number(one)), Some(OrderedValue::Number(other))] => Ok(one.compare(other)),
            [Some(OrderedValue::Time(one)), Some(OrderedValue::Time(other))] => Ok(one.cmp(other)),
            _ => {
                let [one, other] = operands;
                let [left, right] = &values;
                let (one, other) = (self.named(one, left), self.named(other, right));
                Err(ConditionFault(format!("`{operator}` compares two numbers or two times: {one}, and {other}")))
            }
        }
    }

    fn moment(
        &self,
        operand: &ConditionOperand,
        moment: &MomentOperand,
        scope: &Scope<'_>,
        value: &Value,
    ) -> Result<Timestamp, ConditionFault> {
        let zone = self.zone();
        let from = match &moment.from {
            None => scope.now.parse().ok(),
            Some(_) => value.as_str().and_then(|text| time_of(text, &zone)),
        };
        let Some(from) = from else {
            let named = self.named(operand, value);
            return Err(ConditionFault(format!(
                "a time is an RFC 3339 date, or a date with a time and its offset: {named}"
            )));
        };
        let beyond = || ConditionFault(format!("{} is beyond all times", operand.written));
        moment.plus.after(from, &zone).ok_or_else(beyond)
    }

    /// An operand with its value, in a sentence.
    fn named(&self, operand: &ConditionOperand, value: &Value) -> String {
        let path = match &operand.takes {
            OperandValue::Field(Field::Path(path) | Field::Optional(path)) => path.as_slice(),
            OperandValue::Moment(MomentOperand { from: Some(Field::Path(path)), .. }) => path.as_slice(),
            OperandValue::Moment(_) => return format!("{} is a moment", operand.written),
            _ => return format!("{} is {}", operand.written, value_kind(value)),
        };
        let redact = Redaction::new(self.hidden);
        let what = match value {
            _ if path.iter().any(|name| redact.hides(name, value)) => format!("{}, which is hidden", value_kind(value)),
            Value::String(text) => format!("the text {}", cut(&Value::from(&*redact.text(text)).to_string())),
            Value::Number(number) => format!("the number {}", cut(&number.to_string())),
            other => value_kind(other).to_owned(),
        };
        let is = if matches!(operand.takes, OperandValue::Moment(_)) { "counts from" } else { "is" };
        format!("{} {is} {what}", operand.written)
    }
}

/// The number that a value is in a run of an older edition.
fn older_number(operand: &ConditionOperand, operator: &str, value: &Value) -> Result<Decimal, ConditionFault> {
    let digits = match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.trim_matches([' ', '\t', '\n', '\r']))
            .filter(|text| json_text::is_number(text))
            .map(str::to_owned),
        _ => None,
    };
    let wrong =
        || ConditionFault(format!("{} is {}, and `{operator}` compares numbers", operand.written, value_kind(value)));
    digits.and_then(|digits| Decimal::read(&digits)).ok_or_else(wrong)
}
