//! Why a command failed, and its report: what is wrong, where, and what to do.

use super::exit::Exit;
use super::remedies;
use super::report;
use super::surface::{OutputError, Surface};
use crate::diagnostic::{Diagnostic, Source};
use crate::drive::fault::Fault;
use crate::journal::StoreError;
use crate::project::load::DocumentError;
use crate::trace::{Tone, escape};

/// Why a command failed.
#[derive(Debug)]
pub enum CommandError {
    /// The arguments are not valid, or name something that does not exist.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        help: Option<String>,
    },
    /// The document can't be run.
    Document(DocumentError),
    /// The engine refused, or the store failed.
    Fault {
        /// What happened.
        fault: Fault,
        /// The texts that its diagnostics point into.
        sources: Vec<Source>,
        /// The command that resumes the run, if the run had started; of a decision that was refused, what decides.
        resume: Option<String>,
    },
    /// The store can't be used.
    Store(StoreError),
    /// The output can't be written.
    Output(std::io::Error),
}

impl CommandError {
    /// Wrong arguments.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: None }
    }

    /// Wrong arguments, with what to do.
    pub fn usage_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), help: Some(help.into()) }
    }

    /// A text that can't be read: its faults, each with its place.
    pub fn text(source: Source, diagnostics: Vec<Diagnostic>) -> Self {
        Self::Document(DocumentError { diagnostics, sources: vec![source] })
    }

    /// A file that can't be read or written.
    pub fn file(verb: &str, file: &std::path::Path, error: &std::io::Error) -> Self {
        Self::usage(format!("{} can't be {verb}: {error}", file.display()))
    }

    /// The failure with the name of the store in which the run was not found.
    #[must_use]
    pub fn in_store(self, store: &str) -> Self {
        match self {
            Self::Fault { fault: Fault::Store(StoreError::NoSuchRun(run)), .. } => Self::usage_help(
                format!("there is no run {run} in {store}"),
                "`loopctl runs` lists the runs of a store; --store or --document selects another store",
            ),
            other => other,
        }
    }

    /// The exit code: a failure before the first call leaves no run behind; after it, the run has failed for
    /// now. A store that is away may be back for the next call, whether a run had started or not.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Store(fault) | Self::Fault { fault: Fault::Store(fault) | Fault::Cut(fault), .. }
                if fault.is_away() =>
            {
                Exit::StoreAway
            }
            Self::Output(_) | Self::Fault { fault: Fault::Cut(_), .. } => Exit::Failed,
            Self::Fault { fault: Fault::Store(_), resume: Some(_), .. } => Exit::Failed,
            Self::Usage { .. } | Self::Document(_) | Self::Fault { .. } | Self::Store(_) => Exit::NoRun,
        }
    }

    /// What is shown on stderr.
    pub fn shown(&self, surface: &Surface) -> String {
        // They repeat arguments and file names: no line of these may look like our own.
        let error = |message: &str| surface.line(Tone::Bad, "error", &escape::line(message));
        // What is refused is often a list: its further lines are indented, so that none of them looks like our own.
        let refused = |message: &str| {
            let lines: Vec<_> = message.lines().map(escape::line).collect();
            surface.line(Tone::Bad, "error", &lines.join("\n  "))
        };
        let help = |message: &str| surface.line(Tone::Accent, "help", &escape::line(message));
        match self {
            Self::Usage { message, help: None } => error(message),
            Self::Usage { message, help: Some(more) } => error(message) + &help(more),
            Self::Document(fault) => report::human(&fault.diagnostics, &fault.sources, &surface.err),
            Self::Fault { fault: Fault::Diagnostics(diagnostics), sources, .. } => {
                report::human(diagnostics, sources, &surface.err)
            }
            Self::Fault { fault, resume, .. } => {
                let more = match (fault, resume) {
                    (Fault::Cut(_) | Fault::Store(_), Some(command)) => {
                        Some(format!("finished steps are kept; resume with: {command}"))
                    }
                    (Fault::Store(fault), None) => store_help(fault).map(str::to_owned),
                    (Fault::Refused(_), Some(commands)) => Some(commands.clone()),
                    _ => fault.remedy().as_ref().map(remedies::words),
                };
                let error: &dyn Fn(&str) -> String = if matches!(fault, Fault::Refused(_)) { &refused } else { &error };
                error(&fault.to_string()) + &more.map(|more| help(&more)).unwrap_or_default()
            }
            Self::Store(fault) => error(&fault.to_string()) + &store_help(fault).map(help).unwrap_or_default(),
            Self::Output(fault) => error(&format!("the output can't be written: {fault}")),
        }
    }
}

/// What to do about a store's fault.
fn store_help(fault: &StoreError) -> Option<&'static str> {
    matches!(fault, StoreError::ReadOnly(_)).then_some(
        "its file and its folder must be writable for you, even to list runs; --store names another store, or a copy",
    )
}

impl From<OutputError> for CommandError {
    fn from(error: OutputError) -> Self {
        Self::Output(error.0)
    }
}

impl From<StoreError> for CommandError {
    fn from(fault: StoreError) -> Self {
        Self::Store(fault)
    }
}

impl From<Fault> for CommandError {
    fn from(fault: Fault) -> Self {
        Self::Fault { fault, sources: Vec::new(), resume: None }
    }
}

impl From<DocumentError> for CommandError {
    fn from(fault: DocumentError) -> Self {
        Self::Document(fault)
    }
}
