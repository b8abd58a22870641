//! What is wrong with a value, before it is put into words.

use std::borrow::Cow;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Reported};
use serde_json::{Value, json};

use super::plan::Id;

/// A fault of a part of a value.
#[derive(Debug)]
pub(super) struct ValueProblem<'v> {
    /// The JSON pointer of the part in the value.
    pub path: String,
    /// The part.
    pub given: Cow<'v, Value>,
    /// What is wrong with it.
    pub kind: ProblemKind,
    /// The names that the schema describes beside the rule that is broken.
    pub beside: Vec<String>,
}

/// What is wrong.
#[derive(Debug)]
pub(super) enum ProblemKind {
    /// It is of another type than these.
    Type(Vec<&'static str>),
    /// It is none of these values.
    Enum(Value),
    /// It is not that value.
    Constant(Value),
    /// It is beyond a limit; the words say on which side it should be.
    Limit(&'static str, Value),
    MultipleOf(Value),
    /// It has too few or too many of what is named.
    Size {
        most: bool,
        limit: u64,
        noun: &'static str,
    },
    Pattern(String),
    Format(String),
    Encoding(String),
    MediaType(String),
    NotUtf8,
    Not(Value),
    AdditionalItems(u64),
    /// It has members that are not described.
    Unknown(Vec<String>),
    Required(String),
    /// None of several forms matches.
    Forms(Forms),
    ManyForms,
    PropertyName(Box<ValueProblem<'static>>),
    NotAllowed,
    UniqueItems,
    Contains,
    UnevaluatedItems,
    /// Another rule, by its keyword.
    Other(String),
}

/// The forms that do not match.
#[derive(Debug)]
pub(super) enum Forms {
    /// Parts of the schema. What is wrong by each of them is looked for when it is asked for.
    Parts(Vec<Id>),
    /// What is wrong by each of them.
    Found(Vec<Vec<ValueProblem<'static>>>),
}

impl ValueProblem<'static> {
    /// A fault that the library of schemas reports.
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        ValueProblem {
            path: error.instance_path().to_string(),
            given: Cow::Owned(error.instance().clone().into_owned()),
            kind: kind(error.kind()),
            beside: Vec::new(),
        }
    }
}

impl ValueProblem<'_> {
    /// The same, for longer than the value lives.
    pub(super) fn owned(self) -> ValueProblem<'static> {
        let ValueProblem { path, given, kind, beside } = self;
        ValueProblem { path, given: Cow::Owned(given.into_owned()), kind, beside }
    }
}

fn kind(reported: &Reported) -> ProblemKind {
    let size = |most, limit: u64, noun| ProblemKind::Size { most, limit, noun };
    match reported {
        Reported::Type { kind } => ProblemKind::Type(match kind {
            TypeKind::Single(one) => vec![type_name(one.as_str())],
            TypeKind::Multiple(several) => several.iter().map(|one| type_name(one.as_str())).collect(),
        }),
        Reported::Enum { options } => ProblemKind::Enum((**options).clone()),
        Reported::Constant { expected_value } => ProblemKind::Constant((**expected_value).clone()),
        Reported::Minimum { limit } => ProblemKind::Limit("at least", limit.clone()),
        Reported::Maximum { limit } => ProblemKind::Limit("at most", limit.clone()),
        Reported::ExclusiveMinimum { limit } => ProblemKind::Limit("more than", limit.clone()),
        Reported::ExclusiveMaximum { limit } => ProblemKind::Limit("less than", limit.clone()),
        Reported::MultipleOf { multiple_of } => ProblemKind::MultipleOf(json!(multiple_of)),
        Reported::MinLength { limit } => size(false, *limit, "character"),
        Reported::MaxLength { limit } => size(true, *limit, "character"),
        Reported::MinItems { limit } => size(false, *limit, "item"),
        Reported::MaxItems { limit } => size(true, *limit, "item"),
        Reported::MinProperties { limit } => size(false, *limit, "property"),
        Reported::MaxProperties { limit } => size(true, *limit, "property"),
        Reported::AdditionalItems { limit } => ProblemKind::AdditionalItems(u64::try_from(*limit).unwrap_or(u64::MAX)),
        Reported::Pattern { pattern } => ProblemKind::Pattern(pattern.clone()),
        Reported::Format { format } => ProblemKind::Format(format.clone()),
        Reported::ContentEncoding { content_encoding } => ProblemKind::Encoding(content_encoding.clone()),
        Reported::ContentMediaType { content_media_type } => ProblemKind::MediaType(content_media_type.clone()),
        Reported::FromUtf8 { .. } => ProblemKind::NotUtf8,
        Reported::Not { schema } => ProblemKind::Not(schema.clone()),
        Reported::AdditionalProperties { unexpected } | Reported::UnevaluatedProperties { unexpected } => {
            ProblemKind::Unknown(unexpected.clone())
        }
        Reported::Required { property } => ProblemKind::Required(property.as_str().unwrap_or_default().to_owned()),
        Reported::AnyOf { context } | Reported::OneOfNotValid { context } => ProblemKind::Forms(Forms::Found(
            context.iter().map(|form| form.iter().map(ValueProblem::of).collect()).collect(),
        )),
        Reported::OneOfMultipleValid { .. } => ProblemKind::ManyForms,
        Reported::PropertyNames { error } => ProblemKind::PropertyName(Box::new(ValueProblem::of(error))),
        Reported::FalseSchema => ProblemKind::NotAllowed,
        Reported::UniqueItems => ProblemKind::UniqueItems,
        Reported::Contains => ProblemKind::Contains,
        Reported::UnevaluatedItems { .. } => ProblemKind::UnevaluatedItems,
        other => ProblemKind::Other(other.keyword().to_owned()),
    }
}

/// A type in a sentence.
pub(super) fn type_name(name: &str) -> &'static str {
    match name {
        "array" => "an array",
        "boolean" => "true or false",
        "integer" => "an integer",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        _ => "a string",
    }
}
