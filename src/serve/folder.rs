//! The served folder: its project, and its loops and workflows by name. It is read once, at the start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{Context, SHA256};
use schemars::JsonSchema;
use serde::Serialize;

use super::folder_files::FolderFiles;
use crate::check::file_kind;
use crate::compile::locked_tools::LockedTools;
use crate::compile::{Texts, ToolSignature};
use crate::diagnostic::{Diagnostic, Source, codes};
use crate::language::Project;
pub use crate::language::agent_request::REQUEST;
use crate::program::Program;
use crate::project::load::{self, DocumentError, Loaded};
use crate::project::{self, Library, Neighbours};
use crate::syntax::document;
use crate::syntax::document::DocumentKind;

/// A folder that is served.
#[derive(Debug)]
pub struct Folder {
    /// Its project's settings; the defaults without a project file.
    pub project: Arc<Project>,
    /// The folder of relative paths: that of the project file, or else the folder itself.
    pub root: PathBuf,
    /// The folder as it was named: where it is read again.
    pub given: PathBuf,
    /// Its files, as they were before it was read.
    pub(super) files: FolderFiles,
    /// The folder itself, as an absolute path: where its schedules are written.
    pub place: PathBuf,
    /// The project file's text.
    pub source: Option<Source>,
    /// The loops and workflows by name.
    pub loops: BTreeMap<String, ServedLoop>,
    /// The workflows with a webhook, by the name of the webhook.
    pub hooks: BTreeMap<String, Vec<String>>,
    /// The tools of the program that serves it.
    pub(super) embedded: Vec<ToolSignature>,
    /// Of the texts of the project file and of all documents, wherever the folder is: servers of one store compare it.
    pub digest: String,
    neighbours: Arc<Neighbours>,
}

/// A loop or a workflow of the folder.
#[derive(Debug)]
pub struct ServedLoop {
    /// What it is.
    pub kind: ServedKind,
    /// The compiled loop.
    pub program: Arc<Program>,
    /// The folder of its relative paths.
    pub root: PathBuf,
    /// Its project file's text.
    pub source: Option<Source>,
}

/// What a document of the folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServedKind {
    /// A loop of mode `react`.
    Loop,
    /// A loop of mode `foreach`.
    Foreach,
    /// A workflow.
    Workflow,
}

/// Why a folder can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Its documents have errors.
    #[error(transparent)]
    Document(DocumentError),
    /// Another reason, in a sentence.
    #[error("{0}")]
    Refused(String),
}

impl Folder {
    /// Reads a folder: every loop and every workflow in it and below it must be sound, and their names must differ.
    ///
    /// # Errors
    /// All faults of its documents, or why the folder can't be read.
    pub fn read(path: &Path) -> Result<Self, FolderError> {
        Self::read_with(path, Vec::new())
    }

    /// The same for a program that has these tools.
    ///
    /// # Errors
    /// As those of [`Folder::read`].
    pub fn read_with(path: &Path, embedded: Vec<ToolSignature>) -> Result<Self, FolderError> {
        if !path.is_dir() {
            return Err(FolderError::Refused(format!("{} is no folder", project::name_of(path))));
        }
        // What changes while the folder is read is found by the next look.
        let files = FolderFiles::of(path);
        let neighbours = Library::new(&[]).neighbours(path);
        let unsound = |diagnostics| FolderError::Document(DocumentError { diagnostics, sources: Vec::new() });
        let gathered = neighbours.gathered(Source::new(REQUEST, "{}"), None).map_err(unsound)?;
        let project = gathered.texts.project.as_ref().map(settings).transpose()?.unwrap_or_default();
        let mut folder = Self {
            project,
            root: gathered.root,
            given: path.to_owned(),
            files,
            place: std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()),
            source: gathered.texts.project,
            loops: BTreeMap::new(),
            hooks: BTreeMap::new(),
            embedded,
            digest: String::new(),
            neighbours,
        };
        let mut faults = DocumentError { diagnostics: Vec::new(), sources: Vec::new() };
        let targets = project::targets(&[path.to_owned()]).map_err(|fault| unsound(vec![*fault]))?;
        // A file that can't be read may be a loop: without it the server would look complete.
        faults.diagnostics.extend(targets.faults);
        for target in &targets.files {
            let kind = match kind_of(&target.path) {
                Ok(Some(kind)) => kind,
                Ok(None) => continue,
                Err(fault) => {
                    faults.diagnostics.push(*fault);
                    continue;
                }
            };
            match offered(&target.path, kind, &folder.embedded) {
                Ok(offered) => folder.offer(offered)?,
                Err(more) => {
                    // What is wrong with the project is wrong with each document, and said once.
                    for fault in more.diagnostics {
                        if !faults.diagnostics.contains(&fault) {
                            faults.diagnostics.push(fault);
                        }
                    }
                    faults.sources.extend(more.sources);
                }
            }
        }
        folder.hooks = folder.hooked()?;
        folder.digest = folder.texts_digest();
        if faults.diagnostics.is_empty() { Ok(folder) } else { Err(FolderError::Document(faults)) }
    }

    /// The workflows by their webhooks. Those of one name are verified in the same way.
    fn hooked(&self) -> Result<BTreeMap<String, Vec<String>>, FolderError> {
        let mut hooks: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let webhook = |offered: &'_ ServedLoop| Some(offered.program.as_flow()?.webhook.as_ref()?.name.clone());
        for (name, offered) in &self.loops {
            let Some(hook) = webhook(offered) else { continue };
            let workflows = hooks.entry(hook.clone()).or_default();
            let first = workflows.first().and_then(|first| self.loops.get(first));
            if first.is_some_and(|first| !is_verified_alike(first, offered)) {
                return Err(FolderError::Refused(format!(
                    "the workflows `{}` and `{name}` have the webhook `{hook}`, and say differently how it is verified; give one \
                     of them another `name` in `trigger.webhook`",
                    workflows.first().map_or("", String::as_str)
                )));
            }
            workflows.push(name.clone());
        }
        Ok(hooks)
    }

    fn texts_digest(&self) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |text: &str| {
            context.update(&u64::try_from(text.len()).unwrap_or(u64::MAX).to_le_bytes());
            context.update(text.as_bytes());
        };
        add(self.source.as_ref().map_or("", |source| &source.text));
        for (name, offered) in &self.loops {
            add(name);
            let mut texts: Vec<&str> = offered.program.sources.iter().map(|source| &*source.text).collect();
            texts.sort_unstable();
            texts.into_iter().for_each(&mut add);
        }
        context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn offer(&mut self, offered: ServedLoop) -> Result<(), FolderError> {
        let name = offered.program.name.clone();
        let file = |offered: &ServedLoop| offered.program.sources.first().map(|source| source.name.to_string());
        let new = file(&offered).unwrap_or_default();
        let is_flow = |offered: &ServedLoop| offered.kind == ServedKind::Workflow;
        let is_workflow = is_flow(&offered);
        match self.loops.insert(name.clone(), offered) {
            None => Ok(()),
            Some(other) => Err(FolderError::Refused(format!(
                "two {} have the name `{name}`: {} and {new}; give one of them another `name`",
                if is_workflow || is_flow(&other) { "loops or workflows" } else { "loops" },
                file(&other).unwrap_or_default()
            ))),
        }
    }

    /// The texts for a document that came with a request: the document and the actions of this folder.
    ///
    /// # Errors
    /// Why nothing in the folder can run.
    pub fn texts(&self, text: &str) -> Result<Texts, Vec<Diagnostic>> {
        let gathered = self.neighbours.gathered(Source::new(REQUEST, text), None)?;
        // Who sends a document may not see the tables of the folder's databases in what is reported of it.
        let outside = Arc::new(gathered.texts.outside.without_databases());
        Ok(Texts { outside, embedded: self.embedded.clone(), ..gathered.texts })
    }

    /// The program of a document that came with a request. Unless the project accepts all agent requests, the
    /// document can use nothing of the folder but the project's settings.
    ///
    /// # Errors
    /// All faults of the document.
    pub fn compile(&self, text: &str) -> Result<Loaded, DocumentError> {
        let mut texts = self.texts(text).map_err(|diagnostics| DocumentError { diagnostics, sources: Vec::new() })?;
        if !self.project.serve.agent_requests.is_all() {
            let locked = LockedTools::Withheld;
            texts = Texts { project: texts.project, outside: texts.outside, locked, ..Texts::new(texts.main) };
        }
        load::load_texts(&texts, self.root.clone())
    }
}

/// Whether the webhooks of both have the same secrets, of the same project, and signatures of one kind.
fn is_verified_alike(one: &ServedLoop, other: &ServedLoop) -> bool {
    let alike = one.program.as_flow().zip(other.program.as_flow()).is_some_and(|(one, other)| {
        one.webhook.as_ref().zip(other.webhook.as_ref()).is_some_and(|(one, other)| one.is_verified_as(other))
    });
    alike && one.root == other.root
}

fn settings(source: &Source) -> Result<Arc<Project>, FolderError> {
    let document = document::read_as(source, Some(DocumentKind::Project));
    let compiled = load::examine(&Texts::new(source.clone()), document);
    let faults: Vec<Diagnostic> = compiled.document.faults.iter().filter(|fault| fault.is_error()).cloned().collect();
    if !faults.is_empty() {
        return Err(FolderError::Document(DocumentError { diagnostics: faults, sources: vec![source.clone()] }));
    }
    project::settings(source).map(Arc::new).map_err(FolderError::Refused)
}

/// What a file is that can be served. Other files are ignored.
fn kind_of(path: &Path) -> Result<Option<ServedKind>, Box<Diagnostic>> {
    let source = match project::read(path) {
        Ok(source) => source,
        Err(fault) if fault.code == codes::FILE => return Err(fault),
        // Too long, or not text.
        Err(_) => return Ok(None),
    };
    if path.file_name().is_some_and(|name| name == Project::FILE) || !file_kind::may_be_ours(&source.text) {
        return Ok(None);
    }
    let document = document::read(&source);
    let foreach = document.value.pointer("/properties/mode").is_some_and(|mode| mode == "foreach");
    let kind = match document.kind {
        Some(DocumentKind::Loop) if foreach => ServedKind::Foreach,
        Some(DocumentKind::Loop) => ServedKind::Loop,
        Some(DocumentKind::Workflow) => ServedKind::Workflow,
        _ => return Ok(None),
    };
    Ok(Some(kind).filter(|_| file_kind::is_ours(&document)))
}

fn offered(path: &Path, kind: ServedKind, embedded: &[ToolSignature]) -> Result<ServedLoop, DocumentError> {
    let mut gathered =
        project::gather(path, &[]).map_err(|diagnostics| DocumentError { diagnostics, sources: Vec::new() })?;
    gathered.texts.embedded = embedded.to_vec();
    let source = gathered.texts.project.clone();
    let Loaded { program, root, .. } = load::load_texts(&gathered.texts, gathered.root)?;
    Ok(ServedLoop { kind, program, root, source })
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_a_request_is_not_held_against_the_databases_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let project = r#"{"datasources": {"shop": {"url": "sqlite:shop.db", "init": "shop.sql"}}}"#;
        std::fs::write(folder.path().join("loopctl.json"), project).unwrap();
        std::fs::write(folder.path().join("shop.sql"), "CREATE TABLE orders (id INTEGER);").unwrap();
        let served = Folder::read(folder.path()).unwrap();
        let action = r#"{"action_name": "find", "kind": "db", "description": "Finds it.", "datasource": "shop",
            "query": "SELECT secret FROM orders"}"#;
        let text =
            format!(r#"{{"objective": "x", "tools": [{{"type": "action", "name": "find"}}], "actions": [{action}]}}"#);
        let texts = served.texts(&text).unwrap();
        assert!(load::load_texts(&texts, served.root.clone()).is_ok());
        assert!(served.compile(&text).is_ok());
        // The same document of the folder itself is.
        let own = Texts {
            outside: Arc::clone(&served.neighbours.gathered(texts.main.clone(), None).unwrap().texts.outside),
            ..texts
        };
        assert!(load::load_texts(&own, served.root).is_err());
    }
}
