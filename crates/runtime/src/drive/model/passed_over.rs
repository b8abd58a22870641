//! What became of the models before the one that is asked: why the call failed is said of all of them.

use std::time::Instant;

use super::failure::{AttemptFailure, SentPart};
use super::{ModelClient, RetriedAttempt};
use crate::drive::clock;
use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::spending::NoRoom;
use loopctl_engine::event::{FailedAttempt, ModelFacts, ModelFault, ModelFaultCode, ReachedLimit};

/// The models that were asked before, or were not for want of room in a spending limit.
#[derive(Default)]
pub(super) struct PassedOver {
    /// Whether one of them may answer later: then the same run may succeed, whatever the last one said.
    pub may_pass: bool,
    /// Whether one of them may be asked again: not as many attempts may have been paid for as are allowed.
    pub may_ask_again: bool,
    /// What one refused before another one failed, or the limit that left no room for it: the run is not to end without a word of
    /// it.
    refused: Option<String>,
    /// The last one that failed, and may answer later.
    outage: Option<ModelFaultCode>,
    /// The spending limits that left no room.
    no_room: Option<NoRoom>,
}

impl PassedOver {
    /// None so far: no limit stops the call.
    pub fn none(wait: Option<&PendingModelCall<'_>>) -> Self {
        PendingModelCall::wait_for_room(wait, None);
        Self::default()
    }

    /// As many attempts at a model may have been paid for as are allowed: it is not asked. The call may succeed when a human allows more.
    pub fn paid_out(&mut self, model: &ModelClient, paid: u32) -> AttemptFailure {
        self.may_pass = true;
        let message = format!(
            "the model {:?} is not asked again: {paid} requests without a reply that was taken may have been paid for, as many as \
             `retry` allows",
            model.facts.name
        );
        AttemptFailure { sent: SentPart::Nothing, ..AttemptFailure::unreachable(message) }
    }

    /// A model failed, and the next one is asked, or the same one again. `is_refused`: it replied, and refused.
    pub fn failed(&mut self, failure: &AttemptFailure, is_refused: bool) {
        self.outage = self.may_pass.then_some(failure.code).or(self.outage);
        if is_refused {
            self.refused = Some(failure.message.clone());
        }
    }

    /// A spending limit leaves no room for a model, and the next one is asked.
    pub fn has_no_room(
        &mut self,
        none: NoRoom,
        facts: Option<&ModelFacts>,
        tried: &mut Vec<FailedAttempt>,
    ) -> RetriedAttempt {
        let reason = none.message.clone();
        self.may_pass |= none.is_until();
        self.may_ask_again = true;
        self.refused = Some(reason.clone());
        self.no_room = Some(none.or_earlier(self.no_room.take()));
        let (model, price) = (facts.map(|facts| facts.name.clone()), facts.and_then(|facts| facts.price));
        let kept = FailedAttempt { model, reason: reason.clone(), price, ..FailedAttempt::default() };
        tried.push(kept.clone());
        let number = u32::try_from(tried.len()).unwrap_or(u32::MAX);
        let class = "a spending limit leaves no room".to_owned();
        RetriedAttempt { number, reason, class, status: None, delay_ms: 0, kept }
    }

    /// The failure of the last model, with what was refused before it.
    pub fn with_refusal(&self, mut failure: AttemptFailure) -> AttemptFailure {
        if let Some(refused) = &self.refused {
            failure.message = format!("{}; before that, {refused}", failure.message);
        }
        failure
    }

    /// The fault of a call whose last model was not asked, because a spending limit leaves no room for it. After the outage of another
    /// one, the call failed for that: it may succeed before the limit has room.
    pub fn no_room(
        self,
        none: NoRoom,
        mut failed: Vec<FailedAttempt>,
        started_at: Instant,
        wait: Option<&PendingModelCall<'_>>,
    ) -> ModelFault {
        let outage = self.outage.filter(|_| none.limit.is_some());
        let last = failed.last_mut().filter(|_| outage.is_some()).map(|last| {
            last.delay_ms = 0;
            last.reason.clone()
        });
        let none = if none.limit.is_some() { none.or_earlier(self.no_room) } else { none };
        let retryable = outage.is_some() || none.is_until();
        let message = match last {
            Some(last) => format!("{last}; after that, {}", none.message),
            None => none.message.clone(),
        };
        let limit = none.limit.filter(|_| outage.is_none());
        PendingModelCall::wait_for_room(
            wait,
            limit.as_ref().filter(|limit| limit.waits).and_then(|limit| limit.until_ms),
        );
        ModelFault {
            code: outage.unwrap_or(ModelFaultCode::SpendingLimit),
            message,
            retryable,
            attempts: u32::try_from(failed.len()).unwrap_or(u32::MAX),
            duration_ms: clock::elapsed_ms(started_at),
            failed,
            window: None,
            prompt_tokens: None,
            spending_limit: limit.map(Box::new),
            paid_out: false,
        }
    }
}

impl NoRoom {
    /// Whether there will be room.
    fn is_until(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit.until_ms.is_some())
    }

    /// Together with the limit of a model before: there is room for the call when there is some for one of them, and it waits if one
    /// of them does.
    fn or_earlier(self, earlier: Option<Self>) -> Self {
        let Some(earlier) = earlier else { return self };
        let message = format!("{}; before that, {}", self.message, earlier.message);
        let limits = || self.limit.iter().chain(&earlier.limit);
        let until_ms = limits().filter_map(|limit| limit.until_ms).min();
        let waits = limits().any(|limit| limit.waits);
        Self { message, limit: Some(ReachedLimit { until_ms, waits }) }
    }
}
