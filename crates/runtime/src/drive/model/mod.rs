//! Models: who is asked, and how. A provider a file.
//!
//! `models` finds a model by its name; `wire` grows a request in a provider's `protocol`; `http` sends it and reads
//! the answer, `sse` when it streams; `reasoning` keeps what a provider wants back; `failure` says what went wrong; `script` plays a model without a server.
//! [`ask`] is the only place that tries again; `attempt_usage` says what an attempt counts, and whether it may have been paid for.

mod anthropic;
mod asked;
mod attempt_usage;
mod call_arguments;
mod compact_json;
mod constraint;
mod content_refusal;
mod credentials;
mod embedded;
mod failure;
mod first_contact;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gemini;
mod http;
mod identity;
mod models;
mod openai;
mod passed_over;
mod protocol;
mod reasoning;
pub mod recording;
mod refused_fields;
mod reply;
mod reply_progress;
mod reply_timeouts;
mod responses;
mod script;
mod settings;
mod signature;
pub(in crate::drive) mod sse;
mod stop_reason;
mod surrogate_halves;
mod usage_fields;
mod window;
mod wire;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::http::header::CONTENT_TYPE;
use bytes::Bytes;
use serde_json::Value;

use crate::drive::clock;
use crate::drive::descriptors::Patience;
use crate::drive::gate::{CallGate, GatePass, GateRequest, NotLetIn, why_open};
use crate::drive::http_client::Response;
use crate::drive::model_waits::FailedRequest;
use crate::drive::pending_model_call::PendingModelCall;
use crate::drive::retry::{self, Failures};
use crate::drive::spending::NoRoom;
use crate::journal::WaitedFor;
use asked::{AskedFrom, PatientAttempt, taken};
use attempt_usage::AttemptUsage;
pub use attempt_usage::KnownRequest;
use failure::{AttemptFailure, Peer, SentPart};
use http::Endpoint;
use loopctl_engine::conversation::{Conversation, Message, Role};
use loopctl_engine::event::{self, ModelFacts, ModelFault, ModelFaultCode, Reply};
use loopctl_lang::language::SecretSource;
use loopctl_lang::language::project::Provider;
use loopctl_lang::language::react::Retry;
use loopctl_lang::program::LoopProgram;
use loopctl_lang::program::selected_tools::SelectedTools;
use loopctl_lang::program::turn_schema::TurnForms;
use passed_over::PassedOver;
use protocol::Protocol;
use reasoning::{lacks_reasoning, returned, without_reasoning};
use refused_fields::RequestField;
pub use reply::PartialReply;
use reply::{AttemptReply, StreamedReply, garbage};
use reply_progress::StreamState;
pub use reply_timeouts::ReplyTimeouts;
use reply_timeouts::STALL;
use wire::RequestForm;

pub use crate::drive::gate::{CallCircuit, CallGates, CallQueue, CircuitState};
pub use embedded::{DynModel, EmbeddedModel, ModelError, ModelReasoning, ModelReply, ModelRequest, ModelTool};
pub use models::Models;
use script::ScriptPart;
pub use script::{ScriptPlayer, reply_of, result_of};
pub use wire::Wire;

/// Whether the attempts that failed have used up what there was.
pub type Enough<'a> = &'a (dyn Fn(&[event::FailedAttempt]) -> bool + Send + Sync);

/// The protocols, by provider. A model that a script plays is sent nothing; `loopctl prompt` shows what the
/// default provider would be sent.
fn protocol_of(provider: Provider) -> &'static dyn Protocol {
    match provider {
        Provider::Openai | Provider::Script => &openai::Openai,
        Provider::OpenaiResponses => &responses::Responses,
        Provider::Anthropic => &anthropic::Anthropic,
        Provider::Gemini => &gemini::Gemini,
    }
}

/// What a model is asked.
pub struct Ask<'a> {
    /// The conversation.
    pub conversation: &'a Conversation,
    /// The loop whose conversation it is: its dialect decides whether its tools go into the request.
    /// A lone question has none.
    pub program: Option<&'a LoopProgram>,
    /// Which of the loop's tools are offered; all where nothing is selected.
    pub selected: Option<&'a SelectedTools>,
    /// What a lone question must be answered with, where that is an object: the reply may be constrained to it.
    pub answer: Option<&'a TurnForms>,
    /// The input of the run that asks: a script chooses its replies by it. A lone question has none.
    pub input: Option<&'a Value>,
    /// The most tokens of the reply.
    pub max_tokens: u32,
    /// The temperature; none is sent where no document has one.
    pub temperature: Option<f64>,
    /// Texts at which the model stops.
    pub stop: &'a [&'a str],
    /// Is given the reply as far as it has come, at each piece; then the model is asked to stream. A reply that does
    /// not come in pieces is not given to it. An attempt that fails midway is made again, from the start.
    pub partial: Option<&'a (dyn Fn(PartialReply<'_>) + Send + Sync)>,
    /// Says after failed attempts whether no other one may be made: what they used is all that there was.
    pub enough: Option<Enough<'a>>,
    /// The wait of the run that asks.
    pub wait: Option<&'a PendingModelCall<'a>>,
    /// How long its reply is waited for.
    pub timeouts: ReplyTimeouts,
    /// Whether the reply must call a tool, where tools are declared to the provider.
    pub must_call: bool,
    /// Whether the conversation says already that the last reply was empty.
    pub empty_is_answered: bool,
    /// Whether only a text is a reply: no tool is offered, so a call alone is an empty one.
    pub wants_text: bool,
    /// What the run that asks knows of the request.
    pub known: KnownRequest<'a>,
    /// The places of the models in the order in which they are asked; none: as they are given.
    pub order: Option<&'a [usize]>,
}

/// How many empty replies to one request are asked for in the same words.
const EMPTY: u32 = 2;

impl<'a> Ask<'a> {
    /// A lone question: no loop asks it, so there are no tools, and nobody reads the reply while it comes.
    pub(crate) fn lone(conversation: &'a Conversation, max_tokens: u32) -> Self {
        Self {
            conversation,
            program: None,
            selected: None,
            answer: None,
            input: None,
            max_tokens,
            temperature: None,
            stop: &[],
            partial: None,
            enough: None,
            wait: None,
            timeouts: ReplyTimeouts::default(),
            must_call: false,
            empty_is_answered: false,
            wants_text: false,
            known: KnownRequest::default(),
            order: None,
        }
    }

    /// How many empty replies of a model there may be: those before the request that says so count too.
    fn most_empty(&self, retry: &Retry) -> u32 {
        let left = |attempts: u32| attempts.saturating_sub(EMPTY).clamp(1, EMPTY);
        if self.empty_is_answered { retry.attempts.map_or(EMPTY, left) } else { EMPTY }
    }
}

/// The track of the script that takes the place of every model.
const TRACK: &str = "--script";

/// A model that can be asked.
pub struct ModelClient {
    /// What the engine needs to know of it.
    pub facts: ModelFacts,
    form: RequestForm,
    backend: ModelBackend,
    /// Where its requests wait for their turn; none for a script, which is sent none.
    gate: Option<Arc<CallGate>>,
}

/// Who answers for a model.
enum ModelBackend {
    /// A server.
    Server(Box<Endpoint>),
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
    /// The same without the words of the server, for a log: what a project hides in its traces is not known there.
    pub class: String,
    /// The status of the server's answer; none without one.
    pub status: Option<u16>,
    /// The wait before the next one, in milliseconds.
    pub delay_ms: u64,
    /// The same as a journal keeps it.
    pub kept: event::FailedAttempt,
}

impl RetriedAttempt {
    /// The same as the status of the run shows it, with the name of the model.
    pub(super) fn shown(&self, model: String) -> FailedRequest {
        let Self { number, reason, class, status, delay_ms, .. } = self;
        let (reason, kind) = (reason.clone(), class.clone());
        FailedRequest { model, attempt: *number, reason, kind, status: *status, delay_ms: *delay_ms }
    }
}

impl ModelClient {
    /// What is known of it, with the window that its server showed to other runs.
    pub fn known_facts(&self) -> ModelFacts {
        let written = self.facts.context_tokens.unwrap_or(u64::MAX);
        let learned_tokens = self.form.window.known().filter(|learned| *learned < written);
        ModelFacts { learned_tokens, ..self.facts.clone() }
    }

    /// Whether it is sent a PDF document by its address.
    pub(super) fn takes_pdf_by_address(&self) -> bool {
        !matches!(self.backend, ModelBackend::Server(_)) || self.form.protocol.takes_pdf_by_address()
    }

    /// Whether what is sent with its requests can be read, as far as that is known without a program.
    fn readable(&self) -> Result<(), String> {
        match &self.backend {
            ModelBackend::Server(endpoint) => endpoint.credentials.readable(),
            ModelBackend::Embedded(..) | ModelBackend::Script(..) => Ok(()),
        }
    }

    /// A request to it, at its gate.
    fn at_gate<'a>(
        &'a self,
        wait: Option<&'a PendingModelCall<'a>>,
        tokens: u64,
        patient: PatientAttempt,
    ) -> GateRequest<'a> {
        let is_sent = matches!(self.backend, ModelBackend::Server(_));
        let (of, name, id) = (WaitedFor::Model, self.facts.name.as_str(), self.form.id.as_str());
        let PatientAttempt { patience, has_next, .. } = patient;
        // The next model is there for this.
        let circuit_patience = if has_next { Duration::ZERO } else { patience };
        GateRequest { of, name, id, is_sent, tokens, patience, circuit_patience, wait }
    }

    /// The wait before the next attempt after a failure; none when none is made. The server of a model that the
    /// project bounds is sent nothing by other runs either, where it asked for a wait.
    fn delay_after(
        &self,
        failure: &AttemptFailure,
        failures: &mut Failures,
        retry: &Retry,
        wait: Option<&PendingModelCall<'_>>,
    ) -> Option<Duration> {
        if failure.sent == SentPart::HeldBack {
            return None;
        }
        let gate = self.gate.as_ref().filter(|gate| gate.is_bounded());
        let held = failure.held_for().filter(|_| gate.is_some());
        if let Some((gate, time)) = gate.zip(held) {
            gate.hold(time, self.at_gate(wait, 0, PatientAttempt::default()));
        }
        let held = held.and_then(|time| failures.held_delay(retry, time));
        if failure.transient { held.or_else(|| failures.next_delay(retry, failure.after)) } else { None }
    }

    /// Whether its server asked for no longer wait than one that is waited for where there is another model to ask. That of a model that
    /// the project bounds keeps all runs back.
    fn is_back_soon(&self, failure: &AttemptFailure, retry: &Retry) -> bool {
        let is_held = failure.held_for().is_some() && self.gate.as_ref().is_some_and(|gate| gate.is_bounded());
        let longest = if is_held { Failures::default().patience(retry) } else { retry::LONGEST_ASKED };
        failure.after.is_none_or(|after| after <= longest.min(retry::LONGEST_ASKED))
    }

    /// Takes note of what came of an attempt: a failure, or a reply. Returns whether nothing listens where its server should
    /// be, and no server of a model was reached before.
    fn is_missed(&self, failure: Option<&AttemptFailure>) -> bool {
        match (&self.backend, failure) {
            (ModelBackend::Server(endpoint), Some(failure)) => endpoint.first_contact.misses(failure),
            (ModelBackend::Server(endpoint), None) => {
                endpoint.first_contact.is_made();
                false
            }
            (ModelBackend::Embedded(..) | ModelBackend::Script(..), _) => false,
        }
    }

    /// The programs that print what is sent with its requests.
    pub fn secret_programs(&self) -> Vec<SecretSource> {
        match &self.backend {
            ModelBackend::Server(endpoint) => endpoint.credentials.programs().cloned().collect(),
            ModelBackend::Embedded(..) | ModelBackend::Script(..) => Vec::new(),
        }
    }

    /// Whether the credentials that sign its requests are given now.
    ///
    /// # Errors
    /// A sentence without secrets that says why they are not.
    pub async fn signs(&self) -> Result<(), String> {
        match &self.backend {
            ModelBackend::Server(endpoint) => endpoint.credentials.signs().await,
            ModelBackend::Embedded(..) | ModelBackend::Script(..) => Ok(()),
        }
    }

    /// The request's bytes, as they would be sent: `loopctl prompt`. For a scripted model, which is
    /// sent nothing, those of OpenAI's protocol.
    pub fn request(&self, ask: &Ask<'_>, wire: &mut Wire) -> Bytes {
        wire.request(&self.form, ask)
    }

    fn is_recorded(&self) -> bool {
        matches!(&self.backend, ModelBackend::Script(player, _) if player.is_recorded())
    }

    /// Asks once, for as long as a reply may take.
    async fn attempt(&self, ask: &Ask<'_>, wire: &mut Wire) -> Result<AttemptReply, AttemptFailure> {
        match tokio::time::timeout(ask.timeouts.reply, self.learned_reply(ask, wire)).await {
            Ok(Ok(reply)) => {
                // What was recorded was taken as it is.
                if self.is_recorded() {
                    return Ok(reply);
                }
                let reply = reply.unless_refused(self)?.unless_torn(self)?;
                self.form.constraint.read(reply, ask).unless_empty(self, !ask.wants_text)
            }
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(AttemptFailure::unreachable(format!(
                "timed out: the model {:?} gave no whole reply within {} ms",
                self.facts.name,
                ask.timeouts.reply.as_millis()
            ))),
        }
    }

    /// A reply. A field that the server refuses is left out from then on: such a refusal is no failed attempt.
    async fn learned_reply(&self, ask: &Ask<'_>, wire: &mut Wire) -> Result<AttemptReply, AttemptFailure> {
        let refused = &self.form.refused;
        let mut left_out = Vec::new();
        loop {
            let before = refused.snapshot();
            let sent = match wire.leaves_reasoning_out(&self.form) {
                false => self.reply(ask, wire).await,
                true => Box::pin(self.reply_without_reasoning(ask, wire)).await,
            };
            let failure = match sent {
                Err(failure) => failure,
                reply => return reply,
            };
            if failure.refused == Some(RequestField::StaleReasoning)
                && !wire.leaves_reasoning_out(&self.form)
                && ask.conversation.messages.iter().any(|message| !returned(&self.form.origin, message).is_empty())
            {
                wire.leave_reasoning_out(&self.form);
                continue;
            }
            // Each time one more field is left out: this ends.
            let mut is_other = false;
            for field in self.left_out(ask, &failure, before) {
                is_other |= refused.learn(field, before);
                left_out.push(field);
            }
            if !is_other {
                // Refused either way: it was not for a setting, which the words of a refusal may name all the same.
                if failure.refuses_request() {
                    left_out
                        .into_iter()
                        .filter(|field| field.is_sampling() || field.is_of_missing_reasoning())
                        .for_each(|field| refused.set(field, false));
                }
                return Err(failure);
            }
        }
    }

    /// The same, without the reasoning of this model's earlier replies.
    async fn reply_without_reasoning(&self, ask: &Ask<'_>, wire: &mut Wire) -> Result<AttemptReply, AttemptFailure> {
        let mut conversation = ask.conversation.clone();
        conversation.messages = without_reasoning(&self.form.origin, &ask.conversation.messages);
        self.reply(&Ask { conversation: &conversation, ..*ask }, wire).await
    }

    /// What a request is sent without after this failure: the field that the refusal names, or all settings of sampling
    /// when it names nothing.
    fn left_out(&self, ask: &Ask<'_>, failure: &AttemptFailure, before: u32) -> Vec<RequestField> {
        let is_sent = |field: &RequestField| !field.is_sampling() || self.form.sends(*field, ask, before);
        match failure.refused {
            // The run remembers it, and other runs have reasoning of their own.
            Some(RequestField::StaleReasoning) if before & RequestField::MissingSignature.bit() == 0 => Vec::new(),
            // The value that takes the place of a signature.
            Some(RequestField::StaleReasoning) => {
                self.of_missing(RequestField::MissingSignature, ask, before).into_iter().collect()
            }
            Some(field) if field.is_of_missing_reasoning() => self.of_missing(field, ask, before).into_iter().collect(),
            Some(field) => field.together(&failure.message).into_iter().filter(is_sent).collect(),
            None if failure.is_nameless() => RequestField::SAMPLING.into_iter().filter(is_sent).collect(),
            None => Vec::new(),
        }
    }

    /// What helps against a refusal of turns that lack their reasoning: words in its place, where the protocol has a
    /// place for them, and then those turns as text.
    fn of_missing(&self, field: RequestField, ask: &Ask<'_>, before: u32) -> Option<RequestField> {
        let mut turns = ask.conversation.messages.iter().filter(|message| message.role == Role::Assistant);
        if before & field.bit() == 0 && self.form.protocol.has_words_for(field) {
            return turns.next().map(|_| field);
        }
        let is_foreign = |turn: &Message| !turn.calls().is_empty() && lacks_reasoning(&self.form.origin, turn);
        turns.any(is_foreign).then_some(RequestField::MissingReasoningOfCalls)
    }

    async fn reply(&self, ask: &Ask<'_>, wire: &mut Wire) -> Result<AttemptReply, AttemptFailure> {
        let endpoint = match &self.backend {
            ModelBackend::Script(script, track) => {
                let part = wire.part();
                let run_id = wire.run_id();
                let part = ScriptPart {
                    loop_name: part.as_deref(),
                    alone: &**track == TRACK && !wire.is_step(),
                    run_id: &run_id,
                };
                return Box::pin(script.say(part, wire.script_position(track), ask)).await;
            }
            ModelBackend::Embedded(model, peer) => {
                return embedded::attempt(model.as_ref(), &self.form, peer, ask).await;
            }
            ModelBackend::Server(endpoint) => endpoint,
        };
        let asked_at = clock::instant();
        // In a block: what is borrowed keeps its place in the future until the end of its block.
        let (mut response, kind, begun, is_stream) = {
            let mut response = self.post(endpoint, ask, wire).await?;
            let kind = response.headers().get(CONTENT_TYPE).cloned();
            // A server may stream unasked, and then says so; one that was asked may give it any label.
            let (is_stream, begun) = if self.form.streams(ask) || http::is_event_stream(&response) {
                endpoint.begin(&mut response, ask.timeouts.stall).await?
            } else {
                (false, Bytes::new())
            };
            (response, kind, begun, is_stream)
        };
        if is_stream {
            return Box::pin(self.stream(endpoint, begun, response, ask, asked_at)).await;
        }
        let body = endpoint.body(begun, &mut response, ask.timeouts.stall).await?;
        let body = surrogate_halves::readable(&body);
        let reply = self.form.protocol.read(&endpoint.peer, body.trim_start_matches('\u{feff}').as_bytes());
        reply.map_err(|unread| garbage(&endpoint.peer, kind.as_ref().and_then(|kind| kind.to_str().ok()), unread))
    }

    /// Sends the request. When the server refuses it with the schema of a turn, and takes it without, it is not sent one
    /// again.
    async fn post(&self, endpoint: &Endpoint, ask: &Ask<'_>, wire: &mut Wire) -> Result<Response, AttemptFailure> {
        let constraint = &self.form.constraint;
        let may_go_without = constraint.is_optional() && constraint.turn(ask).is_some();
        let (streams, stall) = (self.form.streams(ask), ask.timeouts.stall);
        {
            let sent = endpoint.post(self.request(ask, wire), streams, stall).await;
            if !may_go_without || !sent.as_ref().is_err_and(AttemptFailure::refuses_request) {
                return sent;
            }
        }
        constraint.set_refused(true);
        let sent = Box::pin(endpoint.post(self.request(ask, wire), streams, stall)).await;
        // Refused either way: it was not for the schema.
        constraint.set_refused(sent.is_ok());
        sent
    }

    async fn stream(
        &self,
        endpoint: &Endpoint,
        begun: Bytes,
        response: Response,
        ask: &Ask<'_>,
        asked_at: Instant,
    ) -> Result<AttemptReply, AttemptFailure> {
        let peer = &endpoint.peer;
        let is_turn = self.form.constraint.turn(ask).is_some();
        let mut pieces = StreamedReply::default();
        let mut first_ms = None;
        let read = endpoint.events(begun, response, ask.timeouts.stall, |data| {
            let before = pieces.progress();
            let is_over = take_event(self.form.protocol, peer, &mut pieces, data)?;
            if first_ms.is_none() && pieces.written() > 0 {
                first_ms = Some(clock::elapsed_ms(asked_at));
            }
            if let (Some(partial), Some(time_to_first_token_ms)) = (ask.partial, first_ms) {
                let (text, written) = (pieces.text_so_far(is_turn), pieces.written());
                partial(PartialReply { text, written, output_tokens: pieces.output_tokens(), time_to_first_token_ms });
            }
            Ok(if is_over { StreamState::Over } else { pieces.progress().since(before) })
        });
        if let Err(failure) = read.await {
            // What is counted together with the failure is all; what was counted before it may be a part.
            if failure.usage.is_some() {
                return Err(failure);
            }
            let sent = match failure.sent {
                SentPart::Broken => SentPart::Broken,
                SentPart::Refused if !pieces.has_begun() => SentPart::Refused,
                _ => SentPart::PartOfReply,
            };
            return Err(AttemptFailure { usage: pieces.usage(), sent, ..failure });
        }
        let reply = pieces.whole(peer).map_err(|failure| AttemptFailure { sent: SentPart::PartOfReply, ..failure })?;
        Ok(AttemptReply { time_to_first_token_ms: first_ms, ..reply })
    }
}

/// Takes in the data of an event of a stream. `true`: it was the last one.
fn take_event(
    protocol: &dyn Protocol,
    peer: &Peer,
    pieces: &mut StreamedReply,
    data: &[u8],
) -> Result<bool, AttemptFailure> {
    match data.trim_ascii() {
        // Some servers keep a connection alive so.
        b"" | b"null" => Ok(false),
        b"[DONE]" => {
            pieces.ended = true;
            Ok(true)
        }
        data => {
            let (data, has_halves) = surrogate_halves::marked(data);
            if has_halves {
                pieces.expect_halves();
            }
            protocol.piece(peer, pieces, data.as_bytes()).map_err(|unread| garbage(peer, None, unread))
        }
    }
}

/// Asks the first model, with retries, then the next ones. Dropping the future gives the call up;
/// `wire` can be used again then.
///
/// Transient failures (408, 409, 424, 425, 429, 498, 5xx, connections that fail or break, answers that can't be
/// read, are empty or take too long) are retried as `retry` says; others are not. Either way the next model is
/// asked when the one before has failed for good, but a script that is spent ends it, and so does
/// [`Ask::enough`]. `failed` receives each attempt that is followed by another one.
///
/// A reply that was refused, and one that is empty for the second time, count as failures while there is a next model. Of
/// the last model they are taken as they are, unless [`Ask::empty_is_answered`]: who asks says something new then.
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
    let asked = AskedFrom::now(ask.wait);
    let brief = retry::brief(retry);
    let mut tried = Vec::new();
    let mut before = PassedOver::none(ask.wait);
    let places: Cow<'_, [usize]> = ask.order.map_or_else(|| (0..models.len()).collect(), Cow::Borrowed);
    for (at, place) in places.iter().copied().enumerate() {
        let Some(model) = models.get(place) else { continue };
        let has_next = at + 1 < places.len();
        let facts = (place > 0).then_some(&model.facts);
        let retry = if has_next { &brief } else { retry };
        // Those before a pause count, too: a run that resumes by itself does not pay again and again.
        let (mut failures, mut empty, mut paid) = (Failures::default(), 0, ask.known.paid(facts));
        if paid >= retry.most_paid() {
            let failure = before.paid_out(model, paid);
            if !has_next {
                return Err(last_fault(&before, failure, tried, asked.started_at(ask.wait)));
            }
            before.failed(&failure, true);
            continue;
        }
        loop {
            let patient = PatientAttempt { place, patience: failures.patience(retry), has_next };
            let attempted = match limited_attempt(model, ask, wire, patient).await {
                Ok(attempted) => attempted,
                Err(none) if has_next && none.limit.is_some() => {
                    failed(before.has_no_room(none, facts, &mut tried));
                    break;
                }
                Err(none) => return Err(before.no_room(none, tried, asked.started_at(ask.wait), ask.wait)),
            };
            let is_missed = model.is_missed(attempted.as_ref().err());
            let mut failure = match attempted {
                Ok(reply) => return Ok(taken(model, ask, reply, tried, asked.of(place))),
                Err(failure) => failure,
            };
            let retry = &*first_contact::rule(retry, is_missed);
            model.form.window.refused(failure.length.as_ref().and_then(|length| length.window));
            let mut delay = model
                .delay_after(&failure, &mut failures, retry, ask.wait)
                .filter(|_| !has_next || model.is_back_soon(&failure, retry));
            let mut is_taken = !has_next && failure.reply.is_some();
            if failure.is_empty_reply() {
                empty += 1;
                let is_again = empty >= ask.most_empty(retry);
                is_taken &= is_again && delay.is_some() && !ask.empty_is_answered;
                delay = delay.filter(|_| !is_again);
            }
            let kept = AttemptUsage::of_failure(model, ask, &failure, place).kept(&failure, facts);
            paid = paid.saturating_add(u32::from(kept.usage.is_some()));
            delay = delay.filter(|_| paid < retry.most_paid());
            let is_refused = failure.reply.is_some() && !failure.is_empty_reply();
            if let Some(reply) = failure.reply.take().filter(|_| is_taken) {
                return Ok(taken(model, ask, *reply, tried, asked.of(place)));
            }
            let delay_ms = delay.map_or(0, |delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            tried.push(event::FailedAttempt { delay_ms, ..kept });
            before.may_pass |= failure.transient || failure.wants_a_key();
            let enough = ask.enough.is_some_and(|enough| enough(&tried));
            before.may_ask_again |= paid < retry.most_paid() && (enough || delay.is_none());
            if enough || delay.is_none() && (failure.code == ModelFaultCode::ScriptExhausted || !has_next) {
                if is_missed {
                    failure.message.push_str(": is the server running?");
                }
                return Err(last_fault(&before, failure, tried, asked.started_at(ask.wait)));
            }
            before.failed(&failure, is_refused);
            retried(&tried, failure, delay_ms).into_iter().for_each(failed);
            let Some(delay) = delay else { break };
            PendingModelCall::rest(ask.wait, std::pin::pin!(clock::sleep(delay))).await;
        }
    }
    let none = AttemptFailure::lasting(ModelFaultCode::ModelRefused, "no model was given to ask".to_owned());
    Err(fault(none, tried, asked.started_at(ask.wait), before.may_pass))
}

/// Makes an attempt in its turn, if the spending limits of the project leave room for it. One that is longer than the declared window
/// of its model is not sent.
async fn limited_attempt(
    model: &ModelClient,
    ask: &Ask<'_>,
    wire: &mut Wire,
    patient: PatientAttempt,
) -> Result<Result<AttemptReply, AttemptFailure>, NoRoom> {
    let place = patient.place;
    if let Some(failure) = attempt_usage::over_the_window(model, ask) {
        return Ok(Err(failure));
    }
    let call = attempt_usage::to_reserve(model, ask);
    let tokens = call.most_tokens();
    // Before its turn: what waits for room in a limit keeps nobody else from the model.
    let mut reserved = PendingModelCall::reserve(ask.wait, call).await?;
    let at_gate = model.at_gate(ask.wait, tokens, patient);
    let mut pass = match &model.gate {
        Some(gate) => match gate.enter(at_gate).await {
            Ok(pass) => Some(pass),
            Err(NotLetIn::NoStore(none)) => return Err(none),
            Err(NotLetIn::Held(time)) => return Ok(Err(AttemptFailure::held_back(&model.facts.name, time))),
            Err(NotLetIn::Open { left, rule }) => {
                return Ok(Err(AttemptFailure::kept_out(&model.facts.name, left, &why_open(rule))));
            }
        },
        None => None,
    };
    PendingModelCall::is_to_be_sent(ask.wait).await?;
    pass.iter_mut().for_each(GatePass::sent);
    let may_be_paid = !matches!(model.backend, ModelBackend::Script(..));
    let mut patience = Patience::default();
    let attempted = loop {
        if may_be_paid && ask.wait.is_some() {
            let lost = AttemptUsage::lost(model, ask, place);
            reserved.sent(lost.usage, model.facts.price);
            PendingModelCall::is_under_way(ask.wait, lost);
        }
        let attempted = {
            // Pinned here and passed by reference, so that it takes its space once.
            let attempt = std::pin::pin!(model.attempt(ask, wire));
            PendingModelCall::attempt(ask.wait, attempt).await
        };
        PendingModelCall::is_over(ask.wait);
        if attempted.as_ref().err().is_none_or(|failure| failure.sent != SentPart::NoDescriptor) {
            break attempted;
        }
        // Nothing was sent: nothing counts it.
        reserved.sent(None, None);
        PendingModelCall::rest(ask.wait, Box::pin(patience.wait()).as_mut()).await;
    };
    let failed = attempted.as_ref().err().is_some_and(AttemptFailure::is_outage);
    pass.iter_mut().for_each(|pass| pass.ended(at_gate, failed));
    let pass = pass.filter(GatePass::counts_tokens);
    if !reserved.is_empty() || pass.is_some() {
        let used = match &attempted {
            Ok(reply) => attempt_usage::counted(model, ask, reply),
            Err(failure) => AttemptUsage::of_failure(model, ask, failure, place).tokens.unwrap_or_default(),
        };
        if let Some(pass) = pass {
            pass.settle(used);
        }
        Box::pin(reserved.settle(used, model.facts.price)).await?;
    }
    Ok(attempted)
}

/// The last attempt, which is followed by another one.
fn retried(tried: &[event::FailedAttempt], failure: AttemptFailure, delay_ms: u64) -> Option<RetriedAttempt> {
    let kept = tried.last().cloned()?;
    let number = u32::try_from(tried.len()).unwrap_or(u32::MAX);
    let (class, status) = (failure.class(), failure.status);
    Some(RetriedAttempt { number, reason: failure.message, class, status, delay_ms, kept })
}

/// The failure of all models, the last one's with what became of those before it.
fn last_fault(
    before: &PassedOver,
    failure: AttemptFailure,
    tried: Vec<event::FailedAttempt>,
    started_at: Instant,
) -> ModelFault {
    let fault = fault(before.with_refusal(failure), tried, started_at, before.may_pass);
    ModelFault { paid_out: fault.retryable && !before.may_ask_again, ..fault }
}

/// The failure of all models. `may_pass`: one of them may answer later.
fn fault(
    failure: AttemptFailure,
    mut failed: Vec<event::FailedAttempt>,
    started_at: Instant,
    may_pass: bool,
) -> ModelFault {
    let attempts = u32::try_from(failed.len()).unwrap_or(u32::MAX);
    let retryable = may_pass && failure.code != ModelFaultCode::ScriptExhausted;
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
        retryable,
        attempts,
        duration_ms: clock::elapsed_ms(started_at),
        failed,
        window: failure.length.as_ref().and_then(|length| length.window),
        prompt_tokens: failure.length.as_ref().and_then(|length| length.prompt),
        spending_limit: None,
        paid_out: false,
    }
}
