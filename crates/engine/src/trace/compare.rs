//! Two runs side by side: the first call that differs, and what each of them came to. Calls are compared, never prose.

use serde::Serialize;
use serde_json::Value;

use super::result::RunResult;
use crate::outcome::{Status, Termination};
use crate::state::State;

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// The first call that differs; none when all are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<CallDifference>,
    /// How many calls they have in common before that.
    pub same_calls: usize,
    /// What each of them came to.
    pub runs: [RunTotals; 2],
    /// The calls of each.
    #[serde(skip)]
    pub calls: [Vec<ComparedCall>; 2],
}

/// The first call that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallDifference {
    /// What differs: `action`, `action_input`, `success` or `missing`.
    pub what: &'static str,
    /// The call of each run; none for a run that has no more calls.
    pub calls: [Option<ComparedCall>; 2],
}

/// A call of one of two runs, with secrets hidden.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCall {
    /// The iteration, from 1; none for a step of a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The address of the step, in a workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The tool; none for a reply that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Its input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_input: Option<Value>,
    /// Whether it did what was asked.
    pub success: bool,
    /// What it gave.
    #[serde(skip)]
    pub observation: Value,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTotals {
    /// The run.
    pub run_id: String,
    /// Its status.
    pub status: Status,
    /// Why it ended or waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// Replies read; 0 in a workflow.
    pub iterations: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// US dollars, when the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The time that it was active, in milliseconds.
    pub active_ms: u64,
}

/// A run with its result, which must hold the trace.
#[derive(Clone, Copy)]
pub struct ComparedRun<'a> {
    /// Its state: what is compared.
    pub state: &'a State,
    /// Its result: what is shown.
    pub result: &'a RunResult,
}

/// Compares two runs.
pub fn compare(left: ComparedRun<'_>, right: ComparedRun<'_>) -> RunComparison {
    // Compared with its secrets, which two calls may differ in.
    let (was, is) = (raw(left.state), raw(right.state));
    let same_calls = was.iter().zip(&is).take_while(|(one, other)| one == other).count();
    let calls = [shown(left.result), shown(right.result)];
    let first_difference = (same_calls < was.len().max(is.len())).then(|| {
        let what = match (was.get(same_calls), is.get(same_calls)) {
            (Some(one), Some(other)) if one.0 != other.0 => "action",
            (Some(one), Some(other)) if one.1 != other.1 => "action_input",
            (Some(_), Some(_)) => "success",
            _ => "missing",
        };
        CallDifference { what, calls: calls.each_ref().map(|calls| calls.get(same_calls).cloned()) }
    });
    RunComparison { first_difference, same_calls, runs: [totals(left), totals(right)], calls }
}

/// The calls of a run as they are compared: what is called, its input, and whether it succeeded.
fn raw(state: &State) -> Vec<(String, Value, bool)> {
    let entries = state.entries().iter().map(|entry| {
        (entry.action.as_deref().unwrap_or_default().to_owned(), entry.action_input.value(), entry.error.is_none())
    });
    let records = state.as_flow().map(|state| state.progress.records.as_slice()).unwrap_or_default();
    let steps = records.iter().map(|record| {
        (
            format!("{} {}", record.at, record.kind),
            record.input.as_deref().cloned().unwrap_or_default(),
            record.error.is_none(),
        )
    });
    entries.chain(steps).collect()
}

fn shown(result: &RunResult) -> Vec<ComparedCall> {
    let entries = result.trace.iter().flatten().filter(|entry| entry.call_status.is_none()).map(|entry| ComparedCall {
        iteration: Some(entry.iteration),
        at: None,
        action: entry.action.clone(),
        action_input: entry.action_input.clone(),
        success: entry.success,
        observation: entry.observation.clone(),
    });
    let ended = result.steps.iter().filter(|step| step.finished_at_ms.is_some() || step.started_at_ms.is_none());
    let steps = ended.map(|step| ComparedCall {
        iteration: None,
        at: Some(step.at.clone()),
        action: Some(step.kind.clone()),
        action_input: step.input.as_deref().cloned(),
        success: step.error.is_none(),
        observation: step.output.clone().unwrap_or_default(),
    });
    entries.chain(steps).collect()
}

fn totals(run: ComparedRun<'_>) -> RunTotals {
    let ComparedRun { state, result } = run;
    RunTotals {
        run_id: result.run_id.clone(),
        status: result.status,
        termination: result.termination,
        iterations: result.iterations,
        tool_calls: result.metadata.tool_calls_made,
        input_tokens: result.usage.input_tokens,
        output_tokens: result.usage.output_tokens,
        cost_usd: result.usage.cost_usd,
        active_ms: state.now.active_ms,
    }
}

impl RunTotals {
    /// What is compared in a table: each name with its value in words.
    pub fn rows(&self) -> [(&'static str, String); 8] {
        use super::units::{count, dollars, duration};
        let ending = self.termination.map_or_else(|| "-".to_owned(), |why| super::reason::reason(why).to_owned());
        [
            ("status", self.status.word().to_owned()),
            ("ending", ending),
            ("iterations", count(u64::from(self.iterations))),
            ("tool calls", count(u64::from(self.tool_calls))),
            ("tokens in", count(self.input_tokens)),
            ("tokens out", count(self.output_tokens)),
            ("cost", self.cost_usd.map_or_else(|| "-".to_owned(), dollars)),
            ("active", duration(self.active_ms)),
        ]
    }
}
