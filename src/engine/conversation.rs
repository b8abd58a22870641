//! The conversation: it grows at its end only. Trimming makes a new generation.

use std::sync::Arc;

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
    pub fn push(&mut self, role: Role, text: impl Into<Arc<str>>) {
        let text: Arc<str> = text.into();
        self.bytes = self.bytes.saturating_add(text.len());
        push_tight(&mut self.messages, Message { role, text });
    }
}

impl Conversation {
    /// Lets the older half of the messages behind the system prompt go, so that a last request fits. What
    /// is left begins with a message of ours; the last message stays. Gives how many went.
    pub fn forget_half(&mut self) -> usize {
        let begin = self.messages.iter().take_while(|message| message.role == Role::System).count();
        let all = self.messages.len().saturating_sub(begin);
        let sizes = || self.messages.iter().skip(begin).map(|message| message.text.len());
        let half = sizes().sum::<usize>() / 2;
        let (mut gone, mut count) = (0_usize, 0_usize);
        for size in sizes().take(all.saturating_sub(1)) {
            // An answer of the model without its question is no beginning.
            let is_ours = self.messages.get(begin + count).is_some_and(|message| message.role == Role::User);
            if gone >= half && is_ours {
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
