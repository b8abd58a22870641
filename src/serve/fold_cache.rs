//! The states of runs whose folds took long, as they were at their last events: who asks for such a run again and again has it
//! folded once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::run_store::FoldedRun;
use crate::drive::clock;
use crate::engine::event::{Event, Moment};
use crate::program::Program;

/// A fold that takes less is done again.
const MIN_FOLD_TIME: Duration = Duration::from_millis(100);
/// The most runs that are kept; the newest.
const MAX_RUNS: usize = 16;

/// The states of some runs.
#[derive(Debug, Default)]
pub struct FoldCache(VecDeque<KeptFold>);

/// Which events were folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldedSpan {
    run_id: String,
    count: usize,
    /// A run of the same name that was imported later began and ended at other moments.
    first: Option<Moment>,
    last: Option<Moment>,
}

#[derive(Debug)]
struct KeptFold {
    span: FoldedSpan,
    run: Arc<FoldedRun>,
}

impl FoldedSpan {
    /// That of all events of a run. Events are added, and never changed.
    pub fn of(run_id: &str, events: &[Event]) -> Self {
        let at = |event: &Event| event.at;
        Self {
            run_id: run_id.to_owned(),
            count: events.len(),
            first: events.first().map(at),
            last: events.last().map(at),
        }
    }
}

impl FoldCache {
    /// The state after these events by this program, if it is kept.
    pub fn get(&self, span: &FoldedSpan, program: &Arc<Program>) -> Option<Arc<FoldedRun>> {
        let is_same = |kept: &&KeptFold| kept.span == *span && Arc::ptr_eq(&kept.run.program, program);
        self.0.iter().find(is_same).map(|kept| Arc::clone(&kept.run))
    }

    /// Keeps a state, if its fold took long since that moment.
    pub fn put(&mut self, span: FoldedSpan, run: &Arc<FoldedRun>, since: Instant) {
        if clock::elapsed(since) >= MIN_FOLD_TIME {
            self.keep(span, run);
        }
    }

    fn keep(&mut self, span: FoldedSpan, run: &Arc<FoldedRun>) {
        self.0.retain(|kept| kept.span.run_id != span.run_id);
        self.0.truncate(MAX_RUNS.saturating_sub(1));
        self.0.push_front(KeptFold { span, run: Arc::clone(run) });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compile::{Texts, compile};
    use crate::diagnostic::Source;
    use crate::engine::event::EventKind;
    use crate::engine::state::State;

    #[test]
    fn a_state_is_kept_for_its_events_and_its_program_and_few_are_kept() {
        let document = json!({"type": "loop", "properties": {"mode": "react", "objective": "Say yes.", "tools": []}});
        let program = || compile(&Texts::new(Source::new("a.json", document.to_string()))).program.unwrap();
        let (own, other) = (program(), program());
        let run = Arc::new(FoldedRun { program: Arc::clone(&own), state: State::new(&own) });
        let event = |wall_ms| Event { at: Moment { wall_ms, active_ms: 0 }, kind: EventKind::Resumed };
        let span = |events: &[Event]| FoldedSpan::of("r", events);
        let mut cache = FoldCache::default();
        cache.keep(span(&[event(1)]), &run);
        assert!(cache.get(&span(&[event(1)]), &own).is_some());
        for (events, program) in [(&[event(1), event(2)][..], &own), (&[event(2)], &own), (&[event(1)], &other)] {
            assert!(cache.get(&span(events), program).is_none());
        }
        for number in 0..40 {
            cache.keep(FoldedSpan::of(&number.to_string(), &[]), &run);
        }
        assert_eq!(cache.0.len(), MAX_RUNS);
        assert!(cache.get(&span(&[event(1)]), &own).is_none());
    }
}
