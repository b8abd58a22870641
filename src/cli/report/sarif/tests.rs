//! The log has what SARIF 2.1.0 requires, and texts of a document stay inside their strings.

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
