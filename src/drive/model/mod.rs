//! Models: who is asked, and how. A provider a file.
//!
//! `models` finds a model by its name; `wire` grows a request in a provider's `protocol`; `http` sends it and reads
//! the answer, `sse` when it streams; `failure` says what went wrong; `script` plays a model without a server.
//! [`ask`] is the only place that tries again.

mod anthropic;
mod embedded;
mod failure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http;
mod models;
mod openai;
mod protocol;
mod reply;
mod script;
mod sse;
mod wire;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::CONTENT_TYPE;

use crate::drive::{clock, retry};
use crate::engine::conversation::Conversation;
use crate::engine::event::{self, ModelFacts, ModelFault, ModelFaultCode, Reply};
use crate::language::project::Provider;
use crate::language::react::Retry;
use crate::program::Program;
use failure::{AttemptFailure, Peer};
use http::Endpoint;
use protocol::Protocol;
use reply::{AttemptReply, Deltas, StreamedReply, UnreadableReply};
use wire::RequestForm;

pub(in crate::drive) use embedded::DynModel;
pub use embedded::{EmbeddedModel, ModelError, ModelReply, ModelRequest};
pub use models::Models;
use script::ScriptPart;
pub use script::ScriptPlayer;
pub use wire::Wire;

/// Whether the attempts that failed have used up what there was.
pub type Enough<'a> = &'a (dyn Fn(&[event::FailedAttempt]) -> bool + Send + Sync);

/// The protocols, by provider. A model that a script plays is sent nothing; `loopctl prompt` shows what the
/// default provider would be sent.
fn protocol_of(provider: Provider) -> &'static dyn Protocol {
    match provider {
        Provider::Openai | Provider::Script => &openai::Openai,
        Provider::Anthropic => &anthropic::Anthropic,
    }
}

/// What a model is asked.
pub struct Ask<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// The loop whose conversation it is: its dialect decides whether its tools go into the request.
    /// A lone question has none.
    pub program: Option<&'a Program>,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// The temperature.
    pub temperature: f64,
    /// Texts at which the model stops.
    pub stop: &'a [&'a str],
    /// Is given the reply in pieces; then the model is asked to stream. An attempt that fails midway
    /// is made again: its pieces come again then.
    pub deltas: Option<&'a (dyn Fn(&str) + Send + Sync)>,
    /// Says after failed attempts whether no other one may be made: what they used is all that there was.
    pub enough: Option<Enough<'a>>,
}

/// The track of the script that takes the place of every model.
const TRACK: &str = "--script";

/// A model that can be asked.
pub struct ModelClient {
    /// What the engine needs to know of it.
    pub facts: ModelFacts,
    form: RequestForm,
    backend: ModelBackend,
}

/// Who answers for a model.
enum ModelBackend {
    /// A server.
    Server(Endpoint),
    /// The embedder.
    Embedded(Arc<dyn DynModel>, Peer),
    /// A script, and the name under which the wire keeps how far it is.
    Script(Arc<ScriptPlayer>, Arc<str>),
}

impl std::fmt::Debug for ModelClient {
    /// Its name alone: the rest holds credentials.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Model").field("name", &self.facts.name).finish_non_exhaustive()
    }
}

/// A failed attempt that is made again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetriedAttempt {
    /// Which one failed, from 1.
    pub number: u32,
    /// Why, in a sentence without secrets.
    pub reason: String,
    /// The wait before the next one, in milliseconds.
    pub delay_ms: u64,
    /// The same as a journal keeps it.
    pub kept: event::FailedAttempt,
}

impl ModelClient {
    /// The request's bytes, as they would be sent: `loopctl prompt`. For a scripted model, which is
    /// sent nothing, those of OpenAI's protocol.
    pub fn request(&self, ask: &Ask<'_>, wire: &mut Wire) -> Bytes {
        wire.request(&self.form, ask)
    }

    /// Asks once.
    async fn attempt(&self, ask: &Ask<'_>, wire: &mut Wire) -> Result<AttemptReply, AttemptFailure> {
        let endpoint = match &self.backend {
            ModelBackend::Script(script, track) => {
                let part = wire.part();
                let part = ScriptPart { loop_name: part.as_deref(), alone: &**track == TRACK };
                return Box::pin(script.say(part, wire.script_position(track), ask)).await;
            }
            ModelBackend::Embedded(model, peer) => {
                return embedded::attempt(model.as_ref(), &self.form, peer, ask).await;
            }
            ModelBackend::Server(endpoint) => endpoint,
        };
        let response = endpoint.post(self.request(ask, wire)).await?;
        if http::is_event_stream(&response) {
            return Box::pin(self.stream(endpoint, response, ask.deltas)).await;
        }
        let kind = response.headers().get(CONTENT_TYPE).cloned();
        let body = endpoint.body(response).await?;
        let reply = self.form.protocol.read(&endpoint.peer, &body);
        let reply = reply
            .map_err(|unread| garbage(&endpoint.peer, kind.as_ref().and_then(|kind| kind.to_str().ok()), unread))?;
        // A server that does not stream gives one piece.
        if let Some(deltas) = ask.deltas {
            deltas(&reply.text);
        }
        Ok(reply)
    }

    async fn stream(
        &self,
        endpoint: &Endpoint,
        response: reqwest::Response,
        deltas: Deltas<'_>,
    ) -> Result<AttemptReply, AttemptFailure> {
        let peer = &endpoint.peer;
        let mut pieces = StreamedReply::default();
        let read = endpoint.events(response, |data| {
            let last = self.form.protocol.piece(peer, &mut pieces, data, deltas);
            last.map_err(|unread| garbage(peer, None, unread))
        });
        read.await?;
        pieces.whole().ok_or_else(|| AttemptFailure::unreachable(format!("the answer of {} was cut off", peer.name)))
    }
}

/// An answer of success that can't be read.
fn garbage(peer: &Peer, kind: Option<&str>, unread: UnreadableReply) -> AttemptFailure {
    let what = match unread {
        UnreadableReply::Failed(failure) => return failure,
        UnreadableReply::Missing(field) => format!("it has no {field}"),
        UnreadableReply::Json(error) => peer.clean(&error.to_string()),
    };
    let kind = match kind {
        Some(kind) if !kind.to_ascii_lowercase().contains("json") => format!(", which is {},", peer.clean(kind)),
        _ => String::new(),
    };
    AttemptFailure::protocol(format!("the answer of {}{kind} is no reply of a model: {what}", peer.name))
}

/// Asks the first model, with retries, then the next ones. Dropping the future gives the call up;
/// `wire` can be used again then.
///
/// Transient failures (408, 409, 429, 5xx, connections that fail or break, answers that can't be
/// read or are empty) are tried again as `retry` says; others are not. Either way the next model is
/// asked when the one before has failed for good, but a script that is spent ends it, and so does
/// [`Ask::enough`]. `failed` receives each attempt that is followed by another one.
///
/// # Errors
/// The last fault, when all attempts of all models are spent.
pub async fn ask(
    models: &[Arc<ModelClient>],
    ask: &Ask<'_>,
    wire: &mut Wire,
    retry: &Retry,
    failed: &(dyn Fn(RetriedAttempt) + Send + Sync),
) -> Result<Reply, ModelFault> {
    let started_at = clock::instant();
    let mut tried = Vec::new();
    for (place, model) in models.iter().enumerate() {
        let has_next = place + 1 < models.len();
        let facts = (place > 0).then_some(&model.facts);
        for failures in 1..=retry.attempts.max(1) {
            let failure = match model.attempt(ask, wire).await.and_then(|reply| reply.unless_empty(model)) {
                Ok(reply) => {
                    return Ok(Reply {
                        text: reply.text,
                        calls: reply.calls,
                        finish: reply.finish,
                        usage: reply.usage,
                        duration_ms: clock::elapsed_ms(started_at),
                        retries: u32::try_from(tried.len()).unwrap_or(u32::MAX),
                        model: facts.map(|facts| facts.name.clone()),
                        price: facts.and_then(|facts| facts.price),
                        attempts: tried,
                    });
                }
                Err(failure) => failure,
            };
            let again = failure.transient && failures < retry.attempts;
            let delay = if again { retry::delay(retry, failures, failure.after) } else { Duration::ZERO };
            let delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            tried.push(event::FailedAttempt {
                model: facts.map(|facts| facts.name.clone()),
                reason: failure.message.clone(),
                delay_ms,
                usage: failure.usage,
                price: facts.and_then(|facts| facts.price),
            });
            let enough = ask.enough.is_some_and(|enough| enough(&tried));
            if enough || !again && (failure.code == ModelFaultCode::ScriptExhausted || !has_next) {
                return Err(fault(failure, tried, started_at));
            }
            if let Some(kept) = tried.last().cloned() {
                let number = u32::try_from(tried.len()).unwrap_or(u32::MAX);
                failed(RetriedAttempt { number, reason: failure.message, delay_ms, kept });
            }
            if !again {
                break;
            }
            tokio::time::sleep(delay).await;
        }
    }
    let none = AttemptFailure::lasting(ModelFaultCode::ModelRefused, "no model was given to ask".to_owned());
    Err(fault(none, tried, started_at))
}

fn fault(failure: AttemptFailure, mut failed: Vec<event::FailedAttempt>, started_at: std::time::Instant) -> ModelFault {
    let attempts = u32::try_from(failed.len()).unwrap_or(u32::MAX);
    let mut message = failure.message;
    if attempts > 1 {
        message.push_str(&format!(" (after {attempts} attempts)"));
    }
    if let Some(last) = failed.last_mut() {
        last.delay_ms = 0;
    }
    ModelFault {
        code: failure.code,
        message,
        retryable: failure.transient,
        attempts,
        duration_ms: clock::elapsed_ms(started_at),
        failed,
    }
}
