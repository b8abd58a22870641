//! Why a run can't be driven: faults of the caller and of the machine, never of the run.

use super::missing_requirement::{Missing, MissingRequirement, sentence};
use crate::journal::StoreError;
use loopctl_engine::step::Refused;
use loopctl_lang::diagnostic::{Diagnostic, Remedy};

/// The code of [`Fault::Busy`].
pub const BUSY: &str = "busy";

/// Why a run was not driven, or not to its end.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The input does not fit the document, or the document can't be run here.
    #[error("{}", first(.0))]
    Diagnostics(Vec<Diagnostic>),
    /// Something that the run needs is missing: a model's key, a secret, a script's file.
    #[error("{}", sentence(.0))]
    Missing(Vec<MissingRequirement>),
    /// The store failed before the run did anything.
    #[error(transparent)]
    Store(StoreError),
    /// The store failed during the run; what was acknowledged is there.
    #[error("the run stopped: {0}; it can be resumed")]
    Cut(StoreError),
    /// The request does not fit the status of the run.
    #[error("{0}")]
    Refused(Refused),
    /// A step of the run is under way, and what the request is about is known when it waits again.
    #[error("{0}")]
    Busy(Refused),
    /// No model is named.
    #[error("no model is named: give \"model\" in the loop or in loopctl.json")]
    NoModel,
    /// The run was started with a script, and is to continue without one.
    #[error(
        "the run was started with a script, which takes the place of its models and tools, and there is none now; without \
         it, {0}"
    )]
    NoScript(String),
    /// What is decided was shown under another document.
    #[error("the document has changed since the call was shown: look at it first")]
    Unseen,
    /// Steps of `on_failure` have run, and the run is to continue where it failed.
    #[error(
        "the steps of `on_failure` have run: what they took back is not done again, and they run again if the run fails again"
    )]
    FailureHandled,
    /// The run was started with another document.
    #[error("{file} has changed since the run began: it continues with the new text, or with the recorded one")]
    Changed {
        /// The file.
        file: String,
    },
    /// Another run has this id.
    #[error("there is a run {0} already, of another document or input; take another id")]
    Conflict(String),
    /// The run would have to wait for another one of its document, and is refused instead.
    #[error(
        "run {by} holds the place that this one needs: its `concurrency` lets no more run at a time for the same key; start it again when that run has ended"
    )]
    LineFull {
        /// The first run that it would wait for.
        by: String,
    },
    /// The previous run that a new one names does not exist, or belongs to another organisation.
    #[error("there is no run {0} for this one to read: an earlier run is one of the same store")]
    NoPrevious(String),
    /// The events of the journal do not fit together.
    #[error("the journal of run {run} can't be read: {reason}")]
    Journal {
        /// The run.
        run: String,
        /// Why.
        reason: String,
    },
}

fn first(diagnostics: &[Diagnostic]) -> String {
    diagnostics.first().map_or_else(|| "the document can't be run".to_owned(), |first| first.message.clone())
}

impl Fault {
    /// The request does not fit, for the reason that is said.
    pub(crate) fn refused(why: impl Into<String>) -> Self {
        Self::Refused(Refused::Unfit(why.into()))
    }

    /// Something is missing, for the reason that is said.
    pub(super) fn missing(what: Missing, why: impl Into<String>) -> Self {
        Self::Missing(vec![MissingRequirement { pointer: what.pointer(), what, why: why.into() }])
    }

    /// The stable code of the fault.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Diagnostics(diagnostics) => diagnostics.first().map_or("document", |first| first.code),
            Self::Missing(_) | Self::NoModel | Self::NoScript(_) => "missing",
            Self::Store(fault) | Self::Cut(fault) => fault.code(),
            Self::Refused(_) | Self::Unseen => "refused",
            Self::Busy(_) => BUSY,
            Self::FailureHandled => "on_failure_ran",
            Self::Changed { .. } => "document_changed",
            Self::Conflict(_) => "run_id_conflict",
            Self::LineFull { .. } => "concurrency_full",
            Self::NoPrevious(_) => "no_previous_run",
            Self::Journal { .. } => "journal_unreadable",
        }
    }
}

impl Fault {
    /// What helps against it, if its text does not say so.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::NoModel => Some(Remedy::NameModel),
            Self::NoScript(_) => Some(Remedy::GiveScriptAgain),
            Self::Unseen => Some(Remedy::LookAtNewDocument),
            Self::Changed { .. } => Some(Remedy::ChooseDocument),
            Self::FailureHandled => Some(Remedy::ContinueAfterFailureSteps),
            Self::Diagnostics(_)
            | Self::Missing(_)
            | Self::Store(_)
            | Self::Cut(_)
            | Self::Refused(_)
            | Self::Busy(_)
            | Self::Conflict(_)
            | Self::LineFull { .. }
            | Self::NoPrevious(_)
            | Self::Journal { .. } => None,
        }
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Busy(_) => Self::Busy(refused),
            refused => Self::Refused(refused),
        }
    }
}
