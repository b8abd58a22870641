//! The value of a file that a project names in `documents`: CSV is a list of objects, JSON its value, anything else a text.

use serde_json::{Map, Value};

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

/// The value of a file with this name.
///
/// # Errors
/// What is wrong with its text.
pub fn read(file: &str, text: &str) -> Result<Value, FileFault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match file.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => rows(text),
        Some("json") => serde_json::from_str(text).map_err(|error| {
            let line = u64::try_from(error.line()).unwrap_or(u64::MAX).max(1);
            FileFault { message: format!("it is not JSON: {error}"), line }
        }),
        _ => Ok(Value::from(text)),
    }
}

/// The rows of a CSV text: its first row has the names. All values are texts, so that no number loses its zeros.
fn rows(text: &str) -> Result<Value, FileFault> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| fault(&error))?.clone();
    let names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
    for (at, name) in names.iter().enumerate() {
        let message = match names.iter().take(at).any(|other| other == name) {
            true => format!("two columns have the name `{name}`"),
            false if name.is_empty() => format!("column {} has no name", at + 1),
            false => continue,
        };
        return Err(FileFault { message, line: 1 });
    }
    if let [only] = names.as_slice()
        && let Some(other) = [';', '\t'].into_iter().find(|other| only.contains(*other))
    {
        let message = format!("its columns are separated by {other:?}; loopctl reads commas");
        return Err(FileFault { message, line: 1 });
    }
    let mut list = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| fault(&error))?;
        let members = names.iter().cloned().zip(row.iter().map(Value::from));
        list.push(Value::Object(members.collect::<Map<_, _>>()));
    }
    Ok(Value::Array(list))
}

fn fault(error: &csv::Error) -> FileFault {
    let line = error.position().map_or(1, csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("the row has {len} values, and the first row has {expected_len} names")
        }
        _ => format!("it is not CSV: {error}"),
    };
    FileFault { message, line }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn csv_is_a_list_of_objects_with_texts_as_they_stand() {
        let text = "\u{feff}id,name , note\n007,\"Mehl, 2 kg\",\n8,\"zwei\nZeilen\",\"sagt \"\"ja\"\"\"\n";
        let expected = json!([
            { "id": "007", "name": "Mehl, 2 kg", "note": "" },
            { "id": "8", "name": "zwei\nZeilen", "note": "sagt \"ja\"" },
        ]);
        assert_eq!(read("a/B.CSV", text), Ok(expected));
        assert_eq!(read("a.csv", "id,name\n"), Ok(json!([])));
        assert_eq!(read("a.csv", ""), Ok(json!([])));
    }

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
        ] {
            let fault = read(file, text).unwrap_err();
            assert_eq!(fault.line, line, "{fault}");
            assert!(fault.message.contains(words), "{fault}");
        }
    }
}
