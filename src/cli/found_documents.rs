//! The documents among the files of given paths: what `check` checks and `fmt` formats.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::Value;

use super::failure::CommandError;
use super::worker_threads::each;
use crate::check::file_kind;
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::language::Project;
use crate::project::{self, Target};
use crate::syntax::document;
use crate::syntax::document::{Document, DocumentKind};
use crate::trace::units::plural;

/// The most scripts of a project that are looked for in a folder.
const MAX_SCRIPTS: usize = 1_000;

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
/// project among the files names.
pub fn read_all(
    targets: &[Target],
    text: impl Fn(&Target) -> Result<Source, Box<Diagnostic>> + Sync,
) -> Vec<ReadTarget> {
    let mut found = each(targets.iter().collect(), |target: &Target| read(target, target.named, &text));
    let scripts = scripts(targets, &found);
    for (target, read_target) in targets.iter().zip(&mut found) {
        let is_script = || target.real.as_ref().is_some_and(|real| scripts.contains(real));
        if matches!(read_target, ReadTarget::Skipped) && is_script() {
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
