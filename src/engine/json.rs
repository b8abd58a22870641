//! JSON at rest: a value as its text, which takes a tenth of the room that a tree takes.

use serde_json::Value;

use super::storable;

/// A value as its text. What nothing looks into while a run goes on is kept so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Json(Option<Box<str>>);

impl Json {
    /// The value.
    pub fn value(&self) -> Value {
        match &self.0 {
            None => Value::Null,
            // What can't be read back was made a text when it came in.
            Some(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string())),
        }
    }
}

impl From<Value> for Json {
    /// A value that could not be read back is kept as a text, like everywhere.
    fn from(value: Value) -> Self {
        match storable::kept(value) {
            Value::Null => Self(None),
            value => Self(Some(value.to_string().into_boxed_str())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was() {
        let digits = serde_json::from_str(r#"{"b":[1.0,-0,12345678901234567890123,1e+400],"a":null}"#).unwrap();
        for value in [json!(null), json!(""), json!("null"), json!([]), digits] {
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
