//! `GET /agents`: the caller's runs, by pages.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::engine::outcome::Status;
use crate::journal::{RunFilter, RunSummary};
use crate::serve::app::App;
use crate::serve::authorizer::{Caller, OrgReach};
use crate::serve::problem::ProblemDetails;
use crate::serve::request::{json, query};
use crate::serve::view::{AgentList, AgentRow, session_in_store};

/// The most runs of a page.
const MAX_PAGE_RUNS: usize = 500;
/// The runs of a page when nothing is said.
const DEFAULT_PAGE_RUNS: usize = 50;

/// Which runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsQuery {
    /// Of this status: running, paused, completed, failed, cancelled or quarantined. `paused` lists also the runs that are
    /// under way while a part of them waits for a human: these have `"waiting": true`.
    #[schemars(with = "Option<String>", extend("enum" = ["running", "paused", "completed", "failed", "cancelled", "quarantined", null]))]
    pub status: Option<Status>,
    /// Of this loop.
    #[serde(rename = "loop")]
    pub loop_name: Option<String>,
    /// Of this session.
    pub session: Option<String>,
    /// With this text in the beginning of its objective or its input. The case of letters does not matter.
    pub search: Option<String>,
    /// Started at this time or later, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Started before this time, RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// Also the runs that other runs called.
    pub called: bool,
    /// So many at most, 1 to 500; 50 by default.
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
        due_ms: None,
        status: asked.status.filter(|status| *status != Status::Paused),
        waiting: asked.status == Some(Status::Paused),
        org: caller.seen_org(),
        id_prefix: None,
        loop_name: asked.loop_name,
        session: asked.session.map(|session| session_in_store(caller.org.as_deref(), &session)),
        search: asked.search,
        since_ms: asked.since.as_deref().map(moment).transpose()?,
        until_ms: asked.until.as_deref().map(moment).transpose()?,
        after: asked.cursor,
        callback_pending: false,
        called: asked.called,
        oldest_first: false,
        // One more than the page shows, to know whether there is another page.
        limit: limit + 1,
    };
    let mut runs = app.runs.journal.list(filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let sees_all = caller.reach == OrgReach::All;
    let row = |run: RunSummary| AgentRow { org: run.org.clone().filter(|_| sees_all), ..AgentRow::from(run) };
    let agents: Vec<AgentRow> = runs.into_iter().map(row).collect();
    let next_cursor = agents.last().filter(|_| more).map(|run| run.agent_run_id.clone());
    Ok(json(StatusCode::OK, &AgentList { agents, next_cursor }))
}

fn moment(text: &str) -> Result<i64, ProblemDetails> {
    let at: Result<jiff::Timestamp, _> = text.parse();
    at.map(jiff::Timestamp::as_millisecond)
        .map_err(|_| ProblemDetails::bad_request("`since` and `until` are times like 2026-01-31T12:00:00Z"))
}
