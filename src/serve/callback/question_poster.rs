//! Questions of steps that wait while other steps of their run are under way: each is posted once, soon after it begins to
//! wait, and its reminders at their times. The driver of the run reports what waits; when it leaves the run, what is not
//! posted yet is posted with the pause, or by the next driver.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::pause::Issue;
use super::reminder;
use super::{Callbacks, Post, body, wait_after};
use crate::drive::clock;
use crate::engine::event::DecisionRights;
use crate::engine::flow::{reminders, waiting_steps};
use crate::engine::operation::{AskedFor, Progress};
use crate::engine::question::StepQuestion;
use crate::engine::state::State;
use crate::journal::RunSummary;
use crate::journal::answer_token::NO_PAUSE;
use crate::program::Program;
use crate::serve::authorizer::hash_text;
use crate::serve::view::session_of;
use crate::trace::paused::{MOST_STEPS, OpenStepQuestion};
use crate::trace::units::rfc3339;
use crate::trace::{Redaction, WaitingSteps};

/// How long after it was asked a question is posted: if its run pauses meanwhile, it is posted with the pause.
pub(super) const BESIDE_LOOK: Duration = Duration::from_millis(250);
/// The interval of the looks at the clock while reminders are to come.
const REMINDER_LOOK: Duration = Duration::from_secs(1);

/// Takes what the driver of a run reports, for as long as it drives.
pub struct QuestionPoster {
    asked: watch::Sender<Option<Arc<AskedBeside>>>,
    /// Of what was reported last.
    fingerprint: AtomicU64,
}

/// What the steps of a run ask while others are under way.
struct AskedBeside {
    /// Without its steps.
    run: WaitingSteps,
    steps: Vec<OpenStepQuestion>,
    /// What identifies the questions of the steps, in their order.
    keys: Vec<String>,
    rights: Option<DecisionRights>,
    /// When somebody is reminded, past times too, in milliseconds since 1970.
    reminders: Vec<i64>,
    /// The number that the next pause of the run has.
    next_pause: u32,
    at_ms: i64,
}

/// The task that posts what a run asks.
struct BesidePosting {
    callbacks: Arc<Callbacks>,
    run: RunSummary,
    url: String,
    asked: watch::Receiver<Option<Arc<AskedBeside>>>,
    /// The marks of what was posted.
    posted: BTreeSet<String>,
    /// The post that was not accepted yet, by its mark.
    pending: Option<(String, Post)>,
}

/// A post that is to be made.
struct ToPost {
    event: &'static str,
    /// Its idempotency key.
    name: String,
    mark: String,
    /// The pause of its tokens.
    pause: u32,
    at_ms: i64,
}

impl QuestionPoster {
    /// Reports the state of a run of which steps are under way.
    pub fn report(&self, program: &Program, state: &State) {
        let fingerprint = fingerprint(state);
        if self.fingerprint.swap(fingerprint, Ordering::Relaxed) == fingerprint {
            return;
        }
        let asked = WaitingSteps::of(state, &Redaction::new(&program.project.redact)).map(|mut run| {
            Arc::new(AskedBeside {
                steps: mem::take(&mut run.steps),
                run,
                keys: question_keys(state).into_iter().map(|(_, key)| key).collect(),
                rights: state.header.callback_rights,
                reminders: reminders(program, state),
                next_pause: state.pauses.saturating_add(1),
                at_ms: state.now.wall_ms,
            })
        });
        self.asked.send_replace(asked);
    }
}

/// What differs when other steps wait, or ask something else.
fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    for open in state.open_steps().into_iter().filter(|open| open.progress.waits_for_human()) {
        open.address.hash(&mut hasher);
        if let Progress::Asks(AskedFor::Subrun(waits)) = &open.progress {
            waits.asks.pause.hash(&mut hasher);
        }
    }
    (state.decisions.len(), state.continuations.len()).hash(&mut hasher);
    hasher.finish()
}

/// The steps of a workflow that wait, with what identifies their questions: one that is asked again after a decision, or
/// after the run failed, is another one.
pub(super) fn question_keys(state: &State) -> Vec<(String, String)> {
    if matches!(state, State::Loop(_)) {
        return Vec::new();
    }
    let mut decisions = BTreeMap::<&str, usize>::new();
    for at in state.decisions.iter().filter_map(|record| record.step.as_deref()) {
        *decisions.entry(at).or_default() += 1;
    }
    let key = |question: StepQuestion| {
        let decided = decisions.get(question.at.as_str()).copied().unwrap_or_default();
        let calls: Vec<String> = question.calls.iter().map(|call| format!("{} {}", call.id, call.hash)).collect();
        let StepQuestion { at, hash, run_pause, .. } = question;
        let ends = state.continuations.len();
        let key = format!("{at} {hash:?} {run_pause:?} {} {decided} {ends}", calls.join(" "));
        (at, key)
    };
    let asks_human = |question: &StepQuestion| !question.question.kind.needs_no_human();
    waiting_steps(state).into_iter().filter(asks_human).map(key).collect()
}

/// What names a question that was posted while other steps were under way, in the place of the hash of a token.
pub(super) fn while_running(run_id: &str, key: &str) -> String {
    hash_text(&format!("question of {run_id} while it runs: {key}"))
}

/// The same for a question that was posted with a pause.
pub(super) fn in_pause(run_id: &str, key: &str) -> String {
    hash_text(&format!("question of {run_id} in a pause: {key}"))
}

impl Callbacks {
    /// Posts what a workflow asks while it is under way, for as long as its driver has the poster; none when nothing of the
    /// run is posted.
    pub async fn follow(self: &Arc<Self>, run_id: &str) -> Option<QuestionPoster> {
        self.key.as_ref()?;
        let (run, callback) = match self.pending(run_id).await {
            Ok(pending) => pending?,
            Err(fault) => {
                tracing::error!(run_id, code = fault.code(), "what the run asks is posted when it pauses: {fault}");
                return None;
            }
        };
        let (sender, asked) = watch::channel(None);
        let posting = BesidePosting {
            callbacks: Arc::clone(self),
            run,
            url: callback.url,
            asked,
            posted: BTreeSet::new(),
            pending: None,
        };
        tokio::spawn(posting.go_on().boxed());
        Some(QuestionPoster { asked: sender, fingerprint: AtomicU64::new(0) })
    }
}

impl BesidePosting {
    /// Posts until the driver leaves the run.
    async fn go_on(mut self) {
        let (mut wait, mut failed) = (None, 0);
        loop {
            match wait {
                None if self.asked.changed().await.is_err() => return,
                None => tokio::time::sleep(BESIDE_LOOK).await,
                Some(wait) => {
                    let over = async { while self.asked.changed().await.is_ok() {} };
                    drop(tokio::time::timeout(wait, over).await);
                }
            }
            if self.is_over() {
                return;
            }
            wait = match self.post_next().await {
                Ok(wait) => {
                    failed = 0;
                    wait
                }
                Err(why) => {
                    failed += 1;
                    tracing::warn!(run_id = self.run.run_id, failed, "what the run asks was not accepted: {why}");
                    Some(wait_after(failed))
                }
            };
        }
    }

    /// Whether nobody drives the run here any more.
    fn is_over(&self) -> bool {
        self.asked.has_changed().is_err()
    }

    /// Posts what is to be posted first. Returns how long to wait before the next look; none until something else is
    /// asked.
    async fn post_next(&mut self) -> Result<Option<Duration>, String> {
        let Some(asked) = self.asked.borrow_and_update().clone() else { return Ok(None) };
        let callbacks = Arc::clone(&self.callbacks);
        // What a pause posted is marked when this can be taken.
        let Some(_posting) = callbacks.pauses.take_beside(&self.run.run_id) else { return Ok(Some(BESIDE_LOOK)) };
        if self.is_over() {
            return Ok(None);
        }
        for (step, key) in asked.steps.iter().zip(&asked.keys) {
            let mark = while_running(&self.run.run_id, key);
            if self.posted.contains(&mark) {
                continue;
            }
            let in_pause = in_pause(&self.run.run_id, key);
            if !self.is_marked(&mark).await? && !self.is_marked(&in_pause).await? {
                let name = format!("{}-asks-{}", self.run.run_id, short(&mark));
                let what = ToPost {
                    event: "agent_run_waiting",
                    name,
                    mark: mark.clone(),
                    pause: NO_PAUSE,
                    at_ms: asked.at_ms,
                };
                self.post(what, &asked, vec![step.clone()]).await?;
            }
            self.posted.insert(mark);
            return Ok(Some(Duration::ZERO));
        }
        self.remind(&asked).await
    }

    /// Posts the last reminder that is due, unless that was done.
    async fn remind(&mut self, asked: &AskedBeside) -> Result<Option<Duration>, String> {
        let now_ms = clock::wall_ms();
        if let Some(at_ms) = asked.reminders.iter().copied().filter(|at_ms| *at_ms <= now_ms).max() {
            let run_id = self.run.run_id.clone();
            let name = format!("{run_id}-reminder-{at_ms}");
            if !self.posted.contains(&name) {
                if !self.callbacks.was_reminded(&run_id, at_ms).await.map_err(|fault| fault.to_string())? {
                    let steps = asked.steps.iter().take(MOST_STEPS).cloned().collect();
                    let (mark, pause) = (reminder::mark(&run_id, at_ms), asked.next_pause);
                    let what = ToPost { event: "agent_run_reminded", name: name.clone(), mark, pause, at_ms };
                    self.post(what, asked, steps).await?;
                }
                self.posted.insert(name);
            }
        }
        Ok(asked.reminders.iter().any(|at_ms| *at_ms > now_ms).then_some(REMINDER_LOOK))
    }

    /// Posts once, and marks it when it was accepted. Each try sends the same bytes.
    async fn post(
        &mut self,
        what: ToPost,
        asked: &AskedBeside,
        mut steps: Vec<OpenStepQuestion>,
    ) -> Result<(), String> {
        let ToPost { event, name, mark, pause, at_ms } = what;
        let run_id = &self.run.run_id;
        let post = match self.pending.take() {
            Some((of, post)) if of == mark => post,
            _ => {
                let held = self.callbacks.answer_rights(&self.run, asked.rights);
                let until_ms = held.ok().and_then(|held| held.until_ms);
                let mut issue = Issue::new(self.callbacks.public_url.as_deref(), run_id, pause, until_ms);
                if let Ok(held) = held {
                    for step in &mut steps {
                        issue.link_step(step, held.rights).map_err(|fault| fault.to_string())?;
                    }
                }
                let without_answer = held.err().or(issue.withheld);
                if !issue.tokens.is_empty() {
                    let put = self.callbacks.runs.journal.put_answer_tokens(run_id, issue.tokens);
                    put.await.map_err(|fault| fault.to_string())?;
                }
                let session = session_of(self.run.org.as_deref(), asked.run.session.as_deref());
                if let Some(why) = without_answer {
                    tracing::warn!(run_id, "what the run asks is posted without a link: {why}");
                }
                let payload = WaitingSteps { steps, session, without_answer, ..asked.run.clone() };
                let (url, org) = (self.url.clone(), self.run.org.clone());
                Post { key: name, url, org, body: body(event, rfc3339(at_ms), payload) }
            }
        };
        if let Err(fault) = self.callbacks.post(&post).await {
            self.pending = Some((mark, post));
            return Err(fault.why());
        }
        self.callbacks.mark_posted(run_id, vec![mark]).await.map_err(|fault| fault.to_string())
    }

    async fn is_marked(&self, mark: &str) -> Result<bool, String> {
        self.callbacks.is_marked(&self.run.run_id, mark).await.map_err(|fault| fault.to_string())
    }
}

/// The first digits of a mark.
fn short(mark: &str) -> &str {
    let digits = mark.split_once(':').map_or(mark, |(_, digits)| digits);
    digits.get(..16).unwrap_or(digits)
}
