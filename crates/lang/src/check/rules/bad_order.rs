//! The operands of an order, which compares two numbers or two times.

use serde_json::{Value, json};

use crate::check::Rule;
use crate::check::condition::{Operand, OperandForm, WrittenCondition, WrittenOperator};
use crate::compile::steps::{DeclaredText, JsonTypes, KnownValue};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::condition::TIME_FORMS;
use crate::program::exact_text::{number_of, time_of};
use crate::program::reference::as_path;
use crate::syntax::quoted;

/// What an order compares, in a sentence.
const COMPARES: &str = "compares two numbers or two times";

/// What an operand may be.
#[derive(Debug, Clone, Copy)]
struct OrderedTypes {
    number: bool,
    time: bool,
}

impl OrderedTypes {
    fn of(known: &KnownValue) -> Self {
        let is_text = known.types.meets(JsonTypes::TEXT);
        if let Some(words) = &known.words {
            let is_time = |text: &str| time_of(text, &jiff::tz::TimeZone::UTC).is_some();
            let is_number =
                |word: &Value| word.is_number() || word.as_str().is_some_and(|text| number_of(text).is_some());
            return Self {
                number: words.iter().any(is_number),
                time: words.iter().any(|word| word.as_str().is_some_and(is_time)),
            };
        }
        let may_be_number = known.types.meets(JsonTypes::NUMBER);
        match known.text {
            DeclaredText::Formatted("a date" | "a date with a time") => Self { number: may_be_number, time: is_text },
            DeclaredText::Formatted(_) => Self { number: may_be_number, time: false },
            DeclaredText::Open | DeclaredText::Plain | DeclaredText::Cell | DeclaredText::Reply => {
                Self { number: may_be_number || is_text, time: is_text }
            }
        }
    }
}

/// Reports operands that have no order, and pairs that have none.
pub(super) fn operands(
    rule: &'static Rule,
    whole: &WrittenCondition<'_>,
    condition: &WrittenOperator<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let before = found.len();
    let judge = OrderJudge { rule, whole, operator: condition.operator };
    let types: Vec<OrderedTypes> = condition.operands.iter().map(|operand| OrderedTypes::of(&operand.known)).collect();
    for (operand, types) in condition.operands.iter().zip(&types) {
        found.extend((!types.number && !types.time).then(|| judge.wrong_type(operand)));
        found.extend(judge.no_time(operand));
    }
    let ([one, other], [left, right]) = (condition.operands.as_slice(), types.as_slice()) else { return };
    if found.len() == before && !(left.number && right.number) && !(left.time && right.time) {
        found.push(judge.wrong_pair(one, other));
    }
    if found.len() == before {
        found.extend(judge.declared_text(one, *right));
        found.extend(judge.declared_text(other, *left));
        found.extend(judge.quoted_number(one));
        found.extend(judge.quoted_number(other));
    }
}

/// The number that a text means in which groups of three digits are separated and cents follow: `1.000,00`, `1,000.00`.
fn separated_number(text: &str) -> Option<String> {
    let (whole, cents) = text.split_at_checked(text.len().checked_sub(3)?)?;
    let cents_mark = cents.chars().next().filter(|mark| matches!(mark, '.' | ','))?;
    let cents = cents.get(1..).filter(|cents| cents.bytes().all(|byte| byte.is_ascii_digit()))?;
    let mark = whole.chars().find(|sign| !sign.is_ascii_digit())?;
    let mut groups = whole.split(mark);
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next().filter(|first| first.len() <= 3 && is_number(first))?;
    let rest: Option<Vec<&str>> = groups.map(|group| (group.len() == 3 && is_number(group)).then_some(group)).collect();
    let is_separated = matches!(mark, '.' | ',' | '\'' | ' ') && mark != cents_mark;
    is_separated.then(|| Some(format!("{first}{}.{cents}", rest?.concat()))).flatten()
}

struct OrderJudge<'j, 'a> {
    rule: &'static Rule,
    whole: &'j WrittenCondition<'a>,
    operator: &'j str,
}

impl OrderJudge<'_, '_> {
    fn otherwise(&self) -> &'static str {
        match self.whole.is_of_call() {
            true => "each call would ask for approval",
            false => "the step would fail each time",
        }
    }

    /// A value that is neither a number nor a time.
    fn wrong_type(&self, operand: &Operand<'_>) -> Diagnostic {
        let is_formatted = operand.known.types == JsonTypes::TEXT && operand.known.words.is_none();
        let called = match operand.known.text {
            DeclaredText::Formatted(called) if is_formatted => called.to_owned(),
            _ => operand.known.types.called(),
        };
        let (operator, otherwise) = (self.operator, self.otherwise());
        let message = format!("`{operator}` {COMPARES}; {} is {called}", operand.called());
        let fault = self.whole.cursor(&operand.at).report(self.rule, message);
        let literal = operand.written.as_str().filter(|_| operand.form == OperandForm::Literal);
        if let Some(text) = literal {
            let path = format!("@{text}");
            if as_path(&path).is_some_and(|parts| parts.len() > 1) {
                return fault.help(format!("a path begins with `@`: `{path}`")).suggest(quoted(&path));
            }
            let bare = text.trim();
            if bare != text && number_of(bare).is_some() {
                return fault.help(format!("a number has no quotes and no blanks: {bare}")).suggest(bare);
            }
            if let Some(number) = separated_number(bare) {
                let help = format!("a number has no quotes, no separators and a point: {number}");
                return fault.help(help).suggest(number);
            }
            if text.bytes().filter(u8::is_ascii_digit).count() >= 4 {
                return fault.help(TIME_FORMS);
            }
        }
        if operand.form == OperandForm::Literal {
            return fault.help(format!(
                "words and truth values are compared with `equal` and `notEqual`; with `{operator}` {otherwise}"
            ));
        }
        let is_list = operand.known.types == JsonTypes::LIST;
        if is_list && operand.written.as_str().is_some_and(|text| as_path(text).is_some()) {
            let length = json!({ "length": operand.written });
            let help = format!("{otherwise}: the number of its entries is its length, {length}");
            return fault.help(help).suggest(length.to_string());
        }
        match operand.known.text {
            DeclaredText::Formatted(_) if is_formatted => {
                fault.help("no such text is a number or a date: compare it with `equal`")
            }
            _ => fault.help(format!("{otherwise}: compare another value, or use another operator")),
        }
    }

    /// What a moment counts from, where it is no time.
    fn no_time(&self, operand: &Operand<'_>) -> Option<Diagnostic> {
        let path = operand.written.get("time").filter(|_| operand.form == OperandForm::Moment)?.as_str()?;
        let at = format!("{}/time", operand.at);
        let known = self.whole.known(&at, path)?;
        if OrderedTypes::of(&known).time {
            return None;
        }
        let called = match known.text {
            DeclaredText::Formatted(called) if known.types == JsonTypes::TEXT => called.to_owned(),
            _ if known.words.is_some() => "no time".to_owned(),
            _ => known.types.called(),
        };
        let message = format!("a moment counts from a time; `{path}` is {called}");
        Some(self.whole.cursor(&at).report(self.rule, message).help(format!("{}; {TIME_FORMS}", self.otherwise())))
    }

    /// A number and a time.
    fn wrong_pair(&self, one: &Operand<'_>, other: &Operand<'_>) -> Diagnostic {
        let called = |operand: &Operand<'_>| match OrderedTypes::of(&operand.known) {
            OrderedTypes { number: true, .. } => format!("{} is a number", operand.called()),
            OrderedTypes { .. } => format!("{} is a time", operand.called()),
        };
        let message = format!("`{}` {COMPARES}; {}, and {}", self.operator, called(one), called(other));
        let at = if one.form == OperandForm::Literal { one } else { other };
        let fault = self.whole.cursor(&at.at).report(self.rule, message);
        fault.help(format!("{}; {TIME_FORMS}", self.otherwise()))
    }

    /// A value that its schema declares as a text: it has an order only where it reads as what the other operand is.
    fn declared_text(&self, operand: &Operand<'_>, other: OrderedTypes) -> Option<Diagnostic> {
        let known = &operand.known;
        if known.types != JsonTypes::TEXT || known.words.is_some() || known.text != DeclaredText::Plain {
            return None;
        }
        let message = format!("`{}` {COMPARES}; {} is a text", self.operator, operand.called());
        let fault = self.whole.cursor(&operand.at).report(self.rule, message);
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        let otherwise = if self.whole.is_of_call() { "the call asks for approval" } else { "the step fails" };
        let (read, declared) = match other {
            OrderedTypes { number: true, time: false } => ("a number", "`\"type\": \"number\"`, or give its `pattern`"),
            OrderedTypes { number: false, time: true } => ("a time", "`\"format\": \"date\"` or `\"date-time\"`"),
            _ => ("a number or a time", "`\"type\": \"number\"`, or with `\"format\": \"date\"`"),
        };
        Some(fault.help(format!("where it does not read as {read}, {otherwise}: declare it as {declared}")))
    }

    /// A number in quotes: it counts as one here, and is none where `equal` compares it.
    fn quoted_number(&self, operand: &Operand<'_>) -> Option<Diagnostic> {
        let text = operand.written.as_str().filter(|_| operand.form == OperandForm::Literal)?;
        number_of(text)?;
        let fault = self.whole.cursor(&operand.at).report(self.rule, format!("the number {text} is written as a text"));
        let fault = Diagnostic { severity: Severity::Warning, ..fault };
        Some(fault.help(format!("a number has no quotes: {text}")).suggest(text))
    }
}
