//! Conditions of approvals that hold for no call, by the schema of its input: nobody would ever be asked.

use serde_json::{Value, json};

use super::constant::Constant;
use super::constant_condition::{never_holds, path_and_word};
use crate::check::condition::{Operand, OperandForm, PartOfCall, WrittenCondition, WrittenOperator};
use crate::compile::Effort;
use crate::compile::steps::{JsonTypes, KnownValue};
use crate::program::canonical::is_same;
use crate::program::condition::{CompiledCondition, OrderRules};
use crate::program::json_texts::JsonRule;
use crate::program::reference::Scope;
use crate::syntax::quoted;

/// The most words of a value that are held against a pattern.
const MAX_MATCHED_WORDS: usize = 50;
/// The most names that a help lists.
const MAX_LISTED_NAMES: usize = 12;

/// The one outcome of an operator, if it makes the whole condition hold for no call.
pub(super) fn constant(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    effort: &Effort,
) -> Option<Constant> {
    let constant = match (condition.operator, condition.operands.as_slice()) {
        ("hasKey", _) => of_key(whole, condition, effort),
        ("equal" | "eq" | "notEqual", [one, other]) => {
            of_itself(whole, condition, [one, other]).or_else(|| of_null(whole, condition, [one, other]))
        }
        ("greaterThan" | "lessThan" | "greaterOrEqual" | "lessOrEqual", [one, other])
            // What is no number and no time can't be judged, and the call asks.
            if one.known.types == JsonTypes::NUMBER =>
        {
            of_itself(whole, condition, [one, other])
        }
        ("matches", [one, pattern]) => of_pattern(condition, one, pattern),
        ("and" | "or", []) => of_all_words(whole, condition),
        _ => None,
    }?;
    (whole.is_of_call() && never_holds(whole, condition, constant.holds)).then_some(constant)
}

fn of_key(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>, effort: &Effort) -> Option<Constant> {
    let path = condition.written.as_str()?;
    let name = path.trim_start_matches('@').trim_end_matches('?').strip_prefix("input.")?;
    match whole.part_of_call(path) {
        PartOfCall::Open => None,
        PartOfCall::Always => {
            let why = format!("each call has `{name}`");
            let advice =
                "a call without it is refused before anybody is asked: name what a call may leave out".to_owned();
            Some(Constant { advice: Some(advice), ..Constant::new(true, &condition.at, why) })
        }
        PartOfCall::Never => {
            let names = whole.names_of_call();
            let near = effort.nearest(name, names.iter().copied());
            let listed: Vec<String> = names.iter().take(MAX_LISTED_NAMES).map(|name| format!("`{name}`")).collect();
            let advice = match listed.is_empty() {
                true => "a call takes nothing".to_owned(),
                false => format!("no call would ask for approval; a call takes {}", listed.join(", ")),
            };
            let meant = near.map(|near| quoted(&format!("@input.{near}")));
            let why = format!("by its schema, the input of the call has no `{name}`");
            Some(Constant { meant, advice: Some(advice), ..Constant::new(false, &condition.at, why) })
        }
    }
}

/// A value that is compared with itself.
fn of_itself(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    operands: [&Operand<'_>; 2],
) -> Option<Constant> {
    let [one, other] = operands;
    // Without the value, the condition can't be judged, and the call asks.
    let is_there = one.written.as_str().is_some_and(|path| whole.part_of_call(path) == PartOfCall::Always);
    let is_same = one.form == OperandForm::Path && one.written == other.written && is_there;
    is_same.then(|| {
        let why = format!("both operands are {}", one.called());
        let advice = Some("compare it with another value".to_owned());
        let holds = matches!(condition.operator, "equal" | "eq" | "greaterOrEqual" | "lessOrEqual");
        Constant { advice, ..Constant::new(holds, &condition.at, why) }
    })
}

/// A value that each call has, compared with null.
fn of_null(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    [one, other]: [&Operand<'_>; 2],
) -> Option<Constant> {
    let (null, value) = if one.written.is_null() { (one, other) } else { (other, one) };
    let path = value.written.as_str().filter(|_| null.written.is_null() && value.form == OperandForm::Path)?;
    (whole.part_of_call(path) == PartOfCall::Always).then(|| {
        let why = format!("each call has {}, and it is never null", value.called());
        let advice = Some("compare it with a value that it may have".to_owned());
        Constant { advice, ..Constant::new(condition.operator == "notEqual", &null.at, why) }
    })
}

/// The outcome of a condition over an input, if it can be judged.
pub(super) fn outcome(condition: &Value, input: &Value) -> Option<bool> {
    let condition = CompiledCondition::compile(&serde_json::from_value(condition.clone()).ok()?).ok()?;
    let scope = Scope::of_input(input, JsonRule::Plain.into());
    condition.evaluate(&scope, OrderRules::PRESENT).ok()
}

/// A pattern that none of the words matches which a value may be.
fn of_pattern(condition: &WrittenOperator<'_>, one: &Operand<'_>, pattern: &Operand<'_>) -> Option<Constant> {
    let words = one.known.words.as_deref().filter(|words| words.len() <= MAX_MATCHED_WORDS)?;
    if one.form != OperandForm::Path || pattern.form != OperandForm::Literal {
        return None;
    }
    let matching = json!({ "matches": ["@input.word", pattern.written] });
    // What can't be judged is left to the run.
    let holds = |word: &Value| outcome(&matching, &json!({ "word": word })).unwrap_or(true);
    if words.iter().any(holds) {
        return None;
    }
    let why = format!("{} {}, and the pattern matches none", one.called(), one.known.called());
    Some(Constant {
        advice: Some("write a pattern that one of them matches".to_owned()),
        ..Constant::new(false, &condition.at, why)
    })
}

/// Parts that name each of the words that one value may be: it is always one of them.
fn of_all_words(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>) -> Option<Constant> {
    let parts = condition.written.as_array()?;
    let holds = condition.operator == "or";
    let operators: &[&str] = if holds { &["equal", "eq"] } else { &["notEqual"] };
    let named: Vec<(&str, &Value)> = parts.iter().filter_map(|part| path_and_word(part, operators)).collect();
    let (path, _) = *named.first()?;
    let known = whole.known("", path).filter(|_| whole.part_of_call(path) == PartOfCall::Always)?;
    let KnownValue { words: Some(words), .. } = &*known else { return None };
    let is_named = |word: &Value| named.iter().any(|(other, named)| *other == path && is_same(named, word));
    words.iter().all(is_named).then(|| {
        let why = format!("`{path}` {}, and each of them is named", known.called());
        let advice = Some("leave out those for which nobody is to be asked".to_owned());
        Constant { advice, ..Constant::new(holds, &condition.at, why) }
    })
}
