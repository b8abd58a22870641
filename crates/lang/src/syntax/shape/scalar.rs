//! Single values: types, words, limits, lengths.

use serde_json::{Number, Value};

use super::document_schemas::description;
use super::form::SchemaForm;
use super::{Walker, listed};
use crate::diagnostic::{Diagnostic, codes, is_lone};
use crate::policy::durations::written_milliseconds;
use crate::policy::json_text;
use crate::syntax::decimal::Decimal;
use crate::syntax::foreign_words;
use crate::syntax::{Node, NodeKind, quoted, token};

/// The longest value that a message or a suggestion repeats, in bytes.
const MAX_SHOWN_BYTES: usize = 200;

/// The most fields that a help names.
const MAX_NAMED_FIELDS: usize = 8;

/// A time that a text says, as the number that its field takes.
struct WrittenTime {
    number: u64,
    unit: &'static str,
}

/// The fields of the objects of a form, those that are required first.
fn fields_of(form: &SchemaForm) -> Vec<String> {
    let object = form.any_of.iter().find(|branch| branch.types.contains(&"object"));
    let form = object.map_or(form, |branch| &**branch);
    let fields = form.schema.get("properties").and_then(Value::as_object);
    let others = fields.into_iter().flatten().map(|(name, _)| name.as_str());
    let others = others.filter(|name| !form.required.contains(name));
    let keyed = form.keyed.iter().map(|(name, _)| *name);
    let names = form.required.iter().copied().chain(others).chain(keyed);
    names.take(MAX_NAMED_FIELDS).map(|name| format!("`{name}`")).collect()
}

impl Walker<'_> {
    /// `takes_item`: whether a list here could hold the value as its entry.
    pub(super) fn wrong_types(&mut self, form: &SchemaForm, types: &[&str], node: &Node, takes_item: bool) {
        if self.full() {
            return;
        }
        let mut expected: Vec<String> = Vec::new();
        for name in types.iter().filter(|name| **name != "null").map(|name| called(name).to_owned()) {
            if !expected.contains(&name) {
                expected.push(name);
            }
        }
        if expected.is_empty() {
            expected.push("null".to_owned());
        }
        let message = format!("{} must be {}; {} was given", self.label(), listed(&expected), self.given(node));
        let fault = Diagnostic::error(codes::WRONG_TYPE, message, self.pointer.as_str(), self.place(node.span));
        let raw = self.tree.raw(node.span);
        let takes = |name: &str| types.contains(&name);
        let meant = self.meant_value(form, types, node);
        let fault = match &node.kind {
            _ if let Some(meant) = meant => match meant.instead {
                Some(instead) => fault.help(meant.help).suggest(instead),
                None => fault.help(meant.help),
            },
            NodeKind::String(text) if self.meant_without_quotes(types, text) => {
                fault.help("take the quotes away").suggest(&**text)
            }
            NodeKind::Bool(true) if self.pointer.ends_with("/require_tool_before_answer") => {
                fault.help("name the tool that must have been called, or a list of tools: \"lookup\"")
            }
            NodeKind::Number(_) | NodeKind::Bool(_) if takes("string") && !takes("object") => {
                fault.help("put it into quotes").suggest(quoted(raw))
            }
            NodeKind::Null => fault.help("leave the field out, or give it a value"),
            kind if let Some(help) = self.help_of_place(kind, takes("array"), takes_item) => fault.help(help),
            // As an entry it would be a text like any other.
            NodeKind::String(text)
                if takes("array") && takes_item && (text.starts_with('@') || text.contains("{{")) =>
            {
                fault.help("the entries are written out: no value of the run is read here")
            }
            _ if takes("array") && takes_item && raw.len() <= MAX_SHOWN_BYTES => {
                fault.help("an array of one entry is written in `[` and `]`").suggest(format!("[{raw}]"))
            }
            NodeKind::String(text) if takes("integer") || takes("number") => match self.written_time(text) {
                Some(WrittenTime { number, unit }) => {
                    fault.help(format!("the value is in {unit}: {number}")).suggest(number.to_string())
                }
                None => fault,
            },
            _ if takes("object") => match fields_of(form).as_slice() {
                [] => fault,
                names => fault.help(format!("its fields are {}", names.join(", "))),
            },
            _ => match description(form.schema) {
                Some(about) => fault.help(format!("{}: {about}", self.label())),
                None => fault,
            },
        };
        self.report(fault);
    }

    /// What helps where an object or a list is given in the place of another one that this place has.
    fn help_of_place(&self, kind: &NodeKind, takes_list: bool, takes_item: bool) -> Option<String> {
        let is_at = |end: &str| takes_list && self.pointer.ends_with(end);
        Some(match kind {
            NodeKind::Object(members) if is_at("/params") => {
                let name = members.first().map_or("name", |member| &*member.key);
                format!("leave `params` out: `:{name}` in the query takes the value of `{name}`")
            }
            NodeKind::Object(_) if is_at("/ask") => "name a target of `notify`, or several: [\"ops\"]".to_owned(),
            NodeKind::Object(fields) if is_at("/properties/fields") => {
                let (name, of) = fields.first().map_or(("name", None), |field| (&*field.key, field.value.as_str()));
                let of = of.filter(|of| ["text", "number", "integer", "date", "yes_no"].contains(of)).unwrap_or("text");
                format!("it is a list with an entry for each field: [{{\"name\": {name:?}, \"type\": \"{of}\"}}]")
            }
            NodeKind::Object(_) if is_at("/expected_keys") && !takes_item => {
                "it is a list of texts; what each one is, `fields` says: [{\"name\": \"go\", \"type\": \"yes_no\"}]"
                    .to_owned()
            }
            NodeKind::Object(_) if takes_list && !takes_item => {
                "it is a list of texts, like [\"name\"], and what each one means is not said here".to_owned()
            }
            NodeKind::Array(_) if self.pointer == "/models" => {
                "each model has its name: {\"main\": {\"provider\": \"openai\", \"model\": \"gpt-4o-mini\"}}".to_owned()
            }
            _ => return None,
        })
    }

    /// The number that is meant by a text with a unit, where the name of the field says the unit.
    fn written_time(&self, text: &str) -> Option<WrittenTime> {
        let (unit, milliseconds) = match self.pointer.rsplit('/').next()? {
            name if name.ends_with("_ms") => ("milliseconds", 1),
            name if name.ends_with("_seconds") => ("seconds", 1_000),
            _ => return None,
        };
        let number = written_milliseconds(text)?;
        (number % milliseconds == 0).then(|| WrittenTime { number: number / milliseconds, unit })
    }

    /// The path of the value that a name without its `@` means in a condition: an approval is about the input of a call,
    /// and a lone name may be that of an input of the run.
    pub(super) fn named_value(&self, path: &str) -> String {
        let first = path.split('.').next().unwrap_or_default();
        let is_of_run = self.tree.at(&format!("/input/properties/{}", token(first))).is_some();
        let is_of_call = self.pointer.ends_with("/requires_approval");
        if first != "input" && (is_of_call || is_of_run) { format!("input.{path}") } else { path.to_owned() }
    }

    fn meant_without_quotes(&self, types: &[&str], text: &str) -> bool {
        let takes = |name: &str| types.contains(&name);
        let number = json_text::is_number(text);
        (takes("boolean") && matches!(text, "true" | "false"))
            || (takes("number") && number)
            || (takes("integer") && number && is_whole(text))
    }

    /// Checks that a value is one of some words.
    pub(super) fn word(&mut self, words: &[&str], node: &Node) -> Option<Value> {
        let text = node.as_str();
        if text.is_some_and(|text| words.contains(&text)) {
            return Some(node.value());
        }
        if self.full() {
            return None;
        }
        let quoted_words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        let message = format!("{} must be {}; {} was given", self.label(), listed(&quoted_words), self.given(node));
        let code = if text.is_some() { codes::WRONG_WORD } else { codes::WRONG_TYPE };
        let fault = Diagnostic::error(code, message, self.pointer.as_str(), self.place(node.span));
        // What a word means elsewhere is surer than how it is written.
        let is_meant = text.and_then(|text| foreign_words::meant(text, words)).is_some();
        let near =
            text.filter(|_| !is_meant).and_then(|text| Some((text, self.nearest.of(text, words.iter().copied())?)));
        self.report(match near {
            Some((text, near)) => {
                let fault = fault.help(format!("the nearest is `{near}`"));
                if is_lone(text, words.iter().copied()) { fault.suggest(quoted(near)) } else { fault }
            }
            None => match text.filter(|_| words.contains(&"openai")).and_then(foreign_words::provider) {
                Some(help) => fault.help(help),
                None => match text.filter(|_| words.contains(&"command")).and_then(foreign_words::kind) {
                    Some(kind) if words.contains(&kind) => {
                        fault.help(format!("it is called `{kind}` here")).suggest(quoted(kind))
                    }
                    _ => match text.and_then(|text| foreign_words::meant(text, words)) {
                        Some((ours, help)) => {
                            let help = help.map_or_else(|| format!("it is called `{ours}` here"), str::to_owned);
                            fault.help(help).suggest(quoted(ours))
                        }
                        None if words == ["day", "month"] => {
                            fault.help("a limit counts the days or the months of the calendar")
                        }
                        // A limit for each day is one that is for a day.
                        None if let Some(time @ ("day" | "month")) = text
                            && words.contains(&"org") =>
                        {
                            fault.help(format!("the time that a limit is for is `every`: \"every\": \"{time}\""))
                        }
                        None => fault,
                    },
                },
            },
        });
        None
    }

    pub(super) fn length(&mut self, form: &SchemaForm, node: &Node, text: &str) {
        let (least, most) = form.length;
        if least.is_none() && most.is_none() {
            return;
        }
        let length = text.chars().count();
        let message = match (least, most) {
            (Some(least), _) if length < least && length == 0 => format!("{} must not be empty", self.label()),
            (Some(least), _) if length < least => {
                format!("{} must have at least {least} characters; it has {length}", self.label())
            }
            (_, Some(most)) if length > most => {
                format!("{} may have at most {most} characters; it has {length}", self.label())
            }
            _ => return,
        };
        let fault = Diagnostic::error(codes::WRONG_LENGTH, message, self.pointer.as_str(), self.place(node.span));
        self.report(fault);
    }

    /// Checks the number of items of an array. `false` when the types can't read that many.
    pub(super) fn count(&mut self, form: &SchemaForm, node: &Node, count: usize) -> bool {
        let wanted = match form.count {
            (Some(least), Some(most)) if least == most && count != least => format!("exactly {least}"),
            (Some(least), _) if count < least => format!("at least {least}"),
            (_, Some(most)) if count > most => format!("at most {most}"),
            _ => return true,
        };
        let message = format!("{} must have {wanted} entries; it has {count}", self.label());
        let place = self.place(node.span);
        let fault = Diagnostic::error(codes::WRONG_LENGTH, message, self.pointer.as_str(), place);
        self.report(match form.count {
            // Only the operands of a condition are pairs.
            (Some(2), Some(2)) => fault.help("an operator compares two operands; `in` looks for one value in a list"),
            _ => fault,
        });
        form.count.0 != form.count.1
    }

    /// Checks a number, and spells it for serde where a number is expected.
    pub(super) fn number(&mut self, form: &SchemaForm, node: &Node, digits: &str) -> Option<Value> {
        let types = &form.types;
        if types.is_empty() {
            return Some(node.value());
        }
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        let (low, high) = &form.bounds;
        let under = low.as_ref().is_some_and(|low| compare(digits, low).is_none_or(|order| order.is_lt()));
        let over = high.as_ref().is_some_and(|high| compare(digits, high).is_none_or(|order| order.is_gt()));
        if under || over || number.is_none() {
            // A limit that only results from the type of the field matters only to values beyond it.
            let bounds = match (low, high.as_ref().filter(|high| !under || high.len() <= 9)) {
                (Some(_), Some(high)) if high.len() > 9 => format!("at most {high}"),
                (Some(low), Some(high)) => format!("from {low} to {high}"),
                (Some(low), None) => format!("at least {low}"),
                (None, Some(high)) => format!("at most {high}"),
                (None, None) => "a number that a computer can hold".to_owned(),
            };
            let message = format!("{} must be {bounds}; {} was given", self.label(), self.given(node));
            let place = self.place(node.span);
            let fault = Diagnostic::error(codes::OUT_OF_BOUNDS, message, self.pointer.as_str(), place);
            let is_share = (low.as_deref(), high.as_deref()) == (Some("0"), Some("1"));
            self.report(match number.filter(|number| is_share && *number > 1.0 && *number <= 100.0) {
                Some(percent) => {
                    let share = percent / 100.0;
                    fault
                        .help(format!("it is a share, and no percentage: {percent} % are {share}"))
                        .suggest(share.to_string())
                }
                None => fault,
            });
            return None;
        }
        Some(match number {
            Some(_) if types.contains(&"integer") => whole(digits).unwrap_or_else(|| node.value()),
            Some(number) if digits.parse::<i64>().is_err() => {
                Number::from_f64(number).map_or(node.value(), Value::Number)
            }
            _ => node.value(),
        })
    }

    /// The given value, for a message.
    fn given(&self, node: &Node) -> String {
        let raw = self.tree.raw(node.span);
        match &node.kind {
            NodeKind::Null => "null".to_owned(),
            NodeKind::Bool(_) => raw.to_owned(),
            NodeKind::Number(_) if raw.len() <= MAX_SHOWN_BYTES => raw.to_owned(),
            NodeKind::Number(_) => "a very long number".to_owned(),
            NodeKind::String(text) if text.is_empty() => "an empty text".to_owned(),
            NodeKind::String(_) if raw.len() <= 60 => format!("the text {raw}"),
            NodeKind::String(_) => "a text".to_owned(),
            NodeKind::Array(_) => "an array".to_owned(),
            NodeKind::Object(_) => "an object".to_owned(),
            NodeKind::Fault => "something unreadable".to_owned(),
        }
    }
}

/// The name of a JSON Schema type in messages.
fn called(name: &str) -> &str {
    match name {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// Compares a number with a bound, by all of its digits.
fn compare(digits: &str, bound: &str) -> Option<std::cmp::Ordering> {
    match (digits.parse::<i64>(), bound.parse::<i64>()) {
        (Ok(number), Ok(bound)) => Some(number.cmp(&bound)),
        _ => Some(Decimal::read(digits)?.compare(&Decimal::read(bound)?)),
    }
}

/// Whether a number has no fraction: `10`, `10.0` and `1e1` have none.
pub(super) fn is_whole(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_digit()) || Decimal::read(digits).is_some_and(|number| number.is_whole())
}

/// A whole number in digits alone.
fn whole(digits: &str) -> Option<Value> {
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return digits.parse().ok().map(Value::Number);
    }
    Decimal::read(digits)?.whole()?.parse().ok().map(Value::Number)
}
