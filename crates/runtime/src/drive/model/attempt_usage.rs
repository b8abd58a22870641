//! What an attempt counts, and whether it may have been paid for. One rule for the spending limits, the bound of paid attempts, the
//! budget and the usage of a run: what was sent, and of which nobody knows what it used, counts the most that it may have used. Of
//! connections that break, the run counts nothing.

use super::failure::{AttemptFailure, SentPart};
use super::reply::AttemptReply;
use super::{Ask, ModelBackend, ModelClient};
use crate::drive::spending::CallToReserve;
use loopctl_engine::conversation::estimated_tokens;
use loopctl_engine::event::{FailedAttempt, ModelFacts, ModelFaultCode, Tokens};
use loopctl_engine::request_length;
use loopctl_engine::state::PaidAttempts;
use loopctl_engine::token_estimator::TokenEstimator;

/// What the run that asks knows of its request.
#[derive(Debug, Clone, Copy, Default)]
pub struct KnownRequest<'a> {
    /// What is known of the tokens of its texts.
    pub estimator: Option<&'a TokenEstimator>,
    /// The most tokens of the request to the run's own model, where that counted a part of it.
    pub most_input: Option<u64>,
    /// The attempts before at the same request that may have been paid for.
    pub paid: Option<&'a PaidAttempts>,
}

impl KnownRequest<'_> {
    /// How many attempts before may have been paid for. `fallback`: none is the run's own model.
    pub(super) fn paid(&self, fallback: Option<&ModelFacts>) -> u32 {
        self.paid.map_or(0, |paid| paid.of(fallback.map(|facts| facts.name.as_str())))
    }

    fn tokens(&self, bytes: usize) -> u64 {
        self.estimator.map_or_else(|| estimated_tokens(bytes), |known| known.tokens(bytes))
    }
}

/// What a failed attempt counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AttemptUsage {
    /// The tokens; none where nobody pays for it.
    pub tokens: Option<Tokens>,
    /// Whether they are an estimate: a reply came, and its provider counts nothing, or zeros.
    pub estimated: bool,
    /// Whether they are the most that it may have used: it was sent, and nobody knows what became of it.
    pub at_most: bool,
}

impl AttemptUsage {
    /// That of an attempt that failed. A script makes no reply of its own. `place`: of the model among those that are asked.
    pub fn of_failure(model: &ModelClient, ask: &Ask<'_>, failure: &AttemptFailure, place: usize) -> Self {
        let counted = failure.usage;
        if matches!(model.backend, ModelBackend::Script(..)) {
            return Self { tokens: counted, ..Self::default() };
        }
        if let Some(written) = failure.written {
            let written = usize::try_from(written).unwrap_or(usize::MAX);
            let (tokens, estimated) = Tokens::of_reply(counted, estimate(model, ask, written));
            return Self { tokens: Some(tokens), estimated, at_most: false };
        }
        let is_known = counted.is_some() && failure.sent != SentPart::PartOfReply;
        if is_known || !failure.may_be_paid() {
            return Self { tokens: counted, ..Self::default() };
        }
        Self { tokens: Some(most(model, ask, counted, place)), estimated: false, at_most: true }
    }

    /// The failed attempt, as a journal keeps it. `fallback`: none is the run's own model.
    pub fn kept(self, failure: &AttemptFailure, fallback: Option<&ModelFacts>) -> FailedAttempt {
        // An outage breaks connection after connection, and hardly one of them is paid for: the run outlives them, and only the
        // spending limits, which must hold whatever came of a request, count each.
        let counts = !(self.at_most && failure.sent == SentPart::Broken);
        FailedAttempt {
            model: fallback.map(|facts| facts.name.clone()),
            reason: failure.message.clone(),
            delay_ms: 0,
            usage: self.tokens.filter(|_| counts),
            estimated: self.estimated,
            at_most: self.at_most && counts,
            price: fallback.and_then(|facts| facts.price),
            in_line: false,
        }
    }

    /// An attempt of which nobody will know what became: who asked no longer waits.
    pub fn lost(model: &ModelClient, ask: &Ask<'_>, place: usize) -> FailedAttempt {
        let facts = (place > 0).then_some(&model.facts);
        FailedAttempt {
            model: facts.map(|facts| facts.name.clone()),
            reason: FailedAttempt::GIVEN_UP.to_owned(),
            usage: Some(most(model, ask, None, place)),
            at_most: true,
            // An `llm` action counts it by the price of the model that it asks.
            price: model.facts.price.filter(|_| facts.is_some() || ask.program.is_none()),
            ..FailedAttempt::default()
        }
    }
}

/// The most tokens that an attempt may have used of which a provider counted these, if any: the input that it counted is all of it.
fn most(model: &ModelClient, ask: &Ask<'_>, counted: Option<Tokens>, place: usize) -> Tokens {
    let counted = counted.unwrap_or_default();
    // What the run knows of its request does not hold the schema that this model is sent.
    let schema = u64::try_from(schema_bytes(model, ask)).unwrap_or(u64::MAX);
    let own = ask.known.most_input.filter(|_| place == 0).map(|known| known.saturating_add(schema));
    let longest = || request_length::most_tokens(sent_bytes(model, ask), ask.conversation.messages.len());
    let input = if counted.input > 0 { counted.input } else { own.unwrap_or_else(longest) };
    // What is put into a cache may cost more than what is read.
    let is_dearer = |price: &f64| model.facts.price.is_some_and(|own| *price > own.input);
    let written = model.facts.price.and_then(|price| price.cache_write).filter(is_dearer);
    let cache_write = if counted.input > 0 { counted.cache_write } else { written.map_or(0, |_| input) };
    Tokens { input, output: counted.output.max(u64::from(ask.max_tokens)), cache_write, ..counted }
}

/// The bytes of a request, with the tools that are declared in it, and the schema that constrains its reply.
fn sent_bytes(model: &ModelClient, ask: &Ask<'_>) -> usize {
    request_length::bytes(ask.conversation, ask.program, ask.selected).saturating_add(schema_bytes(model, ask))
}

/// The bytes of the schema that constrains a reply.
fn schema_bytes(model: &ModelClient, ask: &Ask<'_>) -> usize {
    model.form.constraint.turn(ask).map_or(0, |turn| turn.schema.len())
}

/// The tokens of a reply with this number of bytes, estimated.
fn estimate(model: &ModelClient, ask: &Ask<'_>, written: usize) -> Tokens {
    let (input, output) = (ask.known.tokens(sent_bytes(model, ask)), estimated_tokens(written));
    Tokens { input, output, ..Tokens::default() }
}

/// The tokens of a reply: what its provider does not count is estimated.
pub(super) fn counted(model: &ModelClient, ask: &Ask<'_>, reply: &AttemptReply) -> Tokens {
    Tokens::of_reply(reply.usage, estimate(model, ask, reply.written())).0
}

/// What the spending limits reserve for an attempt.
pub(super) fn to_reserve<'m>(model: &'m ModelClient, ask: &Ask<'_>) -> CallToReserve<'m> {
    let input = ask.known.tokens(sent_bytes(model, ask));
    CallToReserve { model: &model.facts, input, max_tokens: ask.max_tokens }
}

/// The failure of a request that is longer than the declared window of its model, whatever its texts are: nobody needs to refuse it.
pub(super) fn over_the_window(model: &ModelClient, ask: &Ask<'_>) -> Option<AttemptFailure> {
    let window = model.facts.context_tokens.filter(|_| !matches!(model.backend, ModelBackend::Script(..)))?;
    let fewest = request_length::fewest_tokens(sent_bytes(model, ask));
    let message = || {
        format!(
            "the request was not sent: it has at least {fewest} tokens, and `context_tokens` of the model {:?} is {window}",
            model.facts.name
        )
    };
    (fewest > window).then(|| AttemptFailure {
        sent: SentPart::Nothing,
        ..AttemptFailure::lasting(ModelFaultCode::ContextExceeded, message())
    })
}
