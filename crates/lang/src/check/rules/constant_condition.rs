//! A condition whose outcome is known before the run.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::constant::Constant;
use super::empty_range;
use super::unasked_calls;
use crate::check::condition::{ConditionFacts, Operand, OperandForm, WrittenCondition, WrittenOperator, each_operator};
use crate::check::{Rule, Subject};
use crate::compile::steps::{DeclaredText, JsonTypes, KnownValue, TypedText, listed};
use crate::compile::{Effort, is_flag_column};
use crate::diagnostic::{Diagnostic, Severity, codes, few_of_many};
use crate::policy::json_text;
use crate::program::canonical::is_same;
use crate::program::reference::{PathStep, as_path};
use crate::program::schema::described;
use crate::syntax::quoted;

pub const RULE: Rule = Rule { code: codes::CONSTANT_CONDITION, check };

fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    flags_in_texts(subject, found);
    each_operator(subject, &mut |whole, condition| {
        // A path without its `@`, or in braces, is reported as such.
        let is_bare = |operand: &Operand<'_>| {
            let is_braced = operand.form == OperandForm::Template && whole.is_of_call();
            is_braced || operand.written.as_str().is_some_and(|text| whole.bare_path(&operand.at, text).is_some())
        };
        if condition.operands.iter().any(is_bare) {
            return;
        }
        let effort = &subject.compiled.effort;
        let constant = constant(condition, effort)
            .or_else(|| empty_cell(whole, condition))
            .or_else(|| unasked_calls::constant(whole, condition, effort));
        let Some(constant) = constant else {
            return misspelt_entries(whole, condition, effort, found);
        };
        let outcome = if constant.holds { "always holds" } else { "never holds" };
        let fault = whole
            .cursor(&constant.at)
            .report(&RULE, format!("`{}` {outcome} here: {}", condition.operator, constant.why));
        let literal =
            !condition.operands.is_empty() && condition.operands.iter().all(|one| one.form == OperandForm::Literal);
        // What always holds may be meant as a switch; what no value can meet is a slip.
        let is_never_asked = whole.is_of_call() && never_holds(whole, condition, constant.holds);
        let is_doubtful = constant.is_likely || !is_never_asked && (constant.holds || literal);
        let severity = if is_doubtful { Severity::Warning } else { Severity::Error };
        let fault = Diagnostic { severity, ..fault };
        if let Some(named) = named_inputs(whole, condition).filter(|_| literal) {
            let fault = fault.help(format!("the input of the call is named by its path: {named}"));
            let is_sound = named.is_sound && constant.at == condition.at;
            found.push(if is_sound { fault.suggest(named.operands.to_string()) } else { fault });
            return;
        }
        found.push(match constant.meant {
            Some(word) => fault.help(format!("the nearest one is {word}")).suggest(word),
            None if let Some(advice) = constant.advice => fault.help(advice),
            None if is_never_asked && literal => fault
                .help("no call would ask for approval; a value of the call is named by its `@path`: `@input.total`"),
            None if literal => fault.help("a value of the run is named by its `@path`: `@input.total`"),
            None if condition.operands.is_empty() => {
                fault.help("the parts of an `and` hold together; `or` holds as soon as one of its parts does")
            }
            None if condition.operands.iter().all(|operand| operand.known.types == JsonTypes::NUMBER) => {
                fault.help("a condition with one outcome can be left out; for two outcomes compare with another number")
            }
            None if constant.values.is_some() => {
                fault.help(format!("compare with one of its values: {}", constant.values.unwrap_or_default()))
            }
            None if constant.is_bounded => fault.help("its schema allows no such value: compare with another one"),
            None if let Some(column) = typed_column(condition) => fault.help(format!(
                "a column has texts unless the document's entry in the project says otherwise: {column}"
            )),
            None => fault.help("compare with a value of the same type; a word in quotes is a text"),
        });
    });
}

/// The entry that gives a column the type of what its cells are compared with.
fn typed_column(condition: &WrittenOperator<'_>) -> Option<Value> {
    let [one, other] = condition.operands.as_slice() else { return None };
    let (cell, literal) = if one.form == OperandForm::Literal { (other, one) } else { (one, other) };
    let is_cell = cell.form == OperandForm::Path && cell.known.text == DeclaredText::Cell;
    let kind = match literal.written {
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        _ => return None,
    };
    let column = cell.written.as_str()?.rsplit('.').next().filter(|_| is_cell)?;
    Some(json!({ "columns": { column: kind } }))
}

/// `{{#if row.paid}}` of a column without a type whose cells are `true` and `false`: each text but the empty one holds.
fn flags_in_texts(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.is_step() {
        return;
    }
    for TypedText { at, uses, schemas } in &subject.compiled.steps.typed {
        let Some(text) = subject.document().value.pointer(at).and_then(Value::as_str) else { continue };
        for used in uses.iter().filter(|used| !used.is_printed) {
            let Some((PathStep::Name(first), rest)) = used.path.split_first() else { continue };
            let Some((_, schema)) = schemas.iter().find(|(known, _)| known == first) else { continue };
            if !described(schema, rest).value.is_some_and(is_flag_column) {
                continue;
            }
            let before = text.get(..used.range.start).unwrap_or_default().trim_end();
            let is_asked = ["#if", "#unless", "else if"].iter().any(|word| before.ends_with(word));
            let Some(PathStep::Name(name)) = rest.last().filter(|_| is_asked) else { continue };
            let written = text.get(used.range.clone()).unwrap_or_default();
            let message = format!(
                "`{written}` holds for `false`, too: it is a text of a column without a type, and only the empty text \
                 does not hold"
            );
            let fault = subject.at(at).inside(used.range.clone()).report(&RULE, message);
            let help = format!(
                "say in the document's entry in the project that the column has booleans: {}",
                json!({ "columns": { name.as_str(): "boolean" } })
            );
            found.push(Diagnostic { severity: Severity::Warning, ..fault }.help(help));
        }
        few_of_many(found);
    }
}

/// Whether a condition as a whole never holds, because of an operator with one outcome.
pub(super) fn never_holds(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>, holds: bool) -> bool {
    let below = condition.at.strip_prefix(&whole.at).unwrap_or_default();
    let mut words: Vec<&str> = below.split('/').filter(|word| !word.is_empty()).collect();
    words.pop();
    words.retain(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
    let is_and = |word: &&str| *word == "and";
    let nots = words.iter().skip_while(|word| is_and(word)).count();
    let is_decisive = words.iter().skip_while(|word| is_and(word)).all(|word| *word == "not");
    is_decisive && (holds != (nots % 2 == 0))
}

/// Two operands in which names of the call's input are written as texts, with their paths in place of the names.
struct NamedInputs {
    operands: Value,
    /// Whether a value that is written out may be that of the input beside it.
    is_sound: bool,
}

impl std::fmt::Display for NamedInputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.operands)
    }
}

fn named_inputs(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>) -> Option<NamedInputs> {
    let ConditionFacts::Call(Some(schema)) = whole.facts else { return None };
    let [one, other] = condition.operands.as_slice() else { return None };
    let named = |operand: &Operand<'_>| {
        let name = operand.written.as_str()?;
        let part = schema.get("properties")?.get(name)?;
        as_path(&format!("@input.{name}")).map(|_| (format!("@input.{name}"), KnownValue::of_schema(part, &[])))
    };
    let (path, known, literal, is_first) = match (named(one), named(other)) {
        (Some((path, known)), None) => (path, known, other.written, true),
        (None, Some((path, known))) => (path, known, one.written, false),
        _ => return None,
    };
    // A number in quotes is no number.
    let is_pattern = condition.operator == "matches";
    let number = literal.as_str().filter(|_| !is_pattern);
    let number = number.and_then(|text| json_text::read::<serde_json::Number>(text).ok());
    let number = number.map(Value::Number);
    let fits = |value: &Value| known.as_ref().is_none_or(|known| known.excludes(value).is_none());
    let literal = match number.filter(|number| !fits(literal) && fits(number)) {
        Some(number) => number,
        None => literal.clone(),
    };
    // The pattern, and the list, come second.
    let is_sound = if is_pattern { is_first } else { fits(&literal) && condition.operator != "in" };
    let operands = if is_first { [Value::from(path), literal] } else { [literal, Value::from(path)] };
    Some(NamedInputs { operands: operands.into_iter().collect(), is_sound })
}

/// Entries behind `in` that the value never is, where a word that it may be is near.
fn misspelt_entries(
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    effort: &Effort,
    found: &mut Vec<Diagnostic>,
) {
    let ("in", [one, list]) = (condition.operator, condition.operands.as_slice()) else { return };
    let Some(words) = one.known.words.as_deref().filter(|_| one.form != OperandForm::Literal) else { return };
    for (index, item) in list.written.as_array().into_iter().flatten().enumerate() {
        let is_literal = item.as_str().is_some_and(|text| !text.starts_with('@') && !text.contains("{{"));
        let is_strange = is_literal && one.known.excludes(item).is_some();
        if let Some(word) = is_strange.then(|| nearest_word(item, words, effort)).flatten() {
            let message = format!("`in` never finds {item} here: {} {}", one.called(), one.known.called());
            let fault = whole.cursor(&format!("{}/{index}", list.at)).report(&RULE, message);
            let fault = Diagnostic { severity: Severity::Warning, ..fault };
            found.push(fault.help(format!("the nearest one is {word}")).suggest(word));
        }
    }
}

fn constant(condition: &WrittenOperator<'_>, effort: &Effort) -> Option<Constant> {
    match (condition.operator, condition.operands.as_slice()) {
        ("and" | "or", []) => of_parts(condition),
        ("equal" | "eq" | "notEqual", [one, other]) => of_equality(condition, one, other, effort),
        ("in", [one, list]) => of_membership(condition, one, list),
        ("matches", [one, pattern]) if [one, pattern].iter().all(|operand| operand.form == OperandForm::Literal) => {
            of_literals(condition)
        }
        ("greaterThan" | "lessThan" | "greaterOrEqual" | "lessOrEqual", [one, other]) => {
            of_order(condition, one, other)
        }
        _ => None,
    }
}

fn of_equality(
    condition: &WrittenOperator<'_>,
    one: &Operand<'_>,
    other: &Operand<'_>,
    effort: &Effort,
) -> Option<Constant> {
    let holds = condition.operator == "notEqual";
    let made = |at: &str, why: String| Some(Constant::new(holds, at, why));
    if one.form == OperandForm::Literal && other.form == OperandForm::Literal {
        let holds = is_same(one.written, other.written) != holds;
        return Some(Constant::new(holds, &condition.at, "both operands are written out".to_owned()));
    }
    // What is missing equals null, and nothing else does.
    let is_null = |operand: &Operand<'_>| operand.known.types == JsonTypes::NULL;
    let may_be_null = |operand: &Operand<'_>| operand.known.types.meets(JsonTypes::NULL);
    if is_null(one) || is_null(other) {
        return None;
    }
    if let Some(fault) = super::equal_times::constant(holds, one, other) {
        return Some(fault);
    }
    if let Some(fault) = of_seen_types(holds, one, other) {
        return Some(fault);
    }
    if may_be_null(one) && may_be_null(other) {
        return None;
    }
    let (literal, value) = if one.form == OperandForm::Literal { (one, other) } else { (other, one) };
    if !literal.known.types.meets(value.known.types) {
        let (left, right) = (value.known.types.called(), literal.known.types.called());
        return made(&literal.at, format!("{} is {left}, and {} is {right}", value.called(), literal.called()));
    }
    if literal.form != OperandForm::Literal {
        return None;
    }
    if value.form == OperandForm::Length && !is_count(literal.written) {
        return made(&literal.at, format!("no length is {}", literal.written));
    }
    let why = value.known.excludes(literal.written)?;
    let words = value.known.words.as_deref();
    let meant = words.and_then(|words| nearest_word(literal.written, words, effort));
    let why = if value.form == OperandForm::Length { bounded(value) } else { format!("{} {why}", value.called()) };
    Some(Constant { meant, values: words.map(listed), is_bounded: true, ..Constant::new(holds, &literal.at, why) })
}

/// A cell of a column of texts that is compared with null: an empty cell is the empty text.
fn empty_cell(whole: &WrittenCondition<'_>, condition: &WrittenOperator<'_>) -> Option<Constant> {
    let [one, other] = condition.operands.as_slice() else { return None };
    let (null, cell) = if one.written.is_null() { (one, other) } else { (other, one) };
    let is_equality = matches!(condition.operator, "equal" | "eq" | "notEqual");
    let is_cell = cell.form == OperandForm::Path && cell.known.text == DeclaredText::Cell;
    let is_sure = !cell.known.types.meets(JsonTypes::NULL);
    // Beside a comparison with the empty text, that with null is for other files.
    if !is_equality || !null.written.is_null() || !is_cell || !is_sure || asks_if_empty(whole.written, cell.written) {
        return None;
    }
    let why = format!("{} is a text, and that of an empty cell is \"\"", cell.called());
    let advice = "an empty cell is null with `\"empty\": \"null\"` in the document's entry of the project; else compare \
                  with \"\"";
    let holds = condition.operator == "notEqual";
    let likely = Constant { is_likely: true, advice: Some(advice.to_owned()), ..Constant::new(holds, &null.at, why) };
    Some(likely)
}

/// Whether a part of a condition compares a value with the empty text.
fn asks_if_empty(condition: &Value, path: &Value) -> bool {
    match condition {
        Value::Array(parts) => {
            let is_pair = parts.len() == 2 && parts.contains(path) && parts.contains(&Value::from(""));
            is_pair || parts.iter().any(|part| asks_if_empty(part, path))
        }
        Value::Object(members) => members.values().any(|part| asks_if_empty(part, path)),
        _ => false,
    }
}

/// A value of a column, or of an entry of a file, that is of another type than what it is compared with, as far as that is seen
/// there.
fn of_seen_types(holds: bool, one: &Operand<'_>, other: &Operand<'_>) -> Option<Constant> {
    let is_open = one.known.seen.is_none() && other.known.seen.is_none();
    let (left, right) = (one.known.likely(), other.known.likely());
    if is_open || left.meets(right) {
        return None;
    }
    let at = if one.form == OperandForm::Literal { &one.at } else { &other.at };
    let why = format!("{} is {}, and {} is {}", one.called(), left.called(), other.called(), right.called());
    let is_flag = left.or(right) == JsonTypes::NUMBER.or(JsonTypes::BOOLEAN);
    let advice = is_flag.then(|| "SQLite keeps true and false as 1 and 0: compare with the number".to_owned());
    Some(Constant { advice, is_likely: true, ..Constant::new(holds, at, why) })
}

/// A value that is of another type than the entries of the list at a path.
fn of_other_entries(one: &Operand<'_>, list: &Operand<'_>) -> Option<Constant> {
    let entries = list.known.entries.filter(|_| list.form == OperandForm::Path)?;
    let of_value = one.known.likely();
    if of_value.meets(entries) {
        return None;
    }
    let why = format!(
        "{} is {}, and each entry of {} is {}",
        one.called(),
        of_value.called(),
        list.called(),
        entries.called()
    );
    let at = if one.form == OperandForm::Literal { &one.at } else { &list.at };
    Some(Constant { is_likely: true, ..Constant::new(false, at, why) })
}

/// Operands that are all written out.
fn of_literals(condition: &WrittenOperator<'_>) -> Option<Constant> {
    let holds = unasked_calls::outcome(&json!({ condition.operator: condition.written }), &Value::Null)?;
    Some(Constant::new(holds, &condition.at, "both operands are written out".to_owned()))
}

fn of_membership(condition: &WrittenOperator<'_>, one: &Operand<'_>, list: &Operand<'_>) -> Option<Constant> {
    let Some(items) = list.written.as_array() else { return of_other_entries(one, list) };
    let never = |at: &str, why: String| Some(Constant::new(false, at, why));
    if items.is_empty() {
        return never(&list.at, "the list is empty".to_owned());
    }
    // Entries that are paths have values that are not known here.
    let is_literal = |item: &Value| item.as_str().is_none_or(|text| !is_read(text) && !text.contains("{{"));
    if !items.iter().all(is_literal) {
        return None;
    }
    if one.form == OperandForm::Literal {
        return of_literals(condition);
    }
    // What is missing equals null, and nothing else does.
    if one.known.types.meets(JsonTypes::NULL) && items.iter().any(Value::is_null) {
        return None;
    }
    if let Some(fault) = super::equal_times::constant_in(one, list, items) {
        return Some(fault);
    }
    let types = items.iter().map(JsonTypes::of).reduce(JsonTypes::or)?;
    if !one.known.types.meets(types) {
        let (left, right) = (one.known.types.called(), types.called());
        return never(&list.at, format!("{} is {left}, and each entry of the list is {right}", one.called()));
    }
    let seen = one.known.seen.filter(|seen| !seen.meets(types));
    if let Some(seen) = seen {
        let why = format!("{} is {}, and each entry of the list is {}", one.called(), seen.called(), types.called());
        return Some(Constant { is_likely: true, ..Constant::new(false, &list.at, why) });
    }
    let reasons: Option<Vec<String>> = items.iter().map(|item| one.known.excludes(item)).collect();
    let why = format!("{} {}", one.called(), reasons?.first()?);
    let values = one.known.words.as_deref().map(listed);
    Some(Constant { values, is_bounded: true, ..Constant::new(false, &list.at, why) })
}

/// An order of two numbers that are written out, or of a number that its schema bounds with one.
fn of_order(condition: &WrittenOperator<'_>, one: &Operand<'_>, other: &Operand<'_>) -> Option<Constant> {
    if one.form == OperandForm::Literal && other.form == OperandForm::Literal {
        let (left, right) = (one.written.as_f64()?, other.written.as_f64()?);
        let holds = match condition.operator {
            "greaterThan" => left > right,
            "lessThan" => left < right,
            "greaterOrEqual" => left >= right,
            _ => left <= right,
        };
        return Some(Constant::new(holds, &condition.at, "both operands are written out".to_owned()));
    }
    let (operator, value, bound) = match (one.form, other.form) {
        (_, OperandForm::Literal) => (condition.operator, one, other),
        (OperandForm::Literal, _) => (mirrored(condition.operator), other, one),
        _ => return None,
    };
    // A text that is a number counts as one, and no schema bounds that.
    if value.known.types != JsonTypes::NUMBER {
        return None;
    }
    let holds = value.known.bounds.order(operator, bound.written.as_f64()?)?;
    Some(Constant::new(holds, &condition.at, bounded(value)))
}

fn bounded(value: &Operand<'_>) -> String {
    match value.form {
        OperandForm::Length => format!("{} is {}", value.called(), value.known.bounds.called_count()),
        _ => format!("{} {}", value.called(), value.known.called()),
    }
}

/// The operator that says the same when its operands change places.
pub(super) fn mirrored(operator: &str) -> &str {
    match operator {
        "greaterThan" => "lessThan",
        "lessThan" => "greaterThan",
        "greaterOrEqual" => "lessOrEqual",
        "lessOrEqual" => "greaterOrEqual",
        same => same,
    }
}

/// Conditions that are put together: none at all, or one value that would have to be two.
fn of_parts(condition: &WrittenOperator<'_>) -> Option<Constant> {
    let parts = condition.written.as_array()?;
    let holds = condition.operator == "and";
    if parts.is_empty() {
        return Some(Constant::new(holds, &condition.at, "the list of conditions is empty".to_owned()));
    }
    // `and` of two words for one value never holds, `or` of two words that it is not always does.
    let operators: &[&str] = if holds { &["equal", "eq"] } else { &["notEqual"] };
    let mut equalities = parts.iter().filter_map(|part| path_and_word(part, operators));
    let mut words: HashMap<&str, &Value> = HashMap::new();
    let two = equalities.find_map(|(path, word)| {
        let before = *words.entry(path).or_insert(word);
        (!is_same(before, word)).then_some((path, before, word))
    });
    let Some((path, one, other)) = two else {
        let why = empty_range::reason(parts).filter(|_| holds)?;
        return Some(Constant::new(false, &condition.at, why));
    };
    let why = if holds { "is not both" } else { "is never both" };
    let why = format!("`{path}` {why} {one} and {other}");
    Some(Constant::new(!holds, &condition.at, why))
}

/// The path and the literal that a condition compares with one of these operators.
pub(super) fn path_and_word<'v>(condition: &'v Value, operators: &[&str]) -> Option<(&'v str, &'v Value)> {
    let two = operators.iter().find_map(|operator| condition.get(operator)?.as_array())?;
    let [one, other] = two.as_slice() else { return None };
    let path = |value: &'v Value| value.as_str().filter(|text| is_read(text));
    match (path(one), path(other)) {
        (Some(path), None) if !other.is_object() => Some((path, other)),
        (None, Some(path)) if !one.is_object() => Some((path, one)),
        _ => None,
    }
}

/// Whether a text is the path of a value, or of a file of the project.
fn is_read(text: &str) -> bool {
    text.starts_with('@') || as_path(text).is_some()
}

fn is_count(number: &Value) -> bool {
    number.as_f64().is_none_or(|number| number >= 0.0 && number.fract() == 0.0)
}

fn nearest_word(written: &Value, words: &[Value], effort: &Effort) -> Option<String> {
    Some(quoted(effort.nearest(written.as_str()?, words.iter().filter_map(Value::as_str))?))
}
