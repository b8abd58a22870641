//! The conversation: it grows at its end only. Trimming makes a new generation. One iteration is one
//! message of the model and all messages behind it up to its next one.

use std::sync::Arc;

use super::compaction::push_tight;
use super::event::{InputFile, Reasoning, SaidCall};

/// What the model reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Changes when messages went: what was sent before is no longer a prefix then.
    pub generation: u32,
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
    /// The bytes of all texts: what an estimate of tokens goes by.
    pub bytes: usize,
    /// How many bytes at the end of the last opening message replace removed messages.
    stand_in: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What. Shared: many runs begin with the same system prompt.
    pub text: Arc<str>,
    /// What providers need beside the text; most messages have nothing of it.
    pub native: Option<Box<Native>>,
}

/// What providers need beside a message's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Native {
    /// What belongs to a message of the model.
    Reply {
        /// Its calls. Their ids differ, their names are those that providers take, and their arguments are
        /// each the strict JSON of an object.
        calls: Vec<SaidCall>,
        /// The reasoning before it.
        reasoning: Option<Box<Reasoning>>,
    },
    /// Files that the model reads with the text.
    Files(Arc<[InputFile]>),
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
            Some(Native::Reply { calls, .. }) => calls,
            _ => &[],
        }
    }

    /// The reasoning before it.
    pub fn reasoning(&self) -> Option<&Reasoning> {
        match self.native.as_deref() {
            Some(Native::Reply { reasoning, .. }) => reasoning.as_deref(),
            _ => None,
        }
    }

    /// The files that go with it.
    pub fn files(&self) -> &[InputFile] {
        match self.native.as_deref() {
            Some(Native::Files(files)) => files,
            _ => &[],
        }
    }

    /// Its length in bytes, with the calls and with what is sent back of the reasoning.
    pub fn size(&self) -> usize {
        let native = match self.native.as_deref() {
            None => 0,
            Some(Native::Reply { calls, reasoning }) => {
                let sealed = reasoning.as_ref().map_or(0, |reasoning| reasoning.sealed.len());
                calls.iter().map(SaidCall::size).fold(sealed, usize::saturating_add)
            }
            Some(Native::Files(files)) => files.iter().map(InputFile::size).fold(0, usize::saturating_add),
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

    /// Adds a reply of the model, with its native calls and its reasoning.
    pub fn push_reply(&mut self, text: String, calls: Vec<SaidCall>, reasoning: Option<Box<Reasoning>>) {
        let is_plain = calls.is_empty() && reasoning.is_none();
        let native = (!is_plain).then(|| Box::new(Native::Reply { calls, reasoning }));
        self.add(Message { native, ..Message::new(Role::Assistant, text) });
    }

    /// Adds a message with files; without any it is only text.
    pub fn push_with_files(&mut self, role: Role, text: impl Into<Arc<str>>, files: Vec<InputFile>) {
        let native = (!files.is_empty()).then(|| Box::new(Native::Files(files.into())));
        self.add(Message { native, ..Message::new(role, text) });
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
    /// How many messages open it: those before the model's first one. They never go.
    pub fn opening(&self) -> usize {
        self.messages.iter().take_while(|message| message.role != Role::Assistant).count()
    }

    /// Where each iteration begins: at a message of the model. All that follows up to the model's next one
    /// belongs to it, so that a call and its observation are never parted.
    pub fn iterations(&self) -> impl Iterator<Item = usize> {
        let numbered = self.messages.iter().enumerate();
        numbered.filter(|(_, message)| message.role == Role::Assistant).map(|(at, _)| at)
    }

    /// The text that replaces removed messages; empty when none were removed.
    pub fn stand_in(&self) -> &str {
        let last = self.opening().checked_sub(1).and_then(|at| self.messages.get(at));
        let text = last.map_or("", |message| &*message.text);
        text.get(text.len().saturating_sub(self.stand_in)..).unwrap_or_default()
    }

    /// Lets the messages behind the opening go, up to `until`, where an iteration begins. `stand_in` is
    /// said in their place, at the end of the opening. Gives how many went.
    pub fn let_go(&mut self, until: usize, stand_in: &str) -> usize {
        let opening = self.opening();
        let until = until.min(self.messages.len());
        if until <= opening {
            return 0;
        }
        self.messages.drain(opening..until);
        let last = opening.checked_sub(1).and_then(|at| self.messages.get_mut(at));
        match last.filter(|message| message.role == Role::User) {
            Some(message) => {
                let kept = message.text.len().saturating_sub(self.stand_in);
                message.text = [message.text.get(..kept).unwrap_or_default(), stand_in].concat().into();
            }
            None => self.messages.insert(opening, Message::new(Role::User, stand_in)),
        }
        self.stand_in = stand_in.len();
        self.bytes = self.messages.iter().map(Message::size).sum();
        self.generation = self.generation.saturating_add(1);
        until - opening
    }

    /// Changes the last message, which was not sent yet.
    pub fn change_last(&mut self, change: impl FnOnce(&mut Message)) {
        if let Some(message) = self.messages.last_mut() {
            let before = message.size();
            change(message);
            self.bytes = self.bytes.saturating_sub(before).saturating_add(message.size());
        }
    }

    /// Replaces the texts of messages behind the opening by shorter ones. Gives how many bytes went.
    pub fn shorten(&mut self, shorter: impl Fn(&Message) -> Option<String>) -> usize {
        let (opening, before) = (self.opening(), self.bytes);
        for message in self.messages.iter_mut().skip(opening) {
            if let Some(text) = shorter(message).filter(|text| text.len() < message.text.len()) {
                message.text = text.into();
            }
        }
        self.bytes = self.messages.iter().map(Message::size).sum();
        if self.bytes < before {
            self.generation = self.generation.saturating_add(1);
        }
        before.saturating_sub(self.bytes)
    }
}

/// The estimated tokens of `bytes` bytes of text: a token of English or JSON has about four bytes.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
