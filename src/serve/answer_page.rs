//! The page of an answer token, for a person who opens the link of a posted pause in a browser: what waits, and the forms
//! that decide about it. It needs no script.

mod fields;
mod html;
mod sent_form;

use serde_json::Value;

use crate::engine::flow::waiting_steps;
use crate::engine::question::{OnRejected, Question, WaitingCall};
use crate::engine::state::State;
use crate::journal::AnswerToken;
use crate::journal::answer_token::NO_PAUSE;
use crate::program::form::AskedField;
use crate::serve::answer_subject::AnswerSubject;
use crate::trace::paused::{OpenCall, OpenStepQuestion};
use crate::trace::steps::{as_call, shown_question};
use crate::trace::{PausedRun, Redaction};

pub use html::{LinkEnd, RefusedInput, asked_page, content_security_policy, end_page, refused_page, taken_page};
pub use sent_form::SentForm;

/// The longest input that can be changed on the page, in bytes of its JSON: a form must be shorter than the longest body of
/// somebody who has shown no token yet.
const MAX_EDITED_BYTES: usize = 16 * 1_024;
/// The `type` of a step that asks for an approval.
const APPROVAL_STEP: &str = "PbotApproval";

/// What a token asks, as its page shows it: secrets are hidden.
#[derive(Debug)]
pub struct AskedDecision {
    /// The run.
    pub run_id: String,
    /// Its loop.
    pub loop_name: String,
    /// What it is to do; empty for a workflow.
    pub objective: String,
    /// The question.
    pub question: Question,
    /// The call or the payload that waits.
    pub call: Option<WaitingCall>,
    /// What could deceive a reader of it.
    pub concerns: Vec<String>,
    /// The decisions that are possible, by the fields of a request.
    pub choices: &'static [&'static str],
    /// The keys of a form.
    pub keys: Vec<String>,
    /// The fields of a form with types.
    pub fields: Vec<AskedField>,
    /// What is shown beside these.
    pub show: Option<Value>,
    /// What a no to a step does.
    pub on_rejected: Option<OnRejected>,
    /// Until when the token is good, in milliseconds since 1970.
    pub expires_at_ms: i64,
}

impl AskedDecision {
    /// What a token asks of a run in this state; none when that is over.
    pub fn find(state: &State, redact: &Redaction, subject: &AnswerSubject, token: &AnswerToken) -> Option<Self> {
        let header = &state.header;
        let empty = Self {
            run_id: header.run_id.clone(),
            loop_name: header.loop_name.clone(),
            objective: redact.text(&header.objective).into_owned(),
            question: Question::new(crate::engine::outcome::Termination::Human, String::new()),
            call: None,
            concerns: Vec::new(),
            choices: &[],
            keys: Vec::new(),
            fields: Vec::new(),
            show: None,
            on_rejected: None,
            expires_at_ms: token.expires_at_ms,
        };
        if let AnswerSubject::Step(step) = subject {
            let asked = waiting_steps(state).into_iter().find(|question| step.is(question))?;
            let open = OpenStepQuestion::from(shown_question(asked, redact));
            return empty.of_step(open, step.call.as_deref());
        }
        let pause = PausedRun::of(state, redact)?.pause;
        // That of a question that was posted to a target is for its call, which has a hash, in every pause.
        let is_any = token.pause == NO_PAUSE && matches!(subject, AnswerSubject::Call { .. });
        if pause.number != token.pause && !is_any {
            return None;
        }
        let asked = Self { question: pause.question, choices: pause.choices, ..empty };
        match subject {
            AnswerSubject::Call { id, hash } => {
                let mut calls = pause.calls.into_iter();
                Some(asked.of_call(calls.find(|open| open.call.id == *id && open.call.hash == *hash)?))
            }
            AnswerSubject::Question | AnswerSubject::Step(_) => Some(asked).filter(|asked| !asked.choices.is_empty()),
        }
    }

    fn of_call(self, open: OpenCall) -> Self {
        let OpenCall { call, concerns, choices, .. } = open;
        Self { call: Some(call), concerns, choices, ..self }
    }

    /// What a step asks, or a call of its run.
    fn of_step(self, open: OpenStepQuestion, call: Option<&str>) -> Option<Self> {
        let OpenStepQuestion { question, concerns, choices, open_calls, .. } = open;
        let asked = Self { question: question.question.clone(), on_rejected: question.on_rejected, ..self };
        match call {
            Some(id) => open_calls.into_iter().find(|open| open.call.id == id).map(|open| asked.of_call(open)),
            None => Some(Self {
                call: as_call(&question),
                concerns,
                choices,
                keys: question.expected_keys,
                fields: question.fields,
                show: question.show,
                ..asked
            }),
        }
    }

    /// How many different people must approve it.
    pub fn approvers(&self) -> u32 {
        let approval = self.call.as_ref().and_then(|call| call.approval.as_ref());
        approval.map_or(1, |approval| approval.approvers)
    }

    /// Whether it is an approval that is a step of its own: the comment on it is passed to the next steps.
    fn is_approval_step(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.action == APPROVAL_STEP)
    }

    /// The input that waits as a text that can be changed; none when a value in it is hidden, or it is too long.
    fn edited(&self) -> Option<String> {
        use crate::policy::redact::HIDDEN;
        use crate::trace::escape;
        let call = self.call.as_ref().filter(|_| self.choices.contains(&"edit"))?;
        let text = serde_json::to_string_pretty(&call.action_input).ok()?;
        if text.contains(HIDDEN) || text.len() > MAX_EDITED_BYTES {
            return None;
        }
        // No text of JSON has a newline in it.
        Some(text.lines().map(escape::json).collect::<Vec<_>>().join("\n"))
    }
}
