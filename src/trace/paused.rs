//! A run that waits for a human, as those are told who are to decide: the receiver of its callbacks, and the program of
//! `--on-pause`.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::approval::concerns;
use super::redact::Redaction;
use super::result::{PauseView, pause};
use super::units::rfc3339;
use crate::engine::outcome::{Status, Termination};
use crate::engine::record::{Question, WaitingCall};
use crate::engine::state::State;

#[cfg(test)]
mod tests;

/// A run that waits for a human. What does not apply is left out, and secrets are hidden.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PausedRun {
    /// The run's id.
    pub agent_run_id: String,
    /// Always `paused`.
    pub status: Status,
    /// The loop's name.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The objective, rendered.
    pub objective: String,
    /// Replies read so far.
    pub iterations: u32,
    /// When it began, RFC 3339.
    pub created_at: String,
    /// What it waits for.
    pub pause: OpenPause,
}

/// What a run waits for, with the decisions that are possible.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OpenPause {
    /// The pause's number, from 1.
    pub number: u32,
    /// What it asks.
    #[serde(flatten)]
    pub question: Question,
    /// The decisions that the question takes, by their fields: `answer`, or `retry` for a model that could not be
    /// reached. Left out when calls wait, each of which has its own.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub choices: &'static [&'static str],
    /// Where to answer the question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerLink>,
    /// The calls that wait, each to be decided on its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<OpenCall>,
}

/// A call that waits, with the decisions that are possible.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OpenCall {
    /// The call.
    #[serde(flatten)]
    pub call: WaitingCall,
    /// What could deceive a reader of its input, in a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<String>,
    /// The decisions that it takes, by their fields: `approve`, `deny` and `edit`, or `happened` and `retry`.
    #[schemars(with = "Vec<String>")]
    pub choices: &'static [&'static str],
    /// Where to decide about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerLink>,
}

/// Where one decision is taken without any other credentials.
#[derive(Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerLink {
    /// Where to post the decision; only the path without `serve.public_url`.
    pub url: String,
    /// The token of this decision: for `token` of the body, or `Authorization: Bearer`.
    pub token: String,
    /// When the token expires, RFC 3339. It is void earlier when the pause has ended.
    pub expires_at: String,
}

impl fmt::Debug for AnswerLink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerLink").field("url", &self.url).finish_non_exhaustive()
    }
}

impl PausedRun {
    /// A run in this state; none when it does not wait.
    pub fn of(state: &State, redact: &Redaction) -> Option<Self> {
        let PauseView { number, question, call, mut calls, .. } = pause(state, redact)?;
        if calls.is_empty() {
            calls.extend(call);
        }
        let choices = choices(question.kind);
        let open = |call: WaitingCall| OpenCall { concerns: concerns(&call), call, choices, answer: None };
        let calls: Vec<OpenCall> = calls.into_iter().map(open).collect();
        let header = &state.header;
        Some(Self {
            agent_run_id: header.run_id.clone(),
            status: state.status(),
            loop_name: header.loop_name.clone(),
            session: header.session.clone(),
            objective: redact.text(&header.objective).into_owned(),
            iterations: state.counters.iterations,
            created_at: rfc3339(header.at_ms),
            pause: OpenPause {
                number,
                question,
                choices: if calls.is_empty() { choices } else { &[] },
                answer: None,
                calls,
            },
        })
    }
}

/// The decisions that a pause of this kind takes.
fn choices(kind: Termination) -> &'static [&'static str] {
    match kind {
        Termination::Approval => &["approve", "deny", "edit"],
        Termination::Uncertain => &["happened", "retry"],
        Termination::ModelError => &["retry"],
        _ => &["answer"],
    }
}
