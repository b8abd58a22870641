//! What really happened outside of the engine, counted on its own: what was called, what was allowed,
//! what was used. The engine's state is held against it.

use std::collections::{BTreeMap, BTreeSet};

use loopctl::Program;
use loopctl::engine::event::{CallId, Decision, Event, EventKind, Tokens};
use loopctl::engine::state::{Call, CallProgress, Phase, State};
use loopctl::language::action::OnUncertain;
use loopctl::program::ToolKind;
use serde_json::Value;

use crate::words;

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
    denied: BTreeSet<CallId>,
    /// Calls that were made, by tool.
    tools: BTreeMap<String, BTreeSet<CallId>>,
    /// Tokens that were reported, in all and by each call.
    tokens: u64,
    reported: BTreeMap<CallId, u64>,
    /// Calls that spend, were made, and whose end is not known yet.
    open: BTreeSet<CallId>,
    replies: u32,
    last_words: u32,
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
        // A call that was held is asked for by whatever lets it on; what was approved is allowed already.
        let held = |call: &&Call| before.call(call.id).is_some_and(|call| call.progress == CallProgress::Held);
        for call in calls(after).filter(held).filter(|call| call.progress == CallProgress::Asked) {
            if !self.approved.contains_key(&call.id) {
                *self.allowed.entry(call.id).or_default() += 1;
            }
        }
        match &event.kind {
            EventKind::ModelReplied(said) => {
                self.replies += 1;
                self.tokens += said.usage.map_or(0, |usage| usage.input + usage.output);
                self.last_words += u32::from(matches!(before.phase, Phase::Thinking { forced: Some(_) }));
                for call in calls(after).filter(|call| call.progress == CallProgress::Asked) {
                    *self.allowed.entry(call.id).or_default() += 1;
                }
            }
            EventKind::Summarized(said) => self.tokens += said.usage.map_or(0, |usage| usage.input + usage.output),
            EventKind::ToolReturned(returned) => {
                self.finished.insert(returned.call);
                self.open.remove(&returned.call);
                self.report(returned.call, returned.tokens);
            }
            EventKind::ToolPaused(paused) => self.report(paused.call, paused.tokens),
            EventKind::Resumed => self.note_resumed(program, before),
            EventKind::Human(decided) => {
                self.note_decision(before, decided.call, &decided.decision);
                if let Phase::Paused { pause, .. } = &before.phase
                    && pause.asks.is_some()
                {
                    // What was decided is handed on to the run that asks.
                    pause.calls.iter().for_each(|id| self.may_be_made(*id));
                }
            }
            EventKind::DeadlinePassed => self.open.clear(),
            // A stop, an end and a new document allow no call.
            _ => {}
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
            let tool = program.tool(&call.tool).expect("only declared tools are called");
            let again = tool.idempotent || tool.on_uncertain == OnUncertain::Retry;
            match &call.progress {
                CallProgress::Waits(_) if asks => self.may_be_made(call.id),
                progress if !progress.is_under_way() => {}
                _ if again => self.may_be_made(call.id),
                _ if tool.on_uncertain == OnUncertain::Fail => drop(self.open.remove(&call.id)),
                _ => {}
            }
        }
    }

    /// What spends is made one after the other where there is a budget, and only while something is left.
    fn spends(&mut self, program: &Program, id: CallId) {
        let Some(budget) = &program.properties.budget else { return };
        let beside = self.open.iter().filter(|other| other.iteration == id.iteration && **other != id).count();
        assert_eq!(beside, 0, "{id} spends beside another call");
        let left = budget.tokens.is_none_or(|bound| self.tokens < bound);
        assert!(!self.open.insert(id) || left, "{id} begins and nothing is left");
    }

    fn note_decision(&mut self, before: &State, only: Option<CallId>, decision: &Decision) {
        let Phase::Paused { pause, turn: Some(turn) } = &before.phase else { return };
        let meant = turn.calls.iter().filter(|call| {
            pause.calls.contains(&call.id)
                && only.is_none_or(|id| id == call.id)
                && matches!(call.progress, CallProgress::AwaitsApproval | CallProgress::Uncertain)
        });
        for call in meant {
            match decision {
                Decision::Approve => {
                    self.approved.insert(call.id, call.input.clone());
                    *self.allowed.entry(call.id).or_default() += 1;
                }
                Decision::Edit(input) => {
                    self.approved.insert(call.id, input.clone());
                    *self.allowed.entry(call.id).or_default() += 1;
                }
                Decision::Deny(_) => drop(self.denied.insert(call.id)),
                Decision::Happened(_) => {
                    self.finished.insert(call.id);
                    self.open.remove(&call.id);
                }
                Decision::Retry => *self.allowed.entry(call.id).or_default() += 1,
                Decision::Answer(_) => {}
            }
        }
    }

    /// A call is about to be made.
    pub fn calls(&mut self, program: &Program, state: &State, id: CallId) {
        let call = state.call(id).expect("an effect names a call of the turn");
        let tool = program.tool(&call.tool).expect("only declared tools are called");
        assert!(!self.finished.contains(&id), "{id:?} has ended and is made again");
        assert!(!self.denied.contains(&id), "{id:?} was denied and is made");
        if tool.requires_approval {
            assert_eq!(self.approved.get(&id), Some(&call.input), "{id:?}: what was approved is what runs");
        }
        let made = self.made.entry(id).or_default();
        *made += 1;
        let allowed = self.allowed.get(&id).copied().unwrap_or(0);
        assert!(*made <= allowed, "{id:?} is made {made} times and may be {allowed} times");
        self.tools.entry(call.tool.clone()).or_default().insert(id);
        let calls = self.tools[&call.tool].len();
        assert!(tool.max_calls.is_none_or(|max| calls <= max as usize), "{}: {calls} calls", call.tool);
        assert!(tool.parameters.faults(&call.input).is_empty(), "{id:?}: an input against the schema");
        if matches!(tool.kind, ToolKind::Llm(_) | ToolKind::Loop(_)) {
            self.spends(program, id);
        }
    }

    /// The model is about to be asked.
    pub fn asks(&self, program: &Program, state: &State) {
        let forced = match state.phase {
            Phase::Thinking { forced } => forced,
            Phase::Summarizing { .. } => None,
            _ => panic!("the model is asked in {:?}", state.phase),
        };
        let properties = &program.properties;
        assert_eq!(state.counters.iterations, self.replies, "a reply was lost or counted twice");
        if forced.is_some() {
            assert_eq!(self.last_words, 0, "the last word is asked for once");
            return;
        }
        assert!(self.replies < properties.max_iterations, "an iteration too many");
        assert!(state.now.active_ms < state.header.timeout_ms, "the time is over and the model is asked");
        let bound = properties.budget.as_ref().and_then(|budget| budget.tokens);
        assert!(bound.is_none_or(|bound| self.tokens < bound), "the budget is spent and the model is asked");
    }

    /// What must hold whenever an event was taken.
    pub fn holds(&self, program: &Program, state: &State) {
        assert!(
            state.counters.iterations <= program.properties.max_iterations + 1,
            "limits are overshot by one at most"
        );
        assert!(self.last_words <= 1, "there is one last word");
        let counted = state.counters.tokens.input + state.counters.tokens.output;
        assert!(counted >= self.tokens, "tokens were reported and not counted: {counted} of {}", self.tokens);
        if let Some(bound) = program.properties.budget.as_ref().and_then(|budget| budget.tokens) {
            let most = bound + words::MOST * u64::from(1 + self.last_words);
            assert!(self.tokens <= most, "{} tokens: over the budget of {bound} by more than one call", self.tokens);
        }
        let mut last = 0;
        for entry in &state.entries {
            assert!(entry.iteration >= last, "the trace is in the order of the journal");
            last = entry.iteration;
        }
    }
}

fn calls(state: &State) -> impl Iterator<Item = &Call> {
    let turn = match &state.phase {
        Phase::Acting { turn } => Some(turn),
        Phase::Paused { turn, pause } if pause.kind != loopctl::Termination::Human => turn.as_ref(),
        _ => None,
    };
    turn.into_iter().flat_map(|turn| &turn.calls)
}
