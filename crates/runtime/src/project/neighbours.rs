//! The neighbours of documents: the project file above them, and the files with their actions. The documents of
//! a folder share them, and every file is read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::named_files::embedded;
use super::project_file::{ProjectFile, above};
use super::{Gathered, at, outside, read, within};
use loopctl_lang::compile::embedded_tools::EmbeddedFile;
use loopctl_lang::compile::locked_tools::{LockFile, LockedTools};
use loopctl_lang::compile::{OutsideFiles, Readings, Texts};
use loopctl_lang::diagnostic::{Diagnostic, Remedy, Source};
use loopctl_lang::language::mcp::McpLock;

/// The most files in which names are looked up.
pub const MAX_FILES: usize = 2_000;
/// The most bytes of all these files: 64 MiB.
pub const MAX_TOTAL: usize = 64 << 20;

/// The neighbours of the documents in one folder.
#[derive(Debug)]
pub struct Neighbours {
    root: PathBuf,
    project: Option<Source>,
    given: Vec<Source>,
    /// With their real paths.
    actions: Vec<(PathBuf, Source)>,
    /// With their real paths; the document itself may be among them.
    loops: Vec<(PathBuf, Source)>,
    workflows: Vec<(PathBuf, Source)>,
    /// The parsed files, shared by the documents of the folder.
    readings: Readings,
    unread: Vec<Diagnostic>,
    passed_over: Option<Arc<str>>,
    locked: LockedTools,
    embedded: Option<Arc<EmbeddedFile>>,
    outside: Arc<OutsideFiles>,
    faults: Vec<Diagnostic>,
}

impl Neighbours {
    /// Why nothing in the folder can run.
    pub fn faults(&self) -> &[Diagnostic] {
        &self.faults
    }

    /// Whether the project names the file at this path, without links, as `embedded`.
    pub fn names_tools(&self, real: Option<&Path>) -> bool {
        let source = self.embedded.as_ref().and_then(|file| file.source.as_ref());
        let named = source.and_then(|source| Path::new(&*source.name).canonicalize().ok());
        named.is_some() && named.as_deref() == real
    }

    /// A document of the folder with everything that belongs to it; `real` is its path without links.
    ///
    /// # Errors
    /// One diagnostic for each file that had to be read and could not be.
    pub fn gathered(&self, main: Source, real: Option<&Path>) -> Result<Gathered, Vec<Diagnostic>> {
        if !self.faults.is_empty() {
            return Err(self.faults.clone());
        }
        let mut texts = Texts::new(main);
        texts.project = self.project.clone();
        texts.extra_actions = self.given.clone();
        let others = self.actions.iter().filter(|(path, _)| real != Some(path));
        texts.actions = others.map(|(_, source)| source.clone()).collect();
        // If the document is among those that can be called, it keeps the name that it has there.
        let named = |(path, source): &(PathBuf, Source)| {
            if real == Some(path) { texts.main.clone() } else { source.clone() }
        };
        let (loops, workflows) = (&self.loops, &self.workflows);
        (texts.loops, texts.workflows) = (loops.iter().map(named).collect(), workflows.iter().map(named).collect());
        texts.readings = self.readings.clone();
        texts.unread = self.unread.clone();
        texts.passed_over = self.passed_over.clone();
        texts.locked = self.locked.clone();
        texts.embedded_file = self.embedded.clone();
        texts.outside = Arc::clone(&self.outside);
        Ok(Gathered { texts, root: self.root.clone() })
    }
}

/// The files that documents share, each read once and shown by one name.
#[derive(Debug, Default)]
pub struct Library {
    given: Vec<PathBuf>,
    /// The shown name of a file, by its path without links.
    spelled: BTreeMap<PathBuf, PathBuf>,
    texts: BTreeMap<PathBuf, Result<Source, Box<Diagnostic>>>,
    folders: BTreeMap<PathBuf, Arc<Neighbours>>,
    readings: Readings,
}

impl Library {
    /// A library with the files that the user named with `--actions`.
    pub fn new(given: &[PathBuf]) -> Self {
        Self { given: given.to_vec(), ..Self::default() }
    }

    /// Sets the shown name of a file; `real` is its path without links.
    pub fn spell(&mut self, real: &Path, path: &Path) {
        self.spelled.entry(real.to_owned()).or_insert_with(|| path.to_owned());
    }

    /// Replaces the content of a file by a text.
    pub fn keep(&mut self, real: &Path, source: Source) {
        self.texts.insert(real.to_owned(), Ok(source));
    }

    /// The neighbours of the documents in a folder.
    pub fn neighbours(&mut self, folder: &Path) -> Arc<Neighbours> {
        if let Some(neighbours) = self.folders.get(folder) {
            return Arc::clone(neighbours);
        }
        let neighbours = Arc::new(self.read_neighbours(folder));
        self.folders.insert(folder.to_owned(), Arc::clone(&neighbours));
        neighbours
    }

    fn read_neighbours(&mut self, folder: &Path) -> Neighbours {
        let mut faults = Vec::new();
        let mut known = BTreeSet::new();
        let project = ProjectFile::find(folder);
        // Documents in a folder `loops` or `workflows` belong to the folder above it.
        let own = if is_of_calls(folder) { above(folder) } else { folder.to_owned() };
        let root = project.as_ref().map_or(own, |file| file.folder.clone());
        let project = project.and_then(|file| {
            let read = file.inside().and_then(|()| self.read(&file.path));
            read.map_err(|fault| faults.push(*fault)).ok()
        });
        let mut given = Vec::new();
        for file in self.given.clone() {
            known.extend(file.canonicalize().ok());
            match self.read(&file) {
                Ok(source) => given.push(source),
                Err(fault) => faults.push(*fault),
            }
        }
        let mut search = NeighbourSearch {
            library: self,
            root: root.canonicalize().ok(),
            known,
            total: 0,
            found: vec![],
            unread: vec![],
        };
        let folders = if faults.is_empty() { folders(folder, &root) } else { Vec::new() };
        let mut all = |name: &str| {
            for folder in &folders {
                if let Err(fault) = search.folder(&within(folder, name)) {
                    faults.push(*fault);
                    break;
                }
            }
            std::mem::take(&mut search.found)
        };
        let (actions, loops, workflows) = (all("actions"), all("loops"), all("workflows"));
        let passed_over = actions_apart(&folders, &search.known);
        let (unread, readings) = (search.unread, self.readings.clone());
        let outside = Arc::new(project.as_ref().map(|project| outside(project, &root)).unwrap_or_default());
        let locked = if project.is_some() { self.locked(&root) } else { LockedTools::Absent };
        let embedded = project.as_ref().and_then(|project| embedded(project, &root));
        Neighbours {
            root,
            project,
            given,
            actions,
            loops,
            workflows,
            readings,
            unread,
            passed_over,
            locked,
            embedded,
            outside,
            faults,
        }
    }

    /// The lock file beside the project file.
    fn locked(&mut self, root: &Path) -> LockedTools {
        let path = within(root, McpLock::FILE);
        if path.symlink_metadata().is_err() {
            return LockedTools::Absent;
        }
        let file = ProjectFile { path, folder: root.to_owned() };
        match file.inside().and_then(|()| self.read(&file.path)) {
            Ok(source) => LockedTools::File(Arc::new(LockFile::new(source))),
            Err(fault) => LockedTools::Unread(fault),
        }
    }

    fn read(&mut self, file: &Path) -> Result<Source, Box<Diagnostic>> {
        let Ok(real) = file.canonicalize() else { return read(file) };
        if let Some(text) = self.texts.get(&real) {
            return text.clone();
        }
        let text = read(self.spelled.get(&real).map_or(file, PathBuf::as_path));
        self.texts.insert(real, text.clone());
        text
    }
}

/// The document's folder, and those above it up to the project's.
fn folders(folder: &Path, root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let (Ok(mut at), Ok(root)) = (folder.canonicalize(), root.canonicalize()) else { return folders };
    let mut shown = folder.to_owned();
    while at != root {
        let Some(parent) = at.parent() else { break };
        at = parent.to_owned();
        shown = above(&shown);
        folders.push(shown.clone());
    }
    folders
}

/// A file `actions.json` that people write for a folder `actions`, unless it was taken as another.
fn actions_apart(folders: &[PathBuf], known: &BTreeSet<PathBuf>) -> Option<Arc<str>> {
    let files = folders.iter().map(|folder| within(folder, "actions.json"));
    let mut apart = files.filter(|file| file.canonicalize().is_ok_and(|real| real.is_file() && !known.contains(&real)));
    apart.next().map(|file| super::name_of(&file).into())
}

/// Whether a folder is one of those in which loops and workflows are looked up that others call.
fn is_of_calls(folder: &Path) -> bool {
    let is = |real: PathBuf| real.file_name().is_some_and(|name| name == "loops" || name == "workflows");
    folder.canonicalize().is_ok_and(is)
}

struct NeighbourSearch<'a> {
    library: &'a mut Library,
    root: Option<PathBuf>,
    /// The files that were taken already, by their paths without links.
    known: BTreeSet<PathBuf>,
    total: usize,
    found: Vec<(PathBuf, Source)>,
    unread: Vec<Diagnostic>,
}

impl NeighbourSearch<'_> {
    /// Takes the JSON files of a folder, in the order of their names.
    fn folder(&mut self, folder: &Path) -> Result<(), Box<Diagnostic>> {
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            let file = entry.path();
            if file.extension().is_some_and(|ending| ending == "json") {
                files.push(file);
            }
            if files.len() + self.found.len() > MAX_FILES {
                let message = format!("there are more than {MAX_FILES} files that names are looked up in");
                return Err(Box::new(at(folder, message).help(Remedy::NameNeededActions)));
            }
        }
        files.sort();
        for file in files {
            self.file(&file)?;
        }
        Ok(())
    }

    fn file(&mut self, file: &Path) -> Result<(), Box<Diagnostic>> {
        let Ok(real) = file.canonicalize() else { return Ok(()) };
        let inside = self.root.as_ref().is_some_and(|root| real.starts_with(root));
        if !inside {
            let message = "the file lies outside of the project's folder: a link leads there";
            self.unread.push(at(file, message).help(Remedy::NameFile));
            return Ok(());
        }
        if !self.known.insert(real.clone()) {
            return Ok(());
        }
        match self.library.read(file) {
            Ok(source) => {
                self.total += source.text.len();
                self.found.push((real, source));
            }
            Err(fault) => self.unread.push(*fault),
        }
        if self.total > MAX_TOTAL {
            let message = format!("the files that names are looked up in have more than {} MiB", MAX_TOTAL >> 20);
            return Err(Box::new(at(file, message).help(Remedy::NameNeededActions)));
        }
        Ok(())
    }
}
