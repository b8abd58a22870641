//! The decisions that wait for the driver of a run, in memory.

use super::{RunData, StoredRun};
use crate::journal::outside_event::{MARKED, event_of};
use crate::journal::{QueuedDecision, Queueing, SettledDecision};
use loopctl_engine::outcome::Status;

impl StoredRun {
    /// `wakes`: whether it is queued for a run that nobody drives, too.
    pub(super) fn queue_decision(&self, decision: QueuedDecision, wakes: bool) -> Queueing {
        let mut data = self.data();
        if !data.driven && !wakes {
            return Queueing::NotDriven;
        }
        let of_subject = data.decisions.get(&decision.subject);
        if of_subject.is_some_and(|there| there.refused.is_none() && there.id != decision.id) {
            return Queueing::Occupied;
        }
        if of_subject.is_none_or(|there| there.refused.is_some()) {
            data.decisions.insert(decision.subject.clone(), decision);
        }
        Queueing::Queued
    }

    /// An event that is queued for the run was marked for it, or is not any more.
    pub(super) fn note_marked(&self, event_id: &str, is_marked: bool) {
        for queued in self.data().decisions.values_mut().filter(|queued| event_of(&queued.id) == Some(event_id)) {
            let plain = queued.decision.strip_suffix(MARKED).or_else(|| queued.decision.strip_suffix('}'));
            let Some(plain) = plain else { continue };
            queued.decision = format!("{plain}{}", if is_marked { MARKED } else { "}" });
        }
    }

    pub(super) fn settle_decision(&self, id: &str, settled: SettledDecision) {
        let mut data = self.data();
        match settled {
            SettledDecision::Read => data.take_decision(id),
            SettledDecision::Refused { why, .. } => {
                if let Some(decision) = data.decisions.values_mut().find(|decision| decision.id == id) {
                    decision.refused = Some(why);
                }
            }
        }
    }
}

impl RunData {
    /// A decision is taken, together with its event.
    pub(super) fn take_decision(&mut self, id: &str) {
        self.decisions.retain(|_, decision| decision.id != id);
    }

    /// Whether the run is to be looked at although it waits for a human.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        self.due_at_ms().is_some_and(|due_at_ms| due_at_ms <= now_ms)
    }

    /// When the run must be looked at; a decision that waits makes it due at once.
    pub(super) fn due_at_ms(&self) -> Option<i64> {
        let is_decided = self.status_record.status == Status::Paused
            && self.decisions.values().any(|decision| decision.refused.is_none());
        if is_decided { Some(0) } else { self.status_record.due_at_ms }
    }
}
