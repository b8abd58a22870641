//! Snapshots: the trace of a run as a text in a file. It has no ids and times, so that only what happened changes it.

use std::path::{Path, PathBuf};

use super::story::RunStory;
use crate::policy::word::written;
use crate::project::snapshot_file::{self, SnapshotText};
use crate::trace::json::laid_out;
use crate::trace::{Redaction, escape};

/// The columns of JSON in a snapshot.
const JSON_COLUMNS: usize = 100;

/// What is done with snapshots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    /// They are compared.
    #[default]
    Compare,
    /// They are written.
    Write,
}

/// A snapshot that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSnapshot {
    /// The file.
    pub path: PathBuf,
}

/// Compares a text with its snapshot, a file below a folder, or writes it. Returns the file that was written.
///
/// # Errors
/// What differs, in a sentence without a final stop.
pub fn compare(folder: &Path, name: &str, now: &str, mode: SnapshotMode) -> Result<Option<WrittenSnapshot>, String> {
    if mode == SnapshotMode::Write {
        let written = snapshot_file::write(folder, name, now);
        let written = written.map_err(|why| format!("the snapshot can't be written: {why}"))?;
        return Ok(written.then(|| WrittenSnapshot { path: folder.join(name) }));
    }
    let path = snapshot_file::located(folder, name);
    let kept = match path.and_then(|path| snapshot_file::read(&path)) {
        Ok(SnapshotText::Kept(kept)) => kept,
        Ok(SnapshotText::Absent) => {
            return Err("there is no snapshot to compare with; `loopctl test --update` writes it".to_owned());
        }
        Err(why) => return Err(format!("the snapshot can't be compared with: {why}")),
    };
    // Earlier versions wrote an error without its name.
    let is_same = |kept: &str, now: &str| kept == now || now.strip_prefix(ERROR) == Some(kept);
    let mut lines = kept.lines().zip(now.lines()).enumerate();
    let differs = lines.find(|(_, (kept, now))| !is_same(kept, now));
    match differs {
        Some((at, (kept, now))) => Err(format!("line {} of the snapshot was `{kept}` and is `{now}`", at + 1)),
        None if kept.lines().count() == now.lines().count() => Ok(None),
        None => {
            let (kept, now) = (kept.lines().count(), now.lines().count());
            Err(format!("the snapshot has {kept} lines, and the trace {now}"))
        }
    }
}

/// The trace of a run without ids and times. Line breaks in texts are escaped: each line begins as lines of snapshots do,
/// whatever a model, a tool or a document says.
pub fn text(story: &RunStory, redact: &Redaction) -> String {
    let mut lines = SnapshotLines(String::new());
    let value = |value: &serde_json::Value| laid_out(&redact.value(value), JSON_COLUMNS);
    for call in &story.calls {
        let indent = "  ".repeat(call.depth);
        let number = call.at.clone().unwrap_or_else(|| call.iteration.to_string());
        if !call.thought.is_empty() {
            lines.line(&format!("{indent}{number}: {}", redact.text(&call.thought)));
        }
        let action = call.action.as_deref().unwrap_or("(a reply that can't be read)");
        lines.json(&format!("{indent}{number} {action} "), &value(&call.input));
        let outcome = match (call.success, call.is_made) {
            (true, _) => "gives",
            (false, true) => "fails with",
            (false, false) => "is not made:",
        };
        lines.json(&format!("{indent}  {outcome} "), &value(&call.observation));
    }
    for pause in &story.pauses {
        lines.line(&format!("pause {}: {}", pause.number, redact.text(&pause.question.text)));
    }
    let result = &story.result;
    let termination = written(&result.termination).unwrap_or_else(|| "none".to_owned());
    lines.line(&format!("{} ({termination})", result.status.word()));
    if let Some(answer) = &result.result {
        lines.json("", &value(&answer.answer));
    }
    if let Some(error) = &result.error {
        lines.line(&format!("{ERROR}{}", redact.text(&error.message)));
    }
    lines.0
}

/// What the line of an error begins with.
const ERROR: &str = "error: ";

struct SnapshotLines(String);

impl SnapshotLines {
    fn line(&mut self, text: &str) {
        self.0.push_str(&escape::line(text));
        self.0.push('\n');
    }

    /// JSON behind the beginning of its first line. Its line breaks are between its tokens.
    fn json(&mut self, begin: &str, json: &str) {
        self.0.push_str(&escape::line(begin));
        self.0.push_str(&escape::terminal(json));
        self.0.push('\n');
    }
}
