//! Posts what a run asks to the targets of `ask`, beside the steps that are under way, or before the driver leaves a run that
//! waits. Each try is an event, so that a question is posted at least once, and not again by the next driver. A try that
//! failed is made again when it is due: the row of the run says so.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;

use super::answer_hint::{AnswerHint, HintRequest};
use super::clock;
use super::fault::Fault;
use super::posts_under_way::name;
use super::question_text::{self, PostedQuestion};
use super::run::{CANCEL_POLL_INTERVAL, Driver, Interruption, Interrupts, Waited};
use super::stop::Stop;
use super::tool::ToolCall;
use super::world::World;
use loopctl_engine::effect::{Effect, Effects};
use loopctl_engine::event::{Allowance, CallId, EventKind, QuestionPosted, ToolFault, ToolResult};
use loopctl_engine::open_posts::{NextPost, QuestionToPost, asked_questions, open_posts};
use loopctl_engine::state::{Phase, RunHeader};
use loopctl_engine::wait_deadline::due_times;
use loopctl_lang::compile::question_tool;
use loopctl_lang::program::Program;
use loopctl_lang::program::json_texts::JsonRule;

/// The maximum number of tries for a post.
const MAX_TRIES: u32 = 16;
/// The wait after the first try; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait between two tries.
const MAX_WAIT: Duration = Duration::from_secs(15 * 60);
/// How long a try may take.
const TRY_TIMEOUT: Duration = Duration::from_secs(5);
/// For so long a driver that has nothing else to do makes the tries again itself. Then it leaves the run.
const PATIENCE: Duration = Duration::from_secs(1);
/// The maximum number of posts of a run that are made at a time.
const MAX_POSTS_AT_ONCE: usize = 8;
/// The failures that stay: the project of a run excludes the host of a target, or what would be sent.
const LASTING: [&str; 3] = ["address not allowed", "header not allowed", "secret not sent"];
/// No time of the run is used up by the posts of one that waits.
const NO_LIMIT: Duration = Duration::from_secs(0xFFFF_FFFF);

impl Driver<'_> {
    /// Begins the posts that are due.
    pub(super) fn begin_posts(&mut self) {
        self.begin_due_posts(true);
    }

    /// Begins the posts that are due; those that failed before only where they may be tried again now.
    fn begin_due_posts(&mut self, tries_again: bool) {
        let questions = asked_questions(&self.state);
        if questions.is_empty() {
            return;
        }
        let now_ms = clock::wall_ms();
        for post in open_posts(&self.state.posts, &questions, now_ms) {
            if self.posts.posts.len() >= MAX_POSTS_AT_ONCE {
                return;
            }
            let NextPost { reminder, failed, due_at_ms } = post.next;
            let is_now = due_at_ms <= now_ms && (tries_again || failed == 0);
            if is_now && self.posts.names.insert(name(&post.key(), post.to)) {
                let made = MadePost {
                    world: Arc::clone(self.world),
                    program: Arc::clone(self.program),
                    header: Arc::clone(&self.state.header),
                    asked: QuestionToPost { key: post.key(), ..post.asked.clone() },
                    reminder,
                    to: post.to.to_owned(),
                    tries: failed.saturating_add(1),
                };
                self.posts.posts.spawn(made.post());
            }
        }
    }

    /// Takes what became of a post.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn take_posted(&mut self, what: Option<EventKind>) -> Result<(), Fault> {
        let Some(what) = what else { return Ok(()) };
        if let EventKind::QuestionPosted(posted) = &what {
            self.posts.names.remove(&name(&posted.question, &posted.to));
        }
        // Nothing follows the end of a run.
        if matches!(self.state.phase, Phase::Ended(_)) {
            return Ok(());
        }
        self.take(what).await.map(drop)
    }

    /// Posts what a run asks that waits, and takes decisions that come meanwhile. None: nothing follows, and what is still to be
    /// posted is due later.
    ///
    /// # Errors
    /// When the store fails.
    pub(super) async fn post_questions(&mut self) -> Result<Option<Effects>, Fault> {
        self.begin_posts();
        if self.posts.is_empty() && self.next_try().is_none() {
            return Ok(None);
        }
        let began = clock::instant();
        let mut inbox = self.world.inboxes.open(&self.lease.run_id);
        let mut look = tokio::time::interval(CANCEL_POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // A target that hangs holds no slot for as long as it is tried.
            self.begin_due_posts(clock::elapsed(began) <= PATIENCE);
            let again = self.next_try().filter(|wait| clock::elapsed(began).saturating_add(*wait) <= PATIENCE);
            if self.posts.is_empty() && again.is_none() {
                return Ok(None);
            }
            let stop: Option<&Stop> = self.watch.stop.as_ref();
            let interrupts = Interrupts { world: self.world, stop, run_id: &self.lease.run_id, left: NO_LIMIT };
            let is_flow = self.program.is_flow();
            let news = async {
                tokio::select! {
                    biased;
                    passed = inbox.next(), if is_flow => PostNews::Decided(passed),
                    what = self.posts.next() => PostNews::Posted(what),
                    () = tokio::time::sleep(again.unwrap_or(NO_LIMIT)), if again.is_some() => PostNews::Look,
                    _ = look.tick() => PostNews::Look,
                }
            };
            let next = match interrupts.wait(news).await? {
                Waited::Done(PostNews::Posted(what)) => {
                    self.take_posted(what).await?;
                    continue;
                }
                Waited::Done(PostNews::Decided(passed)) => self.take_passed(passed).await?,
                Waited::Done(PostNews::Look) => {
                    // Each wait is over before it looks for these itself.
                    if let Some(what) = self.due_while_posting().await? {
                        return self.take(what).await.map(Some);
                    }
                    if !is_flow {
                        continue;
                    }
                    self.look_beside().await?
                }
                Waited::Interruption(Interruption::Event(what)) => return self.take(what).await.map(Some),
                // The next driver posts what is not posted yet.
                Waited::Interruption(Interruption::Stop) => return Ok(None),
            };
            if !next.is_empty() || !matches!(self.state.phase, Phase::Paused { .. }) {
                return Ok(Some(next.into_iter().map(Effect::RunStep).collect()));
            }
        }
    }

    /// What ends the wait of a run that posts: a request to cancel it, or the time of what it asks.
    async fn due_while_posting(&self) -> Result<Option<EventKind>, Fault> {
        if let Some(request) = self.cancel_request().await? {
            return Ok(Some(request));
        }
        let is_due = due_times(&self.state).own.is_some_and(|at_ms| at_ms <= clock::wall_ms());
        Ok(is_due.then_some(EventKind::ApprovalExpired))
    }

    /// How long it is until the next try; none when nothing is to be tried.
    fn next_try(&self) -> Option<Duration> {
        let questions = asked_questions(&self.state);
        let open = open_posts(&self.state.posts, &questions, clock::wall_ms()).into_iter();
        let due = open.filter(|post| !self.posts.names.contains(&name(&post.key(), post.to)));
        let at_ms = due.map(|post| post.next.due_at_ms).min()?;
        Some(Duration::from_millis(u64::try_from(at_ms.saturating_sub(clock::wall_ms())).unwrap_or_default()))
    }
}

/// What a driver waits for that only posts.
enum PostNews {
    Decided(super::inbox::PassedDecision),
    Posted(Option<EventKind>),
    Look,
}

/// A post that is made.
struct MadePost {
    world: Arc<World>,
    program: Arc<Program>,
    header: Arc<RunHeader>,
    asked: QuestionToPost,
    /// Which reminder it is; 0 for the question itself.
    reminder: u32,
    to: String,
    tries: u32,
}

impl MadePost {
    /// Makes it once.
    async fn post(self) -> EventKind {
        let (error, without_link) = match self.made().await {
            Ok(without_link) => (None, without_link),
            Err(fault) => (Some(fault), None),
        };
        let Self { header, asked, reminder, to, tries, .. } = self;
        if let Some(PostFault { why, .. }) = &error {
            tracing::warn!(
                run_id = header.run_id,
                at = asked.at(),
                to,
                tries,
                "what the run asks was not posted: {why}"
            );
        }
        let again = error.as_ref().filter(|fault| fault.may_pass && tries < MAX_TRIES);
        let next_try_at_ms = again.map(|_| {
            let wait = u64::try_from(wait_after(tries).as_millis()).unwrap_or(u64::MAX);
            clock::wall_ms().saturating_add_unsigned(wait)
        });
        EventKind::QuestionPosted(Box::new(QuestionPosted {
            at: asked.at().to_owned(),
            escalated: asked.is_escalated(),
            reminder,
            question: asked.key,
            to,
            tries,
            error: error.map(|fault| fault.why),
            next_try_at_ms,
            without_link: without_link.map(str::to_owned),
        }))
    }

    /// Makes it: why it has no link, or why it failed.
    async fn made(&self) -> Result<Option<&'static str>, PostFault> {
        if self.world.toolbox.plays_posts() {
            return Ok(None);
        }
        let Self { world, program, header, asked, to, .. } = self;
        let target = program.project.notify.get(to);
        let lasting = |why: String| PostFault { why, may_pass: false };
        let target = target.ok_or_else(|| lasting(format!("the project has no `notify` target `{to}`")))?;
        let tool = question_tool(to, target);
        let tool = tool.ok_or_else(|| lasting(format!("the `notify` target `{to}` is not valid")))?;
        let request =
            HintRequest { run_id: header.run_id.clone(), rights: header.callback_rights, asked: asked.clone() };
        let hint = match &world.hints {
            Some(hints) => hints.hint(request).await.map_err(|why| PostFault { why, may_pass: true })?,
            None => AnswerHint::default(),
        };
        let text = question_text::of(program, header, &PostedQuestion { asked, reminder: self.reminder, hint: &hint });
        let mut input = json!({ "to": to, "text": text, "run_id": header.run_id, "at": asked.at() });
        let more = [
            ("link", hint.link.as_deref().map(Value::from)),
            ("reminder", (self.reminder > 0).then(|| self.reminder.into())),
            ("escalated", asked.is_escalated().then_some(Value::Bool(true))),
        ];
        if let Some(input) = input.as_object_mut() {
            let more = more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            input.extend(more);
        }
        let key = format!("asks-{to}-{}", asked.key.replace(' ', "-"));
        let call = ToolCall {
            id: CallId { iteration: 0, index: 0 },
            at: Some(&key),
            request: 0,
            input: &Arc::new(input),
            run_input: &Value::Null,
            lists: None,
            run_id: &header.run_id,
            loop_name: &header.loop_name,
            json: JsonRule::Plain,
            now: &clock::rfc3339(clock::wall_ms()),
            model: "",
            deadline: TRY_TIMEOUT,
            left: Allowance::default(),
            trace: world.trace_context(&header.run_id, asked.at()),
            answered: &[],
            listener: None,
            wait: None,
        };
        match world.toolbox.call(&tool, &call).await.result {
            ToolResult::Ok(_) => Ok(hint.without_link),
            ToolResult::Failed(fault) => {
                Err(PostFault { why: sentence(&fault), may_pass: !LASTING.contains(&fault.class.as_str()) })
            }
        }
    }
}

/// Why a post failed.
struct PostFault {
    /// In a sentence.
    why: String,
    /// Whether the same post may succeed when it is made again.
    may_pass: bool,
}

/// Why a post failed, in a sentence without the text that was posted.
fn sentence(fault: &ToolFault) -> String {
    let ToolFault { class, detail, .. } = fault;
    if detail.is_empty() { class.clone() } else { format!("{class}: {detail}") }
}

/// The wait after a number of failed tries.
fn wait_after(tries: u32) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    FIRST_WAIT.saturating_mul(1 << doublings).min(MAX_WAIT)
}
