//! The notices of a step: a pure function of the state, the event and the effects. The live run, the feed over
//! HTTP and readers of a journal all call it, so that they can't differ.

use serde_json::Value;

use super::Notice;
use crate::call_attempt::CallAttempt;
use crate::effect::{Effect, Effects, Refused};
use crate::event::{CallId, Event, EventKind, Finish};
use crate::flow::progress::StepChange;
use crate::flow::waiting_steps;
use crate::outcome::{Status, Termination};
use crate::record::{TokenUsage, TraceEntry};
use crate::state::{LoopState, Phase, State, StoredEntry};
use crate::step::step;
use crate::waiting_calls::waiting_calls;
use loopctl_lang::program::{Program, builtin};

/// Applies an event and returns the notices of the step.
///
/// # Errors
/// When the event does not fit the phase; the state is untouched then.
pub fn notices(program: &Program, state: &mut State, event: Event) -> Result<Vec<Notice>, Refused> {
    let baseline = Baseline::new(state, &event.kind);
    let effects = step(program, state, event)?;
    Ok(baseline.notices(program, state, &effects))
}

/// The facts about the event, and about the state before it, that the notices of a step need.
#[derive(Debug, Clone, Copy, Default)]
pub struct Baseline {
    cause: Cause,
    iterations: u32,
    entries: usize,
    decisions: usize,
    continuations: usize,
    pauses: u32,
    ended: bool,
    warned: bool,
    trimmed: u32,
    summaries: u32,
    /// How often there were no notes.
    missing_notes: u32,
}

/// The events that cause a notice themselves; other notices come from a changed state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Cause {
    #[default]
    Start,
    Resume,
    Interrupt,
    ToolRetry(CallId),
    QuestionPost,
    Other,
}

impl Baseline {
    /// The baseline of a step: taken before the event is applied.
    pub fn new(state: &State, event: &EventKind) -> Self {
        let cause = match event {
            EventKind::Started(_) => Cause::Start,
            // The run continues anyhow.
            EventKind::Human(_) if matches!(state.phase, Phase::Stepping) => Cause::Other,
            EventKind::Resumed | EventKind::Human(_) | EventKind::Retried(_) | EventKind::ApprovalExpired => {
                Cause::Resume
            }
            // Raised limits of a run that has not ended do not resume it.
            EventKind::LimitsRaised(_) if matches!(state.phase, Phase::Ended(_)) => Cause::Resume,
            EventKind::Interrupted => Cause::Interrupt,
            EventKind::QuestionPosted(_) => Cause::QuestionPost,
            EventKind::ToolRetried(retried) if !retried.lost => Cause::ToolRetry(retried.call),
            _ => Cause::Other,
        };
        // A run that continues may end again in the same step.
        let ended = cause != Cause::Resume && matches!(state.phase, Phase::Ended(_));
        Self { cause, ended, ..Self::of_state(state) }
    }

    /// The baseline of the first step of every run.
    pub fn of_start() -> Self {
        Self::default()
    }

    /// The baseline of steps whose events are not available.
    pub fn of_state(state: &State) -> Self {
        Self {
            cause: Cause::Other,
            iterations: state.counters.iterations,
            entries: state.entries().len(),
            decisions: state.decisions.len(),
            continuations: state.continuations.len(),
            pauses: state.pauses,
            ended: matches!(state.phase, Phase::Ended(_)),
            warned: state.budget.is_warned,
            trimmed: state.counters.messages_trimmed,
            summaries: state.counters.summaries,
            missing_notes: state.counters.notes.missing,
        }
    }

    /// The notices of the step, in their order: the run starts or resumes, the changes, the next effects.
    pub fn notices(self, program: &Program, state: &State, effects: &Effects) -> Vec<Notice> {
        let mut notices = Vec::new();
        let header = &state.header;
        match self.cause {
            Cause::Start => notices.push(Notice::RunStarted {
                run_id: header.run_id.clone(),
                loop_name: header.loop_name.clone(),
                model: header.model.name.clone(),
                objective: header.objective.clone(),
                // A workflow has none.
                max_iterations: program.as_loop().map_or(0, |program| program.properties.max_iterations),
                fork_of: header.fork.clone(),
            }),
            Cause::Resume => notices.push(Notice::RunResumed {
                run_id: header.run_id.clone(),
                loop_name: header.loop_name.clone(),
                iterations: self.iterations,
            }),
            Cause::ToolRetry(id) => {
                notices.extend(retried(state, id));
                return notices;
            }
            Cause::QuestionPost => {
                notices.extend(state.posts.last().cloned().map(|post| Notice::QuestionPosted { post }));
                return notices;
            }
            Cause::Interrupt | Cause::Other => {}
        }
        self.push_changes(state, &mut notices);
        if self.cause == Cause::Interrupt {
            notices.push(Notice::RunEnded { status: Status::Cancelled, termination: Termination::Cancelled });
        }
        notices.extend(effects.iter().filter_map(|effect| announced(state, effect)));
        notices
    }

    /// The notices of the changes since, without those of the events and effects themselves.
    pub fn changes(self, state: &State) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.push_changes(state, &mut notices);
        notices
    }

    fn push_changes(self, state: &State, notices: &mut Vec<Notice>) {
        let is_fork = self.cause == Cause::Start && state.header.fork.is_some();
        if state.counters.iterations > self.iterations && !is_fork {
            notices.extend(state.as_loop().map(|state| self.replied(state)));
        }
        for record in state.decisions.iter().skip(self.decisions) {
            notices.push(Notice::Decided { record: record.clone() });
        }
        for record in state.continuations.iter().skip(self.continuations) {
            let record = record.clone();
            notices.push(match record.limits {
                Some(_) => Notice::LimitsRaised { record },
                None => Notice::Retried { record },
            });
        }
        match state {
            State::Loop(state) => self.push_entries(state, is_fork, notices),
            // What started before is still in the state.
            State::Flow(_) if self.cause == Cause::Interrupt => {}
            State::Flow(state) => notices.extend(state.progress.changes.iter().filter_map(step_changed)),
        }
        if state.budget.is_warned && !self.warned {
            notices.push(Notice::BudgetWarning {
                iterations: state.counters.iterations,
                tokens: state.counters.tokens.input.saturating_add(state.counters.tokens.output),
                cost_usd: state.cost_usd(),
                used: state.budget.used,
            });
        }
        if state.counters.messages_trimmed > self.trimmed {
            notices.push(Notice::HistoryTrimmed {
                iterations: state.counters.iterations,
                messages: state.counters.messages_trimmed - self.trimmed,
                summarized: state.counters.summaries > self.summaries
                    && state.counters.notes.missing == self.missing_notes,
                notes_fault: state.counters.notes.last,
            });
        }
        match &state.phase {
            Phase::Paused { pause, .. } if state.pauses > self.pauses => notices.push(Notice::Paused {
                pause: pause.number,
                question: pause.question.clone(),
                calls: waiting_calls(state),
                steps: waiting_steps(state),
            }),
            Phase::Ended(ending) if !self.ended => {
                notices.push(Notice::RunEnded { status: ending.status, termination: ending.termination });
            }
            _ => {}
        }
    }

    fn push_entries(self, state: &LoopState, is_fork: bool, notices: &mut Vec<Notice>) {
        let mut iteration = 0;
        for (at, entry) in state.entries.iter().enumerate().skip(self.entries) {
            if is_fork && entry.iteration != iteration {
                iteration = entry.iteration;
                notices.push(copied(entry));
            }
            notices.push(observed(state, at, entry));
            if entry.success && entry.action.as_deref() == Some(builtin::LOG_PROGRESS) {
                notices.push(progress(entry));
            }
        }
        if is_fork && state.turn().is_some() {
            notices.push(self.replied(state));
        }
    }

    /// The model's reply, from the turn that it started or from the entries that it caused.
    fn replied(self, state: &LoopState) -> Notice {
        let entry = state.entries.get(self.entries);
        let (thought, usage) = match (state.turn(), entry) {
            (Some(turn), _) => (turn.thought.clone(), turn.usage),
            (None, Some(entry)) => (entry.thought.to_string(), entry.usage),
            (None, None) => (String::new(), None),
        };
        let usage = usage.map(TokenUsage::from);
        Notice::ModelReplied {
            iteration: state.counters.iterations,
            thought,
            usage,
            finish: state.last_reply.finish,
            response_model: state.last_reply.response_model.as_deref().map(str::to_owned),
            duration_ms: state.last_reply.thinking_ms,
            waited_ms: state.last_reply.waited_ms,
            time_to_first_token_ms: state.last_reply.time_to_first_token_ms,
        }
    }
}

/// The last failed attempt at a call. The next attempt is not announced as another call.
fn retried(state: &State, id: CallId) -> Option<Notice> {
    let call = state.call(id)?;
    let last = call.attempts.last()?;
    let of_call = RetriedCall { call: Some(id), at: None, action: &call.name };
    Some(of_call.notice(u32::try_from(call.attempts.len()).unwrap_or(u32::MAX), last))
}

/// A call of which an attempt failed: that of a turn, or that of a step.
struct RetriedCall<'r> {
    call: Option<CallId>,
    at: Option<&'r str>,
    action: &'r str,
}

impl RetriedCall<'_> {
    fn notice(self, attempt: u32, failed: &CallAttempt) -> Notice {
        Notice::ToolRetried {
            call: self.call,
            at: self.at.map(str::to_owned),
            action: self.action.to_owned(),
            attempt,
            error: failed.error.clone(),
            delay_ms: failed.delay_ms,
        }
    }
}

/// The effect that a listener is notified of before it is performed.
fn announced(state: &State, effect: &Effect) -> Option<Notice> {
    match effect {
        Effect::CallModel => Some(Notice::ModelAsked { iteration: state.counters.iterations + 1 }),
        Effect::CallTool(id) => state.call(*id).map(|call| Notice::ToolCalled {
            call: call.address,
            action: call.name.clone(),
            action_input: Value::clone(&call.input),
        }),
        Effect::Remember(_) | Effect::Summarize | Effect::RunStep(_) => None,
    }
}

/// What an event did to a step.
fn step_changed(change: &StepChange) -> Option<Notice> {
    match change {
        StepChange::Started { at, kind, input, item_label } => Some(Notice::StepStarted {
            at: at.clone(),
            kind: kind.clone(),
            action_input: input.clone(),
            item_label: item_label.clone(),
        }),
        StepChange::Retried { at, kind, number, attempt } => {
            Some(RetriedCall { call: None, at: Some(at), action: kind }.notice(*number, attempt))
        }
        StepChange::Ended(record) => Some(Notice::StepEnded { record: record.clone() }),
        StepChange::ItemEnded { at, row } => Some(Notice::ItemEnded { at: at.clone(), row: row.clone() }),
        // The record of the loop has the counts.
        StepChange::ItemsEnded { .. } => None,
    }
}

/// The entry at this index.
fn observed(state: &LoopState, at: usize, entry: &StoredEntry) -> Notice {
    let entry = TraceEntry::recorded(state, at, entry);
    Notice::Observed {
        call: entry.action.as_ref().map(|_| CallId { iteration: entry.iteration, index: entry.index }),
        entry,
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

/// A reply that a fork copied, by the first entry of its turn.
fn copied(entry: &StoredEntry) -> Notice {
    Notice::ModelReplied {
        iteration: entry.iteration,
        thought: entry.thought.to_string(),
        usage: entry.usage.map(TokenUsage::from),
        finish: Finish::Stop,
        response_model: None,
        time_to_first_token_ms: None,
        duration_ms: 0,
        waited_ms: 0,
    }
}
