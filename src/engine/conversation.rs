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

/// Tokens of so many bytes of text, estimated: a token of English or JSON has about four bytes.
pub fn estimated_tokens(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}
