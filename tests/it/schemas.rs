//! The published schemas are those of the types, and the examples match them.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::path::{Path, PathBuf};

use loopctl::diagnostic::Source;
use loopctl::language::schema::{KINDS, published as schema};
use loopctl::syntax::document::{DocumentKind, read, read_as};

#[test]
fn published_schemas_are_those_of_the_types() {
    let update = std::env::var_os("UPDATE_SCHEMAS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for kind in KINDS {
        let path = folder.join(format!("{kind}.json"));
        let text = format!("{:#}\n", schema(kind).unwrap());
        if update {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "schemas/{kind}.json is stale; update it with: UPDATE_SCHEMAS=1 cargo test --test it schemas::"
        );
    }
}

/// The JSON files of a folder and of those below it.
fn json_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            json_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json")
            && !["mcp.lock.json", "tools.json"].iter().any(|name| path.ends_with(name))
        {
            // What servers, and programs, say of their tools is no document.
            found.push(path);
        }
    }
}

#[test]
fn examples_match_the_published_schema_of_their_kind_and_our_own_reading_agrees() {
    let mut files = Vec::new();
    json_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let source = Source::new(file.to_string_lossy(), text.as_str());
        let project = file.ends_with("loopctl.json").then_some(DocumentKind::Project);
        let document = if project.is_some() { read_as(&source, project) } else { read(&source) };
        assert!(document.faults.is_empty(), "{}: {:?}", file.display(), document.faults);
        let Some(schema) = document.kind.and_then(|kind| schema(kind.name())) else { continue };
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<String> = validator.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", file.display());
    }
}

/// Every part of a schema that has examples.
fn with_examples<'s>(part: &'s serde_json::Value, found: &mut Vec<&'s serde_json::Value>) {
    match part {
        serde_json::Value::Object(members) => {
            if members.get("examples").is_some_and(serde_json::Value::is_array) {
                found.push(part);
            }
            members.values().for_each(|member| with_examples(member, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| with_examples(item, found)),
        _ => {}
    }
}

#[test]
fn every_example_of_a_schema_is_one_and_every_field_says_what_it_is() {
    for kind in KINDS {
        let root = schema(kind).unwrap();
        let mut parts = Vec::new();
        with_examples(&root, &mut parts);
        assert!(root["examples"].is_array(), "{kind}");
        for part in parts {
            let mut alone = part.clone();
            if let Some(definitions) = root.get("$defs") {
                alone["$defs"] = definitions.clone();
            }
            let validator = jsonschema::validator_for(&alone).unwrap();
            for example in part["examples"].as_array().into_iter().flatten() {
                let faults: Vec<String> = validator.iter_errors(example).map(|fault| fault.to_string()).collect();
                assert!(faults.is_empty(), "{kind}: {example}: {faults:?}");
            }
        }
        let text = root["examples"][0].to_string();
        let project = (kind == "project").then_some(DocumentKind::Project);
        let document = read_as(&Source::new("example.json", text), project);
        assert_eq!(document.kind.map(DocumentKind::name), Some(kind), "{:?}", document.faults);
        assert!(document.faults.is_empty(), "{kind}: {:?}", document.faults);
        assert_eq!(silent(&root, ""), Vec::<String>::new(), "{kind}");
    }
}

/// The fields without a text.
fn silent(part: &serde_json::Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(fields) = part.get("properties").and_then(serde_json::Value::as_object) {
        let mute = |field: &serde_json::Value| field.get("description").is_none() && field.get("$ref").is_none();
        let mute = fields.iter().filter(|(_, field)| field.is_object() && mute(field));
        found.extend(mute.map(|(name, _)| format!("{at}/{name}")));
    }
    match part {
        serde_json::Value::Object(members) => {
            members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "examples" | "if"))
                .for_each(|(name, member)| found.extend(silent(member, &format!("{at}/{name}"))));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| found.extend(silent(item, at))),
        _ => {}
    }
    found
}

#[test]
fn what_a_published_schema_says_of_a_document_is_what_we_say() {
    let part = |tail: &str| {
        format!(r#"{{"type": "loop", "properties": {{"mode": "react", "objective": "x", "tools": []{tail}}}}}"#)
    };
    let loops = [
        "",
        r#", "max_iterations": 10.0"#,
        r#", "max_iterations": 1e1"#,
        r#", "max_iterations": 10.5"#,
        r#", "max_iterations": "10""#,
        r#", "max_iterations": 1001"#,
        r#", "max_tokens": 4294967296"#,
        r#", "timeout_ms": 18446744073709551616"#,
        r#", "temperature": 2"#,
        r#", "temperature": -0.1"#,
        r#", "model": null"#,
        r#", "on_stuck": null"#,
        r#", "on_stuck": {"iterations": 1}"#,
        r#", "budget": null"#,
        r#", "budget": {"cost_usd": 0.5}"#,
        r#", "unknown": 1"#,
        r#", "dialect": "tags""#,
        r#", "dialect": "xml""#,
        r#", "answer_schema": {}"#,
        r#", "answer_schema": 1"#,
        r#", "retry": {"attempts": 0}"#,
        r#", "fallback_models": ["a", 1]"#,
    ];
    let validator = jsonschema::validator_for(&schema("loop").unwrap()).unwrap();
    for tail in loops {
        let text = part(tail);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let document = read(&Source::new("case.json", text.as_str()));
        assert_eq!(validator.is_valid(&value), document.faults.is_empty(), "{tail}: {:?}", document.faults);
        if document.faults.is_empty() {
            serde_json::from_value::<loopctl::language::LoopDocument>(document.value).unwrap();
        }
    }
}

#[test]
fn the_published_schema_of_events_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/events.schema.json");
    let text = format!("{:#}\n", loopctl::trace::events::schema());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == text,
        "schemas/events.schema.json is stale; update it with: UPDATE_SCHEMAS=1 cargo test --test it schemas::"
    );
    let printed =
        std::process::Command::new(env!("CARGO_BIN_EXE_loopctl")).args(["schema", "events"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), text);
}
