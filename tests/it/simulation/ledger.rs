//! What really happened outside of the engine, counted on its own: what was called, what was allowed,
//! what was used. The engine's state is held against it.

use std::collections::{BTreeMap, BTreeSet};

use loopctl::Program;
use loopctl::engine::continuation::limits;
use loopctl::engine::event::{CallId, Decided, Decision, Event, EventKind, Tokens};
use loopctl::engine::operation::{AskedFor, Call, Progress};
use loopctl::engine::record::trace;
use loopctl::engine::state::{Phase, State};
use loopctl::language::action::OnUncertain;
use loopctl::language::react::CallOrder;
use loopctl::program::ToolKind;
use loopctl::program::approval::ApprovalNeed;
use serde_json::Value;

use crate::simulation::words;

/// The books.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Calls whose outcome is durable.
    finished: BTreeSet<CallId>,
    /// How often each call was made, and how often it may be.
    made: BTreeMap<CallId, u32>,
    allowed: BTreeMap<CallId, u32>,
    /// What a human approved, with the input that was approved.
    approved: BTreeMap<CallId, Value>,
    /// Who approved a call as it is.
    approvers: BTreeMap<CallId, BTreeSet<Option<String>>>,
    denied: BTreeSet<CallId>,
    /// Calls that were made, by tool.
    tools: BTreeMap<String, BTreeSet<CallId>>,
    /// Tokens that were reported, in all and by each call.
    tokens: u64,
    reported: BTreeMap<CallId, u64>,
    /// What each call returned.
    results: BTreeMap<CallId, String>,
    /// Calls that spend, were made, and whose end is not known yet.
    open: BTreeSet<CallId>,
    replies: u32,
    last_words: u32,
    /// Last answers of earlier ends.
    ended_words: u32,
}

impl Ledger {
    /// A call that was asked for before the world began.
    pub fn may_be_made(&mut self, id: CallId) {
        *self.allowed.entry(id).or_default() += 1;
    }

    /// So many replies came before the world began.
    pub fn began_with(&mut self, replies: u32) {
        self.replies = replies;
    }

    /// Notes a durable event; `before` and `after` are the states around it.
    pub fn note(&mut self, program: &Program, event: &Event, before: &State, after: &State) {
        let cancelled_in = match &before.phase {
            Phase::Ended(_) => before.as_loop().and_then(|before| before.cancelled_in.as_deref()),
            _ => None,
        };
        // A cancelled run continues where it was.
        let reopened = cancelled_in.map(|phase| {
            let mut reopened = before.clone();
            reopened.phase = phase.clone();
            reopened
        });
        let before = reopened.as_ref().unwrap_or(before);
        // A call that was held is asked for by whatever lets it on; what was approved is allowed already.
        let held = |call: &&Call| before.call(call.address).is_some_and(|call| call.progress == Progress::Held);
        for call in calls(after).filter(held).filter(|call| call.progress == Progress::Requested) {
            if !self.approved.contains_key(&call.address) {
                *self.allowed.entry(call.address).or_default() += 1;
            }
        }
        match &event.kind {
            EventKind::LimitsRaised(_) if reopened.is_some() || matches!(before.phase, Phase::Ended(_)) => {
                // The model may be asked for a last answer again.
                self.ended_words += std::mem::take(&mut self.last_words);
                self.note_resumed(program, before);
            }
            EventKind::ModelReplied(said) => {
                self.replies += 1;
                self.tokens += said.usage.map_or(0, |usage| usage.input + usage.output);
                self.last_words += u32::from(matches!(before.phase, Phase::Thinking { forced: Some(_) }));
                for call in calls(after).filter(|call| call.progress == Progress::Requested) {
                    *self.allowed.entry(call.address).or_default() += 1;
                }
            }
            EventKind::Summarized(said) => self.tokens += said.usage.map_or(0, |usage| usage.input + usage.output),
            EventKind::ToolReturned(returned) => {
                self.finished.insert(returned.call);
                self.results.insert(returned.call, words::observed(&returned.result));
                self.open.remove(&returned.call);
                self.report(returned.call, returned.tokens);
            }
            EventKind::ToolLeft(left) => {
                self.open.remove(&left.call);
                // What was approved is made once more; the others are asked for again.
                if self.approved.contains_key(&left.call) {
                    self.may_be_made(left.call);
                }
                self.tokens += left.tokens.map_or(0, |tokens| tokens.input + tokens.output);
            }
            EventKind::ToolRetried(retried) if retried.lost => {}
            EventKind::ToolRetried(retried) => self.may_be_made(retried.call),
            EventKind::ToolPaused(paused) => self.report(paused.call, paused.tokens),
            EventKind::Resumed => self.note_resumed(program, before),
            EventKind::Human(decided) => {
                self.note_decision(before, after, decided);
                if let Phase::Paused { pause, .. } = &before.phase
                    && pause.asks.is_some()
                {
                    // What was decided is handed on to the run that asks.
                    pause.calls.iter().for_each(|id| self.may_be_made(*id));
                }
            }
            EventKind::ApprovalExpired => {
                let waits = |call: &&Call| matches!(call.progress, Progress::Asks(AskedFor::Approval(_)));
                for call in calls(before).filter(waits) {
                    // What waits on was escalated, or has time left.
                    if !after.call(call.address).is_some_and(|call| waits(&call)) {
                        self.denied.insert(call.address);
                    }
                }
            }
            EventKind::DeadlinePassed => self.open.clear(),
            // A stop, an end and a new document allow no call.
            _ => {}
        }
        self.results_are_in_order(before, after);
    }

    /// What the calls of a turn returned comes into the trace and into the conversation in the model's order.
    fn results_are_in_order(&self, before: &State, after: &State) {
        let observed = after.entries().get(before.entries().len()..).unwrap_or_default();
        let all: Vec<CallId> = calls(before).map(|call| call.address).collect();
        if all.is_empty() || observed.len() != all.len() {
            return;
        }
        let (before, after) = (before.as_loop().unwrap(), after.as_loop().unwrap());
        let grown = before.conversation.generation == after.conversation.generation;
        let messages = after.conversation.messages.iter().skip(before.conversation.messages.len());
        let text: String = messages.map(|message| &*message.text).collect();
        let mut rest = text.as_str();
        for (id, entry) in all.iter().zip(observed) {
            let observation = match entry.observation.value() {
                Value::String(text) => text,
                other => other.to_string(),
            };
            if let Some(result) = self.results.get(id) {
                let begin: String = result.chars().take(12).collect();
                assert!(observation.starts_with(&begin), "{id}: {observation} in place of {result}");
            }
            if grown && !text.is_empty() {
                let behind = rest.split_once(observation.as_str()).map(|(_, behind)| behind);
                rest = behind.unwrap_or_else(|| panic!("{id}: out of order in {text}"));
            }
        }
    }

    /// A call reported the tokens that it has used until now.
    fn report(&mut self, call: CallId, tokens: Option<Tokens>) {
        let now = tokens.map_or(0, |tokens| tokens.input + tokens.output);
        let before = self.reported.insert(call, now).unwrap_or_default();
        assert!(now >= before, "{call}: what was used is used");
        self.tokens += now - before;
    }

    fn note_resumed(&mut self, program: &Program, before: &State) {
        let asks = matches!(&before.phase, Phase::Paused { pause, .. } if pause.asks.is_some());
        let turn = match &before.phase {
            Phase::Acting { turn } => turn,
            Phase::Paused { turn: Some(turn), .. } if asks => turn,
            _ => return,
        };
        for call in &turn.calls {
            let tool = program.tool(&call.name).expect("only declared tools are called");
            let again = tool.after_crash() == OnUncertain::Retry;
            match &call.progress {
                Progress::Asks(AskedFor::Subrun(_)) if asks => self.may_be_made(call.address),
                progress if !progress.is_under_way() => {}
                _ if again => self.may_be_made(call.address),
                _ if tool.after_crash() == OnUncertain::Fail => {
                    self.open.remove(&call.address);
                    self.finished.insert(call.address);
                }
                _ => {}
            }
        }
    }

    /// What spends is made one after the other where there is a budget, and only while something is left.
    fn spends(&mut self, program: &Program, state: &State, id: CallId) {
        if program.budget.is_none() {
            return;
        }
        let budget = limits(program, state).budget;
        let beside = self.open.iter().filter(|other| other.iteration == id.iteration && **other != id).count();
        assert_eq!(beside, 0, "{id} spends beside another call");
        let left = budget.tokens.is_none_or(|bound| self.tokens < bound);
        assert!(!self.open.insert(id) || left, "{id} begins and nothing is left");
    }

    fn note_decision(&mut self, before: &State, after: &State, decided: &Decided) {
        let (only, decision) = (decided.call, &decided.decision);
        let Phase::Paused { pause, turn: Some(turn) } = &before.phase else { return };
        let still_waits =
            |id| after.call(id).is_some_and(|call| matches!(call.progress, Progress::Asks(AskedFor::Approval(_))));
        let meant = turn.calls.iter().filter(|call| {
            pause.calls.contains(&call.address)
                && only.is_none_or(|id| id == call.address)
                && matches!(call.progress, Progress::Asks(AskedFor::Approval(_)) | Progress::Uncertain(_))
        });
        for call in meant {
            match decision {
                Decision::Approve | Decision::Edit(_) => {
                    let edited = if let Decision::Edit(input) = decision { Some(input.clone()) } else { None };
                    let people = self.approvers.entry(call.address).or_default();
                    if edited.is_some() {
                        people.clear();
                    }
                    people.insert(decided.by.clone());
                    if !still_waits(call.address) {
                        self.approved
                            .insert(call.address, edited.unwrap_or_else(|| serde_json::Value::clone(&call.input)));
                        *self.allowed.entry(call.address).or_default() += 1;
                    }
                }
                Decision::Deny(_) => drop(self.denied.insert(call.address)),
                Decision::Happened(_) | Decision::Failed(_) => {
                    self.finished.insert(call.address);
                    self.open.remove(&call.address);
                }
                Decision::Retry => *self.allowed.entry(call.address).or_default() += 1,
                Decision::Answer(_) => {}
            }
        }
    }

    /// No two calls are under way that the order forbids, and none begins before another one that must come first.
    fn begins_in_order(&self, program: &Program, state: &State, id: CallId) {
        let reads = |call: &Call| program.tool(&call.name).is_some_and(|tool| tool.read_only);
        let own = state.call(id).expect("an effect names a call of the turn");
        for other in calls(state).filter(|other| other.address != id) {
            let may_be_beside = match state.header.order {
                CallOrder::Together => true,
                CallOrder::ReadsTogether => reads(own) && reads(other),
                CallOrder::AsWritten => false,
            };
            let was_made = self.made.contains_key(&other.address);
            let was_refused = !was_made && matches!(other.progress, Progress::Done { .. });
            let is_over = was_refused || self.finished.contains(&other.address);
            assert!(may_be_beside || other.address > id || is_over, "{id} begins before {} is over", other.address);
            assert!(may_be_beside || other.address < id || !was_made, "{id} begins after {} began", other.address);
        }
    }

    /// A call is about to be made.
    pub fn calls(&mut self, program: &Program, state: &State, id: CallId) {
        let call = state.call(id).expect("an effect names a call of the turn");
        let tool = program.tool(&call.name).expect("only declared tools are called");
        assert!(!self.finished.contains(&id), "{id:?} has ended and is made again");
        assert!(!self.denied.contains(&id), "{id:?} was denied and is made");
        if tool.approval.of_call(&call.input, &state.header.call_rules(program, None, "")) != ApprovalNeed::NotNeeded {
            assert_eq!(self.approved.get(&id), Some(&*call.input), "{id:?}: what was approved is what runs");
            let people = self.approvers.get(&id).map_or(0, BTreeSet::len);
            assert!(people >= tool.approval.approvers as usize, "{id:?}: {people} people approved it");
        }
        self.begins_in_order(program, state, id);
        let made = self.made.entry(id).or_default();
        *made += 1;
        let allowed = self.allowed.get(&id).copied().unwrap_or(0);
        assert!(*made <= allowed, "{id:?} is made {made} times and may be {allowed} times");
        self.tools.entry(call.name.clone()).or_default().insert(id);
        let calls = self.tools[&call.name].len();
        assert!(tool.max_calls.is_none_or(|max| calls <= max as usize), "{}: {calls} calls", call.name);
        assert!(tool.parameters.faults(&call.input).is_empty(), "{id:?}: an input against the schema");
        if matches!(tool.kind, ToolKind::Loop(_)) || tool.spends() {
            self.spends(program, state, id);
        }
    }

    /// The model is about to be asked.
    pub fn asks(&self, program: &Program, state: &State) {
        let forced = match state.phase {
            Phase::Thinking { forced } => forced,
            Phase::Summarizing { .. } => None,
            _ => panic!("the model is asked in {:?}", state.phase),
        };
        let limits = limits(program, state);
        assert_eq!(state.counters.iterations, self.replies, "a reply was lost or counted twice");
        if forced.is_some() {
            let after_an_empty_one = self.last_words == 1 && state.as_loop().unwrap().has_answered_an_empty_reply();
            assert!(self.last_words == 0 || after_an_empty_one, "the last word is asked for once");
            return;
        }
        assert!(Some(self.replies) < limits.max_iterations, "an iteration too many");
        assert!(Some(state.now.active_ms) < limits.timeout_ms, "the time is over and the model is asked");
        let bound = limits.budget.tokens;
        assert!(bound.is_none_or(|bound| self.tokens < bound), "the budget is spent and the model is asked");
    }

    /// What must hold whenever an event was taken.
    pub fn holds(&self, program: &Program, state: &State) {
        let limits = limits(program, state);
        assert!(
            Some(state.counters.iterations)
                <= limits.max_iterations.map(|most| most + self.last_words.max(1) + self.ended_words),
            "limits are overshot by the last word alone"
        );
        assert!(self.last_words <= 2, "there is one last word, and one more after an empty one");
        let counted = state.counters.tokens.input + state.counters.tokens.output;
        assert!(counted >= self.tokens, "tokens were reported and not counted: {counted} of {}", self.tokens);
        if let Some(bound) = limits.budget.tokens {
            let most = bound + words::MOST * u64::from(1 + self.last_words + self.ended_words);
            assert!(self.tokens <= most, "{} tokens: over the budget of {bound} by more than one call", self.tokens);
        }
        let made = trace(state, false).iter().filter(|entry| entry.called_at_ms.is_some()).count();
        assert_eq!(made, state.counters.tool_calls_made as usize, "the trace has each call that was made");
        let mut last = 0;
        for entry in state.entries() {
            assert!(entry.iteration >= last, "the trace is in the order of the journal");
            last = entry.iteration;
        }
    }
}

fn calls(state: &State) -> impl Iterator<Item = &Call> {
    let turn = match &state.phase {
        Phase::Acting { turn } => Some(turn),
        Phase::Paused { turn, pause } if pause.question.kind != loopctl::Termination::Human => turn.as_ref(),
        _ => None,
    };
    turn.into_iter().flat_map(|turn| &turn.calls)
}
