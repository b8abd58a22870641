//! The answer to a form: what was asked, of the input of its step, and the values that a text has for it.

use std::slice;

use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::json::from_bytes;
use crate::question::StepQuestion;
use loopctl_lang::policy::json_text;
use loopctl_lang::program::file_value::key_twice_in;
use loopctl_lang::program::form::{AskedField, AskedForm, FieldFault, as_server_asks, listed, read_answer};
use loopctl_lang::program::schema::short;

/// What a form asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum FormRequest {
    /// Keys, each with any value.
    Keys(Vec<String>),
    /// Fields with types.
    Fields(AskedForm),
}

impl FormRequest {
    /// What is asked, of the input of the step.
    pub(crate) fn of(input: &Value) -> Self {
        match input {
            Value::Object(_) => AskedForm::deserialize(input).map_or(Self::Keys(Vec::new()), Self::Fields),
            _ => {
                let keys = input.as_array().into_iter().flatten().filter_map(Value::as_str);
                Self::Keys(keys.map(str::to_owned).collect())
            }
        }
    }

    /// How it is answered, in a sentence.
    pub(crate) fn shape(&self) -> String {
        match self {
            Self::Keys(keys) => shape(keys.iter().map(String::as_str)),
            Self::Fields(form) => shape_of(&form.fields),
        }
    }

    /// The values of its keys.
    ///
    /// # Errors
    /// Which are missing, unknown or not taken.
    pub(crate) fn values(&self, answer: &str) -> Result<Vec<(String, Value)>, String> {
        match self {
            Self::Keys(keys) => key_values(keys, answer),
            Self::Fields(form) => field_values(&form.fields, answer).map_err(|refusal| refusal.why),
        }
    }
}

fn shape_of(fields: &[AskedField]) -> String {
    shape(fields.iter().map(|field| field.name.as_str()))
}

fn shape<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let example: Vec<String> = names.map(|key| format!("\"{key}\": ...")).collect();
    format!("a form is answered by a JSON object: {{{}}}", example.join(", "))
}

fn object(answer: &str) -> Option<Map<String, Value>> {
    match from_bytes(answer.as_bytes()) {
        Ok(Value::Object(given)) => Some(given),
        _ => None,
    }
}

/// The value of a form's keys.
fn key_values(keys: &[String], answer: &str) -> Result<Vec<(String, Value)>, String> {
    let shape = || shape(keys.iter().map(String::as_str));
    let Ok(Value::Object(mut given)) = json_text::read(answer) else { return Err(shape()) };
    let missing: Vec<&str> = keys.iter().filter(|key| !given.contains_key(*key)).map(String::as_str).collect();
    if !missing.is_empty() {
        return Err(format!("the form lacks {}; {}", missing.join(", "), shape()));
    }
    if let Some(unknown) = given.keys().find(|key| !keys.contains(key)) {
        return Err(format!("the form does not ask for `{unknown}`; {}", shape()));
    }
    Ok(keys.iter().filter_map(|key| Some((key.clone(), given.remove(key)?))).collect())
}

/// The values of a form's fields.
///
/// # Errors
/// What is wrong, at each field.
pub(crate) fn field_values(fields: &[AskedField], answer: &str) -> Result<Vec<(String, Value)>, FormRefusal> {
    let given = object(answer).ok_or_else(|| FormRefusal { why: shape_of(fields), faults: Vec::new() })?;
    read_fields(fields, answer, &given)
}

/// `given`: the object that the answer is.
fn read_fields(
    fields: &[AskedField],
    answer: &str,
    given: &Map<String, Value>,
) -> Result<Vec<(String, Value)>, FormRefusal> {
    let refusal = |why: String, faults| FormRefusal { why, faults };
    if let Some(key) = key_twice_in(answer) {
        let message = "it is twice in the answer, and JSON keeps one of the two".to_owned();
        let fault = FieldFault { field: short(&key), message };
        return Err(refusal(listed(slice::from_ref(&fault)), vec![fault]));
    }
    read_answer(fields, given)
        .map_err(|faults| refusal(format!("the form is not filled in: {}", listed(&faults)), faults))
}

/// The values of the fields that a server asks for. That of a lone field may be written alone.
///
/// # Errors
/// What is wrong, at each field.
pub(crate) fn server_values(fields: &[AskedField], answer: &str) -> Result<Vec<(String, Value)>, FormRefusal> {
    let [only] = fields else { return field_values_of_server(fields, answer) };
    if object(answer).is_some() {
        return field_values_of_server(fields, answer);
    }
    match only.read_typed(answer) {
        Ok(value) => Ok(vec![(only.name.clone(), value)]),
        Err(message) => {
            let fault = FieldFault { field: only.name.clone(), message };
            let why = format!("the form is not filled in: {}", listed(slice::from_ref(&fault)));
            Err(FormRefusal { why, faults: vec![fault] })
        }
    }
}

fn field_values_of_server(fields: &[AskedField], answer: &str) -> Result<Vec<(String, Value)>, FormRefusal> {
    let mut given = object(answer).ok_or_else(|| FormRefusal { why: shape_of(fields), faults: Vec::new() })?;
    for field in fields {
        if let Some(value) = given.get_mut(&field.name) {
            *value = as_server_asks(field, value.take());
        }
    }
    read_fields(fields, answer, &given)
}

/// Whether an answer fits the fields of a question of a sub-run.
///
/// # Errors
/// What is wrong, at each field.
pub(crate) fn judge(question: &StepQuestion, answer: &str) -> Result<(), FormRefusal> {
    match (question.fields.as_slice(), &question.asked_by) {
        ([], _) => Ok(()),
        (fields, None) => field_values(fields, answer).map(drop),
        (fields, Some(_)) => server_values(fields, answer).map(drop),
    }
}

/// Why the answer to a form with fields is not taken.
#[derive(Debug, PartialEq)]
pub struct FormRefusal {
    /// A sentence, or a list of them.
    pub why: String,
    /// What is wrong, at each field. Empty when the answer is no object.
    pub faults: Vec<FieldFault>,
}
