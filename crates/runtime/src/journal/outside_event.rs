//! Events from outside, which runs wait for: a store keeps each for a while, so that a run which begins to wait soon after it
//! came finds it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use loopctl_engine::canonical::is_same;
use loopctl_engine::question::EventMatch;
use loopctl_lang::policy::json_text;

/// The most events of an organisation that a store keeps. Those that nobody waited for count, and those that somebody took until
/// their time is over.
pub const MOST_EVENTS: u64 = 10_000;
/// The most kept events that a store gives at once.
pub const KEPT_PAGE_EVENTS: usize = 250;

/// An event from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutsideEvent {
    /// The organisation that it belongs to.
    pub org: Option<String>,
    /// Its id: the organisation has one event of it.
    pub id: String,
    /// Its name.
    pub event: String,
    /// Its data, as JSON text.
    pub data: String,
    /// When it came, in milliseconds since 1970.
    pub at_ms: i64,
    /// Until when it is kept, in milliseconds since 1970.
    pub keep_until_ms: i64,
}

impl OutsideEvent {
    /// Its data.
    pub(crate) fn value(&self) -> Value {
        json_text::read(&self.data).unwrap_or_else(|_| Value::from(self.data.as_str()))
    }

    /// What it is to a stored one that has its id.
    pub(super) fn beside(&self, event: &str, data: &str, keep_until_ms: i64) -> EventPut {
        let value = |data: &str| json_text::read::<Value>(data).ok();
        // Whoever sends it again may write the members of its data in another order.
        let is_same = || value(data).zip(value(&self.data)).is_some_and(|(known, sent)| is_same(&known, &sent));
        if self.event == event && (self.data == data || is_same()) {
            EventPut::Same { keep_until_ms }
        } else {
            EventPut::Conflict
        }
    }
}

/// Which kept events are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptQuery {
    /// Their names.
    pub names: Vec<String>,
    /// The moment, in milliseconds since 1970.
    pub now_ms: i64,
    /// The number of the last one that was seen; 0 at first.
    pub after: i64,
}

/// An event that no run took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptEvent {
    /// Its number: the order in which they came.
    pub number: i64,
    /// The event.
    pub event: OutsideEvent,
}

/// The outcome of storing an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPut {
    /// It is stored.
    New,
    /// It was stored before.
    Same {
        /// Until when it is kept, in milliseconds since 1970.
        keep_until_ms: i64,
    },
    /// Another event has its id.
    Conflict,
    /// The organisation has [`MOST_EVENTS`] already.
    Full,
}

/// A step of a run that waits for an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AwaitedEvent {
    /// Its address.
    pub at: String,
    /// What a decision about it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The events that it takes.
    pub takes: EventMatch,
    /// Until when, in milliseconds since 1970: one that comes then is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<i64>,
}

impl AwaitedEvent {
    /// Whether it takes an event that came at a moment with this data.
    pub fn fits(&self, event: &str, data: &Value, at_ms: i64) -> bool {
        self.until_ms.is_none_or(|until_ms| at_ms < until_ms) && self.takes.takes(event, data)
    }
}

/// A run that waits for events.
#[derive(Debug, Clone, PartialEq)]
pub struct EventWaiter {
    /// Its id.
    pub run_id: String,
    /// What it waits for, in the order of the addresses.
    pub awaits: Vec<AwaitedEvent>,
}

impl EventWaiter {
    /// A row of a run; none when its column can't be read.
    pub(super) fn of_row(run_id: String, awaits: &str) -> Option<Self> {
        Some(Self { run_id, awaits: json_text::read(awaits).ok()? })
    }
}

/// Begins the id of a queued decision that gives an event to a run.
const QUEUED: &str = "event ";

/// The id of the decision that gives an event to a step in the queue of its run. No address of a step has a blank, so stores find
/// the event by what is before the last one.
pub fn queued_id(event_id: &str, at: &str) -> String {
    format!("{QUEUED}{event_id} {at}")
}

/// The end of a queued decision whose run took the event, or is about to, before any other run did. It takes the place of the last
/// bracket of the JSON.
pub(super) const MARKED: &str = ",\"marked\":true}";

/// The id of the event that a queued decision gives; none for a decision of a human.
pub(super) fn event_of(queued_id: &str) -> Option<&str> {
    Some(queued_id.strip_prefix(QUEUED)?.rsplit_once(' ')?.0)
}

/// The part of the column of a run that waits for an event of this name. Names have no character that JSON escapes.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(super) fn mark_of(event: &str) -> String {
    format!("\"event\":\"{event}\"")
}

/// What a run waits for, as its row has it; none when it waits for no event.
pub fn awaits_column(awaits: &[AwaitedEvent]) -> Option<String> {
    if awaits.is_empty() { None } else { serde_json::to_string(awaits).ok() }
}
