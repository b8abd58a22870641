//! The end of a step: what it writes into the context, and its record.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::advance::{Advance, StepList};
use super::items::{LoopEnd, counts, gathered};
use super::progress::{Current, FailedRun, ItemStatus, KeptRun, LoopOutput, StepChange, StepFault, StepFrame};
use super::record::{StepError, StepRecord, StepStatus};
use crate::call_attempt::CallAttempt;
use crate::event::Tokens;
use crate::operation::OpenStep;
use crate::token_usage::TokenUsage;
use loopctl_lang::program::flow::{FlowStep, MAX_OUTPUT_BYTES, StepAction};
use loopctl_lang::program::json_length::json_bytes;

/// How a step ended.
pub(super) struct StepEnd {
    /// Its address.
    pub at: String,
    /// When it began, in milliseconds since 1970.
    pub since_ms: i64,
    /// Its input.
    pub input: Option<Arc<Value>>,
    /// What it gave, or why it failed.
    pub outcome: Result<StepOutput, StepFault>,
    /// The run that it was.
    pub run_id: Option<String>,
    /// What it used of models.
    pub tokens: Option<Tokens>,
    /// The attempts at its call that failed before the last one.
    pub attempts: Vec<CallAttempt>,
    /// How long its call waited for its turn, in milliseconds.
    pub waited_ms: u64,
    /// What the server answered to a call that failed.
    pub answer: String,
    /// Its run, which completed although items in it failed.
    pub partly: Option<FailedRun>,
}

/// What a step gave.
#[derive(Clone)]
pub(super) struct StepOutput {
    /// Its output, for its own key and for what is gathered of an item.
    pub value: Value,
    /// The other keys that it writes.
    pub keys: Vec<(String, Value)>,
}

impl From<Value> for StepOutput {
    fn from(value: Value) -> Self {
        Self { value, keys: Vec::new() }
    }
}

impl StepEnd {
    /// A step that failed before anything was called.
    pub fn failed(at: String, since_ms: i64, fault: StepFault) -> Self {
        Self {
            at,
            since_ms,
            input: None,
            outcome: Err(fault),
            run_id: None,
            tokens: None,
            attempts: Vec::new(),
            waited_ms: 0,
            answer: String::new(),
            partly: None,
        }
    }

    /// The end of an open step.
    pub fn of(open: &OpenStep, outcome: Result<StepOutput, StepFault>) -> Self {
        Self {
            at: open.address.to_string(),
            since_ms: open.due_at_ms,
            input: Some(open.input.clone()),
            outcome,
            run_id: open.run_id.as_deref().map(str::to_owned),
            tokens: None,
            attempts: open.attempts.clone(),
            waited_ms: open.waited_ms,
            answer: String::new(),
            partly: None,
        }
    }
}

impl StepRecord {
    /// A record without what depends on the kind of the step.
    pub(super) fn new(at: String, kind: String, status: StepStatus, started_at_ms: i64) -> Self {
        Self {
            at,
            kind,
            item_label: None,
            status,
            started_at_ms: Some(started_at_ms),
            finished_at_ms: None,
            input: None,
            output: None,
            run_id: None,
            usage: None,
            items: None,
            case: None,
            error: None,
            attempts: Vec::new(),
            waited_ms: 0,
            list: Box::default(),
        }
    }
}

impl Advance<'_> {
    /// Ends the present step of a list: writes its keys, or fails the list.
    pub fn ended(&mut self, list: &StepList<'_>, step: &FlowStep, frame: &mut StepFrame, end: StepEnd) {
        let StepEnd { at, since_ms, input, outcome, run_id, tokens, attempts, waited_ms, answer, partly } = end;
        let outcome = outcome.and_then(|output| bounded(output, &at));
        let status = if outcome.is_ok() { StepStatus::Completed } else { StepStatus::Failed };
        let mut record = StepRecord {
            finished_at_ms: Some(self.now.wall_ms),
            input,
            run_id,
            usage: tokens.map(TokenUsage::from),
            attempts,
            waited_ms,
            ..StepRecord::new(at, step.kind.clone(), status, since_ms)
        };
        if let Current::Open(open) = std::mem::take(&mut frame.current)
            && step.spends()
            && open.requested_at_ms.is_some()
        {
            // Its cost is known now.
            self.spending = self.spending.saturating_sub(1);
        }
        match outcome {
            Ok(output) => {
                let number = frame.next;
                frame.next += 1;
                record.output = Some(output.value.clone());
                if let Some((run, input)) = partly.zip(record.input.clone()) {
                    let kept = KeptRun { at: record.at.clone(), run, input, wrote: wrote(step, output.clone()) };
                    frame.kept_runs.insert(number, Box::new(kept));
                }
                match frame.wrote.take() {
                    None => write(step, frame, output),
                    Some(before) => rewrite(frame, Some(&before), &wrote(step, output)),
                }
            }
            Err(fault) => {
                record.error = Some(StepError { answer, ..StepError::from(fault.clone()) });
                frame.fault = Some(fault);
            }
        }
        self.report(list, record);
    }

    /// Ends a loop.
    pub fn loop_ended(&mut self, list: &StepList<'_>, step: &FlowStep, frame: &mut StepFrame, end: LoopEnd) {
        let StepAction::Foreach(foreach) = &step.action else { return };
        let Current::Items(mut items) = std::mem::take(&mut frame.current) else { return };
        let status = if end.fault.is_some() { StepStatus::Failed } else { StepStatus::Completed };
        let counts = counts(&items);
        let record = StepRecord {
            finished_at_ms: Some(self.now.wall_ms),
            items: Some(counts.clone()),
            error: end.fault.clone().map(StepError::from),
            ..StepRecord::new(items.at.clone(), step.kind.clone(), status, items.since_ms)
        };
        self.report(list, record);
        if end.fault.is_some() {
            // It stays as it is: its failed items may run again.
            frame.fault = end.fault;
            frame.current = Current::Items(items);
            return;
        }
        let ended = |index| items.ended.get(&index).copied().unwrap_or(ItemStatus::Cancelled);
        let statuses = (0..items.count).map(ended).collect();
        self.changes.push(StepChange::ItemsEnded { at: items.at.clone(), statuses });
        let number = frame.next;
        frame.next += 1;
        let gathered = foreach.collects.then(|| gathered(&items));
        let counts = serde_json::to_value(counts).unwrap_or_default();
        let mut keys: Map<String, Value> =
            items.written.iter().map(|(key, (_, value))| (key.clone(), value.clone())).collect();
        if let (Some(key), Some(gathered)) = (&foreach.result_key, &gathered) {
            keys.insert(key.clone(), gathered.clone());
        }
        if let Some(key) = &foreach.summary_key {
            keys.insert(key.clone(), counts.clone());
        }
        let output = gathered.unwrap_or(counts);
        if let Some(key) = &step.output_key {
            keys.insert(key.clone(), output.clone());
        }
        let wrote = LoopOutput { keys, output };
        rewrite(frame, items.wrote.take().as_deref(), &wrote);
        if !items.faults.is_empty() || !items.partly.is_empty() {
            items.wrote = Some(Box::new(wrote));
            frame.kept.insert(number, items);
        }
    }

    pub fn report(&mut self, list: &StepList<'_>, record: StepRecord) {
        let (item_label, list_at) = (list.label.as_deref().map(str::to_owned), list.prefix.as_str().into());
        let record = StepRecord { item_label, list: list_at, ..record };
        if list.of.is_none() {
            // What the step was given and gave is in the context and the journal.
            self.records.push(StepRecord { input: None, output: None, ..record.clone() });
        }
        self.changes.push(StepChange::Ended(Box::new(record)));
    }
}

impl From<StepFault> for StepError {
    fn from(fault: StepFault) -> Self {
        let StepFault { code, message, step, .. } = fault;
        Self { code, message, step, answer: String::new() }
    }
}

/// The output, unless it is too long.
fn bounded(output: StepOutput, at: &str) -> Result<StepOutput, StepFault> {
    let keys = output.keys.iter().map(|(_, value)| json_bytes(value));
    let bytes = keys.fold(json_bytes(&output.value), usize::saturating_add);
    if bytes <= MAX_OUTPUT_BYTES {
        return Ok(output);
    }
    let message = format!("its output has {bytes} bytes, and a step gives at most {} MiB", MAX_OUTPUT_BYTES >> 20);
    Err(StepFault::new("too_large", message, at))
}

/// Writes the keys of a loop. `before`: what it wrote when it ended before; what later steps wrote since stays.
fn rewrite(frame: &mut StepFrame, before: Option<&LoopOutput>, now: &LoopOutput) {
    for (key, value) in &now.keys {
        if before.is_none_or(|before| frame.keys.get(key) == before.keys.get(key)) {
            frame.keys.insert(key.clone(), value.clone());
        }
    }
    if before.is_none_or(|before| frame.last.as_ref() == Some(&before.output)) {
        frame.last = Some(now.output.clone());
    }
}

/// Writes the keys of a step.
fn write(step: &FlowStep, frame: &mut StepFrame, output: StepOutput) {
    let LoopOutput { keys, output } = wrote(step, output);
    frame.keys.extend(keys);
    // A wait is between two steps: what the list gives stays what the step before it gave.
    if !matches!(step.action, StepAction::Wait(_)) {
        frame.last = Some(output);
    }
}

/// The keys that a step writes.
fn wrote(step: &FlowStep, output: StepOutput) -> LoopOutput {
    let StepOutput { value, keys } = output;
    let mut keys: Map<String, Value> = keys.into_iter().collect();
    match &step.action {
        StepAction::Call(call) if call.spreads => {
            keys.extend(value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
        }
        StepAction::React(react) => keys.extend(react.result_key.iter().map(|key| (key.clone(), value.clone()))),
        _ => {}
    }
    keys.extend(step.output_key.iter().map(|key| (key.clone(), value.clone())));
    LoopOutput { keys, output: value }
}
