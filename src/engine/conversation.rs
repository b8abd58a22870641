//! The conversation: it grows at its end only. Trimming makes a new generation.

/// What the model reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Changes when messages went: what was sent before is no longer a prefix then.
    pub generation: u32,
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
    /// The bytes of all texts: what an estimate of tokens goes by.
    pub bytes: usize,
    /// How many bytes at the end of the last opening message stand in for messages that went.
    stand_in: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What.
    pub text: String,
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
}

impl Conversation {
    /// Adds a message at the end.
    pub fn push(&mut self, role: Role, text: impl Into<String>) {
        let mut text: String = text.into();
        text.shrink_to_fit();
        self.bytes = self.bytes.saturating_add(text.len());
        self.messages.push(Message { role, text });
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

    /// The text that stands in for messages that went; empty when none did.
    pub fn stand_in(&self) -> &str {
        let last = self.opening().checked_sub(1).and_then(|at| self.messages.get(at));
        let text = last.map_or("", |message| message.text.as_str());
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
                message.text.truncate(message.text.len().saturating_sub(self.stand_in));
                message.text.push_str(stand_in);
            }
            None => self.messages.insert(opening, Message { role: Role::User, text: stand_in.to_owned() }),
        }
        self.stand_in = stand_in.len();
        self.bytes = self.messages.iter().map(|message| message.text.len()).sum();
        self.generation = self.generation.saturating_add(1);
        until - opening
    }
}

/// Tokens of so many bytes of text, estimated: a token of English or JSON has about four bytes.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
