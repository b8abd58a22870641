//! What a run is still to post of its questions. It follows from the state, so that a driver which died has lost nothing.

use super::asked_targets::AskedTargets;
use super::decision::awaited_approval::AwaitedApproval;
use super::flow::waiting_steps;
use super::operation::{AskedFor, OpenStep, Progress};
use super::question::{Question, StepQuestion, WaitingCall};
use super::question_post::QuestionPosts;
use super::state::{Phase, State};
use super::waiting_calls::waiting_calls;

/// A question that is open, with whom it asks.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionToPost {
    /// Names it, also against a later question of the same step, and against what it was before it was changed: no link to that
    /// decides any more.
    pub key: String,
    /// Names it in journals of versions that did not see such a change.
    pub earlier_key: String,
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

    /// What its approval needs; none when one of anybody is enough, or it is no approval.
    pub fn approval(&self) -> Option<&AwaitedApproval> {
        let of_call = self.call.as_ref().and_then(|call| call.approval.as_ref());
        of_call.or_else(|| self.step.as_ref().and_then(|step| step.approval.as_ref()))
    }

    /// Whether it is asked again because nobody decided in time.
    pub fn is_escalated(&self) -> bool {
        is_escalated(self.approval())
    }

    fn of_step(step: &StepQuestion) -> Vec<Self> {
        let question = &step.question;
        if step.calls.is_empty() {
            let asked = |targets: &AskedTargets| {
                let key = |hash| key(&[&step.at], hash, targets, is_escalated(step.approval.as_ref()));
                Self {
                    key: key(step.hash.as_deref()),
                    earlier_key: key(None),
                    question: question.clone(),
                    call: None,
                    targets: targets.clone(),
                    step: Some(step.clone()),
                }
            };
            return step.ask.as_deref().map(asked).into_iter().collect();
        }
        let of_call = |call: &WaitingCall| Self::of_call(call, question, &step.at);
        let asked = step.calls.iter().filter_map(of_call);
        asked.map(|asked| Self { step: Some(step.clone()), ..asked }).collect()
    }

    fn of_call(call: &WaitingCall, question: &Question, at: &str) -> Option<Self> {
        let targets = call.ask.as_deref()?;
        let asker = question.run_id.as_deref().unwrap_or_default();
        let key = |hash| key(&[at, asker, &call.id], hash, targets, is_escalated(call.approval.as_ref()));
        Some(Self {
            key: key(Some(call.hash.as_str())),
            earlier_key: key(None),
            question: question.clone(),
            step: None,
            call: Some(call.clone()),
            targets: targets.clone(),
        })
    }
}

fn is_escalated(approval: Option<&AwaitedApproval>) -> bool {
    approval.is_some_and(|approval| approval.escalated)
}

fn key(place: &[&str], hash: Option<&str>, targets: &AskedTargets, is_escalated: bool) -> String {
    let since = targets.since_ms.to_string();
    let asked = [since.as_str()].into_iter().chain(hash).chain(is_escalated.then_some("escalated"));
    let parts = place.iter().copied().chain(asked);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A post that is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DuePost<'q> {
    /// What is asked.
    pub asked: &'q QuestionToPost,
    /// The target.
    pub to: &'q str,
    /// Which one it is.
    pub next: NextPost,
}

impl DuePost<'_> {
    /// Names the post among those to its target.
    pub fn key(&self) -> String {
        post_key(&self.asked.key, self.next.reminder)
    }
}

/// Which post of a question to a target follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextPost {
    /// Which reminder, from 1; 0 for the question itself.
    pub reminder: u32,
    /// How often it failed.
    pub failed: u32,
    /// When it is due, in milliseconds since 1970.
    pub due_at_ms: i64,
}

fn post_key(question: &str, reminder: u32) -> String {
    if reminder == 0 { question.to_owned() } else { format!("{question} reminder {reminder:02}") }
}

/// A reminder that is due soon after the post before it, because that one came late, comes this long after it.
const MIN_DISTANCE_MS: i64 = 60_000;

/// Which post of a question to a target follows; none when all that are to be made are settled. Of the reminders that are due now, the
/// last one is posted, and those before it never are.
fn next_post(posts: &QuestionPosts, asked: &QuestionToPost, to: &str, now_ms: i64) -> Option<NextPost> {
    let AskedTargets { since_ms, reminders_ms, .. } = &asked.targets;
    let numbered = || (1_u32..).zip(reminders_ms.iter().copied());
    let made = |reminder| {
        let find = |key| posts.find(&post_key(key, reminder), to);
        find(&asked.key).or_else(|| find(&asked.earlier_key)).map(|post| (reminder, post))
    };
    let reminders = u32::try_from(reminders_ms.len()).unwrap_or(u32::MAX);
    let Some((last, post)) = (0..=reminders).rev().find_map(made) else {
        return Some(NextPost { reminder: 0, failed: 0, due_at_ms: *since_ms });
    };
    let again = post.next_try_at_ms.map(|due_at_ms| NextPost { reminder: last, failed: post.tries, due_at_ms });
    let mut later = numbered().filter(|(reminder, _)| *reminder > last).map(|(reminder, at_ms)| {
        let distance_ms = at_ms.saturating_sub(*since_ms).min(MIN_DISTANCE_MS);
        let earliest_ms = post.posted_at_ms.map_or(at_ms, |posted_ms| posted_ms.saturating_add(distance_ms));
        NextPost { reminder, failed: 0, due_at_ms: at_ms.max(earliest_ms) }
    });
    let first = later.next();
    let newest = first.into_iter().chain(later).take_while(|next| next.due_at_ms <= now_ms).last();
    newest.or_else(|| [again, first].into_iter().flatten().min_by_key(|next| next.due_at_ms))
}

/// What is to be posted next of these questions, to each target that is still to be asked or reminded.
pub fn open_posts<'q>(posts: &QuestionPosts, questions: &'q [QuestionToPost], now_ms: i64) -> Vec<DuePost<'q>> {
    let of_question = |asked: &'q QuestionToPost| {
        let due = move |to: &'q String| next_post(posts, asked, to, now_ms).map(|next| DuePost { asked, to, next });
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
    open_posts(&state.posts, &asked, state.now.wall_ms).into_iter().map(|post| post.next.due_at_ms).min()
}
