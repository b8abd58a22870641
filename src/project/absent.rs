//! Files that a project file names and that do not exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::file::settings;
use crate::diagnostic::Source;
use crate::language::project::Datasource;

/// The scripts of models, and the init scripts of databases, that do not exist, as the project file writes
/// them; empty when the project file can't be read.
pub fn absent(project: &Source, root: &Path) -> BTreeSet<String> {
    let Ok(project) = settings(project) else { return BTreeSet::new() };
    let is_there = |file: &str| root.join(file).is_file();
    let scripts = project.models.into_values().filter_map(|model| model.script);
    let missing = |datasource: &Datasource| !datasource.sqlite_path().is_some_and(is_there);
    let inits = project.datasources.into_values().filter(missing).filter_map(|datasource| datasource.init);
    scripts.chain(inits).filter(|file| !is_there(file)).collect()
}
