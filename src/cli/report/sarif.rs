//! Faults as SARIF 2.1.0, the format of code scanning (OASIS, "Static Analysis Results Interchange
//! Format"). Columns count Unicode scalar values, as ours do.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::cli::remedies::help;
use crate::diagnostic::codes::{Code, TABLE};
use crate::diagnostic::{Diagnostic, Place, Severity, Source};
use crate::trace::escape;

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

#[cfg(test)]
mod tests {
    use super::*;

    fn log(diagnostics: &[Diagnostic], sources: &[Source]) -> Value {
        let text = sarif(diagnostics, sources);
        assert!(!text.contains(escape::is_hidden) && !text.contains('\n'), "{text:?}");
        serde_json::from_str(&text).unwrap()
    }

    /// The parts of the standard's schema that we write.
    fn subset() -> Value {
        let text = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "minLength": 1 } } });
        let region = json!({
            "type": "object", "required": ["startLine"], "additionalProperties": false,
            "properties": {
                "startLine": { "type": "integer", "minimum": 1 }, "startColumn": { "type": "integer", "minimum": 1 },
                "endLine": { "type": "integer", "minimum": 1 }, "endColumn": { "type": "integer", "minimum": 1 },
            },
        });
        let artifact = json!({ "type": "object", "required": ["uri"], "properties": { "uri": { "type": "string", "pattern": "^[A-Za-z0-9._~%/:-]*$" } } });
        let location = json!({
            "type": "object", "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": { "required": ["artifactLocation"], "properties": { "artifactLocation": artifact, "region": region } },
                "message": text,
            },
        });
        let change = json!({
            "required": ["artifactLocation", "replacements"],
            "properties": {
                "artifactLocation": artifact,
                "replacements": { "minItems": 1, "items": {
                    "required": ["deletedRegion"],
                    "properties": { "deletedRegion": region, "insertedContent": { "required": ["text"], "properties": { "text": { "type": "string" } } } },
                } },
            },
        });
        let rule = json!({
            "required": ["id"],
            "properties": {
                "id": { "pattern": "^L[0-9]{3}$" }, "name": { "type": "string" }, "shortDescription": text, "help": text,
                "defaultConfiguration": { "properties": { "level": { "enum": ["error", "warning"] } } },
            },
        });
        let result = json!({
            "required": ["message", "ruleId", "locations"],
            "properties": {
                "ruleId": { "type": "string" }, "ruleIndex": { "type": "integer", "minimum": 0 }, "message": text,
                "level": { "enum": ["none", "note", "warning", "error"] },
                "locations": { "type": "array", "minItems": 1, "items": location },
                "relatedLocations": { "type": "array", "items": location },
                "fixes": { "type": "array", "items": { "required": ["artifactChanges"], "properties": {
                    "description": text, "artifactChanges": { "type": "array", "minItems": 1, "items": change },
                } } },
            },
        });
        json!({
            "type": "object", "required": ["version", "runs"], "additionalProperties": false,
            "properties": {
                "$schema": { "type": "string", "format": "uri" },
                "version": { "const": "2.1.0" },
                "runs": { "minItems": 1, "items": {
                    "required": ["tool", "results"],
                    "properties": {
                        "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
                        "tool": { "required": ["driver"], "properties": { "driver": {
                            "required": ["name"], "properties": { "rules": { "type": "array", "uniqueItems": true, "items": rule } },
                        } } },
                        "results": { "type": "array", "items": result },
                    },
                } },
            },
        })
    }

    #[test]
    fn the_log_matches_the_standard_and_its_rules_are_ours() {
        let source = Source::new("./a b/\u{e9}#?.json", "{\"\u{1f600}x\": 1}\n");
        let error = Diagnostic::error("L012", "wrong\u{202e} word", "/x", source.place(1, 8))
            .help("write it so")
            .suggest("\"y\"")
            .related(&source.place(0, 1), "here");
        let unknown = Diagnostic::warning("L998", "x", "", Source::new("/etc/x.json", "").whole()).suggest("y");
        let log = log(&[error, unknown], &[source]);
        let faults: Vec<String> = jsonschema::validator_for(&subset())
            .unwrap()
            .iter_errors(&log)
            .map(|fault| format!("{fault} at {}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:?}");
        let run = &log["runs"][0];
        assert_eq!(run["columnKind"], "unicodeCodePoints");
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let result = &run["results"][0];
        let index = result["ruleIndex"].to_string().parse::<usize>().unwrap();
        assert_eq!((&rules[index]["id"], &result["level"]), (&json!("L012"), &json!("error")));
        for row in TABLE {
            let described = rules.iter().find(|described| described["id"] == row.code).unwrap();
            assert_eq!(described["help"]["markdown"], row.page);
        }
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/%C3%A9%23%3F.json");
        assert_eq!((&place["region"]["startColumn"], &place["region"]["endColumn"]), (&json!(2), &json!(6)));
        let replacement = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(
            (&replacement["deletedRegion"]["endColumn"], &replacement["insertedContent"]["text"]),
            (&json!(6), &json!("\"y\""))
        );
        let unknown = &run["results"][1];
        assert!(unknown.get("ruleIndex").is_none() && unknown.get("fixes").is_none());
        assert_eq!(unknown["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "file:///etc/x.json");
    }

    #[test]
    fn no_fault_is_a_log_without_results() {
        let log = log(&[], &[]);
        assert_eq!(log["runs"][0]["results"], json!([]));
    }
}
