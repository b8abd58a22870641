//! `GET /agents/{id}/trace`: the result of a run with its trace, or the steps of a workflow at an address.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use crate::drive::fold;
use crate::engine::flow::view::StepLog;
use crate::journal::RunSummary;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, json, query};
use crate::serve::run_store::{FoldedRun, ProgramOfRun};
use crate::serve::step_reader::StepsQuery;
use crate::trace::steps::shown_view;
use crate::trace::{Redaction, Shown, result};

/// The result with its trace, as `loopctl trace --format json` prints it.
pub async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    RunId(run_id): RunId,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let steps: StepsQuery = query(&uri)?;
    let summary = app.runs.find(&caller, &run_id).await?;
    if steps.at.is_some() {
        return at(&app, &summary, &steps).await;
    }
    let FoldedRun { program, state } = app.runs.folded(&run_id).await?;
    let result_key = program.properties.result_key.as_deref();
    let shown = Shown { result_key, trace: true, driven: summary.driven };
    Ok(json(StatusCode::OK, &result(shown, &state, &Redaction::new(&program.project.redact))))
}

/// The steps at an address, as `loopctl trace --at ADDRESS --format json` prints them.
async fn at(app: &App, run: &RunSummary, steps: &StepsQuery) -> Result<Response, ProblemDetails> {
    let window = steps.window()?;
    let events = app.runs.events(&run.run_id).await?;
    let ProgramOfRun { program, .. } = app.runs.program(&run.run_id, &events).await?;
    let mut log = StepLog::new(steps.address());
    let state = fold::logged(&program, &run.run_id, events, &mut log)?;
    let view = log
        .view(&program, &state, run.driven, window)
        .map_err(|why| ProblemDetails::new(StatusCode::NOT_FOUND, "no_such_step", why.to_string()))?;
    Ok(json(StatusCode::OK, &shown_view(view, &Redaction::new(&program.project.redact))))
}
