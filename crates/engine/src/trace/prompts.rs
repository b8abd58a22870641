//! What the model of a loop was sent for each reply. Each message is kept once, and a prompt names those that were there
//! before: what is kept grows with the conversation, not with its square.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::iteration::MessageView;
use super::redact::Redaction;
use crate::conversation::Message;
use crate::state::LoopState;

/// The prompts of a run, in the order of its iterations.
#[derive(Debug, Default)]
pub struct SentPrompts {
    /// One for each iteration.
    pub all: Vec<PromptView>,
    /// Why there are no more of them, when the events of the run do not fit its document.
    pub missing: Option<String>,
    /// The messages so far, each at its number less one.
    messages: Vec<Message>,
    /// Their numbers, by their text.
    numbers: BTreeMap<Arc<str>, Vec<usize>>,
    /// The numbers of the messages of the last prompt.
    last: Vec<usize>,
    offered: Vec<String>,
    memory: Value,
}

/// A run when its model was asked for the reply of an iteration.
#[derive(Debug)]
pub struct PromptView {
    /// The iteration, from 1.
    pub iteration: u32,
    /// When the model was asked, in milliseconds of the wall clock.
    pub at_ms: i64,
    /// The active time of the run until then, in milliseconds.
    pub active_ms: u64,
    /// Tokens that were used until then, read and written.
    pub tokens: u64,
    /// What these cost in US dollars, when all prices are known.
    pub cost_usd: Option<f64>,
    /// How many messages the prompt has.
    pub count: usize,
    /// The prompt, in its order.
    pub parts: Vec<PromptPart>,
    /// The names of the tools that were offered, of a loop that does not offer all, when they are not those of the iteration before.
    pub offered: Option<Vec<String>>,
    /// The memory of the run, when it is not that of the iteration before.
    pub memory: Option<Value>,
}

/// A part of a prompt.
#[derive(Debug)]
pub enum PromptPart {
    /// Messages that an earlier prompt has, by their numbers, from 1.
    Known(usize, usize),
    /// A message that no earlier prompt has, with its number.
    New(usize, MessageView),
}

impl SentPrompts {
    /// What the model was sent for the reply of this iteration.
    pub fn at(&self, iteration: u32) -> Option<&PromptView> {
        let index = usize::try_from(iteration).ok()?.checked_sub(1)?;
        self.all.get(index).filter(|view| view.iteration == iteration)
    }

    /// Adds the prompt of the next iteration. `offered`: the names of the tools, of a loop that does not offer all.
    pub fn add(&mut self, iteration: u32, asked: &LoopState, offered: Vec<String>, redact: &Redaction) {
        let messages = &asked.conversation.messages;
        let (mut parts, mut prompt) = (Vec::new(), Vec::with_capacity(messages.len()));
        for (place, message) in messages.iter().enumerate() {
            let number = self.number(place, message);
            let number = number.unwrap_or_else(|| {
                self.messages.push(message.clone());
                let number = self.messages.len();
                self.numbers.entry(Arc::clone(&message.text)).or_default().push(number);
                parts.push(PromptPart::New(number, MessageView::new(message, redact)));
                number
            });
            let new = matches!(parts.last(), Some(PromptPart::New(last, _)) if *last == number);
            match parts.last_mut() {
                _ if new => {}
                Some(PromptPart::Known(_, last)) if *last + 1 == number => *last = number,
                _ => parts.push(PromptPart::Known(number, number)),
            }
            prompt.push(number);
        }
        self.last = prompt;
        let memory = redact.value(&Value::Object(asked.memory.clone().into_iter().collect::<Map<_, _>>()));
        let changed = memory != self.memory && !(self.memory.is_null() && asked.memory.is_empty());
        let other = offered != self.offered;
        self.offered = offered;
        self.all.push(PromptView {
            iteration,
            at_ms: asked.now.wall_ms,
            active_ms: asked.now.active_ms,
            tokens: asked.counters.tokens.input.saturating_add(asked.counters.tokens.output),
            cost_usd: asked.cost_usd(),
            count: messages.len(),
            parts,
            offered: other.then(|| self.offered.clone()),
            memory: changed.then(|| memory.clone()),
        });
        self.memory = memory;
    }

    /// The number of a message that an earlier prompt has; mostly it is at the same place of the last one.
    fn number(&self, place: usize, message: &Message) -> Option<usize> {
        let is =
            |number: &&usize| self.messages.get(number.saturating_sub(1)).is_some_and(|known| same(known, message));
        self.last.get(place).filter(is).or_else(|| self.numbers.get(&message.text)?.iter().find(is)).copied()
    }
}

/// Whether two messages are the same. The states of a run share their texts, which are so rarely compared.
fn same(one: &Message, other: &Message) -> bool {
    let texts = || Arc::ptr_eq(&one.text, &other.text) || one.text == other.text;
    one.role == other.role && one.native == other.native && texts()
}
