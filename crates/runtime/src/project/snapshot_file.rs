//! The files of snapshots: where they may be, and which file is one. A file of scenarios may come from somebody else, so a
//! snapshot is compared, shown and written only below its folder, and no file that is no snapshot is shown or replaced.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::paths::below;
use super::{guarded_read, replace};
use loopctl_lang::language::Project;
use loopctl_lang::language::ending::{Status, Termination};
use loopctl_lang::language::mcp::McpLock;
use loopctl_lang::syntax::MAX_BYTES;

/// How often a file is looked at that another scenario writes at the same time.
const MAX_LOOKS: usize = 3;

/// What a snapshot is at a path.
#[derive(Debug)]
pub enum SnapshotText {
    /// There is none yet.
    Absent,
    /// The text of a snapshot.
    Kept(String),
}

/// The path of a snapshot below the folder of its file of scenarios.
///
/// # Errors
/// Why no snapshot may be there, in a sentence without a final stop.
pub fn located(folder: &Path, name: &str) -> Result<PathBuf, String> {
    let Some(names) = below(folder, Path::new(name)).filter(|names| !names.is_empty()) else {
        return Err("a snapshot is a file in the folder of its file of scenarios, or below it".to_owned());
    };
    if let Some(hidden) = names.iter().find(|name| name.as_encoded_bytes().starts_with(b".")) {
        return Err(format!("{} is hidden, and a snapshot is not", shown(hidden)));
    }
    if is_reserved(&names) {
        return Err("a document of this name is read by loopctl, so a snapshot can't have it".to_owned());
    }
    let mut path = folder.to_owned();
    for (at, name) in names.iter().enumerate() {
        path.push(name);
        let is_last = at + 1 == names.len();
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => return Err(format!("{} is a link, and is not followed", shown(name))),
            Ok(found) if is_last && !found.is_file() => return Err("this is no regular file".to_owned()),
            Ok(found) if !is_last && !found.is_dir() => return Err(format!("{} is no folder", shown(name))),
            _ => {}
        }
    }
    Ok(path)
}

fn shown(name: &OsStr) -> String {
    format!("`{}`", loopctl_lang::diagnostic::shown(&name.to_string_lossy()))
}

/// Whether a file of this name would be read as a document: as a project file, scenarios, or what others call.
fn is_reserved(names: &[&OsStr]) -> bool {
    const FOLDERS: [&str; 3] = ["actions", "loops", "workflows"];
    let Some((last, folders)) = names.split_last() else { return true };
    let last = last.to_string_lossy().to_ascii_lowercase();
    let is_in = |folder: &OsStr| FOLDERS.iter().any(|name| folder.eq_ignore_ascii_case(name));
    last == Project::FILE
        || last == McpLock::FILE
        || last.ends_with(".test.json")
        || last.ends_with(".json") && folders.iter().any(|folder| is_in(folder))
}

/// The snapshot at a path that [`located`] gave.
///
/// # Errors
/// Why it can't be read; nothing of a file that is no snapshot is shown.
pub fn read(path: &Path) -> Result<SnapshotText, String> {
    let text = match guarded_read::text(path, MAX_BYTES) {
        Ok(text) => text,
        Err(guarded_read::ReadError::Failed(error)) if error.kind() == ErrorKind::NotFound => {
            return Ok(SnapshotText::Absent);
        }
        Err(unread) => return Err(unread.reason(MAX_BYTES)),
    };
    if !is_snapshot(&text) {
        return Err("the file is no snapshot of loopctl".to_owned());
    }
    Ok(SnapshotText::Kept(text))
}

/// Writes a snapshot in place of the one that is there, with the folders that it needs. Returns whether the file is another one
/// now.
///
/// # Errors
/// Why it was not written.
pub fn write(folder: &Path, name: &str, now: &str) -> Result<bool, String> {
    for _ in 0..MAX_LOOKS {
        let path = located(folder, name)?;
        match read(&path)? {
            SnapshotText::Kept(kept) if kept == now => return Ok(false),
            SnapshotText::Kept(kept) => match replace(&path, &kept, now) {
                Ok(()) => return Ok(true),
                // Another scenario has written it meanwhile.
                Err(_) if matches!(read(&path), Ok(SnapshotText::Kept(other)) if other != kept) => {}
                Err(fault) => return Err(fault.message.clone()),
            },
            SnapshotText::Absent => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(|error| super::reason(&error))?;
                }
                // What was made meanwhile may lead elsewhere.
                let path = located(folder, name)?;
                match OpenOptions::new().write(true).create_new(true).open(path) {
                    Ok(mut file) => {
                        return file.write_all(now.as_bytes()).map(|()| true).map_err(|error| super::reason(&error));
                    }
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(super::reason(&error)),
                }
            }
        }
    }
    Err("others write the same file at the same time".to_owned())
}

/// Whether a text is a snapshot: one line says how the run ended, and most lines begin as those of snapshots do. Some may not:
/// somebody may have edited them, and earlier versions wrote the lines of a text as lines.
pub fn is_snapshot(text: &str) -> bool {
    let (mut alike, mut others, mut has_ending) = (0_usize, 0_usize, false);
    for line in text.lines() {
        let is_ending = is_ending(line);
        has_ending |= is_ending;
        if is_ending || begins_alike(line) { alike += 1 } else { others += 1 }
    }
    has_ending && alike >= others
}

/// Whether a line says how a run ended: `completed (complete)`.
fn is_ending(line: &str) -> bool {
    let parts = line.strip_suffix(')').and_then(|line| line.split_once(" ("));
    parts.is_some_and(|(status, why)| is_word::<Status>(status) && (why == "none" || is_word::<Termination>(why)))
}

fn is_word<T: DeserializeOwned>(word: &str) -> bool {
    serde_json::from_value::<T>(Value::from(word)).is_ok()
}

/// Whether a line begins as one of a snapshot: with the number or the address of a call, its outcome, a pause, an error, or a
/// line of JSON.
fn begins_alike(line: &str) -> bool {
    const OUTCOMES: [&str; 5] = ["gives ", "fails with ", "is not made: ", "pause ", "error: "];
    const WORDS: [&str; 6] = ["true", "false", "null", "true,", "false,", "null,"];
    let line = line.trim_start();
    if OUTCOMES.iter().any(|outcome| line.starts_with(outcome)) || WORDS.contains(&line) {
        return true;
    }
    let Some(first) = line.chars().next() else { return false };
    if matches!(first, '"' | '{' | '}' | '[' | ']' | '-') || first.is_ascii_digit() {
        return true;
    }
    // The address of a step, and a thought or the JSON of an input.
    let address = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
    let is_thought = line.split_once(": ").is_some_and(|(at, _)| address(at));
    let mut words = line.splitn(3, ' ');
    let (at, action, input) = (words.next(), words.next(), words.next());
    let is_input = input.is_some_and(|input| input.starts_with(['{', '[', '"']) || input == "null");
    is_thought || at.is_some_and(address) && action.is_some() && is_input
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_snapshot_by_its_form() {
        for text in [
            "1: Look.\n1 lookup {\"id\": \"A\"}\n  gives {\"state\": \"late\"}\ncompleted (complete)\n\"x\"\n",
            "each.0.go tell {\"id\": \"a\"}\n  fails with \"http 503\"\nfailed (step_failed)\nerror: the step failed\n",
            "pause 1: May the agent call pay?\npaused (approval)\n",
            "completed (complete)\r\nnull\r\n",
            "an edited line\ncompleted (complete)\n",
            "1: first\nsecond\n1 __complete__ {\n  \"answer\": \"x\"\n}\n  gives null\ncompleted (complete)\n\"x\"\n",
        ] {
            assert!(is_snapshot(text), "{text}");
        }
        for text in [
            "",
            "host-17\n",
            "1: Look.\n",
            "HOME=/root\0KEY=secret",
            "#!/bin/sh\nset -e\ncargo test\ncompleted (complete)\n",
            "{\"type\": \"loop\"}",
            "{\n  \"a\": \"completed (complete)\"\n}\n",
            "done (complete)\n",
            "completed (whatever)\n",
        ] {
            assert!(!is_snapshot(text), "{text}");
        }
    }

    #[test]
    fn a_snapshot_is_below_its_folder_and_no_link_and_not_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("p");
        std::fs::create_dir_all(here.join("kept")).unwrap();
        std::fs::write(folder.path().join("out.txt"), "x").unwrap();
        for name in ["s.txt", "./s.txt", "kept/s.txt", "new/deep/s.txt", "kept/../s.txt", "s.json", "actions/s.txt"] {
            assert!(located(&here, name).is_ok(), "{name}");
        }
        assert!(located(&here, here.join("s.txt").to_str().unwrap()).is_ok());
        for name in [
            "/etc/hostname",
            "../out.txt",
            "kept/../../out.txt",
            ".",
            "kept/..",
            ".git/hooks/pre-commit",
            "kept/.s.txt",
            "kept",
            "loopctl.json",
            "sub/Loopctl.json",
            "l.test.json",
            "actions/a.json",
            "s.txt/below",
        ] {
            std::fs::write(here.join("s.txt"), "x").unwrap();
            assert!(located(&here, name).is_err(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("p");
        std::fs::create_dir_all(here.join("real")).unwrap();
        std::os::unix::fs::symlink(folder.path(), here.join("out")).unwrap();
        std::os::unix::fs::symlink(here.join("real"), here.join("within")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("new.txt"), here.join("dangling.txt")).unwrap();
        for name in ["out/s.txt", "within/s.txt", "dangling.txt"] {
            assert!(located(&here, name).is_err(), "{name}");
            assert!(write(&here, name, "completed (complete)\n").is_err(), "{name}");
        }
        assert!(!folder.path().join("new.txt").exists());
    }

    #[test]
    fn only_a_snapshot_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let now = "1: Look.\ncompleted (complete)\n";
        assert_eq!(write(folder.path(), "a/b/s.txt", now), Ok(true));
        assert_eq!(write(folder.path(), "a/b/s.txt", now), Ok(false));
        assert_eq!(write(folder.path(), "a/b/s.txt", "completed (complete)\n"), Ok(true));
        std::fs::write(folder.path().join("notes.txt"), "mine\n").unwrap();
        let refused = write(folder.path(), "notes.txt", now).unwrap_err();
        assert!(refused.contains("no snapshot") && !refused.contains("mine"), "{refused}");
        assert_eq!(std::fs::read_to_string(folder.path().join("notes.txt")).unwrap(), "mine\n");
    }
}
