//! The value of a file that a project names in `documents`: CSV is a list of objects, JSON its value, anything else a text.

mod csv;
mod held_value;
mod json;
mod typed_cell;
mod weight;

use serde_json::{Map, Value};

use crate::language::document_file::TableForm;
use crate::policy::json_text;

pub use held_value::{FileValue, FileValues, ListOnPath};
pub use json::{is_too_heavy, key_twice, key_twice_in, reserved, reserved_key, written_json};
pub use weight::MAX_WEIGHT;

/// What `@paths` and templates call such a file: `doc:NAME`.
pub const PREFIX: &str = "doc:";
/// The most bytes of one file.
pub const MAX_BYTES: usize = 8 << 20;
/// The most bytes of all files that a run reads.
pub const MAX_TOTAL: usize = 16 << 20;

/// Why a file has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct FileFault {
    /// What is wrong, in a sentence without a final stop.
    pub message: String,
    /// Where, from 1.
    pub line: u64,
}

/// Whether a name can stand after `doc:`.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'))
}

/// The name of a document that a path begins with.
pub fn named(first: &str) -> Option<&str> {
    first.strip_prefix(PREFIX)
}

/// What the name of a file says of its text.
enum FileKind {
    Csv,
    Json,
    Text,
}

impl FileKind {
    fn of(file: &str) -> Self {
        match file.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            _ => Self::Text,
        }
    }
}

/// The value of a file with this name. `form`: how the values of a table are read.
///
/// # Errors
/// What is wrong with its text.
pub fn read(file: &str, text: &str, form: Option<&TableForm>) -> Result<FileValue, FileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match FileKind::of(file) {
        FileKind::Csv => csv::rows(text, form),
        _ if form.is_some() => Err(no_table(file)),
        FileKind::Json => json::value(text),
        FileKind::Text => Ok(FileValue::of(Value::from(text))),
    }
}

/// About how much memory the value of a file with this name takes as a whole, in bytes. The value is not kept.
///
/// # Errors
/// What is wrong with its text.
pub fn weight(file: &str, text: &str, form: Option<&TableForm>) -> Result<usize, FileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match FileKind::of(file) {
        FileKind::Csv => csv::weight(text, form),
        _ if form.is_some() => Err(no_table(file)),
        FileKind::Json => json::weight(text),
        FileKind::Text => Ok(weight::of_value().saturating_add(text.len())),
    }
}

fn no_table(file: &str) -> FileFault {
    FileFault { message: format!("only a CSV file has columns, and {file} is none"), line: 1 }
}

/// The value as runs of an older edition read it: without a look at quotes that are never closed, empty lines and keys that
/// stand twice. None where they had none either.
pub fn read_of_old(file: &str, text: &str) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match FileKind::of(file) {
        FileKind::Csv => rows_of_old(text),
        FileKind::Json => json_text::read(text).ok(),
        FileKind::Text => Some(Value::from(text)),
    }
}

fn rows_of_old(text: &str) -> Option<Value> {
    let mut reader = ::csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().ok()?.iter().map(|name| name.trim().to_owned()).collect();
    let mut list = Vec::new();
    for row in reader.records() {
        let row = row.ok()?;
        let members = names.iter().cloned().zip(row.iter().map(Value::from));
        list.push(Value::Object(members.collect::<Map<_, _>>()));
    }
    Some(Value::Array(list))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(file: &str, text: &str) -> Result<Value, FileFault> {
        super::read(file, text, None).map(|file| file.whole().into_owned())
    }

    #[test]
    fn csv_is_a_list_of_objects_with_texts_as_they_stand() {
        let text = "\u{feff}id,name , note\n007,\"Mehl, 2 kg\",\n8,\"zwei\nZeilen\",\"sagt \"\"ja\"\"\"\n";
        let expected = json!([
            { "id": "007", "name": "Mehl, 2 kg", "note": "" },
            { "id": "8", "name": "zwei\nZeilen", "note": "sagt \"ja\"" },
        ]);
        assert_eq!(read("a/B.CSV", text), Ok(expected));
        assert_eq!(read("a.csv", "id,name\n"), Ok(json!([])));
        // An export that failed is no table without rows.
        for nothing in ["", "\u{feff}", "\n", "\r\n\r\n"] {
            assert!(read("a.csv", nothing).unwrap_err().message.contains("it is empty"), "{nothing:?}");
            assert_eq!(read_of_old("a.csv", nothing), Some(json!([])), "{nothing:?}");
        }
    }

    #[cfg(feature = "exact-numbers")]
    #[test]
    fn json_is_its_value_and_anything_else_a_text() {
        assert_eq!(read("a.json", "{\"usd\": 1.10}").unwrap()["usd"].to_string(), "1.10");
        assert_eq!(read("policy.md", "# Rules\n{"), Ok(json!("# Rules\n{")));
        assert_eq!(read("none", "x"), Ok(json!("x")));
    }

    #[test]
    fn what_is_wrong_with_a_file_has_its_line() {
        for (file, text, line, words) in [
            ("a.csv", "a,b\n1,2\n3\n", 3, "has 1 values"),
            ("a.csv", "a,a\n", 1, "two columns"),
            ("a.csv", "a,,b\n", 1, "column 2 has no name"),
            ("a.csv", "a;b\n1;2\n", 1, "separated by ';'"),
            ("a.json", "{\n\"a\": }", 2, "not JSON"),
            ("a.json", "{\"a\": 1,\n\"a\": 2}", 2, "stands twice"),
            ("a.csv", "a,b\n1,\"2\n", 2, "never closed"),
        ] {
            let fault = read(file, text).unwrap_err();
            assert_eq!(fault.line, line, "{fault}");
            assert!(fault.message.contains(words), "{fault}");
        }
    }

    #[test]
    fn a_value_of_too_much_memory_is_refused() {
        let long = format!("a\n{}", "x\n".repeat(640_000));
        let wide = format!(
            "{}\n{}",
            (0..2_000).map(|at| format!("c{at}")).collect::<Vec<_>>().join(","),
            format!("{}\n", ",".repeat(1_999)).repeat(580)
        );
        for text in [long, wide] {
            let fault = read("a.csv", &text).unwrap_err();
            assert!(fault.message.contains("takes more than 80 MiB"), "{fault}");
        }
        let rows = format!("a,b,c\n{}", "1,2,3\n".repeat(20_000));
        let value = read("a.csv", &rows).unwrap();
        assert_eq!(value.as_array().unwrap().len(), 20_000);
        assert!(weight("a.csv", &rows, None).unwrap() < MAX_WEIGHT / 4);
    }

    #[test]
    fn runs_of_an_older_edition_read_what_they_read_before() {
        let one = json!([{"part": "P-2", "text": "5/8\" pipe\nP-3,bolt\n"}]);
        assert_eq!(read_of_old("a.csv", "part,text\nP-2,\"5/8\"\" pipe\nP-3,bolt\n"), Some(one));
        assert_eq!(read_of_old("a.csv", "code\nK1\n\nK3\n"), Some(json!([{"code": "K1"}, {"code": "K3"}])));
        assert_eq!(read_of_old("a.json", "{\"fee\": 1, \"fee\": 2}"), Some(json!({"fee": 2})));
    }
}
