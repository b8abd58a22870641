//! Appends the scenario of a recording to the test file beside a document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::failure::CommandError;
use crate::diagnostic::Source;
use crate::scenario::record::finish::FinishedRecording;
use crate::syntax;
use crate::trace::json::laid_out;

/// The columns of JSON in a test file.
const COLUMNS: usize = 100;

/// Appends a scenario that plays a recording. Returns the test file.
///
/// # Errors
/// When the file can't be read or written, or has no list of scenarios.
pub(super) fn append(
    document: &Path,
    name: &str,
    recording: &Path,
    finished: &FinishedRecording,
) -> Result<PathBuf, CommandError> {
    let file = document.with_extension("test.json");
    let folder = crate::project::folder_of(&file);
    let scenario = json!({ "name": name, "recording": relative(&folder, recording), "expect": expected(finished) });
    let text = if file.exists() {
        let text = std::fs::read_to_string(&file).map_err(|error| CommandError::file("read", &file, &error))?;
        appended(&file, text, &scenario)?
    } else {
        let document = document.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let whole = json!({ "document": document, "scenarios": [scenario] });
        format!("{}\n", laid_out(&whole, COLUMNS))
    };
    std::fs::write(&file, text).map_err(|error| CommandError::file("written", &file, &error))?;
    Ok(file)
}

/// The text of a test file with one more scenario; the rest keeps its spelling.
fn appended(file: &Path, text: String, scenario: &Value) -> Result<String, CommandError> {
    let source = Source::new(file.display().to_string(), text);
    let (tree, faults) = syntax::parse(&source);
    let list = tree.root.get("scenarios").filter(|list| list.items().is_some() && faults.is_empty());
    let Some(list) = list else {
        return Err(CommandError::usage(format!("{} is no file of scenarios", file.display())));
    };
    let end = list.items().and_then(|items| items.last()).map_or(list.span.start + 1, |last| last.span.end);
    let is_first = list.items().is_some_and(<[_]>::is_empty);
    let (before, after) = source.text.split_at(end);
    let shown = laid_out(scenario, COLUMNS).replace('\n', "\n    ");
    let comma = if is_first { "" } else { "," };
    let close = if is_first { "\n  " } else { "" };
    Ok(format!("{before}{comma}\n    {shown}{close}{after}"))
}

/// What held in the run: status, termination, the calls, and the declared tools that were not called.
fn expected(finished: &FinishedRecording) -> Value {
    let story = &finished.story;
    let mut expect = serde_json::Map::new();
    expect.insert("status".to_owned(), Value::from(story.result.status.word()));
    if let Some(termination) = story.result.termination {
        expect.insert("termination".to_owned(), json!(termination));
    }
    let calls: Vec<Value> = story
        .made()
        .filter_map(|call| {
            let action = call.action.as_ref()?;
            let mut wanted = json!({ "action": action, "success": call.success });
            if let (Some(at), Some(wanted)) = (&call.at, wanted.as_object_mut()) {
                wanted.insert("at".to_owned(), Value::from(at.as_str()));
            }
            Some(wanted)
        })
        .collect();
    if !calls.is_empty() {
        expect.insert("calls".to_owned(), Value::Array(calls));
    }
    let called: BTreeSet<&str> = story.made().filter_map(|call| call.action.as_deref()).collect();
    let never: Vec<&String> = finished.tools.iter().filter(|tool| !called.contains(tool.as_str())).collect();
    if !never.is_empty() {
        expect.insert("never".to_owned(), json!(never));
    }
    Value::Object(expect)
}

/// The path of a file from a folder.
fn relative(folder: &Path, file: &Path) -> String {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (folder, file) = (whole(folder), whole(file));
    let shared = folder.components().zip(file.components()).take_while(|(one, other)| one == other).count();
    let up = folder.components().skip(shared).map(|_| "..".to_owned());
    let down = file.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}
