//! Lowering: compiles documents to a [`Program`], best effort, and collects all faults. The caller passes the
//! texts; nothing here opens a file, knows a rule of `check`, or knows the engine.

pub(crate) mod catalog;
mod context;
mod declare;
pub mod documents;
pub(crate) mod effort;
pub mod embedded_tools;
pub mod flow;
mod foreign_path;
pub mod layout;
mod link;
mod load;
pub mod locked_tools;
pub mod names;
mod notify;
pub mod openapi;
mod outside_files;
mod prompt;
mod react;
mod review;
mod script_names;
mod standalone_document;
pub(crate) mod steps;
pub mod tool;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_names;

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Source};
use crate::language::Project;
use crate::program::Program;
use crate::syntax::document::Document;

pub(crate) use documents::is_flag_column;
pub(crate) use documents::meant as document_meant;
pub use effort::Effort;
use embedded_tools::EmbeddedFile;
pub use embedded_tools::ToolSignature;
pub use link::MAX_LEVELS;
pub use load::Readings;
pub use load::{compile, compile_read, once};
use locked_tools::LockedTools;
pub use notify::question_tool;
pub use outside_files::{
    DatabaseProbe, DatabaseState, InitFault, OutsideFiles, QueryFault, QueryFaultKind, QueryParameter, ValueKind,
};
pub(crate) use prompt::keys_of_step;
pub(crate) use review::known_part;
pub use standalone_document::{Declared, alone};

/// The texts that a loop is compiled from.
#[derive(Debug, Clone)]
pub struct Texts {
    /// The document.
    pub main: Source,
    /// The project file of its folder.
    pub project: Option<Source>,
    /// The files beside the document that may hold its actions, the nearest first.
    pub actions: Vec<Source>,
    /// The files beside the document that hold loops which it may call, the nearest first. The
    /// document itself is among them when it is one of these files.
    pub loops: Vec<Source>,
    /// The files that the user named with `--actions`.
    pub extra_actions: Vec<Source>,
    /// The files beside the document that hold workflows, the nearest first.
    pub workflows: Vec<Source>,
    /// The tools of the program around the engine.
    pub embedded: Vec<ToolSignature>,
    /// The file that says which these are, where there is no such program.
    pub embedded_file: Option<Arc<EmbeddedFile>>,
    /// The keys of the secrets that the program around the engine gives: `orgconfig` of the project may lack them.
    pub secrets: Vec<String>,
    /// The tools of MCP servers.
    pub locked: LockedTools,
    /// Why files beside the document could not be read: reported when an action is not found.
    pub unread: Vec<Diagnostic>,
    /// A file beside the document that is named like its actions and is not read: its name is shown when an action is not
    /// found.
    pub passed_over: Option<Arc<str>>,
    /// The files that the project file names and that are no documents.
    pub outside: Arc<OutsideFiles>,
    /// The parsed files beside the document, shared with its neighbours.
    pub readings: Readings,
    /// The address of the step of the document that is meant, for the run of a step.
    pub step: Option<String>,
}

impl Texts {
    /// A document without others beside it.
    pub fn new(main: Source) -> Self {
        Self {
            main,
            project: None,
            actions: Vec::new(),
            loops: Vec::new(),
            extra_actions: Vec::new(),
            workflows: Vec::new(),
            embedded: Vec::new(),
            secrets: Vec::new(),
            embedded_file: None,
            locked: LockedTools::default(),
            unread: Vec::new(),
            passed_over: None,
            outside: Arc::default(),
            readings: Readings::default(),
            step: None,
        }
    }
}

/// The outcome of compiling.
#[derive(Debug)]
pub struct Compiled {
    /// The program, if there are no errors.
    pub program: Option<Arc<Program>>,
    /// The loop as far as it can be compiled, if there are errors: what has one is left out. It is for judging what stands
    /// beside it, and is never run.
    pub partial: Option<Arc<Program>>,
    /// All faults, the document's own first; within a file in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The parsed document, with the position of everything in it.
    pub document: Document,
    /// The parsed project file; none when there is none.
    pub project: Option<Document>,
    /// The settings of the project file: if it has errors, those that can be read; the defaults when there is no file.
    pub settings: Option<Arc<Project>>,
    /// The documents in which actions were looked up.
    pub(crate) shelf: Arc<catalog::Shelf>,
    /// Its steps: none in a loop document.
    pub(crate) steps: steps::Steps,
    /// The work that was done for it.
    pub effort: Effort,
    /// The loops that it calls, directly or indirectly: each once, with the texts that it was compiled from.
    /// Their faults are in `diagnostics`.
    pub called: Vec<(Texts, Compiled)>,
}

impl Compiled {
    /// The loop that the step at an address is. It may be sound where other steps are not.
    pub fn step(&self, address: &str) -> Option<Arc<Program>> {
        let properties = steps::properties_at(&self.document, address)?;
        let objective = format!("{properties}/objective");
        let inner = self.steps.loops.iter().find(|inner| inner.layout.pointer("objective") == objective)?;
        inner.program.clone()
    }

    /// The loops that it is made of, as far as they can be compiled: for judging what stands beside it.
    pub fn loops(&self) -> impl Iterator<Item = &Arc<Program>> {
        let whole = self.program.as_ref().or(self.partial.as_ref());
        // Those of a workflow that is whole are in it.
        let steps = self.steps.loops.iter().filter(|_| self.program.is_none());
        whole.into_iter().chain(steps.filter_map(|inner| inner.program.as_ref()))
    }

    /// Whether there is an error that keeps the loop from running.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
