//! Models of the embedder: what calls a model is a Rust type in place of a provider's server.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use super::Ask;
use super::failure::{AttemptFailure, Peer, SentPart};
use super::reply::{AttemptReply, PartialReply};
use super::wire::{RequestForm, Wire};
use crate::drive::clock;
use crate::drive::future::{BoxFuture, Caught};
use loopctl_engine::conversation::Message;
use loopctl_engine::event::{Finish, ModelFaultCode, Reasoning, SaidCall, Tokens};
use loopctl_lang::policy::json_text;
use loopctl_lang::policy::reasoning::MAX_TEXT;

/// A model written in Rust: another provider's client, a model in this process, or a fake for tests.
///
/// ```
/// use loopctl::{EmbeddedModel, ModelError, ModelReply, ModelRequest};
///
/// struct Parrot;
///
/// impl EmbeddedModel for Parrot {
///     async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
///         let last = request.messages().last().map(|message| message.text.to_string());
///         Ok(last.unwrap_or_default().into())
///     }
/// }
/// ```
pub trait EmbeddedModel: Send + Sync + 'static {
    /// Replies to a request. The future is dropped when the run is stopped or its time is over, and must not block
    /// its thread.
    ///
    /// # Errors
    /// A failed attempt is made again as `retry` of the loop says, unless the error is [lasting](ModelError::lasting).
    fn reply(&self, request: ModelRequest<'_>) -> impl Future<Output = Result<ModelReply, ModelError>> + Send;
}

/// What a model is asked.
#[derive(Clone)]
pub struct ModelRequest<'a> {
    form: &'a RequestForm,
    ask: &'a Ask<'a>,
    start: &'a ReplyStart,
}

/// A reply that may come in pieces.
struct ReplyStart {
    asked_at: Instant,
    /// The milliseconds until its first piece.
    first_ms: OnceLock<u64>,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelTool {
    /// Its name in a call.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The JSON Schema of its input.
    pub parameters: Value,
}

impl ModelRequest<'_> {
    /// The conversation, the system prompt first.
    pub fn messages(&self) -> &[Message] {
        &self.ask.conversation.messages
    }

    /// The tools that the loop offers. Where its dialect is `tool_calls`, the model calls them by [`ModelReply::calls`]; otherwise by its
    /// text, as the system prompt says.
    pub fn tools(&self) -> Vec<ModelTool> {
        let offered = self.ask.program.into_iter().flat_map(|of| of.offered_tools().at_most(None, self.ask.selected));
        let tool = |name: &str, description: &str, parameters: &str| ModelTool {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json_text::read(parameters).unwrap_or_default(),
        };
        offered.map(|offer| tool(&offer.name, &offer.description, &offer.parameters)).collect()
    }

    /// Whether somebody reads the reply while it comes, so that [`Self::partial`] has an effect.
    pub fn wants_partial(&self) -> bool {
        self.ask.partial.is_some()
    }

    /// Passes on the reply as far as it has come: all of its text so far, which only grows. Listeners that want deltas hear what is
    /// new in it. The reply that is returned is what counts.
    pub fn partial(&self, text: &str) {
        if let Some(partial) = self.ask.partial {
            let waited_ms = || u64::try_from(clock::elapsed(self.start.asked_at).as_millis()).unwrap_or(u64::MAX);
            let time_to_first_token_ms = *self.start.first_ms.get_or_init(waited_ms);
            partial(PartialReply { text, written: text.len(), output_tokens: None, time_to_first_token_ms });
        }
    }

    /// The most tokens of the reply.
    pub fn max_tokens(&self) -> u32 {
        self.ask.max_tokens
    }

    /// The temperature, when the document has one.
    pub fn temperature(&self) -> Option<f64> {
        self.ask.temperature
    }

    /// Texts at which the model stops.
    pub fn stop(&self) -> &[&str] {
        self.ask.stop
    }

    /// What the model wrote back with a message of its own, as [`ModelReasoning::opaque`] of that reply; nothing when
    /// the reply had none, or another model wrote it.
    pub fn reasoning<'m>(&self, message: &'m Message) -> Option<&'m str> {
        let reasoning = message.reasoning().filter(|reasoning| *reasoning.origin == *self.form.origin)?;
        Some(reasoning.sealed.as_str()).filter(|opaque| !opaque.is_empty())
    }

    /// The same as the JSON body of a request to OpenAI's chat completions, with the tools when the loop's dialect is
    /// `tool_calls`. Reasoning is not in it.
    pub fn openai_body(&self) -> Bytes {
        Wire::default().request(self.form, self.ask)
    }
}

impl fmt::Debug for ModelRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelRequest").field("messages", &self.messages().len()).finish_non_exhaustive()
    }
}

/// The reply of an [`EmbeddedModel`]. A text alone converts to one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// Its text.
    pub text: String,
    /// Its native tool calls: of loops whose dialect is `tool_calls`.
    pub calls: Vec<SaidCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// The tokens that it read and wrote; without them the engine estimates.
    pub usage: Option<Tokens>,
    /// What the model wrote before it.
    pub reasoning: Option<ModelReasoning>,
}

/// The reasoning of a reply.
///
/// ```
/// use loopctl::{EmbeddedModel, ModelError, ModelReasoning, ModelReply, ModelRequest};
///
/// struct Thinker;
///
/// impl EmbeddedModel for Thinker {
///     async fn reply(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
///         // What the replies before this one want back, also after the process was started again.
///         let returned = request.messages().iter().filter_map(|message| request.reasoning(message)).count();
///         let reasoning = ModelReasoning { opaque: format!("signature {returned}"), text: "I count.".into() };
///         Ok(ModelReply { text: "One.".into(), reasoning: Some(reasoning), ..ModelReply::default() })
///     }
/// }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReasoning {
    /// What the model needs back with the next request, byte for byte; see [`ModelRequest::reasoning`]. At most 1 MiB:
    /// what is longer, or holds a secret of the project, is not kept. Empty: nothing comes back.
    pub opaque: String,
    /// What of it people can read: the thought of a reply that has none. 4,000 characters of it are kept.
    pub text: String,
}

impl From<ModelReasoning> for Reasoning {
    fn from(reasoning: ModelReasoning) -> Self {
        let ModelReasoning { opaque, mut text } = reasoning;
        if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
            text.truncate(end);
        }
        Self { origin: String::new(), sealed: opaque, text }
    }
}

impl From<String> for ModelReply {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// A failed attempt of an [`EmbeddedModel`]. Every error converts to one by `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    message: String,
    transient: bool,
    is_unpaid: bool,
}

impl ModelError {
    /// A failure that may pass: the attempt is made again, as the `retry` of the document says. It may have been paid for: the
    /// spending limits of a project count the most that it may have used. See [`Self::unpaid`].
    pub fn transient(message: impl Into<String>) -> Self {
        Self { message: message.into(), transient: true, is_unpaid: false }
    }

    /// A failure that stays: no other attempt is made with this model.
    pub fn lasting(message: impl Into<String>) -> Self {
        Self { message: message.into(), transient: false, is_unpaid: false }
    }

    /// The same failure of a request for which nobody pays: it was not sent, or it was refused.
    #[must_use]
    pub fn unpaid(self) -> Self {
        Self { is_unpaid: true, ..self }
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ModelError {
    fn from(error: E) -> Self {
        Self::transient(error.into().to_string())
    }
}

/// A model that is chosen at run time: `Arc<dyn DynModel>` is one, too. Every [`EmbeddedModel`] is one.
pub trait DynModel: Send + Sync {
    /// Replies to a request, as [`EmbeddedModel::reply`].
    ///
    /// # Errors
    /// As those of [`EmbeddedModel::reply`].
    fn reply<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}

impl<T: EmbeddedModel> DynModel for T {
    fn reply<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(EmbeddedModel::reply(self, request))
    }
}

impl<T: DynModel + ?Sized> DynModel for Arc<T> {
    fn reply<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        T::reply(self, request)
    }
}

/// Asks a model once. A panic in it is a failed attempt.
pub(super) async fn attempt(
    model: &dyn DynModel,
    form: &RequestForm,
    peer: &Peer,
    ask: &Ask<'_>,
) -> Result<AttemptReply, AttemptFailure> {
    let lasting = |message: &str| AttemptFailure::lasting(ModelFaultCode::ModelRefused, peer.clean(message));
    // What panics before the first wait is caught too: the call itself is made inside the future.
    let start = ReplyStart { asked_at: clock::instant(), first_ms: OnceLock::new() };
    let request = ModelRequest { form, ask, start: &start };
    let replied: BoxFuture<'_, _> = Box::pin(async move { model.reply(request).await });
    let replied =
        Caught(replied).await.map_err(|panic| lasting(&format!("the model {:?} panicked: {panic}", peer.name)))?;
    let reply = replied.map_err(|error| match error.transient {
        true => {
            let sent = if error.is_unpaid { SentPart::Nothing } else { SentPart::Broken };
            AttemptFailure { sent, ..AttemptFailure::unreachable(peer.clean(&error.message)) }
        }
        false => lasting(&error.message),
    })?;
    let ModelReply { text, calls, finish, usage, reasoning } = reply;
    let reasoning = reasoning.map(|reasoning| Box::new(reasoning.into()));
    Ok(AttemptReply { text, calls, finish, usage, reasoning, ..AttemptReply::default() })
}
