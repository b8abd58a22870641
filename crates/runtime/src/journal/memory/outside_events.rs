//! Events from outside, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use super::MemoryJournal;
use crate::journal::outside_event::{KEPT_PAGE_EVENTS, MOST_EVENTS, event_of};
use crate::journal::{EventPut, EventWaiter, KeptEvent, KeptQuery, OutsideEvent};
use loopctl_engine::outcome::Status;

/// The events by organisation and id.
pub(super) type KnownEvents = BTreeMap<(Option<String>, String), KnownEvent>;

/// An event, and whether a run took it.
#[derive(Debug)]
pub(super) struct KnownEvent {
    event: OutsideEvent,
    is_taken: bool,
    /// Counts all events: the order in which they came.
    number: i64,
}

impl MemoryJournal {
    fn known_events(&self) -> MutexGuard<'_, KnownEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn keep(&self, event: OutsideEvent) -> EventPut {
        let mut events = self.known_events();
        events.retain(|_, known| known.event.keep_until_ms > event.at_ms);
        let key = (event.org.clone(), event.id.clone());
        if let Some(known) = events.get(&key) {
            return event.beside(&known.event.event, &known.event.data, known.event.keep_until_ms);
        }
        let of_org = events.keys().filter(|(org, _)| *org == event.org).count();
        if u64::try_from(of_org).unwrap_or(u64::MAX) >= MOST_EVENTS {
            return EventPut::Full;
        }
        let number = events.values().map(|known| known.number).max().unwrap_or_default().saturating_add(1);
        events.insert(key, KnownEvent { event, is_taken: false, number });
        EventPut::New
    }

    pub(super) fn note_taken(&self, org: Option<&str>, id: &str, is_taken: bool) -> bool {
        let mut events = self.known_events();
        let known = events.get_mut(&(org.map(str::to_owned), id.to_owned()));
        known.is_some_and(|known| std::mem::replace(&mut known.is_taken, is_taken) != is_taken)
    }

    pub(super) fn waiters(&self, org: Option<&str>, event: &str) -> Vec<EventWaiter> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut waiters = Vec::new();
        for run in table.in_order.iter().filter(|run| run.org.as_deref() == org && run.parent_run_id.is_none()) {
            let record = run.data().status_record.clone();
            if matches!(record.status, Status::Running | Status::Paused)
                && let Some(awaits) = &record.awaits
                && let Some(waiter) = EventWaiter::of_row(run.run_id.to_string(), awaits)
                && waiter.awaits.iter().any(|awaited| awaited.takes.event == event)
            {
                waiters.push(waiter);
            }
        }
        waiters
    }

    /// The ids of the events that runs of an organisation are about to take.
    fn queued_events(&self, org: Option<&str>) -> BTreeSet<String> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let mut queued = BTreeSet::new();
        for run in table.in_order.iter().filter(|run| run.org.as_deref() == org) {
            let data = run.data();
            if matches!(data.status_record.status, Status::Running | Status::Paused) {
                let waiting = data.decisions.values().filter(|decision| decision.refused.is_none());
                queued.extend(waiting.filter_map(|decision| event_of(&decision.id)).map(str::to_owned));
            }
        }
        queued
    }

    pub(super) fn kept(&self, org: Option<&str>, query: &KeptQuery) -> Vec<KeptEvent> {
        let KeptQuery { names, now_ms, after } = query;
        let queued = self.queued_events(org);
        let events = self.known_events();
        let is_wanted = |known: &&KnownEvent| {
            let event = &known.event;
            !known.is_taken
                && !queued.contains(&event.id)
                && event.org.as_deref() == org
                && event.keep_until_ms > *now_ms
                && known.number > *after
                && names.contains(&event.event)
        };
        let mut kept: Vec<&KnownEvent> = events.values().filter(is_wanted).collect();
        kept.sort_by_key(|known| known.number);
        let of = |known: &KnownEvent| KeptEvent { number: known.number, event: known.event.clone() };
        kept.into_iter().take(KEPT_PAGE_EVENTS).map(of).collect()
    }
}
