//! What is known of a value before the run: its JSON types, and its words where a schema lists them.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::bounds::SchemaBounds;
use crate::compile::ValueKind;
use crate::program::canonical::is_same;
use crate::program::schema::{Schema, is_declared_json};
use crate::syntax::quoted;

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JsonTypes(u8);

impl JsonTypes {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const NUMBER: Self = Self(4);
    pub(crate) const TEXT: Self = Self(8);
    pub(crate) const LIST: Self = Self(16);
    pub(crate) const OBJECT: Self = Self(32);
    pub(crate) const ANY: Self = Self(63);

    /// The type of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::TEXT,
            Value::Array(_) => Self::LIST,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// Both together.
    #[must_use]
    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not among others.
    #[must_use]
    pub(crate) fn but(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether a type is in both.
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether null is declared beside other types.
    pub(crate) fn may_be_null(self) -> bool {
        self != Self::ANY && self.meets(Self::NULL) && self != Self::NULL
    }

    /// The types in a sentence: `a number`, `a text or null`.
    pub(crate) fn called(self) -> String {
        let names = [
            (Self::BOOLEAN, "true or false"),
            (Self::NUMBER, "a number"),
            (Self::TEXT, "a text"),
            (Self::LIST, "a list"),
            (Self::OBJECT, "an object"),
            (Self::NULL, "null"),
        ];
        let names: Vec<&str> = names.into_iter().filter(|(one, _)| self.meets(*one)).map(|(_, name)| name).collect();
        names.join(" or ")
    }

    /// The types that are seen in a column, or in the entries of a file.
    pub(crate) fn seen(schema: &Value) -> Option<Self> {
        Some(match ValueKind::of_schema(schema)? {
            ValueKind::Text => Self::TEXT,
            ValueKind::Number => Self::NUMBER,
            ValueKind::Boolean => Self::BOOLEAN,
        })
    }

    /// The types that a schema declares with its `type` alone; nothing where it leaves them open.
    fn declared(schema: &Value) -> Option<Self> {
        match schema.get("type")? {
            Value::String(name) => Some(Self::of_name(name)),
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(Self::of_name).reduce(Self::or),
            _ => None,
        }
    }

    /// The types that a schema's `type` allows.
    fn of_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "number" | "integer" => Self::NUMBER,
            "string" => Self::TEXT,
            "array" => Self::LIST,
            "object" => Self::OBJECT,
            _ => Self::ANY,
        }
    }
}

/// A schema's longer list of words is not known: the texts that name the value would each be held against all of it.
const MAX_WORDS: usize = 1_000;
/// Of a choice between more schemas nothing is known.
const MAX_CHOICES: usize = 16;

#[derive(Debug, PartialEq)]
pub(crate) struct KnownValue {
    /// The types that it may have.
    pub types: JsonTypes,
    /// The only values that it may have, where a schema lists them.
    pub words: Option<Vec<Value>>,
    /// The numbers that it may be.
    pub bounds: SchemaBounds,
    /// Whether its numbers are whole.
    pub is_whole: bool,
    /// How long it may be, where it is a text or a list alone.
    pub length: SchemaBounds,
    /// The pattern of its texts.
    pub pattern: Option<KnownPattern>,
    /// Of a text: what its schema says of it.
    pub text: DeclaredText,
    /// Of a text: whether its schema declares that it is JSON.
    pub is_json: bool,
    /// Of an object: the name of its only list.
    pub list: Option<String>,
    /// Of a value whose types are open: those that are seen in a column, or in the entries of a file.
    pub seen: Option<JsonTypes>,
    /// Of a list: the types of its entries, as far as they are known.
    pub entries: Option<JsonTypes>,
}

/// A pattern, which is compiled when the first text is held against it.
#[derive(Debug)]
pub(crate) struct KnownPattern {
    source: String,
    schema: OnceLock<Option<Schema>>,
}

impl KnownPattern {
    fn of_schema(schema: &Value) -> Option<Self> {
        let source = schema.get("pattern")?.as_str()?.to_owned();
        Some(Self { source, schema: OnceLock::new() })
    }

    /// Whether a value can't match it.
    fn excludes(&self, value: &Value) -> bool {
        let schema = self.schema.get_or_init(|| Schema::compile(json!({ "pattern": self.source })).ok());
        schema.as_ref().is_some_and(|schema| !schema.faults(value).is_empty())
    }
}

impl PartialEq for KnownPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// What a schema says of a text beside its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DeclaredText {
    /// Nothing is known; it may be a number.
    #[default]
    Open,
    /// A schema declares it as a text, and says nothing more.
    Plain,
    /// It is a cell of a file, in a column without a type: it may be a number, and an empty one is the empty text.
    Cell,
    /// It is the reply of a model without a schema, which may be a number or JSON.
    Reply,
    /// It has a format that no number has. In a sentence: `a date`.
    Formatted(&'static str),
}

/// The format of a cell without a type, which may read as a number or as JSON.
pub(crate) const CELL_FORMAT: &str = "number or JSON";

/// The format of the reply of a model without a schema.
pub(crate) const REPLY_FORMAT: &str = "reply of a model";

impl DeclaredText {
    fn of_schema(schema: &Value) -> Self {
        match schema.get("format").and_then(Value::as_str) {
            Some("date") => Self::Formatted("a date"),
            Some("date-time") => Self::Formatted("a date with a time"),
            Some("time") => Self::Formatted("a time"),
            Some("email") => Self::Formatted("an e-mail address"),
            Some("uri") => Self::Formatted("a URL"),
            Some("uuid") => Self::Formatted("a UUID"),
            Some(CELL_FORMAT) => Self::Cell,
            Some(REPLY_FORMAT) => Self::Reply,
            None if schema.get("pattern").is_none() => Self::Plain,
            _ => Self::Open,
        }
    }
}

impl KnownValue {
    /// A value of these types.
    pub(crate) fn of_types(types: JsonTypes) -> Self {
        Self {
            types,
            words: None,
            bounds: SchemaBounds::default(),
            is_whole: false,
            length: SchemaBounds::COUNT,
            pattern: None,
            text: DeclaredText::Open,
            is_json: false,
            list: None,
            seen: None,
            entries: None,
        }
    }

    /// The types that its values have in each run that can be expected.
    pub(crate) fn likely(&self) -> JsonTypes {
        self.seen.unwrap_or(self.types)
    }

    /// The moment at which a step becomes due: a text that is no number.
    pub(crate) fn of_moment() -> Self {
        Self { text: DeclaredText::Formatted("a date with a time"), ..Self::of_types(JsonTypes::TEXT) }
    }

    /// A value that is written out.
    pub(crate) fn of_literal(value: &Value) -> Self {
        Self { words: Some(vec![value.clone()]), ..Self::of_types(JsonTypes::of(value)) }
    }

    /// The length of a value. Without a value it is 0, whatever its schema says.
    pub(crate) fn of_length(counted: Option<&Self>) -> Self {
        let bounds = counted.map_or(SchemaBounds::COUNT, |counted| counted.length.with(SchemaBounds::COUNT));
        Self { bounds, is_whole: true, ..Self::of_types(JsonTypes::NUMBER) }
    }

    /// What a schema says of a part of the values that match it; nothing where it leaves the types open.
    pub(crate) fn of_schema(schema: &Value, path: &[String]) -> Option<Self> {
        if let Some(part) = part(schema, path) {
            return Self::of_values(part);
        }
        let (_, before) = path.split_last().filter(|(last, _)| *last == "length")?;
        let counted = Self::of_values(part(schema, before)?)?;
        let others = Self::all_but(JsonTypes::LIST.or(JsonTypes::TEXT));
        (!counted.types.meets(others)).then(|| Self::of_length(Some(&counted)))
    }

    /// Whether it may be a text that is JSON, and nothing else of use.
    pub(crate) fn may_be_json(&self) -> bool {
        let is_open = !matches!(self.text, DeclaredText::Formatted(_));
        self.types.meets(JsonTypes::TEXT) && !self.types.meets(JsonTypes::LIST) && self.words.is_none() && is_open
    }

    fn all_but(types: JsonTypes) -> JsonTypes {
        JsonTypes(JsonTypes::ANY.0 & !types.0)
    }

    /// What is known of a value that matches one of several schemas: its types, where each of them says its own.
    fn of_choices(choices: &[Value]) -> Option<Self> {
        let known = choices.iter().map(Self::of_values).collect::<Option<Vec<_>>>()?;
        let types = known.iter().map(|one| one.types).reduce(JsonTypes::or).filter(|types| *types != JsonTypes::ANY)?;
        let mut texts = known.iter().filter(|one| one.types.meets(JsonTypes::TEXT));
        let text = match (texts.next(), texts.next()) {
            (Some(one), None) => one.text,
            _ => DeclaredText::Open,
        };
        Some(Self { text, ..Self::of_types(types) })
    }

    fn of_values(schema: &Value) -> Option<Self> {
        let choices = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
        let says_none = ["type", "const", "enum"].iter().all(|keyword| schema.get(keyword).is_none());
        if let Some(choices) = choices.filter(|choices| says_none && choices.len() <= MAX_CHOICES) {
            return Self::of_choices(choices);
        }
        let types = JsonTypes::declared(schema);
        let words = match (schema.get("const"), schema.get("enum")) {
            (Some(word), _) => Some(std::slice::from_ref(word)),
            (None, Some(Value::Array(words))) if !words.is_empty() => Some(words.as_slice()),
            _ => None,
        };
        let of_words = words.iter().copied().flatten().map(JsonTypes::of).reduce(JsonTypes::or);
        let has_words = words.is_some();
        let words = words.filter(|words| words.len() <= MAX_WORDS).map(<[Value]>::to_vec);
        let Some(types) = types.or(of_words).filter(|types| *types != JsonTypes::ANY) else {
            let seen = JsonTypes::seen(schema)?;
            return Some(Self { seen: Some(seen), ..Self::of_types(JsonTypes::ANY) });
        };
        let bounds = SchemaBounds::of_schema(schema, words.as_deref());
        let text = if has_words { DeclaredText::Open } else { DeclaredText::of_schema(schema) };
        let names: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        Some(Self {
            types,
            bounds,
            is_whole: names.contains(&"integer") && !names.contains(&"number"),
            length: SchemaBounds::of_length(schema, types),
            pattern: KnownPattern::of_schema(schema),
            words,
            text,
            is_json: schema.as_object().is_some_and(is_declared_json),
            list: lone_list(schema),
            seen: None,
            entries: schema.get("items").filter(|_| types == JsonTypes::LIST).and_then(JsonTypes::declared),
        })
    }

    /// Why it is never a value that is written out; nothing where it may be.
    pub(crate) fn excludes(&self, literal: &Value) -> Option<String> {
        if let Some(words) = &self.words {
            let is_one = words.iter().any(|word| is_same(word, literal));
            return (!is_one).then(|| self.called());
        }
        match literal {
            _ if !self.types.meets(JsonTypes::of(literal)) => Some(format!("is {}", self.types.called())),
            Value::Number(number) => {
                let number = number.as_f64()?;
                if self.is_whole && number.fract() != 0.0 {
                    return Some("is a whole number".to_owned());
                }
                self.bounds.excludes(number).then(|| self.called())
            }
            Value::String(text) => {
                let characters = u32::try_from(text.chars().count()).ok().map(f64::from)?;
                if self.length.excludes(characters) {
                    return Some(format!("has a length that is {}", self.length.called_count()));
                }
                let pattern = self.pattern.as_ref().filter(|pattern| pattern.excludes(literal))?;
                Some(format!("matches the pattern {}", quoted(&pattern.source)))
            }
            _ => None,
        }
    }

    /// Its words, or its bounds, behind its name in a sentence.
    pub(crate) fn called(&self) -> String {
        match self.words.as_deref() {
            Some([word]) => format!("is always {word}"),
            Some(words) => format!("is always one of {}", listed(words)),
            None => format!("is {}", self.bounds.called()),
        }
    }
}

/// The first words of a list.
pub(crate) fn listed(words: &[Value]) -> String {
    words.iter().take(8).map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// The name of the only list of the objects that a schema describes.
fn lone_list(schema: &Value) -> Option<String> {
    let members = schema.get("properties")?.as_object()?;
    let mut lists = members.iter().filter(|(_, member)| member.get("type").is_some_and(|kind| kind == "array"));
    let (name, _) = lists.next()?;
    lists.next().is_none().then(|| name.clone())
}

/// The part of a schema that describes the value at a path.
pub(super) fn part<'s>(schema: &'s Value, path: &[String]) -> Option<&'s Value> {
    path.iter().try_fold(schema, |schema, name| {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        let is_index = name.bytes().all(|byte| byte.is_ascii_digit());
        property.or_else(|| schema.get("items").filter(|items| is_index && items.is_object()))
    })
}
