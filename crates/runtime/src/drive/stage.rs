//! The stage of a run that is played offline: what tools answer, what goes wrong, and a record of all calls. It outlives
//! the drivers of the run, as the world does.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::model::ScriptPlayer;
use super::model::recording::RecordedPlayer;
use super::tool::ToolCall;
use loopctl_engine::event::ToolResult;
use loopctl_lang::language::Script;
use loopctl_lang::language::recording::RecordedCall;
use loopctl_lang::language::scenario::ToolFailure;
use loopctl_lang::program::Tool;

/// What is played in place of the world.
#[derive(Debug, Clone, Default)]
pub struct StagePlan {
    /// What the models say, and what tools answer.
    pub script: Script,
    /// What the models of `llm` actions say, by the name of the action.
    pub models: BTreeMap<String, Vec<Value>>,
    /// What goes wrong with calls.
    pub faults: Vec<CallFault>,
    /// The requests to the model that fail.
    pub failures: Vec<ReplyFailure>,
    /// The recording that is played in place of the replies, and for the calls that are in it.
    pub recorded: Option<Arc<RecordedPlayer>>,
    /// Whether the models of the document are asked. Tools are played all the same.
    pub is_live: bool,
}

/// A request to the model that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyFailure {
    /// The reply that it is made for, from 0: the next request is given it.
    pub at: usize,
    /// How it fails.
    pub failure: ToolFailure,
}

/// What goes wrong with a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFault {
    /// The tool.
    pub action: String,
    /// Which attempt at a call of it, from 1; none for each.
    pub nth: Option<u32>,
    /// What happens instead.
    pub effect: CallFaultEffect,
}

/// What happens in place of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallFaultEffect {
    /// It fails.
    Fails(ToolFailure),
    /// It gives this text.
    Says(String),
}

/// A call that was made on a stage.
#[derive(Debug, Clone)]
pub struct StagedCall {
    /// The run that made it.
    pub run_id: String,
    /// Its idempotency key.
    pub key: String,
    /// The tool.
    pub action: String,
    /// The address of the step that it is, in a workflow.
    pub at: Option<String>,
    /// Its input.
    pub input: Value,
    /// What it gave; none if it never returned.
    pub result: Option<ToolResult>,
    /// Whether its answer was lost, and the document has a human say whether it happened.
    pub asks_whether_it_happened: bool,
    /// Whether nothing answers for the tool, which is not really called.
    pub is_missing: bool,
}

/// A stage.
pub struct Stage {
    /// What plays the models, and answers for tools.
    pub(super) player: Arc<ScriptPlayer>,
    recorded: Option<Arc<RecordedPlayer>>,
    models: BTreeMap<String, Arc<ScriptPlayer>>,
    /// Whether the models of the document are asked.
    pub(super) is_live: bool,
    faults: Vec<CallFault>,
    record: Mutex<StageRecord>,
}

/// What happened on a stage.
#[derive(Default)]
struct StageRecord {
    calls: Vec<StagedCall>,
    /// How many different calls of each tool each run made.
    counts: BTreeMap<(String, String), usize>,
    /// The attempts at each call, by its tool and its key: a call that is made again after it gave something is the last of
    /// them.
    numbers: BTreeMap<(String, String), Vec<StagedAttempt>>,
    /// The attempts whose outcomes were lost with their driver, by call: an attempt that is made again is the same one.
    lost: BTreeMap<(String, String), VecDeque<StagedAttempt>>,
    /// How many attempts there were at calls of each tool.
    attempts: BTreeMap<String, u32>,
    /// The position after each question of an `llm` action, by the name of the action.
    positions: BTreeMap<String, usize>,
    /// The position before the questions of a call, by its key.
    questions: BTreeMap<String, usize>,
}

/// An attempt at a call.
#[derive(Clone)]
struct StagedAttempt {
    /// Its number among those of its tool in its run, from 0.
    number: usize,
    /// What goes wrong with it.
    fault: Option<CallFaultEffect>,
}

impl StageRecord {
    /// The attempt that a call repeats; none for a new one.
    fn repeated(&mut self, of_key: &(String, String)) -> Option<StagedAttempt> {
        let gave = |other: &StagedCall| other.key == of_key.1 && matches!(other.result, Some(ToolResult::Ok(_)));
        let known = self.numbers.get(of_key)?;
        if self.calls.iter().any(gave) {
            return known.last().cloned();
        }
        self.lost.get_mut(of_key)?.pop_front()
    }
}

/// What a recording gives for a call.
pub(super) struct GivenCall {
    /// The call.
    pub recorded: RecordedCall,
    /// Whether no further attempt at it follows.
    pub is_last: bool,
}

/// A call on a stage that has started.
pub(super) struct BegunCall {
    /// Its place in the record.
    pub index: usize,
    /// Its number among the calls of its tool, from 0.
    pub number: usize,
    /// What goes wrong with it.
    pub fault: Option<CallFaultEffect>,
}

impl Stage {
    /// A stage on which nothing has happened.
    pub fn new(plan: StagePlan) -> Self {
        let player = |replies| Arc::new(ScriptPlayer::new(Script { replies, ..Script::default() }));
        let mut script = plan.script;
        // An empty list answers for nothing: a call of such a tool has no entry.
        script.tools.retain(|_, answers| !answers.is_empty());
        let models = plan.models.into_iter().map(|(name, replies)| (name, player(replies))).collect();
        Self {
            player: Arc::new(
                ScriptPlayer::new(script).with_failures(&plan.failures).with_recording(plan.recorded.clone()),
            ),
            recorded: plan.recorded,
            models,
            is_live: plan.is_live,
            faults: plan.faults,
            record: Mutex::default(),
        }
    }

    fn record(&self) -> MutexGuard<'_, StageRecord> {
        // Each change leaves the record whole.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All calls so far, in the order in which they began.
    pub fn calls(&self) -> Vec<StagedCall> {
        self.record().calls.clone()
    }

    /// How many replies of the model of an `llm` action were used, by the name of the action.
    pub fn questions(&self) -> BTreeMap<String, usize> {
        self.record().positions.clone()
    }

    /// What a recording gives for a call; none when it is not in one.
    pub(super) fn recorded(&self, tool: &Tool, call: &ToolCall<'_>) -> Option<GivenCall> {
        let player = self.recorded.as_ref()?;
        let at = call.at.map_or_else(|| call.id.to_string(), str::to_owned);
        let recorded = player.call(call.run_id, &at, &tool.name, call.input)?;
        let is_last = !player.has_more(call.run_id, &at);
        Some(GivenCall { recorded, is_last })
    }

    /// What plays the model of an `llm` action; none when nothing does.
    pub(super) fn model(&self, action: &str) -> Option<&Arc<ScriptPlayer>> {
        self.models.get(action)
    }

    /// Whether a script answers for a tool, or plays the model of an `llm` action.
    pub(super) fn answers_for(&self, action: &str) -> bool {
        self.player.names_tool(action) || self.models.contains_key(action)
    }

    /// Records that a call begins.
    pub(super) fn begin(&self, tool: &Tool, call: &ToolCall<'_>) -> BegunCall {
        let (action, key) = (tool.name.clone(), call.key());
        let mut record = self.record();
        let of_key = (action.clone(), key.clone());
        let StagedAttempt { number, fault } = match record.repeated(&of_key) {
            Some(known) => known,
            None => {
                let count = record.counts.entry((call.run_id.to_owned(), action.clone())).or_default();
                let number = *count;
                *count += 1;
                let attempt = record.attempts.entry(action.clone()).or_default();
                *attempt = attempt.saturating_add(1);
                let nth = *attempt;
                let is_meant = |fault: &&CallFault| fault.action == action && fault.nth.is_none_or(|at| at == nth);
                let fault = self.faults.iter().find(is_meant).map(|fault| fault.effect.clone());
                let attempt = StagedAttempt { number, fault };
                record.numbers.entry(of_key).or_default().push(attempt.clone());
                attempt
            }
        };
        let index = record.calls.len();
        record.calls.push(StagedCall {
            run_id: call.run_id.to_owned(),
            key,
            action,
            at: call.at.map(str::to_owned),
            input: Value::clone(call.input),
            result: None,
            asks_whether_it_happened: false,
            is_missing: false,
        });
        BegunCall { index, number, fault }
    }

    /// Records what a call gave.
    pub(super) fn end(&self, index: usize, result: ToolResult) {
        if let Some(call) = self.record().calls.get_mut(index) {
            call.result = Some(result);
        }
    }

    /// Records that the answer to the last call of a key was lost, so that a human is asked about it.
    pub(super) fn answer_lost(&self, key: &str) {
        if let Some(call) = self.record().calls.iter_mut().rev().find(|call| call.key == key) {
            call.asks_whether_it_happened = true;
        }
    }

    /// The driver died: the outcomes of calls are lost but for those with these keys, and but for this many failed attempts at the
    /// others.
    pub fn died(&self, stored: &[String], attempts: &BTreeMap<String, usize>) {
        let mut record = self.record();
        let lost = record.numbers.iter().filter(|((_, key), _)| !stored.contains(key));
        let again = |key: &String, made: &[StagedAttempt]| {
            made.iter().skip(attempts.get(key).copied().unwrap_or_default()).cloned().collect()
        };
        record.lost = lost.map(|(of_key, made)| (of_key.clone(), again(&of_key.1, made))).collect();
    }

    /// Records that nothing answers for the tool of a call.
    pub(super) fn is_missing(&self, index: usize) {
        if let Some(call) = self.record().calls.get_mut(index) {
            call.is_missing = true;
        }
    }

    /// The next reply for the question of an `llm` action; a call that is made again asks from the same one on.
    pub(super) fn position(&self, action: &str, key: &str) -> usize {
        let mut record = self.record();
        let next = record.positions.get(action).copied().unwrap_or_default();
        *record.questions.entry(key.to_owned()).or_insert(next)
    }

    /// Records how many replies of an `llm` action are used.
    pub(super) fn asked(&self, action: &str, position: usize) {
        let mut record = self.record();
        let known = record.positions.entry(action.to_owned()).or_default();
        *known = position.max(*known);
    }
}
