//! What runs need from their surroundings, and how a caller watches and resumes them.

use std::sync::Arc;

use super::model::Models;
use super::secret::Vault;
use super::stop::Stop;
use super::subrun_budget::SubrunBudgets;
use super::texts::SharedTexts;
use super::tool::Toolbox;
use crate::engine::event::{Decided, Decision};
use crate::engine::notice::Listener;
use crate::journal::Journal;

/// Runs loops. Cheap to clone; all clones share the store, the connections and the secrets.
#[derive(Clone)]
pub struct Engine {
    pub(super) world: Arc<World>,
}

/// What all runs of an engine share.
pub(super) struct World {
    pub journal: Arc<dyn Journal>,
    pub models: Arc<Models>,
    pub toolbox: Toolbox,
    pub vault: Arc<Vault>,
    pub texts: SharedTexts,
    pub subrun_budgets: SubrunBudgets,
}

/// The listener of a run, and its stop.
#[derive(Clone, Default)]
pub struct Watch<'a> {
    /// Receives the notices of the run.
    pub listener: Option<&'a dyn Listener>,
    /// Stops the run when it is asked to.
    pub stop: Option<Stop>,
}

/// How to resume a run.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// What a human decided; `None` resumes a run that was cut off.
    pub decided: Option<Decided>,
    /// Whether the run may continue with a document that has changed since.
    pub new_document: bool,
}

impl Resume {
    /// Resumes with a decision about the pause that the run is in.
    pub fn with(decision: Decision) -> Self {
        Self { decided: Some(Decided::from(decision)), new_document: false }
    }
}
