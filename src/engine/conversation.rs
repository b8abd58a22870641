//! The conversation: it grows at its end only. Trimming makes a new generation.

/// What the model reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversation {
    /// Changes when messages went: what was sent before is no longer a prefix then.
    pub generation: u32,
    /// The messages, the system prompt first.
    pub messages: Vec<Message>,
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
        self.messages.push(Message { role, text: text.into() });
    }
}
