//! The conversation: it grows at its end only. Trimming makes a new generation. One iteration is one
//! message of the model and all messages behind it up to its next one.

use std::sync::Arc;

use super::event::SaidCall;
use super::state::push_tight;

/// What the model reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Changes when messages went: what was sent before is no longer a prefix then.
    pub generation: u32,
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
    /// The bytes of all texts: what an estimate of tokens goes by.
    pub bytes: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What. Shared: many runs begin with the same system prompt.
    pub text: Arc<str>,
    /// What native tool calls need beside the text; most messages have nothing of it.
    pub native: Option<Box<Native>>,
}

/// What native tool calls need beside a message's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Native {
    /// The calls of a message of the model. Their ids differ, their names are those that providers
    /// take, and their arguments are each the strict JSON of an object.
    Calls(Vec<SaidCall>),
    /// The call whose observation this is.
    Answers {
        /// Its id.
        id: String,
        /// Whether it failed.
        failed: bool,
    },
}

impl Message {
    /// A message that is only text.
    pub fn new(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self { role, text: text.into(), native: None }
    }

    /// The native calls in it.
    pub fn calls(&self) -> &[SaidCall] {
        match self.native.as_deref() {
            Some(Native::Calls(calls)) => calls,
            _ => &[],
        }
    }

    /// Its length in bytes, with the calls.
    pub fn size(&self) -> usize {
        let native = match self.native.as_deref() {
            None => 0,
            Some(Native::Calls(calls)) => calls.iter().map(SaidCall::size).sum(),
            Some(Native::Answers { id, .. }) => id.len(),
        };
        self.text.len().saturating_add(native)
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The engine, at the beginning.
    System,
    /// The engine: observations and questions.
    User,
    /// The model.
    Assistant,
    /// The engine: the observation of one native call.
    Tool,
}

impl Conversation {
    /// Adds a message at the end.
    pub fn push(&mut self, role: Role, text: impl Into<Arc<str>>) {
        self.add(Message::new(role, text));
    }

    /// Adds what the model said, with its native calls.
    pub fn push_calls(&mut self, text: String, calls: Vec<SaidCall>) {
        let native = (!calls.is_empty()).then(|| Box::new(Native::Calls(calls)));
        self.add(Message { native, ..Message::new(Role::Assistant, text) });
    }

    /// Adds the observation of the native call of this id.
    pub fn push_answer(&mut self, id: String, failed: bool, text: String) {
        let native = Some(Box::new(Native::Answers { id, failed }));
        self.add(Message { native, ..Message::new(Role::Tool, text) });
    }

    fn add(&mut self, message: Message) {
        self.bytes = self.bytes.saturating_add(message.size());
        push_tight(&mut self.messages, message);
    }
}

impl Conversation {
    /// Lets the older half of the messages behind the system prompt go, so that a last request fits. What
    /// is left begins with a message of ours; the last message stays. Gives how many went.
    pub fn forget_half(&mut self) -> usize {
        let begin = self.messages.iter().take_while(|message| message.role == Role::System).count();
        // A native call goes with its observation: the last message of the model and all behind it stay.
        let native = self.messages.iter().any(|message| message.native.is_some());
        let last =
            if native { self.messages.iter().rposition(|message| message.role == Role::Assistant) } else { None };
        let last = last.unwrap_or(self.messages.len().saturating_sub(1));
        let sizes = || self.messages.iter().skip(begin).map(Message::size);
        let half = sizes().sum::<usize>() / 2;
        let (mut gone, mut count) = (0_usize, 0_usize);
        for size in sizes().take(last.saturating_sub(begin)) {
            // An answer of the model without its question is no beginning; one with native calls is.
            let begins = |message: &Message| message.role == Role::User || !message.calls().is_empty();
            if gone >= half && self.messages.get(begin + count).is_some_and(begins) {
                break;
            }
            gone = gone.saturating_add(size);
            count += 1;
        }
        if count > 0 {
            self.messages.drain(begin..begin + count);
            self.bytes = self.bytes.saturating_sub(gone);
            self.generation = self.generation.saturating_add(1);
        }
        count
    }
}

/// Tokens of so many bytes of text, estimated: a token of English or JSON has about four bytes.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
