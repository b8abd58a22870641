//! Conditions, compiled and evaluated. The evaluation is pure, and its work is bounded by the sizes of the condition and
//! of the values. What can't be evaluated is a fault and never `false`: who asks decides what follows.

mod moment;
mod order;
mod partial_knowledge;
mod pattern;
#[cfg(test)]
mod tests;

pub use moment::{TIME_FORMS, is_moment, is_sound_moment, moment_fault};
pub use order::OrderRules;
pub use partial_knowledge::KnownValues;
pub use pattern::{pattern_help, pattern_of_ending, slashed};

use std::cmp::Ordering;

use moment::moment_of;
use order::MomentOperand;
use pattern::swapped_pattern;
use serde_json::Value;

use super::canonical::spelling;
use super::fault::LocalFault;
use super::reference::{Field, Scope, Unresolved, UnresolvedKind, as_any_path, as_optional_path, as_path};
use super::schema::TextPattern;
use crate::diagnostic::codes;
use crate::language::Condition;
use crate::program::value_kind::value_kind;
use crate::syntax::{quoted, token};

/// The most operators of a condition, those of its parts included.
pub const MAX_OPERATORS: usize = 200;
/// The most characters of an operand in a sentence.
const MAX_SHOWN_CHARACTERS: usize = 60;

/// A condition that can be evaluated.
#[derive(Debug)]
pub struct CompiledCondition {
    test: ConditionTest,
}

/// Why a condition can't be evaluated, in a sentence without a final stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionFault(pub String);

#[derive(Debug)]
enum ConditionTest {
    Equal { operands: [ConditionOperand; 2], holds: bool },
    Order { operator: &'static str, operands: [ConditionOperand; 2], holds: fn(Ordering) -> bool },
    HasKey(Vec<String>),
    In([ConditionOperand; 2]),
    Matches(ConditionOperand, TextPattern),
    All(Vec<ConditionTest>),
    Any(Vec<ConditionTest>),
    Not(Box<ConditionTest>),
}

#[derive(Debug)]
struct ConditionOperand {
    written: String,
    takes: OperandValue,
}

#[derive(Debug)]
enum OperandValue {
    Field(Field),
    Length {
        path: Vec<String>,
        /// Whether the path ends in `?`.
        is_optional: bool,
    },
    /// A moment that is computed.
    Moment(MomentOperand),
}

impl CompiledCondition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// All its faults; their pointers begin at the condition.
    pub fn compile(written: &Condition) -> Result<Self, Vec<LocalFault>> {
        let mut compiler = ConditionCompiler { operators: 0, faults: Vec::new() };
        match compiler.test(written, "") {
            Some(test) if compiler.faults.is_empty() => Ok(Self { test }),
            _ => Err(compiler.faults),
        }
    }

    /// Whether it holds for the values of a scope. `and` and `or` stop at the part that decides.
    ///
    /// # Errors
    /// When an operand is missing or has the wrong type, or two values have no order. Only `hasKey` asks whether a value is there.
    pub fn evaluate(&self, scope: &Scope<'_>, rules: OrderRules<'_>) -> Result<bool, ConditionFault> {
        self.test.evaluate(&JudgedScope { scope, rules, missing: MissingOperand::Fault })
    }

    /// The same for a step of a workflow, whose values may be missing because other steps were skipped: a missing value
    /// equals null and nothing else, is in no list, matches nothing, and has the length 0.
    ///
    /// # Errors
    /// When an operand has the wrong type, one that is to be ordered is missing, or two values have no order.
    pub fn holds(&self, scope: &Scope<'_>, rules: OrderRules<'_>) -> Result<bool, ConditionFault> {
        self.test.evaluate(&JudgedScope { scope, rules, missing: MissingOperand::Absent })
    }
}

struct ConditionCompiler {
    operators: usize,
    faults: Vec<LocalFault>,
}

impl ConditionCompiler {
    /// A part at a JSON pointer. A document is never deeper than its reader allows: the recursion ends.
    fn test(&mut self, written: &Condition, at: &str) -> Option<ConditionTest> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            if self.operators == MAX_OPERATORS + 1 {
                let message = format!("a condition has at most {MAX_OPERATORS} operators");
                self.faults.push(LocalFault::error(codes::TOO_MUCH, "", message));
            }
            return None;
        }
        let order = |operator, holds: fn(Ordering) -> bool| (operator, holds);
        let (operator, holds) = match written {
            Condition::Equal(two) => return self.equal("equal", two, at, true),
            Condition::Eq(two) => return self.equal("eq", two, at, true),
            Condition::NotEqual(two) => return self.equal("notEqual", two, at, false),
            Condition::GreaterThan(_) => order("greaterThan", Ordering::is_gt),
            Condition::LessThan(_) => order("lessThan", Ordering::is_lt),
            Condition::GreaterOrEqual(_) => order("greaterOrEqual", Ordering::is_ge),
            Condition::LessOrEqual(_) => order("lessOrEqual", Ordering::is_le),
            Condition::HasKey(path) => return self.has_key(path, &format!("{at}/hasKey")),
            Condition::In(two) => return self.operands("in", two, at).map(ConditionTest::In),
            Condition::Matches([value, pattern]) => return self.matches(value, pattern, &format!("{at}/matches")),
            Condition::And(parts) => return self.parts(parts, &format!("{at}/and")).map(ConditionTest::All),
            Condition::Or(parts) => return self.parts(parts, &format!("{at}/or")).map(ConditionTest::Any),
            Condition::Not(part) => {
                return self.test(part, &format!("{at}/not")).map(|part| ConditionTest::Not(Box::new(part)));
            }
        };
        let (Condition::GreaterThan(two)
        | Condition::LessThan(two)
        | Condition::GreaterOrEqual(two)
        | Condition::LessOrEqual(two)) = written
        else {
            return None;
        };
        let operands = self.operands(operator, two, at)?;
        Some(ConditionTest::Order { operator, operands, holds })
    }

    fn parts(&mut self, parts: &[Condition], at: &str) -> Option<Vec<ConditionTest>> {
        let tests: Vec<_> =
            parts.iter().enumerate().map(|(index, part)| self.test(part, &format!("{at}/{index}"))).collect();
        tests.into_iter().collect()
    }

    fn equal(&mut self, operator: &str, two: &[Value; 2], at: &str, holds: bool) -> Option<ConditionTest> {
        let operands = self.operands(operator, two, at)?;
        Some(ConditionTest::Equal { operands, holds })
    }

    fn has_key(&mut self, path: &str, at: &str) -> Option<ConditionTest> {
        let read = as_any_path(path).or_else(|| as_any_path(&format!("@{path}")));
        if read.is_none() {
            let fault =
                LocalFault::error(codes::BAD_OPERAND, at, format!("`hasKey` takes a path; {} is none", quoted(path)));
            self.faults.push(fault.help("names with dots between them: {\"hasKey\": \"@input.account\"}"));
        }
        read.map(ConditionTest::HasKey)
    }

    fn matches(&mut self, value: &Value, pattern: &Value, at: &str) -> Option<ConditionTest> {
        let swapped = swapped_pattern(value, pattern);
        let value = self.operand("matches", value, &format!("{at}/0"));
        let is_path = |pattern: &Value| pattern.as_str().is_some_and(|text| as_any_path(text).is_some());
        let text = pattern.as_str().filter(|_| !is_path(pattern));
        match (value, text.and_then(TextPattern::read)) {
            (Some(value), Some(pattern)) => Some(ConditionTest::Matches(value, pattern)),
            // The rules of `check` report a pattern that is no text, or can't be read.
            (_, Some(_)) => None,
            (_, None) => {
                let message = match text {
                    Some(text) => format!("{} is no regular expression that can be read", quoted(text)),
                    None => format!("the pattern of `matches` is written out; {} was given", short(pattern)),
                };
                let meant = text.and_then(pattern_of_ending);
                let help = match (text, swapped) {
                    (Some(text), _) => pattern_help(text, meant.as_deref()),
                    (None, Some(swapped)) => format!("the value comes first, then its pattern: {swapped}"),
                    (None, None) => {
                        "a pattern is a text that the author writes: {\"matches\": [\"@input.id\", \"^INV-\"]}"
                            .to_owned()
                    }
                };
                let fault = LocalFault::error(codes::BAD_OPERAND, format!("{at}/1"), message);
                self.faults.push(LocalFault { replacement: meant, ..fault.help(help) });
                None
            }
        }
    }

    fn operands(&mut self, operator: &str, two: &[Value; 2], at: &str) -> Option<[ConditionOperand; 2]> {
        let [one, other] = two;
        let one = self.operand(operator, one, &format!("{at}/{operator}/0"));
        let other = self.operand(operator, other, &format!("{at}/{operator}/1"));
        one.zip(other).map(|(one, other)| [one, other])
    }

    fn operand(&mut self, operator: &str, written: &Value, at: &str) -> Option<ConditionOperand> {
        if is_moment(written) {
            return match moment_of(operator, written) {
                Ok(moment) => Some(ConditionOperand { written: short(written), takes: OperandValue::Moment(moment) }),
                Err(fault) => {
                    self.faults.push(fault.under(at));
                    None
                }
            };
        }
        let length = written.as_object().filter(|members| members.len() == 1).and_then(|members| members.get("length"));
        let takes = match length {
            Some(written) => match written.as_str().and_then(as_any_path) {
                Some(path) => Some(OperandValue::Length {
                    path,
                    is_optional: written.as_str().and_then(as_optional_path).is_some(),
                }),
                None => {
                    let message = format!("`length` takes an `@path`; {} was given", short(written));
                    let at = format!("{at}/{}", token("length"));
                    let fault = LocalFault::error(codes::BAD_OPERAND, at, message);
                    self.faults.push(fault.help("{\"length\": \"@input.items\"}"));
                    None
                }
            },
            None => Some(OperandValue::Field(field(written))),
        };
        takes.map(|takes| ConditionOperand { written: short(written), takes })
    }
}

/// What a missing operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingOperand {
    Fault,
    /// A value that is not there.
    Absent,
}

/// What a condition is judged by.
struct JudgedScope<'j, 's> {
    scope: &'j Scope<'s>,
    rules: OrderRules<'j>,
    missing: MissingOperand,
}

impl JudgedScope<'_, '_> {
    /// A value, or the list or object that it is the JSON of: one rule for paths, loops, matchers and conditions.
    fn read(&self, value: Value) -> Value {
        match &value {
            Value::String(text) if self.rules.reads_json => self.scope.json_of(text).unwrap_or(value),
            _ => value,
        }
    }
}

impl From<Unresolved> for ConditionFault {
    fn from(unresolved: Unresolved) -> Self {
        Self(unresolved.why)
    }
}

impl ConditionTest {
    fn evaluate(&self, by: &JudgedScope<'_, '_>) -> Result<bool, ConditionFault> {
        let JudgedScope { scope, missing, rules } = *by;
        match self {
            Self::Equal { operands: [one, other], holds } => {
                let spelt =
                    |operand: &ConditionOperand| operand.value(by).map(|value| spelling(&value.unwrap_or(Value::Null)));
                Ok((spelt(one)? == spelt(other)?) == *holds)
            }
            Self::Order { operator, operands: [one, other], holds } => {
                if missing == MissingOperand::Absent && (one.is_left_out(scope)? || other.is_left_out(scope)?) {
                    return Ok(false);
                }
                let values = [one.ordered(by)?, other.ordered(by)?];
                rules.compare(operator, [one, other], scope, values).map(holds)
            }
            Self::HasKey(path) => Ok(scope.optional(path)?.is_some()),
            Self::In([one, list]) => {
                let values = one.value(by)?.zip(list.value(by)?.map(|items| by.read(items)));
                let Some((entry, items)) = values else { return Ok(false) };
                let Value::Array(items) = items else {
                    return Err(ConditionFault(format!(
                        "{} is {}, and `in` looks into a list",
                        list.written,
                        value_kind(&items)
                    )));
                };
                let entry = spelling(&entry);
                Ok(items.iter().any(|item| spelling(item) == entry))
            }
            Self::Matches(one, pattern) => {
                let Some(value) = one.value(by)? else { return Ok(false) };
                let Value::String(text) = &value else {
                    let why = format!("{} is {}, and `matches` looks into a text", one.written, value_kind(&value));
                    return Err(ConditionFault(why));
                };
                let too_much =
                    || ConditionFault(format!("{} takes too long to be compared with the pattern", one.written));
                pattern.is_in(text).ok_or_else(too_much)
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.evaluate(by)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.evaluate(by)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(part) => part.evaluate(by).map(|holds| !holds),
        }
    }
}

impl ConditionOperand {
    /// Whether it is an `@x.y?` without a value.
    fn is_left_out(&self, scope: &Scope<'_>) -> Result<bool, ConditionFault> {
        match &self.takes {
            OperandValue::Field(Field::Optional(path)) => Ok(scope.optional(path)?.is_none()),
            _ => Ok(false),
        }
    }

    /// The value; none when it is missing and that is no fault.
    fn value(&self, by: &JudgedScope<'_, '_>) -> Result<Option<Value>, ConditionFault> {
        let JudgedScope { scope, missing, rules } = *by;
        // The names that a model wrote are no part of a sentence of the engine.
        let fault = || ConditionFault(format!("{} is missing", self.written));
        let absent = |value: Value| if missing == MissingOperand::Absent { Ok(Some(value)) } else { Err(fault()) };
        match &self.takes {
            OperandValue::Field(field) => match field.resolve(scope) {
                Ok(value) => Ok(Some(value)),
                Err(why) if scope.is_fault(&why) => Err(why.into()),
                // What is no JSON is most often not what the author waits for: a page that says that a server is down.
                Err(why) if why.kind == UnresolvedKind::BelowText && !matches!(field, Field::Optional(_)) => {
                    Err(why.into())
                }
                Err(why) if missing == MissingOperand::Absent => match field {
                    Field::Path(_) if rules.reads_json && why.is_broken() => Err(why.into()),
                    _ => Ok(None),
                },
                Err(_) => Err(fault()),
            },
            // What it is counted from.
            OperandValue::Moment(MomentOperand { from, .. }) => match from {
                Some(from) => from.resolve(scope).map(Some).map_err(|_| fault()),
                None => Ok(None),
            },
            OperandValue::Length { path, is_optional } => {
                let value = match scope.lookup(path) {
                    Ok(value) => value,
                    Err(why) if scope.is_fault(&why) => return Err(why.into()),
                    Err(why) if why.kind == UnresolvedKind::BelowText && !is_optional => return Err(why.into()),
                    Err(_) => return absent(0.into()),
                };
                let length = |value: &Value| match value {
                    Value::Array(items) => Ok(Some(items.len().into())),
                    Value::Object(members) => Ok(Some(members.len().into())),
                    Value::String(text) => Ok(Some(text.chars().count().into())),
                    other => Err(ConditionFault(format!(
                        "the value of {} is {}, and has no length",
                        self.written,
                        value_kind(other)
                    ))),
                };
                if rules.reads_json { scope.with_json(value, length) } else { length(&value) }
            }
        }
    }

    /// The value of an operand that is to be ordered.
    fn ordered(&self, by: &JudgedScope<'_, '_>) -> Result<Value, ConditionFault> {
        // A length is 0 where its value is missing; nothing else has an order then.
        let missing =
            if matches!(self.takes, OperandValue::Length { .. }) { by.missing } else { MissingOperand::Fault };
        Ok(self.value(&JudgedScope { missing, ..*by })?.unwrap_or(Value::Null))
    }
}

/// A literal, an `@path`, or a list of them. A text with `{{ }}` is a literal in a condition.
fn field(written: &Value) -> Field {
    match written {
        Value::String(text) => match (as_path(text), as_optional_path(text)) {
            (Some(path), _) => Field::Path(path),
            (None, Some(path)) => Field::Optional(path),
            (None, None) => Field::Literal(written.clone()),
        },
        Value::Array(items) => Field::Array(items.iter().map(field).collect()),
        _ => Field::Literal(written.clone()),
    }
}

/// A written operand in a sentence.
fn short(written: &Value) -> String {
    let text = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    format!("`{}`", cut(&text))
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
