//! Appends the scenario of a recording to the test file beside a document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::failure::CommandError;
use crate::diagnostic::Source;
use crate::project::ProjectFile;
use crate::scenario::record::finished_recording::FinishedRecording;
use crate::syntax::document::{self, DocumentKind};
use crate::syntax::formatter::{formatted, formatted_value};
use crate::syntax::{self, Node};
use crate::trace::json::laid_out;

/// The columns of JSON in a test file.
const JSON_COLUMNS: usize = 100;

/// A test file with one more scenario, to be written.
pub(super) struct TestFileText {
    pub file: PathBuf,
    /// Its new text.
    pub text: String,
}

impl TestFileText {
    /// Refuses a scenario that `check` reports an error of: no scenario of the file would be played. What it names must be
    /// there.
    ///
    /// # Errors
    /// Its first error.
    pub(super) fn checked(self) -> Result<Self, CommandError> {
        let document = document::read(&Source::new(self.file.display().to_string(), self.text.clone()));
        let scenarios = document.value.get("scenarios").and_then(Value::as_array).map_or(0, Vec::len);
        let own = format!("/scenarios/{}", scenarios.saturating_sub(1));
        let faults = crate::project::scenario_file(document, &self.file).examined.faults;
        match faults.into_iter().find(|fault| fault.is_error() && is_within(&fault.path, &own)) {
            None => Ok(self),
            Some(fault) => Err(CommandError::usage_help(
                format!("the scenario is not appended to {}: {} ({})", self.file.display(), fault.message, fault.path),
                "the recording is written: write a scenario with `\"recording\"` yourself",
            )),
        }
    }
}

fn is_within(path: &str, own: &str) -> bool {
    path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The test file beside a document with a scenario more, which plays a recording.
///
/// # Errors
/// When the file can't be read, is no file of scenarios of the document, has one of this name, or could not play the
/// recording.
pub(super) fn appended(
    document: &Path,
    name: &str,
    recording: &Path,
    finished: &FinishedRecording,
) -> Result<TestFileText, CommandError> {
    let file = document.with_extension("test.json");
    let folder = crate::project::folder_of(&file);
    is_name(name)?;
    let path = relative(&folder, recording);
    is_playable(&folder, recording)?;
    let scenario = json!({ "name": name, "recording": path, "expect": expected(finished) });
    let text = if file.exists() {
        let source = crate::project::read(&file).map_err(|fault| CommandError::usage(fault.message))?;
        with_scenario(&file, document, name, &source, &scenario)?
    } else {
        let document = document.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let whole = json!({ "document": document, "scenarios": [scenario] });
        formatted_value(&whole, DocumentKind::Scenario)
    };
    Ok(TestFileText { file, text })
}

fn is_name(name: &str) -> Result<(), CommandError> {
    const MAX_NAME_CHARACTERS: usize = 200;
    if (1..=MAX_NAME_CHARACTERS).contains(&name.chars().count()) {
        return Ok(());
    }
    Err(CommandError::usage(format!("the name of a scenario has 1 to {MAX_NAME_CHARACTERS} characters")))
}

/// Refuses a recording that a scenario of the folder could not name.
fn is_playable(folder: &Path, recording: &Path) -> Result<(), CommandError> {
    let Some(project) = ProjectFile::find(folder) else { return Ok(()) };
    // It may not be there yet: where it will be counts.
    let mut at = std::path::absolute(recording).unwrap_or_else(|_| recording.to_owned());
    let mut below = PathBuf::new();
    let real = loop {
        if let Ok(real) = at.canonicalize() {
            break real.join(below);
        }
        let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return Ok(()) };
        below = Path::new(name).join(below);
        at = parent.to_owned();
    };
    if project.folder.canonicalize().is_ok_and(|top| !real.starts_with(top)) {
        return Err(CommandError::usage_help(
            format!("{} is outside of the project's folder, where no scenario plays it", recording.display()),
            "name a file in the folder of loopctl.json, or below it",
        ));
    }
    Ok(())
}

/// The text of a test file with one more scenario; the rest keeps its spelling.
fn with_scenario(
    file: &Path,
    document: &Path,
    name: &str,
    source: &Source,
    scenario: &Value,
) -> Result<String, CommandError> {
    let (tree, faults) = syntax::parse(source);
    let list = tree.root.get("scenarios").filter(|list| list.items().is_some() && faults.is_empty());
    let Some(list) = list else {
        return Err(CommandError::usage(format!("{} is no file of scenarios", file.display())));
    };
    let tested = tree.root.get("document").and_then(Node::as_str).unwrap_or_default();
    let tested = crate::project::folder_of(file).join(tested).canonicalize().ok();
    if tested.is_none() || tested != document.canonicalize().ok() {
        let message =
            format!("the scenarios of {} are of another document than {}", file.display(), document.display());
        return Err(CommandError::usage_help(message, "rename that file, and record again"));
    }
    let names = list.items().into_iter().flatten();
    if names.filter_map(|known| known.get("name")?.as_str()).any(|known| known == name) {
        return Err(CommandError::usage_help(
            format!("{} has a scenario of this name: {name:?}", file.display()),
            "give the new one another name, or remove that one first",
        ));
    }
    let end = list.items().and_then(|items| items.last()).map_or(list.span.start + 1, |last| last.span.end);
    let is_first = list.items().is_some_and(<[_]>::is_empty);
    let (before, after) = source.text.split_at(end);
    let shown = laid_out(scenario, JSON_COLUMNS).replace('\n', "\n    ");
    let comma = if is_first { "" } else { "," };
    let close = if is_first { "\n  " } else { "" };
    let text = format!("{before}{comma}\n    {shown}{close}{after}");
    // A file that is formatted stays so.
    let format = |text: &str| formatted(&Source::new(source.name.clone(), text), DocumentKind::Scenario).ok();
    let is_formatted = format(&source.text).is_some_and(|formatted| *formatted == *source.text);
    Ok(if is_formatted { format(&text).unwrap_or(text) } else { text })
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
