//! The fields of a form: what is asked when its step begins, and the one reader of what is filled in. The terminal, the page,
//! the page of a link, HTTP and scenarios all use it.

mod field_value;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::field_value::TIME_PATTERN;
use super::reference::{Field, Scope, Unresolved};
use super::schema::short;
use super::template::{Template, ValueEscape};
use crate::diagnostic::nearest;
use crate::language::form::{FieldType, Form, FormField};
use crate::policy::redact::HIDDEN;

/// The most characters of a text of one line.
pub const MAX_TEXT_CHARS: usize = 1_000;
/// The most characters of a text of several lines.
pub const MAX_LONG_TEXT_CHARS: usize = 20_000;
/// The most fields of a form.
pub const MAX_FIELDS: usize = 100;

/// What a form asks for.
#[derive(Debug)]
pub enum FormAsks {
    /// Keys, each with any value.
    Keys(Vec<String>),
    /// Fields with types.
    Fields(Box<TypedForm>),
}

/// A question with typed fields, before its step begins.
#[derive(Debug)]
pub struct TypedForm {
    question: Template,
    show: Option<Field>,
    fields: Vec<CompiledField>,
}

#[derive(Debug)]
struct CompiledField {
    /// The field as written, without what is computed.
    asked: AskedField,
    /// Whether it must be filled in where it has no default.
    is_required: bool,
    label: Option<Template>,
    help: Option<Template>,
    default: Option<Field>,
    min: Option<Field>,
    max: Option<Field>,
}

/// A field as a human is asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedField {
    /// The name: the member of the answer, and the key that later steps read.
    pub name: String,
    /// What is filled in.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// What the human reads in place of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What the human reads beside the field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Whether an answer without it is refused.
    pub required: bool,
    /// What it is when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The least value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Value>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Value>,
    /// The texts of which one is chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// A form with fields, as a human is asked to fill it in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskedForm {
    /// The question.
    pub question: String,
    /// What the human is shown.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub show: Map<String, Value>,
    /// The fields.
    pub fields: Vec<AskedField>,
}

/// What is wrong with one field of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FieldFault {
    /// The name of the field.
    pub field: String,
    /// Why its value is not taken, in a sentence without a final stop.
    pub message: String,
}

/// Why a form can't be asked.
#[derive(Debug)]
pub enum FormFault {
    /// A value is missing.
    Missing(Unresolved),
    /// A bound or a default does not fit its field.
    Misfit(FieldFault),
}

impl FormAsks {
    /// What a form asks for; none when a part of it can't be compiled, which `check` reports.
    pub fn of(form: &Form) -> Option<Self> {
        let Some(fields) = &form.fields else { return Some(Self::Keys(form.expected_keys.clone()?)) };
        let show = form.show.clone().map(|show| Field::compile(&Value::Object(show)));
        let show = show.transpose().ok()?;
        let fields = fields.iter().map(CompiledField::of).collect::<Option<_>>()?;
        let question = Template::compile(form.question.as_deref()?, ValueEscape::Plain).ok()?;
        Some(Self::Fields(Box::new(TypedForm { question, show, fields })))
    }

    /// The keys that it writes.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let (keys, fields) = match self {
            Self::Keys(keys) => (keys.as_slice(), &[][..]),
            Self::Fields(form) => (&[][..], form.fields.as_slice()),
        };
        keys.iter().map(String::as_str).chain(fields.iter().map(|field| field.asked.name.as_str()))
    }
}

impl CompiledField {
    fn of(field: &FormField) -> Option<Self> {
        let compile = |value: &Option<Value>| value.as_ref().map(Field::compile).transpose().ok();
        let text = |text: &Option<String>| {
            text.as_deref().map(|text| Template::compile(text, ValueEscape::Plain)).transpose().ok()
        };
        Some(Self {
            asked: AskedField::of(field),
            is_required: field.required != Some(false),
            label: text(&field.label)?,
            help: text(&field.help)?,
            default: compile(&field.default)?,
            min: compile(&field.min)?,
            max: compile(&field.max)?,
        })
    }
}

impl TypedForm {
    /// The form as it is asked.
    ///
    /// # Errors
    /// When a value is missing, or is no bound or default of its field.
    pub fn asked(&self, scope: &Scope<'_>, zone: Option<&TimeZone>) -> Result<AskedForm, FormFault> {
        let question = self.question.render(scope).map_err(FormFault::Missing)?;
        let value = |field: &Option<Field>| match field {
            None => Ok(None),
            Some(field) => field.resolve_entry(scope).map_err(FormFault::Missing),
        };
        // With a `?`, null is no bound, as a value that is missing.
        let bound = |field: &Option<Field>| {
            let is_optional = matches!(field, Some(Field::Optional(_)));
            value(field).map(|bound| bound.filter(|bound| !(is_optional && bound.is_null())))
        };
        let text = |template: &Option<Template>| {
            template.as_ref().map(|text| text.render(scope)).transpose().map_err(FormFault::Missing)
        };
        let show = match value(&self.show)? {
            Some(Value::Object(show)) => show,
            _ => Map::new(),
        };
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            let today = |written: &Option<Field>| match written {
                Some(written) if field.asked.kind == FieldType::Date => today(written, scope, zone),
                _ => None,
            };
            let default = today(&field.default).map_or_else(|| value(&field.default), |day| Ok(Some(day)))?;
            let min = today(&field.min).map_or_else(|| bound(&field.min), |day| Ok(Some(day)))?;
            let max = today(&field.max).map_or_else(|| bound(&field.max), |day| Ok(Some(day)))?;
            let (label, help) = (text(&field.label)?, text(&field.help)?);
            let mut asked = AskedField { label, help, min, max, ..field.asked.clone() };
            asked.default = None;
            asked.bounds_fit()?;
            asked.takes_default(default)?;
            asked.required = field.is_required && asked.default.is_none();
            fields.push(asked);
        }
        Ok(AskedForm { question, show, fields })
    }
}

/// The day in a time zone at which a step becomes due, where a field names that moment.
fn today(written: &Field, scope: &Scope<'_>, zone: Option<&TimeZone>) -> Option<Value> {
    let Field::Path(path) = written else { return None };
    let zone = zone.filter(|_| path.as_slice() == ["now"])?;
    let now: Timestamp = scope.now.parse().ok()?;
    Some(Value::from(now.to_zoned(zone.clone()).date().to_string()))
}

impl AskedField {
    /// A field as it is written, without what is computed.
    pub fn of(field: &FormField) -> Self {
        Self {
            name: field.name.clone(),
            kind: field.kind,
            label: field.label.clone(),
            help: field.help.clone(),
            required: field.required != Some(false) && field.default.is_none(),
            default: None,
            min: None,
            max: None,
            choices: field.choices.clone().unwrap_or_default(),
        }
    }

    fn fault(&self, message: String) -> FieldFault {
        FieldFault { field: self.name.clone(), message }
    }

    /// Sets the default, in the form of an answer.
    fn takes_default(&mut self, default: Option<Value>) -> Result<(), FormFault> {
        let Some(default) = default.filter(|default| !default.is_null()) else { return Ok(()) };
        let misfit = |message: String| FormFault::Misfit(self.fault(format!("its `default` is not taken: {message}")));
        // A moment has a date, as for the bounds.
        let default = match self.kind {
            FieldType::Date => field_value::bound(self.kind, &default).unwrap_or(default),
            _ => default,
        };
        self.default = Some(field_value::read(self, &default).map_err(misfit)?);
        Ok(())
    }

    /// Whether the bounds are values of the field's type, and leave something between them. Of a type without an order they are dropped.
    fn bounds_fit(&mut self) -> Result<(), FormFault> {
        if !self.kind.has_order() {
            (self.min, self.max) = (None, None);
        }
        for (name, bound) in [("min", &mut self.min), ("max", &mut self.max)] {
            if let Some(given) = bound.take() {
                let read = field_value::bound(self.kind, &given).map_err(|message| {
                    let message = format!("its `{name}` is {}, which {message}", shown(&given));
                    FormFault::Misfit(FieldFault { field: self.name.clone(), message })
                })?;
                *bound = Some(read);
            }
        }
        if let (Some(min), Some(max)) = (&self.min, &self.max)
            && field_value::order(self.kind, min, max) == Some(Ordering::Greater)
        {
            let message = format!("its `min` {} is above its `max` {}", plain(min), plain(max));
            return Err(FormFault::Misfit(self.fault(message)));
        }
        Ok(())
    }

    /// The value of the field, of what an answer has for it. What is typed comes as a text, and is read as it stands; null and an empty
    /// text are the same as a field that is left out.
    ///
    /// # Errors
    /// Why it is not taken, in a sentence without a final stop.
    pub fn read(&self, given: Option<&Value>) -> Result<Value, String> {
        let is_nothing = |given: &&Value| given.is_null() || given.as_str().is_some_and(str::is_empty);
        let Some(given) = given.filter(|given| !is_nothing(given)) else {
            return match &self.default {
                Some(default) => Ok(default.clone()),
                None if self.required => Err("it is required".to_owned()),
                None => Ok(Value::Null),
            };
        };
        // A reader who was not shown the default sends back what stood for it.
        if self.default.is_some() && given.as_str() == Some(HIDDEN) {
            return Err(format!("{HIDDEN} is no value: leave the field out, and it has its default"));
        }
        field_value::read(self, given)
    }

    /// The value of what was typed.
    ///
    /// # Errors
    /// Why it is not taken, in a sentence without a final stop.
    pub fn read_typed(&self, text: &str) -> Result<Value, String> {
        self.read(Some(&Value::from(text)))
    }

    /// What to fill in, in a few words: `a whole number from 0 to 120`.
    pub fn takes(&self) -> String {
        let what = match self.kind {
            FieldType::Text => "a text of one line",
            FieldType::LongText => "a text",
            FieldType::Integer => "a whole number",
            FieldType::Number => "a number",
            FieldType::Date => "a date like 2026-02-28",
            FieldType::Time => "a time like 09:30",
            FieldType::YesNo => "yes or no",
            FieldType::Choice => {
                let choices: Vec<String> = self.choices.iter().map(|choice| short(choice)).collect();
                return format!("one of: {}", choices.join(", "));
            }
        };
        match (&self.min, &self.max) {
            (None, None) => what.to_owned(),
            (Some(min), None) => format!("{what}, at least {}", plain(min)),
            (None, Some(max)) => format!("{what}, at most {}", plain(max)),
            (Some(min), Some(max)) => format!("{what} from {} to {}", plain(min), plain(max)),
        }
    }

    /// The help, what is taken, and what the field is when it is left out: what a person reads beside it.
    pub fn note(&self) -> String {
        let default = match &self.default {
            Some(default) => Some(format!("{} if it is left out", short(&plain(default)))),
            None if self.required => None,
            None => Some("may be left out".to_owned()),
        };
        [self.help.clone(), Some(self.takes()), default].into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// The label, or else the name.
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// The JSON Schema of its value as later steps read it: null where it may be left out.
    pub fn key_schema(&self) -> Value {
        let mut schema = field_value::schema(self);
        if let Value::Object(members) = &mut schema
            && !(self.required || self.default.is_some())
        {
            if let Some(kind) = members.get_mut("type") {
                *kind = json!([kind.take(), "null"]);
            }
            if let Some(Value::Array(words)) = members.get_mut("enum") {
                words.push(Value::Null);
            }
        }
        schema
    }

    /// The JSON Schema of its value in an answer.
    pub fn schema(&self) -> Value {
        let mut schema = field_value::schema(self);
        let notes = [
            ("title", self.label.clone().map(Value::from)),
            ("description", self.help.clone().map(Value::from)),
            ("default", self.default.clone()),
        ];
        if let Value::Object(members) = &mut schema {
            members.extend(notes.into_iter().filter_map(|(name, note)| Some((name.to_owned(), note?))));
        }
        schema
    }
}

/// What is wrong with the bounds and the default of a field as far as they are written out: the member, and why.
pub fn literal_faults(field: &FormField) -> Vec<FieldFault> {
    let literal = |value: &Option<Value>| {
        let compiled = value.as_ref().map(Field::compile)?.ok()?;
        if let Field::Literal(value) = compiled { Some(value) } else { None }
    };
    let members = [("min", literal(&field.min)), ("max", literal(&field.max))];
    let mut faults = Vec::new();
    let mut asked = AskedField::of(field);
    for (name, bound) in members.into_iter().filter(|_| field.kind.has_order()) {
        let mut one = AskedField { min: bound.clone(), ..AskedField::of(field) };
        match one.bounds_fit() {
            Err(_) => {
                let why =
                    bound.as_ref().and_then(|bound| field_value::bound(field.kind, bound).err()).unwrap_or_default();
                let shown = bound.as_ref().map(shown).unwrap_or_default();
                faults.push(FieldFault { field: name.to_owned(), message: format!("{shown} {why}") });
            }
            Ok(()) if name == "min" => asked.min = one.min,
            Ok(()) => asked.max = one.min,
        }
    }
    if let Err(FormFault::Misfit(fault)) = asked.bounds_fit() {
        faults.push(FieldFault { field: "max".to_owned(), ..fault });
    }
    if let Err(FormFault::Misfit(fault)) = asked.takes_default(literal(&field.default)) {
        faults.push(FieldFault { field: "default".to_owned(), ..fault });
    }
    faults
}

/// How the help of a field ends whose value is written as JSON.
pub const JSON_HELP: &str = "as JSON, like [\"a\", \"b\"]";

/// A value for a field that the server of a tool asks for: a list or an object is written as JSON, and a number or yes-or-no of its
/// choices as the text that it is shown by.
pub fn as_server_asks(field: &AskedField, given: Value) -> Value {
    let is_json =
        field.kind == FieldType::LongText && field.help.as_ref().is_some_and(|help| help.ends_with(JSON_HELP));
    match given {
        Value::Array(_) | Value::Object(_) if is_json => Value::from(given.to_string()),
        Value::Number(_) | Value::Bool(_) if field.kind == FieldType::Choice => Value::from(given.to_string()),
        given => given,
    }
}

/// A value as a person writes it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value in a message, cut where it is long.
fn shown(value: &Value) -> String {
    short(&value.to_string())
}

/// The JSON Schema of the answer to a form with these fields.
pub fn answer_schema(fields: &[AskedField]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.clone(), field.schema())).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name.as_str()).collect();
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty()
        && let Value::Object(members) = &mut schema
    {
        members.insert("required".to_owned(), json!(required));
    }
    schema
}

/// The values of all fields, in their order. What is left out has its default, or else is null.
///
/// # Errors
/// What is wrong, at each field.
pub fn read_answer(fields: &[AskedField], given: &Map<String, Value>) -> Result<Vec<(String, Value)>, Vec<FieldFault>> {
    let mut values = Vec::with_capacity(fields.len());
    let mut faults = Vec::new();
    for field in fields {
        match field.read(given.get(&field.name)) {
            Ok(value) => values.push((field.name.clone(), value)),
            Err(message) => faults.push(field.fault(message)),
        }
    }
    let names = || fields.iter().map(|field| field.name.as_str());
    for unknown in given.keys().filter(|key| !names().any(|name| name == *key)).take(MAX_FIELDS) {
        let message = match nearest(unknown, names()) {
            Some(near) => format!("the form has no such field; did you mean `{near}`?"),
            None => "the form has no such field".to_owned(),
        };
        faults.push(FieldFault { field: short(unknown), message });
    }
    if faults.is_empty() { Ok(values) } else { Err(faults) }
}

/// All faults of an answer, in a sentence or a list.
pub fn listed(faults: &[FieldFault]) -> String {
    let line = |fault: &FieldFault| format!("`{}`: {}", fault.field, fault.message);
    match faults {
        [only] => line(only),
        _ => faults.iter().map(|fault| format!("\n- {}", line(fault))).collect(),
    }
}
