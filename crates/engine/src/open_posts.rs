//! What a run is still to post of its questions. It follows from the state, so that a driver which died has lost nothing.

use super::asked_targets::AskedTargets;
use super::flow::waiting_steps;
use super::operation::{AskedFor, OpenStep, Progress};
use super::question::{Question, StepQuestion, WaitingCall};
use super::question_post::QuestionPosts;
use super::state::{Phase, State};
use super::waiting_calls::waiting_calls;

/// A question that is open, with whom it asks.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionToPost {
    /// Names it, also against a later question of the same step.
    pub key: String,
    /// What is asked.
    pub question: Question,
    /// The step that asks; none in a loop.
    pub step: Option<StepQuestion>,
    /// The call that is asked about: of a loop, or of the run of the step.
    pub call: Option<WaitingCall>,
    /// Who is asked.
    pub targets: AskedTargets,
}

impl QuestionToPost {
    /// Where it is asked: the address of the step, or the id of the call.
    pub fn at(&self) -> &str {
        let call = self.call.as_ref().map(|call| call.id.as_str());
        self.step.as_ref().map(|step| step.at.as_str()).or(call).unwrap_or_default()
    }

    fn of_step(step: &StepQuestion) -> Vec<Self> {
        let question = &step.question;
        if step.calls.is_empty() {
            let is_escalated = step.approval.as_ref().is_some_and(|approval| approval.escalated);
            let asked = |targets: &AskedTargets| Self {
                key: key(&[&step.at], targets, is_escalated),
                question: question.clone(),
                call: None,
                targets: targets.clone(),
                step: Some(step.clone()),
            };
            return step.ask.as_deref().map(asked).into_iter().collect();
        }
        let of_call = |call: &WaitingCall| Self::of_call(call, question, &step.at);
        let asked = step.calls.iter().filter_map(of_call);
        asked.map(|asked| Self { step: Some(step.clone()), ..asked }).collect()
    }

    fn of_call(call: &WaitingCall, question: &Question, at: &str) -> Option<Self> {
        let targets = call.ask.as_deref()?;
        let is_escalated = call.approval.as_ref().is_some_and(|approval| approval.escalated);
        let asker = question.run_id.as_deref().unwrap_or_default();
        Some(Self {
            key: key(&[at, asker, &call.id], targets, is_escalated),
            question: question.clone(),
            step: None,
            call: Some(call.clone()),
            targets: targets.clone(),
        })
    }
}

fn key(place: &[&str], targets: &AskedTargets, is_escalated: bool) -> String {
    let since = targets.since_ms.to_string();
    let parts = place.iter().copied().chain([since.as_str()]).chain(is_escalated.then_some("escalated"));
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A post that is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuePost<'q> {
    /// What is asked.
    pub asked: &'q QuestionToPost,
    /// The target.
    pub to: &'q str,
    /// How often it failed.
    pub failed: u32,
    /// When it is due, in milliseconds since 1970.
    pub due_at_ms: i64,
}

/// When a question is to be posted to a target, and how often that failed; none when that is settled.
fn due(posts: &QuestionPosts, asked: &QuestionToPost, to: &str) -> Option<(u32, i64)> {
    match posts.find(&asked.key, to) {
        None => Some((0, asked.targets.since_ms)),
        Some(post) => post.next_try_at_ms.map(|at_ms| (post.tries, at_ms)),
    }
}

/// What is still to be posted of these questions.
pub fn open_posts<'q>(posts: &QuestionPosts, questions: &'q [QuestionToPost]) -> Vec<DuePost<'q>> {
    let of_question = |asked: &'q QuestionToPost| {
        let due = move |to: &'q String| {
            due(posts, asked, to).map(|(failed, due_at_ms)| DuePost { asked, to, failed, due_at_ms })
        };
        asked.targets.to.iter().filter_map(due).collect::<Vec<_>>()
    };
    questions.iter().flat_map(of_question).collect()
}
/// The open questions of a run that ask targets, with those of its sub-runs. A sub-run leaves them to the run that called it.
pub fn asked_questions(state: &State) -> Vec<QuestionToPost> {
    if state.header.caller.is_some() {
        return Vec::new();
    }
    match state {
        State::Flow(flow) => {
            let open = flow.progress.open().into_iter().filter(|open| asks_targets(open));
            let questions = open.flat_map(|open| super::flow::questions_of(open, &state.header));
            questions.flat_map(|step| QuestionToPost::of_step(&step)).collect()
        }
        State::Loop(_) => match &state.phase {
            Phase::Paused { pause, .. } if pause.asks.as_ref().is_some_and(|asks| !asks.steps.is_empty()) => {
                waiting_steps(state).iter().flat_map(QuestionToPost::of_step).collect()
            }
            Phase::Paused { pause, .. } => {
                let calls = waiting_calls(state);
                calls.iter().filter_map(|call| QuestionToPost::of_call(call, &pause.question, "")).collect()
            }
            _ => Vec::new(),
        },
    }
}

/// Whether a step asks targets, or its run does. Many may wait, and few ask.
fn asks_targets(open: &OpenStep) -> bool {
    match &open.progress {
        Progress::Asks(AskedFor::Subrun(wait)) => {
            let asks = &wait.asks;
            let in_step = |step: &StepQuestion| step.ask.is_some() || step.calls.iter().any(|call| call.ask.is_some());
            wait.is_open() && (asks.calls.iter().any(|call| call.ask.is_some()) || asks.steps.iter().any(in_step))
        }
        Progress::Asks(_) => open.ask.is_some(),
        _ => false,
    }
}

/// When the next question of a run is to be posted, in milliseconds since 1970; none when all are.
pub fn next_post_ms(state: &State) -> Option<i64> {
    let asked = asked_questions(state);
    open_posts(&state.posts, &asked).into_iter().map(|post| post.due_at_ms).min()
}
