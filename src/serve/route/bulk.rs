//! `POST /agents/bulk`: retries, cancels or releases the runs that a filter finds, up to a bound.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::drive::engine::Resume;
use crate::engine::event::Retried;
use crate::engine::outcome::{Status, Termination};
use crate::journal::{CancelRequest, ListedStatus, RunFilter, RunSummary};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::ProblemDetails;
use crate::serve::quotas::Owner;
use crate::serve::request::{self, json};
use crate::serve::run_query::moment;
use crate::serve::run_store::DecidedRun;

/// The most runs of a request.
const MAX_BULK_RUNS: usize = 500;
/// The most runs of a request that names no number.
const DEFAULT_BULK_RUNS: usize = 100;
/// The most runs that are counted.
const MAX_COUNTED_RUNS: usize = 10_000;

/// What is done with each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// Retry those that failed, or whose model could not be reached.
    Retry,
    /// Cancel those that have not ended.
    Cancel,
    /// Release those that are quarantined.
    Release,
}

/// Which runs, and what is done with them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BulkRequest {
    /// What is done.
    pub action: BulkAction,
    /// Those of this status only: one that the action is for.
    #[serde(default)]
    pub status: Option<ListedStatus>,
    /// Those of this loop only.
    #[serde(rename = "loop", default)]
    pub loop_name: Option<String>,
    /// Those with this text in the beginning of their objective or input.
    #[serde(default)]
    pub search: Option<String>,
    /// Those that started at this time or later, RFC 3339.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub since: Option<String>,
    /// Those that started before this time, RFC 3339.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub until: Option<String>,
    /// Those that ended at this time or later, RFC 3339.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub ended_since: Option<String>,
    /// Those that ended before this time, RFC 3339.
    #[serde(default)]
    #[schemars(extend("format" = "date-time"))]
    pub ended_until: Option<String>,
    /// Why they are cancelled.
    #[serde(default)]
    pub reason: Option<String>,
    /// The most runs, 1 to 500; 100 by default. The oldest come first.
    #[serde(default)]
    #[schemars(range(min = 1, max = 500))]
    pub limit: Option<usize>,
    /// Only say which runs.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of the runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BulkResult {
    /// How many runs match, up to 10,000; of these, `limit` are taken, the oldest ones.
    pub matched: usize,
    /// The ids of the runs with which it was done; in a dry run, with which it would be.
    pub done: Vec<String>,
    /// Those with which it could not be done.
    pub failed: Vec<BulkFailure>,
    /// Whether that was a dry run.
    pub dry_run: bool,
    /// The code of the share that was used up: the runs after that were not tried. Send the request again later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'static str>,
}

/// A run with which something could not be done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BulkFailure {
    /// Its id.
    pub agent_run_id: String,
    /// The code of the problem.
    pub code: &'static str,
    /// The problem, in a sentence.
    pub detail: String,
}

impl BulkAction {
    /// The statuses of the runs that it is for.
    fn statuses(self) -> &'static [ListedStatus] {
        match self {
            Self::Retry => &[ListedStatus::Failed, ListedStatus::Paused],
            Self::Cancel => {
                &[ListedStatus::Running, ListedStatus::Queued, ListedStatus::Paused, ListedStatus::Quarantined]
            }
            Self::Release => &[ListedStatus::Quarantined],
        }
    }

    /// Whether the caller may do it with a run, and it is meant.
    fn is_for(self, caller: &Caller, run: &RunSummary) -> bool {
        let may = match self {
            Self::Cancel => caller.may_cancel(&run.loop_name).is_ok(),
            Self::Retry | Self::Release => caller.may_resume(&run.loop_name).is_ok(),
        };
        // A run that waits for a human is decided about, one by one.
        let is_away = run.status == Status::Paused && run.termination == Some(Termination::ModelError);
        let is_meant = self != Self::Retry || is_away || run.status == Status::Failed;
        may && is_meant && run.damaged.is_none()
    }

    async fn perform(self, app: &Arc<App>, caller: &Caller, run: RunSummary, reason: Option<&str>) -> Done {
        match self {
            Self::Cancel => {
                let request = CancelRequest { reason: reason.map(str::to_owned), by: caller.name.clone() };
                app.scheduler.cancel(&run.run_id, run.org.as_deref(), request).await.map(drop)?;
            }
            Self::Release => super::release::released(app, caller, std::slice::from_ref(&run)).await?,
            Self::Retry => {
                app.scheduler.accepts_runs()?;
                let resume = Resume { retried: Some(Retried::by(caller.name.clone())), ..Resume::default() };
                app.scheduler.decide(&mut DecidedRun::new(run), resume, None, &Owner::from(caller)).await.map(drop)?;
            }
        }
        Ok(())
    }
}

type Done = Result<(), ProblemDetails>;

/// Does something with many runs, and says what became of each.
pub async fn bulk(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, ProblemDetails> {
    let asked: BulkRequest = request::body(&body)?;
    let limit = asked.limit.unwrap_or(DEFAULT_BULK_RUNS);
    if !(1..=MAX_BULK_RUNS).contains(&limit) {
        return Err(ProblemDetails::bad_request(format!("`limit` is from 1 to {MAX_BULK_RUNS}")));
    }
    let mut runs = matching(&app, &caller, &asked).await?;
    let matched = runs.len();
    runs.truncate(limit);
    let BulkRequest { action, dry_run, reason, .. } = asked;
    let mut result = BulkResult { matched, done: Vec::new(), failed: Vec::new(), dry_run, stopped: None };
    for run in runs {
        let run_id = run.run_id.clone();
        let done = if dry_run { Ok(()) } else { action.perform(&app, &caller, run, reason.as_deref()).await };
        match done {
            Ok(()) => result.done.push(run_id),
            Err(problem) if problem.status == StatusCode::TOO_MANY_REQUESTS => {
                result.stopped = Some(problem.code);
                break;
            }
            Err(ProblemDetails { code, detail, .. }) => {
                result.failed.push(BulkFailure { agent_run_id: run_id, code, detail });
            }
        }
    }
    let (done, failed) = (result.done.len(), result.failed.len());
    tracing::info!(?action, matched, done, failed, dry_run, by = caller.name.as_deref(), "done with many runs");
    Ok(json(StatusCode::OK, &result))
}

/// The runs that are meant, the oldest first.
async fn matching(app: &App, caller: &Caller, asked: &BulkRequest) -> Result<Vec<RunSummary>, ProblemDetails> {
    let statuses = asked.action.statuses();
    let statuses: Vec<ListedStatus> = match asked.status {
        None => statuses.to_vec(),
        Some(status) if statuses.contains(&status) => vec![status],
        Some(status) => {
            let detail = format!("no run that is {} can be the object of this action", status.word());
            return Err(ProblemDetails::bad_request(detail));
        }
    };
    let filter = RunFilter {
        org: caller.seen_org(),
        loop_name: asked.loop_name.clone(),
        search: asked.search.clone(),
        since_ms: asked.since.as_deref().map(moment).transpose()?,
        until_ms: asked.until.as_deref().map(moment).transpose()?,
        ended_since_ms: asked.ended_since.as_deref().map(moment).transpose()?,
        ended_until_ms: asked.ended_until.as_deref().map(moment).transpose()?,
        oldest_first: true,
        limit: MAX_COUNTED_RUNS,
        ..RunFilter::of_statuses(&statuses)
    };
    let mut runs = app.runs.journal.list(filter).await?;
    runs.retain(|run| asked.action.is_for(caller, run));
    Ok(runs)
}
