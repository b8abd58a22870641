//! Mutations: changes of one word or number of the examples' documents, made by a table. The scenarios of an example must
//! catch nine of ten.

use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Value, json};

/// The documents.
const DOCUMENTS: [(&str, &str); 3] =
    [("http-status", "loop.json"), ("support-triage", "loop.json"), ("ap-reconciliation", "workflow.json")];
/// The numbers that bound something.
const LIMITS: [&str; 7] =
    ["max_calls", "max_iterations", "timeout_ms", "iterations", "attempts", "tool_timeout_ms", "tolerance"];
/// Of a prompt, each word of this number is taken out.
const EACH_WORD: usize = 9;

/// A document with one change.
struct Mutation {
    what: String,
    document: Value,
}

/// All mutations of a document.
#[expect(clippy::indexing_slicing, reason = "a test that fails says why")]
fn mutations(document: &Value) -> Vec<Mutation> {
    let mut pointers = Vec::new();
    collect(document, String::new(), &mut pointers);
    let mut all = Vec::new();
    for pointer in pointers {
        let key = pointer.rsplit('/').next().unwrap();
        let mut change = |what: String, value: Value| {
            let mut changed = document.clone();
            *changed.pointer_mut(&pointer).unwrap() = value;
            all.push(Mutation { what: format!("{pointer} {what}"), document: changed });
        };
        match document.pointer(&pointer).unwrap() {
            Value::Array(tools) if key == "tools" => {
                for at in 0..tools.len() {
                    let mut fewer = tools.clone();
                    let gone = fewer.remove(at);
                    change(format!("without {}", gone["name"]), json!(fewer));
                    let mut other = tools.clone();
                    let asks = other[at]["requires_approval"] == json!(true);
                    other[at]["requires_approval"] = json!(!asks);
                    change(format!("{} with requires_approval {}", gone["name"], !asks), json!(other));
                }
            }
            Value::Number(number) if LIMITS.contains(&key) => {
                let others = match number.as_u64() {
                    Some(whole) => [json!((whole / 2).max(1)), json!(whole * 2)],
                    None => [0.5, 2.0].map(|factor| json!(number.as_f64().unwrap() * factor)),
                };
                for other in others {
                    if other != json!(number) {
                        change(format!("{number} -> {other}"), other);
                    }
                }
            }
            Value::String(word) if key == "action" && word != "fail" => change("fail".to_owned(), json!("fail")),
            Value::String(prompt) if key == "objective" => {
                let words: Vec<&str> = prompt.split(' ').collect();
                for at in (EACH_WORD / 2..words.len()).step_by(EACH_WORD) {
                    let mut fewer = words.clone();
                    let gone = fewer.remove(at);
                    change(format!("without {gone:?}"), json!(fewer.join(" ")));
                }
            }
            _ => {}
        }
    }
    all
}

fn collect(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| collect(item, format!("{pointer}/{at}"), found));
        }
        Value::Object(members) => {
            members.iter().for_each(|(key, member)| collect(member, format!("{pointer}/{key}"), found));
        }
        _ => {}
    }
    found.push(pointer);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten().filter(|entry| entry.file_name() != ".loopctl") {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// Whether the scenarios of an example hold with another document.
fn holds(example: &Path, file: &str, document: &Value) -> bool {
    let folder = tempfile::tempdir().unwrap();
    copy(example, folder.path());
    std::fs::write(folder.path().join(file), document.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_loopctl"));
    command.arg("test").arg(folder.path()).args(["--jobs", "1"]).output().unwrap().status.success()
}

#[test]
#[ignore = "for the nightly run: each mutation plays all scenarios of its example"]
fn the_scenarios_of_the_examples_catch_nine_mutations_of_ten() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut all = Vec::new();
    for (example, file) in DOCUMENTS {
        let document: Value =
            serde_json::from_str(&std::fs::read_to_string(examples.join(example).join(file)).unwrap()).unwrap();
        assert!(holds(&examples.join(example), file, &document), "{example} without a change");
        all.extend(mutations(&document).into_iter().map(|mutation| (example, file, mutation)));
    }
    let count = all.len();
    let (todo, survivors) = (Mutex::new(all.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().unwrap().next();
                    let Some((example, file, mutation)) = next else { break };
                    if holds(&examples.join(example), file, &mutation.document) {
                        survivors.lock().unwrap().push(format!("{example}: {}", mutation.what));
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    println!("{} of {count} mutations are caught", count - survivors.len());
    assert!(count >= 50, "{count} mutations");
    assert!(survivors.len() * 10 <= count, "{count} mutations, and these are not caught: {survivors:#?}");
}
