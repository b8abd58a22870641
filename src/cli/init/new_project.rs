//! A project that is to be written.

use crate::cli::new_files::NewFile;
use crate::language::project::Provider;

/// The columns of JSON in a file.
pub(super) const JSON_COLUMNS: usize = 100;

/// A project that is to be written.
pub(super) struct NewProject {
    pub files: Vec<NewFile>,
    /// What some of the files are for.
    pub about: Vec<FileNote>,
    /// The commands that check, test and run it offline, without the name of the program.
    pub next: Vec<String>,
    /// What is still open.
    pub open: Option<OpenPart>,
    /// What makes it real, in a sentence.
    pub real: String,
}

/// What is still open in a project.
pub(super) struct OpenPart {
    pub sentence: String,
    /// A command that is to be filled in.
    pub command: Option<String>,
}

/// What a file is for.
pub(super) struct FileNote {
    pub path: String,
    pub about: &'static str,
}

/// A model, as a project file has it.
pub(super) struct RealModel {
    pub id: String,
    pub provider: Provider,
}

impl RealModel {
    /// The name of its provider.
    pub(super) fn provider_name(&self) -> &'static str {
        self.provider.facts().name
    }

    /// The variable with its key.
    pub(super) fn key_variable(&self) -> &'static str {
        self.provider.facts().server.as_ref().map_or("OPENAI_API_KEY", |server| server.key_variable)
    }
}
