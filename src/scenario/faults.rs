//! The faults of a scenario: what they do to its calls and to its replies.

use serde_json::{Value, json};

use crate::drive::stage::{CallFault, CallFaultEffect, ReplyFailure};
use crate::language::scenario::{ReplyFault, ScenarioFault, ToolFailure};

/// What goes wrong in a play.
#[derive(Debug, Clone, Default)]
pub struct FaultSet {
    pub calls: Vec<CallFault>,
    /// With requests to the model: before which reply, from 0.
    pub requests: Vec<ReplyFailure>,
    /// With replies: which one, from 0, and what it is instead.
    replies: Vec<(usize, ReplyFault)>,
}

impl FaultSet {
    pub fn listed(faults: &[ScenarioFault]) -> Self {
        let mut set = Self::default();
        for fault in faults {
            let failure = fault.fails.as_deref().and_then(ToolFailure::of);
            if let Some(action) = &fault.action {
                let effect = match (failure, &fault.says) {
                    (Some(failure), _) => CallFaultEffect::Fails(failure),
                    (None, Some(text)) => CallFaultEffect::Says(text.clone()),
                    (None, None) => continue,
                };
                set.calls.push(CallFault { action: action.clone(), nth: fault.nth, effect });
            } else if let Some(number) = fault.reply.and_then(|number| usize::try_from(number).ok()) {
                let at = number.saturating_sub(1);
                set.requests.extend(failure.map(|failure| ReplyFailure { at, failure }));
                set.replies.extend(fault.reply_is.map(|kind| (at, kind)));
            }
        }
        set
    }

    /// All calls of a tool fail in one way.
    pub fn of_tool(action: &str, word: &str) -> Option<Self> {
        let effect = CallFaultEffect::Fails(ToolFailure::of(word)?);
        Some(Self { calls: vec![CallFault { action: action.to_owned(), nth: None, effect }], ..Self::default() })
    }

    /// The replies with their faults.
    pub fn applied(&self, replies: &[Value]) -> Vec<Value> {
        let mut faulty = replies.to_vec();
        for (at, kind) in &self.replies {
            let Some(own) = replies.get(*at) else { continue };
            let before = at.checked_sub(1).and_then(|before| replies.get(before)).unwrap_or(own);
            let text = match own {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let instead = match kind {
                ReplyFault::Cut => json!({ "text": half(&text), "finish": "length" }),
                ReplyFault::NotJson => json!("I should have a closer look at this first."),
                ReplyFault::UnknownTool => {
                    json!({ "thought": "Another one.", "action": "no_such_tool", "action_input": {} })
                }
                ReplyFault::Repeated => before.clone(),
                ReplyFault::TwoAnswers => json!({ "text": format!("{text}\n{text}") }),
            };
            faulty.get_mut(*at).into_iter().for_each(|reply| *reply = instead.clone());
        }
        faulty
    }
}

/// The first half of a text.
fn half(text: &str) -> &str {
    let mut at = text.len() / 2;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.get(..at).unwrap_or_default()
}
