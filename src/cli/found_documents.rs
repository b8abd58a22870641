//! The documents among the files of given paths: what `check` checks and `fmt` formats.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::failure::CommandError;
use super::worker_threads::each;
use crate::check::file_kind;
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::language::Project;
use crate::language::mcp::McpLock;
use crate::language::openapi::OpenApiLock;
use crate::project::{self, Target};
use crate::syntax::document;
use crate::syntax::document::{Document, DocumentKind};
use crate::trace::units::plural;

/// The most scripts of a project that are looked for in a folder.
const MAX_SCRIPTS: usize = 1_000;
/// The folders of a project whose JSON files are its documents.
const OWN_FOLDERS: [&str; 3] = ["actions", "loops", "workflows"];
/// A longer file is not blank.
const MAX_BLANK_BYTES: u64 = 64;
/// The most skipped files that are named.
const MAX_NAMED: usize = 3;

/// The outcome of reading a file.
pub enum ReadTarget {
    /// A document of loopctl, sound or not.
    Document(Box<Document>),
    /// One that can't be read.
    Fault(Box<Diagnostic>),
    /// A file in a folder that is no document of loopctl.
    Skipped,
}

/// Reads all files, in their order. A file that the user named is a document, whatever is in it; so is a script that a
/// project among the files names, and what is one by its place or its name.
pub fn read_all(
    targets: &[Target],
    text: impl Fn(&Target) -> Result<Source, Box<Diagnostic>> + Sync,
) -> Vec<ReadTarget> {
    let mut found = each(targets.iter().collect(), |target: &Target| read(target, target.named, &text));
    let scripts = scripts(targets, &found);
    let own = OwnPlaces::of(targets, &found);
    for (target, read_target) in targets.iter().zip(&mut found) {
        let is_script = || target.real.as_ref().is_some_and(|real| scripts.contains(real));
        if matches!(read_target, ReadTarget::Skipped) && (is_script() || own.has(target)) {
            *read_target = read(target, true, &text);
        }
    }
    found
}

/// `named`: it is a document of loopctl, whatever is in it.
fn read(target: &Target, named: bool, text: impl Fn(&Target) -> Result<Source, Box<Diagnostic>>) -> ReadTarget {
    let source = match text(target) {
        Ok(source) => source,
        Err(fault) if named || fault.code == codes::FILE => return ReadTarget::Fault(fault),
        Err(fault) => {
            let ours = fault.code == codes::ENCODING
                && project::letters(&target.path).is_some_and(|letters| file_kind::seems_ours(&letters));
            return if ours { ReadTarget::Fault(fault) } else { ReadTarget::Skipped };
        }
    };
    let project = target.path.file_name().is_some_and(|name| name == Project::FILE);
    if !named && !project && !file_kind::may_be_ours(&source.text) {
        return ReadTarget::Skipped;
    }
    let document = document::read_as(&source, project.then_some(DocumentKind::Project));
    if named || project || file_kind::is_ours(&document) {
        ReadTarget::Document(Box::new(document))
    } else {
        ReadTarget::Skipped
    }
}

/// The places whose files are documents of loopctl, whatever is in them: one that is broken must not look like one of another
/// tool.
struct OwnPlaces {
    /// The folders that have documents, or have a folder with them.
    folders: BTreeSet<PathBuf>,
    /// The data of projects, and the descriptions of their own tools: they are no documents, wherever they are.
    data: HashSet<PathBuf>,
}

impl OwnPlaces {
    fn of(targets: &[Target], read: &[ReadTarget]) -> Self {
        let (mut folders, mut data) = (BTreeSet::new(), HashSet::new());
        for (target, read) in targets.iter().zip(read) {
            let ReadTarget::Document(document) = read else { continue };
            let Some(folder) = target.real.as_deref().and_then(Path::parent) else { continue };
            folders.extend(above_own(folder).map(Path::to_owned));
            folders.insert(folder.to_owned());
            if document.kind == Some(DocumentKind::Project) {
                let named = document.value.get("documents").and_then(Value::as_object).into_iter().flatten();
                let files = named.filter_map(|(_, file)| file.as_str().or_else(|| file.get("file")?.as_str()));
                let tools = document.value.get("embedded").and_then(Value::as_str);
                data.extend(files.chain(tools).filter_map(|file| folder.join(file).canonicalize().ok()));
            }
        }
        Self { folders, data }
    }

    fn has(&self, target: &Target) -> bool {
        if is_scenarios_by_name(&target.path) {
            return true;
        }
        let Some((real, folder)) = target.real.as_deref().and_then(|real| Some((real, real.parent()?))) else {
            return false;
        };
        if is_lock(&target.path) || self.data.contains(real) {
            return false;
        }
        // Deeper in a project, folders of these names are often those of other tools.
        let is_of_project = |above: &Path| self.folders.contains(above) || above.join(Project::FILE).exists();
        above_own(folder).is_some_and(is_of_project) || self.folders.contains(folder) && is_blank(real)
    }
}

/// The folder above one of those whose files are documents. One that is a project itself may hold any files.
fn above_own(folder: &Path) -> Option<&Path> {
    let is_own = folder.file_name().is_some_and(|name| OWN_FOLDERS.iter().any(|own| name == *own));
    folder.parent().filter(|_| is_own && !folder.join(Project::FILE).exists())
}

/// Whether a command that was to write a document wrote nothing.
fn is_blank(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| found.len() <= MAX_BLANK_BYTES)
        && project::read(file).is_ok_and(|source| source.text.trim().is_empty())
}

/// Whether a file is one of scenarios by its name: `refund.test.json`.
pub fn is_scenarios_by_name(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(b".test.json"))
}

/// Whether a file is one that loopctl itself writes beside the documents.
pub fn is_lock(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == McpLock::FILE || name == OpenApiLock::FILE)
}

/// The names of skipped files, in a report that counts them; nothing of many.
pub fn few_names(skipped: &[String]) -> String {
    match skipped.len() {
        1..=MAX_NAMED => format!(": {}", skipped.join(", ")),
        _ => String::new(),
    }
}

/// The scripts that the projects among the files name: what is in them must be replies.
fn scripts(targets: &[Target], read: &[ReadTarget]) -> HashSet<PathBuf> {
    let mut found = HashSet::new();
    for (target, read) in targets.iter().zip(read) {
        let ReadTarget::Document(document) = read else { continue };
        let (Some(DocumentKind::Project), Some(real)) = (document.kind, &target.real) else { continue };
        let models = document.value.get("models").and_then(Value::as_object).into_iter().flatten();
        let named = models.filter_map(|(_, model)| model.get("script")?.as_str());
        found.extend(named.take(MAX_SCRIPTS).filter_map(|script| real.with_file_name(script).canonicalize().ok()));
    }
    found
}

/// A pipeline in which a command does nothing must not look like a sound one. `nothing` says what was to be done, as in
/// `nothing to check`.
pub fn none_found(nothing: &str, paths: &[PathBuf], skipped: usize, help: &str) -> CommandError {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let passed = match skipped {
        0 => "it contains no JSON file".to_owned(),
        1 => "its only JSON file is not a document of loopctl".to_owned(),
        more => format!("none of the {} is a document of loopctl", plural(more, "JSON file")),
    };
    CommandError::usage_help(format!("{nothing} in {}: {passed}", names.join(", ")), help)
}
