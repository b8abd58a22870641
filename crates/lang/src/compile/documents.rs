//! The files of the project that a workflow reads as values: `doc:NAME`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::outside_files::{OutsideFiles, ValueKind};
use super::steps::{self, CELL_FORMAT};
use crate::diagnostic::{Diagnostic, codes};
use crate::language::Project;
use crate::language::document_file::{ColumnType, EmptyValue, TableForm};
use crate::program::bind::run_input::{LongList, RunInput};
use crate::program::file_value::{self, FileValue, PREFIX, is_name, named};
use crate::program::reference::{Field, as_path, each_text};
use crate::syntax::document::Document;
use crate::syntax::{Tree, quoted};

/// A text that names a file.
pub(crate) struct NamingText {
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
        // An entry without a path is reported as such.
        if file.path().is_empty() {
            continue;
        }
        let message = format!("the document `{name}`, {}, can't be read: {why}", file.path());
        let fault = Diagnostic::error(codes::BAD_PROJECT_DOCUMENT, message, at.as_str(), main.tree.place(&at));
        faults.push(fault.help(way_on(why)));
    }
    faults
}

/// What helps against a file that can't be read.
fn way_on(why: &str) -> &'static str {
    if why.starts_with("it is no text") {
        "save the file as UTF-8; a spreadsheet calls it \"CSV UTF-8\""
    } else if why.contains("which `columns` names") {
        "the name is in `columns` of the document's entry in the project file"
    } else if why.starts_with("line ") {
        "correct the file, or say in the document's entry in the project file how it is read: `columns`, `decimal`, `empty`"
    } else {
        "the project file names it in `documents`; paths start in its folder"
    }
}

/// Whether a word is written before the names of documents, elsewhere or here.
pub(super) fn is_word_for(word: &str) -> bool {
    ["doc", "docs", "document", "documents"].iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// The document, with a path behind it, that a text means which names one otherwise: with an `@`, in braces, without `doc:`.
pub(crate) fn meant(text: &str, project: &Project) -> Option<String> {
    let is_mark = |letter: char| matches!(letter, '@' | '{' | '}' | '$') || letter.is_whitespace();
    let bare = text.trim_matches(is_mark);
    let bare = bare.split_once([':', '.']).filter(|(word, _)| is_word_for(word)).map_or(bare, |(_, name)| name).trim();
    let of_file = |file: &str| file == bare || file.rsplit('/').next() == Some(bare);
    if let Some((name, _)) = project.documents.iter().find(|(name, file)| of_file(file.path()) && is_name(name)) {
        return Some(format!("{PREFIX}{name}"));
    }
    let name = bare.split('.').next().filter(|name| project.documents.contains_key(*name))?;
    let meant = format!("{PREFIX}{bare}");
    (is_name(name) && meant != text && as_path(&meant).is_some()).then_some(meant)
}

/// A name of a document where it has no effect.
pub(super) struct MisplacedName {
    /// The bytes of the text that are wrong.
    pub range: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub help: String,
    /// What is written in the place of these bytes, where that is certain.
    pub meant: Option<String>,
}

impl MisplacedName {
    /// The same in a text that is rendered as a template: the value has braces around it.
    #[must_use]
    pub fn in_template(self) -> Self {
        let Some(meant) = self.meant.map(|meant| format!("{{{{{meant}}}}}")) else {
            return Self { meant: None, ..self };
        };
        Self { help: format!("write `{meant}`"), meant: Some(meant), ..self }
    }

    /// Reports it in the text at a JSON pointer.
    pub fn report(self, tree: &Tree, at: &str) -> Diagnostic {
        let fault = Diagnostic::error(codes::UNKNOWN_VARIABLE, self.message, at, tree.place_inside(at, &self.range));
        let fault = fault.help(self.help);
        match self.meant {
            Some(meant) => fault.suggest(meant),
            None => fault,
        }
    }
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
        return Some(MisplacedName { range: 0..text.len(), message, help, meant: None });
    }
    // With a mark before it, the whole is a document that is written as a path is.
    let is_marked = text.starts_with("@doc:") || text.starts_with("${doc:");
    if let Some(meant) = Some(text).filter(|_| is_marked).and_then(|text| meant(text, project)) {
        let message = format!("{} is plain text here: a document has no mark before it", quoted(text));
        let help = format!("write `{meant}`");
        return Some(MisplacedName { range: 0..text.len(), message, help, meant: Some(meant) });
    }
    if is_marked && text.strip_prefix('@').is_some_and(|path| as_path(path).is_some()) {
        let message = format!("{} is plain text here, and names no document of the project", quoted(text));
        let help = format!("a document is written `{PREFIX}NAME`, and `documents` of loopctl.json names its file");
        return Some(MisplacedName { range: 0..text.len(), message, help, meant: None });
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
            return Some(MisplacedName { range: at..at + PREFIX.len() + name.len(), message, help, meant: None });
        }
    }
    None
}

/// The schema of the value of a document, as far as it is known.
pub(super) fn schema(name: &str, project: &Project, outside: &OutsideFiles) -> Option<Value> {
    let file = project.documents.get(name)?.path().to_ascii_lowercase();
    if !file.ends_with(".csv") && !file.ends_with(".json") {
        return Some(json!({ "type": "string" }));
    }
    match outside.documents.get(name) {
        Some(Ok(schema)) => Some(schema.clone()).filter(|schema| *schema != Value::Bool(true)),
        _ => file.ends_with(".csv").then(|| json!({ "type": "array", "items": { "type": "object" } })),
    }
}

/// The most entries of a list whose members are looked at, the most members of an object, and how deep.
const MAX_ENTRIES: usize = 1_000;
const MAX_MEMBERS: usize = 200;
/// The most columns of a CSV file whose names and types are known before a run.
const MAX_COLUMNS: usize = 2_000;
const MAX_DEPTH: usize = 6;

/// What is known of a document before a run: the schema of its value, or why it has none.
pub fn known(file: &str, text: &str, form: Option<&TableForm>) -> Result<Value, String> {
    let value = file_value::read(file, text, form).map_err(|fault| fault.to_string())?;
    if !file.to_ascii_lowercase().ends_with(".csv") {
        return Ok(match value {
            FileValue::List(list) => shape_of_list(&list, MAX_DEPTH),
            FileValue::Value(value) => shape_of(&value),
        });
    }
    let row = |at: usize| match &value {
        FileValue::List(rows) => rows.get(at),
        FileValue::Value(rows) => rows.value.get(at).cloned(),
    };
    let first = row(0);
    let Some(first) = first.as_ref().and_then(Value::as_object).filter(|first| first.len() <= MAX_COLUMNS) else {
        return Ok(json!({ "type": "array", "items": { "type": "object" } }));
    };
    let mut columns: BTreeMap<&String, Value> =
        first.keys().map(|column| (column, cell_schema(column, form))).collect();
    let is_flag = |cell: &Value| cell.as_str().is_some_and(|text| FLAGS.contains(&text) || text.is_empty());
    let mut flags: Vec<&String> = first
        .iter()
        .filter(|(_, cell)| cell.as_str().is_some_and(|text| FLAGS.contains(&text)))
        .map(|(column, _)| column)
        .collect();
    for next in (1..MAX_ENTRIES).map_while(row) {
        flags.retain(|column| next.get(column.as_str()).is_some_and(is_flag));
        if flags.is_empty() {
            break;
        }
    }
    for flag in flags {
        if let Some(members) = columns.get_mut(flag).and_then(Value::as_object_mut) {
            members.insert("examples".to_owned(), json!(["true", "false"]));
        }
    }
    let row = json!({ "type": "object", "properties": columns, "additionalProperties": false });
    Ok(json!({ "type": "array", "items": row }))
}

/// The texts of a column that is meant as one of booleans, and has no type.
const FLAGS: [&str; 2] = ["true", "false"];

/// Whether a column without a type is meant as one of booleans, by what is in it.
pub(crate) fn is_flag_column(schema: &Map<String, Value>) -> bool {
    schema.get("format").and_then(Value::as_str) == Some(CELL_FORMAT) && schema.contains_key("examples")
}

/// The schema of the values of a column.
fn cell_schema(column: &str, form: Option<&TableForm>) -> Value {
    let kind = form.and_then(|form| form.columns.get(column)).copied().unwrap_or(ColumnType::Text);
    let may_be_null = form.is_some_and(|form| form.empty == Some(EmptyValue::Null));
    let (name, format) = match kind {
        // A cell is a text that may read as a number or as JSON.
        ColumnType::Text => ("string", Some(CELL_FORMAT)),
        ColumnType::Integer => ("integer", None),
        ColumnType::Number => ("number", None),
        ColumnType::Boolean => ("boolean", None),
        ColumnType::Date => ("string", Some("date")),
        ColumnType::Time => ("string", Some("date-time")),
    };
    let mut schema = json!({ "type": if may_be_null { json!([name, "null"]) } else { json!(name) } });
    if let (Some(format), Some(members)) = (format, schema.as_object_mut()) {
        members.insert("format".to_owned(), format.into());
    }
    schema
}

/// The schema of a value. Its long lists are parsed only if they have few items.
fn shape_of(value: &RunInput) -> Value {
    let mut shape = shape(&[&value.value], MAX_DEPTH);
    if let Some(members) = shape.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, list) in &value.lists {
            members.insert(name.clone(), shape_of_list(list, MAX_DEPTH - 1));
        }
    }
    shape
}

fn shape_of_list(list: &LongList, depth: usize) -> Value {
    match list.len() > MAX_ENTRIES {
        true => json!({ "type": "array" }),
        false => shape(&[&list.whole()], depth),
    }
}

/// The schema of all members that these values have; `true` where they are of several kinds, or are too many.
fn shape(values: &[&Value], depth: usize) -> Value {
    let open = Value::Bool(true);
    let Some(depth) = depth.checked_sub(1) else { return open };
    if !values.is_empty() && values.iter().all(|value| value.is_object()) {
        let mut members: BTreeMap<&String, Vec<&Value>> = BTreeMap::new();
        for (name, value) in values.iter().filter_map(|value| value.as_object()).flatten() {
            members.entry(name).or_default().push(value);
        }
        if members.len() > MAX_MEMBERS {
            return open;
        }
        let members: BTreeMap<&String, Value> =
            members.into_iter().map(|(name, values)| (name, shape(&values, depth))).collect();
        return json!({ "type": "object", "properties": members });
    }
    if !values.is_empty() && values.iter().all(|value| value.is_array()) {
        let entries: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
        let is_known = (1..=MAX_ENTRIES).contains(&entries.len());
        let items = if is_known { shape(&entries, depth) } else { open.clone() };
        return if items == open { json!({ "type": "array" }) } else { json!({ "type": "array", "items": items }) };
    }
    let kind = |value: &&Value| match value {
        Value::String(_) => Some(ValueKind::Text),
        Value::Number(_) => Some(ValueKind::Number),
        Value::Bool(_) => Some(ValueKind::Boolean),
        _ => None,
    };
    // What is null has no kind of its own.
    let mut kinds = values.iter().filter(|value| !value.is_null()).map(kind);
    let first = kinds.next().flatten();
    first.filter(|first| kinds.all(|kind| kind == Some(*first))).map_or(open, ValueKind::schema)
}

/// What is known of a list that is written in a document. A text may be a path, or a template.
pub(super) fn of_literal(list: &Value) -> Value {
    let mut takes = false;
    each_text(list, &mut String::new(), &mut |_, text| {
        takes |= text.starts_with(['@', '\\']) || text.contains("{{") || text.contains(PREFIX);
    });
    if takes { Value::Bool(true) } else { shape(&[list], MAX_DEPTH) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ValueKind, known};

    #[test]
    fn a_json_document_has_the_members_that_any_of_its_entries_has() {
        let text =
            r#"{"lot": 7, "stores": [{"id": 1, "tags": []}, {"id": "2", "at": {"city": "Bern"}}], "mixed": [1, {}]}"#;
        let store = json!({"type": "object", "properties": {"id": true, "tags": {"type": "array"},
            "at": {"type": "object", "properties": {"city": ValueKind::Text.schema()}}}});
        let schema = json!({"type": "object", "properties": {"lot": ValueKind::Number.schema(), "mixed": {"type": "array"},
            "stores": {"type": "array", "items": store}}});
        assert_eq!(known("recall.json", text, None), Ok(schema));
    }

    #[test]
    fn a_column_without_a_type_that_has_true_and_false_alone_is_known_as_such() {
        let rows = known("d.csv", "a,b,c,d\ntrue,true,x,\nfalse,,true,true\n", None).unwrap();
        let columns = rows["items"]["properties"].as_object().unwrap();
        let flags: Vec<&str> = columns
            .iter()
            .filter(|(_, column)| super::is_flag_column(column.as_object().unwrap()))
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(flags, ["a", "b"]);
    }

    #[test]
    fn the_columns_of_a_very_wide_file_are_not_looked_at_before_a_run() {
        let of = |columns: usize| {
            let names: Vec<String> = (0..columns).map(|column| format!("c{column}")).collect();
            known("d.csv", &format!("{}\n{}\n", names.join(","), ",".repeat(columns - 1)), None).unwrap()
        };
        assert_eq!(of(2_000)["items"]["properties"].as_object().unwrap().len(), 2_000);
        assert_eq!(of(2_001), json!({"type": "array", "items": {"type": "object"}}));
    }
}
