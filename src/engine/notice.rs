//! Notices: what a listener is told while a run goes on. They are told from the state after a step;
//! the state knows nothing of them, but for what only the driver sees (deltas, retries).

use serde::Serialize;
use serde_json::Value;

use super::event::{CallId, Tokens};
use super::outcome::{Status, Termination};
use super::state::{Entry, Phase, State};

/// What a listener is told. Values are as the run has them: who shows them redacts and escapes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Notice {
    /// The run began.
    RunStarted {
        /// The run's id.
        run_id: String,
        /// The loop's name.
        loop_name: String,
        /// The model.
        model: String,
        /// The objective, rendered.
        objective: String,
        /// How many iterations it may have.
        max_iterations: u32,
    },
    /// A driver took the run up again.
    RunResumed {
        /// The run's id.
        run_id: String,
        /// The loop's name.
        loop_name: String,
        /// The iterations before.
        iterations: u32,
    },
    /// The model is asked.
    ModelAsked {
        /// The iteration, from 1.
        iteration: u32,
    },
    /// A piece of the model's reply.
    ModelDelta {
        /// The iteration, from 1.
        iteration: u32,
        /// The piece.
        text: String,
    },
    /// A model call failed and is made again.
    ModelRetried {
        /// The iteration, from 1.
        iteration: u32,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why, in a sentence.
        reason: String,
        /// The wait in milliseconds.
        delay_ms: u64,
    },
    /// The model replied.
    ModelReplied {
        /// The iteration, from 1.
        iteration: u32,
        /// The thought, as far as it was read.
        thought: String,
        /// The tokens.
        usage: Option<Tokens>,
        /// The time in milliseconds.
        duration_ms: u64,
    },
    /// A tool is called.
    ToolCalled {
        /// Which call.
        call: CallId,
        /// The tool.
        action: String,
        /// Its input.
        action_input: Value,
    },
    /// An observation was made: by a tool, or by the engine about a call that was not allowed.
    Observed {
        /// The iteration, from 1.
        iteration: u32,
        /// The tool; none for an unreadable reply.
        action: Option<String>,
        /// Its input.
        action_input: Value,
        /// The observation.
        observation: Value,
        /// Whether the call did what was asked.
        success: bool,
        /// The time in milliseconds.
        duration_ms: u64,
    },
    /// The agent told how far it is.
    Progress {
        /// The iteration, from 1.
        iteration: u32,
        /// What it told.
        message: String,
        /// The milestone.
        milestone: Option<String>,
        /// How much is done, 0 to 100.
        percent: Option<f64>,
    },
    /// The run waits for a human.
    Paused {
        /// The pause's number, from 1.
        pause: u32,
        /// Human, stuck, approval or uncertain.
        kind: Termination,
        /// The question.
        question: String,
    },
    /// The run ended, or was stopped.
    RunEnded {
        /// The status.
        status: Status,
        /// Why.
        termination: Termination,
    },
}

/// Is told what happens, as it happens.
pub trait Listener: Send + Sync {
    /// Something happened. Called between two steps: return soon.
    fn on(&self, notice: Notice);

    /// Whether it wants the model's reply in pieces; then the model is asked to stream.
    fn wants_deltas(&self) -> bool {
        false
    }
}

/// What is looked at before a step, so that what is new after it can be told.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    iterations: u32,
    entries: usize,
    pauses: u32,
    ended: bool,
}

impl Mark {
    /// The mark of a state.
    pub fn of(state: &State) -> Self {
        Self {
            iterations: state.tally.iterations,
            entries: state.entries.len(),
            pauses: state.watch.pauses,
            ended: matches!(state.phase, Phase::Ended(_)),
        }
    }

    /// What came about since.
    pub fn since(self, state: &State) -> Vec<Notice> {
        let mut notices = Vec::new();
        if state.tally.iterations > self.iterations {
            notices.push(self.replied(state));
        }
        for entry in state.entries.iter().skip(self.entries) {
            notices.push(Notice::Observed {
                iteration: entry.iteration,
                action: entry.action.as_deref().map(str::to_owned),
                action_input: entry.action_input.value(),
                observation: entry.observation.value(),
                success: entry.success,
                duration_ms: entry.duration_ms,
            });
            if entry.success && entry.action.as_deref() == Some("__log_progress__") {
                notices.push(progress(entry));
            }
        }
        match &state.phase {
            Phase::Paused { pause, .. } if state.watch.pauses > self.pauses => {
                notices.push(Notice::Paused { pause: pause.number, kind: pause.kind, question: pause.question.clone() })
            }
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
            Phase::New | Phase::Thinking { .. } | Phase::Ended(_) => None,
        };
        let entry = state.entries.get(self.entries);
        let (thought, usage) = match (turn, entry) {
            (Some(turn), _) => (turn.thought.clone(), turn.usage),
            (None, Some(entry)) => (entry.thought.to_string(), entry.usage),
            (None, None) => (String::new(), None),
        };
        Notice::ModelReplied { iteration: state.tally.iterations, thought, usage, duration_ms: state.tally.thinking_ms }
    }
}

fn progress(entry: &Entry) -> Notice {
    let input = entry.action_input.value();
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    Notice::Progress {
        iteration: entry.iteration,
        message: text("message").unwrap_or_default(),
        milestone: text("milestone"),
        percent: input.get("percent").and_then(Value::as_f64),
    }
}
