//! The files that a project file names: in `documents`, whose texts runs read, and scripts, texts of SQL and databases, of
//! which is known whether they are there. Nothing outside of the project's folder is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::guarded_read::{self, ReadError};
use super::paths::in_project;
use super::{name_of, within};
use loopctl_lang::compile::embedded_tools::EmbeddedFile;
use loopctl_lang::compile::{OutsideFiles, documents};
use loopctl_lang::diagnostic::{Diagnostic, Source, codes};
use loopctl_lang::language::Project;
use loopctl_lang::language::document_file::DocumentFile;
use loopctl_lang::language::project::Datasource;
use loopctl_lang::program::file_value::MAX_BYTES;
use loopctl_lang::syntax::document;
use loopctl_lang::syntax::document::DocumentKind;

/// What is known of these files; of a project file with errors, as far as it can be read.
pub fn outside(project: &Source, root: &Path) -> OutsideFiles {
    let document = document::read_as(project, Some(DocumentKind::Project));
    let Ok(project) = Project::deserialize(&document.value) else { return OutsideFiles::default() };
    #[cfg(feature = "sqlite")]
    let databases =
        (!project.datasources.is_empty()).then(|| -> std::sync::Arc<dyn loopctl_lang::compile::DatabaseProbe> {
            std::sync::Arc::new(super::databases::Databases::new(root, project.datasources.clone()))
        });
    #[cfg(not(feature = "sqlite"))]
    let databases = None;
    let documents = documents(&project, root);
    let named = std::path::absolute(root).ok();
    let roots = named.into_iter().chain(root.canonicalize()).collect();
    let beyond = beyond(&project, root);
    OutsideFiles { absent: absent(project, root), beyond, documents, roots, databases, now_ms: None }
}

/// The file that says which tools the program around the engine has; none where the project names none.
pub fn embedded(project: &Source, root: &Path) -> Option<Arc<EmbeddedFile>> {
    let document = document::read_as(project, Some(DocumentKind::Project));
    let file = document.value.get("embedded")?.as_str()?;
    Some(Arc::new(match text(root, file) {
        Ok(text) => EmbeddedFile::read(&Source::new(name_of(&within(root, file)), text)),
        Err(why) => {
            let message = format!("the tools in `{file}` can't be read: {why}");
            let fault = Diagnostic::error(codes::EMBEDDED_TOOL, message, "/embedded", document.tree.place("/embedded"));
            EmbeddedFile::unread(fault.help("the program that has them writes the file: `signatures()` of its engine"))
        }
    }))
}

/// What the project's `documents` are, up to a number of bytes of them; of the others nothing is known.
fn documents(project: &Project, root: &Path) -> BTreeMap<String, Result<Value, String>> {
    const MAX_DOCUMENT_BYTES: usize = 64 << 20;
    let (mut known, mut total) = (BTreeMap::new(), 0_usize);
    for (name, file) in &project.documents {
        if total >= MAX_DOCUMENT_BYTES {
            break;
        }
        let text = text(root, file.path());
        total = total.saturating_add(text.as_ref().map_or(0, String::len));
        known.insert(name.clone(), text.and_then(|text| documents::known(file.path(), &text, file.form().as_ref())));
    }
    known
}

/// The scripts of models, the texts that make databases and the documents that no run opens, because they lie elsewhere.
fn beyond(project: &Project, root: &Path) -> BTreeSet<String> {
    let scripts = project.models.values().filter_map(|model| model.script.as_ref());
    let inits = project.datasources.values().filter_map(|datasource| datasource.init.as_ref());
    scripts
        .chain(inits)
        .map(String::as_str)
        .chain(project.documents.values().map(DocumentFile::path))
        .filter(|file| in_project(root, file).is_err())
        .map(str::to_owned)
        .collect()
}

/// The scripts of models, the project's documents, and the texts that make databases which are not there yet, as the project file
/// writes them, that are not there.
fn absent(project: Project, root: &Path) -> BTreeSet<String> {
    let is_there = |file: &str| root.join(file).is_file();
    let scripts = project.models.into_values().filter_map(|model| model.script);
    let missing = |datasource: &Datasource| !datasource.sqlite_path().is_some_and(is_there);
    let inits = project.datasources.into_values().filter(missing).filter_map(|datasource| datasource.init);
    let named = project.documents.values().map(|file| file.path().to_owned());
    scripts.chain(inits).chain(named).filter(|file| !is_there(file)).collect()
}

/// The text of a file, by its path in the project's folder.
///
/// # Errors
/// Why it can't be read, in a sentence without a final stop.
pub fn text(root: &Path, file: &str) -> Result<String, String> {
    let failed = |error| ReadError::Failed(error).reason(MAX_BYTES);
    let root = root.canonicalize().map_err(failed)?;
    let real = root.join(file).canonicalize().map_err(failed)?;
    if !real.starts_with(&root) {
        return Err("it lies outside of the project's folder".to_owned());
    }
    guarded_read::text(&real, MAX_BYTES).map_err(|unread| match unread {
        ReadError::NoText => "it is no text; loopctl reads CSV, JSON and texts of UTF-8".to_owned(),
        unread => unread.reason(MAX_BYTES),
    })
}
