//! The state of a run: the fold of its events.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::address::StepAddress;
use super::call_attempt::CallAttempt;
use super::continuation_record::ContinuationRecord;
use super::conversation::Conversation;
use super::decision::decision_record::DecisionRecord;
use super::effect::Refused;
use super::event::{CallId, FailedAttempt, Finish, RaisedLimits, Tokens, ToolFault};
use super::flow::progress::{FlowProgress, StepChange};
use super::history::notes::NotesTally;
use super::json::Json;
use super::operation::{Call, OpenStep, Progress};
use super::outcome::{Ending, Limit, Pause, Status};
use super::question::Question;
use super::question_post::QuestionPosts;
use super::reply::refusal::RefusalCause;
use super::token_estimator::TokenEstimator;
use loopctl_lang::program::Program;
use loopctl_lang::program::selected_tools::SelectedTools;

pub use super::header::RunHeader;

/// A run's state: that of the machine that folds its events.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most runs are loops, and few states are moved")]
pub enum State {
    /// That of a loop of mode `react`.
    Loop(LoopState),
    /// That of a workflow, or of a loop of mode `foreach`.
    Flow(FlowState),
}

/// What the states of loops and workflows have in common.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StateHead {
    /// Where the run is.
    pub phase: Phase,
    /// What is fixed since its start; calls under way share it.
    pub header: Arc<RunHeader>,
    /// What humans decided, in their order.
    pub decisions: Vec<DecisionRecord>,
    /// How humans made it continue after an end, and the limits that they raised.
    pub continuations: Vec<ContinuationRecord>,
    /// To whom its questions were posted.
    pub posts: QuestionPosts,
    /// The limits that replace those of the document.
    pub limits: RaisedLimits,
    /// What was counted.
    pub counters: Counters,
    /// How much of the budget is used.
    pub budget: BudgetUse,
    /// How many pauses there were.
    pub pauses: u32,
    /// The time of the last event.
    pub now: super::event::Moment,
    /// Whether a driver stopped between two steps, so that the run can be resumed.
    pub interrupted: bool,
}

/// The state of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopState {
    /// What it has in common with workflows.
    pub head: StateHead,
    /// What the model reads.
    pub conversation: Conversation,
    /// What happened, one entry a call or unreadable reply.
    pub entries: Vec<StoredEntry>,
    /// The hints that a model in circles was given.
    pub hints: Vec<GivenHint>,
    /// The failed requests to the model, each with its iteration.
    pub attempts: Vec<(u32, FailedAttempt)>,
    /// The tools that are offered now; nothing where all are.
    pub selected: Option<Arc<SelectedTools>>,
    /// The agent's memory.
    pub memory: BTreeMap<String, Value>,
    /// What the last reply brought besides its text.
    pub last_reply: LastReply,
    /// What stuck detection and the limit of unreadable replies look at.
    pub watch: Watchdog,
    /// Where a cancelled run was.
    pub cancelled_in: Option<Box<Phase>>,
}

/// The state of a workflow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowState {
    /// What it has in common with loops.
    pub head: StateHead,
    /// How far each list of steps is.
    pub progress: FlowProgress,
}

/// Where a run is. Each phase holds its own data.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    /// No event yet.
    #[default]
    New,
    /// The model is asked; `forced` when it must answer because a limit was reached.
    Thinking {
        /// The limit that was reached.
        forced: Option<Limit>,
    },
    /// The model is asked to summarise the messages after the opening, up to this one; the summary replaces them.
    Summarizing {
        /// The place of the first message that stays.
        until: usize,
    },
    /// Steps of a workflow are under way.
    Stepping,
    /// The calls of a turn are under way.
    Acting {
        /// The turn.
        turn: Turn,
    },
    /// The run waits for a human.
    Paused {
        /// For what. On the heap: most phases are small, and each step moves them.
        pause: Box<Pause>,
        /// The turn whose calls wait; none for a question or a stuck run.
        turn: Option<Turn>,
    },
    /// The run has ended.
    Ended(Box<Ending>),
}

impl Phase {
    /// Why no decision fits a phase in which no human is waited for.
    pub(super) fn takes_no_decision(&self) -> Refused {
        match self {
            Self::New => Refused::new("the run has not started"),
            Self::Ended(ending) => Refused::Ended { status: ending.status },
            _ => Refused::NotAsked,
        }
    }
}

/// The calls of one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// The iteration, from 1.
    pub iteration: u32,
    /// What the model thought.
    pub thought: String,
    /// The tokens of the reply.
    pub usage: Option<Tokens>,
    /// When the reply came, in milliseconds since 1970.
    pub at_ms: i64,
    /// The time that the model took, in milliseconds.
    pub thinking_ms: u64,
    /// The calls in the model's order.
    pub calls: Vec<Call>,
}

impl Turn {
    /// The call that an event is about.
    ///
    /// # Errors
    /// When it is not under way.
    pub(super) fn call_under_way(&mut self, id: CallId) -> Result<&mut Call, Refused> {
        let iteration = self.iteration;
        match self.calls.iter_mut().find(|call| call.address == id) {
            Some(call) if call.progress.is_under_way() => Ok(call),
            Some(Call { progress: Progress::Held, .. }) => Err(Refused::new("the call was not made yet")),
            Some(_) => Err(Refused::new("the call has returned already")),
            None => Err(Refused::new(format!("iteration {iteration} has no such call"))),
        }
    }
}

/// What happened in one call, or in one unreadable reply: a trace entry in a compact form, because many runs at rest are
/// kept in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEntry {
    /// The iteration, from 1; several calls of a turn share it.
    pub iteration: u32,
    /// When the reply came, in milliseconds since 1970.
    pub at_ms: i64,
    /// What the model thought.
    pub thought: Box<str>,
    /// The tool; none for an unreadable reply. Shared with the entry before, if that has the same.
    pub action: Option<Arc<str>>,
    /// Its input.
    pub action_input: Json,
    /// What the model reads of it, cut to `max_observation_chars`.
    pub observation: Json,
    /// Whether the call did what was asked.
    pub success: bool,
    /// Why not, for the operator.
    pub error: Option<Box<ToolFault>>,
    /// The time of the call in milliseconds; of the model, when nothing was called.
    pub duration_ms: u64,
    /// How long the call waited for its turn, in milliseconds.
    pub waited_ms: u64,
    /// The tokens of the reply; on the first entry of a turn.
    pub usage: Option<Tokens>,
    /// The sub-run, when the call was one.
    pub run_id: Option<Box<str>>,
    /// When the call was requested, in milliseconds since 1970; none if it was not.
    pub called_at_ms: Option<i64>,
    /// The failed attempts at the call, when it was made again.
    pub attempts: Box<[CallAttempt]>,
}

/// A hint that the model read behind an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenHint {
    /// The place of the observation's entry.
    pub entry: usize,
    /// What the model read.
    pub text: Box<str>,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Replies read, readable or not.
    pub iterations: u32,
    /// Tokens in all.
    pub tokens: Tokens,
    /// Whether some of them are an estimate, because a provider did not say.
    pub estimated: bool,
    /// Whether some of them are the most that was used: nobody knows what became of a request that was sent.
    #[serde(skip)]
    pub at_most: bool,
    /// Calls made, by tool.
    pub calls: BTreeMap<String, u32>,
    /// Tool calls that were made, of all tools.
    pub tool_calls_made: u32,
    /// Replies that could not be read.
    pub invalid_replies: u32,
    /// Replies that `max_tokens` cut off.
    pub truncated_responses: u32,
    /// Observations that were cut.
    pub truncated_observations: u32,
    /// Messages that the history lost.
    pub messages_trimmed: u32,
    /// Model calls that failed and were made again.
    pub model_retries: u32,
    /// Attempts at tool calls that failed and were made again, by tool.
    #[serde(skip)]
    pub tool_retries: BTreeMap<String, u32>,
    /// How often servers asked a human in the middle of a call, by tool.
    #[serde(skip)]
    pub server_questions: BTreeMap<String, u32>,
    /// The tokens of the last request and its reply by the provider's count (or the estimate), and the bytes of
    /// the conversation at that time: the estimate of the next request uses them.
    #[serde(skip)]
    pub window: (u64, usize),
    /// Whether the provider counted those tokens.
    #[serde(skip)]
    pub is_window_counted: bool,
    /// How tokens are estimated.
    #[serde(skip)]
    pub estimator: TokenEstimator,
    /// What the tokens cost in US dollars, as far as prices are known.
    #[serde(skip)]
    pub cost_usd: f64,
    /// Whether the price of some tokens is not known.
    #[serde(skip)]
    pub unpriced: bool,
    /// The number of summaries of the history.
    #[serde(skip)]
    pub summaries: u32,
    /// What was wrong with them.
    #[serde(skip)]
    pub notes: NotesTally,
    /// How many requests to the model failed for good while the run continued.
    #[serde(skip)]
    pub calls_failed: u32,
    /// The tools of which a call was asked for and not allowed, or not in time.
    #[serde(skip)]
    pub denied: Option<Box<DeniedTools>>,
}

/// What the last reply brought besides its text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LastReply {
    /// The time of the model call in milliseconds.
    pub thinking_ms: u64,
    /// How long its requests waited for their turns, in milliseconds.
    pub waited_ms: u64,
    /// Why the reply stopped.
    pub finish: Finish,
    /// The model that the provider named, when it was not the one that was asked for.
    pub response_model: Option<Box<str>>,
    /// The milliseconds from the request to the first token of its reply, when that was streamed.
    pub time_to_first_token_ms: Option<u64>,
}

/// How much of the budget is used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct BudgetUse {
    /// The share that is used; 1 is all of it.
    pub used: f64,
    /// Whether the share was reached at which a warning is given.
    pub is_warned: bool,
}

/// What stuck detection and the limit of unreadable replies look at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Watchdog {
    /// The steps since the start, the last human input, or the last hint.
    pub steps: Vec<super::stuck::StepDigest>,
    /// How many hints were given.
    pub hints: u32,
    /// Unreadable replies in a row.
    pub invalid_in_a_row: u32,
    /// What a provider said last of a refusal.
    pub refusal: Box<str>,
    /// What the present request waited for when the time of the run was over.
    pub in_line: Option<Box<str>>,
    /// How many answers did not match `answer_schema`.
    pub answers_refused: u32,
    /// How often the provider refused the present request as too long.
    pub too_long: u32,
    /// The window of the run's model in tokens, as its server showed it.
    pub window: Option<u64>,
    /// The limit because of which the model was asked for a last answer.
    pub last_call: Option<Limit>,
    /// The attempts at the present request that may have been paid for.
    pub paid: PaidAttempts,
    /// The same of the request that waits for a summary of the history.
    pub paid_before_summary: PaidAttempts,
}

/// The attempts at a request that may have been paid for, by the model that was asked; the run's own has no name. They count over a
/// pause and what resumes the run by itself. A reply ends them, and so does a human who has the model asked again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PaidAttempts(BTreeMap<Box<str>, u32>);

impl PaidAttempts {
    /// Counts an attempt.
    pub(super) fn count(&mut self, attempt: &FailedAttempt) {
        if attempt.usage.is_some() {
            let count = self.0.entry(attempt.model.as_deref().unwrap_or_default().into()).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// How many there were of a model; none is the run's own.
    pub fn of(&self, model: Option<&str>) -> u32 {
        self.0.get(model.unwrap_or_default()).copied().unwrap_or(0)
    }

    /// Another request follows, or a human allows more attempts.
    pub(super) fn end(&mut self) {
        self.0.clear();
    }
}

/// The tools of which a call was not allowed. Few runs have one, and a run that waits is kept small.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeniedTools(pub BTreeSet<String>);

impl Counters {
    /// Subtracts a call that a human did not allow, or not in time.
    pub(super) fn denied(&mut self, tool: &str) {
        self.unmade(tool);
        self.denied.get_or_insert_default().0.insert(tool.to_owned());
    }

    /// Subtracts a call that was requested and not made.
    pub(super) fn unmade(&mut self, tool: &str) {
        if let Some(calls) = self.calls.get_mut(tool) {
            *calls = calls.saturating_sub(1);
        }
    }
}

// Most readers of the head don't care which machine the run has.
impl Deref for State {
    type Target = StateHead;

    fn deref(&self) -> &StateHead {
        match self {
            Self::Loop(state) => &state.head,
            Self::Flow(state) => &state.head,
        }
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut StateHead {
        match self {
            Self::Loop(state) => &mut state.head,
            Self::Flow(state) => &mut state.head,
        }
    }
}

impl Deref for LoopState {
    type Target = StateHead;

    fn deref(&self) -> &StateHead {
        &self.head
    }
}

impl DerefMut for LoopState {
    fn deref_mut(&mut self) -> &mut StateHead {
        &mut self.head
    }
}

impl Deref for FlowState {
    type Target = StateHead;

    fn deref(&self) -> &StateHead {
        &self.head
    }
}

impl DerefMut for FlowState {
    fn deref_mut(&mut self) -> &mut StateHead {
        &mut self.head
    }
}

impl State {
    /// The state before the first event.
    pub fn new(program: &Program) -> Self {
        match program {
            Program::Loop(_) => Self::Loop(LoopState::default()),
            Program::Flow(_) => Self::Flow(FlowState::default()),
        }
    }

    /// That of a loop, when it is one.
    pub fn as_loop(&self) -> Option<&LoopState> {
        match self {
            Self::Loop(state) => Some(state),
            Self::Flow(_) => None,
        }
    }

    /// The same, alone.
    pub fn into_loop(self) -> Option<LoopState> {
        match self {
            Self::Loop(state) => Some(state),
            Self::Flow(_) => None,
        }
    }

    /// That of a workflow, when it is one.
    pub fn as_flow(&self) -> Option<&FlowState> {
        match self {
            Self::Loop(_) => None,
            Self::Flow(state) => Some(state),
        }
    }

    /// Why a program of the other machine can't fold the run.
    pub(super) fn is_of_another_machine(&self) -> Refused {
        Refused::new(match self {
            Self::Loop(_) => "the run is a loop, and its document is a workflow",
            Self::Flow(_) => "the run is a workflow, and its document is a loop",
        })
    }

    /// What happened, one entry a call or unreadable reply: in a loop.
    pub fn entries(&self) -> &[StoredEntry] {
        self.as_loop().map(|state| state.entries.as_slice()).unwrap_or_default()
    }

    /// The steps that have started and not ended, in the order of their addresses: in a workflow.
    pub fn open_steps(&self) -> Vec<&OpenStep> {
        self.as_flow().map(|state| state.progress.open()).unwrap_or_default()
    }

    /// The open step at an address.
    pub fn open_step(&self, at: &StepAddress) -> Option<&OpenStep> {
        self.as_flow()?.progress.open_at(at)
    }

    /// What the last event began and ended, steps in loops included: in a workflow.
    pub fn step_changes(&self) -> &[StepChange] {
        self.as_flow().map(|state| state.progress.changes.as_slice()).unwrap_or_default()
    }

    /// The turn that is not over: that of [`StateHead::turn`], or the one in which the run was cancelled.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.as_loop()?.open_turn()
    }
}

impl LoopState {
    /// The tool of the last entry.
    pub(super) fn last_action(&self) -> Option<&Arc<str>> {
        self.entries.last()?.action.as_ref()
    }

    /// The turn that is not over: that of [`StateHead::turn`], or the one in which the run was cancelled.
    pub fn open_turn(&self) -> Option<&Turn> {
        match (&self.phase, self.cancelled_in.as_deref()) {
            (Phase::Ended(_), Some(Phase::Acting { turn } | Phase::Paused { turn: Some(turn), .. })) => Some(turn),
            _ => self.turn(),
        }
    }

    /// Whether the last reply was empty, and the model has read that it was.
    pub fn has_answered_an_empty_reply(&self) -> bool {
        self.entries.last().and_then(RefusalCause::of_entry) == Some(RefusalCause::Empty)
    }

    /// That the last reply was refused, in a sentence with what the provider says of it; none if it was not.
    pub(super) fn last_refusal(&self) -> Option<String> {
        let is_refused = self.entries.last().and_then(RefusalCause::of_entry) == Some(RefusalCause::Refused);
        let words = &self.watch.refusal;
        let why = if words.is_empty() { String::new() } else { format!(": {words}") };
        is_refused.then(|| format!("the model or its provider refused the last reply{why}"))
    }
}

impl StateHead {
    /// The turn whose calls are under way or wait, if there is one.
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Acting { turn } => Some(turn),
            Phase::Paused { turn, .. } => turn.as_ref(),
            Phase::New | Phase::Thinking { .. } | Phase::Summarizing { .. } | Phase::Stepping | Phase::Ended(_) => None,
        }
    }

    /// A new pause, with the next number.
    pub(super) fn new_pause(&mut self, question: Question, calls: Vec<CallId>) -> Box<Pause> {
        self.pauses += 1;
        let number = self.pauses;
        Box::new(Pause { number, question, calls, forced: None, asks: None, steps: Vec::new(), until_ms: None })
    }

    /// Whether the run has started, and its first steps wait for its place in a line.
    pub fn waits_in_line(&self) -> bool {
        matches!(self.phase, Phase::New) && !self.header.run_id.is_empty()
    }

    /// The run's status.
    pub fn status(&self) -> Status {
        match &self.phase {
            Phase::Ended(ending) => ending.status,
            _ if self.interrupted => Status::Cancelled,
            Phase::Paused { .. } => Status::Paused,
            Phase::New
            | Phase::Thinking { .. }
            | Phase::Summarizing { .. }
            | Phase::Acting { .. }
            | Phase::Stepping => Status::Running,
        }
    }

    /// The call of this id, in the turn that is under way.
    pub fn call(&self, id: CallId) -> Option<&Call> {
        self.turn()?.calls.iter().find(|call| call.address == id)
    }

    /// The active time that the run may take, in milliseconds.
    pub fn timeout_ms(&self) -> u64 {
        self.limits.timeout_ms.unwrap_or(self.header.timeout_ms)
    }

    /// How many attempts at calls of a tool have ended: not those that are under way or uncertain. It is the number of used
    /// entries of a script.
    pub fn calls_returned(&self, tool: &str) -> u32 {
        let calls = self.turn().map(|turn| turn.calls.as_slice()).unwrap_or_default();
        let open = calls.iter().filter(|call| call.name == tool && !matches!(call.progress, Progress::Done { .. }));
        let open = u32::try_from(open.count()).unwrap_or(u32::MAX);
        let of = |counted: &BTreeMap<String, u32>| counted.get(tool).copied().unwrap_or(0);
        of(&self.counters.calls)
            .saturating_sub(open)
            .saturating_add(of(&self.counters.tool_retries))
            .saturating_add(of(&self.counters.server_questions))
    }

    /// How many attempts at calls have ended, by tool.
    pub fn returned(&self) -> BTreeMap<String, usize> {
        let calls = |tool: &String| usize::try_from(self.calls_returned(tool)).unwrap_or(usize::MAX);
        self.counters
            .calls
            .keys()
            .chain(self.counters.tool_retries.keys())
            .chain(self.counters.server_questions.keys())
            .map(|tool| (tool.clone(), calls(tool)))
            .collect()
    }

    /// What the run cost in US dollars so far, when the prices of all models that it asked are known.
    pub fn cost_usd(&self) -> Option<f64> {
        let known = self.header.model.price.is_some() || self.counters.cost_usd > 0.0;
        (known && !self.counters.unpriced).then_some(self.counters.cost_usd)
    }

    /// How many replies and failures of the model there were: the number of used entries of a script.
    pub fn model_calls(&self) -> u32 {
        let counters = &self.counters;
        let answered = counters.iterations.saturating_add(counters.summaries);
        answered.saturating_add(counters.model_retries).saturating_add(counters.calls_failed)
    }
}
