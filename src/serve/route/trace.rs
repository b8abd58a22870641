//! `GET /agents/{id}/trace`: the result of a run with its trace, one iteration of a loop, or the steps of a workflow at an
//! address.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;

use crate::drive::fold;
use crate::engine::event::Event;
use crate::engine::flow::view::StepLog;
use crate::engine::model_requests::asked;
use crate::engine::outcome::Status;
use crate::journal::{RunSummary, set_aside};
use crate::program::Program;
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{RunId, json, query};
use crate::serve::run_store::ProgramOfRun;
use crate::serve::step_reader::StepsQuery;
use crate::trace::iteration::IterationView;
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
    let summary = set_aside::shown(&*app.runs.journal, app.runs.find(&caller, &run_id).await?).await?;
    if steps.at.is_some() {
        return at(&app, &summary, &steps).await;
    }
    let run = app.runs.looked_at(&run_id).await?;
    let redact = Redaction::new(&run.program.project.redact);
    Ok(json(StatusCode::OK, &result(whole(&run.program, &summary), &run.state, &redact)))
}

/// A result with its trace.
fn whole<'p>(program: &'p Program, run: &RunSummary) -> Shown<'p> {
    Shown {
        result_key: program.result_key(),
        trace: true,
        driven: run.driven,
        is_quarantined: run.status == Status::Quarantined,
    }
}

/// One iteration, or the steps at an address, as `loopctl trace --at --format json` prints them.
async fn at(app: &App, run: &RunSummary, steps: &StepsQuery) -> Result<Response, ProblemDetails> {
    let window = steps.window()?;
    let events = app.runs.events(&run.run_id).await?;
    let ProgramOfRun { program, .. } = app.runs.program(&run.run_id, &events).await?;
    if !program.is_flow() {
        return iteration(&program, run, events, steps.at.as_deref().unwrap_or_default());
    }
    let mut log = StepLog::new(steps.address());
    let state = fold::logged(&program, &run.run_id, events, &mut log)?;
    let view = log
        .view(&program, &state, run.driven, window)
        .map_err(|why| ProblemDetails::new(StatusCode::NOT_FOUND, "no_such_step", why.to_string()))?
        .quarantined(run.status == Status::Quarantined);
    Ok(json(StatusCode::OK, &shown_view(view, &Redaction::new(&program.project.redact))))
}

/// One iteration of a loop.
fn iteration(program: &Program, run: &RunSummary, events: Vec<Event>, at: &str) -> Result<Response, ProblemDetails> {
    let missing = |why: String| ProblemDetails::new(StatusCode::NOT_FOUND, "no_such_iteration", why);
    let number: u32 = at.parse().map_err(|_| {
        missing(format!("{at:?} is no iteration, and the run is no workflow, whose steps have addresses: name an iteration by its number, from 1"))
    })?;
    let asked = asked(program, &events, number)
        .map_err(|why| missing(format!("iteration {number} of the run can't be shown: {why}")))?;
    let state = fold::fold(program, &run.run_id, events)?;
    let redact = Redaction::new(&program.project.redact);
    let result = result(whole(program, run), &state, &redact);
    Ok(json(StatusCode::OK, &IterationView::new(number, &asked, asked.selected_names(program), &result, &redact)))
}
