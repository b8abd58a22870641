//! What a reader of events sees of the steps of a workflow: not each of thousands that begin and end, but how they are now.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::problem::ProblemDetails;
use crate::engine::flow::NoSuchStep;
use crate::engine::flow::record::StepStatus;
use crate::engine::flow::view::{ItemWindow, StepLog, StepView};
use crate::engine::outcome::Status;
use crate::engine::state::State;
use crate::journal::RunSummary;
use crate::program::Program;
use crate::trace::events::Last;
use crate::trace::steps::shown_view;
use crate::trace::{Redaction, escape};

/// The most items in one answer.
const MAX_ITEMS: usize = 1_000;
/// How many items there are in an answer when nothing is said.
const DEFAULT_ITEMS: usize = 200;
/// The least time between two views: a loop may end thousands of items in a second.
const MIN_VIEW_INTERVAL: Duration = Duration::from_millis(250);

/// Which steps of a workflow are shown.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StepsQuery {
    /// Of a workflow: the address of a step or of an item, like `review.57.1`; empty for its steps. Of a loop: an iteration, from 1,
    /// which streams of events ignore.
    pub at: Option<String>,
    /// At the address of a loop: the first item, from 0.
    pub from: u32,
    /// At the address of a loop: the most items, 1 to 1,000; 200 by default.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: Option<usize>,
    /// At the address of a loop: only the items of this status.
    pub status: Option<StepStatus>,
}

impl StepsQuery {
    /// The address that is asked for; none for the steps of the workflow.
    pub fn address(&self) -> Option<String> {
        self.at.clone().filter(|at| !at.is_empty())
    }

    /// Which items of a loop are shown.
    ///
    /// # Errors
    /// 400 when they are too many.
    pub fn window(&self) -> Result<ItemWindow, ProblemDetails> {
        let most = self.limit.unwrap_or(DEFAULT_ITEMS);
        if !(1..=MAX_ITEMS).contains(&most) {
            return Err(ProblemDetails::bad_request(format!("`limit` is 1 to {MAX_ITEMS}")));
        }
        Ok(ItemWindow { from: self.from, most, status: self.status })
    }
}

/// After this number of events, the steps are shown although there are more.
const MAX_FOLDED_EVENTS: usize = 2_000;

/// What a reader sees of the steps.
#[derive(Debug)]
pub struct StepReader {
    at: Option<String>,
    log: StepLog,
    window: ItemWindow,
    /// The events since the last view.
    events: usize,
    /// Whether a view was sent since the reader last waited.
    is_fresh: bool,
    /// The last view.
    shown: String,
}

impl StepReader {
    /// A reader of the steps that a query asks for.
    ///
    /// # Errors
    /// 400 when it asks for too many items.
    pub fn new(query: &StepsQuery) -> Result<Self, ProblemDetails> {
        let at = query.address();
        Ok(Self {
            log: StepLog::new(at.clone()),
            at,
            window: query.window()?,
            events: 0,
            is_fresh: false,
            shown: String::new(),
        })
    }

    /// Takes what an event did.
    pub fn take(&mut self, state: &State) {
        self.log.take(state);
        self.events += usize::from(matches!(state, State::Flow(_)));
    }

    /// Whether the steps may have changed. While there are `more` events, they are shown now and then only.
    pub fn is_due(&self, more: bool) -> bool {
        self.events > if more { MAX_FOLDED_EVENTS } else { 0 }
    }

    /// The steps as they are now; none when the reader has them.
    pub fn piece(&mut self, program: &Program, state: &State, run: Option<&RunSummary>) -> Option<String> {
        self.events = 0;
        let view = self.log.view(program, state, run.is_some_and(|run| run.driven), self.window);
        let is_quarantined = run.is_some_and(|run| run.status == Status::Quarantined);
        let view = view.map(|view| view.quarantined(is_quarantined));
        let view = view.map(|view| shown_view(view, &Redaction::new(&program.project.redact)));
        let text = self.written(&view);
        if text == self.shown {
            return None;
        }
        self.is_fresh = true;
        self.shown.clone_from(&text);
        Some(format!("data: {}\n\n", escape::json(&text)))
    }

    fn written(&self, view: &Result<StepView, NoSuchStep>) -> String {
        let event = match view {
            Ok(view) => Last::Steps(view),
            Err(why) => Last::NoSteps { at: self.at.clone().unwrap_or_default(), message: why.to_string() },
        };
        serde_json::to_string(&event).unwrap_or_default()
    }

    /// Waits until the next view may be sent.
    pub async fn rest(&mut self) {
        if std::mem::take(&mut self.is_fresh) {
            tokio::time::sleep(MIN_VIEW_INTERVAL).await;
        }
    }
}
