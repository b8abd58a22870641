//! The time of a call of a model, without the waits of its requests for their turns, and the reply that it comes to.

use std::time::{Duration, Instant};

use super::reply::AttemptReply;
use super::{Ask, ModelClient};
use crate::drive::clock;
use crate::drive::pending_model_call::PendingModelCall;
use loopctl_engine::event::{FailedAttempt, Finish, Reply};

/// As which of several models one is asked, and how long its server is waited for that wants no request.
#[derive(Clone, Copy, Default)]
pub(super) struct PatientAttempt {
    pub place: usize,
    pub patience: Duration,
    /// Whether there is another model to ask.
    pub has_next: bool,
}

/// Since when a call is made, and as which of several models one replied.
#[derive(Clone, Copy)]
pub(super) struct AskedFrom {
    began_at: Instant,
    /// How long the requests of its run's call had waited in line before, in milliseconds.
    before_ms: u64,
    place: usize,
}

impl AskedFrom {
    /// A call that begins.
    pub fn now(wait: Option<&PendingModelCall<'_>>) -> Self {
        Self { began_at: clock::instant(), before_ms: PendingModelCall::waited_ms(wait), place: 0 }
    }

    /// The same of a call to which this one of the models replied.
    pub fn of(self, place: usize) -> Self {
        Self { place, ..self }
    }

    /// When it began, later by what its requests waited in line: that is no time of a model.
    pub fn started_at(self, wait: Option<&PendingModelCall<'_>>) -> Instant {
        let waited = Duration::from_millis(self.waited_ms(wait));
        self.began_at.checked_add(waited).unwrap_or(self.began_at)
    }

    /// How long its requests have waited in line, in milliseconds.
    fn waited_ms(self, wait: Option<&PendingModelCall<'_>>) -> u64 {
        PendingModelCall::waited_ms(wait).saturating_sub(self.before_ms)
    }
}

/// A reply that is taken, behind the attempts that failed.
pub(super) fn taken(
    model: &ModelClient,
    ask: &Ask<'_>,
    mut reply: AttemptReply,
    attempts: Vec<FailedAttempt>,
    asked: AskedFrom,
) -> Reply {
    if let Some(reasoning) = &mut reply.reasoning {
        reasoning.origin = model.form.origin.to_string();
    }
    let facts = (asked.place > 0).then_some(&model.facts);
    Reply {
        window: model.form.window.of_reply(reply.finish, reply.usage, ask.max_tokens),
        text: reply.text,
        calls: reply.calls,
        reasoning: reply.reasoning,
        finish: reply.finish,
        refusal: (reply.finish == Finish::Filtered).then(|| reply.refusal.into_boxed_str()),
        usage: reply.usage,
        response_model: response_model(reply.response_model, model),
        duration_ms: clock::elapsed_ms(asked.started_at(ask.wait)),
        waited_ms: asked.waited_ms(ask.wait),
        time_to_first_token_ms: reply.time_to_first_token_ms.and_then(|ms| u32::try_from(ms).ok()),
        retries: u32::try_from(attempts.len()).unwrap_or(u32::MAX),
        model: facts.map(|facts| facts.name.as_str().into()),
        price: facts.and_then(|facts| facts.price).map(Box::new),
        attempts,
    }
}

/// The model that the provider names, when it is not the one that was asked for.
fn response_model(named: Option<String>, model: &ModelClient) -> Option<Box<str>> {
    named.filter(|name| *name != model.form.id).map(String::into_boxed_str)
}
