//! Replies: an answer read whole, or put together from the pieces of a stream.

use std::collections::{HashMap, HashSet};

use super::ModelClient;
use super::compact_json::compact;
use super::constraint::TURN;
use super::content_refusal::RefusalWords;
use super::failure::{AttemptFailure, Peer, saturated};
use super::reasoning::{BEFORE_TEXT, BEHIND_TEXT, ReasoningParts, behind_call};
use super::reply_progress::ReplyProgress;
use super::responses::items::OutputItems;
use super::stop_reason::{StopReason, StopReasons};
use super::surrogate_halves::{self, HalfJoiner};
use super::usage_fields::CountedTokens;
use loopctl_engine::event::{Finish, ModelFaultCode, Reasoning, SaidCall, Tokens};
use loopctl_lang::policy::characters::is_hidden;
use loopctl_lang::policy::json_text;

/// The reply of a model to one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AttemptReply {
    /// Its text.
    pub(super) text: String,
    /// Its native tool calls.
    pub(super) calls: Vec<SaidCall>,
    /// What the model wrote before it; where it is from is added by the one who asked.
    pub(super) reasoning: Option<Box<Reasoning>>,
    /// Why it stopped.
    pub(super) finish: Finish,
    /// What the provider says of a refusal; nothing for other replies.
    pub(super) refusal: String,
    /// What the provider counted.
    pub(super) usage: Option<Tokens>,
    /// The model that the provider names.
    pub(super) response_model: Option<String>,
    /// The milliseconds from the request to the first piece of a streamed reply.
    pub(super) time_to_first_token_ms: Option<u64>,
}

impl AttemptReply {
    /// The bytes that the model wrote: text, calls and reasoning that can be read.
    pub(super) fn written(&self) -> usize {
        let thought = self.reasoning.as_ref().map_or(0, |reasoning| reasoning.text.len());
        self.calls.iter().fold(self.text.len().saturating_add(thought), |sum, call| sum.saturating_add(call.size()))
    }

    /// The reply, unless one of its calls lost its name: then nobody knows what else of it was lost.
    ///
    /// # Errors
    /// When some of its calls have a name, and some have none.
    pub(super) fn unless_torn(self, model: &ModelClient) -> Result<Self, AttemptFailure> {
        let is_nameless = |call: &SaidCall| call.name.trim().is_empty();
        if !self.calls.iter().any(is_nameless) || self.calls.iter().all(is_nameless) {
            return Ok(self);
        }
        let name = &model.facts.name;
        let failure = AttemptFailure::protocol(format!("a call in the reply of the model {name:?} has no name"));
        Err(AttemptFailure { usage: self.usage, written: Some(saturated(self.written())), ..failure })
    }

    /// The reply, unless the model or its provider refused: then another model may answer.
    ///
    /// # Errors
    /// When it was refused. The failure has the reply.
    pub(super) fn unless_refused(mut self, model: &ModelClient) -> Result<Self, AttemptFailure> {
        if self.finish != Finish::Filtered {
            return Ok(self);
        }
        let mut message = format!("the model {:?} or its provider refused to reply", model.facts.name);
        if !self.refusal.is_empty() {
            message.push_str(": ");
            message.push_str(&self.refusal);
        }
        let failure = AttemptFailure::lasting(ModelFaultCode::ModelRefused, message);
        let written = Some(saturated(self.written()));
        // What came of a reply that was withheld is not carried out, and is no answer.
        self.calls.clear();
        Err(AttemptFailure { usage: self.usage, written, reply: Some(Box::new(self)), ..failure })
    }

    /// The reply, unless it has nothing to say: then it is a fault, and the same question may well be
    /// answered when it is asked again. `may_call`: who asks takes calls, too; else a call alone is no reply.
    ///
    /// # Errors
    /// When the reply is empty, and the provider gives no reason for it. The failure has the reply.
    pub(super) fn unless_empty(mut self, model: &ModelClient, may_call: bool) -> Result<Self, AttemptFailure> {
        // Nobody sees a text of such characters alone.
        let says_nothing = self.text.chars().all(|letter| letter.is_whitespace() || is_hidden(letter));
        if self.finish != Finish::Stop || !says_nothing || may_call && !self.calls.is_empty() {
            return Ok(self);
        }
        self.text.clear();
        let but = match (self.calls.is_empty(), self.reasoning.is_some()) {
            (false, _) => " but for a call, and no tool was offered",
            (true, true) => " but for its reasoning",
            (true, false) => "",
        };
        let failure = AttemptFailure::protocol(format!("the reply of the model {:?} is empty{but}", model.facts.name));
        let written = Some(saturated(self.written()));
        Err(AttemptFailure { usage: self.usage, written, reply: Some(Box::new(self)), ..failure })
    }
}

/// Why an answer could not be read.
#[derive(Debug)]
pub(super) enum UnreadableReply {
    /// It is not JSON, or of other types.
    Json(serde_json::Error),
    /// A field is not there.
    Missing(&'static str),
    /// It reports an error.
    Failed(AttemptFailure),
}

impl From<serde_json::Error> for UnreadableReply {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<AttemptFailure> for UnreadableReply {
    fn from(failure: AttemptFailure) -> Self {
        Self::Failed(failure)
    }
}

/// An answer of success that can't be read.
pub(super) fn garbage(peer: &Peer, kind: Option<&str>, unread: UnreadableReply) -> AttemptFailure {
    let what = match unread {
        UnreadableReply::Failed(failure) => return failure,
        UnreadableReply::Missing(field) => format!("it has no {field}"),
        UnreadableReply::Json(error) => peer.clean(&error.to_string()),
    };
    let kind = match kind {
        Some(kind) if !kind.to_ascii_lowercase().contains("json") => format!(", which is {},", peer.clean(kind)),
        _ => String::new(),
    };
    // Another server, or another page of it, answers at a wrong address.
    AttemptFailure::protocol(format!(
        "the answer of {}{kind} is no reply of a model: {what} (is base_url right?)",
        peer.name
    ))
}

/// The bytes of the shortest text that, said twice in two pieces, is taken for one: a model hardly writes so much twice.
const SAID_AGAIN: usize = 32;
/// The same for a piece that comes with the reason to stop: that is where some servers say all of it once more.
const SAID_AGAIN_AT_END: usize = 8;

/// What has come of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamedReply {
    text: String,
    /// How many pieces of the text came.
    pieces: usize,
    /// A piece that is the whole text before it: some servers say all of it once more at the end.
    again: String,
    /// What was shown of the text, when the last event said all of it again.
    shown: String,
    /// Whether a half of a sign came, which a mark takes the place of.
    has_halves: bool,
    joiner: HalfJoiner,
    /// The items of a response, until its last event.
    pub(super) output_items: OutputItems,
    /// The native calls, each with its index in the reply.
    calls: Vec<(u64, SaidCall)>,
    /// The position of the last call with each index: a server may send very many.
    places: HashMap<u64, usize>,
    /// The position of the last call that began with each id.
    named: HashMap<String, usize>,
    /// The bytes of the calls.
    called: usize,
    /// Whether the input of the last call came as JSON that its server had read, and nothing followed it: where such a
    /// reply was cut off, nobody sees whether that input is whole.
    ends_in_read_call: bool,
    /// What came in choices that nobody asked for: some servers put the calls of a reply there.
    beside: Option<Box<StreamedReply>>,
    /// The bytes of calls and reasoning that come again as a whole.
    announced: usize,
    /// The reasoning.
    pub(super) reasoning: ReasoningParts,
    /// Why the model stopped, once it is known.
    stopped: Option<StopReason>,
    /// What was counted.
    counted: CountedTokens,
    /// The model that the provider names.
    pub(super) response_model: Option<String>,
    /// Whether it gave its reason to refuse in place of a reply.
    pub(super) refused: bool,
    /// What the provider says of a refusal.
    pub(super) refusal: RefusalWords,
    /// Whether the stream's last event came.
    pub(super) ended: bool,
    /// The id of the message whose pieces come.
    pub(super) message_id: Option<String>,
    /// The blocks of calls that began with an input. Pieces that follow say it again.
    pub(super) begun_whole: HashSet<u64>,
    /// The blocks that are passed over, by their indices: what a server runs itself.
    pub(super) passed_over: HashSet<u64>,
}

impl StreamedReply {
    /// Adds a text.
    pub(super) fn add(&mut self, text: &str) {
        self.ends_in_read_call &= text.is_empty();
        if self.has_halves {
            self.joiner.add(&mut self.text, text);
        } else {
            self.text.push_str(text);
        }
    }

    /// Adds a piece of the text. One that says again all that came before it counts only when more text follows it.
    pub(super) fn add_piece(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let again = std::mem::take(&mut self.again);
        self.add(&again);
        let is_at_end = self.has_stopped() && (self.pieces > 1 || piece.len() >= SAID_AGAIN_AT_END);
        if piece == self.text && (is_at_end || piece.len() >= SAID_AGAIN) {
            piece.clone_into(&mut self.again);
        } else {
            self.add(piece);
        }
        self.pieces = self.pieces.saturating_add(1);
    }

    /// From now on texts may have marks in the place of halves of signs.
    pub(super) fn expect_halves(&mut self) {
        self.has_halves = true;
        self.output_items.has_halves = true;
    }

    /// The last event says all again: what came before it only stays shown.
    pub(super) fn say_again(&mut self) {
        self.announced = self.announced.max(self.called.saturating_add(self.reasoning.written()));
        self.shown = std::mem::take(&mut self.text);
        self.joiner = HalfJoiner::default();
        self.calls.clear();
        self.places.clear();
        self.named.clear();
        self.reasoning = ReasoningParts::default();
        self.refused = false;
        self.refusal = RefusalWords::default();
    }

    /// Counts a piece of what comes again as a whole.
    pub(super) fn announce(&mut self, piece: &str) {
        self.announced = self.announced.saturating_add(piece.len());
    }

    /// The text so far; that of a turn for which the model must call a tool is what it calls it with.
    pub(super) fn text_so_far(&self, is_turn: bool) -> &str {
        match self.calls.as_slice() {
            [(_, call)] if is_turn && self.text.is_empty() && call.name == TURN => &call.arguments,
            // It only grows.
            _ if !self.text.starts_with(&self.shown) => &self.shown,
            _ => &self.text,
        }
    }

    /// The bytes that the model has written so far: text, calls and reasoning that can be read.
    pub(super) fn written(&self) -> usize {
        let beside = self.called.saturating_add(self.reasoning.written());
        let written = self.text.len().max(self.shown.len()).saturating_add(beside.max(self.announced));
        self.beside.as_ref().map_or(written, |beside| written.saturating_add(beside.written()))
    }

    /// How much of it has come.
    pub(super) fn progress(&self) -> ReplyProgress {
        ReplyProgress { has_stopped: self.has_stopped(), written: self.written(), counted: self.output_tokens() }
    }

    /// What came in choices that nobody asked for.
    pub(super) fn beside(&mut self) -> &mut Self {
        self.beside.get_or_insert_default()
    }

    /// Adds a piece of a call. Servers differ: an index may be missing, or the same for all calls; the
    /// name may come once, in parts, or again with each piece; a piece without a name may have the id of its call, or
    /// one of its own.
    pub(super) fn add_call(&mut self, index: Option<u64>, piece: SaidCall) {
        self.called = self.called.saturating_add(piece.name.len()).saturating_add(piece.arguments.len());
        self.ends_in_read_call = false;
        let place = match index {
            _ if piece.name.is_empty() && self.is_of_known_call(index, &piece.id) => self.named.get(&piece.id).copied(),
            Some(index) => self.places.get(&index).copied(),
            None => self.calls.len().checked_sub(1),
        };
        let known = place.and_then(|place| self.calls.get_mut(place));
        let Some((_, call)) = known.filter(|(_, call)| !is_another_call(call, &piece, index.is_some())) else {
            let index = index.or_else(|| self.calls.last().map(|(index, _)| *index)).unwrap_or(0);
            self.places.insert(index, self.calls.len());
            if !piece.id.is_empty() {
                self.named.insert(piece.id.clone(), self.calls.len());
            }
            self.calls.push((index, piece));
            return;
        };
        if call.id.is_empty() {
            call.id = piece.id;
        }
        if call.name != piece.name {
            call.name.push_str(&piece.name);
        }
        add_arguments(&mut call.arguments, &piece.arguments);
    }

    /// The arguments of the call with this index begin again.
    pub(super) fn begin_arguments_again(&mut self, index: u64) {
        let place = self.places.get(&index).copied();
        if let Some((_, call)) = place.and_then(|place| self.calls.get_mut(place)) {
            call.arguments.clear();
        }
    }

    /// Whether this is the id of a call that came under this index, or under any one where a piece has no index.
    fn is_of_known_call(&self, index: Option<u64>, id: &str) -> bool {
        let call = self.named.get(id).and_then(|place| self.calls.get(*place));
        call.is_some_and(|(known, _)| index.is_none_or(|index| index == *known))
    }

    /// Takes in what was counted.
    pub(super) fn count(&mut self, counted: CountedTokens) {
        self.counted.add(counted);
    }

    /// The tokens that were counted of what the model wrote.
    pub(super) fn output_tokens(&self) -> Option<u64> {
        self.counted.written().filter(|tokens| *tokens > 0)
    }

    /// Adds a call that came whole.
    pub(super) fn add_whole_call(&mut self, call: SaidCall) {
        self.called = self.called.saturating_add(call.name.len()).saturating_add(call.arguments.len());
        let place = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        self.calls.push((place, call));
        self.ends_in_read_call = false;
    }

    /// The last call has an input that its server had read as JSON.
    pub(super) fn end_in_read_call(&mut self) {
        self.ends_in_read_call = true;
    }

    /// Whether the reply says how much the model wrote, which is known at its end.
    pub(super) fn is_counted(&self) -> bool {
        self.output_tokens().is_some()
    }

    /// Whether a call has come.
    pub(super) fn has_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The position in the reply of the next piece of its reasoning.
    pub(super) fn place(&self) -> usize {
        match self.calls.len().checked_sub(1) {
            Some(last) => behind_call(last),
            None if self.text.is_empty() => BEFORE_TEXT,
            None => BEHIND_TEXT,
        }
    }

    /// Takes in the provider's word for why the model stopped: it is the category of a refusal for which there is no
    /// better one.
    pub(super) fn stop_with(&mut self, word: &str, reasons: &StopReasons) {
        let Some(reason) = StopReason::of(word, reasons) else { return };
        if reason == StopReason::Filtered && !word.trim().eq_ignore_ascii_case("refusal") {
            self.refusal.add(word);
        }
        self.stop(reason);
    }

    /// Takes in why the model stopped.
    pub(super) fn stop(&mut self, reason: StopReason) {
        if self.stopped.as_ref().is_none_or(|known| *known < reason) {
            self.stopped = Some(reason);
        }
    }

    /// Whether any part of a reply has come: what a server says of the model, or counts, is one.
    pub(super) fn has_begun(&self) -> bool {
        let is_named = self.response_model.is_some() || self.usage().is_some();
        is_named || self.has_stopped() || self.written() > 0 || !self.output_items.is_empty()
    }

    /// Whether it is known why the model stopped.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Whether a call has come.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether its provider withheld it.
    pub(super) fn is_filtered(&self) -> bool {
        self.stopped == Some(StopReason::Filtered)
    }

    /// Whether the most tokens were reached.
    pub(super) fn is_cut_off(&self) -> bool {
        self.stopped == Some(StopReason::Length)
    }

    /// What the provider counted.
    pub(super) fn usage(&self) -> Option<Tokens> {
        self.counted.tokens()
    }

    /// The reply that came as one answer: it is whole, and some servers give no reason to stop with it.
    ///
    /// # Errors
    /// When it was broken off.
    pub(super) fn in_one_answer(mut self, peer: &Peer) -> Result<AttemptReply, AttemptFailure> {
        self.stopped.get_or_insert(StopReason::Stop);
        self.whole(peer)
    }

    /// The whole.
    ///
    /// # Errors
    /// When it was broken off, or the stream was cut before its end.
    pub(super) fn whole(mut self, peer: &Peer) -> Result<AttemptReply, AttemptFailure> {
        self.take_calls_beside();
        self.drop_calls_made_twice();
        if self.is_cut_off() && self.ends_in_read_call {
            // Nothing is called then.
            self.calls.last_mut().into_iter().for_each(|(_, call)| call.arguments.clear());
        }
        let usage = self.usage();
        // One that says how it ended was made to its end.
        let written = self.has_stopped().then(|| saturated(self.written()));
        let failed = |failure| Err(AttemptFailure { usage, written, ..failure });
        let name = &peer.name;
        let finish = match self.stopped {
            None if !self.ended => {
                return failed(AttemptFailure::unreachable(format!("the answer of {name} was cut off")));
            }
            None => {
                let failure = format!("the answer of {name} was cut off: it ends without a reason to stop");
                return failed(AttemptFailure::protocol(failure));
            }
            Some(StopReason::Broken(words)) => {
                let failure = format!("the model of {name} stopped with {}", peer.clean(&words));
                return failed(AttemptFailure::protocol(failure));
            }
            Some(StopReason::Calls) if self.calls.is_empty() && !self.refused => {
                let failure = format!("the model of {name} stopped to call a tool, and its reply has no call");
                return failed(AttemptFailure::protocol(failure));
            }
            _ if self.refused => Finish::Filtered,
            Some(StopReason::Stop | StopReason::Calls) => Finish::Stop,
            Some(StopReason::Length) => Finish::Length,
            Some(StopReason::Filtered) => Finish::Filtered,
        };
        let Self { mut text, mut calls, mut joiner, has_halves, .. } = self;
        joiner.end(&mut text);
        let refusal = match self.refusal.as_str() {
            _ if finish != Finish::Filtered => String::new(),
            // The model's own words.
            "" if self.refused => peer.clean(&text),
            words => peer.clean(words),
        };
        calls.sort_by_key(|(index, _)| *index);
        let mut calls: Vec<SaidCall> = calls.into_iter().map(|(_, call)| call).collect();
        for SaidCall { id, name, arguments } in &mut calls {
            if has_halves {
                [id, name, &mut *arguments].into_iter().for_each(surrogate_halves::join);
            }
            surrogate_halves::repair(arguments);
        }
        Ok(AttemptReply {
            text,
            calls,
            reasoning: self.reasoning.sealed(has_halves),
            finish,
            refusal,
            usage,
            response_model: self.response_model,
            time_to_first_token_ms: None,
        })
    }
}

impl StreamedReply {
    /// Takes the calls of a choice that nobody asked for, where that choice says that it calls and the first one has no
    /// call.
    fn take_calls_beside(&mut self) {
        if let Some(beside) = self.beside.take().filter(|_| self.calls.is_empty() && !self.refused)
            && beside.stopped == Some(StopReason::Calls)
        {
            self.calls = beside.calls;
        }
    }

    /// Drops a call that has the id, name and input of an earlier one: it is that one, which a server wrote twice. Two
    /// calls of one id with other inputs are two.
    fn drop_calls_made_twice(&mut self) {
        let mut ids = HashSet::new();
        if self.calls.iter().all(|(_, call)| call.id.is_empty() || ids.insert(call.id.as_str())) {
            return;
        }
        let mut seen = HashSet::new();
        let is_again = |(_, call): &(u64, SaidCall)| {
            !call.id.is_empty() && !seen.insert((call.id.clone(), call.name.clone(), compact(&call.arguments)))
        };
        let again: Vec<bool> = self.calls.iter().map(is_again).collect();
        self.reasoning.drop_calls(&again);
        let mut again = again.into_iter();
        self.calls.retain(|_| again.next() != Some(true));
    }
}

/// Adds a piece of the input of a call. Some servers end with all that they have sent; some begin with an empty object, and
/// send the real one behind it.
fn add_arguments(arguments: &mut String, piece: &str) {
    let empty = arguments.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    if empty.is_some_and(|within| within.trim().is_empty()) && piece.trim_start().starts_with('{') {
        piece.clone_into(arguments);
    } else if arguments != piece || !is_object(piece) {
        arguments.push_str(piece);
    }
}

/// Whether a piece is of another call than this one.
fn is_another_call(call: &SaidCall, piece: &SaidCall, has_index: bool) -> bool {
    if piece.name.is_empty() && has_index {
        return false;
    }
    if !piece.id.is_empty() && !call.id.is_empty() {
        return piece.id != call.id;
    }
    // Calls without ids, all of one index, each of them whole.
    !piece.name.is_empty()
        && call.arguments != piece.arguments
        && call.arguments.ends_with('}')
        && is_object(&piece.arguments)
}

/// Whether a text is the JSON of an object.
fn is_object(text: &str) -> bool {
    text.starts_with('{') && json_text::read::<serde::de::IgnoredAny>(text).is_ok()
}

/// What has come of a reply that is under way.
#[derive(Debug, Clone, Copy)]
pub struct PartialReply<'a> {
    /// Its text so far. It only grows, until the attempt fails.
    pub text: &'a str,
    /// The bytes that the model has written: text, calls, and reasoning that can be read.
    pub written: usize,
    /// The tokens of them that the provider has counted. Most count at the end alone.
    pub output_tokens: Option<u64>,
    /// The milliseconds from the request to the first piece.
    pub time_to_first_token_ms: u64,
}
