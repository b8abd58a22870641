//! What a step changed, as notices: a mark of the state before it is held against the state after.

use serde_json::Value;

use super::{Notice, TokenUsage, waiting_calls};
use crate::engine::event::CallId;
use crate::engine::state::{Phase, State, StoredEntry};
use crate::program::builtin;

/// What is looked at before a step, so that what is new after it can be told.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    iterations: u32,
    entries: usize,
    pauses: u32,
    ended: bool,
    warned: bool,
    trimmed: u32,
    summaries: u32,
}

impl Mark {
    /// The mark of a state.
    pub fn of(state: &State) -> Self {
        Self {
            iterations: state.counters.iterations,
            entries: state.entries.len(),
            pauses: state.watch.pauses,
            ended: matches!(state.phase, Phase::Ended(_)),
            warned: state.watch.budget_warned,
            trimmed: state.counters.messages_trimmed,
            summaries: state.counters.summaries,
        }
    }

    /// What came about since.
    pub fn since(self, state: &State) -> Vec<Notice> {
        let mut notices = Vec::new();
        if state.counters.iterations > self.iterations {
            notices.push(self.replied(state));
        }
        for (at, entry) in state.entries.iter().enumerate().skip(self.entries) {
            notices.push(observed(&state.entries, at, entry));
            if entry.success && entry.action.as_deref() == Some(builtin::LOG_PROGRESS) {
                notices.push(progress(entry));
            }
        }
        if state.watch.budget_warned && !self.warned {
            notices.push(Notice::BudgetWarning {
                iterations: state.counters.iterations,
                tokens: state.counters.tokens.input.saturating_add(state.counters.tokens.output),
                cost_usd: state.cost_usd(),
                used: state.watch.budget_used,
            });
        }
        if state.counters.messages_trimmed > self.trimmed {
            notices.push(Notice::HistoryTrimmed {
                iterations: state.counters.iterations,
                messages: state.counters.messages_trimmed - self.trimmed,
                summarized: state.counters.summaries > self.summaries,
            });
        }
        match &state.phase {
            Phase::Paused { pause, .. } if state.watch.pauses > self.pauses => notices.push(Notice::Paused {
                pause: pause.number,
                kind: pause.kind,
                question: pause.question.clone(),
                run_id: pause.asks.as_ref().map(|asks| asks.run_id.clone()),
                context: pause.context.clone(),
                options: pause.options.clone(),
                calls: waiting_calls(state),
                stuck: pause.stuck.clone(),
            }),
            Phase::Ended(ending) if !self.ended => {
                notices.push(Notice::RunEnded { status: ending.status, termination: ending.termination });
            }
            _ => {}
        }
        notices
    }
}

impl Mark {
    /// The model's reply, from the turn that it began or from the entries that it made.
    fn replied(self, state: &State) -> Notice {
        let turn = match &state.phase {
            Phase::Acting { turn } => Some(turn),
            Phase::Paused { turn, .. } => turn.as_ref(),
            Phase::New | Phase::Thinking { .. } | Phase::Summarizing { .. } | Phase::Ended(_) => None,
        };
        let entry = state.entries.get(self.entries);
        let (thought, usage) = match (turn, entry) {
            (Some(turn), _) => (turn.thought.clone(), turn.usage),
            (None, Some(entry)) => (entry.thought.to_string(), entry.usage),
            (None, None) => (String::new(), None),
        };
        let usage = usage.map(TokenUsage::from);
        Notice::ModelReplied {
            iteration: state.counters.iterations,
            thought,
            usage,
            duration_ms: state.counters.thinking_ms,
        }
    }
}

/// The entry at this place of all; its place in the turn is how many of its iteration come before it.
fn observed(all: &[StoredEntry], at: usize, entry: &StoredEntry) -> Notice {
    let before = all.iter().take(at).rev().take_while(|other| other.iteration == entry.iteration).count();
    let index = u32::try_from(before).unwrap_or(u32::MAX);
    Notice::Observed {
        call: entry.action.as_ref().map(|_| CallId { iteration: entry.iteration, index }),
        iteration: entry.iteration,
        at_ms: entry.at_ms,
        thought: entry.thought.to_string(),
        action: entry.action.as_deref().map(str::to_owned),
        action_input: entry.action.as_ref().map(|_| entry.action_input.value()),
        observation: entry.observation.value(),
        success: entry.success,
        duration_ms: entry.duration_ms,
        usage: entry.usage.map(TokenUsage::from),
        run_id: entry.run_id.as_deref().map(str::to_owned),
        error: entry.error.as_deref().cloned(),
    }
}

fn progress(entry: &StoredEntry) -> Notice {
    let input = entry.action_input.value();
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    Notice::Progress {
        iteration: entry.iteration,
        message: text("message").unwrap_or_default(),
        milestone: text("milestone"),
        percent: input.get("percent").and_then(Value::as_f64),
    }
}
