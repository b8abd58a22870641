//! `POST /agents/bulk`: retries, cancels or releases the runs that a filter finds, up to a bound.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::BULK_SCOPES;
use crate::drive::clock;
use crate::drive::engine::Resume;
use crate::engine::event::Retried;
use crate::engine::outcome::Status;
use crate::journal::{CancelRequest, ListedStatus, RunFilter, RunSummary};
use crate::serve::app::App;
use crate::serve::authorizer::Caller;
use crate::serve::problem::{ItemizedResult, ProblemDetails};
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
    /// Of those that match, these only: the ids that a dry run found.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    pub runs: Option<BTreeSet<String>>,
    /// Why they are cancelled.
    #[serde(default)]
    pub reason: Option<String>,
    /// The most runs, 1 to 500; 100 by default, and with `runs` 500. The oldest come first.
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
    /// The code of what ended the request early: a share was used up, or the token has expired or was revoked. The runs after that
    /// were not tried. Send the request again later, or with another token.
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
        let may = self.may(caller, &run.loop_name).is_ok();
        // What waits for a human is decided about, one by one; a model that is waited for beside that is asked again.
        let is_meant = self != Self::Retry || run.waits_for_model() || run.status == Status::Failed;
        may && is_meant && run.damaged.is_none() && run.may_be_driven().is_ok()
    }

    /// Checks that the caller may do it with the runs of a loop.
    ///
    /// # Errors
    /// 403 when it may not.
    fn may(self, caller: &Caller, loop_name: &str) -> Done {
        match self {
            Self::Cancel => caller.may_cancel(loop_name),
            Self::Retry | Self::Release => caller.may_resume(loop_name),
        }
    }

    /// The caller as the tokens of now have it: many runs take a while.
    ///
    /// # Errors
    /// 401 or 403 when the token has expired, was revoked, or may not do it any more.
    fn still(self, app: &App, caller: &Caller, loop_name: &str) -> Result<Caller, ProblemDetails> {
        let now = app.served().authorizer.check_again(caller, BULK_SCOPES, clock::wall_ms())?;
        self.may(&now, loop_name)?;
        Ok(now)
    }

    async fn perform(self, app: &Arc<App>, caller: &Caller, run: RunSummary, reason: Option<&str>) -> Done {
        match self {
            Self::Cancel => {
                let request = CancelRequest { reason: reason.map(str::to_owned), by: caller.name.clone() };
                let owner = Owner { org: run.org, token: run.token.map(String::from) };
                app.scheduler.cancel(&run.run_id, &owner, request).await.map(drop)?;
            }
            Self::Release => super::release::released(app, caller, std::slice::from_ref(&run)).await?,
            Self::Retry => {
                app.scheduler.accepts_runs()?;
                let resume = Resume { retried: Some(Retried::by(caller.name.clone())), ..Resume::default() };
                app.scheduler
                    .decide(&mut DecidedRun::of_list(run), resume, None, &Owner::from(caller))
                    .await
                    .map(drop)?;
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
    let limit = asked.limit.unwrap_or(if asked.runs.is_some() { MAX_BULK_RUNS } else { DEFAULT_BULK_RUNS });
    if !(1..=MAX_BULK_RUNS).contains(&limit) {
        return Err(ProblemDetails::bad_request(format!("`limit` is from 1 to {MAX_BULK_RUNS}")));
    }
    if asked.runs.as_ref().is_some_and(|runs| !(1..=MAX_BULK_RUNS).contains(&runs.len())) {
        return Err(ProblemDetails::bad_request(format!("`runs` has from 1 to {MAX_BULK_RUNS} ids")));
    }
    let mut runs = matching(&app, &caller, &asked).await?;
    let failed = asked.left_out(&runs);
    let matched = runs.len();
    runs.truncate(limit);
    let BulkRequest { action, dry_run, reason, .. } = asked;
    let mut result = BulkResult { matched, done: Vec::new(), failed, dry_run, stopped: None };
    for run in runs {
        let run_id = run.run_id.clone();
        let now = match action.still(&app, &caller, &run.loop_name) {
            Ok(now) => now,
            Err(problem) => {
                result.stopped = Some(problem.code);
                break;
            }
        };
        let done = if dry_run { Ok(()) } else { action.perform(&app, &now, run, reason.as_deref()).await };
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
    let mut response = json(StatusCode::OK, &result);
    response.extensions_mut().insert(ItemizedResult);
    Ok(response)
}

impl BulkRequest {
    /// Those of the named runs that are none of the runs that match.
    fn left_out(&self, matching: &[RunSummary]) -> Vec<BulkFailure> {
        let is_left_out = |id: &&String| matching.iter().all(|run| run.run_id != **id);
        let left_out = self.runs.iter().flatten().filter(is_left_out).map(|id| BulkFailure {
            agent_run_id: id.clone(),
            code: "not_matched",
            detail: format!("the run is not, or not any more, one of the oldest {MAX_COUNTED_RUNS} that match"),
        });
        left_out.collect()
    }
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
    if let Some(named) = &asked.runs {
        runs.retain(|run| named.contains(&run.run_id));
    }
    Ok(runs)
}
