//! Where the runs that are driven here are in their traces: from this come the parents of the runs that they call, and what
//! the requests of their calls carry.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use crate::drive::run_meter::TraceContext;

/// The most runs whose requests said of which trace they are steps. Others that wait here get traces of their own.
const MAX_ASKED_RUNS: usize = 10_000;
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The places of all runs.
#[derive(Debug, Default)]
pub struct TraceContexts {
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// What the request for a run said.
    asked: HashMap<String, SpanContext>,
    /// Those of runs that are driven here.
    driven: HashMap<String, DrivenPlaces>,
}

/// Those of a run.
#[derive(Debug)]
struct DrivenPlaces {
    own: SpanContext,
    /// Those of its calls and steps that are under way, by their addresses.
    calls: HashMap<String, SpanContext>,
}

impl TraceContexts {
    fn places(&self) -> MutexGuard<'_, Places> {
        // If another thread panicked, at worst a parent is missing.
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request for a run was a step of a trace.
    pub fn asked(&self, run_id: &str, within: &TraceContext) {
        let Some(context) = read(within) else { return };
        let asked = &mut self.places().asked;
        if asked.len() < MAX_ASKED_RUNS {
            asked.insert(run_id.to_owned(), context);
        }
    }

    /// The trace that the request for a run is a step of.
    pub fn of_request(&self, run_id: &str) -> Option<SpanContext> {
        self.places().asked.get(run_id).cloned()
    }

    /// The place of a call of a run, or that of the run while the call has none.
    pub fn of_call(&self, run_id: &str, at: &str) -> Option<SpanContext> {
        let places = self.places();
        let of_run = places.driven.get(run_id)?;
        Some(of_run.calls.get(at).unwrap_or(&of_run.own).clone())
    }

    /// The place of a run.
    pub fn of_run(&self, run_id: &str) -> Option<SpanContext> {
        Some(self.places().driven.get(run_id)?.own.clone())
    }

    /// A run is driven from now on.
    pub fn begin(&self, run_id: &str, own: SpanContext) {
        self.places().driven.insert(run_id.to_owned(), DrivenPlaces { own, calls: HashMap::new() });
    }

    /// A call or step begins.
    pub fn call_begins(&self, run_id: &str, at: String, context: SpanContext) {
        if let Some(of_run) = self.places().driven.get_mut(run_id) {
            of_run.calls.insert(at, context);
        }
    }

    /// A call or step ended.
    pub fn call_ends(&self, run_id: &str, at: &str) {
        if let Some(of_run) = self.places().driven.get_mut(run_id) {
            of_run.calls.remove(at);
        }
    }

    /// The driver with this place leaves the run. `ended`: nothing of it follows.
    pub fn end(&self, run_id: &str, own: &SpanContext, ended: bool) {
        let mut places = self.places();
        if places.driven.get(run_id).is_some_and(|of_run| of_run.own.span_id() == own.span_id()) {
            places.driven.remove(run_id);
        }
        if ended {
            places.asked.remove(run_id);
        }
    }
}

/// A place as text; none for one that is not valid.
pub fn read(context: &TraceContext) -> Option<SpanContext> {
    let state = context.state.iter().map(|state| (STATE.to_owned(), state.clone()));
    let fields: HashMap<String, String> =
        std::iter::once((PARENT.to_owned(), context.parent.clone())).chain(state).collect();
    let read = TraceContextPropagator::new().extract_with_context(&Context::new(), &fields);
    let context = read.span().span_context().clone();
    context.is_valid().then_some(context)
}

/// A place as text.
pub fn written(context: &SpanContext) -> Option<TraceContext> {
    let mut fields: HashMap<String, String> = HashMap::new();
    let of_span = Context::new().with_remote_span_context(context.clone());
    TraceContextPropagator::new().inject_context(&of_span, &mut fields);
    let parent = fields.remove(PARENT)?;
    Some(TraceContext { parent, state: fields.remove(STATE).filter(|state| !state.is_empty()) })
}
