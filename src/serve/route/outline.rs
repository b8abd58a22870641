//! `GET /agents/{id}/outline`: the steps of a run's workflow as its document has them, whatever became of them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::program::choose::{CaseOf, ChooseStep};
use crate::program::flow::{FlowStep, Foreach, ON_FAILURE, StepAction};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, json};
use crate::serve::run_store::ProgramOfRun;

/// The steps of a workflow as its document has them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WorkflowOutline {
    /// In their order; none for a loop of mode `react`.
    pub steps: Vec<OutlinedStep>,
    /// The steps that run when one of them has failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<OutlinedStep>,
}

/// A step as the document has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutlinedStep {
    /// Its name in addresses.
    pub name: String,
    /// Its `type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it runs only when its filter holds.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub filter: bool,
    /// The step that runs in its place otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Box<OutlinedStep>>,
    /// Of a loop of mode `foreach`: the path of its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<String>,
    /// Of such a loop: its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<OutlinedStep>>,
    /// Of such a loop: the steps that run when one of them has failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_failure: Vec<OutlinedStep>,
    /// Of a choice: its cases, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cases: Option<Vec<OutlinedCase>>,
}

/// A case of a choice as the document has it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OutlinedCase {
    /// Its name in addresses: its number, or `otherwise`.
    pub name: String,
    /// Its steps.
    pub steps: Vec<OutlinedStep>,
}

/// The steps of a list that are in these cases, and in no further one.
fn outlined(list: &[FlowStep], within: &[CaseOf]) -> Vec<OutlinedStep> {
    list.iter().filter(|step| step.within == within).map(|step| OutlinedStep::of(list, step)).collect()
}

/// The steps that run when one of a list has failed.
fn for_failure(list: &[FlowStep]) -> Vec<OutlinedStep> {
    outlined(list, &[CaseOf { choose: ON_FAILURE.into(), case: 0 }])
}

impl OutlinedStep {
    /// A step of a list. Loops are at most three deep, and the compiler bounds the steps of a document: the recursion ends.
    fn of(list: &[FlowStep], step: &FlowStep) -> Self {
        let foreach: Option<&Foreach> = match &step.action {
            StepAction::Foreach(foreach) => Some(foreach),
            _ => None,
        };
        Self {
            name: step.name.clone(),
            kind: step.kind.clone(),
            filter: step.filter.is_some(),
            otherwise: step.otherwise.as_deref().map(|step| Box::new(Self::of(list, step))),
            items: foreach.map(|foreach| format!("@{}", foreach.items.join("."))),
            steps: foreach.map(|foreach| outlined(&foreach.steps, &[])),
            on_failure: foreach.map(|foreach| for_failure(&foreach.steps)).unwrap_or_default(),
            cases: match &step.action {
                StepAction::Choose(choose) => Some(Self::cases(list, step, choose)),
                _ => None,
            },
        }
    }

    fn cases(list: &[FlowStep], step: &FlowStep, choose: &ChooseStep) -> Vec<OutlinedCase> {
        let count = choose.cases.len() + usize::from(choose.otherwise.is_some());
        let case = |case: usize| {
            let of = CaseOf { choose: step.name.as_str().into(), case };
            let within: Vec<CaseOf> = step.within.iter().cloned().chain([of]).collect();
            OutlinedCase { name: choose.name_of(case), steps: outlined(list, &within) }
        };
        (0..count).map(case).collect()
    }
}

/// The steps of a run's workflow.
pub async fn outline(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
) -> Result<Response, ProblemDetails> {
    app.runs.find(&caller, &run_id).await?;
    // The first event has the document.
    let first = app.runs.events_from(&run_id, 0, 1).await?;
    let ProgramOfRun { program, .. } = app.runs.program(&run_id, &first).await?;
    let list = program.as_flow().map(|flow| flow.steps.as_slice()).unwrap_or_default();
    Ok(json(StatusCode::OK, &WorkflowOutline { steps: outlined(list, &[]), on_failure: for_failure(list) }))
}
