//! JSON that is data: a key that is twice in an object is refused, because one of its two values would be lost in
//! silence, and so is a value that takes too much memory.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::FileFault;
use super::held_value::FileValue;
use super::weight::{MAX_WEIGHT, of_member, of_value, too_heavy};
use crate::policy::json_text;
use crate::program::bind::run_input::{LongListWriter, RunInput};

/// The most characters of a key that are shown.
const MAX_SHOWN_CHARACTERS: usize = 64;
/// The prefix of the keys that serde_json reserves: what is written with one of them would be read as something else.
const RESERVED: &str = "$serde_json::private::";

/// The value of a JSON text.
///
/// # Errors
/// What is wrong with it, and in which line.
pub(super) fn value(text: &str) -> Result<FileValue, FileFault> {
    weight(text)?;
    let value = match text.trim_start().starts_with('[') {
        true => json_text::read(text).map(|ListText(writer)| FileValue::of_list(writer)),
        false => RunInput::read(text).map(FileValue::Value),
    };
    value.map_err(|error| FileFault { message: format!("it is not JSON: {error}"), line: line(&error) })
}

fn line(error: &serde_json::Error) -> u64 {
    u64::try_from(error.line()).unwrap_or(u64::MAX).max(1)
}

/// About how much memory the value of a JSON text takes as a whole, in bytes.
///
/// # Errors
/// What is wrong with the text, and in which line.
pub(super) fn weight(text: &str) -> Result<usize, FileFault> {
    let mut walk = JsonWalk { most: MAX_WEIGHT, ..JsonWalk::default() };
    let walked =
        json_text::reader(text).and_then(|mut reader| walk.deserialize(&mut reader).and_then(|()| reader.end()));
    if let Err(error) = walked {
        let (line, column) = (line(&error), error.column());
        return Err(match walk.twice {
            Some(key) => FileFault {
                message: format!(
                    "the key {key:?} stands twice in one object, the second time before column {}; JSON keeps one of the two: \
                     take one out",
                    column.saturating_add(1)
                ),
                line,
            },
            None if walk.reserved.is_some() => {
                FileFault { message: format!("{}: take it out", reserved(&walk.reserved.unwrap_or_default())), line }
            }
            None if walk.weight > walk.most => too_heavy(line),
            None => FileFault { message: format!("it is not JSON: {error}"), line },
        });
    }
    Ok(walk.weight)
}

/// Whether the value of a JSON text takes more memory than a value of a file may. No value is made. What is wrong with the text
/// otherwise, whoever reads it finds.
pub fn is_too_heavy(text: &str) -> bool {
    let mut walk = JsonWalk { most: MAX_WEIGHT, ..JsonWalk::default() };
    // It ends where it is too much.
    let _ = json_text::reader(text).and_then(|mut reader| walk.deserialize(&mut reader));
    walk.weight > walk.most
}

/// A list, item by item: there is one parsed item at a time.
struct ListText(LongListWriter);

impl<'de> Deserialize<'de> for ListText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListTextVisitor)
    }
}

struct ListTextVisitor;

impl<'de> Visitor<'de> for ListTextVisitor {
    type Value = ListText;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ListText, A::Error> {
        let mut writer = LongListWriter::default();
        while let Some(item) = items.next_element::<Value>()? {
            writer.push(&item);
        }
        Ok(ListText(writer))
    }
}

/// The first key that occurs twice in an object of `text`, which was read as `value`. A text without one
/// is scanned once, byte by byte, and its value walked once.
pub fn key_twice(text: &str, value: &Value) -> Option<String> {
    if members_written(text) == members_read(value) {
        return None;
    }
    key_twice_in(text)
}

/// The value of a JSON text that a human wrote.
///
/// # Errors
/// What is wrong with it; also when an object has a key twice, of which the value would keep one.
pub fn written_json(text: &str) -> Result<Value, String> {
    let value = json_text::read(text).map_err(|error| format!("it is no JSON: {error}"))?;
    if let Some(key) = reserved_key(text) {
        return Err(reserved(&key));
    }
    match key_twice(text, &value) {
        Some(key) => Err(format!("the key {key:?} is in it twice, and JSON keeps one of the two")),
        None => Ok(value),
    }
}

/// The first key that occurs twice in an object of a JSON text.
pub fn key_twice_in(text: &str) -> Option<String> {
    let mut walk = JsonWalk { most: usize::MAX, ..JsonWalk::default() };
    // What is wrong with the text, another reader says.
    let _ = walk.deserialize(&mut json_text::unchecked_reader(text));
    walk.twice
}

/// The first key in an object of a JSON text that no value may have: what is written with it would be read as something else, and
/// keys that are twice in it would not be found. A text without one is searched for two words.
pub fn reserved_key(text: &str) -> Option<String> {
    // Each letter of a key may be written as an escape.
    if !text.contains("$serde_json") && !text.contains("\\u00") {
        return None;
    }
    let mut walk = JsonWalk { most: usize::MAX, ..JsonWalk::default() };
    let _ = walk.deserialize(&mut json_text::unchecked_reader(text));
    walk.reserved
}

/// What is said of a reserved key.
pub fn reserved(key: &str) -> String {
    format!("the key {key:?} is reserved, and no value may have it")
}

/// Whether a key is reserved.
pub(super) fn is_reserved(key: &str) -> bool {
    key.starts_with(RESERVED)
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

/// Searches a text for a duplicate key, and sums up what its value takes.
#[derive(Default)]
struct JsonWalk {
    weight: usize,
    most: usize,
    twice: Option<String>,
    /// A key that no value may have.
    reserved: Option<String>,
}

impl JsonWalk {
    fn add<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.weight = self.weight.saturating_add(bytes);
        if self.weight > self.most { Err(E::custom("it takes too much memory")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for &mut JsonWalk {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.add::<D::Error>(of_value())?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut JsonWalk {
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

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.add(text.len())
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
        while let Some(key) = members.next_key()? {
            let key = match key {
                Key::OfNumber => {
                    let NumberText(digits) = members.next_value()?;
                    self.add::<A::Error>(digits)?;
                    continue;
                }
                Key::Written(key) => key,
            };
            if is_reserved(&key) {
                self.reserved = Some(key.chars().take(MAX_SHOWN_CHARACTERS).collect());
                return Err(A::Error::custom("a key is reserved"));
            }
            if keys.contains(&key) {
                self.twice = Some(key.chars().take(MAX_SHOWN_CHARACTERS).collect());
                return Err(A::Error::custom("a key stands twice"));
            }
            self.add::<A::Error>(of_member(&key))?;
            keys.insert(key);
            members.next_value_seed(&mut *self)?;
        }
        Ok(())
    }
}

/// A key of an object, or what serde_json has in its place.
enum Key {
    /// With its escapes decoded.
    Written(String),
    /// That of the digits of a number: serde_json hands a number that keeps its digits to a reader as an object.
    OfNumber,
}

impl<'de> Deserialize<'de> for Key {
    /// The key of a number is a text whatever is asked for, and any other key may be asked for as an option: a text that was made to
    /// look like a number is known by that.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_option(KeyVisitor)
    }
}

struct KeyVisitor;

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        String::deserialize(deserializer).map(Key::Written)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Key, E> {
        Ok(Key::OfNumber)
    }
}

/// How many bytes the digits of a number are.
struct NumberText(usize);

impl<'de> Deserialize<'de> for NumberText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Value::deserialize(deserializer)?.as_str().map_or(0, str::len)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Result<Value, FileFault> {
        super::value(text).map(|file| file.whole().into_owned())
    }

    fn found(text: &str) -> Option<String> {
        key_twice(text, &serde_json::from_str(text).unwrap())
    }

    #[cfg(feature = "exact-numbers")]
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

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_key_that_is_reserved_is_found_however_it_is_spelled() {
        for text in [
            r#"{"$serde_json::private::Number":"5"}"#,
            r#"[{"a":{"$serde_json::private::RawValue":"{\"a\":1,\"a\":2}"}}]"#,
            r#"{"\u0024serde_json::private::Number":"5"}"#,
            r#"{"$\u0073erde_json::private::x":1.5}"#,
        ] {
            assert!(reserved_key(text).is_some_and(|key| key.starts_with("$serde_json::private::")), "{text}");
            assert!(value(text).unwrap_err().message.contains("is reserved"), "{text}");
        }
        for text in [r#"{"a":"$serde_json::private::Number","b":1.5e300}"#, r#"{"$serde_json":-7,"\u00e9":[1]}"#] {
            assert_eq!(reserved_key(text), None, "{text}");
            assert!(value(text).is_ok(), "{text}");
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn data_with_a_key_twice_is_refused_with_the_key_and_the_line() {
        let fault = value("{\"a\": 1,\n \"b\": [{\"fee\": 1.50, \"fee\": 15.0}]}").unwrap_err();
        assert_eq!(fault.line, 2);
        assert!(
            fault.message.contains("the key \"fee\" stands twice") && fault.message.contains("before column 27"),
            "{fault}"
        );
        assert_eq!(value("[{\"a\": 1.10}, {\"a\": 2}]").unwrap().to_string(), "[{\"a\":1.10},{\"a\":2}]");
        assert_eq!(value("{} x").unwrap_err().line, 1);
    }

    #[test]
    fn a_value_that_takes_too_much_memory_is_refused_before_it_is_made() {
        for (item, count) in [("{\"a\":1}", 900_000), ("[]", 2_000_000), ("1", 3_000_000), ("\"\"", 2_000_000)] {
            let text = format!("[{}]", vec![item; count].join(","));
            let fault = value(&text).unwrap_err();
            assert!(fault.message.contains("takes more than 80 MiB"), "{item}: {fault}");
        }
        let rows = format!("[{}]", vec!["{\"id\":\"00012\",\"sum\":12.50,\"text\":\"nut\"}"; 20_000].join(","));
        assert_eq!(value(&rows).unwrap().as_array().unwrap().len(), 20_000);
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
