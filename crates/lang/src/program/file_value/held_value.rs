//! The values of files as a run holds them. Long lists stay text, as those of its input do: parsed, the rows of a file take
//! up to twenty times the memory of their text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ptr;

use serde_json::{Map, Value};

use super::named;
use crate::program::bind::run_input::{LongList, LongListWriter, RunInput};

/// The value of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum FileValue {
    /// A long list.
    List(LongList),
    /// Any other value; the long lists among the members of an object are apart.
    Value(RunInput),
}

/// The values of the files of a run, by `doc:NAME`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileValues {
    /// The values, with null in the place of each long list.
    names: Map<String, Value>,
    /// The files with long lists.
    with_lists: BTreeMap<String, FileValue>,
}

/// A long list that a path leads into.
pub struct ListOnPath<'f> {
    /// The list.
    pub list: &'f LongList,
    /// How many names of the path lead to it.
    pub depth: usize,
}

impl FileValue {
    /// The value of a file that was parsed as a whole.
    pub fn of(value: Value) -> Self {
        match value {
            Value::Array(items) => {
                let mut writer = LongListWriter::default();
                items.iter().for_each(|item| writer.push(item));
                Self::of_list(writer)
            }
            value => Self::Value(RunInput::of(value)),
        }
    }

    pub(super) fn of_list(writer: LongListWriter) -> Self {
        let is_long = writer.is_long();
        let list = writer.finish();
        if is_long { Self::List(list) } else { Self::Value(RunInput::from(list.whole())) }
    }

    /// All of it, parsed.
    pub fn whole(&self) -> Cow<'_, Value> {
        match self {
            Self::List(list) => Cow::Owned(list.whole()),
            Self::Value(value) => value.whole(),
        }
    }
}

impl FileValues {
    /// Adds a file; `name` is its `doc:NAME`.
    pub fn insert(&mut self, name: String, value: FileValue) {
        let (shown, has_lists) = match &value {
            FileValue::List(_) => (Value::Null, true),
            FileValue::Value(value) => (value.value.clone(), !value.lists.is_empty()),
        };
        self.names.insert(name.clone(), shown);
        if has_lists {
            self.with_lists.insert(name, value);
        }
    }

    /// The names, with null in the place of each long list.
    pub fn names(&self) -> &Map<String, Value> {
        &self.names
    }

    /// Whether a name is that of a file, by the names that can be used, the nearest first: one of them may hide it.
    pub fn are_meant<'n>(&self, name: &str, mut near: impl Iterator<Item = &'n Map<String, Value>>) -> bool {
        named(name).is_some()
            && near.find(|names| names.contains_key(name)).is_some_and(|names| ptr::eq(names, &raw const self.names))
    }

    /// The long list that a path leads into.
    pub fn list_on(&self, path: &[String]) -> Option<ListOnPath<'_>> {
        match (self.with_lists.get(path.first()?)?, path.get(1)) {
            (FileValue::List(list), _) => Some(ListOnPath { list, depth: 1 }),
            (FileValue::Value(value), Some(name)) => value.lists.get(name).map(|list| ListOnPath { list, depth: 2 }),
            (FileValue::Value(_), None) => None,
        }
    }

    /// The long list at a path.
    pub fn list_at(&self, path: &[String]) -> Option<&LongList> {
        self.list_on(path).filter(|found| found.depth == path.len()).map(|found| found.list)
    }

    /// The whole value of a file whose long lists are apart.
    pub fn whole(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.with_lists.get(name).map(FileValue::whole)
    }
}

impl FromIterator<(String, FileValue)> for FileValues {
    fn from_iter<I: IntoIterator<Item = (String, FileValue)>>(files: I) -> Self {
        let mut values = Self::default();
        files.into_iter().for_each(|(name, value)| values.insert(name, value));
        values
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(count: usize) -> Value {
        (0..count).map(|number| json!({ "id": number, "note": "x".repeat(100) })).collect()
    }

    fn path(path: &str) -> Vec<String> {
        path.split('.').map(str::to_owned).collect()
    }

    #[test]
    fn long_lists_stay_text_and_other_values_are_parsed() {
        let (long, object) = (rows(1_000), json!({ "day": 7, "rows": rows(1_000), "few": [1] }));
        let files: FileValues =
            [("long", &long), ("object", &object), ("short", &json!([1, 2])), ("text", &json!("a"))]
                .into_iter()
                .map(|(name, value)| (format!("doc:{name}"), FileValue::of(value.clone())))
                .collect();
        assert_eq!(
            Value::Object(files.names().clone()),
            json!({ "doc:long": null, "doc:object": { "day": 7, "rows": null, "few": [1] }, "doc:short": [1, 2], "doc:text": "a" })
        );
        let depth = |of: &str| files.list_on(&path(of)).map(|found| found.depth);
        assert_eq!(
            (depth("doc:long.3.id"), depth("doc:object.rows.3"), depth("doc:object.few")),
            (Some(1), Some(2), None)
        );
        assert_eq!((depth("doc:object"), depth("doc:short.0"), depth("doc:none")), (None, None, None));
        assert_eq!(files.list_at(&path("doc:long")).map(LongList::whole), Some(long.clone()));
        assert_eq!(files.list_at(&path("doc:long.3")), None);
        assert_eq!(files.whole("doc:long").as_deref(), Some(&long));
        assert_eq!(files.whole("doc:object").as_deref(), Some(&object));
        assert_eq!(files.whole("doc:short"), None, "it is among the names");
    }

    #[test]
    fn a_nearer_name_hides_a_file() {
        let files: FileValues = [("doc:d".to_owned(), FileValue::of(rows(1_000)))].into_iter().collect();
        let near = json!({ "doc:d": 1 });
        let near = near.as_object().unwrap();
        assert!(files.are_meant("doc:d", [files.names()].into_iter()));
        assert!(!files.are_meant("doc:d", [near, files.names()].into_iter()));
        assert!(!files.are_meant("doc:e", [files.names()].into_iter()));
    }
}
