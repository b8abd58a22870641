//! What a condition gives when only some of the values are known that it reads.

use serde_json::Value;

use super::order::MomentOperand;
use super::{CompiledCondition, ConditionOperand, ConditionTest, OperandValue};
use crate::program::canonical::spelling;
use crate::program::exact_text::decimal_of;
use crate::program::reference::Field;
use crate::syntax::decimal::Decimal;

/// The known values: that at a path, if it is one of them; null for one that is missing.
pub type KnownValues<'k> = &'k dyn Fn(&[String]) -> Option<Value>;

impl CompiledCondition {
    /// Whether it reads the value at a path.
    pub fn reads(&self, path: &[&str]) -> bool {
        let mut reads = false;
        self.test.each_path(&mut |read| reads |= read == path);
        reads
    }

    /// Whether it reads a key, or a part of what is under it.
    pub fn reads_of(&self, key: &str) -> bool {
        let mut reads = false;
        self.test.each_path(&mut |read| reads |= read.first().is_some_and(|first| first == key));
        reads
    }

    /// Whether it asks if a key is there: it tells a value from none.
    pub fn asks_for(&self, key: &str) -> bool {
        self.test.asks_for(key)
    }

    /// Whether it holds, as far as the known values decide that; none when the others do.
    pub fn outcome(&self, known: KnownValues<'_>) -> Option<bool> {
        self.test.outcome(known)
    }

    /// The values that paths have where it holds: what it compares with a literal, alone or within an `and`.
    pub fn equalities(&self) -> Vec<(Vec<String>, Value)> {
        let mut found = Vec::new();
        self.test.equalities(&mut found);
        found
    }
}

impl ConditionTest {
    /// A document is never deeper than its reader allows: the recursion ends.
    fn each_path(&self, visit: &mut dyn FnMut(&[String])) {
        match self {
            Self::Equal { operands, .. } | Self::Order { operands, .. } | Self::In(operands) => {
                operands.iter().for_each(|operand| operand.each_path(visit));
            }
            Self::HasKey(path) => visit(path),
            Self::Matches(operand, _) => operand.each_path(visit),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.each_path(visit)),
            Self::Not(part) => part.each_path(visit),
        }
    }

    fn asks_for(&self, key: &str) -> bool {
        let is_null =
            |operand: &ConditionOperand| matches!(&operand.takes, OperandValue::Field(Field::Literal(Value::Null)));
        match self {
            Self::HasKey(path) => path.first().is_some_and(|first| first == key),
            Self::Equal { operands, .. } if operands.iter().any(is_null) => {
                let mut reads = false;
                operands.iter().for_each(|operand| {
                    operand.each_path(&mut |read| reads |= read.first().is_some_and(|first| first == key));
                });
                reads
            }
            Self::All(parts) | Self::Any(parts) => parts.iter().any(|part| part.asks_for(key)),
            Self::Not(part) => part.asks_for(key),
            _ => false,
        }
    }

    fn outcome(&self, known: KnownValues<'_>) -> Option<bool> {
        match self {
            Self::Equal { operands: [one, other], holds } => {
                let (one, other) = (one.known(known)?, other.known(known)?);
                Some((spelling(&one) == spelling(&other)) == *holds)
            }
            Self::Order { operands: [one, other], holds, .. } => {
                let (one, other) = (number(&one.known(known)?)?, number(&other.known(known)?)?);
                Some(holds(one.compare(&other)))
            }
            Self::HasKey(path) => known(path).map(|value| !value.is_null()),
            Self::In([one, list]) => {
                let (entry, Value::Array(items)) = (one.known(known)?, list.known(known)?) else { return None };
                let entry = spelling(&entry);
                Some(items.iter().any(|item| spelling(item) == entry))
            }
            Self::Matches(..) => None,
            Self::All(parts) => together(parts, known, false),
            Self::Any(parts) => together(parts, known, true),
            Self::Not(part) => part.outcome(known).map(|holds| !holds),
        }
    }

    fn equalities(&self, found: &mut Vec<(Vec<String>, Value)>) {
        match self {
            Self::Equal { operands: [one, other], holds: true } => {
                let of = |path: &ConditionOperand, literal: &ConditionOperand| match (&path.takes, &literal.takes) {
                    (
                        OperandValue::Field(Field::Path(path) | Field::Optional(path)),
                        OperandValue::Field(Field::Literal(value)),
                    ) => Some((path.clone(), value.clone())),
                    _ => None,
                };
                found.extend(of(one, other).or_else(|| of(other, one)));
            }
            Self::All(parts) => parts.iter().for_each(|part| part.equalities(found)),
            _ => {}
        }
    }
}

/// Several parts, of which one with the outcome `decides` is enough.
fn together(parts: &[ConditionTest], known: KnownValues<'_>, decides: bool) -> Option<bool> {
    let outcomes: Vec<Option<bool>> = parts.iter().map(|part| part.outcome(known)).collect();
    if outcomes.contains(&Some(decides)) {
        return Some(decides);
    }
    outcomes.iter().all(Option::is_some).then_some(!decides)
}

/// A number, or a text that is one, as an order compares it.
fn number(value: &Value) -> Option<Decimal> {
    match value {
        Value::Number(number) => Decimal::read(&number.to_string()),
        Value::String(text) => decimal_of(text),
        _ => None,
    }
}

impl ConditionOperand {
    fn each_path(&self, visit: &mut dyn FnMut(&[String])) {
        match &self.takes {
            OperandValue::Field(field) => paths_of(field, visit),
            OperandValue::Length { path, .. } => visit(path),
            OperandValue::Moment(MomentOperand { from: Some(from), .. }) => paths_of(from, visit),
            OperandValue::Moment(_) => {}
        }
    }

    fn known(&self, known: KnownValues<'_>) -> Option<Value> {
        match &self.takes {
            OperandValue::Field(field) => value_of(field, known),
            OperandValue::Length { .. } | OperandValue::Moment(_) => None,
        }
    }
}

fn paths_of(field: &Field, visit: &mut dyn FnMut(&[String])) {
    match field {
        Field::Path(path) | Field::Optional(path) => visit(path),
        Field::Array(items) => items.iter().for_each(|item| paths_of(item, visit)),
        _ => {}
    }
}

fn value_of(field: &Field, known: KnownValues<'_>) -> Option<Value> {
    match field {
        Field::Literal(value) => Some(value.clone()),
        Field::Path(path) | Field::Optional(path) => known(path),
        Field::Array(items) => items.iter().map(|item| value_of(item, known)).collect::<Option<_>>().map(Value::Array),
        _ => None,
    }
}
