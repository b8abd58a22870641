//! What the runs of a workflow's steps ask while these steps are under way: the caller learns it only when such a run pauses as a
//! whole, which may be hours later.

use std::sync::Arc;

use super::run_store::{FoldedRun, RunStore};
use crate::drive::fault::Fault;
use crate::drive::fold;
use crate::engine::flow::waiting_steps;
use crate::engine::question::{StepQuestion, SubrunQuestion};
use crate::engine::state::{Phase, State};
use crate::program::Program;
use crate::trace::Redaction;
use crate::trace::steps::shown_question;

/// How many runs below are looked at.
const MAX_RUNS: usize = 256;
/// How deep.
const MAX_DEPTH: usize = 8;

/// The questions of the runs of a run's steps that are under way, by the addresses at which this run takes their decisions: as
/// many as a run that pauses passes up.
///
/// # Errors
/// When the store fails, or the journal of such a run can't be read.
pub async fn questions_below(runs: &RunStore, run: &FoldedRun) -> Result<Vec<StepQuestion>, Fault> {
    let mut questions = Vec::new();
    let mut open: Vec<AskingBelow> = runs_below(&run.program, &run.state, "");
    let mut looks = 0_usize;
    while let Some(AskingBelow { program, run_id, at, label, depth }) = open.pop() {
        looks = looks.saturating_add(1);
        if looks > MAX_RUNS || questions.len() >= SubrunQuestion::MOST_STEPS {
            break;
        }
        let waits =
            runs.journal.find(&run_id).await.map_err(Fault::Store)?.is_some_and(|row| row.waits_since_ms.is_some());
        let calls = depth < MAX_DEPTH
            && program.as_flow().is_some_and(|flow| flow.called().iter().any(|called| called.is_flow()));
        if !waits && !calls {
            continue;
        }
        let state = fold::fold(&program, &run_id, runs.events(&run_id).await?)?;
        if !matches!(state.phase, Phase::Stepping) {
            continue;
        }
        let redact = Redaction::new(&program.project.redact);
        for question in waiting_steps(&state) {
            let question = shown_question(question.passed_up(&run_id), &redact);
            let item_label = label.clone().or(question.item_label);
            questions.push(StepQuestion { at: format!("{at}{}", question.at), item_label, ..question });
        }
        if calls {
            open.extend(runs_below(&program, &state, &at));
        }
    }
    let redact = Redaction::new(&run.program.project.redact);
    questions.truncate(SubrunQuestion::MOST_STEPS);
    Ok(questions.into_iter().map(|question| shown_question(question, &redact)).collect())
}

/// The run of a step.
struct AskingBelow {
    program: Arc<Program>,
    run_id: String,
    /// The address of the step, with the separator behind it.
    at: String,
    /// What the item is called that the step is of.
    label: Option<String>,
    depth: usize,
}

/// The runs of steps that are under way and may take decisions meanwhile, the last one first.
fn runs_below(program: &Program, state: &State, above: &str) -> Vec<AskingBelow> {
    let Some(flow) = program.as_flow().filter(|_| matches!(state.phase, Phase::Stepping)) else { return Vec::new() };
    let depth = above.matches('/').count();
    let under_way = state.open_steps().into_iter().filter(|open| open.is_subrun && open.progress.is_under_way());
    let below = under_way.filter_map(|open| {
        let called = flow.step_at(&open.address)?.subrun().filter(|called| called.is_flow())?;
        Some(AskingBelow {
            program: Arc::clone(called),
            run_id: open.subrun_id(&state.header.run_id),
            at: format!("{above}{}/", open.address),
            label: open.item_label.as_deref().map(str::to_owned),
            depth,
        })
    });
    let mut below: Vec<AskingBelow> = below.take(MAX_RUNS).collect();
    below.reverse();
    below
}
