//! What runs need from their surroundings, and how a caller watches and resumes them.

use std::path::PathBuf;
use std::sync::Arc;

use super::answer_hint::AnswerHints;
use super::gate::CallGates;
use super::given_parts::GivenParts;
use super::handled_runs::HandledRuns;
use super::inbox::DecisionInboxes;
use super::launcher::{Launcher, SpawnedRuns};
use super::model::Models;
use super::model_waits::ModelWaits;
use super::pending_model_call::Deaths;
use super::run_meter::{RunMeters, TraceContext};
use super::secret::Vault;
use super::stop::Stop;
use super::subrun_budget::SubrunBudgets;
use super::texts::SharedTexts;
use super::tool::Toolbox;
use crate::journal::{Journal, RunSummary};
use loopctl_engine::event::{Decided, Decision, LimitsRaised, RaisedLimits, Retried};
use loopctl_engine::notice::Listener;

/// Runs loops. Cheap to clone; all clones share the store, the connections and the secrets.
#[derive(Clone)]
pub struct Engine {
    pub(super) world: Arc<World>,
}

impl Engine {
    /// The runs that handles drive.
    pub(crate) fn driven(&self) -> &Arc<HandledRuns> {
        &self.world.given.driven
    }
}

/// What all runs of an engine share.
pub(super) struct World {
    pub given: GivenParts,
    pub journal: Arc<dyn Journal>,
    pub models: Arc<Models>,
    pub toolbox: Toolbox,
    pub vault: Arc<Vault>,
    pub texts: SharedTexts,
    pub subrun_budgets: SubrunBudgets,
    /// Of the runs that are driven here and have steps under way.
    pub inboxes: DecisionInboxes,
    /// Of the runs whose models failed and are asked again.
    pub model_waits: ModelWaits,
    /// Where calls wait for their turn.
    pub gates: Arc<CallGates>,
    /// Whether the project limits calls of tools.
    pub limits_calls: bool,
    /// What counts what happens in runs; none where nobody asks for it.
    pub meters: Option<Arc<dyn RunMeters>>,
    /// The folder of the project.
    pub root: PathBuf,
    /// Whether a script takes the place of all models.
    pub is_scripted: bool,
    pub launcher: Arc<dyn Launcher>,
    /// The runs that the default launcher drives.
    pub spawned: Arc<SpawnedRuns>,
    pub deaths: Deaths,
    /// Says how questions that are posted are answered; none where nothing does.
    pub hints: Option<Arc<dyn AnswerHints>>,
}

impl World {
    /// The place of a call in the trace of its run.
    pub fn trace_context(&self, run_id: &str, at: &str) -> Option<TraceContext> {
        self.meters.as_ref()?.trace_context(run_id, at)
    }
}

/// The listener of a run, and its stop.
#[derive(Clone, Default)]
pub struct Watch<'a> {
    /// Receives the notices of the run.
    pub listener: Option<&'a dyn Listener>,
    /// Stops the run when it is asked to.
    pub stop: Option<Stop>,
}

impl Watch<'_> {
    /// Says that what the run is resumed with is durable.
    pub(super) fn accepted(&self) {
        if let Some(listener) = self.listener {
            listener.on_accepted();
        }
    }
}

/// How to resume a run.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// What a human decided; `None` resumes a run that was cut off.
    pub decided: Option<Decided>,
    /// Whether the run may continue with a document that has changed since.
    pub new_document: bool,
    /// Asks the model again that a run failed because of, or waits for.
    pub retried: Option<Retried>,
    /// Raises limits. A run that ended by one of them continues.
    pub raised: Option<LimitsRaised>,
    /// Whether a run continues although the steps of its `on_failure` have run.
    pub after_on_failure: bool,
    /// The hash of the answer token that the decision uses up: it is refused when the token was used.
    pub answer_token: Option<String>,
    /// Whether a model that can't be reached rests where something else of the run is due: it is asked at its own time.
    pub models_rest: bool,
}

impl Resume {
    /// Resumes with a decision about the pause that the run is in.
    pub fn with(decision: Decision) -> Self {
        Self { decided: Some(Decided::from(decision)), ..Self::default() }
    }

    /// Retries a run that failed because its model could not be reached.
    pub fn retry() -> Self {
        Self { retried: Some(Retried::default()), ..Self::default() }
    }

    /// Raises limits.
    pub fn raise(limits: RaisedLimits) -> Self {
        Self { raised: Some(LimitsRaised { limits, ..LimitsRaised::default() }), ..Self::default() }
    }

    /// The same, by somebody of this name, for the record.
    #[must_use]
    pub fn by(mut self, name: &str) -> Self {
        let by = || Some(name.to_owned());
        self.decided.iter_mut().for_each(|decided| decided.by = by());
        self.retried.iter_mut().for_each(|retried| retried.by = by());
        self.raised.iter_mut().for_each(|raised| raised.by = by());
        self
    }

    /// The same for this run, which knows who started it: a decision has all names of who decides.
    #[must_use]
    pub fn of_run(self, run: &RunSummary) -> Self {
        let decided = self.decided.map(|decided| decided.known_as(run.token.as_deref(), run.callback.is_some()));
        Self { decided, ..self }
    }

    /// Whether nobody decided anything: a driver takes the run up.
    pub(super) fn is_plain(&self) -> bool {
        self.decided.is_none() && !self.reopens() && !self.new_document
    }

    /// Whether it is a decision and nothing else: a driver in another process can take it.
    pub fn is_decision_alone(&self) -> bool {
        self.decided.is_some() && !self.reopens() && !self.new_document
    }

    /// Whether what failed is done again: a run that continues by its new document without a retry does nothing again.
    pub(super) fn does_again(&self) -> bool {
        let is_retry = self.retried.as_ref().is_some_and(|retried| !retried.anew || retried.failed.is_some());
        is_retry || self.raised.is_some()
    }

    /// Whether a run that has ended is to continue.
    pub(super) fn reopens(&self) -> bool {
        self.retried.is_some() || self.raised.is_some()
    }
}
