//! Faults as SARIF 2.1.0, the format of code scanning (OASIS, "Static Analysis Results Interchange
//! Format"). Columns count Unicode scalar values, as ours do.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::cli::remedies::help;
use crate::diagnostic::codes::{Code, TABLE};
use crate::diagnostic::{Diagnostic, Place, Severity, Source};
use crate::trace::escape;

#[cfg(test)]
mod tests;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// The characters of a path that a URI keeps unescaped (RFC 3986, unreserved, and the slash).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// All faults as one log on one line, without a newline at its end.
pub fn sarif(diagnostics: &[Diagnostic], sources: &[Source]) -> String {
    let index: BTreeMap<&str, usize> = TABLE.iter().enumerate().map(|(at, row)| (row.code, at)).collect();
    let sources: BTreeMap<&str, &Source> = sources.iter().rev().map(|source| (&*source.name, source)).collect();
    let results: Vec<Value> = diagnostics
        .iter()
        .map(|fault| result(fault, index.get(fault.code).copied(), sources.get(&*fault.place.file).copied()))
        .collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "loopctl",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": TABLE.iter().map(described).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    escape::json(&log.to_string()).into_owned()
}

/// A code as a SARIF rule.
fn described(row: &Code) -> Value {
    json!({
        "id": row.code,
        "name": row.name,
        "shortDescription": { "text": row.title },
        "help": { "text": row.page, "markdown": row.page },
        "defaultConfiguration": { "level": level(row.severity) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn result(fault: &Diagnostic, index: Option<usize>, source: Option<&Source>) -> Value {
    let message = match help(fault) {
        Some(help) => format!("{}\nhelp: {help}", fault.message),
        None => fault.message.clone(),
    };
    let mut result = json!({
        "ruleId": fault.code,
        "level": level(fault.severity),
        "message": { "text": message },
        "locations": [{ "physicalLocation": { "artifactLocation": artifact(&fault.place.file), "region": region(&fault.place) } }],
    });
    let Some(fields) = result.as_object_mut() else { return result };
    if let Some(index) = index {
        fields.insert("ruleIndex".to_owned(), json!(index));
    }
    if !fault.related.is_empty() {
        let related = fault.related.iter().map(|related| {
            json!({
                "physicalLocation": { "artifactLocation": artifact(&related.file), "region": { "startLine": related.line } },
                "message": { "text": related.message },
            })
        });
        fields.insert("relatedLocations".to_owned(), related.collect());
    }
    if let (Some(suggestion), Some(source)) = (&fault.suggestion, source) {
        let place = source.place(suggestion.start, suggestion.end);
        let replacement =
            json!({ "deletedRegion": region(&place), "insertedContent": { "text": suggestion.replacement } });
        let change = json!({ "artifactLocation": artifact(&place.file), "replacements": [replacement] });
        let text = help(fault).unwrap_or_else(|| "write this instead".to_owned());
        fields.insert("fixes".to_owned(), json!([{ "description": { "text": text }, "artifactChanges": [change] }]));
    }
    result
}

fn region(place: &Place) -> Value {
    json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    })
}

/// A file as a URI: relative if the user's path was relative.
fn artifact(file: &str) -> Value {
    let path = file.strip_prefix("./").unwrap_or(file).replace('\\', "/");
    let encoded = utf8_percent_encode(&path, PATH);
    let uri = match path.as_bytes() {
        [b'/', ..] => format!("file://{encoded}"),
        [letter, b':', b'/', ..] if letter.is_ascii_alphabetic() => format!("file:///{encoded}"),
        _ => encoded.to_string(),
    };
    json!({ "uri": uri })
}
