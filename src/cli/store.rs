//! Selects the store: the given one, the project's, or the one beside the document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};

use super::failure::CommandError;
use crate::diagnostic::Source;
use crate::drive::copy::{self, CopyFault};
use crate::drive::secret::Vault;
use crate::journal::admin::{self, StoreReport};
use crate::journal::{self, Journal, StoreError};
use crate::language::Project;
use crate::project::{self, ProjectFile};

/// Which store, for commands that look at runs.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// The store of the runs: sqlite:PATH, postgres://..., env:VAR or file:PATH. Default: the project's, else .loopctl/runs.db
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The run's document; loopctl then finds the store from the document's folder
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
}

/// A store's place.
#[derive(Debug, Clone)]
pub struct StorePlace {
    /// `memory`, `sqlite:PATH` or `postgres://...`; or `env:VAR` or `file:PATH`, which hold one of these.
    pub url: String,
    /// The folder that the path is relative to.
    pub base: PathBuf,
    /// The project file that was found on the way.
    pub project: Option<Source>,
}

impl StoreArgs {
    /// The place of the store.
    ///
    /// # Errors
    /// When the project file can't be read.
    pub fn place(&self) -> Result<StorePlace, CommandError> {
        if let Some(url) = self.store.as_deref().filter(|url| !journal::outlives_process(url)) {
            return Err(CommandError::usage_help(
                format!("`{url}` keeps no runs"),
                "name the store of the run: --store sqlite:PATH",
            ));
        }
        let folder = match &self.document {
            // Otherwise a typing mistake would show, or end, runs of another folder.
            Some(document) if !document.is_file() => {
                return Err(CommandError::usage_help(
                    format!("there is no document {}", document.display()),
                    "--document names a file; loopctl looks for the store beside it",
                ));
            }
            Some(document) => folder_of(document),
            None => PathBuf::from("."),
        };
        locate(self.store.as_deref(), &folder)
    }

    /// Opens the store, which must exist.
    ///
    /// # Errors
    /// When there is none, or it can't be opened.
    pub fn open(&self) -> Result<(Arc<dyn Journal>, StorePlace), CommandError> {
        let place = self.place()?;
        if !place.exists() {
            return Err(CommandError::usage_help(
                format!("there is no store {}", place.shown()),
                "go to the folder of the document, or name it: --document FILE or --store sqlite:PATH",
            ));
        }
        Ok((place.open()?, place))
    }
}

impl StorePlace {
    /// The store of a run of a loaded document: `root` is the project's folder, or else the document's.
    pub fn of_run(given: Option<&str>, project: &Project, root: &Path) -> Self {
        match given {
            Some(url) => Self { url: url.to_owned(), base: PathBuf::from("."), project: None },
            None => Self { url: project.store_url().to_owned(), base: root.to_owned(), project: None },
        }
    }

    /// Opens the store; creates it if it does not exist.
    ///
    /// # Errors
    /// When it can't be opened.
    pub fn open(&self) -> Result<Arc<dyn Journal>, CommandError> {
        Ok(journal::open_held(self.name()?.expose_secret(), self.holder(), &self.base)?)
    }

    /// The variable or the file, where one holds the name of the store: messages name it.
    fn holder(&self) -> Option<&str> {
        matches!(self.url.split_once(':'), Some(("env" | "file", _))).then_some(&self.url)
    }

    /// The name of the store, which a variable or a file may hold.
    fn name(&self) -> Result<SecretString, StoreError> {
        if self.holder().is_none() {
            return Ok(self.url.as_str().into());
        }
        let name = Vault::new(BTreeMap::new(), &self.base).read(&self.url);
        name.map_err(|reason| StoreError::Open { store: self.url.clone(), reason })
    }

    /// The statements that make the store.
    ///
    /// # Errors
    /// When its name is not valid.
    pub fn statements(&self) -> Result<String, StoreError> {
        admin::statements(self.name()?.expose_secret(), self.holder(), &self.base)
    }

    /// Looks at the store, and writes nothing.
    ///
    /// # Errors
    /// When it can't be reached.
    pub fn examine(&self) -> Result<StoreReport, StoreError> {
        admin::examine(self.name()?.expose_secret(), self.holder(), &self.base)
    }

    /// Refuses to copy a store that a process has open, before it is opened: that may make or migrate its tables.
    ///
    /// # Errors
    /// A sentence that says so, or the fault of the store.
    pub fn may_be_copied(&self) -> Result<(), CopyFault> {
        let living = admin::living(self.name()?.expose_secret(), self.holder(), &self.base)?;
        living.first().map_or(Ok(()), |name| Err(copy::in_use(name)))
    }

    /// Copies the store, which may be in use, to a new file.
    ///
    /// # Errors
    /// When the store is no file, the new file exists, or one of them fails.
    pub fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        admin::back_up(self.name()?.expose_secret(), self.holder(), &self.base, to)
    }

    /// How the space that deleted runs leave in the store is given back to the system, if it is not by itself.
    pub fn space_of_deleted(&self) -> Option<&'static str> {
        admin::give_back(self.name().ok()?.expose_secret(), &self.base)
    }

    /// Whether runs outlive the process.
    pub fn lasts(&self) -> bool {
        journal::outlives_process(&self.url)
    }

    /// The file, if the store is one.
    pub fn file(&self) -> Option<PathBuf> {
        journal::file(&self.url, &self.base)
    }

    /// The place as shown to users.
    pub fn shown(&self) -> String {
        let file = self.file().map(|file| tidy(&file).display().to_string());
        file.unwrap_or_else(|| journal::shown(&self.url, &self.base))
    }

    /// Whether it is the same store as another one: the same file, or else the same name.
    pub fn is(&self, other: &Self) -> bool {
        match (self.file(), other.file()) {
            (Some(one), Some(two)) => absolute(&one) == absolute(&two),
            _ => self.url == other.url,
        }
    }

    /// Whether it exists. An invalid name is left to the function that opens it.
    pub fn exists(&self) -> bool {
        self.file().is_none_or(|file| file.exists())
    }

    /// The folder from which documents were most likely named: the one that contains `.loopctl`.
    pub fn home(&self) -> Option<PathBuf> {
        let file = self.file()?;
        let folder = file.parent()?;
        Some(if folder.ends_with(".loopctl") { folder.parent()?.to_owned() } else { folder.to_owned() })
    }

    /// The `--store` for a command that is started in the current folder; none when it finds the store by
    /// itself.
    pub fn needed(&self) -> Option<String> {
        let found = locate(None, Path::new(".")).ok();
        let same = match (self.file(), found.and_then(|found| found.file())) {
            (Some(one), Some(other)) => absolute(&one) == absolute(&other),
            _ => false,
        };
        if self.file().is_none() {
            // Another store is found only if it is named again; `env:VAR` and `file:PATH` are named as they are.
            let found = locate(None, Path::new(".")).ok().map(|found| found.url);
            return (found.as_ref() != Some(&self.url)).then(|| self.shown());
        }
        (!same).then(|| match self.url.split_once(':') {
            // A place that is named in full is found from every folder.
            Some((kind, place)) if !Path::new(place).is_absolute() => format!("{kind}:{}", self.shown()),
            _ => self.url.clone(),
        })
    }
}

/// The store for a folder: the given one, or else that of the nearest project file above, or else the folder's
/// own.
fn locate(given: Option<&str>, folder: &Path) -> Result<StorePlace, CommandError> {
    let project = find_project(folder)?;
    if let Some(url) = given {
        let project = project.map(|(_, source, _)| source);
        return Ok(StorePlace { url: url.to_owned(), base: PathBuf::from("."), project });
    }
    Ok(match project {
        Some((base, source, project)) => {
            StorePlace { url: project.store_url().to_owned(), base, project: Some(source) }
        }
        None => StorePlace { url: Project::DEFAULT_STORE.to_owned(), base: folder.to_owned(), project: None },
    })
}

/// The nearest project file from the folder upwards, with its folder.
///
/// # Errors
/// When it can't be read, or is not valid.
pub fn find_project(folder: &Path) -> Result<Option<(PathBuf, Source, Project)>, CommandError> {
    let absolute = absolute(folder);
    let Some(file) = ProjectFile::find(&absolute) else { return Ok(None) };
    let source = file
        .read()
        .map_err(|fault| CommandError::usage(format!("{}: {}", tidy(&file.path).display(), fault.message)))?;
    let settings = project::settings(&source).map_err(CommandError::usage)?;
    let base = if file.folder == absolute { folder.to_owned() } else { file.folder };
    Ok(Some((base, source, settings)))
}

/// The folder of a document; the current one for stdin.
pub fn folder_of(document: &Path) -> PathBuf {
    match document.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // `absolute` keeps dots in the middle; the canonical name also resolves links, if it exists.
    absolute.canonicalize().unwrap_or(absolute)
}

/// The path without a leading `./`, and relative to the current folder if it is below it.
fn tidy(path: &Path) -> PathBuf {
    let bare = path.strip_prefix(".").unwrap_or(path);
    let here = std::env::current_dir().ok();
    match here.as_deref().and_then(|here| bare.strip_prefix(here).ok()) {
        // In the root folder, a path without its first `/` would look like one of another folder.
        Some(below) if !below.as_os_str().is_empty() && here.as_deref() != Some(Path::new("/")) => below.to_owned(),
        _ => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_store_wins_and_is_relative_to_the_current_folder() {
        let place = locate(Some("sqlite:x.db"), Path::new("some/folder")).unwrap();
        assert_eq!((place.url.as_str(), place.base.as_path()), ("sqlite:x.db", Path::new(".")));
    }

    #[test]
    fn the_project_above_says_where_and_its_folder_is_the_base() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(top.path().join(Project::FILE), r#"{"store": "sqlite:all.db"}"#).unwrap();
        let place = locate(None, &below).unwrap();
        assert_eq!(place.file().unwrap().canonicalize().ok(), None);
        assert_eq!(place.file().unwrap(), top.path().join("all.db"));
        assert!(place.project.is_some());
    }

    #[test]
    fn without_a_project_it_is_the_folders_own() {
        let top = tempfile::tempdir().unwrap();
        let place = locate(None, top.path()).unwrap();
        assert_eq!(place.file().unwrap(), top.path().join(".loopctl/runs.db"));
        assert_eq!(place.home().unwrap(), top.path());
        assert!(!place.exists() && place.lasts());
    }

    #[test]
    fn a_broken_project_file_is_reported() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join(Project::FILE), "{").unwrap();
        assert!(matches!(locate(None, top.path()), Err(CommandError::Usage { .. })));
    }

    #[test]
    fn a_store_elsewhere_must_be_named_in_commands() {
        let top = tempfile::tempdir().unwrap();
        let place = locate(None, top.path()).unwrap();
        assert_eq!(place.needed(), Some(format!("sqlite:{}", top.path().join(".loopctl/runs.db").display())));
    }
}
