//! The files of the project that a workflow reads as values: `doc:NAME`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Value, json};

use super::outside::OutsideFiles;
use super::steps;
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Project;
use crate::program::file_value::{self, PREFIX, is_name, named};
use crate::program::reference::{Field, each_text};
use crate::syntax::document::Document;
use crate::syntax::quoted;

/// A text that names a file.
pub(crate) struct NamingText {
    /// The name.
    pub name: String,
    /// The JSON pointer of the text.
    at: String,
}

/// The names of the files that the texts of a document read.
pub(super) fn used(main: &Document) -> BTreeSet<String> {
    texts(main).into_iter().map(|text| text.name).collect()
}

/// The texts of a document that name files, each file once.
fn texts(main: &Document) -> Vec<NamingText> {
    let mut found: Vec<NamingText> = Vec::new();
    for root in ["/definition", "/properties"] {
        let Some(written) = main.value.pointer(root) else { continue };
        each_text(written, &mut root.to_owned(), &mut |at, text| {
            if !text.contains(PREFIX) {
                return;
            }
            let Ok(field) = Field::compile(&Value::from(text)) else { return };
            field.each_variable(&mut |_, variable| {
                let name = variable.path.first().and_then(|first| named(first));
                if let Some(name) = name.filter(|name| !found.iter().any(|text| text.name == **name)) {
                    found.push(NamingText { name: name.to_owned(), at: at.to_owned() });
                }
            });
        });
    }
    found
}

/// The texts of a document's steps that read files which have no value: not there, too long, or not what their names
/// say. [`faults`] reports them.
pub(crate) fn unreadable(main: &Document, project: &Project, outside: &OutsideFiles) -> Vec<NamingText> {
    if project.documents.is_empty() || steps::roots(main).is_empty() {
        return Vec::new();
    }
    let mut texts = texts(main);
    texts.retain(|text| {
        project.documents.contains_key(&text.name) && outside.documents.get(&text.name).is_some_and(Result::is_err)
    });
    texts
}

/// What is wrong with them.
pub(super) fn faults(main: &Document, project: &Project, outside: &OutsideFiles) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    for NamingText { name, at } in unreadable(main, project, outside) {
        let (Some(file), Some(Err(why))) = (project.documents.get(&name), outside.documents.get(&name)) else {
            continue;
        };
        let message = format!("the document `{name}`, {file}, can't be read: {why}");
        let fault = Diagnostic::error(codes::BAD_PROJECT_DOCUMENT, message, at.as_str(), main.tree.place(&at));
        faults.push(fault.help("the project file names it in `documents`; paths start in its folder"));
    }
    faults
}

/// A name of a document where it has no effect.
pub(super) struct MisplacedName {
    /// The bytes of the text that are wrong.
    pub range: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

/// What is wrong with a text that seems to name a document and is none of the two forms: `doc:NAME` as a whole, or
/// `{{doc:NAME}}` inside a text.
pub(super) fn misplaced(text: &str, project: &Project) -> Option<MisplacedName> {
    if let Some(name) = named(text).filter(|name| !name.split('.').all(is_name) && !name.contains(char::is_whitespace))
    {
        let known = name.split('@').next().filter(|_| name.contains('@')).filter(|name| is_name(name));
        let message = match known {
            Some(_) => format!("{} names a version, and loopctl keeps none", quoted(text)),
            None => format!("{} names no document", quoted(text)),
        };
        let help = format!("write `{PREFIX}{}`", known.unwrap_or("NAME"));
        return Some(MisplacedName { range: 0..text.len(), message, help });
    }
    for (at, _) in text.match_indices(PREFIX) {
        let (before, rest) = (text.get(..at)?, text.get(at + PREFIX.len()..)?);
        let length = rest.find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-')));
        let name = rest.get(..length.unwrap_or(rest.len()))?;
        let is_word = !before.ends_with(|letter: char| letter.is_alphanumeric());
        let is_tag = before.rfind("{{") > before.rfind("}}");
        if at > 0 && is_word && !is_tag && project.documents.contains_key(name) {
            let message = format!("`{PREFIX}{name}` is plain text here");
            let help = format!("inside a text it is written `{{{{{PREFIX}{name}}}}}`");
            return Some(MisplacedName { range: at..at + PREFIX.len() + name.len(), message, help });
        }
    }
    None
}

/// The schema of the value of a document, as far as it is known: a CSV file has the columns of its first row.
pub(super) fn schema(name: &str, project: &Project, outside: &OutsideFiles) -> Option<Value> {
    let file = project.documents.get(name)?.to_ascii_lowercase();
    if !file.ends_with(".csv") {
        return (!file.ends_with(".json")).then(|| json!({ "type": "string" }));
    }
    let row = match outside.documents.get(name) {
        Some(Ok(columns)) if !columns.is_empty() => {
            // A cell is a text that may read as a number or as JSON.
            let cell = json!({ "type": "string", "format": "number or JSON" });
            let columns: BTreeMap<&str, &Value> = columns.iter().map(|column| (column.as_str(), &cell)).collect();
            json!({ "type": "object", "properties": columns, "additionalProperties": false })
        }
        _ => json!({ "type": "object" }),
    };
    Some(json!({ "type": "array", "items": row }))
}

/// What is known of a document before a run: the columns of a CSV file, or why it has no value.
pub fn known(file: &str, text: &str) -> Result<Vec<String>, String> {
    let value = file_value::read(file, text).map_err(|fault| fault.to_string())?;
    let first = value.as_array().and_then(|rows| rows.first()).and_then(Value::as_object);
    Ok(first.map(|row| row.keys().cloned().collect()).unwrap_or_default())
}
