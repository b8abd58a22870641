//! The files that a project file names and that are no documents: scripts, texts of SQL, databases.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

use crate::compile::OutsideFiles;
use crate::diagnostic::Source;
use crate::language::Project;
use crate::language::project::Datasource;
use crate::syntax::document;
use crate::syntax::document::DocumentKind;

/// What is known of these files; of a project file with errors, as far as it can be read.
pub fn outside(project: &Source, root: &Path) -> OutsideFiles {
    let document = document::read_as(project, Some(DocumentKind::Project));
    let Ok(project) = Project::deserialize(&document.value) else { return OutsideFiles::default() };
    #[cfg(feature = "sqlite")]
    let databases = (!project.datasources.is_empty()).then(|| -> std::sync::Arc<dyn crate::compile::DatabaseProbe> {
        std::sync::Arc::new(super::databases::Databases::new(root, project.datasources.clone()))
    });
    #[cfg(not(feature = "sqlite"))]
    let databases = None;
    OutsideFiles { absent: absent(project, root), databases }
}

/// The scripts of models, and the texts that make databases which are not there yet, as the project file
/// writes them, that are not there.
fn absent(project: Project, root: &Path) -> BTreeSet<String> {
    let is_there = |file: &str| root.join(file).is_file();
    let scripts = project.models.into_values().filter_map(|model| model.script);
    let missing = |datasource: &Datasource| !datasource.sqlite_path().is_some_and(is_there);
    let inits = project.datasources.into_values().filter(missing).filter_map(|datasource| datasource.init);
    scripts.chain(inits).filter(|file| !is_there(file)).collect()
}
