//! The story of a run, notice by notice: pure, so that tests can read it.

use serde_json::Value;

use crate::engine::event::ToolFault;
use crate::engine::flow::record::StepRecord;
use crate::engine::notice::Notice;
use crate::engine::record::TraceEntry;
use crate::program::builtin::{COMPLETE, LOG_PROGRESS, PAUSE_FOR_HUMAN};
use crate::trace::continuation::{continuation_sentence, hidden_continuation};
use crate::trace::decision::{decision_sentence, hidden};
use crate::trace::entries::{call_attempt_sentence, call_sentence};
use crate::trace::refused::{ShownRefusals, unsaid};
use crate::trace::step_text::step_line;
use crate::trace::steps::shown_step;
use crate::trace::text::{Pieces, ShownObservation, took};
use crate::trace::units::{count, dollars, duration, plural};
use crate::trace::{Redaction, events};

use super::super::failure::CommandError;

/// Formats the notices of a run as text.
#[derive(Debug)]
pub struct Story {
    pieces: Pieces,
    redact: Redaction,
    /// The calls that were shown and have no observation yet.
    open: Vec<(String, Value)>,
    /// The refusals that were shown.
    refusals: ShownRefusals,
    /// Whether several calls were under way in this turn, so that observations must name their call.
    several: bool,
    /// Whether an iteration was already shown: a blank line separates the next one from it.
    any_shown: bool,
    /// Whether the run's header was shown last: a blank line separates it from what follows.
    headed: bool,
}

impl Story {
    /// A story that hides what `redact` hides.
    pub fn new(pieces: Pieces, redact: Redaction) -> Self {
        Self {
            pieces,
            redact,
            open: Vec::new(),
            refusals: ShownRefusals::default(),
            several: false,
            any_shown: false,
            headed: false,
        }
    }

    /// The notice as an object, with secrets hidden.
    ///
    /// # Errors
    /// When it can't be written as JSON.
    pub fn json(&self, notice: &Notice) -> Result<Value, CommandError> {
        events::shown(notice, &self.redact).map_err(|error| CommandError::Output(std::io::Error::other(error)))
    }

    /// What is shown after a notice: whole lines, or nothing.
    pub fn on(&mut self, notice: &Notice) -> String {
        let text = self.text(notice);
        if matches!(notice, Notice::RunStarted { .. } | Notice::RunResumed { .. }) {
            self.headed = true;
            return text;
        }
        // If nothing follows, the end starts with its own blank line.
        if text.is_empty() || !std::mem::take(&mut self.headed) { text } else { format!("\n{text}") }
    }

    // house: flat match
    fn text(&mut self, notice: &Notice) -> String {
        match notice {
            Notice::RunStarted { run_id, loop_name, model, objective, max_iterations, .. } => {
                let most = format!("at most {}", plural(*max_iterations, "iteration"));
                let objective = self.redact.text(objective);
                let facts: &[&str] = if *max_iterations == 0 { &[run_id] } else { &[run_id, model, &most] };
                self.pieces.header(loop_name, facts, &objective)
            }
            Notice::RunResumed { run_id, loop_name, iterations } => {
                let before = match iterations {
                    0 => "resumed".to_owned(),
                    before => format!("resumed after {}", plural(*before, "iteration")),
                };
                self.pieces.header(loop_name, &[run_id, &before], "")
            }
            Notice::ModelRetried { attempt, reason, delay_ms, .. } => {
                let wait = duration(*delay_ms);
                self.pieces
                    .remark(&format!("the model: {}; attempt {attempt}, retry in {wait}", self.redact.text(reason)))
            }
            Notice::ToolRetried { at, action, attempt, error, delay_ms, .. } => {
                let number = usize::try_from(*attempt).unwrap_or(usize::MAX);
                let sentence = call_attempt_sentence(number, error, Some(*delay_ms));
                self.pieces.remark(&self.redact.text(&format!("{}: {sentence}", at.as_ref().unwrap_or(action))))
            }
            Notice::BudgetWarning { tokens, cost_usd, used, .. } => {
                let cost = cost_usd.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
                let used = used * 100.0;
                self.pieces.remark(&format!("{used:.0} % of the budget is used: {} tokens{cost}", count(*tokens)))
            }
            Notice::HistoryTrimmed { messages, summarized, .. } => {
                let how = if *summarized { "; a summary by the model replaces them" } else { "" };
                self.pieces.remark(&format!("the history was too long: {} removed{how}", plural(*messages, "message")))
            }
            Notice::ModelReplied { iteration, thought, usage, duration_ms, .. } => {
                self.several = false;
                self.open.clear();
                let tokens = usage.map(|usage| plural(usage.input_tokens.saturating_add(usage.output_tokens), "token"));
                let cost: Vec<String> =
                    tokens.into_iter().chain([took(*duration_ms)]).filter(|part| !part.is_empty()).collect();
                let gap = if std::mem::replace(&mut self.any_shown, true) { "\n" } else { "" };
                gap.to_owned() + &self.pieces.thought(*iteration, &self.redact.text(thought), &cost.join(", "))
            }
            Notice::StepStarted { at, kind, action_input } => self.step_started(at, kind, action_input),
            Notice::StepEnded { record } => {
                self.any_shown = true;
                step_line(&self.pieces, &shown_step(without_attempts(record), &self.redact))
            }
            Notice::ToolCalled { action, action_input, .. } => self.called(action, action_input),
            Notice::Observed { entry, .. } => {
                if let Some(status) = entry.call_status {
                    let action = self.redact.text(entry.action.as_deref().unwrap_or_default());
                    return self.pieces.remark(&format!("{action}: {}", call_sentence(status, &entry.attempts)));
                }
                let TraceEntry { action, action_input, observation, success, duration_ms, error, .. } = entry;
                let observation = self.redact.value(observation);
                let observation = self.refusals.shown(entry, &observation);
                let seen =
                    ShownObservation { whose: None, value: &observation, success: *success, duration_ms: *duration_ms };
                let text = self.observed(action.as_deref(), action_input.as_ref().unwrap_or(&Value::Null), &seen);
                let hint = entry.hint.as_deref().map(|hint| self.pieces.remark(&self.redact.text(hint)));
                let thought = if action.is_none() { self.redact.text(&entry.thought) } else { "".into() };
                text + &self.detail(error.as_ref(), &thought) + &hint.unwrap_or_default()
            }
            Notice::Progress { message, milestone, percent, .. } => {
                let message = self.redact.text(message);
                let milestone = milestone.as_deref().map(|milestone| self.redact.text(milestone));
                self.pieces.progress(&message, milestone.as_deref(), *percent)
            }
            Notice::Decided { record } => {
                self.any_shown = true;
                self.pieces.remark(&decision_sentence(&hidden(record, &self.redact)))
            }
            Notice::Retried { record } | Notice::LimitsRaised { record } => {
                self.any_shown = true;
                self.pieces.remark(&continuation_sentence(&hidden_continuation(record, &self.redact)))
            }
            Notice::ModelAsked { .. } | Notice::ModelDelta { .. } | Notice::Paused { .. } | Notice::RunEnded { .. } => {
                String::new()
            }
        }
    }

    /// The detail of a failure: for the person who fixes the cause, not for the model.
    /// `thought` is that of a refused reply.
    fn detail(&self, error: Option<&ToolFault>, thought: &str) -> String {
        let detail = error.map(|fault| self.redact.text(fault.detail.trim())).unwrap_or_default();
        match unsaid(!thought.is_empty(), thought, &detail) {
            detail if detail.is_empty() => String::new(),
            detail => self.pieces.remark(&detail),
        }
    }

    /// The steps of items are shown when they end: many of them run beside each other.
    fn step_started(&mut self, at: &str, kind: &str, input: &Value) -> String {
        if at.contains('.') {
            return String::new();
        }
        self.any_shown = true;
        self.pieces.call(&format!("{at} {}", self.redact.text(kind)), &self.redact.value(input))
    }

    fn called(&mut self, action: &str, input: &Value) -> String {
        if is_shown_otherwise(action) {
            return String::new();
        }
        self.any_shown = true;
        self.several |= !self.open.is_empty();
        self.open.push((action.to_owned(), input.clone()));
        self.pieces.call(&self.redact.text(action), &self.redact.value(input))
    }

    fn observed(&mut self, action: Option<&str>, input: &Value, seen: &ShownObservation<'_>) -> String {
        self.any_shown = true;
        let Some(action) = action else { return self.pieces.observation(seen) };
        if seen.success && is_shown_otherwise(action) {
            return String::new();
        }
        let at = self.open.iter().position(|(name, given)| name == action && given == input);
        match at {
            Some(at) => {
                self.open.remove(at);
                let name = self.redact.text(action);
                self.pieces.observation(&ShownObservation { whose: self.several.then_some(&*name), ..*seen })
            }
            // A call that the engine answered itself was not shown before.
            None => {
                self.pieces.call(&self.redact.text(action), &self.redact.value(input)) + &self.pieces.observation(seen)
            }
        }
    }
}

fn is_shown_otherwise(action: &str) -> bool {
    // The end is shown as the answer, progress as progress, and a question as the pause.
    matches!(action, COMPLETE | LOG_PROGRESS | PAUSE_FOR_HUMAN)
}

#[cfg(test)]
mod tests;

/// The record of a step without its attempts, which were shown when they failed.
fn without_attempts(record: &StepRecord) -> StepRecord {
    StepRecord { attempts: Vec::new(), ..record.clone() }
}
