//! Compact JSON: a value as its text, which takes a tenth of the memory of a tree.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

use super::storable;
use loopctl_lang::policy::json_text;

/// Reads JSON that came as bytes. It is read as a text, so that every type is compiled for one kind of input.
///
/// # Errors
/// When it is no UTF-8, no JSON, or not of the type.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    json_text::read(std::str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}

/// A value as its text, for values that nothing reads while the run continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Json(Kept);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    /// No text is `null`, which needs no memory.
    Text(Box<str>),
    /// A number with an exponent may be read back in another spelling: such a value stays a tree.
    Tree(Box<Value>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Text(Box::default())
    }
}

impl Json {
    /// The value.
    pub fn value(&self) -> Value {
        match &self.0 {
            Kept::Tree(value) => (**value).clone(),
            Kept::Text(text) if text.is_empty() => Value::Null,
            // A value that can't be read back was converted to a text when it came in.
            Kept::Text(text) => json_text::read(text).unwrap_or_else(|_| Value::String(text.to_string())),
        }
    }
}

impl From<Value> for Json {
    /// Converts a value that could not be read back to a text, as everywhere.
    fn from(value: Value) -> Self {
        match storable::kept(value) {
            Value::Null => Self::default(),
            value => {
                let mut bytes = Vec::with_capacity(size(&value));
                // Writing to memory can't fail, and JSON is text.
                let _ = serde_json::to_writer(&mut bytes, &value);
                let text = String::from_utf8(bytes).unwrap_or_default();
                let exponent = may_have_exponent(&text);
                Self(if exponent { Kept::Tree(Box::new(value)) } else { Kept::Text(text.into_boxed_str()) })
            }
        }
    }
}

/// The length of a value's text, if nothing in it is escaped; otherwise it is longer.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => json_text::digits(number).len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>().max(1) + 1,
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| key.len() + 4 + size(field)).sum::<usize>().max(1) + 1
        }
    }
}

/// Whether an `e` follows a digit, in a number or in a string.
fn may_have_exponent(text: &str) -> bool {
    let (bytes, behind) = (text.bytes(), text.bytes().skip(1));
    bytes.zip(behind).any(|(digit, letter)| digit.is_ascii_digit() && matches!(letter, b'e' | b'E'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_value_comes_back_as_it_was() {
        let digits = serde_json::from_str(r#"{"b":[1.0,-0,12345678901234567890123,1e+400],"a":null}"#).unwrap();
        let number = |text: &str| Value::Number(serde_json::Number::from_string_unchecked(text.to_owned()));
        for value in [json!(null), json!(""), json!("null"), json!([]), digits, number("1E400"), json!([number("1e5")])]
        {
            assert_eq!(Json::from(value.clone()).value().to_string(), value.to_string());
        }
        assert_eq!(Json::from(Value::Null), Json::default());
    }

    #[test]
    fn a_value_that_could_not_be_read_back_comes_back_as_its_text() {
        let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
        let signs = json!({ "$serde_json::private::Number": "1" });
        for value in [deep, signs] {
            assert_eq!(Json::from(value.clone()).value(), Value::String(value.to_string()));
        }
    }
}
