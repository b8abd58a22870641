//! `GET /agents`: the caller's runs, by pages.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::journal::{RunFilter, RunSummary, set_aside};
use crate::serve::app::App;
use crate::serve::authorizer::{Caller, OrgReach};
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{json, query};
use crate::serve::run_query::RunQuery;
use crate::serve::view::{AgentList, AgentRow};

/// The most runs of a page.
const MAX_PAGE_RUNS: usize = 500;
/// The runs of a page when nothing is said.
const DEFAULT_PAGE_RUNS: usize = 50;

/// Which runs, and how many.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsQuery {
    /// Which runs.
    #[serde(flatten)]
    pub which: RunQuery,
    /// Also the runs that other runs called.
    pub called: bool,
    /// Only the runs that wait for a human, also while another part of them is under way. Those that wait for a time, an event, a
    /// model or room in a spending limit are left out.
    pub waiting: bool,
    /// The most runs, 1 to 500; 50 by default.
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<usize>,
    /// The next page: the `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// The caller's runs, the newest first.
pub async fn agents(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Result<Response, ProblemDetails> {
    let asked: AgentsQuery = query(&uri)?;
    let limit = asked.limit.unwrap_or(DEFAULT_PAGE_RUNS);
    if !(1..=MAX_PAGE_RUNS).contains(&limit) {
        return Err(ProblemDetails::bad_request(format!("`limit` is from 1 to {MAX_PAGE_RUNS}")));
    }
    if let Some(cursor) = &asked.cursor
        && app.runs.find(&caller, cursor).await.is_err()
    {
        return Err(ProblemDetails::bad_request("`cursor` takes the `next_cursor` of the page before"));
    }
    let filter = RunFilter {
        after: asked.cursor,
        called: asked.called,
        for_humans: asked.waiting,
        // One more than the page shows, to know whether there is another page.
        limit: limit + 1,
        ..asked.which.filter(&caller)?
    };
    let mut runs = app.runs.journal.list(filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let runs = set_aside::all_shown(&*app.runs.journal, runs).await?;
    let sees_all = caller.reach == OrgReach::All;
    let row = |run: RunSummary| AgentRow { org: run.org.clone().filter(|_| sees_all), ..AgentRow::from(run) };
    let agents: Vec<AgentRow> = runs.into_iter().map(row).collect();
    let next_cursor = agents.last().filter(|_| more).map(|run| run.agent_run_id.clone());
    Ok(json(StatusCode::OK, &AgentList { agents, next_cursor }))
}
