//! The files of a page, and where the references in them lead. Nothing is opened here: the caller reads the files that are named.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The most references that lead from one to the next.
const MAX_CHAIN: usize = 32;

/// The files of a page: the page itself, and those that its references name, by their paths in its folder.
#[derive(Debug)]
pub struct PageFiles {
    main: String,
    files: BTreeMap<String, Value>,
}

/// A part of a page, and the file that it is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct PagePart<'p> {
    pub file: &'p str,
    pub value: &'p Value,
}

/// Where a reference leads.
#[derive(Debug, Clone)]
pub(super) struct PageTarget<'p> {
    /// The file and the pointer in it, by which two references to one part are the same.
    pub key: String,
    pub part: PagePart<'p>,
}

impl PageFiles {
    /// A page with the name of its file.
    pub fn new(main: &str, page: Value) -> Self {
        Self { main: main.to_owned(), files: BTreeMap::from([(main.to_owned(), page)]) }
    }

    /// Adds a file, by its path in the folder of the page.
    pub fn add(&mut self, path: String, value: Value) {
        self.files.insert(path, value);
    }

    /// The paths of the files in the page's folder that are named and not there yet.
    pub fn missing(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (file, value) in &self.files {
            let mut todo = vec![value];
            while let Some(value) = todo.pop() {
                match value {
                    Value::Array(items) => todo.extend(items),
                    Value::Object(members) => {
                        let reference = members.get("$ref").and_then(Value::as_str);
                        let named = reference.and_then(|text| file_of(file, text).ok());
                        found.extend(named.filter(|path| !self.files.contains_key(path)));
                        todo.extend(members.values());
                    }
                    _ => {}
                }
            }
        }
        found
    }

    pub(super) fn page(&self) -> PagePart<'_> {
        static NONE: Value = Value::Null;
        PagePart { file: &self.main, value: self.files.get(&self.main).unwrap_or(&NONE) }
    }

    /// The part that a reference in a file names.
    ///
    /// # Errors
    /// Why it can't be found, in a sentence without a final stop.
    pub(super) fn target(&self, file: &str, reference: &str) -> Result<PageTarget<'_>, String> {
        let path = file_of(file, reference)?;
        let pointer = reference.split_once('#').map_or("", |(_, pointer)| pointer);
        let pointer = percent_decode_str(pointer).decode_utf8().map_err(|_| unfound(reference))?;
        let (name, value) = self.files.get_key_value(&path).ok_or_else(|| unfound(reference))?;
        // Names of anchors are no pointers.
        let value = value.pointer(&pointer).filter(|value| !value.is_null()).ok_or_else(|| unfound(reference))?;
        // The name of the page itself says nothing.
        let path = if path == self.main { "" } else { path.as_str() };
        Ok(PageTarget { key: format!("{path}#{pointer}"), part: PagePart { file: name, value } })
    }

    /// A part without a reference: where its references lead in the end.
    ///
    /// # Errors
    /// Why it can't be found, in a sentence without a final stop.
    pub(super) fn follow<'p>(&'p self, part: PagePart<'p>) -> Result<PagePart<'p>, String> {
        let mut at = part;
        for _ in 0..MAX_CHAIN {
            let Some(reference) = at.value.get("$ref").and_then(Value::as_str) else { return Ok(at) };
            at = self.target(at.file, reference)?.part;
        }
        Err("its references lead in a circle".to_owned())
    }
}

impl<'p> PagePart<'p> {
    /// A member of it.
    pub(super) fn get(self, name: &str) -> Option<Self> {
        self.value.get(name).map(|value| Self { value, ..self })
    }

    /// A text of it.
    pub(super) fn text(self, name: &str) -> Option<&'p str> {
        self.value.get(name).and_then(Value::as_str)
    }

    /// Whether a member of it is true.
    pub(super) fn is(self, name: &str) -> bool {
        self.value.get(name) == Some(&Value::Bool(true))
    }

    /// Its members; none when it has no names.
    pub(super) fn members(self) -> impl Iterator<Item = (&'p String, Self)> {
        let members = self.value.as_object().into_iter().flatten();
        members.map(move |(name, value)| (name, Self { value, ..self }))
    }

    /// Its items; none when it is no list.
    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        self.value.as_array().into_iter().flatten().map(move |value| Self { value, ..self })
    }

    /// Its members by name.
    pub(super) fn object(self) -> Option<&'p Map<String, Value>> {
        self.value.as_object()
    }
}

fn unfound(reference: &str) -> String {
    format!("the reference `{reference}` leads to nothing")
}

/// The path of the file that a reference in a file names.
///
/// # Errors
/// When it is an address, or leads out of the folder.
fn file_of(file: &str, reference: &str) -> Result<String, String> {
    let named = reference.split_once('#').map_or(reference, |(named, _)| named);
    if named.is_empty() {
        return Ok(file.to_owned());
    }
    let is_address = named.split(['/', '\\']).next().is_some_and(|first| first.contains(':'));
    if is_address || named.starts_with(['/', '\\']) {
        return Err(format!("the reference `{reference}` leads out of the page's folder, and is not followed"));
    }
    let named = percent_decode_str(named).decode_utf8().map_err(|_| unfound(reference))?;
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in named.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                let out = || format!("the reference `{reference}` leads out of the page's folder, and is not followed");
                parts.pop().ok_or_else(out)?;
            }
            name => parts.push(name),
        }
    }
    if parts.is_empty() { Err(unfound(reference)) } else { Ok(parts.join("/")) }
}
