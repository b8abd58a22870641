//! The run's input: `--input K=V` and `--input-file`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::failure::CommandError;
use crate::diagnostic::Source;
use crate::policy::json_text;
use crate::policy::media::MAX_FILE_BYTES;
use crate::program::Program;
use crate::program::bind::run_input::{LongLists, RunInput};
use crate::program::file_value;
use crate::program::input_file::{self, FilePlace};
use crate::project::{ReachedFile, guarded_read};
use crate::syntax;

/// The input of the run.
#[derive(Debug, Clone, Default, Args)]
pub struct InputArgs {
    /// A field of the run's input, or several as a JSON object; repeatable. V is parsed as JSON if it is valid JSON,
    /// unless the document's `input` declares a string
    #[arg(long = "input", value_name = "K=V|JSON")]
    pub fields: Vec<String>,
    /// The run's input as a JSON file; `-` reads stdin. Fields of --input override it
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
}

impl InputArgs {
    /// Whether stdin is read for it.
    pub fn reads_stdin(&self) -> bool {
        self.input_file.as_deref() == Some(Path::new("-"))
    }

    /// The input; `Null` when none is given, which leaves the document's own.
    ///
    /// # Errors
    /// When a field is neither written `K=V` nor an object, or the file is no JSON.
    pub fn read(&self, program: &Program) -> Result<RunInput, CommandError> {
        let mut input = self.read_values(program)?;
        read_files(&program.file_places(), &mut input.value)?;
        Ok(input)
    }

    fn read_values(&self, program: &Program) -> Result<RunInput, CommandError> {
        let given = match &self.input_file {
            // Its long lists stay text.
            Some(file) if program.is_flow() => Some(json_of(file, RunInput::read)?),
            Some(file) => Some(RunInput::from(read_json(file)?)),
            None => None,
        };
        if self.fields.is_empty() {
            return Ok(given.unwrap_or_default());
        }
        let mut lists = LongLists::new();
        let mut fields = match given {
            None => program.default_input().cloned().unwrap_or_default(),
            Some(RunInput { value: Value::Object(fields), lists: long }) => {
                lists = long;
                fields
            }
            Some(_) => {
                return Err(CommandError::usage_help(
                    "--input sets a field of an object, but the file of --input-file contains no object",
                    "leave out --input, or write an object into the file",
                ));
            }
        };
        let schema = program.input.as_ref().map(crate::program::schema::Schema::source);
        let mut given = BTreeSet::new();
        for field in &self.fields {
            for (name, value) in read_fields(field, schema)? {
                // As with a duplicate key in a document, it is unclear which value is right.
                if !given.insert(name.clone()) {
                    return Err(CommandError::usage_help(
                        format!("--input {name}=... is given twice"),
                        format!("keep one of the two; an array is written as JSON: --input '{name}=[\"a\", \"b\"]'"),
                    ));
                }
                lists.remove(&name);
                fields.insert(name, value);
            }
        }
        Ok(RunInput { value: Value::Object(fields), lists })
    }
}

/// The members of an object, or the name and the value of `K=V`.
fn read_fields(field: &str, schema: Option<&Value>) -> Result<Map<String, Value>, CommandError> {
    if field.trim_start().starts_with('{') {
        // JSON that begins with a brace is an object.
        return json(Source::new("--input", field), |text| json_text::read(text));
    }
    let Some((name, text)) = field.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(CommandError::usage_help(
            format!("--input {field} is not of the form K=V"),
            "write --input ticket_id=TK-1; quote a text with spaces: --input 'question=Why is it late?'; or an object: \
             --input '{\"ticket_id\": \"TK-1\"}'",
        ));
    };
    let value = if wants_text(schema, name) {
        Value::String(text.to_owned())
    } else {
        json_text::read(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    };
    if !value.is_string()
        && let Some(key) = file_value::reserved_key(text)
    {
        return Err(CommandError::usage(format!("--input {name}: {}", file_value::reserved(&key))));
    }
    if let Some(key) = file_value::key_twice(text, &value).filter(|_| value.is_object() || value.is_array()) {
        return Err(stands_twice(&format!("--input {name}"), &key));
    }
    Ok(Map::from_iter([(name.to_owned(), value)]))
}

/// Whether the input schema says that the field is a string.
fn wants_text(schema: Option<&Value>, name: &str) -> bool {
    let Some(root) = schema else { return false };
    let Some(field) = root.get("properties").and_then(|properties| properties.get(name)) else { return false };
    let field = resolved(root, field);
    match field.get("anyOf").or_else(|| field.get("oneOf")).and_then(Value::as_array) {
        Some(choices) if field.get("type").is_none() => choices.iter().any(|choice| is_text(resolved(root, choice))),
        _ => is_text(field),
    }
}

/// The part of a schema that another part refers to, or else that part.
fn resolved<'s>(root: &'s Value, part: &'s Value) -> &'s Value {
    let name = part.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#'));
    name.and_then(|pointer| root.pointer(pointer)).unwrap_or(part)
}

/// Whether a schema takes texts.
fn is_text(field: &Value) -> bool {
    let is_text = |kind: &Value| kind.as_str() == Some("string");
    match (field.get("type"), field.get("enum")) {
        (Some(Value::Array(kinds)), _) => kinds.iter().any(is_text),
        (Some(kind), _) => is_text(kind),
        (None, Some(Value::Array(values))) => !values.is_empty() && values.iter().all(Value::is_string),
        (None, _) => field.get("const").is_some_and(Value::is_string),
    }
}

/// Reads the files that an input names by their path: `photo=receipt.png`, or `{"type": "file", "path": "receipt.png"}`.
fn read_files(places: &[FilePlace], input: &mut Value) -> Result<(), CommandError> {
    for place in places {
        match input.get_mut(&place.name) {
            Some(Value::Array(items)) if place.is_list => {
                items.iter_mut().try_for_each(|item| read_file(&place.name, item))?;
            }
            Some(value) if !place.is_list => read_file(&place.name, value)?,
            // One path for a list is a list of one file.
            Some(value @ Value::String(_)) => {
                read_file(&place.name, value)?;
                *value = Value::Array(vec![value.take()]);
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_file(name: &str, value: &mut Value) -> Result<(), CommandError> {
    let path = match &*value {
        Value::String(path) => path.clone(),
        Value::Object(file) => match file.get("path") {
            Some(Value::String(path)) if !file.contains_key("base64") && !file.contains_key("url") => path.clone(),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let bytes = reached(Path::new(&path))?.bytes(MAX_FILE_BYTES).map_err(|unread| {
        CommandError::usage(format!("the file {path:?} of `{name}` can't be read: {}", unread.reason(MAX_FILE_BYTES)))
    })?;
    let mut file = value.as_object_mut().map(std::mem::take).unwrap_or_default();
    file.remove("path");
    file.insert("type".to_owned(), json!("file"));
    file.insert("base64".to_owned(), json!(input_file::encoded(&bytes)));
    if let Some(own) = Path::new(&path).file_name() {
        file.entry("name").or_insert_with(|| json!(own.to_string_lossy()));
    }
    *value = Value::Object(file);
    Ok(())
}

/// A JSON file, or stdin for `-`.
///
/// # Errors
/// When it can't be read, is no JSON, or has a key twice: each fault with its place.
pub fn read_json(file: &Path) -> Result<Value, CommandError> {
    json_of(file, |text| json_text::read(text))
}

/// The same, read by `read`.
fn json_of<T>(file: &Path, read: impl Fn(&str) -> serde_json::Result<T>) -> Result<T, CommandError> {
    let text = read_text(file)?;
    if text.trim().is_empty() {
        let help = "an input is a JSON object: {\"ticket_id\": \"TK-1\"}";
        return Err(CommandError::usage_help(format!("{} is empty", name_of(file)), help));
    }
    json(Source::new(name_of(file), text), read)
}

/// The value of a JSON text.
fn json<T>(source: Source, read: impl Fn(&str) -> serde_json::Result<T>) -> Result<T, CommandError> {
    let (tree, faults) = syntax::parse(&source);
    match read(&source.text) {
        Err(error) if faults.is_empty() => Err(CommandError::usage(format!("{} is not JSON: {error}", source.name))),
        Err(_) => Err(CommandError::text(source, faults)),
        Ok(value) => match syntax::repeated_keys(&tree) {
            twice if faults.is_empty() && !twice.is_empty() => Err(CommandError::text(source, twice)),
            // An input may be larger than a document: then only its beginning was checked here.
            _ if !faults.is_empty() => match file_value::key_twice_in(&source.text) {
                Some(key) => Err(stands_twice(&source.name, &key)),
                None => match file_value::reserved_key(&source.text) {
                    Some(key) => Err(CommandError::usage(format!("{}: {}", source.name, file_value::reserved(&key)))),
                    None => Ok(value),
                },
            },
            _ => Ok(value),
        },
    }
}

fn stands_twice(source: &str, key: &str) -> CommandError {
    CommandError::usage_help(
        format!("the key {key:?} stands twice in an object of {source}"),
        "JSON keeps one of the two: take one out",
    )
}

/// The name of a file in messages.
pub fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() }
}

/// The longest file of an input or a script: 64 MiB.
const MAX_BYTES: usize = 64 << 20;

/// A text file, or stdin for `-`. Only regular files are opened: a pipe would block, and a device may have no
/// end.
///
/// # Errors
/// When it can't be read.
pub fn read_text(file: &Path) -> Result<String, CommandError> {
    let read = if file == Path::new("-") { guarded_read::stdin(MAX_BYTES) } else { reached(file)?.text(MAX_BYTES) };
    read.map_err(|unread| CommandError::usage(format!("{} can't be read: {}", name_of(file), unread.reason(MAX_BYTES))))
}

/// The file that a path of the caller leads to, in a folder that somebody else may have made.
pub fn reached(file: &Path) -> Result<ReachedFile, CommandError> {
    ReachedFile::of(file).map_err(|fault| {
        CommandError::usage_help(format!("{}: {}", name_of(file), fault.message), "name the file that it leads to")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(text: &str, schema: &Value) -> Value {
        read_fields(text, Some(schema)).unwrap().remove("n").unwrap()
    }

    #[test]
    fn a_value_is_json_when_it_reads_as_json() {
        for (text, value) in [
            ("n=12", json!(12)),
            ("n=true", json!(true)),
            ("n={\"a\":[1]}", json!({"a": [1]})),
            ("n=TK-1", json!("TK-1")),
            ("n=", json!("")),
            ("n=a=b", json!("a=b")),
        ] {
            assert_eq!(field(text, &json!({})), value, "{text}");
        }
    }

    #[test]
    fn a_value_stays_text_where_the_schema_says_string() {
        for schema in [
            json!({"properties": {"n": {"type": "string"}}}),
            json!({"properties": {"n": {"type": ["string", "null"]}}}),
            json!({"properties": {"n": {"enum": ["1", "2"]}}}),
            json!({"properties": {"n": {"$ref": "#/$defs/id"}}, "$defs": {"id": {"type": "string"}}}),
        ] {
            assert_eq!(field("n=12", &schema), json!("12"), "{schema}");
        }
        assert_eq!(field("n=12", &json!({"properties": {"n": {"type": "integer"}}})), json!(12));
    }

    #[test]
    fn an_object_gives_all_its_members_as_they_are_written() {
        let schema = json!({"properties": {"n": {"type": "string"}}});
        for text in ["{\"n\": 12, \"a=b\": [1]}", "  {\"n\":12,\"a=b\":[1]}"] {
            assert_eq!(
                Value::Object(read_fields(text, Some(&schema)).unwrap()),
                json!({"n": 12, "a=b": [1]}),
                "{text}"
            );
        }
        for text in ["{\"n\": 12", "{n: 12}", "{\"n\": 1, \"n\": 2}", "{\"n\": 1} and more"] {
            assert!(read_fields(text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn digits_are_kept() {
        assert_eq!(field("n=12345678901234567890123", &json!({})).to_string(), "12345678901234567890123");
    }

    #[test]
    fn a_field_without_a_name_or_a_value_is_refused() {
        for text in ["n", "=1", ""] {
            assert!(read_fields(text, None).is_err(), "{text}");
        }
    }
}
