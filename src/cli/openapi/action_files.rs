//! The files that hold actions: written whole, and never over what somebody else wrote.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{OpenApiProject, shown, text_of};
use crate::cli::failure::CommandError;
use crate::cli::new_files::{self, NewFile};
use crate::compile::Texts;
use crate::compile::openapi::{MadeAction, MadeActions};
use crate::diagnostic::{Source, codes};
use crate::engine::digest::Sha256;
use crate::project;
use crate::project::load::examine;
use crate::syntax::document;
use crate::syntax::formatter::formatted_document;
use crate::trace::escape;

/// The most bytes and the most values of the actions in a file; one action alone may have more.
const MAX_FILE_BYTES: usize = 3 << 20;
const MAX_FILE_VALUES: usize = 40_000;
/// The most times that actions are judged again after some were left out.
const MAX_ROUNDS: usize = 20;

/// The texts of the files for actions, by their paths in the project's folder. An action that `check` refuses is left out.
pub fn texts(name: &str, made: &mut MadeActions) -> BTreeMap<String, String> {
    for _ in 0..MAX_ROUNDS {
        let files = written(name, made);
        let refused: BTreeMap<String, String> = files.iter().flat_map(|(path, file)| refused(path, file)).collect();
        if refused.is_empty() {
            return files.into_iter().map(|(path, file)| (path, file.text)).collect();
        }
        for (action, why) in refused {
            if let Some(action) = made.actions.remove(&action) {
                made.left_out.insert(action.place, why);
            }
        }
    }
    BTreeMap::new()
}

/// The digest of a text.
pub fn digest(text: &str) -> String {
    Sha256::of(text).to_string()
}

/// The text of a file, and the actions in it in their order.
struct ActionFile {
    text: String,
    names: Vec<String>,
}

/// The actions in files, in the order of their names.
fn written(name: &str, made: &MadeActions) -> BTreeMap<String, ActionFile> {
    let mut parts: Vec<Vec<&MadeAction>> = Vec::new();
    let (mut bytes, mut values) = (0_usize, 0_usize);
    for action in made.actions.values() {
        let (own_bytes, own_values) = (action.action.to_string().len(), count(&action.action));
        bytes = bytes.saturating_add(own_bytes);
        values = values.saturating_add(own_values);
        match parts.last_mut().filter(|_| bytes <= MAX_FILE_BYTES && values <= MAX_FILE_VALUES) {
            Some(part) => part.push(action),
            None => {
                (bytes, values) = (own_bytes, own_values);
                parts.push(vec![action]);
            }
        }
    }
    let mut files = BTreeMap::new();
    for (at, part) in parts.into_iter().enumerate() {
        let path = match at.saturating_add(1) {
            1 => format!("actions/{name}.json"),
            number => format!("actions/{name}.{number}.json"),
        };
        let list: Value = part.iter().map(|action| action.action.clone()).collect();
        let text = formatted_document(&path, &(list.to_string() + "\n"));
        // Characters that nobody sees are written by their number, so that a review of the file shows them.
        let text = text.split('\n').map(|line| escape::json(line).into_owned()).collect::<Vec<_>>().join("\n");
        files.insert(path, ActionFile { text, names: part.into_iter().map(|action| action.name.clone()).collect() });
    }
    files
}

fn count(value: &Value) -> usize {
    let (mut values, mut todo) = (0_usize, vec![value]);
    while let Some(value) = todo.pop() {
        values = values.saturating_add(1);
        match value {
            Value::Array(items) => todo.extend(items),
            Value::Object(members) => todo.extend(members.values()),
            _ => {}
        }
    }
    values
}

/// The actions of a file that `check` refuses, and why.
fn refused(path: &str, file: &ActionFile) -> BTreeMap<String, String> {
    let source = Source::new(path, file.text.as_str());
    let document = document::read_as(&source, Some(document::DocumentKind::Actions));
    let starts: Vec<usize> = document.tree.root.items().into_iter().flatten().map(|node| node.span.start).collect();
    let compiled = examine(&Texts::new(source), document);
    let mut found = BTreeMap::new();
    // That it is no loop is no fault.
    for fault in compiled.diagnostics.iter().filter(|fault| fault.is_error() && fault.code != codes::NO_LOOP) {
        let at = starts.partition_point(|start| *start <= fault.place.start).saturating_sub(1);
        if let Some(name) = file.names.get(at) {
            found
                .entry(name.clone())
                .or_insert_with(|| format!("`check` refuses it: {} ({})", fault.message, fault.code));
        }
    }
    found
}

/// What is done with the files of a page.
pub struct FilesToWrite {
    new: Vec<NewFile>,
    /// With the text that each has now.
    replaced: Vec<(String, String, String)>,
    removed: Vec<String>,
}

/// Which files are written and removed, when each that is there was written by an earlier pin.
///
/// # Errors
/// When a file is there that somebody else wrote, or changed.
pub fn plan(
    project: &OpenApiProject,
    before: &BTreeMap<String, String>,
    texts: &BTreeMap<String, String>,
) -> Result<FilesToWrite, CommandError> {
    let mut files = FilesToWrite { new: Vec::new(), replaced: Vec::new(), removed: Vec::new() };
    for (path, text) in texts {
        match there(project, before, path, Some(text))? {
            None => files.new.push(NewFile::new(path.clone(), text.clone())),
            Some(now) if now == *text => {}
            Some(now) => files.replaced.push((path.clone(), now, text.clone())),
        }
    }
    for path in before.keys().filter(|path| !texts.contains_key(*path) && is_ours(path)) {
        if there(project, before, path, None)?.is_some() {
            files.removed.push(path.clone());
        }
    }
    Ok(files)
}

/// Whether a path of a lock file is one that is written here: a lock file may say anything.
fn is_ours(path: &str) -> bool {
    path.strip_prefix("actions/").is_some_and(|name| {
        name.ends_with(".json") && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
    })
}

/// The text of a file that an earlier pin wrote; none when there is none.
fn there(
    project: &OpenApiProject,
    before: &BTreeMap<String, String>,
    path: &str,
    wanted: Option<&String>,
) -> Result<Option<String>, CommandError> {
    let whole = project.folder.join(path);
    let Ok(found) = fs::symlink_metadata(&whole) else { return Ok(None) };
    let folder = whole.parent().map(fs::symlink_metadata);
    let is_linked = !found.is_file() || folder.is_some_and(|folder| !folder.is_ok_and(|folder| folder.is_dir()));
    if is_linked {
        let message =
            format!("nothing was written: {} is a link or no file, and nothing is written through it", shown(&whole));
        return Err(CommandError::usage_help(message, "remove it, or name other files with --name"));
    }
    let text = text_of(&whole)?.unwrap_or_default();
    if wanted == Some(&text) || before.get(path).is_some_and(|known| *known == digest(&text)) {
        return Ok(Some(text));
    }
    let (why, help) = match before.contains_key(path) {
        true => (
            "was changed since it was written",
            "keep changes in a file of your own: an action that is copied there under another name, or a declaration; then remove \
             the file, and pin again",
        ),
        false => ("was written by somebody else", "name other files with --name, or remove it"),
    };
    Err(CommandError::usage_help(format!("nothing was written: {} {why}", shown(&whole)), help))
}

impl FilesToWrite {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.replaced.is_empty() && self.removed.is_empty()
    }

    /// Writes the files, and removes those that are no more. The paths of those that were written.
    ///
    /// # Errors
    /// When one can't be written.
    pub fn write(self, folder: &Path) -> Result<Vec<String>, CommandError> {
        let mut done = Vec::new();
        if !self.new.is_empty() {
            done.extend(new_files::write(folder, &self.new)?.written);
        }
        for (path, now, text) in self.replaced {
            project::replace(&folder.join(&path), &now, &text)
                .map_err(|fault| CommandError::usage(fault.message.clone()))?;
            done.push(path);
        }
        for path in self.removed {
            let whole = folder.join(&path);
            fs::remove_file(&whole).map_err(|error| CommandError::file("removed", &whole, &error))?;
        }
        done.sort();
        Ok(done)
    }
}
