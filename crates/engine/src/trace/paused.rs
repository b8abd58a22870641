//! A run that waits for a human, as its deciders see it: the receiver of its callbacks, and the program of
//! `--on-pause`.

use std::collections::BTreeSet;
use std::{fmt, mem};

use schemars::JsonSchema;
use serde::Serialize;

use super::approval::concerns;
use super::redact::Redaction;
use super::result::{PauseView, pause};
use super::steps::{as_call, shown_question};
use super::units::rfc3339;
use crate::flow::waiting_steps;
use crate::outcome::{Status, Termination};
use crate::question::{Question, StepQuestion, WaitingCall};
use crate::state::{Phase, State};

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
    /// Why something in it has no `answer`: the token that started the run may not decide about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub without_answer: Option<&'static str>,
}

/// Why a post has no `answer`.
pub const NOBODY_ANSWERS: &str = "the token that started the run has no scope `decide`, so this post gives nobody the right \
                                  to decide: decide with a token that has it, or start runs with one";
/// The same, where the rights of the starter ended.
pub const STARTER_IS_GONE: &str = "no token is left that the run was started with and that may decide about this, so this post gives \
                                   nobody the right to decide: decide with another token";
/// The same, where the starter decides about all but what was escalated.
pub const NOT_ESCALATED: &str = "the token that started the run has no scope `decide:escalated`, so an escalated approval has no \
                                 `answer`: decide with a token that has it";
/// The same, where the starter decides about escalated approvals alone.
pub const NOT_ORDINARY: &str = "the token that started the run has the scope `decide:escalated` and not `decide`, so what is not \
                                escalated has no `answer`: decide with a token that has it";

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
    /// The steps of a workflow that wait, each to be decided on its own: the first fifty, without those that were posted
    /// while other steps were under way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<OpenStepQuestion>,
    /// How many steps wait, if they are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_waiting: Option<usize>,
}

/// A step of a workflow that waits, with the decisions that are possible.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OpenStepQuestion {
    /// The step and its question. The calls of its run are in `calls`.
    #[serde(flatten)]
    pub question: StepQuestion,
    /// What could deceive a reader of its input, in a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<String>,
    /// The decisions that it takes, by their fields; `data` for a form. Left out when calls of its run wait, each of which
    /// has its own.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub choices: &'static [&'static str],
    /// Where to decide about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerLink>,
    /// The calls of its run that wait, each to be decided on its own.
    #[serde(rename = "calls", skip_serializing_if = "Vec::is_empty")]
    pub open_calls: Vec<OpenCall>,
}

/// The maximum number of steps that are listed. The others are posted when the run continues, or with its next pause.
pub const MOST_STEPS: usize = 50;

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
    /// The page where a person takes the decision: the address with the token. Left out without `serve.public_url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
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

/// A workflow of which steps wait for a human while others are under way. What does not apply is left out, and secrets are
/// hidden.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WaitingSteps {
    /// The run's id.
    pub agent_run_id: String,
    /// Always `running`.
    pub status: Status,
    /// The workflow's name.
    #[serde(rename = "loop")]
    pub loop_name: String,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// When it began, RFC 3339.
    pub created_at: String,
    /// The steps that the post is about, each to be decided on its own.
    pub steps: Vec<OpenStepQuestion>,
    /// How many steps wait.
    pub steps_waiting: usize,
    /// Why something in it has no `answer`: the token that started the run may not decide about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub without_answer: Option<&'static str>,
}

impl WaitingSteps {
    /// A workflow in this state, with all its steps that wait; none when it is not under way.
    pub fn of(state: &State, redact: &Redaction) -> Option<Self> {
        if !matches!(state.phase, Phase::Stepping) {
            return None;
        }
        let asks_human = |question: &StepQuestion| !question.question.kind.needs_no_human();
        let questions = waiting_steps(state).into_iter().filter(asks_human);
        let questions = questions.map(|question| shown_question(question, redact));
        let steps: Vec<OpenStepQuestion> = questions.map(OpenStepQuestion::from).collect();
        Some(Self {
            agent_run_id: state.header.run_id.clone(),
            status: state.status(),
            loop_name: state.header.loop_name.clone(),
            session: state.header.session.clone(),
            created_at: rfc3339(state.header.at_ms),
            steps_waiting: steps.len(),
            without_answer: None,
            steps,
        })
    }
}

impl PausedRun {
    /// A run in this state; none when it does not wait.
    pub fn of(state: &State, redact: &Redaction) -> Option<Self> {
        Self::without(state, redact, &BTreeSet::new())
    }

    /// A run in this state, without what the steps at these addresses ask; none when it does not wait.
    pub fn without(state: &State, redact: &Redaction, known: &BTreeSet<String>) -> Option<Self> {
        let PauseView { number, question, call, mut calls, mut steps } = pause(state, redact)?;
        if !question.kind.needs_no_human() {
            steps.retain(|step| !step.question.kind.needs_no_human());
        } else if !question.kind.is_wait() {
            steps.retain(|step| !step.question.kind.is_wait());
        }
        if !steps.is_empty() {
            // They are listed with their steps.
            calls.clear();
        } else if calls.is_empty() {
            calls.extend(call);
        }
        let waiting = steps.len();
        let steps = steps.into_iter().filter(|question| !known.contains(&question.at));
        let steps: Vec<OpenStepQuestion> = steps.take(MOST_STEPS).map(OpenStepQuestion::from).collect();
        let steps_waiting = Some(waiting).filter(|count| *count > steps.len());
        let choices = choices(question.kind);
        let calls: Vec<OpenCall> = calls.into_iter().map(|call| open(call, choices)).collect();
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
                choices: if calls.is_empty() && steps.is_empty() { choices } else { &[] },
                answer: None,
                calls,
                steps,
                steps_waiting,
            },
            without_answer: None,
        })
    }
}

impl From<StepQuestion> for OpenStepQuestion {
    fn from(mut question: StepQuestion) -> Self {
        let choices = if question.expected_keys.is_empty() { choices(question.question.kind) } else { &["data"][..] };
        let calls = mem::take(&mut question.calls);
        let open_calls: Vec<OpenCall> = calls.into_iter().map(|call| open(call, choices)).collect();
        Self {
            concerns: as_call(&question).map(|call| concerns(&call)).unwrap_or_default(),
            choices: if open_calls.is_empty() { choices } else { &[] },
            question,
            answer: None,
            open_calls,
        }
    }
}

fn open(call: WaitingCall, choices: &'static [&'static str]) -> OpenCall {
    OpenCall { concerns: concerns(&call), call, choices, answer: None }
}

/// The decisions that a pause of this kind takes.
fn choices(kind: Termination) -> &'static [&'static str] {
    match kind {
        Termination::Approval => &["approve", "deny", "edit"],
        Termination::Waiting => &["approve"],
        Termination::WaitingEvent => &["answer", "deny"],
        Termination::Uncertain => &["happened", "fail", "retry"],
        Termination::ModelError | Termination::SpendingLimit => &["retry"],
        _ => &["answer"],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::CallId;
    use crate::operation::{AskedFor, Call, Doubt, Progress};
    use crate::outcome::Pause;
    use crate::question::Question;
    use crate::state::{Phase, Turn};
    use crate::trace::tests_state;

    fn waiting(kind: Termination, progress: Progress) -> State {
        let id = CallId { iteration: 2, index: 0 };
        let call = Call {
            progress,
            ..Call::new(id, "pay".to_owned(), json!({ "to": "Ada\u{202e}", "api_key": "k-123456" }), 0)
        };
        let pause = Pause {
            number: 3,
            question: Question { options: vec!["yes".to_owned()], ..Question::new(kind, "May it pay?") },
            calls: vec![id],
            forced: None,
            steps: Vec::new(),
            until_ms: None,
            asks: None,
        };
        let turn = Turn { calls: vec![call], ..Turn::default() };
        tests_state::in_phase(Phase::Paused { pause: Box::new(pause), turn: Some(turn) })
    }

    fn shown(state: &State) -> Value {
        serde_json::to_value(PausedRun::of(state, &Redaction::default()).unwrap()).unwrap()
    }

    #[test]
    fn a_waiting_call_is_shown_with_its_hash_its_dangers_and_the_decisions_that_it_takes() {
        let shown = shown(&waiting(Termination::Approval, Progress::Asks(AskedFor::Approval(Box::default()))));
        assert_eq!(
            (&shown["agent_run_id"], &shown["status"], &shown["loop"]),
            (&json!("run-1"), &json!("paused"), &json!("refund-check"))
        );
        let pause = &shown["pause"];
        assert_eq!(
            (&pause["number"], &pause["kind"], &pause["question"]),
            (&json!(3), &json!("approval"), &json!("May it pay?"))
        );
        assert!(pause.get("choices").is_none() && pause.get("answer").is_none(), "{pause}");
        let call = &pause["calls"][0];
        assert_eq!((&call["id"], &call["action"]), (&json!("2.0"), &json!("pay")));
        assert_eq!(call["action_input"], json!({ "to": "Ada\u{202e}", "api_key": "[hidden]" }));
        assert_eq!(call["choices"], json!(["approve", "deny", "edit"]));
        assert_eq!(call["hash"].as_str().unwrap().len(), 16);
        assert!(call["concerns"][0].as_str().unwrap().contains("1 character that nobody sees"), "{call}");
    }

    #[test]
    fn a_question_is_answered_and_a_doubtful_call_is_settled() {
        let question = shown(&waiting(Termination::Human, Progress::Requested));
        assert_eq!(
            (&question["pause"]["choices"], &question["pause"]["options"]),
            (&json!(["answer"]), &json!(["yes"]))
        );
        assert!(question["pause"].get("calls").is_none());
        let doubt = shown(&waiting(Termination::Uncertain, Progress::Uncertain(Doubt::Stopped)));
        assert_eq!(doubt["pause"]["calls"][0]["choices"], json!(["happened", "fail", "retry"]));
        assert_eq!(PausedRun::of(&tests_state::state(), &Redaction::default()), None, "it does not wait");
    }

    #[test]
    fn a_token_is_in_the_json_and_in_no_other_text() {
        let (url, token) = ("/agents/r/answer".to_owned(), "loopctl-answer-s3cret".to_owned());
        let link = Some(format!("{url}?token={token}"));
        let link = AnswerLink { url, link, token, expires_at: "2026-02-01T10:30:00.000Z".to_owned() };
        let mut paused =
            PausedRun::of(&waiting(Termination::Human, Progress::Requested), &Redaction::default()).unwrap();
        paused.pause.answer = Some(link);
        assert!(!format!("{paused:?}").contains("s3cret"), "{paused:?}");
        assert!(serde_json::to_string(&paused).unwrap().contains("s3cret"));
    }
}
