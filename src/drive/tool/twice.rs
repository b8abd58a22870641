//! Finds duplicate keys in a JSON object: one of the two values would be lost silently.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The most characters of a key that are shown.
const SHOWN: usize = 64;

/// The first key that occurs twice in an object of `text`, which was read as `value`. A text without one
/// is scanned once, byte by byte, and its value walked once.
pub(super) fn key_of(text: &str, value: &Value) -> Option<String> {
    if members_written(text) == members_read(value) {
        return None;
    }
    let mut found = Twice(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    // It was parsed before: an error can only mean that the key was found.
    let _ = found.deserialize(&mut reader);
    found.0.map(|key| key.chars().take(SHOWN).collect())
}

/// The colons outside of strings: each is between a key and its value.
fn members_written(text: &str) -> usize {
    let (mut members, mut quoted, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b':' if !quoted => members += 1,
            _ => {}
        }
    }
    members
}

fn members_read(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members_read).sum(),
        Value::Object(members) => members.len() + members.values().map(members_read).sum::<usize>(),
        _ => 0,
    }
}

/// Searches for a duplicate key.
struct Twice(Option<String>);

impl<'de> DeserializeSeed<'de> for &mut Twice {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Twice {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(&mut *self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(Key(key)) = members.next_key()? {
            if keys.contains(&key) {
                self.0 = Some(key);
                return Err(A::Error::custom("a key stands twice"));
            }
            keys.insert(key);
            members.next_value_seed(&mut *self)?;
        }
        Ok(())
    }
}

/// A key with its escapes decoded.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str) -> Option<String> {
        key_of(text, &serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_key_that_stands_twice_is_found_wherever_it_stands_and_however_it_is_spelled() {
        for (text, key) in [
            (r#"{"a":1,"a":2}"#, Some("a")),
            (r#"{"a":1,"\u0061":2}"#, Some("a")),
            (r#"[{"x":[1,{"b":{},"c":":","b":null}]}]"#, Some("b")),
            (r#"{"":1,"":2}"#, Some("")),
            (r#"{"a":{"a":1},"b":[{"a":1},{"a":1}]}"#, None),
            (r#"{"a\"":"\\\":{\"a\":1,","c":1.5e300,"d":-7}"#, None),
            (r#"[1e99999, "::::"]"#, None),
            ("7", None),
        ] {
            assert_eq!(found(text).as_deref(), key, "{text}");
        }
        let deep = format!("{}{}{}", "[".repeat(120), r#"{"k":1,"k":1}"#, "]".repeat(120));
        assert_eq!(found(&deep).as_deref(), Some("k"));
    }

    proptest! {
        #[test]
        fn the_members_that_are_written_are_those_that_are_read(keys in proptest::collection::vec("[a-c\"\\\\:{}é]{0,2}", 0..6), text in "[\"\\\\:,{}a]{0,6}") {
            let (key, inner) = (|key: &String| Value::from(key.as_str()).to_string(), Value::from(text).to_string());
            let written: Vec<String> = keys.iter().map(|name| format!("{} : [{inner}]", key(name))).collect();
            let twice = keys.iter().enumerate().any(|(at, key)| keys[..at].contains(key));
            prop_assert_eq!(found(&format!("{{{}}}", written.join(","))).is_some(), twice);
        }
    }
}
