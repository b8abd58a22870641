//! What a run can use at most, before it starts: requests, calls, tokens, US dollars, time. It follows from the document alone:
//! which word bounds what, over called loops, items and attempts. Pure.
//!
//! It holds for one run as it is written. What a human does beyond that is not in it: limits that are raised, runs that are
//! retried, decisions that make a call again. After a crash, a request that was under way is made again.

mod bounding_word;
mod estimator;
mod most_used;
mod of_flow;
mod of_loop;
mod request_size;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

pub use bounding_word::{BoundedFigure, BoundingWord};
pub use most_used::MostUsed;

use bounding_word::ReadTrees;
use estimator::{Estimator, PartMost};
use loopctl_lang::program::Program;
use loopctl_lang::program::flow::StepAction;
use request_size::{TextValues, ValueSizes};

/// What a run can use at most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The loop or workflow.
    pub name: String,
    /// The most that a run uses, with the runs that it calls and starts.
    pub most: MostUsed,
    /// The most active time in milliseconds, with what ends when the time of the run is over. Waits for humans, for events and for a time are not in it.
    pub active_ms: Option<u64>,
    /// The words of the document that bound it.
    pub bounds: Vec<BoundingWord>,
    /// What asks models beside the loop itself, each at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<EstimatedPart>,
    /// Why a figure has no bound, each in a sentence without a final stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<String>,
}

/// What asks models beside the loop itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EstimatedPart {
    /// The tool, or the step, behind the lists that it is in: `each.judge`.
    pub name: String,
    /// How often it is called, at most.
    pub calls: u64,
    /// What one call uses, at most.
    pub each: MostUsed,
    /// The words of its document that bound it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundingWord>,
}

/// What is known of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct EstimatedRun<'r> {
    /// The model that the run is started with, in place of the document's.
    pub model: Option<&'r str>,
    /// The input; none when it is not known yet.
    pub input: Option<&'r Value>,
}

/// The estimate of a program.
pub fn estimate(program: &Program, known: EstimatedRun<'_>) -> Estimate {
    let default = program.default_input().map(|input| Value::Object(input.clone()));
    let input = known.input.or(default.as_ref());
    let values = match input {
        Some(input) => TextValues::Given(input),
        None => TextValues::Sizes(ValueSizes::unknown(program)),
    };
    let mut estimator = Estimator::default();
    let run = estimator.run(program, known.model, values);
    let mut is_cut = false;
    let mut countable = |most: MostUsed| {
        let (most, is_too_large) = most.countable();
        is_cut |= is_too_large;
        most
    };
    let most = countable(run.of_outermost().and(run.launched));
    let mut trees = ReadTrees::default();
    let part = |PartMost { name, calls, each, document }| EstimatedPart {
        bounds: document.map_or_else(Vec::new, |document| bounding_word::of_part(&document, &mut trees)),
        name,
        calls,
        each: countable(each),
    };
    let parts = run.parts.into_iter().map(part).collect();
    let over_ms = match program {
        Program::Loop(of_loop) => of_loop::last_call_ms(of_loop),
        Program::Flow(of_flow) => of_flow::over_time_ms(of_flow),
    };
    let active_ms = (!handles_failures(program)).then(|| program.timeout_ms.saturating_add(over_ms));
    let mut unbounded = estimator.unbounded;
    if active_ms.is_none() {
        unbounded.insert("the steps of `on_failure` run when the time of the run is over, too".to_owned());
    }
    if is_cut {
        unbounded.insert("a sum is too large to be counted: lower the words that bound it".to_owned());
    }
    let mut bounds = bounding_word::of(program, known.model, input, &mut trees);
    bounds.retain(|word| active_ms.is_some() || word.figure != BoundedFigure::ActiveMs);
    Estimate { name: program.name.clone(), most, active_ms, bounds, parts, unbounded: unbounded.into_iter().collect() }
}

/// Whether steps run when others have failed, or the time is over.
fn handles_failures(program: &Program) -> bool {
    let Some(of_flow) = program.as_flow() else { return false };
    let mut handles = of_flow.on_failure.is_some();
    of_flow.each(&mut |step| {
        handles |= matches!(&step.action, StepAction::Foreach(foreach) if foreach.on_failure.is_some());
    });
    handles
}
