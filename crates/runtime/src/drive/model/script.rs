//! Scripts: what a scripted model says, and what scripted tools answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::Ask;
use super::failure::{AttemptFailure, Peer};
use super::recording::RecordedPlayer;
use super::reply::AttemptReply;
use crate::drive::secret::Vault;
use crate::drive::stage::ReplyFailure;
use crate::drive::{clock, retry};
use loopctl_engine::dialect::{self, Saying};
use loopctl_engine::event::{Finish, ModelFaultCode, Reply, Tokens, ToolFault, ToolResult};
use loopctl_lang::language;
use loopctl_lang::language::react::Dialect;
use loopctl_lang::language::scenario::ToolFailure;
use loopctl_lang::language::script::{ANSWER, CALL, CALLS, ONE_OF_CALLS, REFUSAL, ReplyForm, ScriptCase, TEXT};
use loopctl_lang::program::scripted_case::{self, InputCondition};
use loopctl_lang::program::{LoopProgram, builtin};

/// A script, shared by the model that it plays and the tools that it answers for, and by all runs:
/// how far a run is, its `Wire` knows.
pub struct ScriptPlayer {
    replies: Vec<ScriptedReply>,
    /// The replies for certain inputs: the first case that fits takes the place of `replies`.
    cases: Vec<PlayedCase>,
    /// The replies of the loops that are called, by their names.
    loops: BTreeMap<String, Vec<ScriptedReply>>,
    tools: BTreeMap<String, Vec<ToolResult>>,
    /// The recording that is played in place of the replies.
    recorded: Option<Arc<RecordedPlayer>>,
}

/// The replies for a certain input.
struct PlayedCase {
    when: Map<String, Value>,
    condition: InputCondition,
    replies: Vec<ScriptedReply>,
}

/// Which replies of a script a run takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptPart<'a> {
    /// The loop, when another one called it.
    pub(super) loop_name: Option<&'a str>,
    /// The run that asks.
    pub(super) run_id: &'a str,
    /// Whether the script takes the place of every model: then its `replies` are those of the first loop
    /// alone.
    pub(super) alone: bool,
}

/// A reply of a script.
enum ScriptedReply {
    /// The model says something.
    Plain { reply: AttemptReply, delay: Duration },
    /// The model says something that each dialect writes in its own way.
    InDialect(DialectReply),
    /// The server fails.
    Fails { failure: AttemptFailure, delay: Duration },
}

/// A reply that is written in the dialect of the loop that asks.
struct DialectReply {
    /// What it means.
    saying: Saying,
    /// Its text, as it is written in the script.
    object: String,
    /// Whether that text is the dialect `json` already.
    is_json: bool,
}

impl ScriptPlayer {
    /// A script from its document. How far a resumed run is in it: [`super::Wire::skip_replies`].
    pub fn new(document: language::Script) -> Self {
        // A script's words are the author's own: no project's secrets are in them.
        let vault = Arc::new(Vault::new(BTreeMap::new(), std::path::Path::new("")));
        let peer = Peer { name: "the script".to_owned(), vault };
        let read = |replies: Vec<Value>| -> Vec<ScriptedReply> {
            let replies = replies.into_iter().enumerate();
            replies.map(|(index, reply)| ScriptedReply::read(&peer, index + 1, reply)).collect()
        };
        let replies = read(document.replies);
        let cases = document.cases.into_iter().map(|ScriptCase { when, replies }| PlayedCase {
            condition: InputCondition::new(&when),
            when,
            replies: read(replies),
        });
        let cases = cases.collect();
        let loops = document.loops.into_iter().map(|(name, replies)| (name, read(replies))).collect();
        let tools = document.tools.into_iter();
        let tools = tools.map(|(name, answers)| (name, answers.into_iter().map(result_of).collect())).collect();
        Self { replies, cases, loops, tools, recorded: None }
    }

    /// The same with a recording in place of the replies.
    #[must_use]
    pub fn with_recording(self, recorded: Option<Arc<RecordedPlayer>>) -> Self {
        Self { recorded, ..self }
    }

    /// The same with requests that fail before a reply is given.
    #[must_use]
    pub fn with_failures(mut self, failures: &[ReplyFailure]) -> Self {
        let mut failures = failures.to_vec();
        // From behind, so that the places of the others stay.
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.at));
        for ReplyFailure { at, failure } in failures {
            if at <= self.replies.len() {
                self.replies.insert(at, ScriptedReply::failing(failure));
            }
        }
        self
    }

    /// What the `nth` call of a tool in its run, from 0, gives: the entry of that number, and the
    /// last one when there are no more. `None`: the script does not name the tool, so it really runs.
    pub fn tool(&self, name: &str, nth: usize) -> Option<ToolResult> {
        let answers = self.tools.get(name)?;
        let answer = answers.get(nth).or_else(|| answers.last()).cloned();
        Some(answer.unwrap_or_else(|| failed(format!("the script has no answer for {name}"))))
    }

    /// Whether the script answers for this tool.
    pub fn names_tool(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Whether it plays what was recorded.
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded.is_some()
    }

    /// How many replies it has.
    pub fn replies(&self) -> usize {
        self.replies.len()
    }

    /// The replies for an input.
    fn replies_for(&self, input: Option<&Value>) -> Result<&Vec<ScriptedReply>, AttemptFailure> {
        let case = input.and_then(|input| self.cases.iter().find(|case| case.condition.fits(input)));
        match case {
            Some(case) => Ok(&case.replies),
            None if self.cases.is_empty() || !self.replies.is_empty() => Ok(&self.replies),
            None => {
                let message = match input {
                    Some(_) => scripted_case::no_case(self.cases.iter().map(|case| &case.when)),
                    None => {
                        "the script has no `replies`: a question of an `llm` action is answered with them".to_owned()
                    }
                };
                Err(AttemptFailure::lasting(ModelFaultCode::ScriptExhausted, message))
            }
        }
    }

    /// Says the reply at `position`, and continues to the next one.
    pub(super) async fn say(
        &self,
        part: ScriptPart<'_>,
        position: &mut usize,
        ask: &Ask<'_>,
    ) -> Result<AttemptReply, AttemptFailure> {
        if let Some(recorded) = &self.recorded {
            return recorded.say(part.run_id, position, ask).await;
        }
        let own = part.loop_name.and_then(|name| self.loops.get(name));
        if let (Some(name), None, true) = (part.loop_name, own, part.alone) {
            let message = format!("the script has no replies for the loop `{name}`: give them under `loops`");
            return Err(AttemptFailure::lasting(ModelFaultCode::ScriptExhausted, message));
        }
        let replies = match own {
            Some(own) => own,
            None => self.replies_for(ask.input)?,
        };
        let Some(entry) = replies.get(*position) else {
            let (count, call) = (replies.len(), position.saturating_add(1));
            let replies = if count == 1 { "reply" } else { "replies" };
            let of = own.and(part.loop_name).map_or_else(String::new, |name| format!(" for the loop `{name}`"));
            let message = format!("the script has {count} {replies}{of}; call {call} was asked for");
            return Err(AttemptFailure::lasting(ModelFaultCode::ScriptExhausted, message));
        };
        *position = position.saturating_add(1);
        if let ScriptedReply::Plain { delay, .. } | ScriptedReply::Fails { delay, .. } = entry
            && !delay.is_zero()
        {
            tokio::time::sleep(*delay).await;
        }
        match entry {
            ScriptedReply::Fails { failure, .. } => Err(failure.clone()),
            ScriptedReply::Plain { reply, .. } => Ok(reply.clone()),
            ScriptedReply::InDialect(reply) => reply.for_loop(ask, *position),
        }
    }
}

impl DialectReply {
    /// The reply as the loop that asks reads it. A lone question has no dialect: it is given the object as it is
    /// written.
    fn for_loop(&self, ask: &Ask<'_>, number: usize) -> Result<AttemptReply, AttemptFailure> {
        let as_written = || AttemptReply { text: self.object.clone(), ..AttemptReply::default() };
        let Some(program) = ask.program else { return Ok(as_written()) };
        self.in_dialect(program, number)
    }

    /// The reply in the dialect of a loop.
    fn in_dialect(&self, program: &LoopProgram, number: usize) -> Result<AttemptReply, AttemptFailure> {
        let as_written = || AttemptReply { text: self.object.clone(), ..AttemptReply::default() };
        let dialect = program.properties.dialect;
        if dialect == Dialect::Json && self.is_json {
            return Ok(as_written());
        }
        let Some((text, mut calls)) = dialect::say(dialect, &self.saying) else {
            let message =
                format!("reply {number} of the script has several calls, and the dialect `json` has one a turn");
            return Err(AttemptFailure::lasting(ModelFaultCode::ModelProtocol, message));
        };
        for call in &mut calls {
            call.name = program.called.sendable(&call.name).into_owned();
        }
        Ok(AttemptReply { text, calls, ..AttemptReply::default() })
    }
}

/// A reply as an entry of a script says it, in the dialect of a loop.
///
/// # Errors
/// When the entry is no reply.
pub fn reply_of(program: &LoopProgram, entry: Value) -> Result<Reply, String> {
    let vault = Arc::new(Vault::new(BTreeMap::new(), std::path::Path::new("")));
    let peer = Peer { name: "the reply".to_owned(), vault };
    let said = match ScriptedReply::read(&peer, 1, entry) {
        ScriptedReply::Plain { reply, .. } => Ok(reply),
        ScriptedReply::InDialect(reply) => reply.in_dialect(program, 1),
        ScriptedReply::Fails { failure, .. } => Err(failure),
    };
    let AttemptReply { text, calls, finish, usage, .. } = said.map_err(|failure| failure.message)?;
    let refusal = (finish == Finish::Filtered).then(Box::default);
    Ok(Reply { text, calls, finish, refusal, usage, ..Reply::default() })
}

impl ScriptedReply {
    /// Reads a reply. What is no directive is what the model says, with its digits as they are
    /// written.
    fn read(peer: &Peer, number: usize, reply: Value) -> Self {
        match reply {
            Value::String(text) => Self::plain(AttemptReply { text, ..AttemptReply::default() }),
            Value::Object(fields) if is(REFUSAL, &fields) => Self::directive(number, &fields, || fails(peer, &fields)),
            Value::Object(fields) if is(TEXT, &fields) => Self::directive(number, &fields, || says(&fields)),
            Value::Object(fields) => match saying(&fields) {
                Some(saying) => {
                    let is_json = fields.contains_key("action");
                    Self::InDialect(DialectReply { saying, object: Value::Object(fields).to_string(), is_json })
                }
                None => {
                    Self::plain(AttemptReply { text: Value::Object(fields).to_string(), ..AttemptReply::default() })
                }
            },
            other => Self::plain(AttemptReply { text: other.to_string(), ..AttemptReply::default() }),
        }
    }

    /// What a request meets that fails.
    fn failing(failure: ToolFailure) -> Self {
        // Longer than any reply may take.
        const ENDLESS: Duration = Duration::from_secs(365 * 24 * 3600);
        let fails = |failure| Self::Fails { failure, delay: Duration::ZERO };
        match failure {
            ToolFailure::Timeout => Self::Plain { reply: AttemptReply::default(), delay: ENDLESS },
            ToolFailure::Refused => fails(AttemptFailure::unreachable("the script took no connection".to_owned())),
            ToolFailure::Reset => fails(AttemptFailure::unreachable("the answer of the script was cut off".to_owned())),
            ToolFailure::NotJson => {
                fails(AttemptFailure::protocol("the answer of the script is no reply of a model".to_owned()))
            }
            ToolFailure::TooLong => fails(AttemptFailure::protocol("the answer of the script is too long".to_owned())),
            ToolFailure::Empty => Self::plain(AttemptReply::default()),
            ToolFailure::Http(status) => {
                let vault = Arc::new(Vault::new(BTreeMap::new(), std::path::Path::new("")));
                let peer = Peer { name: "the script".to_owned(), vault };
                fails(peer.status(status, None, b""))
            }
        }
    }

    fn plain(reply: AttemptReply) -> Self {
        Self::Plain { reply, delay: Duration::ZERO }
    }

    fn directive(
        number: usize,
        fields: &Map<String, Value>,
        read: impl FnOnce() -> Result<Result<AttemptReply, AttemptFailure>, &'static str>,
    ) -> Self {
        let delay = match fields.get("delay_ms").map(Value::as_u64) {
            None => Ok(Duration::ZERO),
            Some(Some(milliseconds)) => Ok(Duration::from_millis(milliseconds)),
            Some(None) => Err("delay_ms is not a whole number of milliseconds"),
        };
        match delay.and_then(|delay| Ok((delay, read()?))) {
            Ok((delay, Ok(reply))) => Self::Plain { reply, delay },
            Ok((delay, Err(failure))) => Self::Fails { failure, delay },
            Err(wrong) => {
                let message = format!("reply {number} of the script can't be used: {wrong}");
                Self::Fails {
                    failure: AttemptFailure::lasting(ModelFaultCode::ModelProtocol, message),
                    delay: Duration::ZERO,
                }
            }
        }
    }
}

/// What an object of a script says in any dialect: one call, several, or an answer. Another object is
/// text that the model writes.
fn saying(fields: &Map<String, Value>) -> Option<Saying> {
    let thought = match fields.get("thought") {
        None => String::new(),
        Some(Value::String(thought)) => thought.clone(),
        Some(_) => return None,
    };
    let call = |fields: &Map<String, Value>| {
        let input = fields.get("action_input").cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let name = fields.get("action").and_then(Value::as_str)?;
        (input.is_object() && !name.is_empty()).then(|| (name.to_owned(), input))
    };
    if is(CALL, fields) {
        return Some(Saying { thought, calls: vec![call(fields)?], answer: None });
    }
    if is(CALLS, fields) {
        let calls = fields.get("calls")?.as_array().filter(|calls| !calls.is_empty())?.iter();
        let one = |fields: &Map<String, Value>| is(ONE_OF_CALLS, fields).then(|| call(fields))?;
        let calls: Option<Vec<_>> = calls.map(|entry| one(entry.as_object()?)).collect();
        return Some(Saying { thought, calls: calls?, answer: None });
    }
    if is(ANSWER, fields) {
        let answer = fields.get("answer")?;
        // A text that a reader would take for something else becomes a call.
        let plain = |text: &&str| {
            !text.trim().is_empty() && text.trim() == *text && !text.contains(['<', '{']) && !text.contains("FINAL")
        };
        return Some(match answer.as_str().filter(plain) {
            Some(text) => Saying { thought, calls: Vec::new(), answer: Some(text.to_owned()) },
            None => {
                let input = serde_json::json!({ "answer": answer });
                Saying { thought, calls: vec![(builtin::COMPLETE.to_owned(), input)], answer: None }
            }
        });
    }
    None
}

fn is(form: ReplyForm, fields: &Map<String, Value>) -> bool {
    form.has(fields.keys().map(String::as_str))
}

/// `{"http": 429, "headers": {...}, "body": ...}`.
fn fails(peer: &Peer, fields: &Map<String, Value>) -> Result<Result<AttemptReply, AttemptFailure>, &'static str> {
    let status = fields.get("http").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let status = status.filter(|status| (100..=599).contains(status)).ok_or("http is not a status from 100 to 599")?;
    let headers = match fields.get("headers") {
        None => None,
        Some(headers) => Some(headers.as_object().ok_or("headers is not an object")?),
    };
    let texts: Vec<(String, String)> = headers
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_lowercase(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let header = |name: &str| texts.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
    let body = match fields.get("body") {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    Ok(Err(peer.status(status, retry::asked(status, header, clock::wall_ms()), body.as_bytes())))
}

/// `{"text": ..., "delay_ms": 50, "usage": {"input": 1, "output": 2}, "finish": "length"}`.
fn says(fields: &Map<String, Value>) -> Result<Result<AttemptReply, AttemptFailure>, &'static str> {
    let text = match fields.get("text") {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let finish = match fields.get("finish").map(Value::as_str) {
        None | Some(Some("stop")) => Finish::Stop,
        Some(Some("length")) => Finish::Length,
        Some(Some("filtered" | "content_filter")) => Finish::Filtered,
        Some(_) => return Err("finish is not stop, length or filtered"),
    };
    let count = |usage: &Value, name| usage.get(name).and_then(Value::as_u64);
    let usage = match fields.get("usage") {
        None => None,
        Some(usage) => Some(
            count(usage, "input")
                .zip(count(usage, "output"))
                .map(|(input, output)| Tokens { input, output, ..Tokens::default() })
                .ok_or("usage is not {\"input\": N, \"output\": N}")?,
        ),
    };
    Ok(Ok(AttemptReply { text, finish, usage, ..AttemptReply::default() }))
}

/// A tool's entry: `{"error": "..."}` is a failure, anything else the result.
pub fn result_of(entry: Value) -> ToolResult {
    match entry {
        Value::Object(fields) if fields.keys().eq(["error"]) => match fields.get("error") {
            Some(Value::String(class)) => failed(class.clone()),
            Some(other) => failed(other.to_string()),
            None => ToolResult::Ok(Value::Object(fields)),
        },
        other => ToolResult::Ok(other),
    }
}

fn failed(class: String) -> ToolResult {
    ToolResult::Failed(ToolFault { class, ..ToolFault::default() })
}
