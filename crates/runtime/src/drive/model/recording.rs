//! A recording that is played: what models said, what tools gave, and a record of what they are asked now.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize as _;
use serde::de::value::StrDeserializer;
use serde_json::Value;

use super::failure::AttemptFailure;
use super::reply::AttemptReply;
use super::{Ask, wire};
use loopctl_engine::conversation::{Message, Role};
use loopctl_engine::digest::Digest;
use loopctl_engine::event::{Finish, ModelFaultCode, Reasoning, SaidCall, Tokens};
use loopctl_lang::language::recording::{
    AskDigest, RecordedAsk, RecordedCall, RecordedFailure, RecordedReply, RecordedTokens, Recording, RecordingEntry,
};
use loopctl_lang::policy::window::RefusedLength;

/// Longer than any run may take.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 3600);

/// A recording, as a stage plays it.
pub struct RecordedPlayer {
    /// The id of the run that plays it: the ids of its sub-runs begin with it.
    root: String,
    /// The requests of each run.
    asks: BTreeMap<String, Vec<RecordedAsk>>,
    /// The outcomes of each call: all but the last one are attempts that failed.
    calls: BTreeMap<(String, String), Vec<RecordedCall>>,
    heard: Mutex<HeardRequests>,
}

/// What models were asked while it was played.
#[derive(Default)]
struct HeardRequests {
    asks: BTreeMap<(String, usize), AskDigest>,
    texts: BTreeMap<String, Arc<str>>,
    /// The messages of the last request of each run, and their generation.
    last: BTreeMap<String, (u32, Vec<String>)>,
    /// How many outcomes of each call were given.
    given: BTreeMap<(String, String), usize>,
    inputs: Vec<OtherInput>,
}

/// A call with another input than the recorded one.
#[derive(Debug, Clone)]
pub struct OtherInput {
    /// The run that made it.
    pub run: String,
    /// Which call.
    pub at: String,
    /// The tool.
    pub action: String,
    /// The input that was recorded.
    pub recorded: Value,
    /// The input now.
    pub now: Value,
}

impl std::fmt::Debug for RecordedPlayer {
    /// How many runs it plays: what was said in them may be secret.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RecordedPlayer").field("runs", &self.asks.len()).finish_non_exhaustive()
    }
}

impl RecordedPlayer {
    /// Plays a recording in the run of this id.
    pub fn new(recording: &Recording, root: &str) -> Self {
        let (mut asks, mut calls) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for entry in &recording.entries {
            match entry {
                RecordingEntry::Ask(ask) => asks.entry(ask.ask.run.clone()).or_default().push(ask.clone()),
                RecordingEntry::Call(call) => {
                    let key = (call.call.run.clone(), call.call.at.clone());
                    calls.entry(key).or_default().push(call.clone());
                }
                RecordingEntry::Decision(_) => {}
            }
        }
        Self { root: root.to_owned(), asks, calls, heard: Mutex::default() }
    }

    fn heard(&self) -> MutexGuard<'_, HeardRequests> {
        // Each change leaves the record whole.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What models were asked, by the run and the place of the request in it.
    pub fn asked(&self) -> BTreeMap<(String, usize), AskDigest> {
        self.heard().asks.clone()
    }

    /// The messages that models were sent, by their digests; not those of the model itself.
    pub fn texts(&self) -> BTreeMap<String, Arc<str>> {
        self.heard().texts.clone()
    }

    /// How many requests of each run were recorded.
    pub fn recorded(&self) -> impl Iterator<Item = (&String, usize)> {
        self.asks.iter().map(|(run, asks)| (run, asks.len()))
    }

    /// The outcome of the next attempt at a call, if it is one of this tool.
    pub fn call(&self, run_id: &str, at: &str, action: &str, input: &Value) -> Option<RecordedCall> {
        let run = self.path(run_id);
        let key = (run.clone(), at.to_owned());
        let outcomes = self.calls.get(&key)?;
        let mut heard = self.heard();
        let given = heard.given.entry(key).or_default();
        let outcome = outcomes.get(*given).or_else(|| outcomes.last()).filter(|call| call.call.action == action)?;
        *given = given.saturating_add(1);
        if !is_alike(&outcome.call.input, input) {
            let (recorded, now) = (outcome.call.input.clone(), input.clone());
            heard.inputs.push(OtherInput { run, at: at.to_owned(), action: action.to_owned(), recorded, now });
        }
        Some(outcome.clone())
    }

    /// The calls with another input than the recorded one.
    pub fn other_inputs(&self) -> Vec<OtherInput> {
        self.heard().inputs.clone()
    }

    /// Whether an outcome of this call follows the one that was given last.
    pub fn has_more(&self, run_id: &str, at: &str) -> bool {
        let key = (self.path(run_id), at.to_owned());
        let given = self.heard().given.get(&key).copied().unwrap_or_default();
        self.calls.get(&key).is_some_and(|outcomes| outcomes.len() > given)
    }

    /// A run by its calls and steps below the first one.
    fn path(&self, run_id: &str) -> String {
        run_id.strip_prefix(&self.root).unwrap_or(run_id).trim_start_matches('.').to_owned()
    }

    /// Says the reply at `position` of a run, and continues to the next one.
    pub(super) async fn say(
        &self,
        run_id: &str,
        position: &mut usize,
        ask: &Ask<'_>,
    ) -> Result<AttemptReply, AttemptFailure> {
        let run = self.path(run_id);
        self.hear(&run, *position, ask);
        let recorded = self.asks.get(&run).map(Vec::as_slice).unwrap_or_default();
        let Some(entry) = recorded.get(*position) else {
            let call = position.saturating_add(1);
            let count = recorded.len();
            let message = format!("the script has {count} replies in the recording; call {call} was asked for");
            return Err(AttemptFailure::lasting(ModelFaultCode::ScriptExhausted, message));
        };
        *position = position.saturating_add(1);
        let took = Duration::from_millis(entry.took_ms);
        let is_never = entry.reply.is_none() && entry.failed.is_none();
        let wait = if is_never { ENDLESS } else { took };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        match (&entry.reply, &entry.failed) {
            (Some(reply), _) => Ok(said(reply)),
            (None, Some(failed)) => Err(failure(failed)),
            (None, None) => Err(AttemptFailure::unreachable("the model did not answer".to_owned())),
        }
    }

    /// Notes what is asked.
    fn hear(&self, run: &str, position: usize, ask: &Ask<'_>) {
        let conversation = ask.conversation;
        let mut heard = self.heard();
        let (generation, mut messages) = heard.last.remove(run).unwrap_or_default();
        let known = if generation == conversation.generation { messages.len() } else { 0 };
        let known = known.min(conversation.messages.len());
        messages.truncate(known);
        for message in conversation.messages.iter().skip(known) {
            let digest = digest_of(message);
            if message.role != Role::Assistant {
                heard.texts.entry(digest.clone()).or_insert_with(|| Arc::clone(&message.text));
            }
            messages.push(digest);
        }
        let digest = AskDigest {
            run: run.to_owned(),
            loop_name: ask.program.map(|program| program.name.clone()).unwrap_or_default(),
            request: u32::try_from(position).unwrap_or(u32::MAX).saturating_add(1),
            keeps: u32::try_from(known).unwrap_or(u32::MAX),
            messages: messages.iter().skip(known).cloned().collect(),
            tools: wire::digest_of_tools(ask),
            sampling: digest_of_settings(ask),
        };
        heard.last.insert(run.to_owned(), (conversation.generation, messages));
        heard.asks.insert((run.to_owned(), position), digest);
    }
}

/// Whether an input is the recorded one: what was hidden in it may be anything.
fn is_alike(recorded: &Value, input: &Value) -> bool {
    match (recorded, input) {
        (Value::String(text), _) if text.starts_with("[hidden:") && text.ends_with(']') => true,
        (Value::String(text), Value::String(_)) if text.contains("[hidden:") => true,
        (Value::Object(recorded), Value::Object(input)) => {
            let is_named = |(name, value)| input.get(name).is_some_and(|other| is_alike(value, other));
            recorded.len() == input.len() && recorded.iter().all(is_named)
        }
        (Value::Array(recorded), Value::Array(input)) => {
            recorded.len() == input.len() && recorded.iter().zip(input).all(|(one, other)| is_alike(one, other))
        }
        _ => recorded == input,
    }
}

/// The first half of a digest: enough for the messages of a run, and short to read.
pub(super) fn short(digest: Digest) -> String {
    digest.to_string().chars().take(16).collect()
}

fn digest_of(message: &Message) -> String {
    let mut digest = Digest::new();
    digest.add(match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    });
    digest.add(&message.text);
    for call in message.calls() {
        digest.add(&call.name);
        digest.add(&call.arguments);
    }
    for file in message.files() {
        digest.add(&file.account());
    }
    short(digest)
}

fn digest_of_settings(ask: &Ask<'_>) -> String {
    let mut digest = Digest::new();
    digest.add(&ask.max_tokens.to_string());
    // Recordings of earlier versions have this one where no temperature is written.
    digest.add(&ask.temperature.unwrap_or(0.7).to_string());
    ask.stop.iter().for_each(|stop| digest.add(stop));
    short(digest)
}

fn said(reply: &RecordedReply) -> AttemptReply {
    let raw = reply.raw.clone().unwrap_or_default();
    let reasoning = (!reply.reasoning.is_empty() || !raw.sealed.is_empty())
        .then(|| Box::new(Reasoning { origin: raw.origin, sealed: raw.sealed, text: reply.reasoning.clone() }));
    let calls = reply.calls.iter();
    AttemptReply {
        text: reply.text.clone(),
        calls: calls
            .map(|call| SaidCall { id: call.id.clone(), name: call.name.clone(), arguments: call.arguments.clone() })
            .collect(),
        reasoning,
        refusal: reply.refusal.clone().unwrap_or_default(),
        finish: match reply.finish.as_deref() {
            Some("length") => Finish::Length,
            Some("filtered") => Finish::Filtered,
            _ => Finish::Stop,
        },
        usage: reply.usage.map(tokens),
        ..AttemptReply::default()
    }
}

/// The tokens of a recording, as the engine counts them.
pub fn tokens(recorded: RecordedTokens) -> Tokens {
    let RecordedTokens { input, output, cached_input, cache_write, reasoning, .. } = recorded;
    Tokens { input, output, cached_input, cache_write, reasoning }
}

fn failure(failed: &RecordedFailure) -> AttemptFailure {
    let code = StrDeserializer::<serde::de::value::Error>::new(&failed.code);
    let code = ModelFaultCode::deserialize(code).unwrap_or(ModelFaultCode::ModelUnreachable);
    let length = (failed.window.is_some() || failed.prompt_tokens.is_some())
        .then(|| Box::new(RefusedLength { window: failed.window, prompt: failed.prompt_tokens }));
    let usage = failed.usage.map(tokens);
    let failure = AttemptFailure::lasting(code, failed.message.clone());
    // A key that was refused: the run may be retried when there is another one, and the request was not sent again.
    let wants_a_key = failed.retryable && code == ModelFaultCode::ModelRefused;
    let status = wants_a_key.then_some(401);
    AttemptFailure { transient: failed.retryable && !wants_a_key, status, usage, length, ..failure }
}
