//! What the engine reports to the model: the observations of a turn, as the dialect places them.

use super::{is_native, question, write_observation};
use crate::conversation::{Conversation, Role};
use crate::event::SaidCall;
use loopctl_lang::language::react::Dialect;
use loopctl_lang::program::tool_names::ToolNames;

/// What the model reads of one call, or of a reply that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The words.
    pub text: String,
    /// Whether the call failed.
    pub failed: bool,
}

/// The native calls of a reply as they stay in the conversation; none in dialects that have none.
pub fn kept_calls(
    dialect: Dialect,
    conversation: &Conversation,
    calls: Vec<SaidCall>,
    called: &ToolNames,
    iteration: u32,
) -> Vec<SaidCall> {
    if !is_native(dialect) || calls.is_empty() {
        return Vec::new();
    }
    let said = || conversation.messages.iter().flat_map(super::super::conversation::Message::calls);
    super::native::kept(calls, called, iteration, |id| said().any(|call| call.id == id))
}

/// Reports what came of a turn's calls, in their order, and a note of the engine's behind it. Native calls
/// are answered one by one; all else is one message.
pub fn report(dialect: Dialect, conversation: &mut Conversation, observations: Vec<Observation>, note: Option<&str>) {
    let calls = if is_native(dialect) { last_calls(conversation) } else { Vec::new() };
    let mut observations = observations.into_iter();
    for id in calls {
        let Observation { text, failed } = observations.next().unwrap_or_else(|| Observation {
            text: "Not called: see the first observation of this turn.".to_owned(),
            failed: true,
        });
        conversation.push_answer(id, failed, text);
    }
    let mut rest = String::new();
    for Observation { text, .. } in observations {
        let observation = write_observation(dialect, None, &text);
        if rest.is_empty() {
            rest = observation;
        } else {
            rest.push_str("\n\n");
            rest.push_str(&observation);
        }
    }
    if let Some(note) = note {
        if !rest.is_empty() {
            rest.push_str("\n\n");
        }
        rest.push_str(note);
    }
    if !rest.is_empty() {
        conversation.push(Role::User, rest);
    }
}

/// Reports why a reply could not be taken, in the engine's own words: what they quote of the reply holds no tag of the
/// dialect.
pub fn report_refusal(dialect: Dialect, conversation: &mut Conversation, why: &str) {
    match dialect {
        // What could not be read was no tool's response.
        Dialect::Tags => {
            let words = format!("{why}\n\n{}", question(dialect));
            conversation.push(Role::User, words);
        }
        Dialect::Json | Dialect::ToolCalls | Dialect::FinalAnswer => {
            report(dialect, conversation, vec![Observation { text: why.to_owned(), failed: true }], None);
        }
    }
}

/// The ids of the native calls that the model made last.
fn last_calls(conversation: &Conversation) -> Vec<String> {
    let mut messages = conversation.messages.iter().rev();
    let last = messages.find(|message| message.role == Role::Assistant);
    last.map_or_else(Vec::new, |message| message.calls().iter().map(|call| call.id.clone()).collect())
}
