//! The only way from a file to a [`Program`]: gathers the texts, compiles them, and checks them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::gather;
pub use loopctl_lang::check::examine;
use loopctl_lang::compile::{Compiled, Texts, ToolSignature};
use loopctl_lang::diagnostic::{Diagnostic, Place, Source};
use loopctl_lang::program::Program;
use loopctl_lang::syntax::document;

/// A document that can be run.
#[derive(Debug)]
pub struct Loaded {
    /// What it means.
    pub program: Arc<Program>,
    /// The folder of relative paths: that of the project file, or else that of the document.
    pub root: PathBuf,
    /// The warnings.
    pub warnings: Vec<Diagnostic>,
    /// The texts that the warnings refer to.
    pub sources: Vec<Source>,
}

/// A document that can't be run. Its text has a line for each error, as `FILE:LINE:COLUMN: CODE: MESSAGE`.
#[derive(Debug)]
pub struct DocumentError {
    /// All errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The texts that they refer to.
    pub sources: Vec<Source>,
}

impl std::error::Error for DocumentError {}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the document has errors")?;
        self.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).try_for_each(|error| {
            let Place { file, line, column, .. } = &error.place;
            write!(f, "\n{file}:{line}:{column}: {}: {}", error.code, error.message)
        })
    }
}

/// Loads the document at `path` (`-` is standard input), with more files of registered actions.
///
/// # Errors
/// Every fault that was found, with its place.
pub fn load(path: &Path, actions: &[PathBuf]) -> Result<Loaded, DocumentError> {
    load_with(path, actions, &[])
}

/// The same in a program that has these tools.
///
/// # Errors
/// Every fault that was found, with its place.
pub fn load_with(path: &Path, actions: &[PathBuf], embedded: &[ToolSignature]) -> Result<Loaded, DocumentError> {
    let unread = |diagnostics| DocumentError { diagnostics, sources: Vec::new() };
    let mut gathered = gather(path, actions).map_err(unread)?;
    gathered.texts.embedded = embedded.to_vec();
    load_texts(&gathered.texts, gathered.root)
}

/// Loads texts that are already in memory.
///
/// # Errors
/// Every fault that was found, with its place.
pub fn load_texts(texts: &Texts, root: PathBuf) -> Result<Loaded, DocumentError> {
    let Compiled { program, diagnostics, .. } = examine(texts, document::read(&texts.main));
    let sources = sources(texts);
    match program {
        Some(program) if !diagnostics.iter().any(Diagnostic::is_error) => {
            Ok(Loaded { program, root, warnings: diagnostics, sources })
        }
        _ => Err(DocumentError { diagnostics, sources }),
    }
}

/// All texts that a diagnostic may refer to.
pub fn sources(texts: &Texts) -> Vec<Source> {
    std::iter::once(&texts.main)
        .chain(&texts.project)
        .chain(texts.locked.source())
        .chain(texts.embedded_file.iter().filter_map(|file| file.source.as_ref()))
        .chain(&texts.actions)
        .chain(&texts.loops)
        .chain(&texts.workflows)
        .chain(&texts.extra_actions)
        .cloned()
        .collect()
}
