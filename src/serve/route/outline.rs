//! `GET /agents/{id}/outline`: the steps of a run's workflow as its document has them, whatever became of them.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::program::flow::{FlowStep, Foreach, StepAction};
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
}

impl From<&FlowStep> for OutlinedStep {
    /// Loops are at most three deep, and the compiler bounds the steps of a document: the recursion ends.
    fn from(step: &FlowStep) -> Self {
        let foreach: Option<&Foreach> = match &step.action {
            StepAction::Foreach(foreach) => Some(foreach),
            _ => None,
        };
        Self {
            name: step.name.clone(),
            kind: step.kind.clone(),
            filter: step.filter.is_some(),
            otherwise: step.otherwise.as_deref().map(|step| Box::new(Self::from(step))),
            items: foreach.map(|foreach| format!("@{}", foreach.items.join("."))),
            steps: foreach.map(|foreach| foreach.steps.iter().map(Self::from).collect()),
        }
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
    let steps = program.as_flow().map(|flow| flow.steps.iter().map(OutlinedStep::from).collect());
    Ok(json(StatusCode::OK, &WorkflowOutline { steps: steps.unwrap_or_default() }))
}
