//! The post of a pause: what the run waits for, and for each decision a token that takes it without any other
//! credentials.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reqwest::Url;

use super::question_poster::{BESIDE_LOOK, in_pause, question_keys, while_running};
use super::reminder::ReminderTimes;
use super::{Callbacks, MAX_TRIES, Post, PostError, body, noted, wait_after};
use crate::drive::clock;
use crate::drive::fault::Fault;
use crate::engine::decision::awaited_approval::AwaitedApproval;
use crate::engine::event::DecisionRights;
use crate::engine::open_posts::QuestionToPost;
use crate::engine::outcome::Status;
use crate::engine::question::WaitingCall;
use crate::engine::state::{Phase, State};
use crate::journal::answer_token::NO_PAUSE;
use crate::journal::{AnswerToken, Callback, RunSummary, StoreError};
use crate::serve::answer_subject::{AnswerSubject, StepSubject};
use crate::serve::authorizer::{HeldRights, hash_text, new_answer_token};
use crate::serve::run_store::FoldedRun;
use crate::serve::starter_rights::starter_rights;
use crate::serve::view::session_of;
use crate::trace::paused::{
    AnswerLink, NOBODY_ANSWERS, NOT_ESCALATED, NOT_ORDINARY, OpenPause, OpenStepQuestion, STARTER_IS_GONE,
};
use crate::trace::units::rfc3339;
use crate::trace::{PausedRun, Redaction};

/// How long a token lives at most, in milliseconds: seven days.
const MAX_TOKEN_LIFE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// The pauses that are being posted: each by one task.
#[derive(Default)]
pub(super) struct PausesInPost(Mutex<BTreeSet<(String, u32)>>);

impl PausesInPost {
    fn set(&self) -> MutexGuard<'_, BTreeSet<(String, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a pause; none when another task posts it.
    fn take(&self, run_id: &str, pause: u32) -> Option<PauseInPost<'_>> {
        let key = (run_id.to_owned(), pause);
        self.set().insert(key.clone()).then(|| PauseInPost { all: self, key })
    }

    /// Takes what a run asks while it is under way; none when it, or a pause of the run, is being posted.
    pub(super) fn take_beside(&self, run_id: &str) -> Option<PauseInPost<'_>> {
        let key = (run_id.to_owned(), NO_PAUSE);
        let mut set = self.set();
        let of_run = key.clone()..=(run_id.to_owned(), u32::MAX);
        if set.range(of_run).next().is_some() {
            return None;
        }
        set.insert(key.clone());
        Some(PauseInPost { all: self, key })
    }

    /// Whether something that a run asked while it was under way is being posted.
    fn has_beside(&self, run_id: &str) -> bool {
        self.set().contains(&(run_id.to_owned(), NO_PAUSE))
    }
}

/// A pause that is being posted; dropping this lets another task post it.
pub(super) struct PauseInPost<'a> {
    all: &'a PausesInPost,
    key: (String, u32),
}

impl Drop for PauseInPost<'_> {
    fn drop(&mut self) {
        self.all.set().remove(&self.key);
    }
}

impl Callbacks {
    /// Posts the pause that a run is in, unless that was done.
    pub(super) async fn deliver_pause(&self, folded: FoldedRun, run: &RunSummary) -> Result<(), Fault> {
        let (run_id, Some(number)) = (run.run_id.as_str(), pause_of(&folded.state)) else { return Ok(()) };
        let Some(_posting) = self.pauses.take(run_id, number) else { return Ok(()) };
        // Read again: the task that posted this pause before may just have ended.
        let Some((run, callback)) = self.pending(run_id).await? else { return Ok(()) };
        if callback.posted_pause >= number {
            return self.remind(folded, &run, callback).await;
        }
        while self.pauses.has_beside(run_id) {
            tokio::time::sleep(BESIDE_LOOK).await;
        }
        let asked = question_keys(&folded.state);
        let known = self.posted_beside(run_id, &asked).await?;
        // The same questions, about which nobody has decided: a model was asked again meanwhile, or something else came of the run.
        let whole = whole_pause(&folded.state, &asked);
        let was_posted = !asked.is_empty() && self.is_marked(run_id, &in_pause(run_id, &whole)).await?;
        if was_posted || !asked.is_empty() && known.len() == asked.len() {
            noted(run_id, || self.runs.journal.note_posted_pause(run_id, number)).await?;
            return self.remind(folded, &run, callback).await;
        }
        let reminders = ReminderTimes::of(&folded);
        let Some((paused, tokens)) = self.with_tokens(&folded, &run, &known)? else { return Ok(()) };
        let listed: Vec<String> = paused.pause.steps.iter().map(|step| step.question.at.clone()).collect();
        if !tokens.is_empty() {
            self.runs.journal.put_answer_tokens(run_id, tokens).await.map_err(Fault::Store)?;
        }
        let body = body("agent_run_paused", rfc3339(folded.state.now.wall_ms), paused);
        // The body is all that the tries need.
        drop(folded);
        let post =
            Post { key: format!("{run_id}-pause-{number}"), url: callback.url.clone(), org: run.org.clone(), body };
        if self.post_while_paused(run_id, number, (&post, &callback)).await? {
            let whole = Some(whole).filter(|_| listed.len().saturating_add(known.len()) == asked.len());
            let listed = asked.into_iter().filter(|(at, _)| listed.contains(at)).map(|(_, key)| key);
            self.mark_posted(run_id, listed.chain(whole).map(|key| in_pause(run_id, &key)).collect()).await?;
            self.pause_posted(run_id, number, reminders).await?;
        }
        Ok(())
    }

    /// The addresses of those of these steps whose question was posted while other steps were under way.
    async fn posted_beside(&self, run_id: &str, asked: &[(String, String)]) -> Result<BTreeSet<String>, Fault> {
        let mut known = BTreeSet::new();
        for (at, key) in asked {
            if self.is_marked(run_id, &while_running(run_id, key)).await? {
                known.insert(at.clone());
            }
        }
        Ok(known)
    }

    /// Posts until it is accepted, or given up. Returns whether the run was in this pause all the time.
    pub(super) async fn post_while_paused(
        &self,
        run_id: &str,
        number: u32,
        post: (&Post, &Callback),
    ) -> Result<bool, Fault> {
        let (post, callback) = post;
        for tries in 1..=MAX_TRIES {
            match self.post(post).await {
                Ok(()) => break,
                Err(PostError::NoKey(_)) => {}
                Err(PostError::NotAccepted(why)) => {
                    tracing::warn!(run_id, pause = number, tries, "the callback was not accepted: {why}")
                }
            }
            if tries < MAX_TRIES {
                let (progress, again_in) = (callback.progress, Some(wait_after(tries)));
                noted(run_id, || self.runs.journal.note_callback(run_id, progress, again_in, None)).await?;
                tokio::time::sleep(wait_after(tries)).await;
                // It may have been decided meanwhile.
                if self
                    .runs
                    .journal
                    .find(run_id)
                    .await
                    .map_err(Fault::Store)?
                    .is_none_or(|run| run.status != Status::Paused)
                    || pause_of(&self.folded(run_id).await?.state) != Some(number)
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// What the links of a run let people decide about, and until when: no more, and no longer, than the tokens that it was
    /// started with. Otherwise why there are no links. `recorded`: the rights that the run was started with.
    pub(super) fn answer_rights(
        &self,
        run: &RunSummary,
        recorded: Option<DecisionRights>,
    ) -> Result<HeldRights, &'static str> {
        let recorded = recorded.ok_or(NOBODY_ANSWERS)?;
        let held = starter_rights(&self.runs.current.get().authorizer, run).ok_or(STARTER_IS_GONE)?;
        let rights = recorded.within(held.rights).ok_or(STARTER_IS_GONE)?;
        Ok(HeldRights { rights, ..held })
    }

    /// What is posted of a pause, with new tokens, and what the store keeps of them. `known`: the addresses of steps that
    /// are left out.
    pub(super) fn with_tokens(
        &self,
        folded: &FoldedRun,
        run: &RunSummary,
        known: &BTreeSet<String>,
    ) -> Result<Option<(PausedRun, Vec<AnswerToken>)>, Fault> {
        let FoldedRun { program, state } = folded;
        let redact = Redaction::new(&program.project.redact);
        let Some(mut paused) = PausedRun::without(state, &redact, known) else { return Ok(None) };
        paused.session = session_of(run.org.as_deref(), paused.session.as_deref());
        let held = match self.answer_rights(run, state.header.callback_rights) {
            Ok(held) => held,
            Err(why) => {
                tracing::warn!(run_id = run.run_id, "the pause is posted without a link: {why}");
                paused.without_answer = Some(why);
                return Ok(Some((paused, Vec::new())));
            }
        };
        let rights = held.rights;
        let mut issue = Issue::new(self.public_url.as_deref(), &run.run_id, paused.pause.number, held.until_ms);
        let OpenPause { answer, calls, steps, .. } = &mut paused.pause;
        if calls.is_empty() && steps.is_empty() {
            // Only who may decide about everything else, too, answers a question.
            let may = issue.may(rights, None);
            *answer = may.then(|| issue.link(&AnswerSubject::Question, None)).transpose()?.flatten();
        }
        for open in calls {
            let WaitingCall { id, hash, approval, .. } = &open.call;
            if !issue.may(rights, approval.as_ref()) {
                continue;
            }
            let subject = AnswerSubject::Call { id: id.clone(), hash: hash.clone() };
            open.answer = issue.link(&subject, ends_ms(approval.as_ref()))?;
        }
        for step in steps {
            issue.link_step(step, rights)?;
        }
        if let Some(why) = issue.withheld {
            tracing::warn!(run_id = run.run_id, "the pause is posted without a link: {why}");
            paused.without_answer = Some(why);
        }
        Ok(Some((paused, issue.tokens)))
    }
}

/// What names all that a run asks in a pause: a later pause with the same questions, before which nobody decided, is no other one. The
/// links of steps stay good in it.
fn whole_pause(state: &State, asked: &[(String, String)]) -> String {
    let keys: Vec<&str> = asked.iter().map(|(_, key)| key.as_str()).collect();
    format!("{} decisions before {}", state.decisions.len(), keys.join("\n"))
}

/// The number of the pause in which a run waits for a human.
pub fn pause_of(state: &State) -> Option<u32> {
    match &state.phase {
        Phase::Paused { pause, .. } if state.status() == Status::Paused => Some(pause.number),
        _ => None,
    }
}

/// When an approval expires.
fn ends_ms(approval: Option<&AwaitedApproval>) -> Option<i64> {
    approval.and_then(|approval| approval.expires_at_ms)
}

/// Whether these rights are enough for what needs this approval, or none.
fn may_decide(rights: DecisionRights, approval: Option<&AwaitedApproval>) -> bool {
    let is_escalated = approval.is_some_and(|approval| approval.escalated);
    match rights {
        DecisionRights::All => true,
        DecisionRights::Ordinary => !is_escalated,
        DecisionRights::Escalated => is_escalated,
    }
}

/// Where a run is answered: the path alone when it is not known how others reach the server.
fn answer_url(public_url: Option<&str>, run_id: &str) -> String {
    let base = public_url.and_then(|url| Url::parse(url).ok());
    let Some(mut url) = base.clone().or_else(|| Url::parse("http://localhost").ok()) else { return String::new() };
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["agents", run_id, "answer"]);
    }
    if base.is_some() { url.into() } else { url.path().to_owned() }
}

/// The page where a person answers, at this address; none when it is not known how others reach the server.
fn answer_link(url: &str, token: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    url.query_pairs_mut().append_pair("token", token);
    Some(url.into())
}

/// The tokens of a pause that are being issued.
pub(super) struct Issue {
    url: String,
    now_ms: i64,
    pause: u32,
    /// When the rights of the links end.
    until_ms: i64,
    pub tokens: Vec<AnswerToken>,
    /// Why something has no token.
    pub withheld: Option<&'static str>,
}

impl Issue {
    /// No tokens yet. `until_ms`: when the rights of the links end, in milliseconds since 1970.
    pub fn new(public_url: Option<&str>, run_id: &str, pause: u32, until_ms: Option<i64>) -> Self {
        let now_ms = clock::wall_ms();
        let until_ms = until_ms.unwrap_or(i64::MAX).min(now_ms.saturating_add(MAX_TOKEN_LIFE_MS));
        Self { url: answer_url(public_url, run_id), now_ms, pause, until_ms, tokens: Vec::new(), withheld: None }
    }

    /// Whether these rights are enough for what needs this approval, or none; why not is kept.
    fn may(&mut self, rights: DecisionRights, approval: Option<&AwaitedApproval>) -> bool {
        let may = may_decide(rights, approval);
        if !may {
            self.withheld = Some(if rights == DecisionRights::Escalated { NOT_ORDINARY } else { NOT_ESCALATED });
        }
        may
    }

    /// New tokens for a step that waits, or for each of the calls of its run.
    pub fn link_step(&mut self, step: &mut OpenStepQuestion, rights: DecisionRights) -> Result<(), Fault> {
        let OpenStepQuestion { question, answer, open_calls, .. } = step;
        if open_calls.is_empty() && self.may(rights, question.approval.as_ref()) {
            let subject = AnswerSubject::Step(StepSubject::of(question, None));
            *answer = self.link(&subject, question.expires_at_ms.or(ends_ms(question.approval.as_ref())))?;
        }
        for open in open_calls {
            if !self.may(rights, open.call.approval.as_ref()) {
                continue;
            }
            let subject = AnswerSubject::Step(StepSubject::of(question, Some(&open.call)));
            open.answer = self.link(&subject, ends_ms(open.call.approval.as_ref()))?;
        }
        Ok(())
    }

    /// A new token for a question that is posted to a target; none when these rights are not enough for it.
    pub fn link_asked(&mut self, asked: &QuestionToPost, rights: DecisionRights) -> Result<Option<AnswerLink>, Fault> {
        let QuestionToPost { step, call, .. } = asked;
        let approval = call.as_ref().and_then(|call| call.approval.as_ref());
        let approval = approval.or_else(|| step.as_ref().and_then(|step| step.approval.as_ref()));
        if !self.may(rights, approval) {
            return Ok(None);
        }
        let subject = match (step, call) {
            (Some(step), call) => AnswerSubject::Step(StepSubject::of(step, call.as_ref())),
            (None, Some(call)) => AnswerSubject::Call { id: call.id.clone(), hash: call.hash.clone() },
            (None, None) => AnswerSubject::Question,
        };
        let expires_at_ms = step.as_ref().and_then(|step| step.expires_at_ms);
        self.link(&subject, expires_at_ms.or_else(|| ends_ms(approval)))
    }

    /// A new token; none when what it is for has expired.
    fn link(&mut self, subject: &AnswerSubject, ends_ms: Option<i64>) -> Result<Option<AnswerLink>, Fault> {
        let expires_at_ms = self.until_ms.min(ends_ms.unwrap_or(i64::MAX));
        if expires_at_ms <= self.now_ms {
            return Ok(None);
        }
        let token = new_answer_token().map_err(|why| Fault::Store(StoreError::Other(why)))?;
        let (hash, call) = (hash_text(&token), subject.written());
        self.tokens.push(AnswerToken { hash, pause: self.pause, call, expires_at_ms, used: false });
        let link = answer_link(&self.url, &token);
        Ok(Some(AnswerLink { url: self.url.clone(), link, token, expires_at: rfc3339(expires_at_ms) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_answer_is_below_the_public_one_or_a_path() {
        for (base, run_id, expected) in [
            (None, "r-1", "/agents/r-1/answer"),
            (Some("https://e.example"), "r-1", "https://e.example/agents/r-1/answer"),
            (Some("https://e.example/loops/"), "r-1", "https://e.example/loops/agents/r-1/answer"),
            (Some("https://e.example/loops"), "a/../b?c#d", "https://e.example/loops/agents/a%2F..%2Fb%3Fc%23d/answer"),
        ] {
            assert_eq!(answer_url(base, run_id), expected);
        }
    }

    #[test]
    fn a_link_is_a_whole_address_or_there_is_none() {
        let url = answer_url(Some("https://e.example/loops"), "r 1");
        assert_eq!(
            answer_link(&url, "loopctl-answer-a_b-1").as_deref(),
            Some("https://e.example/loops/agents/r%201/answer?token=loopctl-answer-a_b-1")
        );
        assert_eq!(answer_link(&answer_url(None, "r-1"), "t"), None);
    }

    #[test]
    fn a_pause_is_posted_by_one_task() {
        let pauses = PausesInPost::default();
        let first = pauses.take("r", 1);
        assert!(first.is_some() && pauses.take("r", 1).is_none());
        assert!(pauses.take("r", 2).is_some() && pauses.take("s", 1).is_some());
        let beside = pauses.take_beside("s");
        assert!(beside.is_some() && pauses.take_beside("s").is_none() && pauses.has_beside("s"));
        assert!(pauses.take_beside("r").is_none(), "its pause is being posted");
        drop(first);
        assert!(pauses.take("r", 1).is_some() && pauses.take_beside("r").is_some());
    }
}
