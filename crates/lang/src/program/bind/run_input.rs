//! The input of a run. The long lists of a workflow's input stay text, and their items are parsed one at a time: parsed, a
//! list takes more than twice the memory of its text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::policy::json_text;

/// A list of this many bytes is long; it is cut into pieces of about this size.
const PIECE_BYTES: usize = 64 << 10;

/// Long lists, by the name of their member.
pub type LongLists = BTreeMap<String, LongList>;

/// The input of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunInput {
    /// The input, with `null` in the place of each long list.
    pub value: Value,
    /// The long lists.
    pub lists: LongLists,
}

/// A list as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LongList {
    pieces: Vec<ListPiece>,
}

/// Consecutive items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListPiece {
    /// The items, a line of JSON each.
    text: Arc<str>,
    /// The index of the first item after them.
    end: usize,
}

/// Writes the text of a list, item by item.
#[derive(Debug, Default)]
pub(crate) struct LongListWriter {
    list: LongList,
    text: String,
    count: usize,
}

impl RunInput {
    /// An input whose long lists become text.
    pub fn of(value: Value) -> Self {
        let mut input = Self::from(value);
        for (name, member) in input.value.as_object_mut().into_iter().flatten() {
            if let Value::Array(items) = member {
                let mut writer = LongListWriter::default();
                items.iter().for_each(|item| writer.push(item));
                if writer.is_long() {
                    input.lists.insert(name.clone(), writer.finish());
                    member.take();
                }
            }
        }
        input
    }

    /// The input in a JSON text; its long lists are never parsed as a whole.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        if !text.trim_start().starts_with('{') {
            return json_text::read::<Value>(text).map(Self::from);
        }
        let mut from = json_text::reader(text)?;
        let input = from.deserialize_map(MembersVisitor)?;
        from.end().map(|()| input)
    }

    /// All of it, parsed.
    pub fn whole(&self) -> Cow<'_, Value> {
        if self.lists.is_empty() {
            return Cow::Borrowed(&self.value);
        }
        Cow::Owned(self.clone().into_whole())
    }

    /// All of it, parsed.
    pub fn into_whole(self) -> Value {
        let Self { mut value, lists } = self;
        for (name, list) in lists {
            if let Some(member) = value.get_mut(&name) {
                *member = list.whole();
            }
        }
        value
    }
}

impl From<Value> for RunInput {
    /// An input of which no list stays text.
    fn from(value: Value) -> Self {
        Self { value, lists: LongLists::new() }
    }
}

/// The item of a line. It stays the text that it is, when a build that holds more digits wrote it.
fn item(line: &str) -> Value {
    json_text::read(line).unwrap_or_else(|_| Value::from(line))
}

impl LongList {
    /// A list of these pieces: each has a line of JSON for each of its items.
    pub fn of_pieces(texts: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut list = Self::default();
        for text in texts {
            let end = list.len() + text.split('\n').count();
            list.pieces.push(ListPiece { text, end });
        }
        list
    }

    /// Such a list of these items.
    pub fn of_items<'i>(items: impl IntoIterator<Item = &'i Value>) -> Self {
        let mut writer = LongListWriter::default();
        items.into_iter().for_each(|item| writer.push(item));
        writer.finish()
    }

    /// The texts of its pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.pieces.iter().map(|piece| &piece.text)
    }

    /// How many items it has.
    pub fn len(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.end)
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// An item.
    pub fn get(&self, at: usize) -> Option<Value> {
        let number = self.pieces.partition_point(|piece| piece.end <= at);
        let first = number.checked_sub(1).and_then(|before| self.pieces.get(before)).map_or(0, |before| before.end);
        let line = self.pieces.get(number)?.text.split('\n').nth(at.checked_sub(first)?)?;
        Some(item(line))
    }

    /// Its items.
    pub fn items(&self) -> impl Iterator<Item = Value> + '_ {
        self.pieces().flat_map(|text| text.split('\n')).map(item)
    }

    /// The list, parsed.
    pub fn whole(&self) -> Value {
        self.items().collect()
    }
}

impl LongListWriter {
    pub(crate) fn push(&mut self, item: &Value) {
        if !self.text.is_empty() {
            if self.text.len() >= PIECE_BYTES {
                self.end_piece();
            } else {
                self.text.push('\n');
            }
        }
        // Writing to a text does not fail.
        let _ = write!(self.text, "{item}");
        self.count += 1;
    }

    fn end_piece(&mut self) {
        self.list.pieces.push(ListPiece { text: Arc::from(self.text.as_str()), end: self.count });
        self.text.clear();
    }

    pub(crate) fn is_long(&self) -> bool {
        !self.list.pieces.is_empty() || self.text.len() >= PIECE_BYTES
    }

    pub(crate) fn finish(mut self) -> LongList {
        if self.count > 0 {
            self.end_piece();
        }
        self.list
    }
}

/// Reads the members of an input.
struct MembersVisitor;

/// Reads one member.
struct MemberSeed;

enum InputMember {
    Plain(Value),
    Long(LongList),
}

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = RunInput;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<RunInput, A::Error> {
        let (mut value, mut lists) = (Map::new(), LongLists::new());
        while let Some(name) = members.next_key::<String>()? {
            let member = match members.next_value_seed(MemberSeed)? {
                InputMember::Plain(member) => {
                    lists.remove(&name);
                    member
                }
                InputMember::Long(list) => {
                    lists.insert(name.clone(), list);
                    Value::Null
                }
            };
            value.insert(name, member);
        }
        Ok(RunInput { value: Value::Object(value), lists })
    }
}

impl<'de> DeserializeSeed<'de> for MemberSeed {
    type Value = InputMember;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<InputMember, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MemberSeed {
    type Value = InputMember;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<InputMember, E> {
        Ok(InputMember::Plain(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<InputMember, E> {
        Ok(InputMember::Plain(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<InputMember, E> {
        Ok(InputMember::Plain(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<InputMember, E> {
        Ok(InputMember::Plain(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<InputMember, E> {
        Ok(InputMember::Plain(Value::Null))
    }

    /// An object, or a number that is no integer: serde_json gives its digits as a member.
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<InputMember, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(members)).map(InputMember::Plain)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<InputMember, A::Error> {
        let mut writer = LongListWriter::default();
        while let Some(item) = items.next_element::<Value>()? {
            writer.push(&item);
        }
        let (is_long, is_empty) = (writer.is_long(), writer.count == 0);
        let list = writer.finish();
        Ok(match (is_long, is_empty) {
            (true, _) => InputMember::Long(list),
            (false, true) => InputMember::Plain(Value::Array(Vec::new())),
            (false, false) => InputMember::Plain(list.whole()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn long(count: usize) -> Value {
        (0..count).map(|number| json!({ "id": number, "note": format!("a\nb \"{}\"", "x".repeat(200)) })).collect()
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn a_long_list_is_the_same_read_from_a_text_and_made_of_a_value() {
        let mut value = json!({ "a": 1.50, "list": long(1_000), "short": [1, [2]], "none": [], "i": -3, "u": 7, "s": "é", "y": true, "o": { "list": [3] }, "t": null });
        for (name, digits) in
            [("large", "12345678901234567890123"), ("far", "1e400"), ("zeros", "1.500"), ("minus", "-0")]
        {
            value[name] = serde_json::from_str(digits).unwrap();
        }
        let read = RunInput::read(&serde_json::to_string_pretty(&value).unwrap()).unwrap();
        assert_eq!(read, RunInput::of(value.clone()));
        assert_eq!(read.lists.keys().collect::<Vec<_>>(), ["list"]);
        assert!(read.lists["list"].pieces().count() > 2, "it is in pieces");
        assert_eq!(read.whole().to_string(), value.to_string(), "the order of the members stays");
    }

    #[test]
    fn each_item_of_a_long_list_is_found() {
        let value = long(1_000);
        let input = RunInput::of(json!({ "list": value }));
        let list = &input.lists["list"];
        assert_eq!(list.len(), 1_000);
        for at in 0..1_000 {
            assert_eq!(list.get(at), value.get(at).cloned(), "{at}");
        }
        assert_eq!(list.get(1_000), None);
        let again = LongList::of_pieces(list.pieces().cloned());
        assert_eq!(&again, list);
    }

    #[test]
    fn a_text_that_is_no_object_or_no_json_is_read_as_ever() {
        assert_eq!(RunInput::read(" [1]").unwrap(), RunInput::from(json!([1])));
        assert!(RunInput::read("{\"a\": 1} x").is_err());
        assert!(RunInput::read("{\"a\": [1,}").is_err());
        let deep = format!("{{\"a\": {}{}}}", "[".repeat(200), "]".repeat(200));
        assert!(RunInput::read(&deep).is_err());
    }
}
