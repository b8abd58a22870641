//! What an editor shows: a document with one fault gets one message of its published schema, at the field itself, and
//! a sound document none.
#![expect(clippy::disallowed_methods, reason = "a test's own switch comes from the environment")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loopctl::diagnostic::Source;
use loopctl::language::schema::published;
use loopctl::syntax::document::{DocumentKind, read, read_as};
use serde_json::{Value, json};

/// A change that makes a sound document a faulty one.
enum Change {
    /// The value at a pointer is another one; a missing field is added.
    Set(&'static str, Value),
    /// The field at a pointer is left out.
    Without(&'static str),
    /// The field at a pointer has another name.
    Renamed(&'static str, &'static str),
}
use Change::{Renamed, Set, Without};

fn base(kind: &str) -> Value {
    match kind {
        "loop" => json!({"type": "loop", "name": "orders",
            "input": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "actions": [
                {"action_name": "find", "kind": "http", "description": "Finds.", "url": "https://x.example/{{id}}",
                 "http_method": "GET", "parameters": {"type": "object", "properties": {"id": {"type": "string"}}}},
                {"action_name": "count", "kind": "db", "description": "Counts.", "datasource": "shop", "query": "SELECT 1"},
                {"action_name": "log", "kind": "command", "description": "Logs.", "program": "git"},
                {"action_name": "sum", "kind": "llm", "description": "Sums up.", "template": "Sum up {{text}}"}],
            "properties": {"mode": "react", "objective": "Find {{input.id}}.", "max_iterations": 10, "temperature": 0.5,
                "tools": [{"type": "action", "name": "find", "remember": {"state": "/state"}}, {"type": "loop", "name": "other"}],
                "on_stuck": {"iterations": 3, "action": "escalate"}, "budget": {"tokens": 1000}, "dialect": "json",
                "answer_schema": {"type": "object"}, "retry": {"attempts": 2}, "history": {"max_messages": 20}}}),
        "foreach" => json!({"type": "loop", "properties": {"mode": "foreach", "items_path": "@input.orders",
            "item_variable_name": "order", "actions_to_execute": [
                {"type": "find", "properties": {"id": "@order.id"}, "outputKey": "found"}]}}),
        "workflow" => json!({"name": "claims", "definition": {"actions": [
            {"type": "find", "properties": {"id": "@input.id"}, "outputKey": "claim"},
            {"type": "PbotApproval", "properties": {"comment": "Pay?"},
             "filter": {"condition": {"greaterThan": ["@claim.amount", 5000]}}},
            {"type": "matcher", "properties": {"left": "@a", "right": "@b", "matchOn": ["id"]}}],
            "schedule": {"every": "1d", "at": "09:30"}}}),
        "agent-request" => json!({"objective": "Find it.", "tools": [{"type": "action", "name": "find"}],
            "config": {"max_iterations": 5}, "input": {"id": "x"}}),
        "actions" => json!([{"action_name": "find", "kind": "http", "url": "https://x.example", "http_method": "GET"}]),
        "project" => json!({"model": "main", "store": "sqlite:runs.db", "orgconfig": {"key": "env:KEY"},
            "models": {"main": {"provider": "openai", "api_key": "env:KEY", "base_url": "https://x.example/v1"}},
            "datasources": {"shop": {"url": "sqlite:shop.db"}}, "allow": {"hosts": ["x.example"]}}),
        _ => json!({"replies": [{"thought": "x", "answer": "y"}], "tools": {"find": [1]}}),
    }
}

/// A row: the kind, the change, and the pointer that the message is at. For a name too many or too few it is that of
/// the object.
type Row = (&'static str, Change, &'static str);

fn faults_of_loops() -> Vec<Row> {
    vec![
        ("loop", Set("/type", json!("loops")), "/type"),
        ("loop", Set("/name", json!(5)), "/name"),
        ("loop", Renamed("/properties", "propertys"), ""),
        ("loop", Without("/properties"), ""),
        ("loop", Set("/tools", json!([])), ""),
        ("loop", Set("/properties", json!([])), "/properties"),
        ("loop", Set("/properties/mode", json!("reakt")), "/properties/mode"),
        ("loop", Without("/properties/mode"), "/properties"),
        ("loop", Renamed("/properties/mode", "Mode"), "/properties"),
        ("loop", Renamed("/properties/objective", "objectve"), "/properties"),
        ("loop", Without("/properties/objective"), "/properties"),
        ("loop", Set("/properties/objective", json!("")), "/properties/objective"),
        ("loop", Set("/properties/max_iterations", json!("10")), "/properties/max_iterations"),
        ("loop", Set("/properties/max_iterations", json!(0)), "/properties/max_iterations"),
        ("loop", Set("/properties/max_iterations", json!(5000)), "/properties/max_iterations"),
        ("loop", Set("/properties/max_iterations", json!(2.5)), "/properties/max_iterations"),
        ("loop", Renamed("/properties/max_iterations", "max_iteration"), "/properties"),
        ("loop", Set("/properties/temperature", json!(3)), "/properties/temperature"),
        ("loop", Set("/properties/dialect", json!("xml")), "/properties/dialect"),
        ("loop", Set("/properties/on_stuck/action", json!("escalte")), "/properties/on_stuck/action"),
        ("loop", Set("/properties/on_stuck/iterations", json!(1)), "/properties/on_stuck/iterations"),
        ("loop", Set("/properties/on_stuck", json!("fail")), "/properties/on_stuck"),
        ("loop", Renamed("/properties/on_stuck/action", "acton"), "/properties/on_stuck"),
        ("loop", Set("/properties/budget", json!(1000)), "/properties/budget"),
        ("loop", Set("/properties/budget/tokens", json!(0)), "/properties/budget/tokens"),
        ("loop", Set("/properties/history/keep", json!(3)), "/properties/history"),
        ("loop", Set("/properties/retry/attempts", json!(0)), "/properties/retry/attempts"),
        ("loop", Set("/properties/answer_schema", json!("object")), "/properties/answer_schema"),
        ("loop", Set("/properties/answer_schema/type", json!("dict")), "/properties/answer_schema/type"),
        ("loop", Set("/input/properties/id/type", json!("text")), "/input/properties/id/type"),
        ("loop", Set("/input/required", json!(true)), "/input/required"),
        ("loop", Set("/input/properties/id", json!("string")), "/input/properties/id"),
        ("loop", Set("/properties/items_path", json!("@input.x")), "/properties"),
    ]
}

fn faults_of_tools_and_actions() -> Vec<Row> {
    vec![
        ("loop", Set("/properties/tools/0", json!(5)), "/properties/tools/0"),
        ("loop", Set("/properties/tools/0/type", json!("function")), "/properties/tools/0/type"),
        ("loop", Without("/properties/tools/0/type"), "/properties/tools/0"),
        ("loop", Renamed("/properties/tools/0/name", "nam"), "/properties/tools/0"),
        ("loop", Set("/properties/tools/0/max_calls", json!(0)), "/properties/tools/0/max_calls"),
        ("loop", Set("/properties/tools/0/remember/state", json!("state")), "/properties/tools/0/remember/state"),
        ("loop", Set("/actions/0/http_method", json!("FETCH")), "/actions/0/http_method"),
        ("loop", Set("/actions/0/kind", json!("https")), "/actions/0/kind"),
        ("loop", Without("/actions/0/url"), "/actions/0"),
        ("loop", Renamed("/actions/0/headers", "header"), "/actions/0"),
        ("loop", Set("/actions/0/parameters/properties", json!(["id"])), "/actions/0/parameters/properties"),
        ("loop", Set("/actions/1/params", json!("x")), "/actions/1/params"),
        ("loop", Set("/actions/2/args", json!("status")), "/actions/2/args"),
        ("loop", Set("/actions/3/temperature", json!(-1)), "/actions/3/temperature"),
    ]
}

fn faults_of_other_documents() -> Vec<Row> {
    vec![
        ("foreach", Set("/properties/items_path", json!("input.orders")), "/properties/items_path"),
        ("foreach", Set("/properties/item_variable_name", json!("@order")), "/properties/item_variable_name"),
        ("foreach", Set("/properties/max_concurrency", json!(0)), "/properties/max_concurrency"),
        ("foreach", Set("/properties/failure_strategy", json!("ignore")), "/properties/failure_strategy"),
        ("foreach", Set("/properties/objective", json!("x")), "/properties"),
        ("foreach", Without("/properties/actions_to_execute/0/type"), "/properties/actions_to_execute/0"),
        ("workflow", Without("/name"), ""),
        ("workflow", Set("/definition/actions/0/output", json!("x")), "/definition/actions/0"),
        ("workflow", Set("/definition/actions/1/properties/comments", json!("x")), "/definition/actions/1/properties"),
        ("workflow", Renamed("/definition/actions/1/properties/comment", "coment"), "/definition/actions/1/properties"),
        (
            "workflow",
            Set("/definition/actions/1/filter/condition", json!({"greater": [1, 2]})),
            "/definition/actions/1/filter/condition",
        ),
        (
            "workflow",
            Set("/definition/actions/1/filter/condition/greaterThan", json!([1])),
            "/definition/actions/1/filter/condition/greaterThan",
        ),
        (
            "workflow",
            Set("/definition/actions/2/properties/fuzzyThreshold", json!(101)),
            "/definition/actions/2/properties/fuzzyThreshold",
        ),
        ("workflow", Set("/definition/schedule/at", json!("9:30")), "/definition/schedule/at"),
        ("agent-request", Set("/config/max_iterations", json!("5")), "/config/max_iterations"),
        ("agent-request", Set("/max_iterations", json!(5)), ""),
        ("actions", Set("/0/timeout_ms", json!("10s")), "/0/timeout_ms"),
        ("actions", Without("/0/action_name"), "/0"),
        ("project", Set("/models/main/provider", json!("open-ai")), "/models/main/provider"),
        ("project", Set("/models/main/api_key", json!("sk-x")), "/models/main/api_key"),
        ("project", Set("/models/main/base_url", json!("x.example/v1")), "/models/main/base_url"),
        ("project", Set("/orgconfig/key", json!("KEY")), "/orgconfig/key"),
        ("project", Set("/store", json!("runs.db")), "/store"),
        ("project", Set("/allow/hosts", json!("x.example")), "/allow/hosts"),
        ("project", Renamed("/datasources/shop/url", "uri"), "/datasources/shop"),
        ("script", Without("/replies"), ""),
        ("script", Set("/replies", json!({})), "/replies"),
    ]
}

fn changed(mut document: Value, change: &Change) -> Value {
    let (Set(pointer, _) | Without(pointer) | Renamed(pointer, _)) = change;
    let (around, last) = pointer.rsplit_once('/').unwrap();
    let around = document.pointer_mut(around).unwrap();
    match (around, change) {
        (Value::Array(items), Set(_, value)) => *items.get_mut(last.parse::<usize>().unwrap()).unwrap() = value.clone(),
        (Value::Object(members), Set(_, value)) => drop(members.insert(last.to_owned(), value.clone())),
        (Value::Object(members), Without(_)) => drop(members.remove(last).unwrap()),
        // What is not there yet is added under the wrong name.
        (Value::Object(members), Renamed(_, name)) => {
            let value = members.remove(last).unwrap_or_else(|| json!({}));
            members.insert((*name).to_owned(), value);
        }
        (other, _) => panic!("{pointer}: {other}"),
    }
    document
}

/// The name of a base document's schema.
fn schema_of(kind: &str) -> &str {
    if kind == "foreach" { "loop" } else { kind }
}

/// The validators of the schemas by their names: to compile one takes far longer than to judge a document.
static VALIDATORS: Mutex<BTreeMap<String, Arc<jsonschema::Validator>>> = Mutex::new(BTreeMap::new());

fn messages(kind: &str, document: &Value) -> Vec<String> {
    let schema = schema_of(kind);
    let compile = || Arc::new(jsonschema::validator_for(&published(schema).unwrap()).unwrap());
    let validator = Arc::clone(VALIDATORS.lock().unwrap().entry(schema.to_owned()).or_insert_with(compile));
    validator.iter_errors(document).map(|error| error.instance_path().to_string()).collect()
}

#[test]
fn a_document_with_one_fault_gets_one_message_at_the_field() {
    let mut wrong = Vec::new();
    let faults: Vec<Row> =
        faults_of_loops().into_iter().chain(faults_of_tools_and_actions()).chain(faults_of_other_documents()).collect();
    assert!(faults.len() >= 60, "{}", faults.len());
    for (kind, change, pointer) in faults {
        assert_eq!(messages(kind, &base(kind)), Vec::<String>::new(), "{kind} is sound");
        let document = changed(base(kind), &change);
        let found = messages(kind, &document);
        if found != [pointer] {
            wrong.push(format!("{kind} {pointer}: {found:?}"));
        }
        // The folder is for validators of other languages, by hand.
        if let Some(folder) = std::env::var_os("ONE_FAULT_DOCUMENTS") {
            let at = Path::new(&folder).join(schema_of(kind));
            std::fs::create_dir_all(&at).unwrap();
            let count = std::fs::read_dir(&at).unwrap().count();
            std::fs::write(at.join(format!("{count:03}.json")), document.to_string()).unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn json_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            json_files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            found.push(path);
        }
    }
}

/// Whether a project file above a file names it among its `documents`, or as `embedded`: it is no document.
fn is_data(file: &Path) -> bool {
    file.ancestors().skip(1).any(|folder| {
        let text = std::fs::read_to_string(folder.join("loopctl.json")).unwrap_or_default();
        let project: Value = serde_json::from_str(&text).unwrap_or_default();
        let documents = project.get("documents").and_then(Value::as_object).into_iter().flatten();
        let named = documents.map(|(_, path)| path).chain(project.get("embedded"));
        named.filter_map(Value::as_str).any(|path| folder.join(path) == file)
    })
}

#[test]
fn a_published_schema_refuses_no_document_that_check_accepts() {
    let mut files = Vec::new();
    json_files(Path::new("tests/check"), &mut files);
    json_files(Path::new("examples"), &mut files);
    let mut judged = 0;
    for file in files {
        let is_clean = file.components().any(|part| part.as_os_str().to_string_lossy().starts_with("clean"));
        if (!is_clean && !file.starts_with("examples")) || is_data(&file) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let source = Source::new(file.to_string_lossy(), text.as_str());
        let project = file.ends_with("loopctl.json").then_some(DocumentKind::Project);
        let document = if project.is_some() { read_as(&source, project) } else { read(&source) };
        let Some(kind) = document.kind.map(DocumentKind::name).filter(|kind| published(kind).is_some()) else {
            continue;
        };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
        assert_eq!(messages(kind, &value), Vec::<String>::new(), "{}", file.display());
        judged += 1;
    }
    assert!(judged > 100, "{judged} documents");
}
