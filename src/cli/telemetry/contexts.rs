//! Where the runs that are driven here are in their traces: from this come the parents of the runs that they call, and what
//! the requests of their calls carry.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator as _;
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

use crate::drive::run_meter::TraceContext;

/// The most runs of which it is kept what their requests said. Beyond them, the oldest get traces of their own.
const MAX_ASKED_RUNS: usize = 10_000;
/// The longest `tracestate` that is passed on, in bytes: what W3C asks for. A longer one is dropped.
const MAX_STATE_BYTES: usize = 512;
const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The places of all runs.
#[derive(Debug, Default)]
pub struct TraceContexts {
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// What the requests for runs said, until the runs end.
    asked: HashMap<String, AskedPlace>,
    /// The runs of `asked`, the oldest first, and some that are no more in it.
    order: VecDeque<String>,
    /// Those of runs that are driven here.
    driven: HashMap<String, DrivenPlaces>,
}

/// What a run is a step of.
#[derive(Debug, Clone, Default)]
pub struct AskedPlace {
    /// The trace of its request.
    pub parent: Option<SpanContext>,
    /// The run that started it without waiting for it.
    pub starter: Option<SpanContext>,
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

    /// A run was created: by a request that is a step of a trace, or by another run, of whose trace it is.
    pub fn created(&self, run_id: &str, within: Option<&TraceContext>, started_by: Option<&str>) {
        let mut places = self.places();
        let of_starter = |starter: &str| {
            let driven = places.driven.get(starter).map(|of_run| of_run.own.clone());
            let asked = places.asked.get(starter).and_then(|asked| asked.parent.clone());
            AskedPlace { parent: asked, starter: driven }
        };
        let place = match (within.and_then(read), started_by) {
            (None, Some(starter)) => of_starter(starter),
            (parent, _) => AskedPlace { parent, starter: None },
        };
        if place.parent.is_none() && place.starter.is_none() {
            return;
        }
        while places.asked.len() >= MAX_ASKED_RUNS
            && let Some(oldest) = places.order.pop_front()
        {
            places.asked.remove(&oldest);
        }
        if places.order.len() >= 2 * MAX_ASKED_RUNS {
            let Places { asked, order, .. } = &mut *places;
            order.retain(|known| asked.contains_key(known));
        }
        places.asked.insert(run_id.to_owned(), place);
        places.order.push_back(run_id.to_owned());
    }

    /// What a run is a step of.
    pub fn asked(&self, run_id: &str) -> AskedPlace {
        self.places().asked.get(run_id).cloned().unwrap_or_default()
    }

    /// The run has ended.
    pub fn forget(&self, run_id: &str) {
        self.places().asked.remove(run_id);
    }

    /// The place of a call of a run, or that of the run while the call has none.
    pub fn of_call(&self, run_id: &str, at: &str) -> Option<SpanContext> {
        let places = self.places();
        let of_run = places.driven.get(run_id)?;
        Some(of_run.calls.get(at).unwrap_or(&of_run.own).clone())
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

    /// The driver with this place leaves the run.
    pub fn end(&self, run_id: &str, own: &SpanContext) {
        let mut places = self.places();
        if places.driven.get(run_id).is_some_and(|of_run| of_run.own.span_id() == own.span_id()) {
            places.driven.remove(run_id);
        }
    }
}

/// A place as text; none for one that is not valid.
pub fn read(context: &TraceContext) -> Option<SpanContext> {
    let is_plain =
        |state: &&String| state.len() <= MAX_STATE_BYTES && state.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let state = context.state.iter().filter(is_plain).map(|state| (STATE.to_owned(), state.clone()));
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

#[cfg(test)]
mod tests {
    use super::{MAX_ASKED_RUNS, TraceContext, TraceContexts, read, written};

    fn within(state: Option<&str>) -> TraceContext {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned();
        TraceContext { parent, state: state.map(str::to_owned) }
    }

    #[test]
    fn a_state_that_is_long_or_not_plain_is_dropped_and_its_parent_kept() {
        let passed = |state: &str| written(&read(&within(Some(state))).unwrap()).unwrap();
        assert_eq!(passed("vendor=1"), within(Some("vendor=1")));
        for state in
            ["vendor=a\tb", "vendor=a\r\nx-evil: 1", "vendor=\u{e9}", "no pair", &format!("v={}", "x".repeat(600))]
        {
            assert_eq!(passed(state), within(None), "{state}");
        }
        assert!(read(&TraceContext { parent: "00-x".to_owned(), state: None }).is_none());
    }

    #[test]
    fn what_requests_said_is_bounded_and_the_oldest_goes_first() {
        let (contexts, asks) = (TraceContexts::default(), within(None));
        for run in 0..3 * MAX_ASKED_RUNS {
            contexts.created(&format!("r{run}"), Some(&asks), None);
            if run % 2 == 0 {
                contexts.forget(&format!("r{run}"));
            }
        }
        let newest = 3 * MAX_ASKED_RUNS - 1;
        assert!(contexts.asked(&format!("r{newest}")).parent.is_some());
        assert!(contexts.asked("r1").parent.is_none() && contexts.asked("r0").parent.is_none());
        let places = contexts.places();
        assert!(places.asked.len() <= MAX_ASKED_RUNS && places.order.len() <= 2 * MAX_ASKED_RUNS);
    }

    #[test]
    fn a_run_that_another_one_started_is_of_the_trace_of_that_one_and_linked_to_it() {
        let contexts = TraceContexts::default();
        let asked = within(None);
        contexts.created("first", Some(&asked), None);
        contexts.begin("first", read(&asked).unwrap());
        contexts.created("later", None, Some("first"));
        contexts.end("first", &read(&asked).unwrap());
        contexts.forget("first");
        let later = contexts.asked("later");
        assert!(later.parent.is_some() && later.starter.is_some());
        contexts.created("alone", None, None);
        assert!(contexts.asked("alone").parent.is_none());
    }
}
