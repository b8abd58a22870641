//! Snapshots: the trace of a run as a text in a file. It has no ids and times, so that only what happened changes it.

use std::path::{Path, PathBuf};

use super::story::RunStory;
use crate::policy::word::written;
use crate::project::guarded;
use crate::trace::json::laid_out;
use crate::trace::{Redaction, escape};

/// The largest snapshot, in bytes.
const MOST: usize = 16 << 20;
/// The columns of JSON in a snapshot.
const COLUMNS: usize = 100;

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

/// Compares the story of a run with its snapshot, or writes it. Returns the file that was written.
///
/// # Errors
/// What differs, in a sentence without a final stop.
pub fn compare(
    path: &Path,
    story: &RunStory,
    redact: &Redaction,
    mode: SnapshotMode,
) -> Result<Option<WrittenSnapshot>, String> {
    let now = text(story, redact);
    let kept = guarded::text(path, MOST);
    if mode == SnapshotMode::Write {
        if kept.as_ref().is_ok_and(|kept| *kept == now) {
            return Ok(None);
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| format!("the snapshot can't be written: {error}"))?;
        }
        std::fs::write(path, &now).map_err(|error| format!("the snapshot can't be written: {error}"))?;
        return Ok(Some(WrittenSnapshot { path: path.to_owned() }));
    }
    let kept = match kept {
        Ok(kept) => kept,
        Err(unread) => {
            let why = unread.reason(MOST);
            return Err(format!("there is no snapshot to compare with: {why}; `loopctl test --update` writes it"));
        }
    };
    let mut lines = kept.lines().zip(now.lines()).enumerate();
    let differs = lines.find(|(_, (kept, now))| kept != now);
    match differs {
        Some((at, (kept, now))) => Err(format!("line {} of the snapshot was `{kept}` and is `{now}`", at + 1)),
        None if kept.lines().count() == now.lines().count() => Ok(None),
        None => {
            let (kept, now) = (kept.lines().count(), now.lines().count());
            Err(format!("the snapshot has {kept} lines, and the trace {now}"))
        }
    }
}

/// The trace of a run without ids and times.
fn text(story: &RunStory, redact: &Redaction) -> String {
    let mut lines: Vec<String> = Vec::new();
    for call in &story.calls {
        let indent = "  ".repeat(call.depth);
        let number = call.at.clone().unwrap_or_else(|| call.iteration.to_string());
        if !call.thought.is_empty() {
            lines.push(format!("{indent}{number}: {}", redact.text(&call.thought)));
        }
        let value = |value: &serde_json::Value| laid_out(&redact.value(value), COLUMNS);
        let action = call.action.as_deref().unwrap_or("(a reply that can't be read)");
        lines.push(format!("{indent}{number} {action} {}", value(&call.input)));
        let outcome = match (call.success, call.is_made) {
            (true, _) => "gives",
            (false, true) => "fails with",
            (false, false) => "is not made:",
        };
        lines.push(format!("{indent}  {outcome} {}", value(&call.observation)));
    }
    for pause in &story.pauses {
        lines.push(format!("pause {}: {}", pause.number, redact.text(&pause.question)));
    }
    let result = &story.result;
    let termination = written(&result.termination).unwrap_or_else(|| "none".to_owned());
    lines.push(format!("{} ({termination})", result.status.word()));
    if let Some(answer) = &result.result {
        lines.push(laid_out(&redact.value(&answer.answer), COLUMNS));
    }
    if let Some(error) = &result.error {
        lines.push(redact.text(&error.message).into_owned());
    }
    let mut text = lines.iter().map(|line| escape::terminal(line).into_owned()).collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}
